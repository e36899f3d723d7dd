"""The simple view with the number of every entry's edge, and intersecting two of its rows, on the
CPU.

If two rows differ much in length, the longer is searched for the entries of the shorter, each
search starting where the last ended; otherwise they are merged.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows
from lpma.cpu.search import first_not_below

from ..triangles.types import EdgeList
from ..views.simple import View
from .types import EdgeRows

Array = npt.NDArray[Any]

SEARCHED = 8  # a row this many times as long as the other is searched, not merged


def edge_rows(view: View, edges: EdgeList) -> EdgeRows:
    """REQUIRES: the edges are the view's, sorted."""
    number = np.empty(len(view.indices), np.int32)
    upper = np.searchsorted(edges.src, np.arange(view.num_rows + 1))
    by_rows(_number_entries, view.indptr, view.indptr, view.indices, upper, number)
    first, last = view.indptr[:-1].copy(), view.indptr[1:].copy()
    return EdgeRows(edges.src, edges.dst, first, last, view.indices.copy(), number)


@compiled
def _number_entries(
    first: int, last: int, indptr: Array, indices: Array, upper: Array, number: Array
) -> None:
    """upper[u] is the number of the first edge from u to a larger id."""
    for u in range(first, last):
        start, end = indptr[u], indptr[u + 1]
        larger = end - (upper[u + 1] - upper[u])
        for i in range(start, larger):
            v = np.int64(indices[i])
            # Among v's neighbours of larger id, u stands as far from the end as v's edge to it.
            row = indices[indptr[v] : indptr[v + 1]]
            number[i] = upper[v + 1] - (len(row) - np.searchsorted(row, np.uint32(u)))
        for i in range(larger, end):
            number[i] = upper[u] + i - larger


@compiled
def shorter_first(u: int, v: int, first: Array, last: Array) -> tuple[int, int, int, int]:
    """Where the rows of u and v start and end, the shorter one first."""
    if last[u] - first[u] > last[v] - first[v]:
        u, v = v, u
    return first[u], last[u], first[v], last[v]


@compiled
def next_common(i: int, end_i: int, j: int, end_j: int, indices: Array) -> tuple[int, int]:
    """The first places from i and j on that hold the same vertex; (end_i, _) if there are none.
    REQUIRES: the part from i is not the longer one."""
    if end_j - j > SEARCHED * (end_i - i):
        while i < end_i:
            wanted = indices[i]
            j = first_not_below(indices, j, end_j, wanted)
            if j < end_j and indices[j] == wanted:
                return i, j
            i += 1
        return end_i, j
    while i < end_i and j < end_j:
        a, b = indices[i], indices[j]
        if a == b:
            return i, j
        i += a < b
        j += b < a
    return end_i, j
