"""Sets of small numbers as bits of 64-bit words: functions for compiled kernels.

A set is sets[top, which], of uint64[depth, kinds, words]; a slice of its own would be counted in
and out of every call. words: any sequence as long as the set. Of a tuple the compiler knows the
length, so that loops over a single word cost nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cpu.instructions import lowest, ones
from lpma.cpu.jit import compiled

from ...arrays import Array

WORD = 64  # bits
ONE = np.uint64(1)


@compiled
def words_for(count: int) -> int:
    """How many words hold so many bits."""
    return (count + WORD - 1) // WORD


@compiled
def size(sets: Array, top: int, which: int, words: Any) -> int:
    """How many bits are set."""
    total = 0
    for i in range(len(words)):
        total += ones(sets[top, which, i])
    return total


@compiled
def common(matrix: Array, v: int, sets: Array, top: int, which: int, words: Any) -> int:
    """How many bits of row v are set in the set, too."""
    total = 0
    for i in range(len(words)):
        total += ones(matrix[v, i] & sets[top, which, i])
    return total


@compiled
def clear_bit(sets: Array, top: int, which: int, i: int) -> None:
    sets[top, which, i >> 6] &= ~(ONE << np.uint64(i & 63))


@compiled
def fill(bits: Array, count: int) -> None:
    """Set the first `count` bits, and clear all others."""
    for i in range(len(bits)):
        left = min(max(count - WORD * i, 0), WORD)
        bits[i] = ~np.uint64(0) >> np.uint64(WORD - left) if left else np.uint64(0)


@compiled
def take_lowest(sets: Array, top: int, which: int, words: Any) -> int:
    """Clear the lowest bit that is set, and return its number; -1 if none is set."""
    for i in range(len(words)):
        bits = sets[top, which, i]
        if bits:
            sets[top, which, i] = bits & (bits - ONE)
            return WORD * i + lowest(bits)
    return -1
