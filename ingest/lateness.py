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

Rows count one by one, in order, so that the result does not depend on how a producer cuts its
records. What is not applied does not move the newest time. An operation without a time of its own
is never late, and neither is a query.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .types import Partition

Array = npt.NDArray[Any]


class Lateness:
    """Which rows are late, under a policy other than "apply".

    newest: the newest event time applied, by partition, if the stream goes on.
    REQUIRES: max_lateness at least 0."""

    def __init__(self, max_lateness: int, newest: Mapping[Partition, int]) -> None:
        self.max_lateness = max_lateness
        self._newest = dict(newest)

    def late_rows(self, partition: Partition, times: Array | None) -> Array | None:
        """Which rows of a record are late, bool[n]; None if none is. `times`: its event times,
        int64[n], None if it has none."""
        if times is None or not len(times):
            return None
        newest = np.maximum.accumulate(times)
        if partition in self._newest:
            newest = np.maximum(newest, self._newest[partition])
        # As unsigned integers the difference is exact, even if the signed one overflows 64 bits.
        behind = newest.view(np.uint64) - np.ascontiguousarray(times).view(np.uint64)
        late: Array = behind > np.uint64(self.max_lateness)
        return late if bool(late.any()) else None

    def advance(self, partition: Partition, times: Array | None) -> int | None:
        """Note the times of rows that are applied; the newest of them, None if none counts."""
        if times is None or not len(times):
            return None
        newest = int(times.max())
        self._newest[partition] = max(newest, self._newest.get(partition, newest))
        return newest

    def reason(self, late: Array) -> str:
        """The reason that a dead letter gives for these rows of a record."""
        return (
            f"late: {int(late.sum())} of {len(late)} rows, the first of them row "
            f"{int(late.argmax())}, lie more than {self.max_lateness} behind the newest event time"
        )
