"""Changed edges merged into simple rows on a CUDA device: rows.cu explains the method.

The counterpart of `cpu`: five small launches, a sort, a running sum, and one word read back, which
is the size of the result. Requires rows on the current device.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import driver, launch
from lpma.results import TouchedEdges

from ..types import Change, TrackedRows, extended

Array = Any  # cupy.ndarray

FILE = "algorithms/tracker/rows/rows.cu"
TILE = 4096  # entries that a block moves, as in rows.cu


def changed(rows: TrackedRows, touched: TouchedEdges, spare: None) -> Change:
    """As `cpu.changed`, but CuPy keeps the memory of earlier rows. Waits for the device."""
    n, count = touched.num_rows, 2 * len(touched.keys)
    if n == rows.num_rows and not count:
        return Change(rows, rows, cupy.empty(0, np.uint64), cupy.empty(0, np.uint64))
    alone = extended(rows.alone, n)
    keys = cupy.empty(count, np.uint64)
    launch.run(
        FILE, "make_keys", count // 2, touched.keys, touched.there, count // 2, keys, n, alone
    )
    keys.sort()
    places, effects = cupy.empty(count, np.int64), cupy.empty(count + 1, np.uint64)
    launch.run(
        FILE, "search", count + 1,
        keys, count, rows.indptr, rows.indices, rows.num_rows, places, effects,
    )  # fmt: skip
    sums = cupy.cumsum(effects)
    total = driver.number(sums, -1)
    inserted, deleted = (cupy.empty(c, np.uint64) for c in (total >> 32, total & 0xFFFFFFFF))
    m, indices = len(rows.indices), rows.indices
    present, indptr = cupy.empty(n, np.bool_), cupy.empty(n + 1, np.int64)
    launch.run(
        FILE, "start_rows", n + 1,
        keys, count, sums, rows.indptr, rows.num_rows, n, alone, indptr, present,
    )  # fmt: skip
    if total:
        indices = cupy.empty(m + len(inserted) - len(deleted), np.uint32)
        launch.run(
            FILE, "move_entries", launch.BLOCK * -(-m // TILE),
            places, sums, count, rows.indices, m, indices,
        )  # fmt: skip
        launch.run(
            FILE, "list_changes", count, keys, count, places, sums, indices, inserted, deleted
        )
    return Change(rows, TrackedRows(indptr, indices, alone, present), inserted, deleted)
