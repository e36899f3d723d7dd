"""The simple undirected view of a graph on a CUDA device: see `simple`.

Idea: the sorted rows of the graph are merged with those of its transpose, all in one launch
(unite.cu). Transposing twice sorts rows. An undirected snapshot loses at most its loops, found by a
search in every row.

Requires indptr int64[n+1] and indices uint32[m] in C order on the current device. Work is enqueued
on the current stream and waited for, since a view may be used from any stream.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.arrays import any_of
from lpma.cuda import driver, launch

from ..arrays import starts_of
from .transpose_cuda import transpose

Array = Any  # cupy.ndarray

FILE = "algorithms/views/simple.cu"
Rows = tuple[Array, Array]  # indptr int64[n+1], indices uint32[m]

BLOCK, TILE = 256, 2048  # unite.cu
CUT_WORDS = 3  # unite.cu: Cut
SPARE = 8  # memory beyond the view is given back where it is more than a part in SPARE


def simple(indptr: Array, indices: Array) -> Rows:
    """As `simple_cpu.simple`."""
    reverse_indptr, reverse = transpose(indptr, indices)
    if not _is_sorted(indptr, indices):
        indptr, indices = transpose(reverse_indptr, reverse)
    return united(indptr, indices, reverse_indptr, reverse)


def united(indptr: Array, indices: Array, other_indptr: Array, other: Array) -> Rows:
    """As `simple_cpu.united`."""
    n, room = len(indptr) - 1, len(indices) + len(other)
    tiles = -(-room // TILE)
    if tiles == 0:
        return driver.zeros(n + 1, np.int64), cupy.empty(0, np.uint32)
    rows = indptr, indices, other_indptr, other
    cuts = cupy.empty(CUT_WORDS * (tiles + 1), np.int64)
    launch.run("algorithms/views/unite.cu", "cut_tiles", tiles + 1, *rows, n, tiles, cuts)
    starts, union = cupy.empty(n + 1, np.int64), cupy.empty(room, np.uint32)
    launch.run(
        "algorithms/views/unite.cu", "unite_tiles", tiles * BLOCK,
        *rows, cuts, driver.zeros(1 + tiles, np.uint64), starts, union, block=BLOCK,
    )  # fmt: skip
    count = driver.number(starts, n)
    union = union[:count]
    return starts, union.copy() if (room - count) * SPARE > room else union


def _is_sorted(indptr: Array, indices: Array) -> bool:
    """Whether every row is sorted; repeats are allowed."""
    n, m, falls = len(indptr) - 1, len(indices), driver.zeros(1, np.uint32)
    launch.run("algorithms/views/unite.cu", "find_fall", m, indptr, indices, n, m, falls)
    return driver.number(falls) == 0


def without_loops(indptr: Array, indices: Array) -> Rows:
    """As `simple_cpu.without_loops`."""
    if not any_of(looped(indptr, indices)):
        return indptr, indices
    n, m, keep = len(indptr) - 1, len(indices), cupy.empty(len(indices), np.uint8)
    launch.run(FILE, "drop_loops", m, indptr, indices, n, m, keep)
    return kept_rows(keep, indices, indptr)


def looped(indptr: Array, indices: Array) -> Array:
    """As `simple_cpu.looped`."""
    found = cupy.empty(len(indptr) - 1, np.bool_)
    launch.run(FILE, "find_loops", len(found), indptr, indices, len(found), found)
    return found


def induced(indptr: Array, indices: Array, is_row: Array, is_entry: Array) -> Rows:
    """As `simple_cpu.induced`."""
    n, m = len(indptr) - 1, len(indices)
    keep = cupy.empty(m, np.uint8)
    launch.run(FILE, "both_inside", m, indptr, indices, n, m, is_row, is_entry, keep)
    return kept_rows(keep, indices, indptr)


def kept_rows(keep: Array, indices: Array, starts: Array) -> Rows:
    """The rows with only the entries to keep, uint8[m], 0 or 1. starts: int64[n+1], of the rows."""
    count = len(keep)
    if count == 0:
        return driver.zeros(len(starts), np.int64), cupy.empty(0, np.uint32)
    place = starts_of(keep)
    kept = cupy.empty(driver.number(place, count), np.uint32)
    launch.run(FILE, "gather_kept", count, keep, place, indices, count, kept)
    indptr = place[starts]
    driver.await_stream(cupy.cuda.get_current_stream())
    return indptr, kept
