"""The simple undirected view of a graph on a CUDA device: see `simple`.

Idea: every entry gives a key of 64 bits in both directions, source above target. Sorting the keys
brings a row's neighbours side by side, and repeats too. Sorting 2m keys moves more data than
merging sorted rows, but it needs no order in the input and no special treatment of hubs, and a
radix sort runs at the speed of the memory. An undirected snapshot loses at most its loops, found by
a search in every row.

Requires indptr int64[n+1] and indices uint32[m] in C order on the current device. Work is enqueued
on the current stream and waited for, since a view may be used from any stream.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.cuda import launch

Array = Any  # cupy.ndarray
Rows = tuple[Array, Array]  # indptr int64[n+1], indices uint32[m]


def simple(indptr: Array, indices: Array) -> Rows:
    """Rows of the union with the transpose, without loops or repeats."""
    n, m = len(indptr) - 1, len(indices)
    keys = cupy.empty(2 * m, np.uint64)
    launch.run("algorithms/views/simple.cu", "both_directions", m, indptr, indices, n, m, keys)
    return _of_keys(n, keys)


def united(indptr: Array, indices: Array, other_indptr: Array, other: Array) -> Rows:
    """The union of the rows of two graphs, without loops or repeats. REQUIRES: as many rows in
    both."""
    n, m = len(indptr) - 1, len(indices)
    keys = cupy.empty(m + len(other), np.uint64)
    for starts, entries, into in (indptr, indices, keys[:m]), (other_indptr, other, keys[m:]):
        count = len(entries)
        launch.run("algorithms/views/simple.cu", "row_keys", count, starts, entries, n, count, into)
    return _of_keys(n, keys)


def _of_keys(n: int, keys: Array) -> Rows:
    """The n rows of these entries, uint64, row above target, in any order, loops as NONE; without
    loops or repeats. Sorts the keys in place."""
    m = len(keys)
    keys.sort()
    keep = cupy.empty(m, np.uint8)
    launch.run("algorithms/views/simple.cu", "first_of_run", m, keys, m, keep)
    fences = cupy.arange(n + 1, dtype=np.uint64) << np.uint64(32)
    starts = cupy.searchsorted(keys, fences)
    return kept_rows(keep, keys.view(np.uint32), 2, starts)  # the low half of a key comes first


def without_loops(indptr: Array, indices: Array) -> Rows:
    """The same rows without loops; the same arrays if there are none. REQUIRES: sorted rows
    without repeats."""
    n, m = len(indptr) - 1, len(indices)
    keep, loops = cupy.ones(m, np.uint8), cupy.zeros(1, np.uint64)
    launch.run("algorithms/views/simple.cu", "drop_loops", n, indptr, indices, n, keep, loops)
    if int(loops[0]) == 0:
        return indptr, indices
    return kept_rows(keep, indices, 1, indptr)


def count_loops(indptr: Array, indices: Array) -> int:
    """How many loops there are. REQUIRES: sorted rows without repeats. Waits for the device."""
    n, keep = len(indptr) - 1, cupy.empty(len(indices), np.uint8)
    loops = cupy.zeros(1, np.uint64)
    launch.run("algorithms/views/simple.cu", "drop_loops", n, indptr, indices, n, keep, loops)
    return int(loops[0])


def induced(indptr: Array, indices: Array, inside: Array) -> Rows:
    """The entries both of whose ends are `inside`, bool[n]."""
    n, m = len(indptr) - 1, len(indices)
    keep = cupy.empty(m, np.uint8)
    launch.run("algorithms/views/simple.cu", "both_inside", m, indptr, indices, n, m, inside, keep)
    return kept_rows(keep, indices, 1, indptr)


def kept_rows(keep: Array, values: Array, stride: int, starts: Array) -> Rows:
    """The rows without the entries that are not kept. keep: uint8[m], 0 or 1; entry i is
    values[stride * i]; starts: int64[n+1], where the rows start among all entries."""
    count = len(keep)
    if count == 0:
        return cupy.zeros(len(starts), np.int64), cupy.empty(0, np.uint32)
    place = cupy.zeros(count + 1, np.int64)
    cupy.cumsum(keep, dtype=np.int64, out=place[1:])
    kept = cupy.empty(int(place[count]), np.uint32)
    launch.run(
        "algorithms/views/simple.cu", "gather_kept", count, keep, place, values, stride, count, kept
    )
    indptr = place[starts]
    cupy.cuda.get_current_stream().synchronize()
    return indptr, kept
