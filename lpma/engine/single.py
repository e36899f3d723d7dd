"""One operation at a time: from Python's numbers to the stores and back, without columns.

Idea: a batch of one costs what any small batch does, almost none of it for the operation itself. So
a backend may offer single operations on plain numbers (`Better` in backend/protocol.py). If it
refuses an update because more than one leaf would have to change, the operation is applied as a
batch of one row. State, version, history and counters are the same either way.

The caller holds the graph's lock (lock.py), and has seen to it that vertices are ids.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments.convert import MAX_VERTEX, MAX_WEIGHT, NO_VERTEX
from ..arrays import Array, to_host
from ..backend.values import DELETE, INSERT, REFUSED, SKIP
from ..batch.columns import ADD_VERTEX, WEIGHTED, Columns, now_ms
from ..pma.counters import CHANGED, REASONS
from ..pma.keys import one_id
from ..pma.strategy import TOP_DOWN
from ..results import Edge
from ..store.lpma import LPMA
from .opera import apply
from .stores import Stores

_INT64 = 1 << 63


def are_plain(kind: int, u: int, v: Any, weight: Any, time: Any) -> bool:
    """Whether `SingleOperations.update` takes this update as it is, with v None for ADD_VERTEX. NaN
    fails the comparison; whole numbers beyond int64 are for convert.py to judge."""
    if not (
        0 <= u <= MAX_VERTEX
        and (kind == ADD_VERTEX if v is None else type(v) is int and 0 <= v <= MAX_VERTEX)
    ):
        return False
    if type(weight) is float:
        good = -MAX_WEIGHT <= weight <= MAX_WEIGHT
    else:
        good = type(weight) is int and -_INT64 <= weight < _INT64
    return good and (time is None or (type(time) is int and -_INT64 <= time < _INT64))


class SingleOperations:
    """Operations on the stores of a graph, one at a time. Not thread-safe."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    # -- queries ------------------------------------------------------------------------------

    def has_edge(self, u: int, v: int) -> bool:
        """See Graph.has_edge, and so on."""
        store = self._stores.out
        return store.backend.find_edge(store.segments, u, v)[0]

    def edge(self, u: int, v: int) -> Edge | None:
        store = self._stores.out
        segments = store.segments
        found, weight, time = store.backend.find_edge(segments, u, v)
        if not found:
            return None
        return Edge(
            None if segments.weights is None else weight,
            None if segments.times is None else time,
        )

    def neighbors(self, u: int) -> Array:
        store = self._stores.out
        return store.backend.find_neighbors(store.segments, u)

    def has_vertex(self, u: int) -> bool:
        """See Graph.__contains__. REQUIRES: the stores are on the host."""
        stores = self._stores
        if degree_of(stores.out, u) or (stores.out.num_markers and self.has_edge(u, NO_VERTEX)):
            return True
        if stores.into is not None:
            return degree_of(stores.into, u) > 0
        followed = stores.out, stores.history, stores.version
        return stores.directed and stores.in_degrees.is_entered(*followed, u)

    # -- updates ------------------------------------------------------------------------------

    def update(self, kind: int, u: int, v: int, weight: float, time: int | None) -> None:
        """Apply one update, of an edge or ADD_VERTEX, and note it. v: NO_VERTEX for
        ADD_VERTEX."""
        now = now_ms() if time is None else time
        if not self._by_itself(kind, u, v, weight, now):
            columns = Columns(
                np.array([kind], np.uint8), one_id(u), one_id(0 if v == NO_VERTEX else v),
                np.array([weight], np.float64), np.array([now], np.int64), checked=True,
            )  # fmt: skip
            apply(self._stores, columns)

    def _by_itself(self, kind: int, u: int, v: int, weight: float, now: int) -> bool:
        """Have the backend apply an update. False: it refused, and nothing has changed."""
        stores, out, into = self._stores, self._stores.out, self._stores.into
        started = out.clock()
        chosen = _choose(out)
        back, back_chosen = None, chosen
        if v != NO_VERTEX:
            if into is not None:
                back, back_chosen = into.segments, _choose(into)
            elif not stores.directed and u != v:
                back = out.segments
        action, why, held, back_held = out.backend.update_one(
            out.segments, back, u, v, kind, weight, now, chosen[0] == TOP_DOWN,
            back_chosen[0] == TOP_DOWN, out.sizing.least_held[1 if stores.directed else 2],
        )  # fmt: skip
        if action == REFUSED:
            return False
        seconds = out.clock() - started
        keys = [u << 32 | v]
        if back is not None and into is not None:
            _count(into, back_chosen, action, v, u, 1, back_held, seconds)
        elif back is not None:
            keys = sorted((u << 32 | v, v << 32 | u))
        if len(keys) == 2 and back_held >= 0:
            _count(out, chosen, action, u, v, 2, held + back_held, seconds)
        else:
            _count(out, chosen, action, u, v, 1, held, seconds)
        if why != CHANGED:
            for key in keys:
                out.unchanged[why + REASONS * (key >> 32 > key & NO_VERTEX)] += 1
        stores.note([], now)
        if kind in WEIGHTED:
            stores.expiry.note_one(u, v, now)
        if action in (INSERT, DELETE):
            for key in keys:
                stores.history.add_one(stores.version, key, action == INSERT)
        return True


def degree_of(store: LPMA, u: int) -> int:
    """The number of a vertex's successors in a store."""
    return int(to_host(store.backend.count_neighbors_of(store.segments, u))[0])


def _choose(store: LPMA) -> tuple[str, float]:
    """(the strategy for the next operation, the density that it is chosen for)."""
    density = store.density
    return store.hybrid.choose(density), density


def _count(
    store: LPMA, chosen: tuple[str, float], action: int, u: int, v: int, leaves: int, held: int,
    seconds: float,
) -> None:  # fmt: skip
    """Count a single update in a store, as LPMA.account counts a batch: of (u, v), in so many
    leaves, which hold that many slots now."""
    stats = store.counters
    moved = action in (INSERT, DELETE)
    nbytes = 2 * store.slot_bytes * held if moved else 0
    stats.note_applied(1, seconds, nbytes, rounds=action != SKIP)
    if action != SKIP:
        store.hybrid.record(*chosen, seconds)
    if not moved:
        return
    stats.note_windows_of(0, leaves, held)
    change = 1 if action == INSERT else -1
    if v == NO_VERTEX:
        store.num_markers += change
    elif u == v:
        store.num_loops += change
    if change < 0:
        store.largest = None
    elif store.largest is not None:
        store.largest = max(store.largest, u, v if v != NO_VERTEX else u)
