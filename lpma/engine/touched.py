"""The edges that batches touched since a version: what `Graph.touched` answers from.

This avoids passes over the whole graph: callers that follow the graph ask after each small batch.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, all_of, array_module, finish, on_device
from ..pma.keys import ends_of
from ..results import Changes, TouchedEdges
from ..store.history import joined, newest
from . import queries
from .stores import Stores


def net_changes(stores: Stores, since: int) -> Changes | None:
    """As `Graph.changes`, by ids. The caller holds the graph's lock."""
    stores.out.backend.wait()
    return stores.history.net(since, stores.directed)


def touched(stores: Stores, since: int) -> TouchedEdges | None:
    """As `Graph.touched`. The caller holds the graph's lock."""
    out = stores.out
    out.backend.wait()
    batches = stores.history.since(since)
    if batches is None:
        return None
    on_a_device = on_device(out.segments.counts)
    keys, there = (_of_device if on_a_device else _of_host)(stores, batches)
    finish(keys)  # the history may drop what was read, and the store reuse its memory
    return TouchedEdges(keys, there, stores.version, stores.largest_vertex() + 1)


def _of_device(stores: Stores, batches: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """The keys that batches touched, perhaps repeated, and whether each is there now. In few steps,
    none of which the host waits for: so all are looked for, whether anything was deleted or not."""
    xp = array_module(stores.out.segments.counts)
    keys = xp.concatenate([xp.empty(0, np.uint64), *[xp.asarray(keys) for keys, _ in batches]])
    src, dst = ends_of(keys)
    if len(batches) == 1 and on_device(batches[0][0]):
        there = batches[0][1].copy()  # of one batch, which lists each key once
    else:
        there = queries.edges(stores.out, None, src, dst, None).found
    if stores.directed:  # an edge that went may still be there the other way
        there |= queries.edges(stores.out, None, dst, src, None).found
    return keys, there


def _of_host(stores: Stores, batches: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """The same on the host; unless all were inserted, each key is listed once."""
    keys, there = joined(batches)
    if not all_of(there):  # else each was inserted, and none deleted
        keys, there = newest(keys, there)
        if stores.directed:  # an edge that went may still be there the other way
            gone = np.flatnonzero(~there)
            src, dst = ends_of(keys[gone])
            there[gone] = queries.edges(stores.out, None, dst, src, None).found
    return keys, there
