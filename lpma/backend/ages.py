"""Which edges are older than a time: a pass over the levels of a store, wherever they lie.

Idea: in a level every segment is a row of slots, filled from the left, and the counts of its
segments are a slice of the window counts with a stride (layout.py). So one comparison of whole
levels finds the slots asked for, without a kernel of its own; a level takes a few calls of NumPy or
CuPy. Both functions read the arrays that `Segments` promises and nothing else.

Requires: the store keeps times and holds no versions.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..arrays import array_module
from ..keys import LOW
from .values import Array, Segments

SAMPLED_SEGMENTS = 512


def older(segments: Segments, before: int) -> tuple[Array, Array]:
    """(keys uint64[n], times int64[n]) of the edges whose time is less than `before`, in no order;
    an undirected edge in both directions."""
    xp = array_module(segments.counts)
    found_keys, found_times = [], []
    for keys, times, held in _levels(segments):
        filled = xp.arange(segments.segment_size, dtype=held.dtype) < held[:, None]
        hit = xp.flatnonzero((times < before) & filled)
        found_keys.append(keys.ravel()[hit])
        found_times.append(times.ravel()[hit])
    keys, times = xp.concatenate(found_keys), xp.concatenate(found_times)
    edges = xp.flatnonzero((keys & LOW) != LOW)
    if len(edges) < len(keys):
        keys, times = keys[edges], times[edges]
    return keys, times


def sampled_times(segments: Segments) -> Array:
    """int64: the times of the slots of some segments, evenly spread, markers included."""
    xp = array_module(segments.counts)
    step = max(1, (1 << segments.m) // SAMPLED_SEGMENTS)
    found = []
    for _, times, held in _levels(segments):
        times, held = times[::step], held[::step]
        filled = xp.arange(segments.segment_size, dtype=held.dtype) < held[:, None]
        found.append(times[filled])
    return xp.concatenate(found)


def _levels(segments: Segments) -> Iterator[tuple[Array, Array, Array]]:
    """(keys, times, how many slots are filled) by level, a row a segment."""
    m, size, counts = segments.m, segments.segment_size, segments.counts
    assert segments.times is not None
    leaves = 1 << m
    levels = zip(segments.keys, segments.times, strict=True)
    for level, (keys, times) in enumerate(levels):
        first = 0 if level == 0 else 1 << (m - level)
        held = counts[leaves + first :: 2 * first] if first else counts[leaves : leaves + 1]
        yield keys.reshape(-1, size), times.reshape(-1, size), held
