"""The outcome of a run's operations: they are folded onto the stored state, and become one action.

Requires: the rows of a run are next to each other, those after its first marked SKIP.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ...batch.columns import Kind
from ...cpu.instructions import load_i64, load_u8
from ...cpu.jit import inlined
from ...pma.counters import DELETE_ABSENT, EXPIRED, REASONS
from ...pma.keys import HALF, LOW
from ..values import DELETE, INSERT, SKIP, WRITE
from .addressing import MARKER, View, advance, read_time, read_weight, segment_at
from .batch_view import BatchView, Rows, row_key, row_place, set_action, set_position
from .fold import falling, fold

FOLDED, PRESENT, ABSENT, AGED = range(4)  # the outcomes of a batch's runs
_DELETE, _EXPIRE = int(Kind.DELETE), int(Kind.EXPIRE)

# What a located chunk will do, in numbers: indices of its int64[TALLIED] tally. From UNCHANGED on,
# the counts by reason of counters.py: of rising and of falling edges (fold.falling).
TOUCHED, SLOTS, MARKERS, LOOPS, LARGEST, DELETIONS, UNCHANGED = range(7)
TALLIED = UNCHANGED + 2 * REASONS


@inlined
def new_tally() -> Array:
    """LARGEST is the largest vertex id that a new slot brings, -1 for none; the rest are sums."""
    tally = np.zeros(TALLIED, np.int64)
    tally[LARGEST] = -1
    return tally


@inlined
def unchanged_at(tally: Array) -> int:
    """The address of a tally's counts by reason."""
    return np.int64(tally.ctypes.data) + 8 * UNCHANGED


@inlined
def outcome_of_all(batch: BatchView) -> int:
    """The outcome of every run, whatever is stored, if all operations of a batch are the same:
    appending positive weights, or deleting; AGED if all let edges expire. Else FOLDED."""
    if batch.plain:
        return PRESENT
    if batch.kind_step:
        return FOLDED
    kind = load_u8(batch.kind)
    return ABSENT if kind == _DELETE else AGED if kind == _EXPIRE else FOLDED


@inlined
def reads_values(outcome: int) -> bool:
    """Whether the outcome depends on the weights or times stored."""
    return outcome != PRESENT and outcome != ABSENT


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
def settle_run(
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
        present, _, _ = fold(v, batch, rows, lo, hi, found, weight, time, unchanged_at(tally))
    elif outcome == AGED:
        if found:
            time = read_time(v, advance(v, segment_at(v, w - (1 << v.m)), position))
            present = True
            for row in range(lo, hi):
                present &= time >= load_i64(batch.time + row_place(rows, row) * batch.time_step)
            way = falling(row_key(rows, lo)) * REASONS
            tally[UNCHANGED + way + EXPIRED] += np.int64(not present)
    elif outcome == ABSENT:
        way = falling(row_key(rows, lo)) * REASONS
        tally[UNCHANGED + way + DELETE_ABSENT] += hi - lo - np.int64(found)
    set_position(rows, lo, position)
    return settle(rows, lo, found, present, tally)


@inlined
def settle_append(rows: Rows, row: int, slot: int) -> int:
    """What settle_run does if all operations append, except for the tally, and without a branch on
    whether the edge is new, which nothing could predict."""
    set_position(rows, row, slot >> 1)
    set_action(rows, row, WRITE if slot & 1 else INSERT)
    return (slot & 1) ^ 1
