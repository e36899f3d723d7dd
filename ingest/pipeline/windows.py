"""Windows: which edges are too old to stay, and which operations come too late to count.

**Sliding windows.** An edge's time is that of its last operation. A window of width w keeps the
edges whose time is at least `newest` − w, where `newest` never falls:

    event     the highest event time applied so far, of updates that carry one. An update without
              a time does not move the window: its stamp may be in another unit
    arrival   the stamp of the last operation applied. Every edge then has its stamp as its time,
              whatever event time its record carries

Idea: an expiry is an ordinary operation of the stream (`Kind.EXPIRE`), so sliding a window adds one
row behind the last row of a batch. Queries of that batch see the graph before the expiry, however
the batch is applied, and whatever follows the graph's changes sees what expired.

Invariants:
1. The bound is a function of the batches applied, their rows and stamps. A replay, which cuts the
   same batches, expires the same edges; a checkpoint has to keep `newest` alone.
2. After each batch no edge is older than the bound. A row is added only where the bound rose, or
   where the batch itself appended or set something older.
3. No bound leaves 64 bits: as long as `newest` − w would, nothing expires.

An edge that is older than the bound when it is appended or set is late by the window: it is
counted, and expires with its batch, unless a late policy keeps it out.

A width is in the unit of the edges' times, which producers choose. A duration is taken as
milliseconds, the unit of stamps and of datetimes (lpma/arguments/times.py).

**Far rows.** `newest` never falls, so one row with a time far ahead, in another unit or by a wrong
clock, would let everything before it expire, and make late what comes after it. Where event time
moves a window, or says what is late, a row whose time lies more than `max_ahead` past its stamp
becomes a dead letter. That depends on the row and the stamp alone, so a replay finds the same.

**Lateness.** Event time never reorders. An operation is late if its time lies more than
`max_lateness` before the newest event time seen in its partition. The policy says what happens:

    apply         it is applied like any other, and nothing is measured
    dead-letter   it becomes a dead letter; the other rows of its record are applied
    reject        its whole record becomes a dead letter

The newest time is kept per partition, because partitions have no order between them: one that is
read faster than another, after an outage say, would make all of the other's operations late. So
what is late depends only on the partition's own records, however they were polled, and a replay
finds the same. With a window by event time an operation is also late if it lies outside the window:
that depends on the order in which partitions are read, which the journal keeps.

Rows count one by one, in order, so the result does not depend on how a producer cuts its records.
Rows that are not applied do not move the newest time. Operations without a time of their own are
never late, nor are queries, nor expiries, whose time is no event's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal, NamedTuple

import numpy as np

from lpma.batch.columns import EXPIRE, Columns, query_rows, weighted_rows

from ..errors import PipelineError
from ..formats.msgpack import has_expiry
from ..types import Array, Partition
from .batching import StreamBatch, newest_event

WindowTime = Literal["event", "arrival"]
Width = int | timedelta | str | None

NO_TIMES = "expire: this graph keeps no times, so nothing of it can expire: make it with times=True"
LOWEST = -(2**63)
MAX_WIDTH = 2**63 - 1
_UNITS_MS = {
    "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000,
    "w": 604_800_000,
}  # fmt: skip
_TEXT = re.compile(r"([0-9]{1,19})\s*([a-z]*)")
_SAID = (
    "expected '24h' or the like (ms, s, m, h, d, w), a timedelta, a whole number in the unit of "
    "the times"
)


def width_of(given: Width, name: str = "window") -> int | None:
    """A span of times, as the width of a window, in their unit; None: there is none, of None or
    'none'. Otherwise as `span_of`.

    >>> width_of("24h"), width_of("86400"), width_of(timedelta(minutes=1)), width_of(7)
    (86400000, 86400, 60000, 7)
    """
    return None if given is None or given == "none" else span_of(given, name, ", or 'none'")


def span_of(given: int | timedelta | str, name: str, others: str = "") -> int:
    """A span of times in their unit. Text with a unit and a timedelta are taken as milliseconds,
    which times are unless a producer says otherwise; a number, also as text, stays as it is. Raises
    PipelineError, which says the name of the setting, and what else it takes (`others`)."""
    width: Any = given
    if isinstance(given, timedelta):
        width, rest = divmod(given, timedelta(milliseconds=1))
        if rest:
            raise PipelineError(f"{name} is {given!r}: whole milliseconds are taken")
    elif isinstance(given, str):
        found = _TEXT.fullmatch(given.strip())
        unit = None if found is None else 1 if not found[2] else _UNITS_MS.get(found[2])
        if found is None or unit is None:
            raise PipelineError(f"{name} is {given!r}: {_SAID}{others}")
        width = int(found[1]) * unit
    if isinstance(width, np.integer):
        width = int(width)
    if type(width) is not int or not 0 <= width <= MAX_WIDTH:
        raise PipelineError(f"{name} is {given!r}: {_SAID}{others}, from 0 to 2^63 − 1")
    return width


def span_text(milliseconds: int) -> str:
    """A span of milliseconds as people read it, in the largest unit of which it is a whole number.

    >>> span_text(30), span_text(2_592_000_000), span_text(5_400_000), span_text(0)
    ('30 ms', '30 d', '90 min', '0 ms')
    """
    for unit in ("d", "h", "min", "s"):
        if milliseconds and milliseconds % _UNITS_MS[unit] == 0:
            return f"{milliseconds // _UNITS_MS[unit]:,} {unit}"
    return f"{milliseconds:,} ms"


def refuse_less_than_a_second(text: str | int | None, name: str) -> None:
    """Raise PipelineError for a bare number below a second's worth, where times were dates: it is
    in milliseconds, and was meant in another unit."""
    said = str(text).strip()
    if said.isdecimal() and 0 < int(said) < _UNITS_MS["s"]:
        raise PipelineError(
            f"{name} is {said}: times are dates, and {said} is {said} ms: {said}d is {said} days"
        )


def bound_of(newest: int | None, width: int | None) -> int | None:
    """What is older than this has expired; None: nothing has.

    >>> bound_of(100, 30), bound_of(-(2**63) + 5, 6), bound_of(None, 30)
    (70, None, None)
    """
    if newest is None or width is None or newest - width < LOWEST:
        return None
    return newest - width


def facts_of(
    width: int | None, moved_by: WindowTime, newest: int | None
) -> dict[str, int | str | None] | None:
    """A window as reports tell it; None: there is none."""
    if width is None:
        return None
    return {"width": width, "time": moved_by, "expired_before": bound_of(newest, width)}


_NEVER = np.int64(-(2**63))  # stands for the time of what has none; no time lies before it


# Sliding ------------------------------------------------------------------------------------


class Slide(NamedTuple):
    """What a batch does to a window. newest: after it. before: what an expiry behind its rows is
    given; None: there is none. late: edges appended or set that were older than the bound by
    then."""

    newest: int | None
    before: int | None
    late: int


def slide(batch: StreamBatch, newest: int | None, width: int, arrival: bool) -> Slide:
    """What `batch` does to a window of this width. newest: before it.

    ENSURES: invariants 1 to 3. Where a batch has no operation, nothing moves: it is not in the
    journal either."""
    if not batch.operations:
        return Slide(newest, None, 0)
    old = bound_of(newest, width)
    if arrival:
        newest = batch.last_stamp  # which never falls
        return Slide(newest, _risen(old, bound_of(newest, width)), 0)
    columns = batch.columns
    if not len(columns) or columns.time is None:
        return Slide(newest, None, 0)
    moves = _moves(batch)
    moved = columns.time if moves is None else columns.time[moves]
    before_it = newest
    if len(moved):
        highest = int(moved.max())
        newest = highest if newest is None else max(newest, highest)
    bound = bound_of(newest, width)
    if bound is not None:
        old_times = (columns.time < bound) & weighted_rows(columns.kind)
        if old_times.any() and (late := _late(columns.time, moves, before_it, width, old_times)):
            return Slide(newest, bound, late)
    return Slide(newest, _risen(old, bound), 0)


def _risen(old: int | None, bound: int | None) -> int | None:
    return bound if bound is not None and (old is None or bound > old) else None


def _moves(batch: StreamBatch) -> Array | None:
    """bool[n]: which rows carry an event time, so that they move the window; None: all do."""
    kinds = batch.columns.kind
    carry, sizes = batch.timed
    without = query_rows(kinds) | (kinds == EXPIRE)
    if all(carry) and not without.any():
        return None
    moves: Array = np.repeat(np.array(carry, np.bool_), sizes) & ~without
    return moves


def _late(
    times: Array, moves: Array | None, newest: int | None, width: int, old_times: Array
) -> int:
    """How many of the rows `old_times` were too old when they came, each judged by the rows up to
    itself: so it does not depend on where batches end."""
    floor = LOWEST if newest is None else newest
    seen = times if moves is None else np.where(moves, times, LOWEST)
    seen = np.maximum(np.maximum.accumulate(seen), floor)[old_times]
    times = times[old_times]
    return int(np.count_nonzero((times < seen) & _behind(times, seen, None, width)))


def with_expiry(columns: Columns, before: int) -> Columns:
    """The rows of a batch, and behind them the expiry of what is older than `before`."""
    last = np.zeros(1, np.uint32)
    weight = columns.weight
    return columns.replace(
        kind=np.append(columns.kind, np.uint8(EXPIRE)),
        src=np.append(columns.src, last),
        dst=np.append(columns.dst, last),
        weight=None if weight is None else np.append(weight, weight.dtype.type(0)),
        time=np.append(_times(columns), np.int64(before)),
    )


def _times(columns: Columns) -> Array:
    """REQUIRES: a batch of a stream, whose rows have times, unless it has no rows."""
    assert columns.time is not None or not len(columns)
    return np.zeros(0, np.int64) if columns.time is None else columns.time


# Lateness -----------------------------------------------------------------------------------


class Lateness:
    """Which rows are late, under a policy other than "apply".

    newest: the newest event time applied, by partition, if the stream goes on. window: the width of
    a window by event time, if there is one. REQUIRES: max_lateness and window at least 0."""

    def __init__(
        self, max_lateness: int, newest: Mapping[Partition, int], window: int | None = None
    ) -> None:
        self.max_lateness = max_lateness
        self.window = window
        self._newest = dict(newest)
        self._highest = max(self._newest.values(), default=None)  # of all partitions

    def late_rows(self, partition: Partition, columns: Columns) -> Array | None:
        """Which rows of a record are late, bool[n]; None if none is."""
        times = event_times(columns)
        if times is None:
            return None
        newest = np.maximum.accumulate(times)
        late = _behind(times, newest, self._newest.get(partition), self.max_lateness)
        if self.window is not None:
            late |= _behind(times, newest, self._highest, self.window)
        if has_expiry(columns.kind):
            late &= columns.kind != EXPIRE
        return late if bool(late.any()) else None

    def advance(self, partition: Partition, columns: Columns) -> int | None:
        """Note the times of rows that are applied; the newest of them, None if none counts."""
        newest = newest_event(columns)
        if newest is not None:
            self._newest[partition] = max(newest, self._newest.get(partition, newest))
            self._highest = max(newest, newest if self._highest is None else self._highest)
        return newest

    def reason(self, late: Array) -> str:
        """The reason that a dead letter gives for these rows of a record."""
        window = self.window
        outside = "" if window is None else f", or {window} behind the stream's: its window"
        return (
            f"late: {int(late.sum())} of {len(late)} rows, the first of them row "
            f"{int(late.argmax())}, lie more than {self.max_lateness} behind the newest event time"
            f"{outside}"
        )


def _behind(times: Array, newest: Array, floor: int | None, most: int) -> Array:
    """bool[n]: which times lie more than `most` before the newest one up to theirs."""
    if floor is not None:
        newest = np.maximum(newest, floor)
    # As unsigned integers the difference is exact, even if the signed one overflows 64 bits.
    behind: Array = newest.view(np.uint64) - times.view(np.uint64)
    return behind > np.uint64(most)


def event_times(columns: Columns) -> Array | None:
    """int64[n], contiguous, with _NEVER for expiries; None if no row has an event time."""
    if columns.time is None or not len(columns):
        return None
    times = np.ascontiguousarray(columns.time)
    if has_expiry(columns.kind):
        times = np.where(columns.kind == EXPIRE, _NEVER, times)
    return times
