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
from typing import Any

import numpy as np
from numba import carray, types

from ...arrays import Array
from ...cpu.addresses import data
from ...cpu.calls import ByAddress
from ...cpu.instructions import at_bool, at_i32, at_i64, at_u8, at_u16, at_u32, at_u64, load_i64
from ...cpu.jit import compiled, inlined
from ...pma.counters import LAYERS, REASONS
from ..values import BOTH, REVERSE
from . import locate, move, rebalance, sort
from .addressing import View
from .batch_view import LEAF_COLUMNS, BatchView, Leaves, Rows, describe
from .keys import both_keys, edge_keys
from .move import BATCH, LEAVES, ROWS, SLOT, VIEW, gather_at
from .partition import write_changes
from .rebalance import MAX_ROUNDS, PLAN_COLUMNS, SPARE, bottom_up, top_down
from .resolve import SLOTS, TALLIED, TOUCHED, UNCHANGED

SMALL_ROWS = 1 << 14
BOUNDS = len(View._fields)  # where the bounds begin in a store's record

# What is reported: indices of an int64 array, after the entries of the tally (resolve.py). `apply`
# alone writes the last three.
PLANNED, WINDOWS, ROUNDS, REDUNDANT, HELD, HIGHEST, APPLIED, WORK, KEYS = range(
    TALLIED, TALLIED + 9
)
REPORTED = TALLIED + 9

TABLE = 17  # entries of Workspace.small_table


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
def _integers(array: int, n: int) -> Array:
    """The first n entries of an array of int64 that is given by id()."""
    return carray(at_i64(data(array)), n)


@inlined
def _record(array: int) -> Array:
    """A store's record, which is given by id(); its first word is m."""
    m = load_i64(data(array))
    return _integers(array, BOUNDS + 2 * (m + 1))


@inlined
def _view(r: Array) -> View:
    return View(r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8])


@inlined
def _batch(r: Array) -> BatchView:
    return BatchView(r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7])


@inlined
def _rows(n: int, key: Array, place: Array, action: Array, position: Array) -> Rows:
    at_key: Any = np.int64(key.ctypes.data)
    at_place: Any = np.int64(place.ctypes.data)
    at_action: Any = np.int64(action.ctypes.data)
    at_position: Any = np.int64(position.ctypes.data)
    return Rows(n, at_key, at_place, at_action, at_position)


@inlined
def _leaves(n: int, columns: Array) -> Leaves:
    first: Any = np.int64(columns.ctypes.data)
    step = columns.strides[0]
    return Leaves(n, first, first + step, first + 2 * step, first + 3 * step, first + 4 * step)


@inlined
def _counts(store: Array) -> Array:
    return carray(at_i64(store[8]), 2 << store[0])


@inlined
def _bounds(store: Array) -> tuple[Array, Array]:
    layers = store[0] + 1
    end = BOUNDS + layers
    return store[BOUNDS:end], store[end : end + layers]


@compiled
def prepare(
    store: Array, batch: Array, n: int, key: Array, place: Array, spare_key: Array,
    spare_place: Array, action: Array, position: Array, leaves: Array, from_top: bool,
    plan: Array, rounds: Array, report: Array, at: Array,
) -> int:  # fmt: skip
    """Sort and locate n rows; plan them if the root has the room. `store` and `batch` are
    records. Returns the number of touched leaves."""
    counts = _counts(store)
    most, least = _bounds(store)
    sort_few(at[SORT], key, place, spare_key, spare_place, n)
    rows = _rows(n, key, place, action, position)
    tally = locate_rows(at[LOCATE], _view(store), _batch(batch), rows, 0, n, _leaves(n, leaves))
    for i in range(len(tally)):
        report[i] = tally[i]
    report[PLANNED] = 0
    report[WINDOWS:KEYS] = 0
    touched, change = tally[TOUCHED], tally[SLOTS]
    if touched == 0 or (change > 0 and counts[1] + change > most[-1]):
        return touched
    rank, delta, flags = leaves[0, :touched], leaves[3, :touched], leaves[4, :touched]
    made = plan_into(
        at[PLAN_DOWN if from_top else PLAN_UP], counts, rank, delta, flags, most, least, plan,
        rounds,
    )  # fmt: skip
    report[PLANNED] = 1
    report[WINDOWS], report[ROUNDS], report[REDUNDANT], report[HELD], report[HIGHEST] = made
    return touched


@compiled
def commit(
    store: Array, batch: Array, n: int, key: Array, place: Array, action: Array, position: Array,
    leaves: Array, touched: int, plan: Array, rounds: Array, highest: int,
    scratch: Array, at: Array,
) -> None:  # fmt: skip
    """Carry out a plan whose windows are of layer `highest` at most. `scratch` is the
    three addresses of a slot."""
    v, b = _view(store), _batch(batch)
    rows = _rows(n, key, place, action, position)
    moved = _leaves(touched, leaves)
    out = (scratch[0], scratch[1], scratch[2])
    move_leaves(at[LEAVES_OF], v, b, rows, moved, 0, touched, out)
    for i in range(len(rounds) - 1):
        move_windows(
            at[WINDOWS_OF], v, b, rows, moved, plan, rounds[i], rounds[i + 1], out,
            highest, at[GATHER],
        )  # fmt: skip
    sum_upward(at[SUM], v, leaves[0], touched, plan[SPARE])


@compiled
def apply(
    store_id: int, kind: int, kinds: int, weight: int, weights: int, weight_bytes: int, time: int,
    times: int, plain: int, plains: int, work_id: int, at_id: int, n: int, src: int, dst: int,
    direction: int, from_top: bool, windows: int, segments: int, slots: int,
    keys_id: int, inserted_id: int,
) -> int:  # fmt: skip
    """Make the keys of n updates of edges, `prepare` them and, where the root keeps its bounds and
    no window is larger than the scratch buffer, `commit` them. Arrays are given by id(), which
    costs less than handing them over: the store's record; the batch's columns, as `describe` takes
    them; a table (see Workspace.small_table) and `addresses`; src and dst; what
    count_work adds to; and the results.

    Returns how many edges were inserted or deleted, and writes their keys, and whether they were
    inserted. APPLIED says whether all was done; the counts from UNCHANGED on are right then, of a
    plain batch too."""
    store, work, at = (
        _record(store_id), _integers(work_id, TABLE), _integers(at_id, NUM_ENTRIES)
    )  # fmt: skip
    batch = carray(at_i64(work[16]), 8)
    describe(kind, kinds, weight, weights, weight_bytes, time, times, plain, plains, batch)
    room = 2 * n if direction == BOTH else n
    keys, inserted = carray(at_u64(data(keys_id)), room), carray(at_bool(data(inserted_id)), room)
    key, place = carray(at_u64(work[0]), room), carray(at_u32(work[1]), room)
    spare_key, spare_place = carray(at_u64(work[2]), room), carray(at_u32(work[3]), room)
    action, position = carray(at_u8(work[4]), room), carray(at_u16(work[5]), room)
    leaves = carray(at_i32(work[6]), (LEAF_COLUMNS, work[7]))
    plan = carray(at_i32(work[8]), (PLAN_COLUMNS, work[9]))
    rounds, report = carray(at_i64(work[10]), MAX_ROUNDS), carray(at_i64(work[11]), REPORTED)
    if direction == BOTH:
        n = both_keys(data(src), data(dst), n, key, place)
    else:
        edge_keys(data(src), data(dst), 0, n, direction == REVERSE, key, place)
    report[KEYS] = n
    touched = prepare(
        store, batch, n, key, place, spare_key, spare_place, action, position, leaves, from_top,
        plan, rounds, report, at,
    )  # fmt: skip
    counts, least = _counts(store), _bounds(store)[1]
    total = counts[1] + report[SLOTS]
    fits = total >= least[-1] and report[HIGHEST] <= work[15]
    report[APPLIED] = report[PLANNED] and fits
    if not report[APPLIED]:
        return 0
    changed = write_changes(_rows(n, key, place, action, position), keys, inserted)
    if plains:
        _integers(plain, 2 * REASONS)[:] = 0
    commit(
        store, batch, n, key, place, action, position, leaves, touched, plan,
        rounds[: report[ROUNDS] + 1], report[HIGHEST], work[12:15], at,
    )  # fmt: skip
    if plains:
        report[UNCHANGED:TALLIED] = _integers(plain, 2 * REASONS)
    report[WORK] = count_work(
        at[COUNT], plan, report[WINDOWS], leaves[0, :touched], leaves[4, :touched], counts,
        _integers(windows, LAYERS), _integers(segments, LAYERS), _integers(slots, LAYERS),
    )  # fmt: skip
    return changed
