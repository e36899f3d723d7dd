"""Changed edges merged into simple rows on a CUDA device: rows.cu explains the method.

The counterpart of `rows_cpu`: seven small launches, a sort, a running sum, and one word read back,
which is the size of the result. Requires rows on the current device.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import launch
from lpma.results import TouchedEdges

from .types import Change, TrackedRows

Array = Any  # cupy.ndarray

TILE = 4096  # entries that a block moves, as in rows.cu


def changed(rows: TrackedRows, touched: TouchedEdges, spare: None) -> Change:
    """As `rows_cpu.changed`, but CuPy keeps the memory of earlier rows. Waits for the device."""
    n, count = touched.num_vertices, 2 * len(touched.keys)
    alone = _alone(rows, touched, n)
    keys = cupy.empty(count, np.uint64)
    launch.run(
        "algorithms/tracker/rows.cu", "make_keys", count // 2,
        touched.keys, touched.there, count // 2, keys,
    )  # fmt: skip
    keys.sort()
    places, effects = cupy.empty(count, np.int64), cupy.empty(count, np.uint64)
    launch.run(
        "algorithms/tracker/rows.cu", "search", count,
        keys, count, rows.indptr, rows.indices, rows.num_vertices, places, effects,
    )  # fmt: skip
    sums = cupy.zeros(count + 1, np.uint64)
    if count:
        cupy.cumsum(effects, out=sums[1:])
    total = int(sums[-1])
    inserted, deleted = (cupy.empty(c, np.uint64) for c in (total >> 32, total & 0xFFFFFFFF))
    if total == 0 and n == rows.num_vertices:
        after = rows if alone is rows.alone else _rows(rows.indptr, rows.indices, alone)
        return Change(rows, after, inserted, deleted)
    m = len(rows.indices)
    indices = cupy.empty(m + len(inserted) - len(deleted), np.uint32)
    indptr = cupy.empty(n + 1, np.int64)
    launch.run(
        "algorithms/tracker/rows.cu", "start_rows", n + 1,
        keys, count, sums, rows.indptr, rows.num_vertices, n, indptr,
    )  # fmt: skip
    launch.run(
        "algorithms/tracker/rows.cu", "move_entries", launch.BLOCK * -(-m // TILE),
        places, sums, count, rows.indices, m, indices,
    )  # fmt: skip
    launch.run(
        "algorithms/tracker/rows.cu", "list_changes", count,
        keys, count, places, sums, indices, inserted, deleted,
    )  # fmt: skip
    return Change(rows, _rows(indptr, indices, alone), inserted, deleted)


def _alone(rows: TrackedRows, touched: TouchedEdges, n: int) -> Array:
    """`TrackedRows.alone` after the change."""
    count = len(touched.keys)
    if n == rows.num_vertices and not count:
        return rows.alone
    alone = cupy.zeros((2, n), np.bool_)
    kept = min(n, rows.num_vertices)
    alone[:, :kept] = rows.alone[:, :kept]
    launch.run(
        "algorithms/tracker/rows.cu", "note_vertices", count,
        touched.keys, touched.there, count, n, alone,
    )  # fmt: skip
    return alone


def _rows(indptr: Array, indices: Array, alone: Array) -> TrackedRows:
    n = len(indptr) - 1
    present = cupy.empty(n, np.bool_)
    launch.run("algorithms/tracker/rows.cu", "find_vertices", n, indptr, alone, n, present)
    return TrackedRows(indptr, indices, alone, present)


def find_loops(indptr: Array, indices: Array, looped: Array) -> None:
    """As `rows_cpu.find_loops`."""
    launch.run(
        "algorithms/tracker/rows.cu", "find_loops", len(looped),
        indptr, indices, len(looped), looped,
    )  # fmt: skip
