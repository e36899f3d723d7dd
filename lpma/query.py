"""Queries over the stores of a graph: edges, neighbours, hops, degrees, membership.

Every query takes the places (`limits`) that it is asked at: inside a mixed batch it sees exactly
the operations before its place; `batch` is None outside one, and the limits mean nothing.
Queries of one kind are answered together. Hops run as rounds of successor queries, the rounds
of all queries together (paper, Section VI-A).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .batch import Edges, Neighbors
from .store import LPMA

Array = npt.NDArray[Any]

HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)


def no_limits(n: int) -> Array:
    """Limits for queries that see everything."""
    return np.full(n, np.iinfo(np.int64).max)


def edges(store: LPMA, batch: Any, src: Array, dst: Array, limits: Array) -> Edges:
    """Edge queries (src[i], dst[i]): uint32[q] each."""
    keys = (src.astype(np.uint64) << HALF) | dst
    found, weight, time = store.backend.find_edges(store.segments, batch, keys, limits)
    return Edges(
        found,
        weight if store.segments.weights is not None else None,
        time if store.segments.times is not None else None,
    )


def neighbors(store: LPMA, batch: Any, vertices: Array, limits: Array) -> Neighbors:
    """The successors of uint32[q] vertices (in an in-neighbour store: their predecessors)."""
    found = store.backend.neighbors(store.segments, batch, vertices.astype(np.uint64), limits, True)
    return Neighbors(*found)


def degrees(store: LPMA, batch: Any, vertices: Array, limits: Array) -> Array:
    """int64[q]: how many successors each vertex has."""
    return store.backend.count_neighbors(store.segments, batch, vertices.astype(np.uint64), limits)


def hops(store: LPMA, batch: Any, start: Array, steps: Array, limits: Array) -> Neighbors:
    """Vertices within 1 … steps[i] steps of start[i], that one itself only if reached again."""
    reached = np.empty(0, np.uint64)  # query << 32 | vertex, rising
    frontier = (np.arange(len(start), dtype=np.uint64) << HALF) | start
    for step in range(int(steps.max(initial=0))):
        query = (frontier >> HALF).astype(np.int64)
        going = steps[query] > step
        frontier, query = frontier[going], query[going]
        if not len(frontier):
            break
        indptr, ids, _, _ = store.backend.neighbors(
            store.segments, batch, frontier & LOW, limits[query], False
        )
        next_to = np.repeat(query.astype(np.uint64), np.diff(indptr)) << HALF | ids
        next_to = distinct(next_to)
        if len(reached):
            at = np.searchsorted(reached, next_to)
            at[at == len(reached)] = 0
            next_to = next_to[reached[at] != next_to]
        reached = np.sort(np.concatenate([reached, next_to]), kind="stable")
        frontier = next_to
    counts = np.bincount((reached >> HALF).astype(np.int64), minlength=len(start))
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Neighbors(indptr, (reached & LOW).astype(np.uint32))


def present_vertices(
    out: LPMA,
    into: LPMA | None,
    directed: bool,
    batches: tuple[Any, Any],
    vertices: Array,
    limits: Array,
) -> Array:
    """bool[q]: whether a vertex has a marker, an out-edge or an in-edge. Without an in-neighbour
    store, in-edges of those that have neither are found by a scan. `batches` are the out-store's
    and the in-store's."""
    batch, in_batch = batches
    marker = np.full(len(vertices), LOW, np.uint64)
    keys = (vertices.astype(np.uint64) << HALF) | marker
    found, _, _ = out.backend.find_edges(out.segments, batch, keys, limits)
    found |= degrees(out, batch, vertices, limits) > 0
    rest = np.flatnonzero(~found)
    if not directed or not len(rest):
        return found
    if into is not None:
        found[rest] = degrees(into, in_batch, vertices[rest], limits[rest]) > 0
        return found
    rest = rest[np.argsort(vertices[rest], kind="stable")]
    targets = vertices[rest].astype(np.uint64)
    found[rest] = out.backend.has_in_edges(out.segments, batch, targets, limits[rest])
    return found


def distinct(values: Array) -> Array:
    """The distinct values, rising. Sort and mask: `np.unique` is many times slower here."""
    values = np.sort(values, kind="stable")
    if len(values) < 2:
        return values
    return values[np.concatenate([[True], values[1:] != values[:-1]])]
