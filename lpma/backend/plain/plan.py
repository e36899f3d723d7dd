"""Which windows a batch rebalances, and where segments begin once it has.

Source: paper, Sections III and IV, Algorithms 1 and 2. The windows of a layer are judged together,
by differences of prefix sums: of the slots before each segment, and over the touched leaves.

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
from .located import Leaves
from .segments import LAST_FENCE, Segments
from .slots import Slots


class Windows(NamedTuple):
    """Windows of one layer, by rising rank."""

    layer: int
    number: Array  # int64: j of window (layer, j)
    total: Array  # int64: slots after the batch


@dataclass
class Plan:
    """See values.py."""

    leaves: Leaves
    alone: Array  # the touched leaves, by index, that no larger window takes in at first
    windows: list[Windows]  # larger ones, by rising layer
    num_rounds: int
    redundant: int
    after: tuple[Slots, Array, Array] | None = None  # what `reserve` has made, to be published

    @property
    def held_above_leaves(self) -> int:
        return sum(int(windows.total.sum()) for windows in self.windows)


class _Judge:
    """What windows hold, and whether they are within the bounds that bind them."""

    def __init__(self, segments: Segments, leaves: Leaves) -> None:
        self.starts, self.rank = segments.starts, leaves.rank
        self.most, self.least = bounds(segments.m, segments.segment_size)
        self.delta = np.append(0, np.cumsum(leaves.delta))
        self.deleted = np.append(0, np.cumsum(leaves.deleted))

    def windows(self, layer: int, members: Array) -> tuple[Windows, Array, Array]:
        """(the windows that leaves fall into, the window of each, whether each fits). members:
        indices of leaves, rising."""
        of_leaf = self.rank[members] >> layer
        first = np.append(True, of_leaf[1:] != of_leaf[:-1])
        number = of_leaf[first]
        start, end = number << layer, (number + 1) << layer
        lo, hi = np.searchsorted(self.rank, start), np.searchsorted(self.rank, end)
        grown = self.delta[hi] - self.delta[lo]
        total = self.starts[end] - self.starts[start] + grown
        too_full = (grown > 0) & (total > self.most[layer])
        too_empty = (self.deleted[hi] > self.deleted[lo]) & (total < self.least[layer])
        return Windows(layer, number, total), np.cumsum(first) - 1, ~(too_full | too_empty)


def planned(strategy: str, segments: Segments, leaves: Leaves) -> Plan:
    """See Writing.plan."""
    judge = _Judge(segments, leaves)
    return (_top_down if strategy == TOP_DOWN else _bottom_up)(judge, segments.m, leaves)


def _bottom_up(judge: _Judge, m: int, leaves: Leaves) -> Plan:
    """Each round tries the windows of one layer; what does not fit goes to the next."""
    pending = np.arange(len(leaves.rank))
    alone, above, layer = pending[:0], [], 0
    while len(pending):
        windows, which, fits = judge.windows(layer, pending)
        if layer == m:
            fits[:] = True  # the root was checked before
        if layer == 0:
            alone = pending[fits]
        elif fits.any():
            above.append(Windows(layer, windows.number[fits], windows.total[fits]))
        pending = pending[~fits[which]]
        layer += 1
    moved = leaves.rank[alone[leaves.moved[alone]]]
    return Plan(leaves, alone, above, layer, _redundant(moved, above, m))


def _redundant(leaves: Array, above: list[Windows], m: int) -> int:
    """How often segments move again: leaves by rank, then larger windows."""
    if not above:
        return 0
    edges = np.zeros((1 << m) + 1, np.int64)
    np.add.at(edges, leaves, 1)
    np.add.at(edges, leaves + 1, -1)
    for layer, number, _ in above:
        np.add.at(edges, number << layer, 1)
        np.add.at(edges, (number + 1) << layer, -1)
    times = np.cumsum(edges)
    return int(np.maximum(times - 1, 0).sum())


def _top_down(judge: _Judge, m: int, leaves: Leaves) -> Plan:
    """Go down while the halves into which something falls both fit; rebalance where one does
    not."""
    going = np.arange(len(leaves.rank))
    above: list[Windows] = []
    windows, which, _ = judge.windows(m, going)
    for layer in range(m, 0, -1):
        halves, half, fits = judge.windows(layer - 1, going)
        stops = np.zeros(len(windows.number), np.bool_)
        stops[which[~fits[half]]] = True
        if stops.any():
            above.append(Windows(layer, windows.number[stops], windows.total[stops]))
            going = going[~stops[which]]
            if not len(going):
                break
            halves, half, _ = judge.windows(layer - 1, going)
        windows, which = halves, half
    return Plan(leaves, going, above[::-1], 1, 0)


# -- carried out ---------------------------------------------------------------------------------


def carried_out(segments: Segments, plan: Plan, keys: Array) -> tuple[Array, Array]:
    """(starts, fence) of segments once a plan has moved its windows. keys: all, after the batch."""
    counts = np.diff(segments.starts)
    counts[plan.leaves.rank] += plan.leaves.delta
    return spread(counts, segments.fence, plan.windows, keys)


def spread(counts: Array, fence: Array, windows: list[Windows], keys: Array) -> tuple[Array, Array]:
    """(starts, fence) of segments that hold `counts` of the keys, once windows are spread evenly,
    by rising layer. `counts` is lost."""
    for layer, number, total in windows:
        cuts = total[:, np.newaxis] * np.arange((1 << layer) + 1) >> layer
        counts.reshape(-1, 1 << layer)[number] = np.diff(cuts)
    starts = np.append(0, np.cumsum(counts))
    if not windows:
        return starts, fence
    fence = np.append(fence, LAST_FENCE)
    for layer, number, total in windows:
        inner = (number << layer)[:, np.newaxis] + np.arange(1, 1 << layer)
        fence[inner] = fence[(number + 1) << layer][:, np.newaxis]  # where there is nothing
        inner = inner[total > 0]
        fence[inner] = keys[starts[inner]]
    return starts, fence[:-1]


def count_windows(plan: Plan, starts: Array, stats: Stats) -> int:
    """Note the windows in which slots moved. Returns the edges that they hold now."""
    moved = plan.leaves.rank[plan.alone[plan.leaves.moved[plan.alone]]]
    held = 0
    for layer, number, _ in [(0, moved, moved), *plan.windows]:
        slots = int((starts[(number + 1) << layer] - starts[number << layer]).sum())
        stats.note_windows_of(layer, len(number), slots)
        held += slots
    return held
