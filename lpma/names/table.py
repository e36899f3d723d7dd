"""An open-addressing hash table from names to ids, compiled.

Idea: names lie in the dictionary's own columns, by id. A slot of the table holds an id and a tag,
32 bits of the name's hash, at most half of the slots are filled, and a probe compares names only
where the tags are equal. So a name of text takes its bytes and 30 to 60 more, a third of a Python
dict. Only the newest ids are removed, newest first: so linear probing needs no tombstones.

Tricks: the place of a name is the low bits of its tag, so that a table that grows is filled without
a look at the names. All tags of a column are computed first; then what a probe will read is asked
for a few names ahead, because in a large table it is in no cache.

A hash starts from a secret seed, so that nobody can send names that collide (cpu/splitmix.py); text
is mixed 8 bytes at a time. Nothing else depends on where a name stands in the table.

A column of names (column.py) and the dictionary have the same form:

    kinds   uint8[n]   UNSIGNED, NEGATIVE or TEXT
    keys    uint64[n]  an integer's bits, or which of the texts it is
    bounds  int64[t+1] text i is blob[bounds[i]:bounds[i+1]], UTF-8
    blob    uint8

Kernels are given arrays by their id(): see `data` in `cpu/instructions.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arguments.convert import MAX_VERTEX
from ..cpu.instructions import (
    data,
    load_i64,
    load_text,
    load_u8,
    load_u32,
    load_u64,
    move_bytes,
    prefetch,
    store_i64,
    store_u8,
    store_u32,
    store_u64,
)
from ..cpu.jit import compiled, inlined
from ..cpu.kernel_hash import mixed

EMPTY = np.uint64(0xFFFF_FFFF_FFFF_FFFF)  # a slot
UNKNOWN = np.uint32(MAX_VERTEX)  # the id of every name that has none
UNSIGNED, NEGATIVE, TEXT = np.uint8(0), np.uint8(1), np.uint8(2)  # what a key is

_AHEAD = 12  # names
_S8, _S32 = np.uint64(8), np.uint64(32)
_LOW = np.uint64(0xFFFF_FFFF)


class Names(NamedTuple):
    """The addresses of the arrays of a column of names, or of the dictionary."""

    kinds: int
    keys: int
    bounds: int
    blob: int


@inlined
def _names(kinds: int, keys: int, bounds: int, blob: int) -> Names:
    return Names(data(kinds), data(keys), data(bounds), data(blob))


@inlined
def _text(names: Names, i: int) -> tuple[int, int]:
    """(address, size) of name i, which is text."""
    at = names.bounds + 8 * np.int64(load_u64(names.keys + 8 * i))
    start = load_i64(at)
    return names.blob + start, load_i64(at + 8) - start


@inlined
def _mixed_text(at: int, size: int, seed: np.uint64) -> np.uint64:
    z = mixed(np.uint64(size), ~seed)
    while size >= 8:
        z = mixed(load_text(at), z)
        at += 8
        size -= 8
    word = np.uint64(0)
    for i in range(size):
        word = word << _S8 | np.uint64(load_u8(at + i))
    return mixed(word, z)


@inlined
def _tag(names: Names, i: int, seed: np.uint64) -> np.uint64:
    """32 bits of the hash of name i."""
    if load_u8(names.kinds + i) == TEXT:
        at, size = _text(names, i)
        return _mixed_text(at, size, seed) >> _S32
    return mixed(load_u64(names.keys + 8 * i), seed) >> _S32


@inlined
def _equal(a: int, b: int, size: int) -> bool:
    """Whether two texts of one size are equal."""
    while size >= 8:
        if load_text(a) != load_text(b):
            return False
        a += 8
        b += 8
        size -= 8
    same = True
    for i in range(size):
        same = same and load_u8(a + i) == load_u8(b + i)
    return same


@inlined
def _same(names: Names, i: int, own: Names, id: int) -> bool:
    """Whether name i of a column is that of an id."""
    kind = load_u8(names.kinds + i)
    if load_u8(own.kinds + id) != kind:
        return False
    if kind != TEXT:
        return load_u64(names.keys + 8 * i) == load_u64(own.keys + 8 * id)
    at, size = _text(names, i)
    there, length = _text(own, id)
    return size == length and _equal(at, there, size)


@inlined
def _slot(names: Names, i: int, tag: np.uint64, own: Names, slots: int, last: np.uint64) -> Any:
    """The address of the slot of name i of a column, or of the empty one where it belongs."""
    place = tag & last
    while True:
        at = slots + 8 * np.int64(place)
        slot = load_u64(at)
        if slot == EMPTY:
            return at
        if slot >> _S32 == tag and _same(names, i, own, np.int64(slot & _LOW)):
            return at
        place = (place + np.uint64(1)) & last


@compiled
def hash(kinds: int, keys: int, bounds: int, blob: int, n: int, seed: np.uint64, tags: int) -> None:
    """Fill tags, uint32[n], with those of the names."""
    names, tags = _names(kinds, keys, bounds, blob), data(tags)
    for i in range(n):
        store_u32(tags + 4 * i, np.uint32(_tag(names, i, seed)))


@compiled
def assign(
    first: int, n: int, kinds: int, keys: int, bounds: int, blob: int, gives: int, tags: int,
    slots: int, last: int, own_kinds: int, own_keys: int, own_bounds: int, own_blob: int,
    counts: int, room: int, text_room: int, blob_room: int, ids: int,
) -> int:  # fmt: skip
    """Fill `ids` from `first` on. A name that has no id gets the next one where gives[i], else
    UNKNOWN. counts: int64[2], ids and texts in the dictionary; room, text_room and blob_room are
    for so many in all. Returns n, or where there was no room for a name."""
    names = _names(kinds, keys, bounds, blob)
    own = _names(own_kinds, own_keys, own_bounds, own_blob)
    gives, tags, slots, ids, counts = data(gives), data(tags), data(slots), data(ids), data(counts)
    mask = np.uint64(last)
    for i in range(first, n):
        if i + _AHEAD < n:
            _fetch(tags + 4 * i, own, slots, mask)
            _fetch_text(names, i)
        tag = np.uint64(load_u32(tags + 4 * i))
        at = _slot(names, i, tag, own, slots, mask)
        slot = load_u64(at)
        if slot != EMPTY:
            store_u32(ids + 4 * i, np.uint32(slot & _LOW))
            continue
        if not load_u8(gives + i):
            store_u32(ids + 4 * i, UNKNOWN)
            continue
        count = load_i64(counts)
        if count >= room:
            return i
        kind, key = load_u8(names.kinds + i), load_u64(names.keys + 8 * i)
        if kind == TEXT:
            texts = load_i64(counts + 8)
            source, size = _text(names, i)
            start = load_i64(own.bounds + 8 * texts)
            if texts >= text_room or start + size > blob_room:
                return i
            move_bytes(own.blob + start, source, size)
            store_i64(own.bounds + 8 * (texts + 1), start + size)
            store_i64(counts + 8, texts + 1)
            key = np.uint64(texts)
        store_u8(own.kinds + count, kind)
        store_u64(own.keys + 8 * count, key)
        store_u64(at, tag << _S32 | np.uint64(count))
        store_i64(counts, count + 1)
        store_u32(ids + 4 * i, np.uint32(count))
    return n


@compiled
def first_seen(codes: int, n: int, seen: int, order: int) -> int:
    """Write the different ones of n codes to `order`, int64, as they first appear. seen: uint8, a
    zero for each code there may be, and 1 afterwards for those that appear. Returns how many."""
    codes, seen, order = data(codes), data(seen), data(order)
    count = 0
    for i in range(n):
        code = load_i64(codes + 8 * i)
        if not load_u8(seen + code):
            store_u8(seen + code, np.uint8(1))
            store_i64(order + 8 * count, code)
            count += 1
    return count


@inlined
def _fetch(tags: int, own: Names, slots: int, last: np.uint64) -> None:
    """Ask for what later names will read: the slot of one, and the columns of a nearer one's id."""
    far = np.uint64(load_u32(tags + 4 * _AHEAD)) & last
    prefetch(slots + 8 * np.int64(far))
    near = load_u64(slots + 8 * np.int64(np.uint64(load_u32(tags + 2 * _AHEAD)) & last))
    if near != EMPTY:
        id = np.int64(near & _LOW)
        prefetch(own.kinds + id)
        prefetch(own.keys + 8 * id)


@inlined
def _fetch_text(names: Names, i: int) -> None:
    """Ask for the text of later names, which lies anywhere if the names are not in its order."""
    if load_u8(names.kinds + i + _AHEAD) == TEXT:
        prefetch(names.bounds + 8 * np.int64(load_u64(names.keys + 8 * (i + _AHEAD))))
    if load_u8(names.kinds + i + _AHEAD // 2) == TEXT:
        prefetch(_text(names, i + _AHEAD // 2)[0])


@compiled
def enter(old: int, n: int, slots: int, last: int) -> None:
    """Put what is in the n slots of an old table into an empty one."""
    old, slots = data(old), data(slots)
    mask = np.uint64(last)
    for i in range(n):
        slot = load_u64(old + 8 * i)
        if slot == EMPTY:
            continue
        place = (slot >> _S32) & mask
        while load_u64(slots + 8 * np.int64(place)) != EMPTY:
            place = (place + np.uint64(1)) & mask
        store_u64(slots + 8 * np.int64(place), slot)


@compiled
def remove(
    first: int, count: int, kinds: int, keys: int, bounds: int, blob: int, seed: np.uint64,
    slots: int, last: int,
) -> None:  # fmt: skip
    """Take ids first … count - 1, the newest, out of the table, newest first."""
    own, slots = _names(kinds, keys, bounds, blob), data(slots)
    mask = np.uint64(last)
    for i in range(count - 1, first - 1, -1):
        store_u64(_slot(own, i, _tag(own, i, seed), own, slots, mask), EMPTY)
