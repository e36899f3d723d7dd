"""A table that counts leaves by shape: how many vertices a leaf holds and has free, on each side.

A hash table, int64[slots, 3], of a power of two slots, at least half of them empty. A slot has held
<< 32 | free of the left side, the same of the right, and the number of such leaves, 0 if it is
empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cpu.jit import compiled

from ...arrays import Array

AT_FIRST = 1 << 10  # slots


@compiled
def grown(shapes: Array, used: int, room: int) -> Array:
    """The table, enlarged if less than half of it would be empty after `room` new shapes."""
    while 2 * (used + room) > len(shapes):
        larger = np.zeros((4 * len(shapes), 3), np.int64)
        for i in range(len(shapes)):
            if shapes[i, 2]:
                _add_shape(larger, shapes[i, 0], shapes[i, 1], shapes[i, 2])
        shapes = larger
    return shapes


@compiled
def add(
    shapes: Array, held_left: int, free_left: int, held_right: int, free_right: int, leaves: int,
    least: Any,
) -> int:  # fmt: skip
    """Add leaves of one shape, unless they are too small for any biclique. Returns how many shapes
    are new, 0 or 1. least: the (left, right) sizes of the smallest biclique."""
    if held_left + free_left < least[0] or held_right + free_right < least[1]:
        return 0
    return _add_shape(shapes, held_left << 32 | free_left, held_right << 32 | free_right, leaves)


@compiled
def _add_shape(shapes: Array, left: int, right: int, leaves: int) -> int:
    """As `add`, with each side as held << 32 | free."""
    mask = len(shapes) - 1
    mixed = left * 0x9E3779B1 + right * 0x85EBCA77
    slot = (mixed ^ mixed >> 32) & mask
    while shapes[slot, 2] != 0:
        if shapes[slot, 0] == left and shapes[slot, 1] == right:
            shapes[slot, 2] += leaves
            return 0
        slot = (slot + 1) & mask
    shapes[slot, 0], shapes[slot, 1], shapes[slot, 2] = left, right, leaves
    return 1
