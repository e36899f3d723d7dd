"""Versions become edges again: the compaction that ends a mixed batch (paper, Section VI-A).

During the batch the operations after the first query stand beside the stored edge of their key
as versions, `seq` = 1 + place. Compaction folds each key's versions onto its stored edge and
drops them, in two passes that may run on any thread: `survivors` reads, and decides for every
key what remains; `compact_segments` writes, each segment by itself.

A run of versions may span segments whose fences all equal its key. What remains of it goes where
its last slot was: that is the last segment with that fence, the one that the key is located in once
the others are empty.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from ...cpu.instructions import (
    load_u32,
    load_u64,
)
from ...cpu.jit import compiled
from .fold import fold
from .memory import (
    View,
    advance,
    count_of,
    first_at_or_after,
    move_slots,
    read_time,
    read_weight,
    segment_at,
    set_count,
    write_slot,
)
from .rows import (
    INSERT,
    SKIP,
    WRITE,
    BatchView,
    Rows,
    row_action,
    row_key,
    set_action,
)
from .settle import SLOTS, new_tally, settle, unchanged_at

Array = npt.NDArray[Any]


@compiled
def survivors(
    v: View, batch: BatchView, rows: Rows, lo: int, hi: int, first_rank: Array, last_rank: Array,
    weights: Array, times: Array,
) -> Array:  # fmt: skip
    """For every run in rows lo … hi - 1, at its first row: its action, weight and time, and the
    segments that its slots lie in. Returns a tally."""
    tally = new_tally()
    row = lo
    while row < hi:
        start = row
        key = row_key(rows, row)
        while row < hi and row_key(rows, row) == key:
            set_action(rows, row, SKIP)
            row += 1
        rank, position = first_at_or_after(v, key)
        slot = advance(v, segment_at(v, rank), position)
        found = load_u32(slot[3]) == 0
        weight, time = 0.0, 0
        if found:
            weight, time = read_weight(v, slot), read_time(v, slot)
        present, weight, time = fold(
            v, batch, rows, start, row, found, weight, time, unchanged_at(tally)
        )
        weights[start], times[start] = weight, time
        tally[SLOTS] += settle(rows, start, found, present, tally)
        first_rank[start] = rank
        left = position + (row - start) + (1 if found else 0)
        while left > count_of(v, (1 << v.m) + rank):
            left -= count_of(v, (1 << v.m) + rank)
            rank += 1
        last_rank[start] = rank
    return tally


@compiled
def versioned_ranks(
    v: View, rows: Rows, first_rank: Array, last_rank: Array, ranks: Array, first_row: Array
) -> int:
    """Write the segments that hold versions, rising, and the row of the first run in each. The
    arrays have room for twice the rows: each such segment holds a slot of some run, and a run
    one slot more than rows. Returns how many segments there are."""
    n = 0
    before = -1
    for row in range(rows.n):
        if row and row_key(rows, row) == row_key(rows, row - 1):
            continue
        for rank in range(max(before + 1, first_rank[row]), last_rank[row] + 1):
            if count_of(v, (1 << v.m) + rank):  # a run may lie around empty segments
                ranks[n], first_row[n] = rank, row
                n += 1
        before = max(before, last_rank[row])
    return n


@compiled
def compact_segments(
    v: View, rows: Rows, ranks: Array, first_row: Array, last_rank: Array, weights: Array,
    times: Array, lo: int, hi: int,
) -> None:  # fmt: skip
    """Compact segments ranks[lo:hi] in place, with their leaf counts."""
    for i in range(lo, hi):
        rank = ranks[i]
        p = (1 << v.m) + rank
        row = first_row[i]
        at = segment_at(v, rank)
        count = count_of(v, p)
        kept = 0
        for position in range(count):
            slot = advance(v, at, position)
            key = load_u64(slot[0])
            while row < rows.n and row_key(rows, row) < key:
                row += 1
            if row == rows.n or row_key(rows, row) != key:
                move_slots(v, advance(v, at, kept), slot, 1)
                kept += 1
                continue
            if position + 1 < count:
                last = load_u64(slot[0] + 8) != key
            else:
                last = last_rank[row] == rank
            if last and (row_action(rows, row) == WRITE or row_action(rows, row) == INSERT):
                to = advance(v, at, kept)
                write_slot(v, to, key, weights[row], times[row], 0)
                kept += 1
        set_count(v, p, kept)
