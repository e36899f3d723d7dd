"""Which windows a batch rebalances, and where segments begin once it has.

Source: paper, Sections III and IV, Algorithms 1 and 2. Every window of a layer is judged, whether
the batch touches it or not: that is less work than to write the slots anew.

A window's final segments depend on what it holds after the batch alone. So of windows that take
each other in, only the largest needs to be spread; writing the layers upward has that effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...pma.counters import Stats
from ...pma.density import bounds
from ...pma.strategy import TOP_DOWN
from ..values import Array
from .segments import LAST_FENCE, Segments, Slots, by_layer


class Leaves(NamedTuple):
    """The touched leaves, by rising rank."""

    rank: Array  # int64
    come: Array  # int64: slots inserted
    gone: Array  # int64: slots removed


class Windows(NamedTuple):
    """Windows of one layer, by rising rank."""

    layer: int
    number: Array  # int64: j of window (layer, j)
    total: Array  # int64: slots after the batch


@dataclass
class Plan:
    """See values.py."""

    held: Array  # int64[2^m]: slots of each rank after the batch, if nothing else moved
    alone: Array  # int64: the touched ranks that no larger window takes in at first
    moved: Array  # int64: of these, where a slot is inserted or removed
    windows: list[Windows]  # larger ones, by rising layer
    num_rounds: int
    redundant: int  # how often segments move again: leaves by themselves, then larger windows
    after: tuple[Slots, Array, Array] | None = None  # what `reserve` has made, to be published

    @property
    def held_above_leaves(self) -> int:
        return sum(int(windows.total.sum()) for windows in self.windows)

    def count(self, starts: Array, stats: Stats) -> int:
        """Note the windows in which slots moved, now that segments are at `starts`. Returns the
        edges that they hold."""
        held = 0
        for layer, number, _ in [Windows(0, self.moved, self.moved), *self.windows]:
            slots = int((starts[(number + 1) << layer] - starts[number << layer]).sum())
            stats.note_windows_of(layer, len(number), slots)
            held += slots
        return held


def planned(strategy: str, segments: Segments, leaves: Leaves) -> Plan:
    m, (most, least) = segments.m, bounds(segments.m, segments.segment_size)
    touched, grown, gone = (np.zeros(1 << m, np.int64) for _ in range(3))
    touched[leaves.rank] = 1
    grown[leaves.rank], gone[leaves.rank] = leaves.come - leaves.gone, leaves.gone
    held = by_layer(np.diff(segments.starts) + grown)
    by_window = zip(held, by_layer(grown), by_layer(gone), most, least, strict=True)
    unfit = [
        ((grown > 0) & (held > most)) | ((gone > 0) & (held < least))
        for held, grown, gone, most, least in by_window
    ]
    if strategy == TOP_DOWN:
        alone, chosen = _top_down([window > 0 for window in by_layer(touched)], unfit)
        num_rounds = 1
    else:
        alone, chosen, num_rounds = _bottom_up(touched > 0, unfit)
    windows = [Windows(layer, number, held[layer][number]) for layer, number in chosen]
    ranks, moves = np.flatnonzero(alone), leaves.rank[leaves.come + leaves.gone > 0]
    moved = np.intersect1d(ranks, moves, assume_unique=True)
    times = np.zeros(1 << m, np.int64)
    times[moved] = 1
    for layer, number in chosen:
        times.reshape(-1, 1 << layer)[number] += 1
    redundant = int(np.maximum(times - 1, 0).sum())
    return Plan(held[0], ranks, moved, windows, num_rounds, redundant)


def _bottom_up(touched: Array, unfit: list[Array]) -> tuple[Array, list[tuple[int, Array]], int]:
    """Each round tries the windows of one layer; what does not fit goes to the next. Returns (the
    leaves that fit, larger windows, rounds)."""
    unfit[-1][:] = False  # the root was checked before
    alone, pending = touched & ~unfit[0], touched & unfit[0]
    chosen, layer = [], 0
    while pending.any():
        layer += 1
        tried = pending[::2] | pending[1::2]
        pending = tried & unfit[layer]
        if (tried & ~pending).any():
            chosen.append((layer, np.flatnonzero(tried & ~pending)))
    return alone, chosen, layer + 1


def _top_down(touched: list[Array], unfit: list[Array]) -> tuple[Array, list[tuple[int, Array]]]:
    """Go down while the halves into which something falls both fit; rebalance where one does not.
    Returns (the leaves that are reached, larger windows)."""
    reached, chosen = touched[-1], []
    for layer in range(len(touched) - 1, 0, -1):
        stops = reached & (unfit[layer - 1][::2] | unfit[layer - 1][1::2])
        if stops.any():
            chosen.append((layer, np.flatnonzero(stops)))
        reached = np.repeat(reached & ~stops, 2) & touched[layer - 1]
    return reached, chosen[::-1]


def spread(held: Array, fence: Array, windows: list[Windows], keys: Array) -> tuple[Array, Array]:
    """(starts, fence) of segments that hold so many of the keys each, once windows are spread
    evenly, by rising layer."""
    held = held.copy()
    for layer, number, total in windows:
        ends = total[:, np.newaxis] * np.arange((1 << layer) + 1) >> layer
        held.reshape(-1, 1 << layer)[number] = np.diff(ends)
    starts = np.append(0, np.cumsum(held))
    if not windows:
        return starts, fence
    fence = np.append(fence, LAST_FENCE)
    for layer, number, total in windows:
        inner = (number << layer)[:, np.newaxis] + np.arange(1, 1 << layer)
        fence[inner] = fence[(number + 1) << layer][:, np.newaxis]  # where there is nothing
        inner = inner[total > 0]
        fence[inner] = keys[starts[inner]]
    return starts, fence[:-1]
