"""Common neighbours of pairs of vertices, and of one vertex with all others, on the CPU.

The sorted rows of a pair are merged; if one has more than MUCH_LONGER times as many entries as the
other, the shorter one's entries are searched for in it instead. For one vertex with all others the
paths of two edges from it are counted by where they end.

Requires indptr int64[n+1] and indices uint32[m], C-contiguous, rows sorted.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows
from lpma.cpu.search import first_not_below

from ..arrays import Array, starts_of
from ..views.simple import View

MUCH_LONGER = 16


def of_pairs(
    view: View, left: Array, right: Array, values: Array | None = None
) -> tuple[Array, Array, Array]:
    """As `similarity.of_pairs`, in threads. A pair's own vertices do not count as common."""
    lengths = np.diff(view.indptr)
    work = starts_of(lengths[left] + lengths[right])  # steps up to each pair, at most
    pieces = by_rows(_of_pairs, work, view.indptr, view.indices, left, right, values)
    count, total, union = (np.concatenate(column) for column in zip(*pieces, strict=True))
    return count, total, union


@compiled
def _of_pairs(
    first: int, last: int, indptr: Array, indices: Array, left: Array, right: Array,
    values: Array | None,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """As `of_pairs`, for i = first … last - 1."""
    count = np.zeros(last - first, np.int64)
    total = np.zeros(last - first, np.float64)
    union = np.zeros(last - first, np.int64)
    for pair in range(first, last):
        u, v = left[pair], right[pair]
        if indptr[u + 1] - indptr[u] > indptr[v + 1] - indptr[v]:
            u, v = v, u
        i, end = indptr[u], indptr[u + 1]
        j, other_end = indptr[v], indptr[v + 1]
        both = 0
        skips = other_end - j > MUCH_LONGER * (end - i)
        while i < end and j < other_end:
            if skips:
                j = first_not_below(indices, j, other_end, indices[i])
                if j == other_end:
                    break
            wanted, other = indices[i], indices[j]
            if wanted == other:
                both += 1
                if wanted != u and wanted != v:
                    count[pair - first] += 1
                    if values is not None:
                        total[pair - first] += values[wanted]
            i += skips or wanted <= other  # a branch would be mispredicted half the time
            j += other <= wanted
        lengths = indptr[u + 1] - indptr[u] + indptr[v + 1] - indptr[v]
        union[pair - first] = lengths - both
    return count, total, union


def with_all(view: View, vertex: int) -> Array:
    """int64[n]: how many neighbours each vertex has in common with `vertex`, itself 0. REQUIRES:
    the simple undirected view."""
    counts: Array = _with_all(view.indptr, view.indices, vertex)
    return counts


@compiled
def _with_all(indptr: Array, indices: Array, vertex: int) -> Array:
    """As `with_all`."""
    counts = np.zeros(len(indptr) - 1, np.int64)
    for i in range(indptr[vertex], indptr[vertex + 1]):
        w = indices[i]
        for j in range(indptr[w], indptr[w + np.uint32(1)]):
            counts[indices[j]] += 1
    counts[vertex] = 0
    return counts
