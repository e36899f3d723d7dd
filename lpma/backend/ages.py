"""The times of a store on the host: those of some slots from all over it, and what is left without
the old.

Idea: in a level every segment is a row of slots, filled from the left, and the counts of its
segments are a slice of the window counts with a stride, in another order (layout.py). So a level
takes a few calls of NumPy. This reads the arrays that `Segments` promises and nothing else.

Requires: the store keeps times.
"""

from __future__ import annotations

import numpy as np

from ..pma.keys import HALF, LOW
from ..pma.layout import by_place
from .values import Array, Segments

SAMPLED_SEGMENTS = 512


def sampled_times(segments: Segments) -> Array:
    """int64: the times of the slots of some segments, evenly spread, markers included."""
    m, size, counts = segments.m, segments.segment_size, segments.counts
    assert segments.times is not None
    leaves = 1 << m
    step = max(1, leaves // SAMPLED_SEGMENTS)
    found = []
    for level, times in enumerate(segments.times):
        first = 0 if level == 0 else 1 << (m - level)
        held = counts[leaves + first :: 2 * first] if first else counts[leaves : leaves + 1]
        times, held = times.reshape(-1, size)[::step], by_place(held)[::step]
        filled = np.arange(size, dtype=held.dtype) < held[:, None]
        found.append(times[filled])
    return np.concatenate(found)


def without_older(
    slots: tuple[Array, Array | None, Array | None], before: int
) -> tuple[tuple[Array, Array | None, Array | None], int]:
    """Slots without the edges older than a time, and how many of those were loops."""
    keys, weights, times = slots
    assert times is not None
    stays = (times >= before) | ((keys & LOW) == LOW)
    gone, rows = keys[~stays], np.flatnonzero(stays)
    loops = int(np.count_nonzero((gone >> HALF) == (gone & LOW)))
    return (keys[rows], None if weights is None else weights[rows], times[rows]), loops
