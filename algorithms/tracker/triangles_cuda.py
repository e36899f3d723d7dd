"""Triangles that have one of the listed edges, on a CUDA device: see tracker_triangles.cu.

The counterpart of `algorithms.tracker._triangles_cpu`. Requires arrays on the current device.
"""

from __future__ import annotations

import cupy
import numpy as np

from lpma.cuda import launch

from .figure import Change

BLOCK = 256  # tracker_triangles.cu: 32 WARPS


def difference(change: Change) -> int:
    """How many more triangles there are after than before. Waits for the device."""
    totals = cupy.zeros(2, np.uint64)
    for rows, edges, total in (
        (change.after, change.inserted, totals[:1]),
        (change.before, change.deleted, totals[1:]),
    ):
        launch.run(
            "algorithms/tracker/triangles.cu", "count_touching", 32 * len(edges),
            edges, len(edges), rows.indptr, rows.indices, total, block=BLOCK,
        )  # fmt: skip
    won, lost = totals.tolist()
    return int(won) - int(lost)
