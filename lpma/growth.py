"""Growing without holding up the batch that fills the store.

An expansion moves no edge, but there is much to do around it, which the batches before and after
share. Before it, the backend takes the memory that the store will need (`foresee`), for which a
device's driver takes as long as for a batch.

After it, where the store has got a part of a level, small windows are spread. A part is an empty
segment more in every eight ranks (backend/layout.py): if windows waited until they overflow, as the
paper's do, each would have to move eight ranks rather than two. To spread all of them at once takes
as long as many small batches. So each of the next batches spreads a share that goes by its own
size: all is spread by the time that an eighth of the new slots is filled. A window that is not
spread yet is like any other, and a batch that overflows it moves it. A small batch spreads what
takes about as long as itself: a device does most of that while the host prepares the batch.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Protocol

from .backend.layout import NOTHING, even_layer
from .backend.shaping import Foreseeing
from .backend.values import Costs
from .density import root_bounds
from .sizing import Sizing
from .stats import Stats

SLOTS_A_ROW = 64  # spread for each operation: a store has up to 8 times as many as are new
FORESEEN = 6  # batches like the last one, within which the store may expand


class Store(Protocol):
    """What is needed of the store, an LPMA."""

    backend: Any
    segments: Any
    sizing: Sizing
    counters: Stats
    written: bool

    def take_in(self) -> None: ...


class Growth:
    """Of one store. Has no part in what it holds."""

    def __init__(self, backend: Any) -> None:
        self.foreseeing = backend if isinstance(backend, Foreseeing) else None
        self.left = 0  # windows to be spread
        self._size = NOTHING  # of the store when it was expanded
        self._layer = self._next = 0  # of those windows, and which comes next

    def expanded(self, store: Store) -> None:
        """The store, as it is published, has got a level more, or a part of one."""
        self._size, self._next, self.left = store.segments.size, 0, 0
        self._layer = even_layer(self._size, store.segments.segment_size)
        if self._layer and store.sizing.comes_in_parts(self._size):
            self.left = 1 << (self._size.m - self._layer)

    def before(self, store: Store, rows: int) -> None:
        """Spread what falls to a batch of `rows` key operations, which is about to begin. Without
        memory for it, nothing is done. REQUIRES: something is `left`; nothing is `written`."""
        store.take_in()
        store.written = True
        with suppress(MemoryError):
            self._spread(store, rows)
        store.written = False

    def after(self, store: Store, rows: int) -> None:
        """Have memory taken, if it is time, after a batch of `rows` key operations, which may be on
        its way. REQUIRES: the backend is `foreseeing`."""
        assert self.foreseeing is not None
        segments = store.segments
        room = root_bounds(segments.size, segments.segment_size)[0] - segments.num_slots
        if room < FORESEEN * rows and rows < segments.num_slots:
            larger = store.sizing.larger(segments.size)
            self.foreseeing.foresee(segments, larger, max(0, room) // rows)

    def _spread(self, store: Store, rows: int) -> None:
        segments, layer, first = store.segments, self._layer, self._next
        if segments.size != self._size:  # it was rebuilt, or has shrunk
            self.left = 0
        if not self.left:
            return
        slots = share(rows, store.backend.costs)
        windows = min(self.left, max(1, slots // (segments.segment_size << layer)))
        store.backend.even_out(segments, layer, first, first + windows)
        self._next, self.left = first + windows, self.left - windows
        store.counters.rebalances_by_layer[layer] += windows
        store.counters.segments_by_layer[layer] += windows << layer


def share(rows: int, costs: Costs) -> int:
    """How many slots are spread before a batch of `rows` key operations."""
    return max(SLOTS_A_ROW * rows, costs.evened)
