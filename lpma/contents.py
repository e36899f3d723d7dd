"""The whole contents of a graph as a snapshot, and the vertices among them.

The caller holds the graph's lock; what is returned is a copy.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import follow, presence, states
from .arrays import array_module, to_host
from .csr import TAKER
from .density import by_level
from .errors import SnapshotTooLarge
from .keys import HALF, LOW
from .late import Late, Taker, leave_out
from .snapshot import Snapshot
from .store import LPMA
from .stores import Stores

if TYPE_CHECKING:
    from .names import Names

Array = npt.NDArray[Any]

_LATE: Any = None  # in place of rows that are left out


def snapshot(
    stores: Stores, names: Names | None, compact: bool, max_bytes: int, read: Callable[..., Any]
) -> Snapshot:
    """See Graph.snapshot. read: calls a function under the graph's lock."""
    store = stores.out
    if compact:
        return _compact(store, names, _facts(stores))
    n = store.largest_vertex() + 1
    if 8 * (n + 1) > max_bytes:
        raise SnapshotTooLarge(
            f"indptr for ids up to {n - 1} takes {8 * (n + 1):,} bytes, more than {max_bytes:,}: "
            "ask for snapshot(compact=True), which renumbers the vertices, or raise max_bytes"
        )
    stored = store.num_slots - store.num_markers
    shape = (store.segments, n, stored, store.num_markers > 0)
    backend: Any = store.backend
    is_late = hasattr(backend, "csr_rows")  # it CopiesLate; to ask for that takes microseconds
    views: dict[str, Any] = {}
    arrays: tuple[Any, Any, Any, Any] = _LATE, _LATE, None, None
    # Before anything else: a device is at work on rows while the rest is put together.
    if not is_late:
        arrays = backend.csr(*shape)
    elif hasattr(backend, "rows_with"):
        views[states.KEY] = follow.rows(stores, n, stored, lambda: backend.csr_rows(*shape))
    else:
        arrays = *backend.csr_rows(*shape), None, None
    frozen = None if names is None else names.frozen(rows=n)
    facts = _facts(stores)
    made = Snapshot._trusted(*arrays, **facts, added=_added(store), names=frozen, views=views)
    if views:
        states.leave_out(made)
    if not is_late:
        return made
    taker = backend.taker()
    if taker is not None:
        vars(made)[TAKER] = taker
    if stores.weight_dtype is not None or store.has_times:
        leave_out(made, _late(stores, stored, read, taker))
    return made


def _facts(stores: Stores) -> dict[str, Any]:
    return {
        "num_edges": stores.num_edges,
        "version": stores.version,
        "time": stores.time,
        "directed": stores.directed,
    }


def _late(stores: Stores, stored: int, read: Callable[..., Any], taker: Taker | None) -> Late:
    """The columns of all snapshots of this version that were taken for one taker."""
    store = stores.out
    backend: Any = store.backend
    alone = taker is not None and not taker.waits
    late = None if stores.late is None else stores.late()
    if late is not None and (alone or late.taker != taker):
        late.copied()  # a batch asks the newest alone
        late = None
    if late is None:
        shape = store.segments, stored, store.num_markers > 0, taker
        late = Late(read, partial(backend.csr_columns, *shape), taker)
        if alone:
            late.copied()
        stores.late = weakref.ref(late)
    return late


def _added(store: LPMA) -> Array:
    """uint32, ascending: the vertices that have a marker."""
    if not store.num_markers:
        return array_module(store.segments.counts).empty(0, np.uint32)
    keys, _, _ = store.backend.slots(store.segments, values=False)
    added: Array = (keys[keys & LOW == LOW] >> HALF).astype(np.uint32)
    return added


def _compact(store: LPMA, names: Names | None, facts: dict[str, Any]) -> Snapshot:
    keys, weights, times = store.backend.slots(store.segments)
    src, dst = keys >> HALF, keys & LOW
    edge = dst != LOW
    xp = array_module(keys)
    ids = presence.ids_of(keys, store.largest_vertex() + 1).astype(np.uint64)
    src, dst = xp.searchsorted(ids, src[edge]), xp.searchsorted(ids, dst[edge])
    indptr = xp.searchsorted(src, xp.arange(len(ids) + 1))  # renumbered sources ascend too
    ids = ids.astype(np.uint32)
    return Snapshot._trusted(
        indptr.astype(np.int64),
        dst.astype(np.uint32),
        None if weights is None else weights[edge],
        None if times is None else times[edge],
        **facts,
        ids=ids,
        names=None if names is None else names.frozen(ids),
    )


def count_vertices(store: LPMA) -> int:
    """See Graph.count_vertices."""
    keys, _, _ = store.backend.slots(store.segments, values=False)
    return len(presence.ids_of(keys, store.largest_vertex() + 1))


def level_densities(store: LPMA) -> npt.NDArray[np.float64]:
    """See Graph.level_densities."""
    store.backend.wait()
    segments = store.segments
    return by_level(np.asarray(to_host(segments.counts)), segments.size, store.segment_size)
