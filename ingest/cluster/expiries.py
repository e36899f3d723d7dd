"""Expiries at a shard that reads several partitions: each at its own place, exactly.

EXPIRE stands in every partition, as REMOVE_VERTEX does (`removals.py`), and what is read from
partition p is to touch the edges (u, v) of the vertices u that p owns, and nothing else.

Idea: the batch's expiries are replaced by deletions of what they let expire. A candidate is stored
and older than an expiry's time, or was appended before it in the batch with such a time. It expires
unless the batch has appended it again since, with a later one: the last append before an expiry
tells an edge's time there. What is absent by then is deleted in vain, and counted as such.

A batch with expiries costs one pass over the store, and one over its appends for each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from lpma.batch import Columns, Kind
from lpma.keys import HALF, LOW, keys_of

from ..types import Array

OlderThan = Callable[[int], tuple[Array, Array]]  # the stored keys and times below a time
OwnedBy = Callable[[int, Array], Array]  # bool[n]: which of these vertices a partition owns


def without_expiries(columns: Columns, time: int, older: OlderThan, owned_by: OwnedBy) -> Columns:
    """The batch with deletions in place of its expiries, each of which says in `dst` from which
    partition it was read. time: of the graph, for deletions with no operation before them: an
    expiry has no stamp. REQUIRES: columns.expires, on the host."""
    assert columns.time is not None
    expires = columns.kind == Kind.EXPIRE
    rows = np.flatnonzero(expires)
    stored = older(int(columns.time[rows].max()))
    appends = np.flatnonzero(columns.kind == Kind.APPEND)
    keys = keys_of(columns.src[appends], columns.dst[appends])
    places = [np.flatnonzero(~expires)]
    src, dst = [columns.src[places[0]]], [columns.dst[places[0]]]
    for row in rows.tolist():
        n = int(np.searchsorted(appends, row))
        last = _last(keys[:n], columns.time[appends[:n]])
        found = _expired(int(columns.time[row]), stored, last)
        ends = (found >> HALF).astype(np.uint32)
        found = found[owned_by(int(columns.dst[row]), ends)]
        src.append((found >> HALF).astype(np.uint32))
        dst.append((found & LOW).astype(np.uint32))
        places.append(np.full(len(found), row))
    place = np.concatenate(places)
    order = np.argsort(place, kind="stable")
    place = place[order]
    kind = columns.kind[place]
    kind[kind == Kind.EXPIRE] = Kind.DELETE
    return replace(
        columns,
        kind=kind,
        src=np.concatenate(src)[order],
        dst=np.concatenate(dst)[order],
        weight=None if columns.weight is None else columns.weight[place],
        time=_stamps(columns.time, expires, time)[place],
    )


def _last(keys: Array, times: Array) -> tuple[Array, Array]:
    """(keys, rising; times) of the last append of each key."""
    found, first = np.unique(keys[::-1], return_index=True)
    return found, times[::-1][first]


def _expired(before: int, stored: tuple[Array, Array], last: tuple[Array, Array]) -> Array:
    """The keys of edges older than `before`, if they are there: uint64[n]."""
    keys, times = stored
    appended, appended_times = last
    keys = keys[times < before]
    return np.concatenate(
        [keys[~np.isin(keys, appended)], appended[appended_times < before]]
    )  # fmt: skip


def _stamps(times: Array, expires: Array, first: int) -> Array:
    """The times of a batch, an expiry with that of the operation before it."""
    before = np.maximum.accumulate(np.where(expires, -1, np.arange(len(times))))
    return np.where(before < 0, first, times[before])
