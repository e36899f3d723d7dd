"""Definition 2, applied: what a run of operations on one key makes of the state stored for it, and
which one action that comes to.

Locating folds to learn the net change; moving folds again, where the slot is, to learn the
values. Folding twice costs less than carrying a weight and a time for every row from the one to
the other: most runs are one operation long, and most batches have one weight and one time.

Requires: the rows of a run are next to each other; when it is settled, those after its first are
marked SKIP.
"""

from __future__ import annotations

import numpy as np

from ...arrays import Array
from ...batch.columns import Kind
from ...cpu.instructions import add_i64, load_i64, load_u8, store_u64
from ...cpu.jit import ZERO, inlined
from ...pma.counters import (
    CHANGED,
    DELETE_ABSENT,
    EXPIRED,
    NOT_POSITIVE,
    REASONS,
    ROUNDED_OFF,
    UNDERFLOW,
)
from ...pma.keys import HALF, LOW
from ..values import DELETE, INSERT, SKIP, WRITE
from .addressing import (
    MARKER,
    Slot,
    View,
    advance,
    read_time,
    read_weight,
    segment_at,
    write_slot,
    write_value,
)
from .batch_view import (
    BatchView,
    Rows,
    operation_weight,
    row_action,
    row_key,
    row_place,
    row_position,
    set_action,
    set_position,
)

_INSERT, _DELETE, _ADD_VERTEX = int(Kind.INSERT), int(Kind.DELETE), int(Kind.ADD_VERTEX)
_EXPIRE, _SET = int(Kind.EXPIRE), int(Kind.SET)

FOLDED, PRESENT, ABSENT = range(3)  # the outcomes of a batch's runs

# What a located chunk will do, in numbers: indices of its int64[TALLIED] tally. From UNCHANGED on,
# the counts by reason of counters.py: of rising and of falling edges (fold.falling).
TOUCHED, SLOTS, MARKERS, LOOPS, LARGEST, DELETIONS, UNCHANGED = range(7)
TALLIED = UNCHANGED + 2 * REASONS


@inlined
def rounded(v: View, weight: float) -> float:
    """A weight as the store keeps it."""
    return np.float64(np.float32(weight)) if v.weight_bytes == 4 else weight


@inlined
def apply_operation(
    v: View, batch: BatchView, p: int, marker: bool, present: bool, weight: float, time: int
) -> tuple[bool, float, int, int]:
    """Definition 2 for one operation: the state of a key after row p of the batch and, if that is
    the state before, why; EXPIRED if it let the edge go for its age (counters.py).

    Sums are rounded to the store's dtype after each operation, so that no grouping of
    operations into batches shows in the result."""
    kind = np.int64(load_u8(batch.kind + p * batch.kind_step))
    why = CHANGED
    if kind == _INSERT:
        given = operation_weight(batch, p)
        d = rounded(v, given)
        if v.weight_bytes == 0:
            if d == 0 or (d < 0 and not present):
                why = NOT_POSITIVE
            if d == 0:
                return present, weight, time, why
            present, weight = d > 0, 0.0
        else:
            if given != 0 and d == 0:
                why = UNDERFLOW
            if present:
                before, weight = weight, rounded(v, weight + d)
                present = weight >= 0
                if d != 0 and weight == before:
                    why = ROUNDED_OFF
            else:
                if d <= 0 and why == CHANGED:
                    why = NOT_POSITIVE
                present, weight = d > 0, d
    elif kind == _SET:
        given = operation_weight(batch, p)
        weight = rounded(v, given)
        if not present and weight <= 0:
            why = UNDERFLOW if given != 0 and weight == 0 else NOT_POSITIVE
        present = weight > 0
    elif kind == _EXPIRE:
        if present and time < load_i64(batch.time + p * batch.time_step):
            present, why = False, EXPIRED
        return present, weight, time, why
    else:
        if kind == _DELETE and not present:
            why = DELETE_ABSENT
        present = kind == _ADD_VERTEX and marker
        weight = 0.0
    if present:
        time = load_i64(batch.time + p * batch.time_step)
    return present, weight, time, why


@inlined
def fold(
    v: View,
    batch: BatchView,
    rows: Rows,
    lo: int,
    hi: int,
    present: bool,
    weight: float,
    time: int,
    unchanged: int,
) -> tuple[bool, float, int]:
    """The state of a key after its operations, rows lo … hi - 1, from its state before. Those that
    change nothing, or let it expire, are counted by reason at address `unchanged`, if that is not
    0."""
    key = row_key(rows, lo)
    marker = (key & LOW) == MARKER
    for row in range(lo, hi):
        p = row_place(rows, row)
        present, weight, time, why = apply_operation(v, batch, p, marker, present, weight, time)
        if why != CHANGED and unchanged:
            add_i64(unchanged + 8 * (falling(key) * REASONS + why), 1)
    return present, weight, time


@inlined
def falling(key: np.uint64) -> int:
    """1 if an edge goes from a larger vertex to a smaller one. An undirected graph holds each edge
    in both directions, and the second one is not counted again."""
    return 1 if key >> HALF > key & LOW else 0


@inlined
def _run_end(rows: Rows, row: int, hi: int) -> int:
    """The end of the run that starts at `row`; none passes `hi`."""
    key = row_key(rows, row)
    row += 1
    while row < hi and row_key(rows, row) == key:
        row += 1
    return row


@inlined
def insert_run(v: View, batch: BatchView, rows: Rows, row: int, hi: int, to: Slot) -> None:
    """Fill slot `to` with what the run at `row` inserts."""
    key = row_key(rows, row)
    end = _run_end(rows, row, hi)
    if end == row + 1:  # most runs: what is inserted is what the operation brings
        place = row_place(rows, row)
        kind = load_u8(batch.kind + place * batch.kind_step)
        weighted = kind == _INSERT or kind == _SET
        weight = operation_weight(batch, place) if weighted else 0.0
        time = load_i64(batch.time + place * batch.time_step)
    else:
        _, weight, time = fold(v, batch, rows, row, end, False, 0.0, 0, batch.plain)
    write_slot(v, to, key, weight, time)


@inlined
def is_plain(batch: BatchView) -> bool:
    """Whether `append_plain` takes the batch's rows."""
    return batch.plain != 0


@inlined
def append_plain(v: View, batch: BatchView, rows: Rows, lo: int, hi: int, at: Slot) -> None:
    """Put rows lo … hi - 1 of a plain batch into the slots of their leaf at `at`, where those that
    insert have a slot kept free each, of weight 0. Row by row, also within a run, so that no branch
    depends on what a row does or on where a run ends."""
    inserts, position = ZERO, ZERO
    sets = load_u8(batch.kind) == _SET
    for row in range(lo, hi):
        action, key, place = row_action(rows, row), row_key(rows, row), row_place(rows, row)
        position = position if action == SKIP else row_position(rows, row) + inserts
        inserts += np.int64(action == INSERT)
        to = advance(v, at, position)
        store_u64(to[0], key)
        before = 0.0 if sets else read_weight(v, to)
        weight = rounded(v, before + rounded(v, operation_weight(batch, place)))
        write_value(v, to, weight, load_i64(batch.time + place * batch.time_step))
        if v.weight_bytes and weight == before:
            add_i64(batch.plain + 8 * (falling(key) * REASONS + ROUNDED_OFF), 1)


@inlined
def write_run(v: View, batch: BatchView, rows: Rows, row: int, hi: int, at: Slot, to: Slot) -> None:
    """Write to slot `to` what the run at `row` makes of the weight and time at slot `at`."""
    weight, time = read_weight(v, at), read_time(v, at)
    end = _run_end(rows, row, hi)
    _, weight, time = fold(v, batch, rows, row, end, True, weight, time, batch.plain)
    write_value(v, to, weight, time)


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
    adding or setting positive weights, or deleting. Else FOLDED."""
    if batch.plain:
        return PRESENT
    if batch.kind_step:
        return FOLDED
    return ABSENT if load_u8(batch.kind) == _DELETE else FOLDED


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
    elif outcome == ABSENT:
        way = falling(row_key(rows, lo)) * REASONS
        tally[UNCHANGED + way + DELETE_ABSENT] += hi - lo - np.int64(found)
    set_position(rows, lo, position)
    return settle(rows, lo, found, present, tally)


@inlined
def settle_append(rows: Rows, row: int, slot: int) -> int:
    """What settle_run does if the batch is plain, except for the tally, and without a branch on
    whether the edge is new, which nothing could predict."""
    set_position(rows, row, slot >> 1)
    set_action(rows, row, WRITE if slot & 1 else INSERT)
    return (slot & 1) ^ 1
