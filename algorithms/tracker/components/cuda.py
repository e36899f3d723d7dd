"""Components joined and separated on a CUDA device: see components.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cuda import driver, launch

from ..types import Change

Array = Any  # cupy.ndarray

FILE = "algorithms/tracker/components/components.cu"


def separate(change: Change, labels: Array) -> bool:
    """As `cpu.separate`. Waits for the device."""
    cuts = driver.zeros(1, np.uint32)
    before, rows, deleted = change.before, change.after, change.deleted
    launch.run(
        FILE, "separate", 32 * len(deleted), deleted, len(deleted), before.indptr, before.indices,
        rows.indptr, rows.indices, rows.num_rows, labels, cuts,
    )  # fmt: skip
    return driver.number(cuts) == 0


def join(inserted: Array, labels: Array) -> None:
    """As `cpu.join`."""
    launch.run(FILE, "join", len(inserted), inserted, len(inserted), labels)
    launch.run("algorithms/components/components.cu", "flatten", len(labels), len(labels), labels)
