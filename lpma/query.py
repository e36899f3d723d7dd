"""Queries over the stores of a graph: edges, neighbours, hops, degrees, membership.

Every query takes the places (`limits`) that it is asked at: inside a mixed batch it sees exactly
the operations before its place. Outside one `batch` is None, and so may the limits be: queries
see everything. Queries of one kind are answered together. Hops run as rounds of successor
queries, the rounds of all queries together (paper, Section VI-A), on the device that the store
is on: nothing but the sizes of answers comes to the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .arrays import array_module, row_numbers, to_host
from .batch import Edges, Neighbors
from .store import LPMA

Array = npt.NDArray[Any]
Limits = Array | None  # None: queries see everything

HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)


def edges(store: LPMA, batch: Any, src: Array, dst: Array, limits: Limits) -> Edges:
    """Edge queries (src[i], dst[i]): uint32[q] each."""
    return Edges(*store.backend.find_edges(store.segments, batch, src, dst, limits))


def neighbors(store: LPMA, batch: Any, vertices: Array, limits: Limits) -> Neighbors:
    """The successors of uint32[q] vertices (in an in-neighbour store: their predecessors)."""
    return Neighbors(*store.backend.neighbors(store.segments, batch, vertices, limits, True))


def degrees(store: LPMA, batch: Any, vertices: Array, limits: Limits) -> Array:
    """int64[q]: how many successors each vertex has."""
    return store.backend.count_neighbors(store.segments, batch, vertices, limits)


def hops(store: LPMA, batch: Any, start: Array, steps: Array, limits: Limits) -> Neighbors:
    """Vertices within 1 … steps[i] steps of start[i], that one itself only if reached again."""
    xp = array_module(store.segments.counts)
    rounds = int(to_host(steps).max(initial=0))
    start, steps = xp.asarray(start), xp.asarray(steps)
    limits = None if limits is None else xp.asarray(limits)
    reached = xp.empty(0, np.uint64)  # query << 32 | vertex, rising
    frontier = (xp.arange(len(start), dtype=np.uint64) << HALF) | start
    for step in range(rounds):
        query = (frontier >> HALF).astype(np.int64)
        going = steps[query] > step
        frontier, query = frontier[going], query[going]
        if not len(frontier):
            break
        indptr, ids, _, _ = store.backend.neighbors(
            store.segments, batch, (frontier & LOW).astype(np.uint32),
            None if limits is None else limits[query], False,
        )  # fmt: skip
        sources = row_numbers(indptr, len(ids))
        next_to = distinct(query[sources].astype(np.uint64) << HALF | ids)
        if len(reached):
            at = xp.searchsorted(reached, next_to)
            at[at == len(reached)] = 0
            next_to = next_to[reached[at] != next_to]
        reached = xp.sort(xp.concatenate([reached, next_to]), kind="stable")
        frontier = next_to
    ends = xp.arange(len(start) + 1, dtype=np.uint64) << HALF
    indptr = xp.searchsorted(reached, ends).astype(np.int64)
    return Neighbors(indptr, (reached & LOW).astype(np.uint32))


def present_vertices(
    out: LPMA,
    into: LPMA | None,
    directed: bool,
    batch: Any,
    vertices: Array,
    limits: Limits,
) -> Array:
    """bool[q]: whether a vertex has a marker, an out-edge or an in-edge. Without an in-neighbour
    store, in-edges of those that have neither are found by a scan."""
    xp = array_module(out.segments.counts)
    vertices = xp.asarray(vertices)
    limits = None if limits is None else xp.asarray(limits)
    marker = xp.full(len(vertices), LOW, np.uint32)
    found, _, _ = out.backend.find_edges(out.segments, batch, vertices, marker, limits)
    found |= degrees(out, batch, vertices, limits) > 0
    rest = xp.flatnonzero(~found)
    if not directed or not len(rest):
        return found
    if into is None:
        rest = rest[xp.argsort(vertices[rest], kind="stable")]
    targets, limits = vertices[rest], None if limits is None else limits[rest]
    if into is not None:
        found[rest] = degrees(into, batch, targets, limits) > 0
    else:
        found[rest] = out.backend.has_in_edges(out.segments, batch, targets, limits)
    return found


def ends_of(keys: Array) -> tuple[Array, Array]:
    """(src, dst), uint32, of uint64 keys."""
    return (keys >> HALF).astype(np.uint32), (keys & LOW).astype(np.uint32)


def distinct(values: Array) -> Array:
    """The distinct values, rising. Sort and mask: `np.unique` is many times slower here."""
    xp = array_module(values)
    values = xp.sort(values, kind="stable")
    first = xp.ones(len(values), np.bool_)
    first[1:] = values[1:] != values[:-1]
    return values[first]
