"""Core numbers after a batch, on a CUDA device: one cooperative kernel, see tracker_core.cu.

The counterpart of `algorithms.tracker._core_cpu`. Requires arrays on the current device.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..tracker.figure import Change
from . import launch

Array = Any  # cupy.ndarray

BLOCK = 512  # tracker_core.cu
FOUND = 24  # bytes
ENTRIES_PER_THREAD = 8  # of the whole graph: a small one gets a small grid, with cheap barriers


def follow(change: Change, numbers: Array, budget: int) -> bool:
    """Bring `numbers` from before to after; False, and they are spoilt, where that would read more
    entries than the budget. Waits for the device."""
    rows = change.after
    n, m = rows.num_vertices, len(rows.indices)
    if n == 0:
        return True
    count, seen = cupy.empty(n, np.int32), cupy.zeros(n, np.uint32)
    lists = cupy.empty(3 * n, np.uint32)
    control = cupy.zeros(3 * FOUND + 8, np.uint8)
    outcome = control[3 * FOUND :].view(np.uint32)
    launch.run_together(
        "tracker_core", "follow", n + m // ENTRIES_PER_THREAD,
        rows.indptr, rows.indices, n, change.deleted, change.num_deleted * 2, change.inserted,
        change.num_inserted * 2, numbers, count, seen, lists, control, budget, outcome,
        block=BLOCK,
    )  # fmt: skip
    return int(outcome[0]) == 0
