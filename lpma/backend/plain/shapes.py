"""Whole stores: made, filled, grown by a level, shrunk by a level."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...pma.layout import Size
from ..shaping import WholeLevels
from ..values import Array
from .located import Located
from .plan import Windows, spread
from .segments import LAST_FENCE, Segments
from .slots import Slots, edited

MOST_LEVELS = 29  # as many as the Numba backend can number


def spread_over(segment_size: int, m: int, slots: Slots) -> Segments:
    """2^m segments with these slots, spread evenly."""
    starts = np.arange((1 << m) + 1) * len(slots.keys) >> m
    fence = slots.keys[starts[:-1]] if len(slots.keys) else np.full(1 << m, LAST_FENCE)
    fence[0] = 0
    return Segments(segment_size, slots, starts, fence)


class Shapes(WholeLevels):
    """See lpma.backend.protocol."""

    way_out = "make the graph with a larger segment_size"

    def most_levels(self, segment_size: int) -> int:
        return MOST_LEVELS

    def empty(self, segment_size: int, weight_dtype: np.dtype[Any] | None, times: bool) -> Segments:
        slots = Slots(
            np.empty(0, np.uint64),
            None if weight_dtype is None else np.empty(0, weight_dtype),
            np.empty(0, np.int64) if times else None,
        )
        return spread_over(segment_size, 0, slots)

    def build(
        self, segment_size: int, size: Size, keys: Array, weights: Array | None, times: Array | None
    ) -> Segments:
        own = [None if column is None else np.array(column) for column in (weights, times)]
        return spread_over(segment_size, size.m, Slots(np.array(keys), own[0], own[1]))

    def rebuild(self, segments: Segments, located: Located, size: Size) -> Segments:
        return spread_over(segments.segment_size, size.m, edited(segments.slots, located.edit))

    def expand(self, segments: Segments, size: Size) -> Segments:
        """Each segment gets an empty one behind it, which begins where the next one does."""
        starts = np.repeat(segments.starts, 2)[1:]
        fence = np.repeat(segments.fence, 2)
        fence[1::2] = np.append(segments.fence[1:], LAST_FENCE)
        return Segments(segments.segment_size, segments.slots, starts, fence)

    def shrink(self, segments: Segments, most: Array) -> tuple[Segments, Array]:
        """Pairs of segments become one. From the root down, a window with a half over its bound is
        spread, and one without is divided."""
        m, held = segments.m - 1, np.diff(segments.starts)
        moved, windows = np.zeros(m + 1, np.int64), np.zeros(1, np.int64)
        spread_out = []
        for layer in range(m, 0, -1):
            halves = np.diff(segments.starts[:: 1 << layer]).reshape(-1, 2)[windows]
            too_full = halves.max(axis=1) > most[layer - 1]
            moved[layer] = np.count_nonzero(too_full)
            spread_out.append(Windows(layer, windows[too_full], halves[too_full].sum(axis=1)))
            windows = 2 * windows[~too_full]
            windows = np.column_stack([windows, windows + 1]).ravel()
        moved[0] = np.count_nonzero(held[2 * windows + 1])
        counts, fence = held.reshape(-1, 2).sum(axis=1), segments.fence[::2]
        starts, fence = spread(counts, fence, spread_out[::-1], segments.slots.keys)
        return Segments(segments.segment_size, segments.slots, starts, fence), moved
