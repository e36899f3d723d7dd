"""The compiled part of `owners.py`, which says how it works."""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cpu.jit import compiled, inlined
from lpma.names.column import TEXT

_EVERYWHERE = np.uint32(2**32 - 1)  # as owners.py has it
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_POLYNOMIAL = np.uint64(0xEDB88320)  # of CRC-32, as zlib has it


@inlined
def mixed(z: Any) -> Any:
    z = (z ^ (z >> _SHIFTS[0])) * _FACTORS[0]
    z = (z ^ (z >> _SHIFTS[1])) * _FACTORS[1]
    return z ^ (z >> _SHIFTS[2])


@inlined
def owner_of(z: Any, partitions: int, folded: int, inverse: float) -> int:
    """The owner of what is mixed from z, uint64. folded: 2^32 mod partitions; inverse: 1 /
    partitions. They are given, or a loop would compute them for each row."""
    h = mixed(z)
    h = np.int64(h >> _HALF) * folded + np.int64(h & _LOW)
    rest = h - np.int64(h * inverse) * partitions
    if rest < 0:
        rest += partitions
    elif rest >= partitions:
        rest -= partitions
    return int(rest)


@compiled
def own(ids: Any, partitions: int, owners: Any) -> None:
    folded, inverse = (1 << 32) % partitions, 1.0 / partitions
    for i in range(len(ids)):
        owners[i] = owner_of(np.uint64(ids[i]), partitions, folded, inverse)


@compiled
def own_names(
    kinds: Any, keys: Any, bounds: Any, blob: Any, first: int, stop: int, partitions: int,
    owners: Any,
) -> None:  # fmt: skip
    table = np.empty(256, np.uint64)
    for byte in range(256):
        crc = np.uint64(byte)
        for _ in range(8):
            crc = (crc >> np.uint64(1)) ^ (_POLYNOMIAL * (crc & np.uint64(1)))
        table[byte] = crc
    folded, inverse = (1 << 32) % partitions, 1.0 / partitions
    for i in range(first, stop):
        z = keys[i]  # an integer, or the number of a text
        if kinds[i] == TEXT:
            start, end = bounds[z], bounds[z + np.uint64(1)]
            crc = _LOW
            for at in range(start, end):
                crc = (crc >> np.uint64(8)) ^ table[(crc ^ np.uint64(blob[at])) & np.uint64(255)]
            z = (crc ^ _LOW) | (np.uint64(end - start) << _HALF)
        owners[i] = owner_of(z, partitions, folded, inverse)


@compiled
def count(own: Any, twins: Any, bounds: Any) -> None:
    """Fill the bounds, which are 0."""
    parts = len(bounds) - 1
    everywhere = 0
    for owners in (own, twins):
        for i in range(len(owners)):
            if owners[i] < parts:
                bounds[owners[i] + 1] += 1
            elif owners[i] == _EVERYWHERE:
                everywhere += 1
    for at in range(parts):
        bounds[at + 1] += bounds[at] + everywhere


@compiled
def move(own: Any, twins: Any, bounds: Any, first: Any, second: Any, out: Any) -> None:
    """See `Spread.moved`."""
    parts = len(bounds) - 1
    at = bounds.copy()
    for i in range(len(own)):
        owner = own[i]
        if owner < parts:
            out[at[owner]] = first[i]
            at[owner] += 1
        elif owner == _EVERYWHERE:
            for partition in range(parts):
                out[at[partition]] = first[i]
                at[partition] += 1
        if len(twins) and twins[i] < parts:
            out[at[twins[i]]] = second[i]
            at[twins[i]] += 1
