"""Which edges are older than a time: one look at every time, and one more at the segments' keys.

The two passes, first to count and then to write, cost less than a guess at the room: the second
finds most of a small store in the cache, and of a large one it skips the segments that hold none.
No branch depends on a slot, since whether one is old enough is as good as random.

Requires: no versions; the store keeps times.
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
def count_older(v: View, first: int, last: int, before: int) -> int:
    """How many slots of segments first … last - 1 are older than `before`, markers included."""
    n = ZERO
    for rank in range(first, last):
        n += _held(v, rank, before)
    return n


@compiled
def write_older(v: View, first: int, last: int, before: int, keys: Array, times: Array) -> int:
    """Write the keys and times of the edges among them, markers left out. The arrays have room for
    one entry more than there are. Returns how many there are."""
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
