"""Joining and separating components on a CUDA device: see tracker_components.cu.

The counterpart of `algorithms.tracker._components_cpu`. Requires arrays on the current device.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import launch

from .figure import Change

Array = Any  # cupy.ndarray


def separate(change: Change, labels: Array) -> bool:
    """Whether each deleted edge is one that does not cut, or takes a leaf or a pair away: these are
    then labelled by themselves. If not, the labels are spoilt. Waits for the device."""
    cuts = cupy.zeros(1, np.uint32)
    before, rows, deleted = change.before, change.after, change.deleted
    launch.run(
        "algorithms/tracker/components.cu", "separate", 32 * len(deleted),
        deleted, len(deleted), before.indptr, before.indices, rows.indptr, rows.indices,
        rows.num_vertices, labels, cuts,
    )  # fmt: skip
    return int(cuts[0]) == 0


def join(inserted: Array, labels: Array) -> None:
    """Hook the components at both ends of each inserted edge together, and flatten the labels."""
    launch.run(
        "algorithms/tracker/components.cu", "join", len(inserted), inserted, len(inserted), labels
    )
    launch.run("algorithms/components/components.cu", "flatten", len(labels), len(labels), labels)
