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

from functools import cached_property

import numpy as np

from ..arrays import Array, to_host
from ..batch.columns import EXPIRE, REMOVE_VERTEX, Columns, Kind, edge_rows
from ..cpu import columns as host_columns
from ..cpu.columns import States
from ..pma.keys import LOW, ends_of, keys_of
from ..results import NetChanges
from .stores import Stores

MAX_LOOP = 2**32 - 2  # the vertex at whose loop the search for an absent edge begins


class Watch:
    """Sees one batch applied, as `Graph.apply` takes it: then `changes` are those of the batch.

    >>> watch = lpma.Watch()
    >>> _ = lpma.Graph(device="cpu").apply(lpma.Batch.from_columns(lpma.Kind.INSERT, 1, 2), watch)
    >>> watch.changes.src, watch.changes.dst
    (array([1], dtype=uint32), array([2], dtype=uint32))
    """

    def __init__(self) -> None:
        self._keys = np.empty(0, np.uint64)
        self._before: States | None = None
        self._now: States | None = None
        self._facts = (0, 0, 0, 0)  # the last fields of NetChanges

    def look(self, stores: Stores, columns: Columns, implied: Array | None = None) -> None:
        """Note the state of all that a batch may change. implied: the keys of edges that go with
        vertices. REQUIRES: nothing of it is applied, and its expiries are expanded."""
        stores.finish_pending()
        self._keys = _named_keys(columns, implied, stores.directed)
        self._before = _states(stores, self._keys)

    def finish(self, stores: Stores) -> None:
        """Note the state of all that now. REQUIRES: the batch is counted."""
        stores.finish_pending()
        keys, absent = self._keys, MAX_LOOP
        while True:
            loop = keys_of(np.array([absent]), np.array([absent]))
            found, *values = _states(stores, np.concatenate([keys, loop]))
            if not found[-1]:
                break
            absent -= 1
        weights, times = (None if c is None else c[:-1] for c in values)
        self._now = found[:-1], weights, times
        self._facts = stores.version, stores.time, stores.num_edges, absent

    @cached_property
    def changes(self) -> NetChanges:
        """What has changed, worked out when it is asked for first: by any thread, and while the
        graph goes on."""
        was, now = self._before, self._now
        assert was is not None, "look comes first"
        assert now is not None, "the batch comes first"
        return NetChanges(*host_columns.net_rows(self._keys, was, now), *self._facts)


def _named_keys(columns: Columns, implied: Array | None, directed: bool) -> Array:
    """The keys that a batch may change, rising, each once."""
    kind, src, dst = columns.kind, to_host(columns.src), to_host(columns.dst)
    if not columns.edges_only or columns.one_kind is None:
        of_edges = edge_rows(kind) | (kind == EXPIRE)
        of_vertices = (kind == Kind.ADD_VERTEX) | (kind == REMOVE_VERTEX)
        vertices, ends = src[of_vertices], (src[of_edges], dst[of_edges])
        markers = np.full(len(vertices), LOW, np.uint32)
        more = ends_of(np.empty(0, np.uint64) if implied is None else to_host(implied))
        src, dst = map(np.concatenate, zip(ends, (vertices, markers), more, strict=True))
    return host_columns.rising_keys(src, dst, directed)


def _states(stores: Stores, keys: Array) -> States:
    """Of each key whether it is there, with its weight and its time; on the host."""
    found, weights, times = stores.out.backend.find_keys(stores.out.segments, keys)
    return to_host(found), *(None if c is None else to_host(c) for c in (weights, times))
