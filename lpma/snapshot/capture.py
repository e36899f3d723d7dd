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

from ..arrays import Array, array_module, to_host
from ..engine.stores import Stores
from ..errors import SnapshotTooLarge
from ..pma.density import by_level
from ..pma.keys import HALF, LOW
from ..store.history import joined, newest
from ..store.lpma import LPMA
from ..time_view import TimeView
from . import compact, presence, row_versions
from .columns import facts_of
from .deferred import NOT_YET, DeferredColumns, Taker
from .row_versions import Batches, Delta, Lineage, Rows, RowVersion, contiguous
from .snapshot import Snapshot

if TYPE_CHECKING:
    from ..names import Names

MAX_SNAPSHOT_BYTES = 1 << 31  # of indptr: 2^28 vertices
KEPT_BYTES = 1 << 26  # of the rows that a graph keeps for the next snapshot


def begin_snapshot(
    stores: Stores, names: Names | None, is_compact: bool, max_bytes: int, view: TimeView | None,
    read: Callable[..., Any],
) -> Callable[[], Snapshot]:  # fmt: skip
    """See Graph.begin_snapshot. view: of the edges; None: all. read: calls a function under the
    lock; the result needs none."""
    store = stores.out
    n = stores.largest_vertex() + 1
    if not is_compact:
        refuse_large(n, max_bytes)
        made = _of_all_rows(stores, n, names, read, view)
        return lambda: made
    on_host = array_module(store.segments.counts) is np
    if (on_host or view is not None) and n <= compact.ROWS_PER_SLOT * store.num_slots:
        return partial(compact.of_rows, _of_all_rows(stores, n, None, read, view), names)
    slots = store.backend.slots(store.segments)
    return partial(compact.of_keys, *slots, n, facts_of(stores), names, view)


def refuse_large(rows: int, max_bytes: int) -> None:
    """Raise SnapshotTooLarge if so many rows would take more than that."""
    if 8 * (rows + 1) > max_bytes:
        raise SnapshotTooLarge(
            f"indptr for ids up to {rows - 1} takes {8 * (rows + 1):,} bytes, more than "
            f"{max_bytes:,}: ask for snapshot(compact=True), which renumbers the vertices, or "
            "raise max_bytes"
        )


def _of_all_rows(
    stores: Stores, n: int, names: Names | None, read: Callable[..., Any], view: TimeView | None
) -> Snapshot:
    """A snapshot with all n rows of the graph."""
    if view is not None:
        return _in_view(stores, n, names, view)
    store = stores.out
    stored = store.segments.num_slots - store.num_markers
    shape = (store.segments, n, stored, store.num_markers > 0)
    backend, views = store.backend, {}
    # Before anything else: a device is at work on rows while the rest is put together.
    if backend.merges_rows:
        rows: tuple[Any, Any] = NOT_YET, NOT_YET
        views[row_versions.KEY] = _next_rows(stores, n, stored, lambda: backend.csr_rows(*shape))
    else:
        rows = backend.csr_rows(*shape)
    columns: tuple[Any, Any] = None, None
    facts, added, taker, late = facts_of(stores), _added(stores), backend.taker(), None
    if stores.weight_dtype is not None or store.has_times:
        columns, late = (NOT_YET, NOT_YET), _deferred(stores, stored, read, taker)
    frozen = None if names is None else names.frozen(rows=n)
    return Snapshot._trusted(
        *rows, *columns, **facts, added=added, names=frozen, views=views, late=late, taker=taker
    )


def _in_view(stores: Stores, n: int, names: Names | None, view: TimeView) -> Snapshot:
    """The same of the edges in a view, copied whole at once."""
    store = stores.out
    backend, added = store.backend, _added(stores)
    loops = not stores.directed and store.num_loops > 0
    shape = store.segments, n, view, store.num_markers > 0, loops
    indptr, indices, weights, times, found = backend.csr_view(*shape)
    edges = len(indices) if stores.directed else (len(indices) + found) // 2
    frozen = None if names is None else names.frozen(rows=n)
    facts = facts_of(stores) | {"num_edges": edges}
    return Snapshot._trusted(
        indptr, indices, weights, times, **facts, added=added, names=frozen, taker=backend.taker()
    )


def _next_rows(stores: Stores, n: int, m: int, make: Callable[[], tuple[Array, Array]]) -> Lineage:
    """The rows of the present version: n, with m entries in all. make: makes indptr int64[n+1] and
    indices uint32[m] from the store. REQUIRES: the backend `merges_rows`."""
    last = stores.last
    if last is not None and last.version == stores.version and last.rows.num_rows == n:
        return Lineage(last, None)
    backend = stores.out.backend
    batches = None if last is None else _changed_since(stores, last)
    if last is None or batches is None:
        since, now = None, Rows(n, m, backend.rows_with, contiguous(*make()))
    else:
        since, now = Delta(last, batches), last.rows.after(n, m, batches)
    state = RowVersion(stores.version, now)
    stores.last = state if 8 * (n + 1) + 4 * m <= KEPT_BYTES else None
    return Lineage(state, since)


def _changed_since(stores: Stores, state: RowVersion) -> Batches | None:
    """What changed since a version; None if that is unknown, or too much to merge."""
    batches = stores.history.since(state.version)
    if batches is None:
        return None
    keys = sum([len(keys) for keys, _ in batches])
    return None if keys * row_versions.SHARE > state.rows.num_entries else batches


def _deferred(
    stores: Stores, stored: int, read: Callable[..., Any], taker: Taker | None
) -> DeferredColumns:
    """The columns of all snapshots of this version that were taken for one taker."""
    store = stores.out
    backend = store.backend
    alone = taker is not None and not taker.waits
    late: DeferredColumns | None = None if stores.deferred is None else stores.deferred()
    if late is not None and (alone or late.taker != taker):
        late.copied()  # a batch materializes only the newest
        late = None
    if late is None:
        shape = store.segments, stored, store.num_markers > 0, taker
        late = DeferredColumns(read, partial(backend.csr_columns, *shape), taker)
        if alone:
            late.copied()
        stores.deferred = weakref.ref(late)
    return late


def _added(stores: Stores) -> Array:
    """uint32, ascending: the vertices that have a marker. On the host they follow the history."""
    store = stores.out
    xp = array_module(store.segments.counts)
    if not store.num_markers:
        return xp.empty(0, np.uint32)
    version, added = stores.added
    batches = stores.history.since(version) if xp is np else None
    if batches is None:
        keys, _, _ = store.backend.slots(store.segments, values=False)
        added = (keys[keys & LOW == LOW] >> HALF).astype(np.uint32)
    else:
        markers = [(keys & LOW == LOW, keys, there) for keys, there in batches]
        keys, there = newest(*joined([(keys[at], there[at]) for at, keys, there in markers]))
        if len(keys):
            ids = (keys >> HALF).astype(np.uint32)
            added = np.union1d(np.setdiff1d(added, ids[~there], True), ids[there])
    if xp is np:
        stores.added = stores.version, added
    return added


def vertices(stores: Stores) -> Array:
    """uint32, ascending: the vertices present."""
    keys, _, _ = stores.out.backend.slots(stores.out.segments, values=False)
    return presence.ids_of(keys, stores.largest_vertex() + 1)


def level_densities(store: LPMA) -> npt.NDArray[np.float64]:
    """See Graph.level_densities."""
    store.backend.wait()
    segments = store.segments
    return by_level(np.asarray(to_host(segments.counts)), segments.size, store.segment_size)
