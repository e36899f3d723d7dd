"""Operations wait here until they are a batch.

Idea: what has been polled waits as pieces (a record's rows, a query, or nothing if the record
was refused) in the order of buffering, which is the order of the stream. A batch takes operations
from the front, so that every cut through the stream is also a place in each partition, and the
offsets that belong to a batch are those of the last piece taken.

A batch closes at `size` operations, at `max_queries` queries that are asked, `interval_ms` after
its first operation was buffered, or `query_interval_ms` after a query was: a client is waiting. A
record is split where a batch ends inside it: the place is then (its offset, rows taken), and a
record read again from there drops as many rows. So a batch has exactly `size` operations whatever
the records are, and no operation is taken twice. Only the operations of one change of a table are
never split: a batch ends before such a record, or, if it is the first, with it.

The time of an operation without one of its own is the stamp its piece was buffered under, and so is
every operation's where a window goes by arrival (`windows.py`); stamps never fall. A refused query
takes its place in the stream like any other, but is not asked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lpma.batch.columns import Columns, Kind, query_rows

from ..formats.msgpack import has_expiry
from ..formats.times import of_other_units
from ..types import NO_UPDATES, Partition, Position, Query

BARREN_PIECES = 10_000  # without an operation, after which a batch is cut that has none


class Producer(NamedTuple):
    """Who sent a record, used to drop one that is sent again: `seq` rises within a source, and a
    source sends what it repeats to the same partition."""

    source: str
    seq: int


@dataclass(frozen=True)
class Refusal:
    """Why a query is not asked: a code for programs, and what to do about it."""

    error: str
    message: str
    retry_after_ms: int | None = None


@dataclass(frozen=True)
class BufferedRows:
    """Consecutive operations of one record, or of a run of them in a file."""

    partition: Partition
    offset: int  # of the record; of the first row if each row has an offset of its own
    stamp: int  # ms since 1970
    columns: Columns = NO_UPDATES
    row: int = 0  # rows of the record before these
    counts_rows: bool = False  # whether each row has an offset of its own
    ends: bool = True  # whether it holds the last row of its record
    query: Query | None = None
    refusal: Refusal | None = None
    producer: Producer | None = None
    producers: Sequence[Producer] = ()  # of each row, if each has an offset and they name them
    newest: int | None = None  # event time of the record's rows, if a late policy counts it
    is_change: bool = False  # whether all are applied together
    changes: int = 0  # of table rows that are remembered (`table_rows.py`): 0, or 1 a record
    closes: bool = False  # whether a batch ends with it, where records say so

    def __len__(self) -> int:
        return 1 if self.query else len(self.columns)

    @property
    def is_asked(self) -> bool:
        """Whether it is a query that the graph is to answer."""
        return self.query is not None and self.refusal is None

    @property
    def is_shed(self) -> bool:
        """Whether it is a query that was refused because too many waited."""
        return self.refusal is not None and self.refusal.error == "retry"

    @property
    def last(self) -> int:
        return self.offset + (len(self.columns) - 1 if self.counts_rows else 0)

    @property
    def after(self) -> Position:
        """Where the partition is read from once this is applied."""
        if self.ends or self.counts_rows:
            return Position(self.last + 1)
        return Position(self.offset, self.row + len(self.columns))

    def rests(self, before: BufferedRows) -> bool:
        """Whether this is what a batch left of the piece before: reading that record again brings
        both."""
        here = self.partition, self.offset
        return self.row > 0 and here == (before.partition, before.offset)

    def split(self, at: int) -> tuple[BufferedRows, BufferedRows]:
        """The first `at` operations, and the others. REQUIRES: 0 < at < len(self)."""
        assert 0 < at < len(self)
        head = replace(self, columns=self.columns.rows(0, at), ends=False)
        tail = self.columns.rows(at, len(self))
        if self.counts_rows:
            if self.newest is not None:
                head = replace(head, newest=newest_event(head.columns))
            changes = min(self.changes, at), max(0, self.changes - at)
            head = replace(head, producers=self.producers[:at], changes=changes[0])
            rest = self.producers[at:]
            return head, replace(
                self, columns=tail, offset=self.offset + at, producers=rest, changes=changes[1]
            )
        return head, replace(self, columns=tail, row=self.row + at)


@dataclass(frozen=True)
class Asked:
    """A query with the stamp it was buffered under, and why it is not asked, if it is not."""

    query: Query
    stamp: int
    refusal: Refusal | None


@dataclass(frozen=True)
class StreamBatch:
    operations: int  # refused queries among them
    columns: Columns  # updates and the queries that are asked, in order
    queries: Sequence[Asked]  # all of them, in order
    positions: dict[Partition, Position]  # after this batch, of the partitions that moved
    producers: dict[tuple[Partition, str], int]  # the highest seq taken of each source
    stamp: int  # of the last operation taken
    pieces: Sequence[BufferedRows]  # that it was made of
    newest: dict[Partition, int]  # event time, if a late policy counts it

    @property
    def timed(self) -> tuple[list[bool], list[int]]:
        """Of the pieces that `columns` was made of, in order: whether the rows carried times of
        their own, and how many there are."""
        parts = [piece for piece in self.pieces if len(piece) and not piece.refusal]
        carry = [piece.query is None and piece.columns.time is not None for piece in parts]
        return carry, [len(piece) for piece in parts]

    @property
    def changes(self) -> int:
        """How many changes of remembered rows it has."""
        return sum(piece.changes for piece in self.pieces)

    @property
    def untimed(self) -> int:
        """How many of its updates carry no time of their own."""
        return sum(len(p) for p in self.pieces if p.query is None and p.columns.time is None)

    @cached_property
    def other_units(self) -> dict[str, tuple[int, int]]:
        """The times that look to be in another unit than ms: see `of_other_units`."""
        times = self.columns.time
        return {} if times is None else of_other_units(times)

    @property
    def last_stamp(self) -> int:
        """The stamp of its last operation, ms since 1970. REQUIRES: it has one."""
        return next(piece.stamp for piece in reversed(self.pieces) if len(piece))


@dataclass
class Batcher:
    """by_arrival: whether every operation's time is its stamp. by_record: whether records say where
    a batch ends, and nothing else does. REQUIRES: size and max_queries at
    least 1, the intervals at least 0."""

    size: int
    interval_ms: int
    max_queries: int
    query_interval_ms: int = 0
    by_arrival: bool = False
    by_record: bool = False
    pieces: deque[BufferedRows] = field(default_factory=deque)
    operations: int = 0
    queries: int = 0  # refused ones left out
    query_stamps: deque[int] = field(default_factory=deque)  # of all queries
    whole: int = 0  # batches that wait, if records say where they end

    def add(self, pieces: Iterable[BufferedRows]) -> None:
        """Buffer pieces. REQUIRES: stamps never fall."""
        for piece in pieces:
            assert not self.pieces or self.pieces[-1].stamp <= piece.stamp
            self.pieces.append(piece)
            self.operations += len(piece)
            self.whole += piece.closes
            if piece.query is not None:
                self.queries += piece.is_asked
                self.query_stamps.append(piece.stamp)

    def due(self) -> int | None:
        """When the batch in front closes because of its age, in ms; None if nothing waits."""
        first = next((piece for piece in self.pieces if len(piece)), None)
        if first is None or self.by_record:
            return None
        due = first.stamp + self.interval_ms
        if self.query_stamps:
            due = min(due, self.query_stamps[0] + self.query_interval_ms)
        return due

    def closes(self, now: int, limit: int) -> bool:
        """Whether a batch of at most `limit` operations closes at time `now`."""
        if self.by_record:
            return self.whole > 0
        if self.operations >= min(self.size, limit) or self.queries >= self.max_queries:
            return True
        due = self.due()
        return due is not None and now >= due

    def is_barren(self, now: int, waits: bool) -> bool:
        """Whether what waits holds no operation, and is to go all the same: it is much, or, for
        whoever `waits` for operations, old."""
        if self.operations or not self.pieces or self.by_record:
            return False
        old = waits and now >= self.pieces[0].stamp + self.interval_ms
        return old or len(self.pieces) >= BARREN_PIECES

    def take(self, operations: int, queries: int) -> StreamBatch:
        """The front of the buffer: at most so many operations, but for a change that has more; at
        most so many queries that are asked; and the pieces without operations before or directly
        after them. REQUIRES: operations >= 0."""
        if self.by_record:
            return self._take_whole()
        taken: list[BufferedRows] = []
        done = 0
        while self.pieces:
            piece = self.pieces[0]
            if len(piece) and (done >= operations or (piece.is_asked and queries == 0)):
                break
            if piece.is_change and done and done + len(piece) > operations:
                break
            self.pieces.popleft()
            if len(piece) > max(0, operations - done) and not piece.is_change:
                piece, rest = piece.split(operations - done)
                self.pieces.appendleft(rest)
            taken.append(piece)
            done += len(piece)
            if piece.query is not None:
                queries -= piece.is_asked
                self.queries -= piece.is_asked
                self.query_stamps.popleft()
        self.operations -= done
        return _joined(taken, done, self.by_arrival)

    def _take_whole(self) -> StreamBatch:
        """The front of the buffer up to where a record says that a batch ends; nothing if none
        does."""
        taken: list[BufferedRows] = []
        while self.whole and not (taken and taken[-1].closes):
            taken.append(self.pieces.popleft())
        self.whole -= bool(taken)
        operations = sum(map(len, taken))
        self.operations -= operations
        return _joined(taken, operations, self.by_arrival)


def _joined(taken: list[BufferedRows], operations: int, by_arrival: bool) -> StreamBatch:
    return StreamBatch(
        operations,
        _concatenated([p for p in taken if len(p) and not p.refusal], by_arrival),
        [Asked(p.query, p.stamp, p.refusal) for p in taken if p.query],
        {piece.partition: piece.after for piece in taken},
        _producers(taken),
        taken[-1].stamp if taken else 0,
        taken,
        _newest(taken),
    )


def _producers(taken: list[BufferedRows]) -> dict[tuple[Partition, str], int]:
    """The highest seq of each source: it rises."""
    found: dict[tuple[Partition, str], int] = {}
    for p in taken:
        if p.producer and p.ends:
            found[p.partition, p.producer.source] = p.producer.seq
        for source, seq in p.producers:
            found[p.partition, source] = seq
    return found


def _newest(taken: list[BufferedRows]) -> dict[Partition, int]:
    """The newest event time of each partition. A record's counts once all of it is taken: after a
    crash the rest of it is again judged as part of the whole record."""
    newest: dict[Partition, int] = {}
    for p in taken:
        if p.newest is not None and (p.ends or p.counts_rows):
            newest[p.partition] = max(p.newest, newest.get(p.partition, p.newest))
    return newest


def _concatenated(pieces: list[BufferedRows], by_arrival: bool) -> Columns:
    """The operations of all pieces, every one with a time. Columns of float32 stay float32."""
    parts = []
    for piece in pieces:
        part = _asking(piece.query) if piece.query else piece.columns
        parts.append(part.replace(time=_times(part, piece.stamp, by_arrival)))
    return Columns.joined(parts) if parts else NO_UPDATES


def _times(part: Columns, stamp: int, by_arrival: bool) -> npt.NDArray[np.int64]:
    """The times of these operations, which were buffered under that stamp."""
    if part.time is None:
        return np.full(len(part), stamp, np.int64)
    if not by_arrival:
        return part.time
    return np.where(part.kind == Kind.EXPIRE, part.time, np.int64(stamp))


def updates_of(columns: Columns) -> Columns:
    """The operations of a batch that are no queries."""
    queries = query_rows(columns.kind)
    return columns.take(~queries) if queries.any() else columns


def newest_event(columns: Columns) -> int | None:
    """The newest event time of updates; None if none has one."""
    times = columns.time
    if times is not None and has_expiry(columns.kind):
        times = times[columns.kind != Kind.EXPIRE]
    return None if times is None or not len(times) else int(times.max())


def without_queries(batch: StreamBatch) -> Columns:
    """The operations of a batch but its queries; where there is no other, one that costs nothing,
    so that the version rises all the same."""
    if not batch.queries or not len(batch.columns):
        return batch.columns
    columns = updates_of(batch.columns)
    if len(columns):
        return columns
    vertex, kind = np.zeros(1, np.uint32), np.full(1, Kind.DEGREE, np.uint8)
    return Columns(kind, vertex, vertex, None, np.full(1, batch.stamp, np.int64))


def _asking(query: Query) -> Columns:
    ends = np.array([query.src, query.dst], np.uint32)
    kind = np.array([query.kind], np.uint8)
    return Columns(kind, ends[:1], ends[1:], None, None, checked=True)
