"""Window counts after a move: the sums of their halves.

Trick: if a batch touches a good part of the leaves, all counts are summed anew. That is one pass
through memory, window by window downwards, and takes a nanosecond per window; following the touched
leaves upward takes 25 per window, because the cache lines lie anywhere.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from ...cpu.instructions import prefetch
from ...cpu.jit import compiled
from .memory import View, count_of, set_count

Array = npt.NDArray[Any]

COUNTS_AHEAD = 24  # windows between asking for a count and writing it
MANY = 16  # segments per touched leaf up to which all windows are summed


@compiled
def sum_window(v: View, w: int, layer: int) -> None:
    """Make the counts inside window w the sums of their halves, leaves being right."""
    for up in range(1, layer + 1):
        for inner in range(w << (layer - up), (w + 1) << (layer - up)):
            set_count(v, inner, count_of(v, 2 * inner) + count_of(v, 2 * inner + 1))


@compiled
def sum_upward(v: View, ranks: Array, n: int, around: Array) -> None:
    """Make the counts of all windows around these n leaves the sums of their halves. `around` is
    room for as many windows."""
    if n * MANY > 1 << v.m:
        sum_window(v, 1, v.m)
        return
    for i in range(n):
        around[i] = (1 << v.m) + ranks[i]
    for _ in range(v.m):
        up = 0
        for i in range(n):
            if i + COUNTS_AHEAD < n:
                prefetch(v.counts + (around[i + COUNTS_AHEAD] >> 1) * 8)
            w = around[i] >> 1
            if up == 0 or around[up - 1] != w:
                around[up] = w
                up += 1
                set_count(v, w, count_of(v, 2 * w) + count_of(v, 2 * w + 1))
        n = up
