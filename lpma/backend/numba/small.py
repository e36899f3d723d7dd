"""A small batch in one compiled call, or in two.

Idea: the steps are those of a large batch, by the same functions; but between two batches other
work drives Python's code out of the caches, and then each step of it costs a small batch as much
as a hundred edges. So here the steps call each other, on one thread, and what they share goes in
whole arrays of the workspace, which are cheap to hand over: `apply` does it all. Where stores wait
for each other, `prepare` sorts, locates and plans, and `commit` moves.

Requires: n <= SMALL_ROWS; room for n rows, n leaves and a plan of n leaves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import carray, njit

from ...cpu.addresses import data
from ...cpu.instructions import at_i32, at_i64, at_u8, at_u16, at_u32, at_u64, load_i64
from ...cpu.jit import ZERO, compiled, inlined
from ...stats import LAYERS
from ...unchanged import REASONS
from .chunks import write_changes
from .counts import sum_upward
from .keys import edge_keys
from .locate import locate
from .memory import View
from .move import move_leaves, move_windows
from .rebalance import MAX_ROUNDS, PLAN_COLUMNS, SPARE, bottom_up, count_work, top_down
from .rows import LEAF_COLUMNS, BatchView, Leaves, Rows, describe
from .settle import SLOTS, TALLIED, TOUCHED, UNCHANGED
from .sort import sort_few

Array = npt.NDArray[Any]

SMALL_ROWS = 1 << 14
LEAF_COST, WINDOW_COST = 12.0, 1.5  # see NumbaBackend.costs

# What is reported: indices of an int64 array, after the entries of the tally (settle.py). `apply`
# alone writes the last two.
PLANNED, WINDOWS, ROUNDS, REDUNDANT, HELD, HIGHEST, APPLIED, WORK = range(TALLIED, TALLIED + 8)
REPORTED = TALLIED + 8
TABLE = 18  # entries of Workspace.small_table


@inlined
def _view(r: Array) -> View:
    return View(r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10])


@inlined
def _batch(r: Array) -> BatchView:
    return BatchView(r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7])


@inlined
def _at(column: Array) -> np.int64:
    """A column's address as a signed integer: functions that take addresses are compiled for these,
    once."""
    return np.int64(column.ctypes.data)


@inlined
def _rows(n: int, key: Array, place: Array, action: Array, position: Array) -> Rows:
    return Rows(n, _at(key), _at(place), _at(action), _at(position))


@inlined
def _leaves(n: int, columns: Array) -> Leaves:
    first, step = _at(columns), columns.strides[0]
    return Leaves(n, first, first + step, first + 2 * step, first + 3 * step, first + 4 * step)


@inlined
def _counts(store: Array) -> Array:
    return carray(at_i64(store[10]), 2 << store[0])


@inlined
def _bounds(store: Array) -> tuple[Array, Array]:
    layers = store[0] + 1
    return store[11 : 11 + layers], store[11 + layers : 11 + 2 * layers]


def _prepare(
    store: Array, batch: Array, n: int, key: Array, place: Array, spare_key: Array,
    spare_place: Array, action: Array, position: Array, leaves: Array, versions: bool,
    from_top: bool, plan: Array, rounds: Array, report: Array,
) -> int:  # fmt: skip
    """Sort and locate n rows; plan them if the root has the room. `store` and `batch` are
    records. Returns the number of touched leaves."""
    counts = _counts(store)
    most, least = _bounds(store)
    sort_few(key, place, spare_key, spare_place, n)
    rows = _rows(n, key, place, action, position)
    tally = locate(_view(store), _batch(batch), rows, ZERO, n, _leaves(n, leaves), versions)
    for i in range(len(tally)):
        report[i] = tally[i]
    report[PLANNED] = 0
    report[WINDOWS:] = 0
    touched, change = tally[TOUCHED], tally[SLOTS]
    if touched == 0 or (change > 0 and counts[1] + change > most[-1]):
        return touched
    rank, delta, flags = leaves[0, :touched], leaves[3, :touched], leaves[4, :touched]
    if from_top:
        made = top_down.plan_into(counts, rank, delta, flags, most, least, plan, rounds)
    else:
        made = bottom_up.plan_into(counts, rank, delta, flags, most, least, plan, rounds)
    report[PLANNED] = 1
    report[WINDOWS], report[ROUNDS], report[REDUNDANT], report[HELD], report[HIGHEST] = made
    return touched


def _commit(
    store: Array, batch: Array, n: int, key: Array, place: Array, action: Array, position: Array,
    leaves: Array, touched: int, versions: bool, plan: Array, rounds: Array, highest: int,
    scratch: Array,
) -> None:  # fmt: skip
    """Carry out a plan whose windows are of layer `highest` at most. `scratch` is the four
    addresses of a slot."""
    v, b = _view(store), _batch(batch)
    rows = _rows(n, key, place, action, position)
    moved = _leaves(touched, leaves)
    out = (scratch[0], scratch[1], scratch[2], scratch[3])
    move_leaves(v, b, rows, moved, ZERO, touched, versions, out)
    for i in range(len(rounds) - 1):
        move_windows(v, b, rows, moved, plan, rounds[i], rounds[i + 1], versions, out, highest)
    sum_upward(v, leaves[0], touched, plan[SPARE])


prepare = compiled(_prepare)
commit = compiled(_commit)
# Within `apply` the same, but not compiled by themselves: that takes many seconds.
_prepare_here = njit(inline="always")(_prepare)
_commit_here = njit(inline="always")(_commit)


@compiled
def apply(
    store: int, kind: int, kinds: int, weight: int, weights: int, weight_bytes: int, time: int,
    times: int, plain: int, plains: int, work: int, n: int, src: int, dst: int, reverse: bool,
    from_top: bool, most_cost: float, windows: int, segments: int, slots: int, keys: Array,
    inserted: Array,
) -> int:  # fmt: skip
    """Make the keys of n updates of edges, `prepare` them and, where the root keeps its bounds,
    no window is larger than the scratch buffer and all costs no more than `most_cost`, `commit`
    them. Arrays are given by id(), which costs less than arrays: `store`, a record; the batch's
    columns, as `rows.describe` takes them; `work`, a table, see Workspace.small_table; src and dst;
    and those of Stats that count_work adds to.

    Returns how many edges were inserted or deleted, and writes their keys, and whether they were
    inserted. APPLIED says whether all was done; then UNCHANGED has what a plain batch counted."""
    work_at, store_at = data(work), data(store)
    table = carray(at_i64(work_at), TABLE)
    record = carray(at_i64(store_at), 11 + 2 * (load_i64(store_at) + 1))
    batch = carray(at_i64(table[17]), 8)
    key, place = carray(at_u64(table[0]), n), carray(at_u32(table[1]), n)
    spare_key, spare_place = carray(at_u64(table[2]), n), carray(at_u32(table[3]), n)
    action, position = carray(at_u8(table[4]), n), carray(at_u16(table[5]), n)
    leaves = carray(at_i32(table[6]), (LEAF_COLUMNS, table[7]))
    plan = carray(at_i32(table[8]), (PLAN_COLUMNS, table[9]))
    rounds, report = carray(at_i64(table[10]), MAX_ROUNDS), carray(at_i64(table[11]), REPORTED)
    describe(kind, kinds, weight, weights, weight_bytes, time, times, plain, plains, batch)
    edge_keys(data(src), data(dst), 0, 0, n, reverse, key, place)
    touched = _prepare_here(
        record, batch, n, key, place, spare_key, spare_place, action, position, leaves, False,
        from_top, plan, rounds, report,
    )  # fmt: skip
    counts, least = _counts(record), _bounds(record)[1]
    total = counts[1] + report[SLOTS]
    cost = LEAF_COST * touched + WINDOW_COST * report[HELD]
    fits = total >= least[-1] and report[HIGHEST] <= table[16] and cost <= most_cost
    report[APPLIED] = report[PLANNED] and fits
    if not report[APPLIED]:
        return 0
    changed = write_changes(_rows(n, key, place, action, position), keys, inserted)
    if batch[7]:
        carray(at_i64(batch[7]), 2 * REASONS)[:] = 0
    _commit_here(
        record, batch, n, key, place, action, position, leaves, touched, False, plan,
        rounds[: report[ROUNDS] + 1], report[HIGHEST], table[12:16],
    )  # fmt: skip
    if batch[7]:
        report[UNCHANGED:TALLIED] = carray(at_i64(batch[7]), 2 * REASONS)
    report[WORK] = count_work(
        plan, report[WINDOWS], leaves[0, :touched], leaves[4, :touched], counts,
        carray(at_i64(data(windows)), LAYERS), carray(at_i64(data(segments)), LAYERS),
        carray(at_i64(data(slots)), LAYERS),
    )  # fmt: skip
    return changed
