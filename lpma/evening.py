"""Spreading a store over a part of a level that it has just got, a little with every batch.

A part is an empty segment more in every eight ranks (backend/layout.py). If windows waited until
they overflow, as the paper's do, each would then have to move eight ranks rather than two; so small
windows are spread beforehand. To spread all of them at once takes as long as many small batches,
and would hold up the batch that expanded the store. So each of the next ones spreads a share that
goes by its own size: all is spread by the time that a quarter of the new slots is filled. A window
that is not spread yet is like any other, and a batch that overflows it moves it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Protocol

from .backend.layout import NOTHING, even_layer
from .sizing import Sizing
from .stats import Stats

SLOTS_A_ROW = 32  # that are there, for each operation of a batch: four times 8 / new slots
LEAST_SLOTS = 1 << 18  # for a batch of few


class Store(Protocol):
    """What is needed of the store, an LPMA."""

    backend: Any
    segments: Any
    sizing: Sizing
    stats: Stats
    written: bool

    def take_in(self) -> None: ...


class Evening:
    """What is left to be spread of one store."""

    def __init__(self) -> None:
        self._size = NOTHING  # of the store when it was expanded
        self._layer = self._next = 0  # of its windows, and which comes next
        self.left = 0  # windows

    def begin(self, store: Store) -> None:
        """The store, as it is published, has got a level more, or a part of one."""
        self._size, self._next, self.left = store.segments.size, 0, 0
        self._layer = even_layer(self._size, store.segments.segment_size)
        if self._layer and store.sizing.comes_in_parts(self._size):
            self.left = 1 << (self._size.m - self._layer)

    def go_on(self, store: Store, rows: int) -> None:
        """Before a batch of `rows` operations: spread what falls to it. The contents stay as they
        are. Without memory for that, the next batch tries again."""
        store.take_in()
        if store.segments.size != self._size:  # it was rebuilt, or has shrunk
            self.left = 0
        if not self.left:
            return
        slots = max(SLOTS_A_ROW * rows, LEAST_SLOTS)
        windows = min(self.left, max(1, slots // (store.segments.segment_size << self._layer)))
        store.written = True
        with suppress(MemoryError):
            store.backend.even_out(store.segments, self._layer, self._next, self._next + windows)
            self._next, self.left = self._next + windows, self.left - windows
            store.stats.rebalances_by_layer[self._layer] += windows
            store.stats.segments_by_layer[self._layer] += windows << self._layer
        store.written = False
