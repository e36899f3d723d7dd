"""The simple undirected view of a small directed graph on the CPU, its rows in no order.

Idea, in O(n + m), by one thread: a row is its targets, then the sources of its in-edges, found by a
counting sort, that are not among them. Each target is marked with the number of the row, so nothing
is merged and no marks are cleared. That takes a third of the time of merging sorted rows
(`simple_cpu`), and serves whoever reads whole rows.

Requires rows without repeats, indptr int64[n+1] and indices uint32[m], C-contiguous.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.jit import compiled

from ..arrays import Array


def unsorted_union(indptr: Array, indices: Array) -> tuple[Array, Array]:
    """indptr int64[n+1] and indices uint32[…] of the rows: without loops or repeats."""
    n = len(indptr) - 1
    starts, places = np.zeros(n + 1, np.int64), np.empty(n, np.int64)
    entries, marks = np.empty(2 * len(indices) + 1, np.uint32), np.full(n, -1, np.int32)
    _write_union(indptr, indices, starts, places, entries, marks)
    return starts, entries[: starts[-1]]


@compiled
def _write_union(
    indptr: Array, indices: Array, starts: Array, places: Array, entries: Array, marks: Array
) -> None:
    n = len(indptr) - 1
    for e in range(len(indices)):
        starts[indices[e] + np.int64(1)] += 1
    for u in range(n):
        out = indptr[u + 1] - indptr[u]
        places[u] = starts[u] + out  # where the next source goes
        starts[u + 1] += starts[u] + out
    for u in range(n):
        shift = starts[u] - indptr[u]
        for e in range(indptr[u], indptr[u + 1]):
            v = np.int64(indices[e])
            entries[e + shift] = indices[e]
            entries[places[v]] = np.uint32(u)
            places[v] += 1
    kept = np.int64(0)
    for u in range(n):
        first, end = starts[u], places[u]
        turn = first + indptr[u + 1] - indptr[u]
        starts[u] = kept
        for e in range(first, turn):
            v = entries[e]
            marks[v] = u
            entries[kept] = v
            kept += v != u
        for e in range(turn, end):
            v = entries[e]
            entries[kept] = v
            kept += (marks[v] != u) & (v != u)
    starts[n] = kept
