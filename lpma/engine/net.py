"""What one batch changed: the edges and vertices that are not as they were before it.

Idea: a batch names the keys that it may change: those of its rows, the candidates that an expiry
is expanded to (expiry.py), and the edges that go with a removed vertex (removal.py). The state of
these keys is read before the batch and after it, each time by one look-up of all; what differs has
changed. So the cost goes by the batch, it is the same on every device, and nothing is forgotten,
however much one batch changes.

A vertex that was added by itself is a key like any other, its marker. Where a marker goes, a copy
of the graph that follows these changes has no way to remove it without the edges of its vertex: so
those of them that are there after the batch are listed, too, whether they changed or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from ..arrays import Array, array_module, to_host
from ..batch.columns import EXPIRE, REMOVE_VERTEX, Columns, Kind, edge_rows
from ..pma.keys import HALF, LOW, ends_of, keys_of, reversed_keys
from ..results import Edges
from . import queries
from .stores import Stores

MAX_LOOP = 2**32 - 2  # the vertex at whose loop the search for an absent edge begins


class Change(IntEnum):
    """How an edge or a vertex differs from what it was.

    >>> lpma.Change.REMOVED
    <Change.REMOVED: 1>
    """

    INSERTED = 0
    REMOVED = 1
    VERTEX_ADDED = 2  # by itself: it stays without an edge
    VERTEX_REMOVED = 3
    CHANGED = 4  # its weight, its time, or both


@dataclass(frozen=True)
class NetChanges:
    """What the batch that led to `version` changed, on the host: first the vertices that were
    removed, then all else by rising (src, dst). An undirected edge is listed once, src <= dst.

    change   uint8[n]: each a `Change`
    src      uint32[n]: where the edge begins; the vertex
    dst      uint32[n]: where it ends; 0 of vertices
    weights  float32[n] or float64[n], that edges have now, 0 elsewhere; None: the graph has none
    times    int64[n]: likewise
    version  of the graph after the batch
    time     of the last update applied to it: `Graph.time`
    num_edges  after the batch
    absent   a vertex without an edge to itself

    >>> g, watch = lpma.Graph(device="cpu"), lpma.Watch()
    >>> g.insert([1, 2], [2, 3], time=5)
    >>> batch = lpma.Batch()
    >>> batch.delete(1, 2, time=6)
    >>> batch.insert(2, 3, time=7)
    >>> _ = g.apply(batch, watch)
    >>> found = watch.changes
    >>> found.change.tolist(), found.src.tolist(), found.weights.tolist(), found.times.tolist()
    ([1, 4], [1, 2], [0.0, 2.0], [0, 7])
    """

    change: Array
    src: Array
    dst: Array
    weights: Array | None
    times: Array | None
    version: int
    time: int
    num_edges: int
    absent: int

    def __len__(self) -> int:
        return len(self.change)


class Watch:
    """Sees one batch applied, as `Graph.apply` takes it: then `changes` are those of the batch.

    >>> watch = lpma.Watch()
    >>> _ = lpma.Graph(device="cpu").apply(lpma.Batch.from_columns(lpma.Kind.INSERT, 1, 2), watch)
    >>> watch.changes.src, watch.changes.dst
    (array([1], dtype=uint32), array([2], dtype=uint32))
    """

    changes: NetChanges

    def __init__(self) -> None:
        self._keys = np.empty(0, np.uint64)
        self._removed = self._keys  # vertices, whose edges went with them
        self._before: Edges | None = None

    def look(self, stores: Stores, columns: Columns, implied: Array | None = None) -> None:
        """Note the state of all that a batch may change. implied: the keys of edges that go with
        vertices. REQUIRES: nothing of it is applied, and its expiries are expanded."""
        stores.finish_pending()
        self._keys, self._removed = _named_keys(columns, implied, stores.directed)
        self._before = _states(stores, self._keys)

    def finish(self, stores: Stores) -> None:
        """Note what has changed since. REQUIRES: the batch is counted."""
        stores.finish_pending()
        keys, absent = self._keys, MAX_LOOP
        while True:
            loop = keys_of(np.array([absent]), np.array([absent]))
            now = _states(stores, np.concatenate([keys, loop]))
            if not now.found[-1]:
                break
            absent -= 1
        now = now.rows(0, len(keys))
        change, which = _compared(keys, self._before, now, self._removed)
        src, dst = ends_of(keys[which])
        weights, times = (None if c is None else c[which] for c in (now.weights, now.times))
        of_vertex = (change == Change.VERTEX_ADDED) | (change == Change.VERTEX_REMOVED)
        dst[of_vertex] = 0
        if weights is not None:
            weights[of_vertex] = 0
        self.changes = NetChanges(
            change, src, dst, weights, times, stores.version, stores.time, stores.num_edges, absent
        )


def _named_keys(columns: Columns, implied: Array | None, directed: bool) -> tuple[Array, Array]:
    """(the keys that a batch may change, rising, each once; the vertices that it removes)."""
    kind, src, dst = columns.kind, to_host(columns.src), to_host(columns.dst)
    removed = np.empty(0, np.uint32)
    if columns.edges_only and columns.one_kind is not None:
        keys = keys_of(src, dst)
    else:
        of_edges = edge_rows(kind) | (kind == EXPIRE)
        keys = keys_of(src[of_edges], dst[of_edges])
    if not directed:
        keys = np.minimum(keys, reversed_keys(keys))
    if not columns.edges_only:
        removed = np.unique(src[kind == REMOVE_VERTEX])
        of_vertices = (kind == Kind.ADD_VERTEX) | (kind == REMOVE_VERTEX)
        keys = np.concatenate([keys, keys_of(src[of_vertices], LOW)])
    if implied is not None and len(implied):
        gone = to_host(implied)
        keys = np.concatenate([keys, gone if directed else np.minimum(gone, reversed_keys(gone))])
    keys.sort()
    once = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=once[1:])
    return keys[once], removed


def _states(stores: Stores, keys: Array) -> Edges:
    """Of each key whether it is there, with its weight and its time; on the host."""
    xp = array_module(stores.out.segments.counts)
    src, dst = ends_of(xp.asarray(keys))
    return queries.edges(stores.out, None, src, dst, None).with_columns(to_host)


def _compared(keys: Array, was: Edges | None, now: Edges, removed: Array) -> tuple[Array, Array]:
    """(how keys differ, uint8[n]; which of them do, markers that are gone first)."""
    assert was is not None, "look comes first"
    differs = was.found != now.found
    both = was.found & now.found
    is_marker = (keys & LOW) == LOW
    values = np.zeros(len(keys), np.bool_)
    for before, after in ((was.weights, now.weights), (was.times, now.times)):
        if before is not None and after is not None:
            values |= before != after
    values &= both & ~is_marker
    gone = is_marker & was.found & ~now.found
    if gone.any():
        src, dst = ends_of(keys)
        vertices = (keys[gone] >> HALF).astype(np.uint32)
        values |= now.found & ~is_marker & (np.isin(src, vertices) | np.isin(dst, vertices))
    change = np.where(now.found, np.uint8(Change.INSERTED), np.uint8(Change.REMOVED))
    change[values & was.found] = Change.CHANGED
    change[is_marker & now.found] = Change.VERTEX_ADDED
    change[gone] = Change.VERTEX_REMOVED
    rest = (differs | values) & ~gone
    which = np.concatenate([np.flatnonzero(gone), np.flatnonzero(rest)])
    return change[which], which
