"""Expiries at a shard that reads several partitions: each at its own place, exactly.

EXPIRE stands in every partition, as REMOVE_VERTEX does (`removals.py`), and what is read from
partition p is to touch the edges (u, v) of the vertices u that p owns, and nothing else.

Idea: the batch's expiries are replaced by rows for each edge that they may let go, which the store
looks at when it comes to them (`Columns.expiry_expanded`): it knows the time that the edge has
there, and counts what expires. A candidate is stored and older than an expiry's time, or was
appended before it in the batch with such a time.

A batch with expiries costs one pass over the store, and one over its appends for each of them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lpma.batch.columns import Columns, Kind
from lpma.pma.keys import ends_of, keys_of

from ..types import Array

OlderThan = Callable[[int], tuple[Array, Array]]  # the stored keys and times below a time
OwnedBy = Callable[[int, Array], Array]  # bool[n]: which of these vertices a partition owns


def by_edges(columns: Columns, older: OlderThan, owned_by: OwnedBy) -> Columns:
    """The batch with expiries of one edge each in place of its own, each of which says in `dst`
    from which partition it was read. REQUIRES: columns.expires, on the host."""
    assert columns.time is not None
    expires = columns.kind == Kind.EXPIRE
    rows = np.flatnonzero(expires)
    stored, times = older(int(columns.time[rows].max()))
    appends = np.flatnonzero(columns.kind == Kind.INSERT)
    appended = keys_of(columns.src[appends], columns.dst[appends])
    places = [np.flatnonzero(~expires)]
    src, dst = [columns.src[places[0]]], [columns.dst[places[0]]]
    for row in rows.tolist():
        before, n = columns.time[row], int(np.searchsorted(appends, row))
        lately = appended[:n][columns.time[appends[:n]] < before]
        u, v = ends_of(np.unique(np.concatenate([stored[times < before], lately])))
        owned = owned_by(int(columns.dst[row]), u)
        src.append(u[owned])
        dst.append(v[owned])
        places.append(np.full(np.count_nonzero(owned), row))
    place = np.concatenate(places)
    order = np.argsort(place, kind="stable")
    place = place[order]
    ends = {"src": np.concatenate(src)[order], "dst": np.concatenate(dst)[order]}
    return columns.take(place).replace(**ends, expiry_expanded=True)
