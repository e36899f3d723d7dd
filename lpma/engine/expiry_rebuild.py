"""If a large part of a graph expires at once, its stores are rewritten without it.

Each row of a batch costs a sort and a walk. If more than SHARE of the slots expire, as a sample of
the times says, it is cheaper to copy what stays, in a few passes over the store. The rule applies
to batches of expiries alone that go beyond the front (expiry.py). With global_merge="never" no
store is rewritten.

All stores are built before the first is replaced, so that running out of memory changes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import array_module, to_host
from ..backend.values import SlotArrays
from ..batch.columns import Columns, Kind
from ..pma.counters import EXPIRED
from ..store.lpma import LPMA
from .stores import Stores

SHARE = 1 / 3


def is_cheaper(stores: Stores, columns: Columns) -> bool:
    """Whether to rewrite the stores for a batch that lets edges expire."""
    out = stores.out
    if columns.one_kind != Kind.EXPIRE or out.global_merge == "never" or not out.has_times:
        return False
    before = int(to_host(columns.time).max())
    if stores.expiry.reaches(before) or not out.num_slots:
        return False
    return bool((stores.expiry.sample(out) < before).mean() > SHARE)


def sweep(stores: Stores, columns: Columns) -> list[Any]:
    """Apply a batch for which `is_cheaper` holds. Returns the out-store's changes. Raises
    MemoryError; nothing has changed then."""
    before = int(to_host(columns.time).max())
    built = [_without(store, before, stores) for store, _ in stores.all]
    for (store, _), (segments, loops, _, expired, seconds) in zip(stores.all, built, strict=True):
        store.written = True
        stats, levels = store.counters, segments.m - store.segments.m
        stats.note_merge(store.slot_bytes * (store.num_slots + segments.num_slots))
        stats.note_levels(shrinks=max(0, -levels))
        stats.note_applied(len(columns), seconds)
        store.segments, store.num_loops, store.largest = segments, loops, None
        store.unchanged[EXPIRED] += expired
        if levels:
            store.hybrid.start_cycle()
    stores.expiry.swept(before, stores.out.num_slots)
    return [built[0][2]]


def _without(store: LPMA, before: int, stores: Stores) -> tuple[Any, int, Any, int, float]:
    """(the store without what is older, its loops, the changes, the edges gone, seconds)."""
    started, backend = store.clock(), store.backend
    (keys, weights, times), loops = backend.since(store.segments, before)
    changes, expired = None, store.num_slots - len(keys)
    if expired <= stores.most_changes(store):
        gone = array_module(keys).sort(backend.older(store.segments, before)[0])
        changes = gone, array_module(keys).zeros(len(gone), np.bool_)
    if not stores.directed:
        expired = (expired + loops) // 2
    size = store.sizing.size_rebuilt(len(keys), store.segments.size)
    stores.place.wait_for_caller()
    segments = store.build(SlotArrays(keys, weights, times), size)
    return segments, store.num_loops - loops, changes, expired, store.clock() - started
