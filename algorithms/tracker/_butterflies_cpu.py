"""Butterflies that have one of the listed edges, on the CPU: see `butterflies`."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from lpma.backend.numba.threads import cuts

from .._rows import together
from .._views import View
from ._triangles_cpu import gallop
from .figure import HALF, LOW, Change

Array = npt.NDArray[Any]

PIECE = 1 << 4  # entries of the list in a thread's turn


def difference(change: Change) -> int:
    """How many more butterflies there are after than before."""
    won = _count_touching(change.after, change.inserted)
    return won - _count_touching(change.before, change.deleted)


def _count_touching(rows: View, edges: Array) -> int:
    """How many butterflies of the rows have an edge of the list: uint64, as Change has them, all
    of them in the rows."""
    sources = (edges >> HALF).astype(np.uint32)
    pieces = cuts(len(edges), PIECE, per_thread=64) if len(edges) else []
    return int(
        sum(together(_count, [(*cut, edges, sources, rows.indptr, rows.indices) for cut in pieces]))
    )


@numba.njit(cache=True, nogil=True)
def _count(
    first: int, last: int, edges: Array, sources: Array, indptr: Array, indices: Array
) -> np.int64:
    total = np.int64(0)
    for i in range(first, last):
        u, v = np.int64(edges[i] >> HALF), np.int64(edges[i] & LOW)
        if u > v:
            continue
        if indptr[u + 1] - indptr[u] < indptr[v + 1] - indptr[v]:
            u, v = v, u
        listed_u, listed_v = _listed(edges, sources, u), _listed(edges, sources, v)
        row = indices[indptr[u] : indptr[u + 1]]
        for entry in indices[indptr[v] : indptr[v + 1]]:
            w = np.int64(entry)
            if w != u and not _is_less(listed_v, v, w, edges[i]):
                listed_w = _listed(edges, sources, w)
                other = indices[indptr[w] : indptr[w + 1]]
                total += _count_common(row, other, u, v, w, listed_u, listed_w, edges[i])
    return total


@numba.njit(cache=True, nogil=True)
def _count_common(
    row: Array, other: Array, u: int, v: int, w: int, listed_u: Array, listed_w: Array,
    edge: np.uint64,
) -> int:  # fmt: skip
    """The common neighbours of u and w, apart from v, whose edges are not listed before `edge`."""
    a, b = (other, row) if len(other) < len(row) else (row, other)
    found = 0
    at = 0
    for entry in a:
        at = gallop(b, at, entry)
        if at == len(b):
            break
        x = np.int64(entry)
        if b[at] == entry and x != v:
            found += not (_is_less(listed_u, u, x, edge) or _is_less(listed_w, w, x, edge))
    return found


@numba.njit(cache=True, nogil=True)
def _listed(edges: Array, sources: Array, u: int) -> Array:
    """The entries of the list whose source is u."""
    first = np.searchsorted(sources, u)
    last = first
    while last < len(sources) and sources[last] == u:
        last += 1
    return edges[first:last]


@numba.njit(cache=True, nogil=True)
def _is_less(listed: Array, u: int, w: int, edge: np.uint64) -> Any:
    """Whether u, w is listed, by u's part of the list, and before `edge` in the order of
    (smaller end, larger end)."""
    if len(listed) == 0 or np.uint64(min(u, w)) << HALF | np.uint64(max(u, w)) >= edge:
        return False
    key = np.uint64(u) << HALF | np.uint64(w)
    at = np.searchsorted(listed, key)
    return at < len(listed) and listed[at] == key
