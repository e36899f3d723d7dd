"""Listing the neighbours of many vertices at once, and counting them: neighbors.cu.

The host needs the length of an answer to allocate it, but does not wait for that: it guesses from
what earlier queries returned, launches everything, and then reads the length that the kernel that
located the queries wrote into the host's memory. If the guess was too small, the kernels that copy
have done nothing, and are launched again. Ids that lie on the device are checked on the way.
Streams: see reader.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import cupy
import numpy as np

from ....cuda import driver
from ....cuda.launch import blocks_for
from ..store.segments import Segments
from ..upload.staged_batch import StagedBatch
from .kernels import launch_on
from .reader import CANDIDATES, PRESENT, Reader, Reading

Array = Any  # numpy.ndarray or cupy.ndarray in, cupy.ndarray out
New = Callable[..., Array]  # (length, dtype, last=True)

QUERY_THREADS = 128
WARPS = 8192  # about what a large device holds at once
MOST_TILES = 16  # of 32 rows, one warp's share of an answer
MOST_GUESSED = 1 << 22  # rows; a longer answer is worth the wait for its length
SPARE = 1.25  # room to rows expected
FIRST_GUESS = 16.0  # rows a query


class Found(NamedTuple):
    """What locate_neighbors writes, on the device."""

    n: int
    indptr: Array
    begin: int  # addresses, in `kept`
    before: int
    span: int  # of its rows beside the store; 0 where there are none
    kept: tuple[Array, Array]

    @property
    def rows(self) -> tuple[int, Array, int, int]:
        return self.n, self.indptr, self.begin, self.before


class Columns(NamedTuple):
    """What rows are written to; None where that is not wanted."""

    ids: Array
    weights: Array | None
    times: Array | None

    def cut(self, rows: int, room: int, new: New, stream: Any) -> Columns:
        """The first `rows` of `room`; copied if most of the memory would be held for nothing."""
        if rows == room:
            return self
        parts = [None if c is None else c[:rows] for c in self]
        if 2 * rows < room:
            copies = [None if c is None else new(rows, c.dtype) for c in parts]
            for copy, part in zip(copies, parts, strict=True):
                if copy is not None and part is not None and rows:
                    driver.copy(copy.data.ptr, part.data.ptr, part.nbytes, stream)
            parts = copies
        return Columns(*parts)


NOTHING = Columns(None, None, None)


class Neighbors:
    """Of one store."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._rates = FIRST_GUESS, 0.0  # rows a query, of the last two answers

    def count_neighbors(
        self, segments: Segments, staged: StagedBatch | None, vertices: Array,
        limits: Array | None, unseen: bool = False,
    ) -> Array:  # fmt: skip
        n, ticket = len(vertices), 0
        with Reading(self._reader) as reading:
            counts = reading.new(n, np.int64)
            if n and staged is None:
                *checking, ticket = self._reader.checking(unseen, vertices)
                launch_on(
                    segments, "query", "count_neighbors", 2 * n,
                    segments.record, reading.given(vertices, np.uint32), n, counts,
                    *checking, ticket, block=QUERY_THREADS,
                )  # fmt: skip
            elif n:
                found = self._locate(segments, reading, vertices, cupy.empty(n + 1, np.int64), True)
                rows = int(self._reader.told()[CANDIDATES])
                ends = cupy.empty(n + 1, np.int64)
                self._read_beside(segments, staged, limits, found, rows, NOTHING, ends)
                cupy.subtract(ends[1:], ends[:-1], out=counts)
            if ticket:
                self._reader.told()
        return counts

    def neighbors(
        self,
        segments: Segments,
        staged: StagedBatch | None,
        vertices: Array,
        limits: Array | None,
        values: bool,
    ) -> tuple[Array, Array, Array | None, Array | None]:
        """(indptr, ids, weights, times) of q queries; the last two only with `values`. Raises
        BatchError if one of them is 2^32 - 1."""
        n, mixed = len(vertices), staged is not None
        with Reading(self._reader) as reading:
            new = reading.new
            room, columns = self._guessed(segments, n, values, new)
            indptr = new(n + 1, np.int64)
            if n == 0:
                driver.clear(indptr.data.ptr, indptr.nbytes, self._reader.stream)
                return indptr, *columns.cut(0, room, new, self._reader.stream)
            candidates = cupy.empty(n + 1, np.int64) if mixed else indptr
            found = self._locate(segments, reading, vertices, candidates, mixed)
            self._read_found(segments, staged, limits, found, room, columns, indptr)
            words = self._reader.told()
            rows = words[CANDIDATES]
            if rows > room:
                room, columns = rows, _columns_for(segments, rows, values, new)
                self._read_found(segments, staged, limits, found, room, columns, indptr)
                words = self._reader.told()
            self._rates = rows / n, self._rates[0]
            return indptr, *columns.cut(words[PRESENT], room, new, self._reader.stream)

    def neighbors_from(
        self, segments: Segments, vertex: int, first: int, most: int
    ) -> tuple[Array, Array | None, Array | None]:
        """(ids, weights, times) of a piece of a row, cut from the whole row: a device copies ten
        million neighbours in less than a millisecond."""
        row = self.neighbors(segments, None, np.array([vertex], np.uint32), None, True)[1:]
        start = int(cupy.searchsorted(row[0], cupy.array([first], np.uint32))[0])
        ids, weights, times = (
            None if column is None else column[start : start + most].copy() for column in row
        )
        return ids, weights, times

    def _guessed(self, segments: Segments, n: int, values: bool, new: New) -> tuple[int, Columns]:
        """(room, columns) for as many rows as n queries will probably have, not yet ordered."""
        room = int(SPARE * max(self._rates) * n)
        if room <= MOST_GUESSED:
            try:
                return room, _columns_for(segments, room, values, new, last=False)
            except MemoryError:
                pass
        return 0, _columns_for(segments, 0, values, new, last=False)

    def _locate(
        self, segments: Segments, reading: Reading, vertices: Array, indptr: Array, mixed: bool
    ) -> Found:
        """The rows of every query, in a mixed batch the candidates' (beside.cu); the host is told
        of them."""
        n, beside = len(vertices), self._reader.beside if mixed else None
        asked = reading.given(vertices, np.uint32)
        status = 8 * (1 + blocks_for(n))
        scratch = cupy.empty(status + 24 * n, np.uint8)
        at = scratch.data.ptr
        driver.clear(at, status, self._reader.stream)
        begin = at + status
        before, span = begin + 8 * n, begin + 16 * n
        stem, name = "neighbors", "locate_neighbors"
        work: tuple[Any, ...] = ()
        spans: tuple[Any, ...] = ()
        if beside is not None:
            stem, name, work, spans = "beside", "locate_beside", (beside.work,), (span,)
        launch_on(
            segments, stem, name, n,
            segments.record, *work, asked, n, indptr, begin, before, *spans, at,
            self._reader.mailbox.at, self._reader.mailbox.next_ticket(),
        )  # fmt: skip
        return Found(n, indptr, begin, before, span, (scratch, asked))

    def _read_found(
        self, segments: Segments, staged: StagedBatch | None, limits: Array | None, found: Found,
        room: int, columns: Columns, ends: Array,
    ) -> None:  # fmt: skip
        """Copy what was found, if it is no more than `room`; in a mixed batch, to where `ends` then
        says, of which the host is told."""
        if staged is not None:
            self._read_beside(segments, staged, limits, found, room, columns, ends)
        elif room:
            tiles = min(MOST_TILES, max(1, -(-room // (32 * WARPS))))
            launch_on(
                segments, "neighbors", "read_neighbors", 32 * -(-room // (32 * tiles)),
                segments.record, *found.rows, room, tiles, *columns,
            )  # fmt: skip

    def _read_beside(
        self, segments: Segments, staged: StagedBatch | None, limits: Array | None, found: Found,
        room: int, columns: Columns, ends: Array,
    ) -> None:  # fmt: skip
        """Pack the candidates that are present into `columns`, if they are no more than `room`.
        ends: int64[n + 1], where the rows of each query then begin and end."""
        status = 8 * (1 + blocks_for(room + 1))
        scratch = cupy.empty(status + 8 * (room + 1), np.uint8)
        at = scratch.data.ptr
        driver.clear(at, status, self._reader.stream)
        batch, (places,) = self._reader.batch_and_places(staged, limits)
        assert self._reader.beside is not None
        launch_on(
            segments, "beside", "read_beside", room + 1,
            segments.record, *batch, self._reader.beside.ranks, found.span, places, *found.rows,
            room, at + status, *columns, at,
        )  # fmt: skip
        launch_on(
            segments, "beside", "end_present", found.n + 1,
            found.n, found.indptr, room, at + status, ends, self._reader.mailbox.at,
            self._reader.mailbox.next_ticket(),
        )  # fmt: skip


def _columns_for(
    segments: Segments, rows: int, values: bool, new: New, last: bool = True
) -> Columns:
    ids = new(rows, np.uint32, last=last and not values)
    return Columns(ids, *(values_for(segments, rows, new, last) if values else (None, None)))


def values_for(
    segments: Segments, n: int, new: New, last: bool = True
) -> tuple[Array | None, Array | None]:
    """Columns for n weights and times; None if the store keeps none."""
    weights = new(n, segments.weights[0].dtype, last=last) if segments.weights else None
    return weights, new(n, np.int64, last=last) if segments.times else None
