"""Breadth-first search: the least number of edges from one vertex to every other.

Source: Beamer, Asanović and Patterson, "Direction-optimizing breadth-first search", SC 2012. A
level is found *top-down*, from the frontier along its edges, or *bottom-up*: each vertex not yet
reached looks among its in-neighbours for one of the frontier and stops at the first. Bottom-up
saves most edges of the wide levels in the middle of a search; it begins when the frontier has more
than 1/ALPHA of the edges not yet seen, and ends when the frontier shrinks below n/BETA. Narrow
levels, of which a road network has hundreds, are run in one compiled call by one thread.

hops[v] is −1 until v is reached, and written once more, with the level: threads may find v at the
same time, but all write the same. v may then stand in the next frontier once a thread, which costs
a second look at its row and changes nothing. A bottom-up reader compares with the former level, for
which neither −1 nor the level being written can be mistaken.

Edges are followed in their direction. Bottom-up needs the transpose: an undirected snapshot is its
own; a directed one keeps its transpose, built when first wanted; where nothing could keep it, all
levels are top-down, because transposing costs more than it saves one search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import device_of
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import SMALL, by_rows
from lpma.errors import BatchError
from lpma.snapshot import Snapshot

from ..views.directed import rows, transposed
from ..views.simple import View

Array = npt.NDArray[Any]

ALPHA = 15  # cuda/bfs.cu has the same two
BETA = 18


def bfs(s: Any, source: int | np.integer[Any]) -> Array:
    """The least number of edges on a path from `source`: int32[n]; 0 at itself, −1 unreached.

    s: a Snapshot, a scipy CSR matrix, or (indptr, indices), read with its directions. Raises
    `lpma.BatchError` on an s that is no graph, or has no such vertex: a source that is a row but no
    vertex (`Snapshot.present`), too."""
    view = rows(s)
    start = checked_source(source, view.num_vertices)
    if isinstance(s, Snapshot) and not _is_vertex(s, start):
        raise BatchError(f"source: there is no vertex {start} (no edge has it; nor was it added)")
    can_go_back = isinstance(s, Snapshot)
    if not view.on_device:
        return _search(view, (lambda: transposed(s)) if can_go_back else None, start)
    from .cuda import search

    with device_of(view.indptr):
        reverse = transposed(s) if can_go_back else view
        return search(view, reverse, can_go_back, start)


def _search(
    view: View, reverse: Callable[[], View] | None, start: int, narrow: int = SMALL
) -> Array:
    """The search on the CPU. `reverse` makes the transpose; None: go top-down only. Levels of at
    most `narrow` edges are run by one thread."""
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
            frontier = _top_down(view, hops, frontier, level)
        # The new frontier's edges are counted when it is expanded.


def checked_source(source: Any, n: int) -> int:
    """The vertex a search starts from. Raises BatchError unless it is one of 0 … n - 1."""
    whole = isinstance(source, int | np.integer) and not isinstance(source, bool)
    if not whole or not 0 <= source < n:
        known = f"a vertex from 0 to {n - 1}" if n else "no vertex is there"
        raise BatchError(f"source: {known}, not {source!r}")
    return int(source)


def _is_vertex(s: Snapshot, row: int) -> bool:
    """Whether a row is a vertex: with out-edges, as most have, it is without a look at others."""
    return int(s.indptr[row + 1]) > int(s.indptr[row]) or bool(s.present[row])


def _top_down(view: View, hops: Array, frontier: Array, level: int) -> Array:
    """The vertices of `level`, found along the edges of the frontier before it."""
    ends = np.zeros(len(frontier) + 1, np.int64)
    np.cumsum(view.indptr[frontier + np.uint32(1)] - view.indptr[frontier], out=ends[1:])
    found = by_rows(_expand, ends, ends, frontier, view.indptr, view.indices, hops, level)
    return np.concatenate(found)


def _bottom_up_levels(
    view: View, reverse: View, hops: Array, size: int, level: int
) -> tuple[int, int]:
    """Find levels bottom-up until one is narrow; return it, and the edges of all but it.

    size: vertices of `level`, from which it starts."""
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

    Returns the first that has many, or none; its level; its edges; and those expanded."""
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
    """What frontier[first:last] reaches anew: uint32[found]."""
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
    """Reach what in first … last - 1 has an in-neighbour on the level before; how many, and how
    many edges leave them."""
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
