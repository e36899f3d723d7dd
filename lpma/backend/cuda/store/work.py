"""The buffers of a batch on the device, and what kernels report of it.

One allocation holds all columns that grow with a batch's rows; it is kept from batch to batch
and made anew when a larger one comes. See work.cuh for what each column means.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import cupy
import numpy as np

from ....cuda import driver
from ....cuda.driver import Array
from ....pma.counters import REASONS
from .segments import LEVELS, as_argument

DIGITS = 256
SUMMARY_WORDS = 6  # work.cuh
MAX_BLOCKS = 4096  # of a cooperative grid: no device holds more of ours
ALIGNMENT = 256
MOST_PLANS = (1 << 30) - 1  # which are told apart


class Report(IntEnum):
    """Words of the report, as in work.cuh."""

    SRC_BITS = 0
    DST_BITS = 1
    BAD_KIND = 2
    BAD_VERTEX = 3
    BAD_WEIGHT = 4
    BAD_HOPS = 5
    ROWS = 6
    IN_SECOND = 7
    LONG_RUNS = 8
    ACTIONS = 9
    TOUCHED = 10
    INSERTED = 11
    DELETED = 12
    MARKERS = 13
    LOOPS = 14
    LARGEST = 15
    WINDOWS = 16
    HELD_ABOVE = 17
    LARGE_SLOTS = 18
    REDUNDANT = 19
    CROWDED = 20
    LARGE_WINDOWS = 21
    UNCHANGED = 22
    WINDOWS_BY_LAYER = 22 + 2 * REASONS
    HELD_BY_LAYER = WINDOWS_BY_LAYER + LEVELS
    WORDS = HELD_BY_LAYER + LEVELS


REPORT_BYTES = 8 * Report.WORDS

# Columns of a row, and those of a leaf: (field, bytes an entry).
_ROW_COLUMNS = (
    ("key0", 8), ("key1", 8), ("place0", 4), ("place1", 4), ("rank", 4), ("position", 2),
    ("action", 1), ("weight", 8), ("time_place", 4), ("long_run", 4),
    ("row", 4), ("inserts", 4), ("removes", 4),
)  # fmt: skip
_LEAF_COLUMNS = (
    ("touched", 4), ("begin", 4), ("leaf_inserts", 4), ("leaf_removes", 4), ("layer", 1),
    ("window", 4), ("window_first", 4), ("window_last", 4), ("window_offset", 8), ("large", 4),
)  # fmt: skip
_POINTERS = (*_ROW_COLUMNS, *_LEAF_COLUMNS)

WORK = np.dtype(
    [(name, "<u8") for name, _ in _POINTERS]
    + [(name, "<u8") for name in ("stamps", "histogram", "of_block", "report", "gate")]
)

REPORT = (WORK.names or ()).index("report")  # all of its fields have 8 bytes

COLUMNS = np.dtype([(name, "<u8") for name in ("keys", "weights", "times")])
SHRINKING = np.dtype([(name, "<u8") for name in ("most", "window", "offset", "report")])


class Work:
    """Buffers for batches of one store."""

    def __init__(self) -> None:
        self.rows = 0  # room, also for leaves
        self._buffer: Array | None = None
        self._tree: Array | None = None  # stamps
        self._m = -1
        self._plans = 0
        self.written = False  # see lpma.backend.protocol.Writing
        self.revision = 0  # rises whenever the scratch changes, or `record` except for the report
        self._grid = cupy.zeros(DIGITS * (MAX_BLOCKS + 1) + SUMMARY_WORDS * MAX_BLOCKS, cupy.uint32)
        # The report of the batch under way, and one of zeros, for the next batch applied at once.
        # The address of the one is the sum of both without the other's.
        self._reports = cupy.zeros((2, int(Report.WORDS)), cupy.int64)
        first = int(self._reports.data.ptr)
        self.both_reports = 2 * first + REPORT_BYTES
        self._gate = cupy.zeros(1, cupy.uint32)
        self._scratch: Array | None = None
        self.scratch_slots = 0  # for which there are columns
        self._windows: Array | None = None  # to be spread by a shrink
        self._landing = cupy.cuda.alloc_pinned_memory(REPORT_BYTES)
        self._words = np.frombuffer(self._landing, np.int64, int(Report.WORDS))
        self.record = np.zeros((), WORK)
        self.argument = as_argument(self.record)
        self.record["histogram"] = self._grid.data.ptr
        self.record["of_block"] = self._grid.data.ptr + 4 * DIGITS * (MAX_BLOCKS + 1)
        self.record["gate"] = self._gate.data.ptr
        self.fields = self.record.reshape(1).view(np.uint64).data  # to be read and written at once
        self.fields[REPORT] = first  # the only note of which of the two is in use

    @property
    def nbytes(self) -> int:
        held = (self._buffer, self._scratch, self._windows, self._tree)
        return sum(int(array.nbytes) for array in held if array is not None)

    def reserve(self, rows: int) -> None:
        """Make room for batches of that many rows, each of which may touch a leaf."""
        if self._buffer is not None and rows <= self.rows:
            return
        rows = max(rows, self.rows, 1)
        sizes = [(name, size * (rows + 1)) for name, size in (*_ROW_COLUMNS, *_LEAF_COLUMNS)]
        padded = [-(-size // ALIGNMENT) * ALIGNMENT for _, size in sizes]
        self._buffer = None  # first: old and new need not fit side by side
        self.rows = 0
        self._buffer = cupy.empty(sum(padded), cupy.uint8)
        at = self._buffer.data.ptr
        for (name, _), size in zip(sizes, padded, strict=True):
            self.record[name] = at
            at += size
        self.revision += 1
        self.rows = rows  # last: if this is interrupted, it starts over

    def reserve_tree(self, m: int) -> None:
        """Marks for a tree of m levels, at rest."""
        if m == self._m:
            return
        self._tree, self._m = None, -1
        self.revision += 1  # at once: where memory runs out, `record` tells of what is gone
        self._tree = cupy.zeros(2 << m, cupy.uint32)
        self.record["stamps"] = self._tree.data.ptr
        self._m, self._plans = m, 0

    def next_plan(self) -> int:
        """A number that no mark in the tree has."""
        self._plans += 1
        if self._plans > MOST_PLANS:
            assert self._tree is not None
            self._tree.fill(0)
            self._plans = 1
        return self._plans

    def scratch(self, slots: int, weight_bytes: int, times: bool) -> Any:
        """A record of columns for that many slots, or more; see move.cuh."""
        widths = [8, weight_bytes, 8 * times]
        if self.scratch_slots < slots:
            self.release_scratch()
            slots = -(-slots // ALIGNMENT) * ALIGNMENT
            self._scratch = cupy.empty(slots * sum(widths), cupy.uint8)
            self.scratch_slots = slots
        assert self._scratch is not None
        record, at = np.zeros((), COLUMNS), int(self._scratch.data.ptr)
        for name, width in zip(COLUMNS.names or (), widths, strict=True):
            record[name] = at if width else 0
            at += self.scratch_slots * width
        return as_argument(record)

    def put_rows(self, keys: Any, places: Any) -> None:
        """Copy key operations that were made on the host to the columns that are sorted."""
        assert self._buffer is not None
        for name, values in (("key0", keys), ("place0", places)):
            at = int(self.record[name]) - self._buffer.data.ptr
            self._buffer[at : at + values.nbytes].set(np.ascontiguousarray(values).view(np.uint8))

    def reserve_shrinking(self, m: int) -> None:
        """Room to list the windows that shrinking a store of m levels spreads."""
        size = 8 * (2 + LEVELS) + 12 * (1 << max(m - 1, 0))
        if self._windows is None or self._windows.nbytes < size:
            self._windows = None
            self._windows = cupy.empty(size, cupy.uint8)

    def shrinking(self, m: int, most_at: int) -> tuple[Any, Array]:
        """(the Shrinking of shrink.cu for a smaller store of m levels, its report at 0). most_at:
        where its upper bounds are."""
        words = 2 + LEVELS
        self.reserve_shrinking(m + 1)
        assert self._windows is not None
        report = self._windows[: 8 * words].view(cupy.int64)
        report.fill(0)
        record = np.zeros((), SHRINKING)
        record["most"], record["report"] = most_at, report.data.ptr
        record["offset"] = report.data.ptr + 8 * words
        record["window"] = int(record["offset"]) + (8 << m)
        return as_argument(record), report

    def go_back(self, report_at: int, stream: Any) -> None:
        """After a launch that failed, use the report at that address again: it is of the batch
        before, which may be on its way. The other report is cleared."""
        driver.clear(self.both_reports - report_at, REPORT_BYTES, stream)
        self.fields[REPORT] = report_at

    def open_gate(self, stream: Any) -> None:
        """Let batches through again, after one that was refused (order.cuh)."""
        driver.clear(self._gate.data.ptr, 4, stream)

    def clear_report(self, stream: Any, first: int = 0) -> None:
        """Set the report's words from `first` on to 0."""
        driver.clear(self.fields[REPORT] + 8 * first, REPORT_BYTES - 8 * first, stream)

    def read_report(self, stream: Any) -> list[int]:
        driver.copy(self._landing.ptr, self.fields[REPORT], REPORT_BYTES, stream)
        driver.await_stream(stream)
        words: list[int] = self._words.tolist()
        return words

    def release_scratch(self) -> None:
        if self._scratch is not None:
            self._scratch, self.scratch_slots = None, 0
            self.revision += 1

    def release(self) -> None:
        """Give back what grows with a batch."""
        self.rows = 0
        self.revision += 1
        self._buffer = self._windows = None
        self.release_scratch()
