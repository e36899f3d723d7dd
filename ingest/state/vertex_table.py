"""An open-addressing hash table from integers to ids, compiled.

Idea: the keys live in the dictionary's own columns, by id; the table holds ids only, 4 bytes a
slot, at most half of them filled, and a probe compares the key of the id it finds. Nothing is
ever removed, so linear probing needs no tombstones. The mixing function is that of splitmix64
(Steele, Lea and Flood, OOPSLA 2014), started from a secret seed, so that nobody can send keys that
collide; nothing else depends on where a key stands in the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled

Array = npt.NDArray[Any]

EMPTY = np.uint32(0xFFFF_FFFF)
UNSIGNED, NEGATIVE, TEXT = np.uint8(0), np.uint8(1), np.uint8(2)  # what a key is

_STEP = np.uint64(0x9E37_79B9_7F4A_7C15)
_FIRST = np.uint64(0xBF58_476D_1CE4_E5B9)
_SECOND = np.uint64(0x94D0_49BB_1331_11EB)
_SIGN, _S27, _S30, _S31 = np.uint64(63), np.uint64(27), np.uint64(30), np.uint64(31)
_ONE = np.uint64(1)


@compiled
def _mixed(key: np.uint64, seed: np.uint64) -> np.uint64:
    z = (key ^ seed) + _STEP
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    return z ^ (z >> _S31)


@compiled
def _slot(
    key: np.uint64, kind: np.uint8, seed: np.uint64, slots: Array, kinds: Array, keys: Array
) -> np.uint64:
    """Where the key stands in the table, or the empty slot where it belongs."""
    last = np.uint64(len(slots) - 1)
    at = _mixed(key, seed) & last
    while slots[at] != EMPTY and (keys[slots[at]] != key or kinds[slots[at]] != kind):
        at = (at + _ONE) & last
    return at


@compiled
def _kind(key: np.uint64, signed: bool) -> np.uint8:
    return NEGATIVE if signed and (key >> _SIGN) != 0 else UNSIGNED


@compiled
def assign(
    wanted: Array, signed: bool, seed: np.uint64, slots: Array, kinds: Array, keys: Array,
    count: int, limit: int, ids: Array,
) -> int:  # fmt: skip
    """Fill `ids` with those of the keys wanted, giving the next one to each that has none; returns
    how many ids there are then. Stops at a key for which `limit` leaves no id, and returns -1 - the
    ids there are."""
    for i in range(len(wanted)):
        key, kind = wanted[i], _kind(wanted[i], signed)
        at = _slot(key, kind, seed, slots, kinds, keys)
        if slots[at] == EMPTY:
            if count >= limit:
                return -1 - count
            slots[at], kinds[count], keys[count] = np.uint32(count), kind, key
            count += 1
        ids[i] = slots[at]
    return count


@compiled
def find(
    key: np.uint64, signed: bool, seed: np.uint64, slots: Array, kinds: Array, keys: Array
) -> int:
    """The key's id, EMPTY if it has none."""
    return slots[_slot(key, _kind(key, signed), seed, slots, kinds, keys)]


@compiled
def fill(seed: np.uint64, slots: Array, kinds: Array, keys: Array, count: int) -> None:
    """Enter the first `count` ids into an empty table."""
    for i in range(count):
        if kinds[i] != TEXT:
            slots[_slot(keys[i], kinds[i], seed, slots, kinds, keys)] = np.uint32(i)
