"""Growing without holding up the batch that fills the store.

A batch that is small beside the store and would expand it, if it inserts as many edges as the last
one, finds it expanded already: a device plans and moves such a batch at once, and would have to
decline one that expands the store. If the batch inserts fewer edges after all, the store has its
new slots a little too early, and keeps them.

After an expansion by a part of a level, small windows are spread. A part is an empty segment more
in every eight ranks (layout.py): if windows waited until they overflow, as the paper's do, each
would have to move eight ranks rather than two. To spread all at once takes as long as many small
batches, so each of the next batches spreads a share that goes by its own size: all is spread by the
time that an eighth of the new slots is filled. A window that is not spread yet is like any other. A
device spreads a small batch's share mostly while the host prepares the batch.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from ..pma.density import root_bounds
from ..pma.layout import NOTHING, Size, even_layer

SLOTS_A_ROW = 64  # spread for each operation: a store has up to 8 times as many as are new
EARLY = 64  # slots for each key operation of a batch, where the store is expanded before it
A_SINGLE = 2  # key operations at most of an operation by itself, which expands the store itself
MARGIN = 17 / 16  # of what the last batch inserted, for the next one


class Growth:
    """The growth policy of one store, an LPMA, which its methods are given; contents never
    change."""

    def __init__(self, backend: Any) -> None:
        self.is_early: bool = backend.overlaps  # whether the store is expanded before the batch
        self.due = False  # windows are to be spread before the next batch
        self.gained = 0  # slots, by the last batch whose outcome is known; the store sets it
        self._left = 0  # windows to be spread
        self._size = NOTHING  # of the store when it was expanded
        self._layer = self._next = 0  # of those windows, and which comes next

    def expanded(self, store: Any) -> None:
        """The store, as it is published, has got a level more, or a part of one."""
        self._size, self._next, self._left = store.segments.size, 0, 0
        self._layer = even_layer(self._size, store.segments.segment_size)
        if self._layer and store.sizing.comes_in_parts(self._size):
            self._left = 1 << (self._size.m - self._layer)
        self.due = self._left > 0

    def expanded_from(self, store: Any, size: Size) -> None:
        """The store had that size before, and may have been expanded since."""
        steps = store.sizing.steps(size, store.segments.size)
        if steps:
            store.counters.note_levels(expansions=steps)
            store.hybrid.start_cycle()
            self.expanded(store)

    def before(self, store: Any, rows: int) -> None:
        """Spread what falls to a batch of `rows` key operations, which is about to begin. Without
        memory for it, nothing is done. REQUIRES: it is `due`; nothing is `written`."""
        store.finish_pending()
        store.written = True
        with suppress(MemoryError):
            self._spread(store, rows)
        store.written, self.due = False, self._left > 0

    def after(self, store: Any, rows: int) -> None:
        """Expand the store after a batch of `rows` key operations, which may be on its way, if
        another one like it would. REQUIRES: growth `is_early`; the batch is noted."""
        self.due = self._left > 0
        segments = store.segments
        room = root_bounds(segments.size, segments.segment_size)[0] - segments.num_slots
        if room < 2 * rows and rows > A_SINGLE and EARLY * rows <= segments.num_slots:
            store.finish_pending()
            store.written = True  # until the batch is settled
            if self.gained > 0:
                with suppress(MemoryError):  # the next batch meets it again
                    self._expand(store, rows)

    def _expand(self, store: Any, rows: int) -> None:
        held, before = store.segments.num_slots, store.segments.size
        size = store.sizing.size_for(held + min(rows, int(MARGIN * self.gained)), before)
        if size == before:
            return
        store.segments = store.expanded(size)
        self.expanded_from(store, before)
        self.due = False  # the next batch has enough to do with the larger store

    def _spread(self, store: Any, rows: int) -> None:
        segments, layer, first = store.segments, self._layer, self._next
        if segments.size != self._size:  # it was rebuilt, or has shrunk
            self._left = 0
        if not self._left:
            return
        slots = share(rows, store.backend.costs.evened)
        windows = min(self._left, max(1, slots // (segments.segment_size << layer)))
        store.backend.even_out(segments, layer, first, first + windows)
        self._next, self._left = first + windows, self._left - windows
        store.counters.note_windows_of(layer, windows)


def share(rows: int, least: int) -> int:
    """How many slots are spread before a batch of `rows` key operations."""
    return max(SLOTS_A_ROW * rows, least)
