"""Listing the neighbours of many vertices at once, and counting them: neighbors.cu.

The host needs the length of an answer to allocate it, but does not wait for that: it guesses from
what earlier queries returned, launches everything, and then reads the length that the kernel that
located the queries wrote into the host's memory. If the guess was too small, the kernels that copy
have done nothing, and are launched again. Ids that lie on the device are checked on the way.
Streams: see reader.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy
import numpy as np

from ....cuda import driver
from ....cuda.driver import Array
from ....cuda.launch import blocks_for
from ....record import Record
from ..launch.kernels import launch_on
from ..store.segments import Segments
from ..upload.staged_batch import StagedBatch
from .reader import CANDIDATES, PRESENT, UNCHECKED, Reader

QUERY_THREADS = 128
WARPS = 8192  # about what a large device holds at once
MOST_TILES = 16  # of 32 rows, one warp's share of an answer
MOST_GUESSED = 1 << 22  # rows; a longer answer is worth the wait for its length
SPARE = 1.25  # room to rows expected
FIRST_GUESS = 16.0  # rows a query


class Found(Record):
    """What locate_neighbors writes, on the device."""

    n: int
    indptr: Array
    begin: int  # addresses, in `kept`
    before: int
    span: int  # of its rows beside the store; 0 where there are none
    kept: tuple[Array, Array]


class Columns(NamedTuple):
    """What rows are written to; None where that is not wanted."""

    ids: Array
    weights: Array | None
    times: Array | None

    def cut(self, rows: int, room: int, reader: Reader) -> Columns:
        """The first `rows` of `room`; copied if most of the memory would be held for nothing."""
        if rows == room:
            return self
        ids, weights, times = self
        parts = [
            ids[:rows],
            None if weights is None else weights[:rows],
            None if times is None else times[:rows],
        ]
        if 2 * rows < room:
            copies = reader.new(*[(rows, None if part is None else part.dtype) for part in parts])
            for copy, part in zip(copies, parts, strict=True):
                if part is not None and rows:
                    driver.copy(copy.data.ptr, part.data.ptr, part.nbytes, reader.stream)
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
        n = len(vertices)
        with self._reader as reader:
            (counts,) = reader.new((n, np.int64))
            if n and staged is None:
                looks = unseen and isinstance(vertices, cupy.ndarray)
                launch_on(
                    segments, "query", "count_neighbors", 2 * n,
                    segments.record, reader.given(vertices, np.uint32), n, counts,
                    *(reader.checking() if looks else UNCHECKED), block=QUERY_THREADS,
                )  # fmt: skip
                if looks:
                    reader.told()
            elif n and staged is not None:
                found = self._locate(segments, vertices, cupy.empty(n + 1, np.int64), True)
                rows = int(reader.told()[CANDIDATES])
                ends = cupy.empty(n + 1, np.int64)
                self._read_beside(segments, staged, limits, found, rows, NOTHING, ends)
                cupy.subtract(ends[1:], ends[:-1], out=counts)
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
        weight, time = segments.value_dtypes if values else (None, None)
        with self._reader as reader:
            room = int(SPARE * max(self._rates) * n)  # for the rows that there will probably be
            room = room if room <= MOST_GUESSED else 0
            try:
                indptr, *made = reader.new(
                    (n + 1, np.int64), (room, np.uint32), (room, weight), (room, time)
                )
            except MemoryError:
                room = 0
                indptr, *made = reader.new(
                    (n + 1, np.int64), (0, np.uint32), (0, weight), (0, time)
                )
            columns = Columns(*made)
            if n == 0:
                driver.clear(indptr.data.ptr, indptr.nbytes, reader.stream)
                return indptr, *columns
            candidates = cupy.empty(n + 1, np.int64) if mixed else indptr
            found = self._locate(segments, vertices, candidates, mixed)
            self._read_found(segments, staged, limits, found, room, columns, indptr)
            words = reader.told()
            rows = words[CANDIDATES]
            if rows > room:
                room = rows
                columns = Columns(*reader.new((room, np.uint32), (room, weight), (room, time)))
                self._read_found(segments, staged, limits, found, room, columns, indptr)
                words = reader.told()
            self._rates = rows / n, self._rates[0]
            return indptr, *columns.cut(words[PRESENT], room, reader)

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

    def _locate(self, segments: Segments, vertices: Array, indptr: Array, mixed: bool) -> Found:
        """The rows of every query, in a mixed batch the candidates' (beside.cu); the host is told
        of them."""
        n, reader = len(vertices), self._reader
        beside = reader.beside if mixed else None
        asked = reader.given(vertices, np.uint32)
        status = 8 * (1 + blocks_for(n))
        scratch = cupy.empty(status + 24 * n, np.uint8)
        at = scratch.data.ptr
        driver.clear(at, status, reader.stream)
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
            reader.mailbox.at, reader.mailbox.next_ticket(),
        )  # fmt: skip
        return Found(
            n=n, indptr=indptr, begin=begin, before=before, span=span, kept=(scratch, asked)
        )

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
                segments.record, found.n, found.indptr, found.begin, found.before, room, tiles,
                *columns,
            )  # fmt: skip

    def _read_beside(
        self, segments: Segments, staged: StagedBatch, limits: Array | None, found: Found,
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
            segments.record, *batch, self._reader.beside.ranks, found.span, places,
            found.n, found.indptr, found.begin, found.before, room, at + status, *columns, at,
        )  # fmt: skip
        launch_on(
            segments, "beside", "end_present", found.n + 1,
            found.n, found.indptr, room, at + status, ends, self._reader.mailbox.at,
            self._reader.mailbox.next_ticket(),
        )  # fmt: skip
