"""Breadth-first search on the CPU: a compiled call for a small graph, else for levels and threads.

Levels are found top-down or bottom-up: see the package. Which of the two looks at fewer edges is
foretold by counts (`_pays`). Of the edges into vertices that are not reached, about edges/unseen
come from the frontier, if they are spread evenly: a vertex then looks at unseen/edges of its own
until it finds one, and at all of them if it has no more. Beamer's rule compares the frontier with
the edges unseen alone, and turns round in a graph of small degrees, where that costs more. In a
web, whose pages lead to their own site, edges are not spread evenly, and few vertices find the
frontier. So a bottom-up level that looks at more edges than leave its frontier is the last.

In a small graph (`pieces.is_small`) one thread runs the whole search. In a larger one, narrow
levels, of which a road network has hundreds, are run in one compiled call by one thread, and wide
ones are shared by threads.

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
NO_ROWS = np.empty(0, np.int64)
WayBack = Callable[[int], View | None]

BETA = 18
TURN = 1 << 12  # edges of a level below which looking for the better direction costs more
STEP = 8  # vertices passed over in the time of one edge that is looked at


def search(
    view: View, way_back: WayBack | None, start: int, narrow: int = SMALL, turn: int = TURN
) -> Array:
    """int32[n]: hops from `start`, −1 for a vertex that is not reached.

    way_back: gives the transpose, or None if it is not worth making yet, and is told how many edges
    were looked at for want of it; None: all levels are top-down. narrow: one thread runs the levels
    of at most this many edges; in a small graph, all. There, levels of at most `turn` are
    top-down."""
    if is_small(view.indptr):
        return _search_small(view, way_back, start, turn)
    n = view.num_vertices
    hops = np.full(n, -1, np.int32)
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
        reverse = None
        if way_back is not None:
            unreached = n - np.count_nonzero(hops >= 0)
            if _pays(edges, unseen, unreached, n):
                reverse = way_back(edges)
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


def _search_small(view: View, way_back: WayBack | None, start: int, turn: int) -> Array:
    """`search` in a small graph."""
    hops = np.full(view.num_vertices, -1, np.int32)
    reverse = None if way_back is None else way_back(0)
    back = (NO_ROWS, view.indices) if reverse is None else (reverse.indptr, reverse.indices)
    missed = _search_alone(view.indptr, view.indices, *back, hops, start, turn)
    if way_back is not None and missed:
        way_back(missed)
    return hops


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
def _search_alone(
    indptr: Array, indices: Array, from_indptr: Array, from_indices: Array, hops: Array,
    start: int, turn: int,
) -> np.int64:  # fmt: skip
    """The whole search, by one thread. from_…: the rows of the transpose; from_indptr may be empty,
    and all levels are then top-down. Returns the edges of levels that would not have been."""
    n = len(hops)
    queue = np.empty(n + 1, np.uint32)  # with an entry more, for what need not be written
    queue[0] = start
    hops[start] = level = 0
    first, last = 0, 1  # the frontier's part of the queue
    unseen = indptr[n]
    missed = np.int64(0)
    may_turn, has_reverse = True, len(from_indptr) > 0
    edges = indptr[start + 1] - indptr[start]
    while first < last:
        unseen -= edges
        level += 1
        turns = may_turn and edges > turn and _pays(edges, unseen, n - last, n)
        if turns and not has_reverse:
            missed += edges
        if turns and has_reverse:
            looked, end = np.int64(0), last
            for v in range(n):
                if hops[v] < 0:
                    e, stop = from_indptr[v], from_indptr[v + 1]
                    begin = e
                    while e < stop and hops[from_indices[e]] != level - 1:
                        e += 1
                    looked += e - begin
                    if e < stop:
                        hops[v] = level
                        queue[end] = v
                        end += 1
            may_turn = looked <= edges
        else:
            end = last
            for i in range(first, last):
                u = np.int64(queue[i])
                for e in range(indptr[u], indptr[u + 1]):
                    v = indices[e]
                    is_new = hops[v] < 0
                    queue[end] = v
                    end += is_new
                    if is_new:
                        hops[v] = level
        first, last = last, end
        edges = np.int64(0)
        for i in range(first, last):
            u = np.int64(queue[i])
            edges += indptr[u + 1] - indptr[u]
    return missed


@compiled
def _pays(edges: int, unseen: int, unreached: int, n: int) -> bool:
    """Whether finding the next level bottom-up is foretold to look at fewer edges. edges: that
    leave the frontier; unseen: that leave vertices not reached."""
    return edges > 0 and edges > n // STEP + min(unseen, unreached * (unseen / edges))


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
