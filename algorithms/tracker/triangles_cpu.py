"""Triangles that have one of the listed edges, on the CPU: see `triangles`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled
from lpma.cpu.search import first_not_below
from lpma.cpu.threads import cuts, run_all

from ..views.simple import View
from .figure import Change

Array = npt.NDArray[Any]

PIECE = 1 << 6  # entries of the list in a thread's turn
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


def difference(change: Change) -> int:
    """How many more triangles there are after than before."""
    won = _count_touching(change.after, change.inserted)
    return won - _count_touching(change.before, change.deleted)


def _count_touching(rows: View, edges: Array) -> int:
    """How many triangles of the rows have an edge of the list: uint64, as Change has them, all
    of them in the rows."""
    if not len(edges):
        return 0
    sources = (edges >> HALF).astype(np.uint32)
    pieces = cuts(len(edges), PIECE, per_thread=64)
    return int(
        sum(run_all(_count, [(*cut, edges, sources, rows.indptr, rows.indices) for cut in pieces]))
    )


@compiled
def _count(
    first: int, last: int, edges: Array, sources: Array, indptr: Array, indices: Array
) -> np.int64:
    total = np.int64(0)
    for i in range(first, last):
        u, v = np.int64(edges[i] >> HALF), np.int64(edges[i] & LOW)
        if u > v:
            continue
        listed_u = edges[_first(sources, u) : _first(sources, u + 1)]
        listed_v = edges[_first(sources, v) : _first(sources, v + 1)]
        a, b = indices[indptr[u] : indptr[u + 1]], indices[indptr[v] : indptr[v + 1]]
        if len(a) > len(b):
            a, b = b, a
        at = 0
        for w in a:
            at = gallop(b, at, w)
            if at == len(b):
                break
            if b[at] == w and not (
                _is_less(listed_u, u, np.int64(w), edges[i])
                or _is_less(listed_v, v, np.int64(w), edges[i])
            ):
                total += 1
    return total


@compiled
def _first(sources: Array, u: int) -> Any:
    """The first entry of the list whose source is u or more."""
    return np.searchsorted(sources, u)


@compiled
def gallop(row: Array, at: int, w: np.uint32) -> int:
    """The first place of the row from `at` on whose entry is w or more."""
    step = 1
    low = at
    while at < len(row) and row[at] < w:
        low = at + 1
        at += step
        step += step
    return first_not_below(row, low, min(at, len(row)), w)


@compiled
def _is_less(listed: Array, u: int, w: int, edge: np.uint64) -> Any:
    """Whether u, w is listed, by u's part of the list, and before `edge` in the order of
    (smaller end, larger end)."""
    ends = np.uint64(min(u, w)) << HALF | np.uint64(max(u, w))
    if ends > edge or len(listed) < 2:  # the edge itself is listed
        return False
    key = np.uint64(u) << HALF | np.uint64(w)
    at = np.searchsorted(listed, key)
    return at < len(listed) and listed[at] == key
