"""The rows of a mixed batch that lie, sorted, beside the store while its queries are answered.

Idea: the operations of one key, a *run*, are folded once for all queries, onto what is stored for
the key, and each row keeps the state that it leaves. So a query looks for the last row of its key
before its own place, and folds nothing. A vertex's edges are its slots merged with its runs: a run
with a row before the query's place stands for its key, stored or not.

Requires: rows sorted by key, and within a key by place.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from ...cpu.instructions import load_f64, load_i64, load_u8, load_u32, load_u64
from ...cpu.jit import ZERO, compiled, inlined
from ...cpu.threads import cuts, run_all
from ...pma.keys import HALF, LOW
from ..degrees import Degrees, degrees_of
from .addressing import (
    MARKER,
    Slot,
    View,
    advance,
    count_of,
    read_time,
    read_weight,
    segment_at,
    write_value,
)
from .batch_view import BatchView, Rows, row_key, row_place
from .fold import apply_operation
from .locate import BLOCK, ROWS_PER_TASK, find_leaves, find_slots, run_edges
from .located import KeyRows, StagedBatch
from .segments import Segments
from .workspace import Workspace


class BesideView(NamedTuple):
    """The n rows of a batch by address, each with the state of its key after it."""

    n: int
    key: int  # uint64
    place: int  # uint32
    present: int  # uint8
    weight: int  # float64
    time: int  # int64


NOTHING_BESIDE = BesideView(0, 0, 0, 0, 0, 0)


@compiled
def fold_rows(
    v: View, batch: BatchView, rows: Rows, lo: int, hi: int, present: Array, weights: Array,
    times: Array, change: Array,
) -> None:  # fmt: skip
    """Fold rows lo … hi - 1, which are whole runs, onto what is stored. Writes the state after each
    row, and how the row changes the number of its vertex's edges."""
    starts, windows = np.empty(BLOCK + 1, np.int64), np.empty(BLOCK, np.int64)
    slots, first_leaf = np.empty(BLOCK, np.int64), 1 << v.m
    n = find_leaves(v, batch, rows, lo, hi, starts, windows)
    while n:
        find_slots(v, rows, starts, windows, slots, n, True)
        for i in range(n):
            key = row_key(rows, starts[i])
            marker = (key & LOW) == MARKER
            there, weight, time = slots[i] & 1 == 1, 0.0, ZERO
            if there:
                slot = advance(v, segment_at(v, windows[i] - first_leaf), slots[i] >> 1)
                weight, time = read_weight(v, slot), read_time(v, slot)
            for row in range(starts[i], starts[i + 1]):
                before, place = there, row_place(rows, row)
                there, weight, time, _ = apply_operation(
                    v, batch, place, marker, there, weight, time
                )
                present[row], weights[row], times[row] = there, weight, time
                change[row] = 0 if marker else np.int8(there) - np.int8(before)
        n = find_leaves(v, batch, rows, starts[n], hi, starts, windows)


@inlined
def beside_key(b: BesideView, row: int) -> np.uint64:
    return load_u64(b.key + row * 8)


@inlined
def is_there(b: BesideView, row: int) -> bool:
    """Whether the key is there after that row."""
    return load_u8(b.present + row) != 0


@inlined
def first_row(b: BesideView, row: int, key: np.uint64, limit: int) -> int:
    """The first row from `row` on that does not stand before place `limit` of `key`."""
    low, high = row, b.n
    while low < high:
        middle = (low + high) >> 1
        here = beside_key(b, middle)
        if here < key or (here == key and np.int64(load_u32(b.place + middle * 4)) < limit):
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def next_change(b: BesideView, row: int, end: np.uint64, limit: int) -> tuple[int, np.uint64, int]:
    """Of the runs from `row` on, with keys below `end`, the first one with rows before place
    `limit`: (the last such row, its key, the row after the run); (-1, end, …) if there is none."""
    while row < b.n:
        key = beside_key(b, row)
        if key >= end:
            break
        seen = first_row(b, row, key, limit)
        after = seen
        if seen < b.n and beside_key(b, seen) == key:
            after = first_row(b, seen, key + np.uint64(1), 0)
        if seen > row:
            return seen - 1, key, after
        row = after
    return -1, end, row


@inlined
def past(v: View, rank: int, position: int, key: np.uint64) -> int:
    """The position after `key` in segment `rank` if its slot is at `position`; else `position`."""
    leaves = 1 << v.m
    if rank == leaves or position == count_of(v, leaves + rank):
        return position
    is_here = load_u64(segment_at(v, rank)[0] + position * 8) == key
    return position + (1 if is_here else 0)


@compiled
def put_seen(
    v: View, b: BesideView, keys: Array, limits: Array, lo: int, hi: int, found: Array, to: Slot
) -> None:
    """Edge queries lo … hi - 1, answered from what is stored, whose keys have rows before their
    limits: what these leave. Weights and times go to the columns at `to`."""
    for i in range(lo, hi):
        row = first_row(b, ZERO, keys[i], limits[i]) - 1
        if row < 0 or beside_key(b, row) != keys[i]:
            continue
        found[i] = is_there(b, row)
        weight, time = 0.0, ZERO
        if found[i]:
            weight, time = load_f64(b.weight + row * 8), load_i64(b.time + row * 8)
        write_value(v, advance(v, to, i), weight, time)


@dataclass(frozen=True)
class Beside:
    """A folded batch, in the workspace."""

    rows: KeyRows
    view: BesideView
    change: Array  # int8[n]: what each row does to the number of its vertex's edges

    @cached_property
    def degrees(self) -> Degrees:
        return degrees_of(self.rows.key >> HALF, self.rows.place, self.change)


def folded(workspace: Workspace, segments: Segments, staged: StagedBatch, rows: KeyRows) -> Beside:
    """Fold sorted rows onto what is stored."""
    n = len(rows)
    workspace.states.reserve(n)
    present, weights, times, change = workspace.states.columns
    sorted_rows = workspace.row_view(n, rows.in_spare)
    of_batch = segments.view, staged.view, sorted_rows
    edges = run_edges(rows.key, cuts(n, ROWS_PER_TASK))
    run_all(
        fold_rows,
        [(*of_batch, lo, hi, present, weights, times, change) for lo, hi in pairwise(edges)],
    )
    at = workspace.states.addresses[:3]
    return Beside(rows, BesideView(n, sorted_rows.key, sorted_rows.place, *at), change[:n])
