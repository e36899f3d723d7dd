"""A store that has just got a part of a level more, spread evenly in small windows."""

from __future__ import annotations

from ...cpu.jit import compiled
from .counts import sum_window
from .memory import View, advance, copy_slots, count_of, prefetch_bytes, segment_at
from .merge import Slot
from .move import following_fence, spread

AHEAD = 4  # segments between prefetching and copying one


@compiled
def even_out(v: View, layer: int, lo: int, hi: int, scratch: Slot) -> None:
    """Spread windows lo … hi - 1 of a layer evenly, each by way of `scratch`."""
    n, leaves = 1 << layer, 1 << v.m
    for j in range(lo, hi):
        first, total = j << layer, 0
        for rank in range(first, first + n):
            ahead = rank + AHEAD
            if ahead < leaves:
                at, held = segment_at(v, ahead), count_of(v, leaves + ahead)
                prefetch_bytes(at[0], held * 8)
                prefetch_bytes(at[1], held * v.weight_bytes)
                prefetch_bytes(at[2], held * v.time_bytes)
            held = count_of(v, leaves + rank)
            copy_slots(v, advance(v, scratch, total), segment_at(v, rank), held)
            total += held
        spread(v, scratch, total, first, layer, 0, n, following_fence(v, first + n))
        sum_window(v, (leaves >> layer) + j, layer)
