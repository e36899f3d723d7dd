"""Slots by address: how compiled kernels see levels that are separate allocations.

The number of levels changes while the program runs, so a kernel gets a table of addresses, one
per level and column, in place of the arrays themselves (a CUDA kernel gets the same table). A
*slot address* is the tuple (key, weight, time) of a slot's three byte addresses; columns
that are off have tables all the same, of zeros: they begin at 0, advance by 0 bytes and are never
read or written. So a slot's address is found without asking which columns there are.

Every record a kernel gets is a tuple of integers, for a second reason: an array inside a tuple
costs Numba two atomic updates of its reference count at each use, and two threads that share
the array then wait for each other at every slot.

Requires: the arrays behind an address outlive the call. `Segments` and `Located` see to that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...cpu.instructions import (
    COMPARED,
    GROUP,
    expand_u32,
    expand_u64,
    load_f32,
    load_f64,
    load_i64,
    load_u32,
    load_u64,
    move_bytes,
    ones,
    prefetch,
    smaller_keys,
    store_f32,
    store_f64,
    store_i64,
    store_u32,
    store_u64,
    trailing_zeros,
)
from ...cpu.jit import ZERO, inlined

MARKER = np.uint64(0xFFFFFFFF)  # the dst half of a vertex marker's key
FEW_SLOTS = 12
NEAR = 4  # segments in which the end of a row is looked for before the tree is asked
EVERY = (1 << GROUP) - 1  # of a group

Slot = tuple[int, int, int]  # the addresses of its key, its weight and its time


class View(NamedTuple):
    """What a kernel needs to know of a store. Bytes per slot are 0 for a column that is off."""

    m: int  # levels beside the head; 2^m segments
    shift: int  # log2 of the segment size
    weight_bytes: int  # 0, 4 or 8
    time_bytes: int  # 0 or 8
    # Tables of the levels' columns, int64[m + 1] of addresses: one of zeros if a column is off.
    keys: int  # uint64[level_slots(x)] for level x (layout.py)
    weights: int  # float32 or float64, by weight_bytes
    times: int  # int64
    fences: int  # uint64[2^m] by heap number; [0] unused
    counts: int  # int64[2^(m+1)] by window; [0] unused


@inlined
def view_at(at: int) -> View:
    """The one whose words are at an address."""
    return View(
        load_i64(at), load_i64(at + 8), load_i64(at + 16), load_i64(at + 24), load_i64(at + 32),
        load_i64(at + 40), load_i64(at + 48), load_i64(at + 56), load_i64(at + 64),
    )  # fmt: skip


@inlined
def level_and_offset(rank: int, m: int) -> tuple[int, int]:
    """The allocation that holds segment `rank`, and its index there. 0 <= rank < 2^m."""
    if rank == 0:
        return 0, 0
    z = trailing_zeros(rank)
    return m - z, rank >> (z + 1)


@inlined
def place_in_level(level: int, offset: int) -> int:
    """Where a segment lies in its level's allocation, in segments: see layout.py."""
    if level < 3:
        return offset
    part = (offset & 1) << 1 | (offset & 2) >> 1
    return part << (level - 3) | offset >> 2


@inlined
def heap_number(rank: int, m: int) -> int:
    """The segment's number in the tree; the window that its fence splits. 0 for the head."""
    if rank == 0:
        return 0
    return ((1 << m) + rank) >> (trailing_zeros(rank) + 1)


@inlined
def fence_of(v: View, window: int) -> np.uint64:
    return load_u64(v.fences + window * 8)


@inlined
def set_fence(v: View, window: int, fence: np.uint64) -> None:
    store_u64(v.fences + window * 8, fence)


@inlined
def count_of(v: View, window: int) -> int:
    """The filled slots of a window."""
    return load_i64(v.counts + window * 8)


@inlined
def set_count(v: View, window: int, count: int) -> None:
    store_i64(v.counts + window * 8, count)


@inlined
def segment_at(v: View, rank: int) -> Slot:
    """The address of the first slot of segment `rank`."""
    level, offset = level_and_offset(rank, v.m)
    slot = place_in_level(level, offset) << v.shift
    return (
        load_i64(v.keys + level * 8) + slot * 8,
        load_i64(v.weights + level * 8) + slot * v.weight_bytes,
        load_i64(v.times + level * 8) + slot * v.time_bytes,
    )


@inlined
def advance(v: View, at: Slot, n: int) -> Slot:
    """The address n slots further on in the same segment or buffer."""
    return (at[0] + n * 8, at[1] + n * v.weight_bytes, at[2] + n * v.time_bytes)


def further(v: View, at: Slot, n: int) -> Slot:
    """The same outside kernels."""
    return (at[0] + n * 8, at[1] + n * v.weight_bytes, at[2] + n * v.time_bytes)


@inlined
def move_slots(v: View, to: Slot, source: Slot, n: int) -> None:
    """Copy n slots, every column; the ranges may overlap."""
    if n > 0:
        move_bytes(to[0], source[0], n * 8)
        move_values(v, to, source, n)


@inlined
def move_values(v: View, to: Slot, source: Slot, n: int) -> None:
    """Copy the weights and times of n slots."""
    if v.weight_bytes:
        move_bytes(to[1], source[1], n * v.weight_bytes)
    if v.time_bytes:
        move_bytes(to[2], source[2], n * 8)


@inlined
def copy_slots(v: View, to: Slot, source: Slot, n: int) -> None:
    """Copy n slots, every column, to memory that does not overlap. A few are copied one by one:
    blocks between two insertions are short, and a call of memmove costs as much as several
    slots."""
    if n > FEW_SLOTS:
        move_slots(v, to, source, n)
        return
    for i in range(n):
        copy_slot(v, to, source, i, i)


@inlined
def copy_slot(v: View, to: Slot, source: Slot, i: int, j: int) -> None:
    """Copy the slot j places after `source` to the one i places after `to`."""
    store_u64(to[0] + i * 8, load_u64(source[0] + j * 8))
    if v.weight_bytes == 4:
        store_u32(to[1] + i * 4, load_u32(source[1] + j * 4))
    elif v.weight_bytes == 8:
        store_u64(to[1] + i * 8, load_u64(source[1] + j * 8))
    if v.time_bytes:
        store_u64(to[2] + i * 8, load_u64(source[2] + j * 8))


@inlined
def expand_slots(v: View, to: Slot, source: Slot, where: int) -> None:
    """Write GROUP slots: the next one from `source` where a bit is set, else zeros."""
    expand_u64(to[0], source[0], where)
    if v.weight_bytes == 4:
        expand_u32(to[1], source[1], where)
    elif v.weight_bytes == 8:
        expand_u64(to[1], source[1], where)
    if v.time_bytes:
        expand_u64(to[2], source[2], where)


@inlined
def read_weight(v: View, at: Slot) -> float:
    """The weight at a slot; 0 if the store keeps none."""
    if v.weight_bytes == 4:
        return np.float64(load_f32(at[1]))
    if v.weight_bytes == 8:
        return load_f64(at[1])
    return 0.0


@inlined
def read_time(v: View, at: Slot) -> int:
    """The time at a slot; 0 if the store keeps none."""
    if v.time_bytes:
        return load_i64(at[2])
    return 0


@inlined
def write_value(v: View, at: Slot, weight: float, time: int) -> None:
    """Overwrite weight and time at a slot."""
    if v.weight_bytes == 4:
        store_f32(at[1], np.float32(weight))
    elif v.weight_bytes == 8:
        store_f64(at[1], weight)
    if v.time_bytes:
        store_i64(at[2], time)


@inlined
def write_slot(v: View, at: Slot, key: np.uint64, weight: float, time: int) -> None:
    """Fill a slot."""
    store_u64(at[0], key)
    write_value(v, at, weight, time)


@inlined
def leaf_of(v: View, start: int, key: np.uint64) -> int:
    """The leaf window that `key` belongs to.

    `start` is the leaf window of a key no larger (or 1). From there the walk climbs only as far
    as it must: in a sorted batch neighbours share most of their way (a finger search). An even
    window is a left half, so the fence of the window around it is its upper end; an odd window
    shares its upper end with the window around it."""
    p = start
    while p > 1:
        if (p & 1) == 0 and key < fence_of(v, p >> 1):
            break
        p >>= 1
    leaves = 1 << v.m
    while p < leaves:
        p = 2 * p + np.int64(key >= fence_of(v, p))
    return p


@inlined
def end_fence(v: View, p: int) -> np.uint64:
    """The end of leaf window p's range: the fence of the next segment; above every key for the
    last."""
    p += 1
    if p == 2 << v.m:
        return np.uint64(0xFFFFFFFFFFFFFFFF)
    return fence_of(v, p >> (trailing_zeros(p) + 1))


@inlined
def lower_bound(v: View, keys: int, count: int, key: np.uint64) -> int:
    """How many of a segment's keys, `count` at address `keys`, are smaller than `key`. Without a
    branch on what is read: which half is taken cannot be predicted, but can be computed. The
    last COMPARED slots, filled or not, are compared all at once."""
    span = 1 << v.shift
    if span < COMPARED:
        smaller = 0
        for i in range(count):
            smaller += np.int64(load_u64(keys + i * 8) < key)
        return smaller
    low = 0
    while span > COMPARED:
        span >>= 1
        middle = low + span
        low += span * np.int64((middle <= count) & (load_u64(keys + (middle - 1) * 8) < key))
    filled = (1 << min(count - low, COMPARED)) - 1
    return low + ones(smaller_keys(keys + low * 8, key) & filled)


@inlined
def prefetch_bytes(start: int, size: int) -> None:
    """Prefetch the cache lines of a short range."""
    for line in range(start & ~63, start + size, 64):
        prefetch(line)


@inlined
def prefetch_values(v: View, at: Slot, n: int) -> None:
    """Prefetch the lines of n slots' weights and times."""
    prefetch_bytes(at[1], n * v.weight_bytes)
    prefetch_bytes(at[2], n * v.time_bytes)


@inlined
def first_at_or_after(v: View, key: np.uint64) -> tuple[int, int]:
    """(rank, position) of the first filled slot whose key is not smaller than `key`; rank 2^m if
    there is none."""
    return first_from(v, leaf_before(v, 1, key), key)


@inlined
def leaf_before(v: View, start: int, key: np.uint64) -> int:
    """The last leaf window whose fence is smaller than `key`. start: that of a key no larger, or 1,
    from where the walk climbs as in `leaf_of`."""
    return leaf_of(v, start, key - np.uint64(key > 0))


@inlined
def first_from(v: View, p: int, key: np.uint64) -> tuple[int, int]:
    """As `first_at_or_after`. p: what `leaf_before` gives."""
    leaves = 1 << v.m
    rank = p - leaves
    count = count_of(v, p)
    position = lower_bound(v, segment_at(v, rank)[0], count, key)
    while position >= count:
        rank += 1
        position = 0
        if rank == leaves:
            break
        count = count_of(v, leaves + rank)
    return rank, position


@inlined
def slots_between(v: View, first: int, last: int) -> int:
    """The filled slots of segments first … last - 1: of the few windows that they make up."""
    low, high, slots = (1 << v.m) + first, (1 << v.m) + last, 0
    while low < high:
        if low & 1:
            slots += count_of(v, low)
            low += 1
        if high & 1:
            high -= 1
            slots += count_of(v, high)
        low >>= 1
        high >>= 1
    return slots


@inlined
def slots_until(v: View, rank: int, position: int, end: np.uint64) -> int:
    """How many slots there are from (rank, position) on with keys below `end`. REQUIRES:
    `first_at_or_after` gave the place for a key that is not above `end`."""
    leaves, n = 1 << v.m, ZERO
    for _ in range(NEAR):  # most rows end in the segment that they begin in, or in the next
        if rank == leaves:
            return n
        count = count_of(v, leaves + rank)
        here = lower_bound(v, segment_at(v, rank)[0], count, end)
        if here < count:
            return n + here - position
        rank, position, n = rank + 1, ZERO, n + count - position
    last, there = first_at_or_after(v, end)
    return n + slots_between(v, rank, last) + there
