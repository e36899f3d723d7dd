"""Removing a vertex: which edges are deleted with it, as deletions at its place in the batch.

These are the edges from or to the vertex that exist at that place: edges stored before the batch,
and edges that the batch has appended by then. Deleting an absent edge does no harm, so candidates
suffice. A candidate (u, v), present since some place, is deleted at the next removal of u and at
the next removal of v; what a later one deletes is a candidate of its own.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, distinct, row_numbers, to_host
from ..batch.columns import Columns, Kind, weighted_rows
from ..pma.keys import HALF, LOW, keys_of
from ..store.lpma import LPMA


def incident_deletions(
    columns: Columns, out: LPMA, into: LPMA | None, directed: bool
) -> tuple[Array, Array] | None:
    """(key uint64, place uint32), each [n], of the deletions that removals imply, by ascending
    place; None if there is no removal. Reads the stores as they are before the batch."""
    if columns.names_its_keys:
        return None
    removes = columns.kind == Kind.REMOVE_VERTEX
    if not removes.any():
        return None
    removals = np.flatnonzero(removes)
    events = np.sort(keys_of(columns.src[removals], removals))  # vertex << 32 | place
    removed = distinct(columns.src[removals])
    stored_src, stored_dst = _stored(removed, out, into, directed)
    appends = np.flatnonzero(weighted_rows(columns.kind))
    appends = appends[
        np.isin(columns.src[appends], removed) | np.isin(columns.dst[appends], removed)
    ]
    src = np.concatenate([stored_src, columns.src[appends]])
    dst = np.concatenate([stored_dst, columns.dst[appends]])
    since = np.concatenate([np.zeros(len(stored_src), np.int64), appends])
    rows, places = [], []
    for ends in (src, dst):
        next_event = np.searchsorted(events, keys_of(ends, since))
        known = next_event < len(events)
        event = events[np.where(known, next_event, 0)]
        known &= (event >> HALF) == ends
        rows.append(np.flatnonzero(known))
        places.append((event & LOW).astype(np.int64)[known])
    row = np.concatenate(rows)
    return each_once(keys_of(src[row], dst[row]), np.concatenate(places).astype(np.uint32))


def each_once(keys: Array, places: Array) -> tuple[Array, Array]:
    """The different ones of these deletions, by ascending place and key."""
    order = np.lexsort((keys, places))
    keys, places = keys[order], places[order]
    once = np.ones(len(keys), np.bool_)
    once[1:] = (keys[1:] != keys[:-1]) | (places[1:] != places[:-1])
    return keys[once], places[once]


def _stored(removed: Array, out: LPMA, into: LPMA | None, directed: bool) -> tuple[Array, Array]:
    """(src, dst), on the host, of the stored edges from or to rising vertices `removed`; an
    undirected edge starts at the end that is removed."""
    src, dst = _neighbors(out, removed)
    if not directed:
        return src, dst
    if into is not None:
        which, ids = _neighbors(into, removed)
    else:
        found = out.backend.scan_targets(out.segments, removed)
        hit, ids = map(to_host, found)
        which = removed[hit]
    return np.concatenate([src, ids]), np.concatenate([dst, which])


def _neighbors(store: LPMA, vertices: Array) -> tuple[Array, Array]:
    """(vertex, neighbour) of all neighbours of `vertices`, on the host."""
    found = store.backend.neighbors(store.segments, None, vertices, None, False)
    indptr, ids = map(to_host, found[:2])
    return vertices[row_numbers(indptr, len(ids))], ids
