"""Owners of ids, and rows in the order of their owners, compiled.

The owner is that of `lpma.owners`, which is the specification: the hash modulo the number of
owners. Trick: a division of 64 bits takes longer than the hash. So the hash's upper half is folded
first, h = hi · (2^32 mod n) + lo, which is below 2^49 for up to 2^16 owners. Its quotient by
floating point is at most one off.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cpu.jit import compiled

MAX_OWNERS = 1 << 16

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


@compiled
def owners_of_ids(ids: Any, shards: int, owners: Any) -> None:
    """owners[i] is who owns ids[i] of `shards`. ids: uint32 or uint64. owners: uint32.
    REQUIRES: 1 <= shards <= MAX_OWNERS."""
    count = np.int64(shards)
    folded = np.int64((1 << 32) % count)
    inverse = 1.0 / count
    for i in range(len(ids)):
        z = np.uint64(ids[i])
        z = (z ^ (z >> _SHIFTS[0])) * _FACTORS[0]
        z = (z ^ (z >> _SHIFTS[1])) * _FACTORS[1]
        z ^= z >> _SHIFTS[2]
        h = np.int64(z >> _HALF) * folded + np.int64(z & _LOW)
        rest = h - np.int64(h * inverse) * count
        if rest < 0:
            rest += count
        elif rest >= count:
            rest -= count
        owners[i] = rest


@compiled
def sort_by_owner(owners: Any, bounds: Any, order: Any) -> None:
    """order: the rows by owner, those of an owner in their order. bounds[o]: where those of owner o
    begin, and bounds[o + 1] where they end. owners: uint32; bounds: int64, one longer than there
    are owners; order: int64. Rows whose owner is none of them come last."""
    count = len(bounds) - 1
    starts = np.zeros(count + 2, np.int64)
    for i in range(len(owners)):
        starts[min(owners[i], count) + 1] += 1
    for o in range(count + 1):
        starts[o + 1] += starts[o]
    bounds[:] = starts[: count + 1]
    for i in range(len(owners)):
        o = min(owners[i], count)
        order[starts[o]] = i
        starts[o] += 1
