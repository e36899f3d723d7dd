"""What was polled is decoded, and becomes pieces that the batcher buffers, or is refused.

Each polled record becomes one piece, whatever is applied of it, so that offsets move past it:

    1. decode      a record that is malformed, or that cannot be served, becomes a dead letter
    2. repeats     a record that its producer sent before is dropped: both in `record_reader.py`
    3. queries     one over a limit is refused: its reply says why
    4. late rows   become dead letters, if the policy says so
    5. names       become ids of the graph, if vertices go by names
    6. owners      a record with a row that belongs in another partition becomes a dead letter

The decisions depend only on the earlier records and the stamp, so a replay decides alike. One
depends on the load, and the journal keeps it: while too many queries wait, they are refused.

Names get ids by `lpma.names`, in the order of the rows. As in `lpma/batch/named.py`, a name without
an id gets one where its row appends an edge or adds a vertex. Elsewhere it becomes the vertex
UNKNOWN, which has no edge, so that deleting costs no id. What stands in the row of an expiry names
nothing, and gets none either. `lpma/names/dictionary.py` says why a replay gives the same ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from lpma.batch.columns import Columns, Kind
from lpma.errors import TooManyNames
from lpma.names import UNKNOWN, Column, column_of, interleaved
from lpma.names import Names as Dictionary

from ..errors import RecordError, VertexLimitError
from ..formats.encode import encode_record
from ..formats.msgpack import has_expiry
from ..settings import RecordSettings
from ..state.stream_state import StreamState
from ..types import NO_UPDATES, Directions, Name, Names, Partition, Polled, Query, Record
from .batching import BufferedRows, Refusal, newest_event
from .outputs import FirstRecords, Outputs
from .record_reader import ReadRecords, RecordReader, runs
from .windows import NO_TIMES, Lateness, width_of

RETRY_AFTER_MS = 200  # suggested to a query that arrived while too many were waiting


class RecordDecoder:
    """Turns polled records into pieces for `stream`. Rows of a record that its positions count as
    applied are dropped. first: judges the first records; None: nobody does."""

    def __init__(
        self, stream: StreamState, outputs: Outputs, first: FirstRecords | None = None
    ) -> None:
        settings, state = stream.settings, stream.state
        self.settings = settings
        self._graph: Directions = stream.graph
        self._owners = stream.source
        self._keeps_times = getattr(stream.graph, "has_times", True)
        self._outputs = outputs
        self._vertices = stream.vertices
        self.reader = RecordReader(
            settings.records, settings.names, state.producers, outputs, first, self._check_served
        )
        self._lateness = lateness_of(settings, state.newest)  # None: no row is ever late
        self._done = {p: position for p, position in state.positions.items() if position.row}

    def pieces(self, polled: Polled, stamp: int, shed: bool = False) -> Iterator[BufferedRows]:
        """The operations polled from one place. `shed`: a query is refused. Raises
        VertexLimitError, AllRecordsBad."""
        for read in self.reader.read(polled):
            if read.is_left_out:
                yield BufferedRows(read.partition, read.offset, stamp)
            elif read.counts_rows:
                yield from self._in_time_rows(read, stamp)
            else:
                yield self._piece(read, stamp, shed)

    def _check_served(self, record: Record) -> None:
        """Raise RecordError for what cannot be served."""
        for query in record.queries:
            self._outputs.check_topic(query.reply)
        if not self._keeps_times and has_expiry(record.batch.kind):
            raise RecordError(NO_TIMES, "unserved")

    def _piece(self, read: ReadRecords, stamp: int, shed: bool) -> BufferedRows:
        """The operations of one record, none if it is refused."""
        partition, offset, producer = read.partition, read.offset, read.producer
        record = read.record
        if record.queries:
            (query,) = record.queries
            refused = refusal(query, stamp, self._graph, self.settings.max_hops, shed)  # admit 3
            if self._vertices is not None:
                query = found(self._vertices, query)
            return BufferedRows(
                partition, offset, stamp, query=query, refusal=refused, producer=producer
            )
        newest = None
        if self._lateness is not None:
            record = self._in_time(self._lateness, read)  # admit 4
            newest = self._lateness.advance(partition, record.batch)
        batch = self._with_ids(record)  # admit 5
        if len(batch):
            try:
                batch = self._owners.owned(partition, batch, self._vertices)  # admit 6
            except RecordError as error:
                self.reader.reject(partition, offset, str(error), read.value, error.kind)
                batch = NO_UPDATES
        done = self._rows_done(partition, offset) if self._done else 0
        batch = batch.rows(done, len(batch))
        return BufferedRows(
            partition, offset, stamp, batch, row=done, producer=producer, newest=newest
        )

    def _in_time_rows(self, read: ReadRecords, stamp: int) -> Iterator[BufferedRows]:
        """Rows that each have an offset of their own. Each is judged as a record, so a late one is
        a piece of its own, with nothing in it; those between late ones stay together."""
        lateness, batch = self._lateness, read.record.batch
        if lateness is None:
            yield from self._owned_rows(read, stamp, None)
            return
        late = lateness.late_rows(read.partition, batch)
        if late is None:
            newest = lateness.advance(read.partition, batch)
            yield from self._owned_rows(read, stamp, newest)
            return
        for start, stop in runs(late[1:] | late[:-1]):
            part = read.part(start, stop)
            if late[start]:
                reason = lateness.reason(late[start:stop])
                self.reader.reject(part.partition, part.offset, reason, part.value)
                yield BufferedRows(part.partition, part.offset, stamp, producer=part.producer)
            else:
                newest = lateness.advance(part.partition, part.record.batch)
                yield from self._owned_rows(part, stamp, newest)

    def _owned_rows(
        self, read: ReadRecords, stamp: int, newest: int | None
    ) -> Iterator[BufferedRows]:
        """The same, with ids; those of another partition are left out."""
        batch = self._with_ids(read.record, read.ends)
        try:
            batch = self._owners.owned(read.partition, batch, self._vertices)
        except RecordError as error:
            if len(batch) > 1:
                for row in range(len(batch)):
                    part = read.part(row, row + 1)
                    newest = newest_event(part.record.batch)
                    yield from self._owned_rows(part, stamp, newest)
                return
            self.reader.reject(read.partition, read.offset, str(error), read.value, error.kind)
            yield BufferedRows(
                read.partition, read.offset, stamp, producer=read.producer, newest=newest
            )
            return
        yield BufferedRows(
            read.partition, read.offset, stamp, batch, counts_rows=True,
            producers=read.producers, newest=newest,
        )  # fmt: skip

    def _in_time(self, lateness: Lateness, read: ReadRecords) -> Record:
        """Its record without its late rows, which become a dead letter: the original record if all
        of its rows are late, else its late rows as a record."""
        record = read.record
        late = lateness.late_rows(read.partition, record.batch)
        if late is None:
            return record
        if self.settings.late == "reject":
            late_rows, kept = read.value, np.zeros(len(late), bool)
        else:
            late_rows = read.value if late.all() else encode_record(record.only(late))
            kept = ~late
        self.reader.reject(read.partition, read.offset, lateness.reason(late), late_rows)
        return record.only(kept)

    def _with_ids(self, record: Record, ends: Column | None = None) -> Columns:
        """The updates, their vertices by the ids of the graph. ends: see `Stretch`."""
        if self._vertices is None:
            return record.batch
        if ends is None and record.names is not None:
            ends = ends_of(record.names)
        return record.batch if ends is None else mapped(self._vertices, record.batch, ends)

    def _rows_done(self, partition: Partition, offset: int) -> int:
        """Rows of this record that were in the graph when it was saved; called once a record."""
        done = self._done.get(partition)
        if done is None or done.offset != offset:
            return 0
        del self._done[partition]
        return done.row


def lateness_of(settings: RecordSettings, newest: Mapping[Partition, int]) -> Lateness | None:
    """As these settings say, None if no row is ever late. newest: see `Lateness`."""
    if settings.late == "apply":
        return None
    window = width_of(settings.window) if settings.window_time == "event" else None
    return Lateness(settings.max_lateness, newest, window)


def refusal(
    query: Query, stamp: int, graph: Directions, max_hops: int, shed: bool
) -> Refusal | None:
    """Why `query`, buffered at `stamp` (ms since 1970), is not asked; None if it is. `shed`:
    because too many wait.

    The deadline is compared with the stamp, so that a replay decides as the first run did."""
    if query.deadline is not None and stamp > query.deadline:
        return Refusal(
            "deadline", f"read {stamp - query.deadline} ms after its deadline: ask again"
        )
    if query.kind is Kind.HOPS and int(query.dst) > max_hops:
        return Refusal("hops", f"{query.dst} steps: at most {max_hops} here")
    if query.kind is Kind.PREDECESSORS and graph.directed and not graph.has_predecessors:
        return Refusal("unsupported", "this graph keeps no predecessors: predecessors=True does")
    if shed:
        return Refusal("retry", f"too many wait: ask in {RETRY_AFTER_MS} ms", RETRY_AFTER_MS)
    return None


# Names --------------------------------------------------------------------------------------


def ends_of(names: Names) -> Column:
    """src and dst of each row in turn."""
    return interleaved(column_of(names.src, "src"), column_of(names.dst, "dst"))


def mapped(dictionary: Dictionary, batch: Columns, ends: Column) -> Columns:
    """The updates with their ids in place. ends: src and dst of each row in turn. New names get
    theirs in this order, where the row appends an edge or adds a vertex. Raises
    VertexLimitError."""
    ids = np.zeros(2 * len(batch), np.uint32)
    try:
        if int(batch.kind.max(initial=0)) > Kind.INSERT:
            used = np.ones(len(ids), np.bool_)
            used[1::2] = batch.kind <= Kind.DELETE
            gives = (batch.kind == Kind.INSERT) | (batch.kind == Kind.ADD_VERTEX)
            rows = np.flatnonzero(used)
            ids[rows] = dictionary.assign(ends.take(rows), gives[rows >> 1])
        else:
            ids = dictionary.assign(ends)
    except TooManyNames as error:
        raise VertexLimitError(str(error)) from error
    return batch.replace(src=ids[::2].copy(), dst=ids[1::2].copy())


def found(dictionary: Dictionary, query: Query) -> Query:
    """The query with ids for names. A name that has no id gets UNKNOWN."""
    dst = id_of(dictionary, query.dst) if query.kind is Kind.EDGE else query.dst
    after = None if query.after is None else id_of(dictionary, query.after)
    return replace(query, src=id_of(dictionary, query.src), dst=dst, after=after)


def id_of(dictionary: Dictionary, name: Name) -> int:
    """The id of a name, UNKNOWN if nothing has named it yet."""
    id = dictionary.find(name)
    return UNKNOWN if id is None else id
