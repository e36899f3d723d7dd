"""A mixed batch in one store: room for its versions before the first write, and their removal at
the end.

opera.py says what versions are, and in which order the stores of a graph take their turns. Until
`compact`, the filled slots are ordered by (key, seq): a stored edge, then its key's versions.
"""

from __future__ import annotations

from .backend.values import Committed, Located, Segments
from .store import LPMA


def make_room(store: LPMA, rows: int, room: int) -> None:
    """Allocate for a mixed batch of `rows` key operations, as if all were inserts: levels, the
    column that marks versions, buffers (for the key rows, of `room`). Raises MemoryError or
    StoreTooLarge; after that, and until something is committed, `take_back` restores the store as
    it was."""
    size = store.sizing.size_for(store.num_slots + rows, store.segments.size)
    segments = store.backend.with_versions(store.expanded(size))
    store.backend.reserve_mixed(segments, rows, room)
    store.written = True
    store.segments = segments


def take_back(store: LPMA, before: Segments) -> None:
    """Undo `make_room`: expanding moved nothing, so the segments from before are as they were."""
    store.segments = before
    store.written = False


def compact(store: LPMA, located: Located, most_changes: int) -> Committed:
    """End a mixed batch: fold the versions that `located` put in."""
    started = store.clock()
    strategy = store.strategy_at(store.density)
    committed = store.backend.compact(
        store.segments, located, strategy, store.counters, most_changes
    )  # fmt: skip
    store.segments = store.backend.without_versions(store.segments)
    store.account(committed)
    shrinks = store.shrink()
    store.counters.seconds += store.clock() - started
    if shrinks:
        store.hybrid.start_cycle()
    return committed
