"""Sets of small numbers as bits of 64-bit words: functions for compiled kernels."""

from __future__ import annotations

import numpy as np

from lpma.cpu.instructions import lowest, ones
from lpma.cpu.jit import compiled

from ...arrays import Array

WORD = 64  # bits


@compiled
def words_for(count: int) -> int:
    """How many words hold so many bits."""
    return (count + WORD - 1) // WORD


@compiled
def size(bits: Array) -> int:
    """How many bits are set."""
    total = 0
    for word in bits:
        total += ones(word)
    return total


@compiled
def common(a: Array, b: Array) -> int:
    """How many bits are set in both."""
    total = 0
    for i in range(len(a)):
        total += ones(a[i] & b[i])
    return total


@compiled
def clear_bit(bits: Array, i: int) -> None:
    bits[i >> 6] &= ~(np.uint64(1) << np.uint64(i & 63))


@compiled
def fill(bits: Array, count: int) -> None:
    """Set the first `count` bits, and clear all others."""
    for i in range(len(bits)):
        left = count - WORD * i
        if left >= WORD:
            bits[i] = ~np.uint64(0)
        else:
            bits[i] = (np.uint64(1) << np.uint64(max(left, 0))) - np.uint64(1)


@compiled
def take_lowest(bits: Array) -> int:
    """Clear the lowest bit that is set, and return its number; -1 if none is set."""
    for i in range(len(bits)):
        if bits[i]:
            v = WORD * i + lowest(bits[i])
            bits[i] &= bits[i] - np.uint64(1)
            return v
    return -1
