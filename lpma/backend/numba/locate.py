"""Find where each operation of a sorted batch belongs, and what it does there.

Idea: a batch is planned by *net* change, so before anything moves every run of equal keys is
folded onto the state that is stored (Definition 2) and becomes one action: insert, write,
delete or nothing. The runs of one leaf are gathered into a *touched leaf* with its net change;
touched leaves are all that the strategies look at.

Tricks: finger search (memory.leaf_of) where a sorted batch is dense enough to share its way down
the tree; runs are handled a block at a time, and the leaves of a block are asked for before those
of the block before it are read, so that cache misses overlap. Entries of a
run past its first are marked SKIP, so nothing is compacted.

Requires: operations sorted by key, arrival order within a key; a chunk starts at a run's start.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...batch import Kind
from ...jit import ONE, compiled, inlined
from ...rebalance import DELETED, MOVED
from .fold import fold
from .instructions import (
    load_u8,
    load_u64,
    prefetch,
)
from .memory import (
    HALF,
    LOW,
    MARKER,
    View,
    advance,
    count_of,
    end_fence,
    fence_of,
    leaf_of,
    lower_bound,
    prefetch_bytes,
    read_time,
    read_weight,
    segment_at,
)
from .rows import (
    DELETE,
    INSERT,
    SKIP,
    WRITE,
    BatchView,
    Leaves,
    Rows,
    get,
    operation_weight,
    prefetch_operation,
    put,
    row_action,
    row_key,
    row_place,
    set_action,
    set_position,
)

Array = npt.NDArray[Any]

BLOCK = 32
SPARSE = 4  # segments an operation from which neighbours have little in common
PREFETCHED_BYTES = 256  # of a segment's keys: all of them at 32 slots

FOLDED, PRESENT, ABSENT = range(3)  # what the runs of a batch come to
_APPEND, _DELETE = int(Kind.APPEND), int(Kind.DELETE)

# What a located chunk will do, in numbers: indices of the int64[6] tally it returns.
TOUCHED, SLOTS, MARKERS, LOOPS, LARGEST, DELETIONS = range(6)


@compiled
def new_tally() -> Array:
    """LARGEST is the largest vertex id that a new slot brings, -1 for none; the rest are sums."""
    tally = np.zeros(6, np.int64)
    tally[LARGEST] = -1
    return tally


@inlined
def settle(rows: Rows, row: int, found: bool, present: bool, tally: Array) -> int:
    """Note what the run starting at `row` does to a key that was `found` and will be `present`.
    Returns the net change."""
    if present:
        set_action(rows, row, WRITE if found else INSERT)
    else:
        set_action(rows, row, DELETE if found else SKIP)
    if present == found:
        return 0
    delta = 1 if present else -1
    key = row_key(rows, row)
    marker = (key & LOW) == MARKER
    source = np.int64(key >> HALF)
    target = source if marker else np.int64(key & LOW)
    if marker:
        tally[MARKERS] += delta
    elif source == target:
        tally[LOOPS] += delta
    if present:
        tally[LARGEST] = max(tally[LARGEST], max(source, target))
    else:
        tally[DELETIONS] += 1
    return delta


@inlined
def _find_leaves(
    v: View, batch: BatchView, rows: Rows, row: int, hi: int, starts: Array, windows: Array, p: int
) -> int:
    """Cut the next block of runs from `row` on, find the leaf window of each, from the leaf
    window p of a key no larger, and ask for its keys. starts gets one entry more than there are
    runs. Returns how many there are."""
    n = 0
    while n < BLOCK and row < hi:
        starts[n] = row
        n += 1
        key = row_key(rows, row)
        row += 1
        while row < hi and row_key(rows, row) == key:
            set_action(rows, row, SKIP)
            row += 1
    starts[n] = row
    if n == 0:
        return 0
    if (hi - row) * SPARSE < 1 << v.m:
        # Few operations for the segments there are: neighbours share little of their way, so
        # the block's walks go down abreast, and their cache misses overlap.
        _walk_abreast(v, rows, starts, windows, n)
        for i in range(n):
            _prefetch_leaf(v, windows[i])
    else:
        end = np.uint64(0)  # of the leaf's range
        for i in range(n):
            key = row_key(rows, starts[i])
            if key >= end:
                p = leaf_of(v, p, key)
                end = end_fence(v, p)
                _prefetch_leaf(v, p)
            windows[i] = p
    if batch.weight_step or batch.time_step or batch.kind_step:
        for i in range(n):
            prefetch_operation(batch, row_place(rows, starts[i]))
    return n


@inlined
def _walk_abreast(v: View, rows: Rows, starts: Array, windows: Array, n: int) -> None:
    """Find the leaf windows of n rising keys. Down to where they part the first and the last speak
    for all. From there each walk asks for what lies three levels under it, which is one line of
    fences and at last one of counts: the misses of all walks, and of three levels, overlap."""
    first, last = row_key(rows, starts[0]), row_key(rows, starts[n - 1])
    w, down = 1, v.m  # levels still to go
    while down > 0 and (first >= fence_of(v, w)) == (last >= fence_of(v, w)):
        w = 2 * w + np.int64(first >= fence_of(v, w))
        down -= 1
    windows[:n] = w
    while down > 0:
        ahead = v.fences if down > 3 else v.counts
        for i in range(n):
            w = windows[i]
            if down >= 3:
                prefetch(ahead + w * 64)
            windows[i] = 2 * w + np.int64(row_key(rows, starts[i]) >= fence_of(v, w))
        down -= 1


@inlined
def _prefetch_leaf(v: View, p: int) -> None:
    """Ask for a leaf's count and keys."""
    prefetch(v.counts + p * 8)
    keys = segment_at(v, p - (1 << v.m))[0]
    prefetch_bytes(keys, min(8 << v.shift, PREFETCHED_BYTES))


@inlined
def _find_positions(
    v: View, rows: Rows, starts: Array, windows: Array, slots: Array, n: int, folded: bool
) -> None:
    """Where each run's key stands in its leaf, or would: slots[i] is twice the position, plus one
    where the key is there; then its value is asked for, where runs are `folded`."""
    first_leaf = 1 << v.m
    for i in range(n):
        key = row_key(rows, starts[i])
        at = segment_at(v, windows[i] - first_leaf)
        count = count_of(v, windows[i])
        position = lower_bound(v, at[0], count, key)
        found = position < count and load_u64(at[0] + position * 8) == key
        slots[i] = 2 * position + np.int64(found)
        if found and folded:
            slot = advance(v, at, position)
            prefetch(slot[1])
            prefetch(slot[2])


@inlined
def _outcome_of_all(batch: BatchView) -> int:
    """What every run comes to, whatever is stored, in a batch of one operation: appending one
    positive weight, or deleting. Else FOLDED."""
    if batch.kind_step:
        return FOLDED
    kind = load_u8(batch.kind)
    if kind == _DELETE:
        return ABSENT
    plain = kind == _APPEND and not batch.weight_step and operation_weight(batch, 0) > 0
    return PRESENT if plain else FOLDED


@inlined
def _settle_run(
    v: View, batch: BatchView, rows: Rows, lo: int, hi: int, w: int, slot: int, outcome: int,
    tally: Array,
) -> int:  # fmt: skip
    """Fold the run lo … hi - 1 onto the stored state; its net change."""
    position, found = slot >> 1, (slot & 1) != 0
    present = outcome == PRESENT
    if outcome == FOLDED:
        weight, time = 0.0, 0
        if found:
            at = advance(v, segment_at(v, w - (1 << v.m)), position)
            weight, time = read_weight(v, at), read_time(v, at)
        present, _, _ = fold(v, batch, rows, lo, hi, found, weight, time)
    set_position(rows, lo, position)
    return settle(rows, lo, found, present, tally)


@inlined
def _settle_versions(rows: Rows, lo: int, hi: int, slot: int) -> int:
    """Put the run lo … hi - 1 behind the stored edge of its key, unfolded; its net change."""
    for row in range(lo, hi):
        set_position(rows, row, (slot >> 1) + (slot & 1))
        set_action(rows, row, INSERT)
    return hi - lo


@inlined
def _touch(leaves: Leaves, t: int, rank: int, lo: int, hi: int, delta: int, action: int) -> int:
    """Add a run to touched leaf t, or to a new one where it is of another rank. Returns which."""
    moved = 0 if action == WRITE else MOVED
    deleted = DELETED if action == DELETE else 0
    if t < 0 or get(leaves.rank, t) != rank:
        t += 1
        put(leaves.rank, t, rank)
        put(leaves.lo, t, lo)
        put(leaves.delta, t, delta)
        put(leaves.flags, t, moved | deleted)
    else:
        put(leaves.delta, t, get(leaves.delta, t) + delta)
        put(leaves.flags, t, get(leaves.flags, t) | moved | deleted)
    put(leaves.hi, t, hi)
    return t


@compiled
def locate(
    v: View, batch: BatchView, rows: Rows, lo: int, hi: int, leaves: Leaves, versions: bool
) -> Array:
    """Fill in rows lo … hi - 1, and a chunk's own `leaves` from index 0 on. Returns a tally.

    With `versions`, rows are not folded: each is inserted behind the stored edge of its key."""
    tally = new_tally()
    starts, next_starts = np.empty(BLOCK + 1, np.int64), np.empty(BLOCK + 1, np.int64)
    windows, next_windows = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    slots = np.empty(BLOCK, np.int64)
    outcome = _outcome_of_all(batch) if lo < hi and not versions else FOLDED
    t = -1  # the last touched leaf
    n = _find_leaves(v, batch, rows, lo, hi, starts, windows, ONE)
    while n:
        # The next block's leaves are asked for before this block's are read.
        following = _find_leaves(
            v, batch, rows, starts[n], hi, next_starts, next_windows, windows[n - 1]
        )
        _find_positions(v, rows, starts, windows, slots, n, outcome == FOLDED)
        for i in range(n):
            start, end = starts[i], starts[i + 1]
            if versions:
                delta = _settle_versions(rows, start, end, slots[i])
            else:
                delta = _settle_run(
                    v, batch, rows, start, end, windows[i], slots[i], outcome, tally
                )  # fmt: skip
            action = row_action(rows, start)
            if action != SKIP:
                t = _touch(leaves, t, windows[i] - (1 << v.m), start, end, delta, action)
                tally[SLOTS] += delta
        starts, next_starts = next_starts, starts
        windows, next_windows = next_windows, windows
        n = following
    tally[TOUCHED] = t + 1
    return tally
