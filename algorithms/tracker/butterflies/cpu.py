"""The butterflies that have one of the listed edges, counted on the CPU: see the package.

The row of one end is marked in a table, in which the rows of the other end's neighbours are looked
up: dozens of entries take as long as one or two binary searches. Only in a row much longer than the
marked one are the marked row's entries searched for instead.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.threads import cuts, run_all
from lpma.pma.keys import HALF, LOW

from ...arrays import Array
from ...views.simple import View
from ..listed_cpu import entries_of, gallop, is_before

PIECE = 1 << 5  # entries of the list that a thread takes at a time
MUCH_LONGER = 16  # times, for a row to be searched rather than read


def count_touching(rows: View, edges: Array) -> int:
    """The number of butterflies with an edge of the list. edges: uint64, as in Change.

    REQUIRES: all edges of the list are in the rows."""
    sources = (edges >> HALF).astype(np.uint32)
    pieces = cuts(len(edges), PIECE, per_thread=8) if len(edges) else []
    parts = run_all(_count, [(*cut, edges, sources, rows.indptr, rows.indices) for cut in pieces])
    return int(sum(parts))


@compiled
def _count(
    first: int, last: int, edges: Array, sources: Array, indptr: Array, indices: Array
) -> np.int64:
    total = np.int64(0)
    is_marked = np.zeros(len(indptr) - 1, np.bool_)
    for i in range(first, last):
        u, v = np.int64(edges[i] >> HALF), np.int64(edges[i] & LOW)
        if u > v:
            continue
        if indptr[u + 1] - indptr[u] < indptr[v + 1] - indptr[v]:
            u, v = v, u
        listed_u, listed_v = entries_of(edges, sources, u), entries_of(edges, sources, v)
        row = indices[indptr[u] : indptr[u + 1]]
        for entry in row:
            is_marked[entry] = True
        is_marked[v] = False
        for entry in indices[indptr[v] : indptr[v + 1]]:
            w = np.int64(entry)
            if w == u or is_before(listed_v, v, w, edges[i]):
                continue
            listed_w, other = entries_of(edges, sources, w), indices[indptr[w] : indptr[w + 1]]
            if len(other) > MUCH_LONGER * len(row):
                total += _search(row, other, u, v, w, listed_u, listed_w, edges[i])
            else:
                total += _look_up(other, is_marked, u, w, listed_u, listed_w, edges[i])
        for entry in row:
            is_marked[entry] = False
    return total


@compiled
def _look_up(
    other: Array, is_marked: Array, u: int, w: int, listed_u: Array, listed_w: Array,
    edge: np.uint64,
) -> int:  # fmt: skip
    """The number of common neighbours of u and w, which are marked and in w's row, without those
    whose edges to u or w are listed before `edge`."""
    found = 0
    if len(listed_u) == 1 and len(listed_w) == 0:  # only the edge itself is listed
        for x in other:
            found += is_marked[x]
        return found
    for x in other:
        if is_marked[x] and _counts_here(u, w, np.int64(x), listed_u, listed_w, edge):
            found += 1
    return found


@compiled
def _search(
    row: Array, other: Array, u: int, v: int, w: int, listed_u: Array, listed_w: Array,
    edge: np.uint64,
) -> int:  # fmt: skip
    """As `_look_up`, by searching for the entries of u's row, apart from v."""
    found = at = 0
    for x in row:
        at = gallop(other, at, x)
        if at == len(other):
            break
        if other[at] == x and x != v:
            found += _counts_here(u, w, np.int64(x), listed_u, listed_w, edge)
    return found


@compiled
def _counts_here(u: int, w: int, x: int, listed_u: Array, listed_w: Array, edge: np.uint64) -> bool:
    """Whether neither u, x nor w, x is listed before `edge`."""
    return not (is_before(listed_u, u, x, edge) or is_before(listed_w, w, x, edge))
