"""Find where each operation of a sorted batch belongs, and what it does there.

Idea: a batch is planned by *net* change, so before anything moves every run of equal keys is
folded onto the state that is stored (Definition 2) and becomes one action: insert, write,
delete or nothing. The runs of one leaf are gathered into a *touched leaf* with its net change;
touched leaves are all that the strategies look at.

Tricks: finger search (memory.leaf_of) because a sorted batch walks the tree in order; runs are
handled a block at a time, the leaves first and their prefetches, the searches after, so that
cache misses overlap. Entries of a run past its first are marked SKIP, so nothing is compacted.

Requires: operations sorted by key, arrival order within a key; a chunk starts at a run's start.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from ...batch import Kind
from ...rebalance import DELETED, MOVED
from .memory import (
    HALF,
    LOW,
    MARKER,
    View,
    advance,
    count_of,
    leaf_of,
    load_i64,
    load_u8,
    load_u64,
    lower_bound,
    prefetch,
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
    put,
    row_action,
    row_key,
    row_place,
    set_action,
    set_position,
    set_value,
)

Array = npt.NDArray[Any]

BLOCK = 32
PREFETCHED_BYTES = 256  # of a segment's keys: all of them at 32 slots

_APPEND, _ADD_VERTEX = int(Kind.APPEND), int(Kind.ADD_VERTEX)

# What a located chunk will do, in numbers: indices of the int64[6] tally it returns.
TOUCHED, SLOTS, MARKERS, LOOPS, LARGEST, DELETIONS = range(6)


@njit(cache=True, nogil=True)
def new_tally() -> Array:
    """LARGEST is the largest vertex id that a new slot brings, -1 for none; the rest are sums."""
    tally = np.zeros(6, np.int64)
    tally[LARGEST] = -1
    return tally


@njit(cache=True, nogil=True)
def apply_operation(
    v: View, batch: BatchView, p: int, marker: bool, present: bool, weight: float, time: int
) -> tuple[bool, float, int]:
    """Definition 2 for one operation: the state of a key after row p of the batch.

    Sums are rounded to the store's dtype after each operation, so that no grouping of
    operations into batches shows in the result."""
    kind = np.int64(load_u8(batch.kind + p))
    if kind == _APPEND:
        d = operation_weight(batch, p)
        if v.weight_bytes == 0:
            if d == 0:
                return present, weight, time
            present, weight = d > 0, 0.0
        elif present:
            weight = weight + d
            if v.weight_bytes == 4:
                weight = np.float64(np.float32(weight))
            present = weight >= 0
        else:
            present, weight = d > 0, d
    else:
        present = kind == _ADD_VERTEX and marker
        weight = 0.0
    if present:
        time = load_i64(batch.time + p * batch.time_step)
    return present, weight, time


@njit(cache=True, nogil=True)
def fold(
    v: View,
    batch: BatchView,
    rows: Rows,
    lo: int,
    hi: int,
    present: bool,
    weight: float,
    time: int,
) -> tuple[bool, float, int]:
    """The state of a key after its operations, rows lo … hi - 1, from its state before."""
    marker = (row_key(rows, lo) & LOW) == MARKER
    for row in range(lo, hi):
        p = row_place(rows, row)
        present, weight, time = apply_operation(v, batch, p, marker, present, weight, time)
    return present, weight, time


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _locate_run(
    v: View, batch: BatchView, rows: Rows, lo: int, hi: int, p: int, tally: Array
) -> int:
    """Fold the run lo … hi - 1 onto the stored state; its net change."""
    key = row_key(rows, lo)
    count = count_of(v, p)
    at = segment_at(v, p - (1 << v.m))
    position = lower_bound(at[0], count, key)
    slot = advance(v, at, position)
    found = position < count and load_u64(slot[0]) == key
    weight, time = 0.0, 0
    if found:
        weight, time = read_weight(v, slot), read_time(v, slot)
    present, weight, time = fold(v, batch, rows, lo, hi, found, weight, time)
    set_position(rows, lo, position)
    set_value(rows, lo, weight, time)
    return settle(rows, lo, found, present, tally)


@njit(cache=True, nogil=True)
def _locate_versions(v: View, rows: Rows, lo: int, hi: int, p: int) -> int:
    """Put the run lo … hi - 1 behind the stored edge of its key, unfolded; its net change."""
    key = row_key(rows, lo)
    count = count_of(v, p)
    at = segment_at(v, p - (1 << v.m))
    position = lower_bound(at[0], count, key)
    if position < count and load_u64(at[0] + position * 8) == key:
        position += 1
    for row in range(lo, hi):
        set_position(rows, row, position)
        set_action(rows, row, INSERT)
        set_value(rows, row, 0.0, 0)
    return hi - lo


@njit(cache=True, nogil=True)
def locate(
    v: View, batch: BatchView, rows: Rows, lo: int, hi: int, leaves: Leaves, versions: bool
) -> Array:
    """Fill in rows lo … hi - 1, and `leaves` from index lo on. Returns a tally.

    With `versions`, rows are not folded: each is inserted behind the stored edge of its key."""
    tally = new_tally()
    starts = np.empty(BLOCK, np.int64)
    ends = np.empty(BLOCK, np.int64)
    windows = np.empty(BLOCK, np.int64)
    t = lo - 1  # the last touched leaf
    rank_before = -1
    p = 1
    row = lo
    first_leaf = 1 << v.m
    while row < hi:
        block = 0
        while block < BLOCK and row < hi:
            key = row_key(rows, row)
            starts[block] = row
            row += 1
            while row < hi and row_key(rows, row) == key:
                set_action(rows, row, SKIP)
                row += 1
            ends[block] = row
            p = leaf_of(v, p, key)
            windows[block] = p
            keys = segment_at(v, p - first_leaf)[0]
            for line in range(0, min(8 << v.shift, PREFETCHED_BYTES), 64):
                prefetch(keys + line)
            block += 1
        for i in range(block):
            start, end, w = starts[i], ends[i], windows[i]
            if versions:
                delta = _locate_versions(v, rows, start, end, w)
            else:
                delta = _locate_run(v, batch, rows, start, end, w, tally)
            action = row_action(rows, start)
            if action == SKIP:
                continue
            if w - first_leaf != rank_before:
                t += 1
                rank_before = w - first_leaf
                put(leaves.rank, t, rank_before)
                put(leaves.lo, t, start)
                put(leaves.delta, t, 0)
                put(leaves.flags, t, 0)
            put(leaves.hi, t, end)
            put(leaves.delta, t, get(leaves.delta, t) + delta)
            moved = 0 if action == WRITE else MOVED
            deleted = DELETED if action == DELETE else 0
            put(leaves.flags, t, get(leaves.flags, t) | moved | deleted)
            tally[SLOTS] += delta
    tally[TOUCHED] = t + 1 - lo
    return tally


@njit(cache=True, nogil=True)
def join_leaves(leaves: Leaves, starts: Array, lengths: Array) -> int:
    """Bring the chunks' touched leaves together at the front; a leaf cut by a chunk's edge
    becomes one again. Returns how many there are."""
    n = 0
    for chunk in range(len(lengths)):
        for i in range(starts[chunk], starts[chunk] + lengths[chunk]):
            rank, hi = get(leaves.rank, i), get(leaves.hi, i)
            delta, flags = get(leaves.delta, i), get(leaves.flags, i)
            if n and get(leaves.rank, n - 1) == rank:
                delta += get(leaves.delta, n - 1)
                flags |= get(leaves.flags, n - 1)
                n -= 1
            else:
                put(leaves.lo, n, get(leaves.lo, i))
            put(leaves.rank, n, rank)
            put(leaves.hi, n, hi)
            put(leaves.delta, n, delta)
            put(leaves.flags, n, flags)
            n += 1
    return n


@njit(cache=True, nogil=True)
def run_starts(keys: Array, edges: Array) -> None:
    """Move each inner edge of a chunking forward to the start of a run, in place."""
    for i in range(1, len(edges) - 1):
        at = max(edges[i], edges[i - 1])
        while 0 < at < len(keys) and keys[at] == keys[at - 1]:
            at += 1
        edges[i] = at


@njit(cache=True, nogil=True)
def _changes_edge(rows: Rows, row: int) -> bool:
    action = row_action(rows, row)
    return (action == INSERT or action == DELETE) and (row_key(rows, row) & LOW) != MARKER


@njit(cache=True, nogil=True)
def changes(rows: Rows) -> tuple[Array, Array]:
    """(keys, inserted) of the rows that insert or delete an edge; markers are no edges."""
    n = 0
    for row in range(rows.n):
        n += 1 if _changes_edge(rows, row) else 0
    keys = np.empty(n, np.uint64)
    inserted = np.empty(n, np.bool_)
    n = 0
    for row in range(rows.n):
        if _changes_edge(rows, row):
            keys[n] = row_key(rows, row)
            inserted[n] = row_action(rows, row) == INSERT
            n += 1
    return keys, inserted
