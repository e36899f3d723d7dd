"""Find where each operation of a sorted batch belongs, and what it does there.

Idea: a batch is planned by *net* change, so before anything moves every run of equal keys is
folded onto the state that is stored (Definition 2) and becomes one action: insert, write,
delete or nothing (fold.py). The runs of one leaf are gathered into a *touched leaf* with its
net change; touched leaves are all that the strategies look at.

Tricks: where segments outnumber operations, runs are handled a block at a time. The walks of a
block go down abreast, and its leaves are prefetched before those of the previous block are read, so
that cache misses overlap. Where operations outnumber segments, most leaves take some in: then the
walk goes leaf by leaf, the next one being found from the last (a finger search, `leaf_of`), and
those a little further on are prefetched. Entries of a run after its first are marked SKIP, so
nothing is compacted.

Requires: operations sorted by key, arrival order within a key; a chunk starts at a run's start.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ...cpu.instructions import load_u64, move_bytes, prefetch
from ...cpu.jit import ONE, ZERO, compiled, inlined
from ...pma.keys import HALF, LOW
from ..values import DELETE, SKIP, WRITE
from .addressing import (
    View,
    advance,
    count_of,
    end_fence,
    fence_of,
    leaf_of,
    lower_bound,
    prefetch_bytes,
    prefetch_values,
    segment_at,
)
from .batch_view import (
    BatchView,
    Leaves,
    Rows,
    brings_columns,
    get,
    prefetch_operation,
    put,
    row_action,
    row_key,
    row_place,
    set_action,
)
from .fold import (
    FOLDED,
    LARGEST,
    LOOPS,
    PRESENT,
    SLOTS,
    TOUCHED,
    new_tally,
    outcome_of_all,
    settle_append,
    settle_run,
)
from .rebalance import DELETED, MOVED

BLOCK = 32  # runs
ROWS_PER_TASK = 1024
LEAVES_AHEAD = 4  # between asking for a leaf and reading it
OPERATIONS_AHEAD = 16  # between asking for an operation and reading it
PREFETCHED = 32  # slots of a segment, at most


@inlined
def cut_runs(rows: Rows, row: int, hi: int, most: int, starts: Array) -> int:
    """Write where each of the next runs starts, `most` of them at most, and where the last one
    ends; mark their rows. Returns how many there are. No branch depends on where a run ends."""
    if row == hi:
        starts[0] = row
        return 0
    n, start, before = ZERO, row, row_key(rows, row)
    starts[0] = row
    row += 1
    while row < hi and n < most:
        set_action(rows, row, SKIP)  # settling overwrites it where a run starts
        key = row_key(rows, row)
        differs = key != before
        start = row if differs else start
        n += np.int64(differs)
        starts[n] = start
        before = key
        row += 1
    if n < most:
        n += 1
        starts[n] = hi
    return n


@inlined
def mark_run(rows: Rows, row: int, hi: int) -> int:
    """The end of the run that starts at `row`; its rows after the first are marked."""
    key = row_key(rows, row)
    row += 1
    while row < hi and row_key(rows, row) == key:
        set_action(rows, row, SKIP)
        row += 1
    return row


@inlined
def flags_of(action: int) -> int:
    return (0 if action == WRITE else MOVED) | (DELETED if action == DELETE else 0)


@inlined
def write_leaf(leaves: Leaves, t: int, rank: int, lo: int, hi: int, delta: int, flags: int) -> None:
    put(leaves.rank, t, rank)
    put(leaves.lo, t, lo)
    put(leaves.hi, t, hi)
    put(leaves.delta, t, delta)
    put(leaves.flags, t, flags)


@inlined
def touch(leaves: Leaves, t: int, rank: int, lo: int, hi: int, delta: int, flags: int) -> int:
    """Add a run to touched leaf t, or to a new one if it belongs to another rank. Returns which."""
    if t < 0 or get(leaves.rank, t) != rank:
        t += 1
        write_leaf(leaves, t, rank, lo, hi, delta, flags)
        return t
    put(leaves.hi, t, hi)
    put(leaves.delta, t, get(leaves.delta, t) + delta)
    put(leaves.flags, t, get(leaves.flags, t) | flags)
    return t


@inlined
def find_leaves(
    v: View, batch: BatchView, rows: Rows, row: int, hi: int, starts: Array, windows: Array
) -> int:
    """Cut the next block of runs from `row` on, find the leaf window of each, prefetch its keys.
    starts gets one entry more than there are runs. Returns how many there are."""
    n = cut_runs(rows, row, hi, BLOCK, starts)
    if n == 0:
        return 0
    _walk_abreast(v, rows, starts, windows, n)
    before = ZERO
    for i in range(n):
        if windows[i] != before:
            before = windows[i]
            prefetch(v.counts + before * 8)
            _prefetch_leaf(v, before, False)
    if brings_columns(batch):
        for i in range(n):
            prefetch_operation(batch, row_place(rows, starts[i]))
    return n


@inlined
def _walk_abreast(v: View, rows: Rows, starts: Array, windows: Array, n: int) -> None:
    """Find the leaf windows of n rising keys. Until the first and the last part, they stand for
    all. From there each walk prefetches what lies three levels below, which is one line of fences
    and at last one of counts: the misses of all walks, and of three levels, overlap."""
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
def _prefetch_leaf(v: View, p: int, values: bool) -> None:
    """Prefetch a leaf's keys, and with `values` its weights and times."""
    at, size = segment_at(v, p - (1 << v.m)), min(1 << v.shift, PREFETCHED)
    prefetch_bytes(at[0], size * 8)
    if values:
        prefetch_values(v, at, size)


@inlined
def _slot_of(v: View, keys: int, count: int, key: np.uint64) -> int:
    """Twice the position of a key in a leaf, or where it would be; plus one if it is there."""
    position = lower_bound(v, keys, count, key)
    found = position < count and load_u64(keys + position * 8) == key
    return 2 * position + np.int64(found)


@inlined
def find_slots(
    v: View, rows: Rows, starts: Array, windows: Array, slots: Array, n: int, folded: bool
) -> None:
    """The slot of each run, see _slot_of; if the key is there and runs are `folded`, its value is
    prefetched."""
    first_leaf = 1 << v.m
    for i in range(n):
        at = segment_at(v, windows[i] - first_leaf)
        slots[i] = _slot_of(v, at[0], count_of(v, windows[i]), row_key(rows, starts[i]))
        if folded and slots[i] & 1:
            slot = advance(v, at, slots[i] >> 1)
            prefetch(slot[1])
            prefetch(slot[2])


@inlined
def _note_append(key: np.uint64, new: int, loops: int, largest: int) -> tuple[int, int]:
    """LOOPS and LARGEST of the tally after an append; `new` is 1 if it makes an edge. The ends of
    an edge that is not new are no larger than known ones."""
    source, target = np.int64(key >> HALF), np.int64(key & LOW)
    return loops + (new & np.int64(source == target)), max(largest, max(source, target))


@inlined
def _by_block(
    v: View, batch: BatchView, rows: Rows, lo: int, hi: int, leaves: Leaves, outcome: int,
    tally: Array,
) -> int:  # fmt: skip
    """As locate, for fewer rows than segments. Returns the number of touched leaves."""
    starts, next_starts = np.empty(BLOCK + 1, np.int64), np.empty(BLOCK + 1, np.int64)
    windows, next_windows = np.empty(BLOCK, np.int64), np.empty(BLOCK, np.int64)
    slots, first_leaf = np.empty(BLOCK, np.int64), 1 << v.m
    t, leaf, first, net, flags = -ONE, -ONE, lo, ZERO, ZERO  # the last touched leaf
    loops, largest, changed = ZERO, -ONE, ZERO
    n = find_leaves(v, batch, rows, lo, hi, starts, windows)
    while n:
        # The next block's leaves are prefetched before this block's are read.
        following = find_leaves(v, batch, rows, starts[n], hi, next_starts, next_windows)
        find_slots(v, rows, starts, windows, slots, n, outcome == FOLDED)
        for i in range(n):
            start, end, p = starts[i], starts[i + 1], windows[i]
            if outcome == PRESENT:
                delta = settle_append(rows, start, slots[i])
                loops, largest = _note_append(row_key(rows, start), delta, loops, largest)
                same = p == leaf  # as _touch does, without a branch
                t, leaf, first = t + np.int64(not same), p, first if same else start
                net, flags = (net if same else 0) + delta, (flags if same else 0) | MOVED * delta
                write_leaf(leaves, t, p - first_leaf, first, end, net, flags)
                changed += delta
                continue
            delta = settle_run(v, batch, rows, start, end, p, slots[i], outcome, tally)
            action = row_action(rows, start)
            if action != SKIP:
                t = touch(leaves, t, p - first_leaf, start, end, delta, flags_of(action))
                changed += delta
        starts, next_starts = next_starts, starts
        windows, next_windows = next_windows, windows
        n = following
    tally[SLOTS] += changed
    tally[LOOPS] += loops
    tally[LARGEST] = max(tally[LARGEST], largest)
    return t + 1


@inlined
def _by_leaf(
    v: View, batch: BatchView, rows: Rows, lo: int, hi: int, leaves: Leaves, outcome: int,
    tally: Array,
) -> int:  # fmt: skip
    """As locate, for no fewer rows than segments. Returns the number of touched leaves."""
    first_leaf = 1 << v.m
    folded = outcome == FOLDED
    ahead = OPERATIONS_AHEAD if brings_columns(batch) else 0
    t, row, p, end = ZERO, lo, ONE, np.uint64(0)
    loops, largest = ZERO, -ONE
    while row < hi:
        if end and p + 1 < 2 * first_leaf and row_key(rows, row) < end_fence(v, p + 1):
            p += 1  # most often
        else:
            p = leaf_of(v, p, row_key(rows, row))
        if p + LEAVES_AHEAD < 2 * first_leaf:
            _prefetch_leaf(v, p + LEAVES_AHEAD, folded)
        end, count, keys = end_fence(v, p), count_of(v, p), segment_at(v, p - first_leaf)[0]
        first, last, delta, flags = row, row, ZERO, ZERO  # rows of the leaf that do something
        while row < hi and row_key(rows, row) < end:
            start = row
            row = mark_run(rows, row, hi)
            if ahead and start + ahead < hi:
                prefetch_operation(batch, row_place(rows, start + ahead))
            key = row_key(rows, start)
            slot = _slot_of(v, keys, count, key)
            if outcome == PRESENT:
                new = settle_append(rows, start, slot)
                loops, largest = _note_append(key, new, loops, largest)
                delta += new
                flags |= MOVED * new
                last = row
                continue
            delta += settle_run(v, batch, rows, start, row, p, slot, outcome, tally)
            action = row_action(rows, start)
            if action != SKIP:
                first = start if first == last else first
                last = row
                flags |= flags_of(action)
        if first < last:
            write_leaf(leaves, t, p - first_leaf, first, last, delta, flags)
            tally[SLOTS] += delta
            t += 1
    tally[LOOPS] += loops
    tally[LARGEST] = max(tally[LARGEST], largest)
    return t


@compiled
def locate(v: View, batch: BatchView, rows: Rows, lo: int, hi: int, leaves: Leaves) -> Array:
    """Fill in rows lo … hi - 1, and a chunk's own `leaves` from index 0 on. Returns a tally."""
    tally = new_tally()
    outcome = outcome_of_all(batch) if lo < hi else FOLDED
    if rows.n < 1 << v.m:
        touched = _by_block(v, batch, rows, lo, hi, leaves, outcome, tally)
    else:
        touched = _by_leaf(v, batch, rows, lo, hi, leaves, outcome, tally)
    tally[TOUCHED] = touched
    return tally


@compiled
def join_leaves(leaves: Leaves, starts: Array, lengths: Array) -> int:
    """Bring the chunks' touched leaves together at the front, those of the first being there; a
    leaf cut by a chunk's edge becomes one again. Returns how many there are."""
    n = lengths[0]
    for chunk in range(1, len(lengths)):
        first, more = starts[chunk], lengths[chunk]
        if n and more and get(leaves.rank, n - 1) == get(leaves.rank, first):
            put(leaves.hi, n - 1, get(leaves.hi, first))
            put(leaves.delta, n - 1, get(leaves.delta, n - 1) + get(leaves.delta, first))
            put(leaves.flags, n - 1, get(leaves.flags, n - 1) | get(leaves.flags, first))
            first += 1
            more -= 1
        for column in (leaves.rank, leaves.lo, leaves.hi, leaves.delta, leaves.flags):
            move_bytes(column + 4 * n, column + 4 * first, 4 * more)
        n += more
    return n


def run_edges(key: Array, ranges: list[tuple[int, int]]) -> list[int]:
    """The edges of these ranges of rows, moved on so that no run of equal keys is cut."""
    *inner, end = (hi for _, hi in ranges)
    before = key[np.array(inner, np.int64) - 1]
    return [0, *np.searchsorted(key, before, "right").tolist(), end]


def joined(tallies: list[Array]) -> Array:
    if len(tallies) == 1:
        return tallies[0]
    joined: Array = np.sum(tallies, axis=0)
    joined[LARGEST] = max(tally[LARGEST] for tally in tallies)
    return joined
