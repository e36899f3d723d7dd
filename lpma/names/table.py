"""An open-addressing hash table from names to ids, compiled.

Idea: names lie in the dictionary's own columns, by id; the table holds ids only, 4 bytes a slot, at
most half of them filled, and a probe compares the name of the id it finds. So a name of text takes
its bytes and about 30 more, a tenth of what a Python dict of strings takes. Only the newest ids are
ever removed, newest first, which leaves the table as it was before they came; so linear probing
needs no tombstones.

The mixing function is that of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), started from a
secret seed, so that nobody can send names that collide; text is mixed 8 bytes at a time. Nothing
else depends on where a name stands in the table.

A column of names (column.py) and the dictionary have the same form:

    kinds   uint8[n]   UNSIGNED, NEGATIVE or TEXT
    keys    uint64[n]  an integer's bits, or which of the texts it is
    bounds  int64[t+1] text i is blob[bounds[i]:bounds[i+1]], UTF-8
    blob    uint8
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled

Array = npt.NDArray[Any]

EMPTY = np.uint32(0xFFFF_FFFF)
UNSIGNED, NEGATIVE, TEXT = np.uint8(0), np.uint8(1), np.uint8(2)  # what a key is
UNKNOWN = np.uint32(0xFFFF_FFFE)  # the id of every name that has none

_STEP = np.uint64(0x9E37_79B9_7F4A_7C15)
_FIRST = np.uint64(0xBF58_476D_1CE4_E5B9)
_SECOND = np.uint64(0x94D0_49BB_1331_11EB)
_S8, _S27, _S30, _S31 = np.uint64(8), np.uint64(27), np.uint64(30), np.uint64(31)
_ONE = np.uint64(1)


@compiled
def _mixed(key: np.uint64, seed: np.uint64) -> np.uint64:
    z = (key ^ seed) + _STEP
    z = (z ^ (z >> _S30)) * _FIRST
    z = (z ^ (z >> _S27)) * _SECOND
    return z ^ (z >> _S31)


@compiled
def _mixed_text(blob: Array, start: int, end: int, seed: np.uint64) -> np.uint64:
    z = _mixed(np.uint64(end - start), ~seed)
    at = start
    while at + 8 <= end:
        word = np.uint64(0)
        for i in range(8):
            word |= np.uint64(blob[at + i]) << np.uint64(8 * i)
        z = _mixed(word, z)
        at += 8
    word = np.uint64(0)
    while at < end:
        word = word << _S8 | np.uint64(blob[at])
        at += 1
    return _mixed(word, z)


@compiled
def _same(a: Array, at: int, b: Array, other: int, size: int) -> bool:
    for i in range(size):  # noqa: SIM110 - no generator is compiled
        if a[at + i] != b[other + i]:
            return False
    return True


@compiled
def _slot(
    i: int, kinds: Array, keys: Array, bounds: Array, blob: Array, seed: np.uint64,
    slots: Array, own_kinds: Array, own_keys: Array, own_bounds: Array, own_blob: Array,
) -> np.uint64:  # fmt: skip
    """Where name i of a column stands in the table, or the empty slot where it belongs."""
    last, kind, key = np.uint64(len(slots) - 1), kinds[i], keys[i]
    if kind != TEXT:
        at = _mixed(key, seed) & last
        while slots[at] != EMPTY:
            if own_keys[slots[at]] == key and own_kinds[slots[at]] == kind:
                break
            at = (at + _ONE) & last
        return at
    start, end = bounds[key], bounds[key + _ONE]
    at = _mixed_text(blob, start, end, seed) & last
    while slots[at] != EMPTY:
        if own_kinds[slots[at]] == TEXT:
            text = own_keys[slots[at]]
            there = own_bounds[text]
            if own_bounds[text + _ONE] - there == end - start and _same(
                blob, start, own_blob, there, end - start
            ):
                break
        at = (at + _ONE) & last
    return at


@compiled
def assign(
    first: int, kinds: Array, keys: Array, bounds: Array, blob: Array, gives: Array,
    seed: np.uint64, slots: Array, own_kinds: Array, own_keys: Array, own_bounds: Array,
    own_blob: Array, counts: Array, limit: int, ids: Array,
) -> int:  # fmt: skip
    """Fill `ids` from `first` on. A name that has no id gets the next one where gives[i], else
    UNKNOWN. counts: ids and texts in the dictionary. Stops where there is no room for a name, and
    returns where that was; otherwise the number of names."""
    room = min(len(own_keys), limit)
    for i in range(first, len(keys)):
        at = _slot(
            i, kinds, keys, bounds, blob, seed, slots, own_kinds, own_keys, own_bounds, own_blob
        )
        if slots[at] != EMPTY:
            ids[i] = slots[at]
            continue
        if not gives[i]:
            ids[i] = UNKNOWN
            continue
        count, texts = counts[0], counts[1]
        if count >= room:
            return i
        key = keys[i]
        if kinds[i] == TEXT:
            start, size = bounds[key], bounds[key + _ONE] - bounds[key]
            to = own_bounds[texts]
            if texts + 2 > len(own_bounds) or to + size > len(own_blob):
                return i
            for j in range(size):
                own_blob[to + j] = blob[start + j]
            own_bounds[texts + 1] = to + size
            key = np.uint64(texts)
            counts[1] = texts + 1
        own_kinds[count], own_keys[count] = kinds[i], key
        slots[at] = np.uint32(count)
        ids[i] = np.uint32(count)
        counts[0] = count + 1
    return len(keys)


@compiled
def enter(
    first: int, count: int, kinds: Array, keys: Array, bounds: Array, blob: Array,
    seed: np.uint64, slots: Array,
) -> None:  # fmt: skip
    """Put ids first … count - 1 of a dictionary into its table. REQUIRES: it has the others."""
    for i in range(first, count):
        at = _slot(i, kinds, keys, bounds, blob, seed, slots, kinds, keys, bounds, blob)
        slots[at] = np.uint32(i)


@compiled
def remove(
    first: int, count: int, kinds: Array, keys: Array, bounds: Array, blob: Array,
    seed: np.uint64, slots: Array,
) -> None:  # fmt: skip
    """Take ids first … count - 1, the newest, out of the table, newest first."""
    for i in range(count - 1, first - 1, -1):
        at = _slot(i, kinds, keys, bounds, blob, seed, slots, kinds, keys, bounds, blob)
        slots[at] = EMPTY


@compiled
def copy_texts(texts: Array, bounds: Array, blob: Array, ends: Array, into: Array) -> None:
    """Copy these texts one behind the other; text i goes where ends[i] - its size … ends[i] - 1."""
    for i in range(len(texts)):
        start, end = bounds[texts[i]], bounds[texts[i] + _ONE]
        to = ends[i] - (end - start)
        for j in range(end - start):
            into[to + j] = blob[start + j]
