"""Late operations: event time that lies further back than a stream allows.

Event time never reorders. It can only show that an operation comes too late to count: an
operation is late if its time lies more than `max_lateness` before the newest event time seen in
its partition, in whatever unit the time columns have. The policy says what becomes of it:

    apply         it is applied like any other, and nothing is measured
    dead-letter   it becomes a dead letter; the other rows of its record are applied
    reject        its whole record becomes a dead letter

The newest time is kept for each partition separately. Between partitions there is no order: one
that is read faster than another, after an outage say, would make all of the other's operations
late. So what is late depends only on the partition's own records, however they were polled,
and a replay finds the same.

Where the stream has a window by event time, an operation is late, too, if it lies outside of that:
more than the window's width before the newest event time of the whole stream (`sliding.py`). That
depends on the order in which partitions are read, which the journal keeps.

Rows count one by one, in order, so that the result does not depend on how a producer cuts its
records. What is not applied does not move the newest time. An operation without a time of its own
is never late, and neither is a query, nor an expiry: its time is no event's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.batch.columns import Columns, Kind

from .formats.msgpack import has_expiry
from .settings import RecordSettings
from .types import Partition
from .window import width_of

Array = npt.NDArray[Any]

_NEVER = np.int64(-(2**63))  # stands for the time of what has none; no time lies before it


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
        times = _event_times(columns)
        if times is None:
            return None
        newest = np.maximum.accumulate(times)
        late = _behind(times, newest, self._newest.get(partition), self.max_lateness)
        if self.window is not None:
            late |= _behind(times, newest, self._highest, self.window)
        if has_expiry(columns.kind):
            late &= columns.kind != Kind.EXPIRE
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


def lateness_of(settings: RecordSettings, newest: Mapping[Partition, int]) -> Lateness | None:
    """As these settings say, None if no row is ever late. newest: see `Lateness`."""
    if settings.late == "apply":
        return None
    window = width_of(settings.window) if settings.window_time == "event" else None
    return Lateness(settings.max_lateness, newest, window)


def _behind(times: Array, newest: Array, floor: int | None, most: int) -> Array:
    """bool[n]: which times lie more than `most` before the newest one up to theirs."""
    if floor is not None:
        newest = np.maximum(newest, floor)
    # As unsigned integers the difference is exact, even if the signed one overflows 64 bits.
    behind: Array = newest.view(np.uint64) - times.view(np.uint64)
    return behind > np.uint64(most)


def _event_times(columns: Columns) -> Array | None:
    """int64[n], contiguous, with _NEVER for expiries; None if no row has an event time."""
    if columns.time is None or not len(columns):
        return None
    times = np.ascontiguousarray(columns.time)
    if has_expiry(columns.kind):
        times = np.where(columns.kind == Kind.EXPIRE, _NEVER, times)
    return times


def newest_event(columns: Columns) -> int | None:
    """The newest event time of updates; None if none has one."""
    times = columns.time
    if times is not None and has_expiry(columns.kind):
        times = times[columns.kind != Kind.EXPIRE]
    return None if times is None or not len(times) else int(times.max())
