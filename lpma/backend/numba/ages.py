"""Which edges are older than a time: one look at every time, and one more at the segments' keys.

There is room for every slot, since memory that is never written is never there: to count first
took longer than to write. A segment is looked at twice, the second time in the cache, so that
those that hold none are skipped.
No branch depends on a slot, since whether one is old enough is as good as random.

Requires: the store keeps times.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...cpu.instructions import load_i64, load_u64
from ...cpu.jit import ZERO, compiled, inlined
from .memory import LOW, MARKER, View, count_of, segment_at

Array = npt.NDArray[Any]


@inlined
def _held(v: View, rank: int, before: int) -> int:
    """How many slots of a segment are older, markers included."""
    times, n = segment_at(v, rank)[2], ZERO
    for position in range(count_of(v, (1 << v.m) + rank)):
        n += np.int64(load_i64(times + position * 8) < before)
    return n


@compiled
def write_older(v: View, first: int, last: int, before: int, keys: Array, times: Array) -> int:
    """Write the keys and times of the edges of segments first … last - 1 that are older than
    `before`, markers left out. The arrays have room for one entry more than there are. Returns how
    many there are."""
    n = ZERO
    for rank in range(first, last):
        if not _held(v, rank, before):
            continue
        at = segment_at(v, rank)
        for position in range(count_of(v, (1 << v.m) + rank)):
            key, time = load_u64(at[0] + position * 8), load_i64(at[2] + position * 8)
            keys[n], times[n] = key, time
            n += np.int64(time < before) & np.int64((key & LOW) != MARKER)
    return n
