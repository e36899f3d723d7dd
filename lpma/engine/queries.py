"""Queries over the stores of a graph: edges, neighbours, hops, degrees, membership.

Queries of one kind are answered together. Inside a mixed batch, `staged` is the batch as the
backend holds it and `limits` are the queries' places in it: each sees exactly the operations before
its place. Outside a batch both are None, and queries see everything.

Hops run as rounds of successor queries, each round for all queries together (paper, Section VI-A),
on the store's device, unless the backend goes all rounds by itself (backend/protocol.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array, array_module, distinct, row_numbers, to_host
from ..backend.degrees import degrees_of
from ..backend.values import Implied
from ..batch.columns import Columns, Kind, edge_rows
from ..pma.keys import HALF, LOW, ends_of
from ..results import Edges, Neighbors
from ..store.lpma import LPMA
from .stores import Stores

Limits = Array | None  # None: queries see everything


class MixedBatch(NamedTuple):
    """A batch that lies beside the stores while its queries are answered."""

    staged: Any
    columns: Columns
    implied: Implied | None  # deletions in the out-store, by place


def edges(
    store: LPMA, staged: Any, src: Array, dst: Array, limits: Limits, unseen: bool = False
) -> Edges:
    """Edges (src[i], dst[i]); src, dst: uint32[q]. unseen: a caller's, not looked at where they lie
    on a device: the backend raises BatchError if one is no id."""
    return Edges(*store.backend.find_edges(store.segments, staged, src, dst, limits, unseen))


def neighbors(store: LPMA, staged: Any, vertices: Array, limits: Limits) -> Neighbors:
    """The successors of uint32[q] vertices (in an in-neighbour store: their predecessors)."""
    return Neighbors(*store.backend.neighbors(store.segments, staged, vertices, limits, True))


def neighbors_from(store: LPMA, vertex: int, first: int, most: int) -> Neighbors:
    """The successors of a vertex from the id `first` on, at most `most`."""
    ids, *columns = store.backend.neighbors_from(store.segments, vertex, first, most)
    indptr = array_module(ids).array([0, len(ids)], np.int64)
    return Neighbors(indptr, ids, *columns)


def degrees(
    store: LPMA, staged: Any, vertices: Array, limits: Limits, unseen: bool = False
) -> Array:
    """int64[q]: how many successors each vertex has. unseen: as for `edges`."""
    return store.backend.count_neighbors(store.segments, staged, vertices, limits, unseen)


def hops(store: LPMA, staged: Any, start: Array, steps: Array, limits: Limits) -> Neighbors:
    """The vertices within 1 … steps[i] steps of start[i], itself only if it is reached again.
    start: uint32[q]; steps: int64[q]."""
    if len(start):
        reached = store.backend.reach(
            store.segments, staged, start, to_host(steps), limits, store.largest_vertex
        )
        if reached is not None:
            return Neighbors(*reached)
    return _hops_by_pairs(store, staged, start, steps, limits)


def _hops_by_pairs(
    store: LPMA, staged: Any, start: Array, steps: Array, limits: Limits
) -> Neighbors:
    """By sorted pairs (query, vertex), whatever the ids are, and inside a batch."""
    xp = array_module(store.segments.counts)
    rounds = int(to_host(steps).max(initial=0))
    start, steps = xp.asarray(start), xp.asarray(steps)
    limits = None if limits is None else xp.asarray(limits)
    reached = xp.empty(0, np.uint64)  # query << 32 | vertex, ascending
    frontier = (xp.arange(len(start), dtype=np.uint64) << HALF) | start
    for step in range(rounds):
        query = (frontier >> HALF).astype(np.int64)
        going = steps[query] > step
        frontier, query = frontier[going], query[going]
        if not len(frontier):
            break
        indptr, ids, _, _ = store.backend.neighbors(
            store.segments, staged, (frontier & LOW).astype(np.uint32),
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
    stores: Stores, batch: MixedBatch | None, vertices: Array, limits: Limits, unseen: bool = False
) -> Array:
    """bool[q]: whether a vertex has a marker, an out-edge or an in-edge. Without an in-neighbour
    store, in-edges are found as in_degrees.py says, or `_have_in_edges`."""
    out, into, staged = stores.out, stores.into, None if batch is None else batch.staged
    xp = array_module(out.segments.counts)
    vertices = xp.asarray(vertices)
    limits = None if limits is None else xp.asarray(limits)
    found, _, _ = out.backend.find_edges(out.segments, staged, vertices, None, limits, unseen)
    found |= degrees(out, staged, vertices, limits) > 0
    rest = xp.flatnonzero(~found)
    if not stores.directed or not len(rest):
        return found
    if into is None:
        rest = rest[xp.argsort(vertices[rest], kind="stable")]
    targets, limits = vertices[rest], None if limits is None else limits[rest]
    if into is not None:
        found[rest] = degrees(into, staged, targets, limits) > 0
    elif batch is not None and limits is not None:
        found[rest] = _have_in_edges(stores, batch, targets, limits)
    elif stores.written:  # the version is still the one before
        found[rest] = out.backend.has_in_edges(out.segments, targets)
    else:
        found[rest] = stores.in_degrees.any_into(out, stores.history, stores.version, targets)
    return found


def _have_in_edges(stores: Stores, batch: MixedBatch, vertices: Array, limits: Array) -> Array:
    """bool[q]: whether an edge goes into each vertex before its limit, without an in-store. A
    vertex's in-degree there is the stored one and what the batch's operations on edges into it have
    added by then, which shows in whether each one's edge is there just before it and just after it.
    REQUIRES: the graph is directed, and nothing of the batch is applied."""
    out, xp = stores.out, array_module(vertices)
    targets, kind = distinct(vertices), batch.columns.kind
    # What the batch does to edges into these, in no order.
    places = xp.asarray(np.flatnonzero(edge_rows(kind) | (kind == Kind.EXPIRE)))
    src, dst = (xp.asarray(ids)[places] for ids in (batch.columns.src, batch.columns.dst))
    if batch.implied is not None:
        keys, implied = map(xp.asarray, batch.implied)
        src, dst = map(xp.concatenate, zip((src, dst), ends_of(keys), strict=True))
        places = xp.concatenate([places, implied.astype(np.int64)])
    hit = xp.isin(dst, targets)
    src, dst, places = src[hit], dst[hit], places[hit]
    before, after = (
        out.backend.find_edges(out.segments, batch.staged, src, dst, at)[0].astype(np.int64)
        for at in (places, places + 1)
    )
    grown = degrees_of(dst, places, after - before).since(vertices, limits)
    stored = stores.in_degrees.numbers_into(out, stores.history, stores.version, targets)
    found: Array = stored[xp.searchsorted(targets, vertices)] + grown > 0
    return found
