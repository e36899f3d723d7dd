"""Butterflies that have one of the listed edges, on the CPU: see `butterflies`.

The row of one end is marked in a table, and the rows of the other end's neighbours are looked up
there: a row of some dozens of entries is read in the time of one or two searches. Only in a row
that is much longer than the marked one, that one's entries are searched for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled
from lpma.cpu.threads import cuts, run_all

from ..views.simple import View
from .figure import HALF, LOW, Change
from .triangles_cpu import gallop

Array = npt.NDArray[Any]

PIECE = 1 << 5  # entries of the list in a thread's turn
MUCH_LONGER = 16


def difference(change: Change) -> int:
    """How many more butterflies there are after than before."""
    won = _count_touching(change.after, change.inserted)
    return won - _count_touching(change.before, change.deleted)


def _count_touching(rows: View, edges: Array) -> int:
    """How many butterflies of the rows have an edge of the list: uint64, as Change has them, all
    of them in the rows."""
    sources = (edges >> HALF).astype(np.uint32)
    pieces = cuts(len(edges), PIECE, per_thread=8) if len(edges) else []
    return int(
        sum(run_all(_count, [(*cut, edges, sources, rows.indptr, rows.indices) for cut in pieces]))
    )


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
        listed_u, listed_v = _listed(edges, sources, u), _listed(edges, sources, v)
        row = indices[indptr[u] : indptr[u + 1]]
        for entry in row:
            is_marked[entry] = True
        is_marked[v] = False
        for entry in indices[indptr[v] : indptr[v + 1]]:
            w = np.int64(entry)
            if w == u or _is_less(listed_v, v, w, edges[i]):
                continue
            listed_w, other = _listed(edges, sources, w), indices[indptr[w] : indptr[w + 1]]
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
    """The common neighbours of u and w, marked and in w's row, whose edges are not listed before
    `edge`."""
    found = 0
    if len(listed_u) == 1 and len(listed_w) == 0:  # u's one is the edge itself
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
    """The same, of the entries of u's row apart from v."""
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
    return not (_is_less(listed_u, u, x, edge) or _is_less(listed_w, w, x, edge))


@compiled
def _listed(edges: Array, sources: Array, u: int) -> Array:
    """The entries of the list whose source is u."""
    first = np.searchsorted(sources, u)
    last = first
    while last < len(sources) and sources[last] == u:
        last += 1
    return edges[first:last]


@compiled
def _is_less(listed: Array, u: int, w: int, edge: np.uint64) -> Any:
    """Whether u, w is listed, by u's part of the list, and before `edge` in the order of
    (smaller end, larger end)."""
    if len(listed) == 0 or np.uint64(min(u, w)) << HALF | np.uint64(max(u, w)) >= edge:
        return False
    key = np.uint64(u) << HALF | np.uint64(w)
    at = np.searchsorted(listed, key)
    return at < len(listed) and listed[at] == key
