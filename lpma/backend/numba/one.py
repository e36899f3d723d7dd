"""One operation at a time: an edge looked up, a vertex's neighbours copied, one update applied.

Idea: passing arguments to a kernel costs more than such an operation. So these kernels take plain
numbers only: a store is the address of its record (segments.py).

`update` applies an operation only if its leaf alone has to change, under the strategy asked for:
the slot is inserted or removed in place, and the counts above it change by one. It refuses whatever
takes more (a larger window, a level more or less, a rebuild) before it writes anything, and the
operation is applied as a batch of one row.

Requires: a segment's record outlives the call.
"""

from __future__ import annotations

import numpy as np

from ...cpu.instructions import load_i64, load_u64, store_f64, store_i64, store_u32
from ...cpu.jit import ONE, compiled, inlined
from ...pma.keys import HALF, LOW
from ..values import DELETE, INSERT, REFUSED, SKIP, WRITE
from .addressing import (
    MARKER,
    Slot,
    View,
    advance,
    count_of,
    fence_of,
    first_at_or_after,
    lower_bound,
    move_slots,
    read_time,
    read_weight,
    segment_at,
    set_count,
    slots_until,
    view_at,
    write_slot,
    write_value,
)
from .batch_view import BatchView
from .fold import apply_operation

BOUNDS_AT = 8 * len(View._fields)  # in a store's record


@inlined
def _find(v: View, key: np.uint64) -> tuple[int, int, bool]:
    """(leaf window, position there, whether the key is there)."""
    p = ONE
    for _ in range(v.m):  # faster than `leaf_of`: the end does not depend on what is read
        p = 2 * p + np.int64(key >= fence_of(v, p))
    keys, count = segment_at(v, p - (1 << v.m))[0], count_of(v, p)
    position = lower_bound(v, keys, count, key)
    return p, position, position < count and load_u64(keys + position * 8) == key


@inlined
def _slot(v: View, p: int, position: int) -> Slot:
    return advance(v, segment_at(v, p - (1 << v.m)), position)


@compiled
def find_edge(at: int, src: int, dst: int) -> tuple[bool, float, int]:
    """Whether an edge is there, its weight and its time."""
    v = view_at(at)
    p, position, found = _find(v, np.uint64(src) << HALF | np.uint64(dst))
    if not found:
        return False, 0.0, 0
    slot = _slot(v, p, position)
    return True, read_weight(v, slot), read_time(v, slot)


@compiled
def find_neighbors(at: int, src: int, ids: int, room: int) -> int:
    """How many neighbours a vertex has; the first `room` are written at address `ids`."""
    v = view_at(at)
    first = np.uint64(src) << HALF
    rank, position = first_at_or_after(v, first)
    n = slots_until(v, rank, position, first | MARKER)
    stop = ids + 4 * min(n, room)
    while ids < stop:
        keys, count = segment_at(v, rank)[0], count_of(v, (1 << v.m) + rank)
        for k in range(position, min(count, position + (stop - ids) // 4)):
            store_u32(ids, np.uint32(load_u64(keys + k * 8) & LOW))
            ids += 4
        rank, position = rank + 1, 0
    return n


@inlined
def _fits(
    v: View, at: int, p: int, other: int, change: int, from_top: bool, least_held: int
) -> bool:
    """Whether the count of leaf window p may change without a larger window being rebalanced.
    `other` is a leaf of the same store whose count changes alike, 0 for none."""
    held = count_of(v, 1)
    if held < least_held:
        return False
    if change == 0:
        return True
    most = at + BOUNDS_AT
    least = most + 8 * (v.m + 1)
    for layer in range(v.m + 1):
        if layer == 0 or layer == v.m or from_top:
            w = p >> layer
            by = change + change * np.int64(other >> layer == w)
            after = count_of(v, w) + by
            if by > 0 and after > load_i64(most + 8 * layer):
                return False
            if by < 0 and v.m > 0 and after < load_i64(least + 8 * layer):
                return False
    return True


@inlined
def _put(v: View, key: np.uint64, change: int, weight: float, time: int) -> int:
    """Insert a key, delete it, or overwrite its value, in its leaf. Returns what the leaf holds
    then."""
    p, position, _ = _find(v, key)
    slot, behind = _slot(v, p, position), count_of(v, p) - position
    if change > 0:
        move_slots(v, advance(v, slot, 1), slot, behind)
        write_slot(v, slot, key, weight, time)
    elif change < 0:
        move_slots(v, slot, advance(v, slot, 1), behind - 1)
    else:
        write_value(v, slot, weight, time)
    w = p if change else 0
    while w:
        set_count(v, w, count_of(v, w) + change)
        w >>= 1
    return count_of(v, p)


@compiled
def update(
    at: int, back_at: int, src: int, dst: int, kind: int, weight: float, time: int,
    from_top: bool, back_from_top: bool, least_held: int, operation: int,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Apply one update: see protocol.Better.update_one. `back_at` is the record of the store that
    holds (dst, src), or 0; `operation` the address of three words."""
    store_i64(operation, kind)
    store_f64(operation + 8, weight)
    store_i64(operation + 16, time)
    batch = BatchView(operation, 0, operation + 8, 0, 1, operation + 16, 0, 0)
    v, key = view_at(at), np.uint64(src) << HALF | np.uint64(dst)
    p, position, found = _find(v, key)
    old_weight, old_time = 0.0, 0
    if found:
        slot = _slot(v, p, position)
        old_weight, old_time = read_weight(v, slot), read_time(v, slot)
    present, weight, time, why = apply_operation(
        v, batch, 0, np.uint64(dst) == MARKER, found, old_weight, old_time
    )
    if not (present or found):
        return SKIP, why, 0, 0
    change = np.int64(present) - np.int64(found)
    back, back_key, back_p = v, np.uint64(dst) << HALF | np.uint64(src), 0
    if back_at:
        back = view_at(back_at)
        back_p = _find(back, back_key)[0]
    same = back_at == at
    fits = _fits(v, at, p, back_p if same else 0, change, from_top, least_held)
    if fits and back_at:
        other = p if same else 0
        fits = _fits(back, back_at, back_p, other, change, back_from_top, least_held)
    if not fits:
        return REFUSED, why, 0, 0
    held, back_held = _put(v, key, change, weight, time), 0
    if back_at:
        back_held = _put(back, back_key, change, weight, time)
        if same and back_p == p:
            held, back_held = back_held, -1
    return WRITE if change == 0 else INSERT if change > 0 else DELETE, why, held, back_held
