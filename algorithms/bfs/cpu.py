"""Breadth-first search on the CPU: a compiled call per level and thread, or for many levels.

Narrow levels, of which a road network has hundreds, are run in one compiled call by one thread. A
wide level is shared by threads, in the direction that looks at fewer edges: see the package. In a
small graph (`pieces.is_small`) one thread runs every level, and a level is wide that is worth a
look for the other direction.

Whether bottom-up pays cannot be told beforehand: in a web, whose pages lead to their own site, few
vertices find the frontier, and all others look at their whole rows. So a bottom-up level that
looks at more edges than leave its frontier is the last of the search.

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
from lpma.cpu.pieces import SMALL, by_rows, is_small, pass_over

from ..views.simple import View

Array = npt.NDArray[Any]
WayBack = Callable[[int], View | None]

ALPHA = 15  # bfs.cu has the same two
BETA = 18
TURN = 1 << 12  # edges of a level below which looking for the better direction costs more
ENDLESS = 1 << 62


def search(
    view: View, way_back: WayBack | None, start: int, narrow: int = SMALL, turn: int = TURN
) -> Array:
    """int32[n]: hops from `start`, −1 for a vertex that is not reached.

    way_back: gives the transpose for a level of so many edges, or None if that is to be expanded
    top-down; None: all are. narrow: one thread runs the levels of at most this many edges, in a
    small graph all; there, levels of at most `turn` are not asked about."""
    hops = np.full(view.num_vertices, -1, np.int32)
    hops[start] = level = 0
    frontier = np.array([start], np.uint32)
    unseen = int(view.indptr[-1])  # edges of vertices not yet in a frontier
    one_thread = is_small(view.indptr)
    while True:
        if one_thread:
            narrow = ENDLESS if way_back is None else turn
        frontier, level, edges, expanded = _narrow_levels(
            view.indptr, view.indices, hops, frontier, level, narrow
        )
        unseen -= expanded + edges
        if len(frontier) == 0:
            return hops
        reverse = None
        if way_back is not None and edges > unseen // ALPHA:
            reverse = way_back(edges)
            if reverse is None and one_thread:
                way_back = None
                continue
        if reverse is not None:
            level, reached, pays = _bottom_up_levels(
                view, reverse, hops, len(frontier), edges, level
            )
            frontier = np.flatnonzero(hops == level).astype(np.uint32)
            unseen -= reached
            way_back = way_back if pays else None
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
    view: View, reverse: View, hops: Array, size: int, edges: int, level: int
) -> tuple[int, int, bool]:
    """Find levels bottom-up until one is narrow, or costs more than it saves. Returns it; the
    number of edges that leave the levels found before it; and whether they all paid.

    size, edges: of the vertices on `level`, from which the search goes on."""
    n, reached = view.num_vertices, 0
    rows = (reverse.indptr, reverse.indices, view.indptr, hops)
    while True:
        level += 1
        counts = pass_over(_look_back, reverse.indptr, *rows, level)
        found, leaving, looked = (sum(column) for column in zip(*counts, strict=True))
        pays = looked <= edges
        if not pays or (found <= size and found < max(1, n // BETA)):
            return level, reached, pays
        reached += leaving
        size, edges = found, leaving


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
) -> tuple[int, int, int]:
    """Reach the vertices of first … last - 1 that have an in-neighbour on the level before. Returns
    their number, how many edges leave them, and how many were looked at."""
    count = edges = looked = 0
    for u in range(first, last):
        if hops[u] < 0:
            begin, end = indptr[u], indptr[u + 1]
            e = begin
            while e < end and hops[indices[e]] != level - 1:
                e += 1
            looked += e - begin
            if e < end:
                hops[u] = level
                count += 1
                edges += out_indptr[u + 1] - out_indptr[u]
    return count, edges, looked
