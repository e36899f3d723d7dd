"""Breadth-first search on the CPU: a compiled call per level and thread.

Narrow levels, of which a road network has hundreds, are run in one compiled call by one thread. A
wide level is shared by threads, in the direction that looks at fewer edges: see the package.

hops[v] is −1 until v is reached, and then written once per level, with the level: threads may find
v at the same time, but all write the same value. v may then stand in the next frontier once per
thread, which costs a second look at its row and changes nothing. A bottom-up reader compares with
the level before, which it cannot confuse with −1 or with the level being written.

Requires indptr int64[n+1] and indices uint32[m], C-contiguous.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import SMALL, by_rows

from ..views.simple import View

Array = npt.NDArray[Any]

ALPHA = 15  # bfs.cu has the same two
BETA = 18


def search(
    view: View, reverse: Callable[[], View] | None, start: int, narrow: int = SMALL
) -> Array:
    """int32[n]: hops from `start`, −1 for a vertex that is not reached.

    reverse: makes the transpose, if it is needed; None: go top-down only. narrow: one thread runs
    the levels of at most this many edges."""
    hops = np.full(view.num_vertices, -1, np.int32)
    hops[start] = level = 0
    frontier = np.array([start], np.uint32)
    unseen = int(view.indptr[-1])  # edges of vertices not yet in a frontier
    while True:
        frontier, level, edges, expanded = _narrow_levels(
            view.indptr, view.indices, hops, frontier, level, narrow
        )
        unseen -= expanded + edges
        if len(frontier) == 0:
            return hops
        if reverse is not None and edges > unseen // ALPHA:
            level, reached = _bottom_up_levels(view, reverse(), hops, len(frontier), level)
            frontier = np.flatnonzero(hops == level).astype(np.uint32)
            unseen -= reached
        else:
            level += 1
            frontier = top_down(view, hops, frontier, level)
        # The edges of the new frontier are counted when it is expanded.


def top_down(view: View, hops: Array, frontier: Array, level: int) -> Array:
    """The vertices of `level`, found along the edges of the frontier before it."""
    ends = np.zeros(len(frontier) + 1, np.int64)
    np.cumsum(view.indptr[frontier + np.uint32(1)] - view.indptr[frontier], out=ends[1:])
    found = by_rows(_expand, ends, ends, frontier, view.indptr, view.indices, hops, level)
    return np.concatenate(found)


def _bottom_up_levels(
    view: View, reverse: View, hops: Array, size: int, level: int
) -> tuple[int, int]:
    """Find levels bottom-up until one is narrow. Returns it, and the number of edges that leave the
    levels found before it.

    size: the number of vertices on `level`, from which the search goes on."""
    n, reached = view.num_vertices, 0
    while True:
        level += 1
        pieces = by_rows(
            _look_back, reverse.indptr, reverse.indptr, reverse.indices, view.indptr, hops, level
        )
        found = sum(piece[0] for piece in pieces)
        if found <= size and found < max(1, n // BETA):
            return level, reached
        reached += sum(piece[1] for piece in pieces)
        size = found


@compiled
def _narrow_levels(
    indptr: Array, indices: Array, hops: Array, frontier: Array, level: int, narrow: int
) -> tuple[Array, int, int, int]:
    """Expand frontiers while they have at most `narrow` edges.

    Returns the first frontier that has more, or an empty one; its level; the number of its edges;
    and the number of edges expanded."""
    expanded = 0
    while True:
        ends = np.zeros(len(frontier) + 1, np.int64)
        for i in range(len(frontier)):
            u = np.int64(frontier[i])
            ends[i + 1] = ends[i] + indptr[u + 1] - indptr[u]
        edges = ends[-1]
        if len(frontier) == 0 or edges > narrow:
            return frontier, level, edges, expanded
        expanded += edges
        level += 1
        frontier = _expand(0, len(frontier), ends, frontier, indptr, indices, hops, level)


@compiled
def _expand(
    first: int, last: int, ends: Array, frontier: Array, indptr: Array, indices: Array,
    hops: Array, level: int,
) -> Array:  # fmt: skip
    """uint32[found]: the vertices that frontier[first:last] reaches and that were not reached."""
    found = np.empty(min(ends[last] - ends[first], len(hops)), np.uint32)
    count = 0
    for i in range(first, last):
        u = np.int64(frontier[i])
        for e in range(indptr[u], indptr[u + 1]):
            v = indices[e]
            if hops[v] < 0:
                hops[v] = level
                found[count] = v
                count += 1
    return found[:count]


@compiled
def _look_back(
    first: int, last: int, indptr: Array, indices: Array, out_indptr: Array, hops: Array, level: int
) -> tuple[int, int]:
    """Reach the vertices of first … last - 1 that have an in-neighbour on the level before. Returns
    their number, and how many edges leave them."""
    count = edges = 0
    for u in range(first, last):
        if hops[u] < 0:
            for e in range(indptr[u], indptr[u + 1]):
                if hops[indices[e]] == level - 1:
                    hops[u] = level
                    count += 1
                    edges += out_indptr[u + 1] - out_indptr[u]
                    break
    return count, edges
