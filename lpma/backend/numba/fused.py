"""A small batch in one compiled call, or in two.

Idea: the steps are those of a large batch. But between two batches other work evicts Python's code
from the caches, and each step that starts in Python then costs as much as a hundred edges. So one
compiled function runs all steps on one thread (`apply`), and they share whole arrays of the
workspace, which are cheap to pass. Of two stores neither may be written before both are ready:
there `prepare` sorts, locates and plans, and `commit` moves.

Requires: n <= SMALL_ROWS; room for n rows, n leaves and a plan of n leaves.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import carray, types

from ...arrays import Array
from ...cpu import sort
from ...cpu.calls import ByAddress
from ...cpu.instructions import at_bool, at_i32, at_i64, at_u32, at_u64, data
from ...cpu.jit import compiled, inlined
from ...pma.counters import LAYERS, REASONS
from ..values import BOTH
from . import locate, move, rebalance
from .addressing import View, view_at
from .batch_view import LEAF_COLUMNS, Leaves, Rows, batch_at
from .fold import SLOTS, TALLIED, TOUCHED, UNCHANGED
from .keys import write_changes, write_keys
from .move import BATCH, LEAVES, ROWS, SLOT, VIEW, gather_at
from .rebalance import MAX_ROUNDS, PLAN_COLUMNS, SPARE, bottom_up, top_down

SMALL_ROWS = 1 << 14
BOUNDS = len(View._fields)  # where the bounds begin in a store's record

# What is reported: indices of an int64 array, after the entries of the tally (fold.py). `apply`
# alone writes the last three.
PLANNED, WINDOWS, ROUNDS, REDUNDANT, HELD, HIGHEST, APPLIED, WORK, KEYS = range(
    TALLIED, TALLIED + 9
)
REPORTED = TALLIED + 9

TABLE = 16  # entries of Workspace.small_table


# The kernels that are called by address (lpma/cpu/calls.py).
_int = types.int64
_i32, _i64, _u32, _u64 = types.int32[::1], _int[::1], types.uint32[::1], types.uint64[::1]
_i32_rows = types.int32[:, ::1]

_planned = types.UniTuple(_int, 5)
_to_plan = (_i64, _i32, _i32, _i32, _i64, _i64, _i32_rows, _i64)
_batch_types = VIEW, BATCH, ROWS, LEAVES
ENTRIES = (
    ByAddress(sort.sort_few, types.none, _u64, _u32, _u64, _u32, _int),
    ByAddress(locate.locate, _i64, VIEW, BATCH, ROWS, _int, _int, LEAVES),
    ByAddress(bottom_up.plan_into, _planned, *_to_plan),
    ByAddress(top_down.plan_into, _planned, *_to_plan),
    ByAddress(move.move_leaves, types.none, *_batch_types, _int, _int, SLOT),
    ByAddress(
        move.move_windows, types.none, *_batch_types, _i32_rows, _int, _int, SLOT, _int, _int
    ),
    ByAddress(move.sum_upward, types.none, VIEW, _i32, _int, _i32),
    ByAddress(rebalance.count_work, _int, _i32_rows, _int, _i32, _i32, _i64, _i64, _i64, _i64),
    gather_at,
)
SORT, LOCATE, PLAN_UP, PLAN_DOWN, LEAVES_OF, WINDOWS_OF, SUM, COUNT, GATHER = range(9)
NUM_ENTRIES = len(ENTRIES)
sort_few, locate_rows, plan_into, _, move_leaves, move_windows, sum_upward, count_work, _ = (
    entry.call for entry in ENTRIES
)


@lru_cache(maxsize=1)
def addresses() -> Array:
    """int64: of each of these, by the numbers above. Compiles them."""
    return np.array([entry.address for entry in ENTRIES], np.int64)


@inlined
def _words(at: int, n: int) -> Array:
    return carray(at_i64(at), n)


@inlined
def _rows(w: Array, n: int) -> Rows:
    return Rows(n, w[0], w[1], w[4], w[5])


@inlined
def _leaves(w: Array, n: int) -> Leaves:
    first, step = w[6], 4 * w[7]
    return Leaves(n, first, first + step, first + 2 * step, first + 3 * step, first + 4 * step)


@inlined
def _leaf_columns(w: Array) -> Array:
    return carray(at_i32(w[6]), (LEAF_COLUMNS, w[7]))


@inlined
def _plan_columns(w: Array) -> Array:
    return carray(at_i32(w[8]), (PLAN_COLUMNS, w[9]))


@inlined
def _counts(v: View) -> Array:
    return carray(at_i64(v.counts), 2 << v.m)


@inlined
def _bounds(store: int, m: int) -> tuple[Array, Array]:
    most = store + 8 * BOUNDS
    return _words(most, m + 1), _words(most + 8 * (m + 1), m + 1)


@compiled
def prepare(store: int, batch: int, work: int, entries: int, n: int, from_top: bool) -> int:
    """Sort and locate n rows; plan them if the root has the room. The store's record, the batch's,
    a table (see Workspace.small_table) and `addresses` are given by address, here and below.
    Returns the number of touched leaves."""
    v, w, at = view_at(store), _words(work, TABLE), _words(entries, NUM_ENTRIES)
    report, counts = _words(w[11], REPORTED), _counts(v)
    most, least = _bounds(store, v.m)
    keys, spare_keys = carray(at_u64(w[0]), n), carray(at_u64(w[2]), n)
    sort_few(at[SORT], keys, carray(at_u32(w[1]), n), spare_keys, carray(at_u32(w[3]), n), n)
    tally = locate_rows(at[LOCATE], v, batch_at(batch), _rows(w, n), 0, n, _leaves(w, n))
    for i in range(len(tally)):
        report[i] = tally[i]
    report[PLANNED] = 0
    report[WINDOWS:KEYS] = 0
    touched, change = tally[TOUCHED], tally[SLOTS]
    if touched == 0 or (change > 0 and counts[1] + change > most[-1]):
        return touched
    leaves = _leaf_columns(w)
    made = plan_into(
        at[PLAN_DOWN if from_top else PLAN_UP], counts, leaves[0, :touched], leaves[3, :touched],
        leaves[4, :touched], most, least, _plan_columns(w), _words(w[10], MAX_ROUNDS),
    )  # fmt: skip
    report[PLANNED] = 1
    report[WINDOWS], report[ROUNDS], report[REDUNDANT], report[HELD], report[HIGHEST] = made
    return touched


@compiled
def commit(
    store: int, batch: int, work: int, entries: int, n: int, touched: int, num_rounds: int,
    highest: int,
) -> None:  # fmt: skip
    """Carry out a plan of so many rounds, whose windows are of layer `highest` at most."""
    v, b, w, at = view_at(store), batch_at(batch), _words(work, TABLE), _words(entries, NUM_ENTRIES)
    rows, moved, plan = _rows(w, n), _leaves(w, touched), _plan_columns(w)
    scratch, rounds = (w[12], w[13], w[14]), _words(w[10], num_rounds + 1)
    move_leaves(at[LEAVES_OF], v, b, rows, moved, 0, touched, scratch)
    for i in range(num_rounds):
        move_windows(
            at[WINDOWS_OF], v, b, rows, moved, plan, rounds[i], rounds[i + 1], scratch, highest,
            at[GATHER],
        )  # fmt: skip
    sum_upward(at[SUM], v, _leaf_columns(w)[0], touched, plan[SPARE])


@compiled
def apply(
    store: int, batch_id: int, work_id: int, entries_id: int, n: int, src: int, dst: int,
    direction: int, from_top: bool, windows: int, segments: int, slots: int, keys_id: int,
    inserted_id: int,
) -> int:  # fmt: skip
    """Make the keys of n updates of edges, `prepare` them and, where the root keeps its bounds and
    no window is larger than the scratch buffer, `commit` them. Arrays are given by id(), which
    costs less than their addresses: src and dst; what count_work adds to; and the results.

    Returns how many edges were inserted or deleted, and writes their keys, and whether they were
    inserted. APPLIED says whether all was done; the counts from UNCHANGED on are right then, of a
    plain batch too."""
    batch, work, entries = data(batch_id), data(work_id), data(entries_id)
    v, b, w, at = view_at(store), batch_at(batch), _words(work, TABLE), _words(entries, NUM_ENTRIES)
    report, room = _words(w[11], REPORTED), 2 * n if direction == BOTH else n
    n = write_keys(
        b.kind, b.kind_step, data(src), data(dst), 0, n, direction, carray(at_u64(w[0]), room),
        carray(at_u32(w[1]), room),
    )  # fmt: skip
    report[KEYS] = n
    touched = prepare(store, batch, work, entries, n, from_top)
    counts, least = _counts(v), _bounds(store, v.m)[1]
    fits = counts[1] + report[SLOTS] >= least[-1] and report[HIGHEST] <= w[15]
    report[APPLIED] = report[PLANNED] and fits
    if not report[APPLIED]:
        return 0
    keys, inserted = carray(at_u64(data(keys_id)), room), carray(at_bool(data(inserted_id)), room)
    changed = write_changes(_rows(w, n), keys, inserted)
    if b.plain:
        _words(b.plain, 2 * REASONS)[:] = 0
    commit(store, batch, work, entries, n, touched, report[ROUNDS], report[HIGHEST])
    if b.plain:
        report[UNCHANGED:TALLIED] = _words(b.plain, 2 * REASONS)
    leaves = _leaf_columns(w)
    report[WORK] = count_work(
        at[COUNT], _plan_columns(w), report[WINDOWS], leaves[0, :touched], leaves[4, :touched],
        counts, _words(data(windows), LAYERS), _words(data(segments), LAYERS),
        _words(data(slots), LAYERS),
    )  # fmt: skip
    return changed
