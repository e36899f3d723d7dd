"""A hash table from ids to 32 bits beside each: how many edges go into it, or which row it is.

Idea: open addressing with linear probing. A slot is one word, the id and one above, the number
below, so that a look reads one cache line; 0 is empty. At most half of the slots are used. An id
whose number falls to 0 keeps its slot until the table grows: so no probe meets a new gap.

The place of an id is the upper bits of its product with a secret odd number (Dietzfelbinger et al.,
"A reliable randomized algorithm for the closest-pair problem", 1997), so that nobody can send ids
that collide.

A key is source << 32 | target; one whose target is 2^32 - 1 marks a vertex, and is no edge.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from ..arrays import Array
from ..pma.keys import HALF, LOW
from .instructions import (
    data,
    data_if_any,
    load_i64,
    load_u8,
    load_u32,
    load_u64,
    prefetch,
    store_i64,
    store_u32,
    store_u64,
)
from .jit import compiled, inlined
from .threads import cuts, run_all

ONE = np.uint64(1)
AHEAD = 16  # entries whose slots are asked for before they are needed
FIRST_BITS = 10
PIECE = 1 << 16  # entries that a thread looks up per turn


class IdTable:
    """The table. Not thread-safe. Its arrays are replaced, never resized."""

    def __init__(self, ids: int = 0) -> None:
        """With room for so many ids."""
        self._factor = secrets.randbits(64) | 1
        self._bits = max(FIRST_BITS, 1 + ids.bit_length())
        self._slots = np.zeros(1 << self._bits, np.uint64)
        self._used = np.zeros(1, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return self._slots.nbytes

    def count(self, keys: Array, inserted: Array | None = None) -> None:
        """Count edges that came or went, by their targets, in order. keys: uint64[n]; inserted:
        bool[n], None: all came. REQUIRES: what goes was counted. Raises MemoryError, after which
        the numbers are those of some of the keys."""
        done, n, came = 0, len(keys), 0 if inserted is None else id(inserted)
        while True:
            done = count(done, n, id(keys), came, *self._table, id(self._used))
            if done == n:
                return
            self._grow()

    def number(self, ids: Array) -> None:
        """Set the number of ids[i] to i + 1. ids: uint32[n], none twice. REQUIRES: there is room
        for them."""
        number(len(ids), id(ids), *self._table)

    def ids(self) -> Array:
        """uint32, in no order: the ids whose number is not 0."""
        counted = self._slots[self._slots & LOW != 0]
        return ((counted >> HALF) - ONE).astype(np.uint32)

    def numbers(self, ids: Array) -> Array:
        """uint32[n]: the number of each of n ids; 0 for what is not there. ids: uint32[n], or the
        lower halves of uint64[n]."""
        ids, found = np.ascontiguousarray(ids), np.empty(len(ids), np.uint32)
        of = id(ids), ids.itemsize, *self._table, id(found)
        run_all(look_up, [(*cut, *of) for cut in cuts(len(ids), PIECE, 4)])
        return found

    def number_of(self, id: int) -> int:
        """The same of one id."""
        return int(of_one(id, *self._table))

    @property
    def _table(self) -> tuple[int, np.uint64, int]:
        return id(self._slots), np.uint64(self._factor), self._bits

    def _grow(self) -> None:
        """Move to a table of twice the slots; ids whose number is 0 stay behind."""
        old, bits = self._slots, self._bits + 1
        slots = np.zeros(1 << bits, np.uint64)
        used = enter(len(old), id(old), id(slots), np.uint64(self._factor), bits)
        self._slots, self._bits = slots, bits
        self._used[0] = used


@inlined
def _home(id: np.uint64, slots: int, factor: np.uint64, bits: int) -> Any:
    """The address of the first slot that an id may have."""
    return slots + 8 * np.int64((id * factor) >> np.uint64(64 - bits))


@inlined
def _slot(id: np.uint64, slots: int, factor: np.uint64, bits: int) -> Any:
    """The address of an id's slot, or of the empty one where it belongs, and what is there."""
    at, end = _home(id, slots, factor, bits), slots + (8 << bits)
    while True:
        word = load_u64(at)
        if word == 0 or word >> HALF == id + ONE:
            return at, word
        at += 8
        if at == end:
            at = slots


@compiled
def count(
    first: int, n: int, keys: int, inserted: int, slots: int, factor: np.uint64, bits: int,
    used: int,
) -> int:  # fmt: skip
    """Count keys first … n - 1. inserted: 0 if all came. used: int64[1], the slots in use. Returns
    where it stopped, since half of the slots are used; otherwise n."""
    keys, inserted, slots, used = data(keys), data_if_any(inserted), data(slots), data(used)
    taken, most = load_i64(used), np.int64(1) << (bits - 1)
    for i in range(first, n):
        if i + AHEAD < n:
            prefetch(_home(load_u64(keys + 8 * (i + AHEAD)) & LOW, slots, factor, bits))
        target = load_u64(keys + 8 * i) & LOW
        if target == LOW:
            continue
        at, word = _slot(target, slots, factor, bits)
        if word == 0:
            if taken == most:
                store_i64(used, taken)
                return i
            taken += 1
            word = (target + ONE) << HALF
        came = inserted == 0 or load_u8(inserted + i) != 0
        store_u64(at, word + ONE if came else word - ONE)
    store_i64(used, taken)
    return n


@compiled
def number(n: int, ids: int, slots: int, factor: np.uint64, bits: int) -> None:
    """See IdTable.number."""
    ids, slots = data(ids), data(slots)
    for i in range(n):
        if i + AHEAD < n:
            prefetch(_home(np.uint64(load_u32(ids + 4 * (i + AHEAD))), slots, factor, bits))
        id = np.uint64(load_u32(ids + 4 * i))
        store_u64(_slot(id, slots, factor, bits)[0], (id + ONE) << HALF | np.uint64(i + 1))


@compiled
def enter(n: int, old: int, slots: int, factor: np.uint64, bits: int) -> int:
    """Put what has a number in the n slots of an old table into an empty one. Returns how many."""
    old, slots, taken = data(old), data(slots), 0
    for i in range(n):
        word = load_u64(old + 8 * i)
        if word & LOW:
            store_u64(_slot((word >> HALF) - ONE, slots, factor, bits)[0], word)
            taken += 1
    return taken


@inlined
def _id_at(ids: int, width: int, i: int) -> np.uint64:
    return np.uint64(load_u32(ids + width * i))  # of eight bytes, the lower half


@compiled
def look_up(
    first: int, last: int, ids: int, width: int, slots: int, factor: np.uint64, bits: int,
    found: int,
) -> None:  # fmt: skip
    """Write the numbers of ids first … last - 1, each of `width` bytes."""
    ids, slots, found = data(ids), data(slots), data(found)
    for i in range(first, last):
        if i + AHEAD < last:
            prefetch(_home(_id_at(ids, width, i + AHEAD), slots, factor, bits))
        word = _slot(_id_at(ids, width, i), slots, factor, bits)[1]
        store_u32(found + 4 * i, np.uint32(word & LOW))


@compiled
def of_one(id: int, slots: int, factor: np.uint64, bits: int) -> np.uint64:
    """The number of one id."""
    return _slot(np.uint64(id), data(slots), factor, bits)[1] & LOW
