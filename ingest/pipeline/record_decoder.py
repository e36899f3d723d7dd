"""What was polled is decoded, and becomes pieces that the batcher buffers, or is refused.

Each polled record becomes one piece, whatever is applied of it, so that offsets move past it:

    1. decode      a record that is malformed, or that cannot be served, becomes a dead letter
    2. repeats     a record that its producer sent before is dropped: both in `record_reader.py`
    3. queries     one over a limit is refused: its reply says why
    4. bounds      rows whose time or id lies too far out become dead letters
    5. late rows   become dead letters, if the policy says so
    6. names       become ids of the graph, if vertices go by names
    7. owners      a record with a row that belongs in another partition becomes a dead letter

The decisions depend only on the earlier records, the stamp and `Admission`, so a replay decides
alike. One depends on the load, and the journal keeps it: while too many queries wait, they are
refused.

Names get ids by `lpma.names`, in the order of the rows. As in `lpma/batch/named.py`, a name without
an id gets one where its row appends an edge or adds a vertex. Elsewhere it becomes the vertex
UNKNOWN, which has no edge, so that deleting costs no id. What stands in the row of an expiry names
nothing, and gets none either. `lpma/names/dictionary.py` says why a replay gives the same ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lpma.batch.columns import EXPIRE, MAX_VERTEX, Columns, Kind, edge_rows, weighted_rows
from lpma.errors import TooManyNames
from lpma.names import UNKNOWN, Column, column_of, interleaved
from lpma.names import Names as Dictionary
from lpma.snapshot.capture import MAX_SNAPSHOT_BYTES

from ..errors import RecordError, VertexLimitError
from ..formats.encode import encode_record
from ..formats.msgpack import has_expiry
from ..formats.times import UNITS, column_from_ms, unit_of
from ..settings import RecordSettings, Settings
from ..state.checkpoint import State
from ..state.stream_state import StreamState
from ..types import NO_UPDATES, Directions, Name, Names, Partition, Polled, Query, Record
from .batching import BufferedRows, Refusal, newest_event
from .outputs import FirstRecords, Outputs
from .record_reader import ReadRecords, RecordReader
from .topics.readers import TopicReaders
from .windows import NO_TIMES, Lateness, event_times, width_of

RETRY_AFTER_MS = 200  # suggested to a query that arrived while too many were waiting
TOO_LARGE = (
    "{found} is an id above {most}, up to which figures are tracked, with a row for each: go on "
    "without track, or read the stream anew with names=True"
)
MAX_TRACKED = MAX_SNAPSHOT_BYTES // 8 - 2  # an id: what is tracked has a row for each below it


class Admission(NamedTuple):
    """What each start may say anew of which records are taken. A replay goes by what held then."""

    reply_topics: tuple[str, ...]  # that a query may name
    max_hops: int
    max_id: int  # of a vertex that goes by its id

    @classmethod
    def of(cls, settings: Settings) -> Admission:
        bounded = settings.track and not settings.names
        most = MAX_TRACKED if bounded else MAX_VERTEX
        return cls(tuple(settings.reply_topics), settings.max_hops, most)

    @classmethod
    def then(cls, state: State, settings: Settings) -> Admission:
        """What held when `state` was kept; as the settings say where an older release did not."""
        now = cls.of(settings)
        topics, hops, most = state.reply_topics, state.max_hops, state.max_id
        return cls(
            now.reply_topics if topics is None else topics,
            now.max_hops if hops is None else hops,
            MAX_VERTEX if most is None else most,
        )


class Refused(NamedTuple):
    """Rows of a record that become a dead letter: bool[n], of which some are true; why; and the
    kind of the dead letter."""

    rows: npt.NDArray[np.bool_]
    reason: str
    kind: str


class Bounds(NamedTuple):
    """How far out a row may lie. max_ahead: of event times, past the stamp; None: anywhere."""

    max_id: int
    max_ahead: int | None

    def broken_by(self, batch: Columns, stamp: int) -> Refused | None:
        """The rows that lie too far out to be taken; None if none does."""
        found = [*self._too_large(batch), *self._too_far_ahead(batch, stamp)]
        if not found:
            return None
        rows = np.logical_or.reduce([each.rows for each in found])
        return found[0]._replace(rows=rows, reason="; ".join(each.reason for each in found))

    def _too_large(self, batch: Columns) -> Iterator[Refused]:
        most = self.max_id
        if most == MAX_VERTEX or not len(batch):
            return
        src = np.where(batch.kind != EXPIRE, batch.src, 0)
        dst = np.where(edge_rows(batch.kind), batch.dst, 0)
        ids = np.maximum(src, dst)
        if int(ids.max()) > most:
            rows = ids > most
            reason = TOO_LARGE.format(found=int(ids[rows.argmax()]), most=most)
            yield Refused(rows, reason, "unserved")

    def _too_far_ahead(self, batch: Columns, stamp: int) -> Iterator[Refused]:
        ahead = self.max_ahead
        times = None if ahead is None else event_times(batch)
        if times is None or ahead is None or int(times.max()) <= stamp + ahead:
            return
        rows = times > stamp + ahead
        yield Refused(rows, _why_ahead(int(times[rows.argmax()]), stamp, ahead), "ahead")


class RecordDecoder:
    """Turns polled records into pieces for `stream`. Rows of a record that its positions count as
    applied are dropped. first: judges the first records; None: nobody does."""

    def __init__(
        self, stream: StreamState, outputs: Outputs, first: FirstRecords | None = None
    ) -> None:
        settings, state = stream.settings, stream.state
        self.admission = Admission.of(settings)
        self._settings = settings
        self._max_ahead = width_of(settings.max_ahead)
        self._graph: Directions = stream.graph
        self._owners = stream.source
        self._keeps_times = getattr(stream.graph, "has_times", True)
        self._outputs = outputs
        self._first = first or FirstRecords(0, outputs)
        self._vertices = stream.vertices
        topics = TopicReaders(
            settings.records, settings.names, stream.schemas, stream.rows, stream.is_of_one_topic,
            stream.source.decoder, stream.graph.directed, state.positions,
        )  # fmt: skip
        self.reader = RecordReader(
            topics, state.producers, outputs, self._first, self._check_served
        )
        self._lateness = lateness_of(settings, state.newest)  # None: no row is ever late
        self._done = {p: position for p, position in state.positions.items() if position.row}

    def pieces(self, polled: Polled, stamp: int, shed: bool = False) -> Iterator[BufferedRows]:
        """The operations polled from one place. `shed`: a query is refused. Raises
        VertexLimitError, AllRecordsBad."""
        for read in self.reader.read(polled, stamp):
            if read.is_left_out:
                yield BufferedRows(read.partition, read.offset, stamp)
            elif read.counts_rows:
                yield from self._bounded_rows(read, stamp)
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
        out = self._out_of_bounds(record.batch, stamp)
        if out is None or not out.rows.all():
            self._first.good()
        if record.queries:
            (query,) = record.queries
            refused = refusal(query, stamp, self._graph, self.admission.max_hops, shed)  # admit 3
            if self._vertices is not None:
                query = found(self._vertices, query)
            return BufferedRows(
                partition, offset, stamp, query=query, refusal=refused, producer=producer
            )
        newest = None
        if out is not None:
            record = self._without(read, record, read.value, out)  # admit 4
        if self._lateness is not None:
            late = self._lateness.late_rows(partition, record.batch)
            if late is not None:
                rest = read.value if out is None else self._encoded(partition, record)
                refused_rows = Refused(late, self._lateness.reason(late), "late")
                record = self._without(read, record, rest, refused_rows)  # admit 5
            newest = self._lateness.advance(partition, record.batch)
        batch = self._with_ids(record)  # admit 6
        if len(batch):
            try:
                batch = self._owners.owned(partition, batch, self._vertices)  # admit 7
            except RecordError as error:
                self.reader.reject(partition, offset, str(error), read.value, error.kind)
                batch = NO_UPDATES
        done = self._rows_done(partition, offset) if self._done else 0
        batch = batch.rows(done, len(batch))
        return BufferedRows(
            partition, offset, stamp, batch, row=done, producer=producer, newest=newest,
            is_change=record.is_change, changes=read.changes, closes=record.closes,
        )  # fmt: skip

    def _bounded_rows(self, read: ReadRecords, stamp: int) -> Iterator[BufferedRows]:
        """Rows that each have an offset of their own. Each is judged as a record, so one that is
        refused is a piece of its own, with nothing in it; those between such stay together."""
        out = self._out_of_bounds(read.record.batch, stamp)
        for part, is_out in read.parted(None if out is None else out.rows):
            if is_out:
                refused = self._out_of_bounds(part.record.batch, stamp)
                assert refused is not None
                yield self._left_out(part, stamp, refused.reason, refused.kind)
            else:
                self._first.good()
                yield from self._in_time_rows(part, stamp)

    def _in_time_rows(self, read: ReadRecords, stamp: int) -> Iterator[BufferedRows]:
        """The same, of which the late ones are left out."""
        lateness = self._lateness
        if lateness is None:
            yield from self._owned_rows(read, stamp, None)
            return
        late = lateness.late_rows(read.partition, read.record.batch)
        for part, is_late in read.parted(late):
            if is_late:
                yield self._left_out(part, stamp, lateness.reason(np.ones(1, np.bool_)), "late")
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
                for part, _ in read.parted(np.ones(len(batch), np.bool_)):
                    yield from self._owned_rows(part, stamp, newest_event(part.record.batch))
                return
            yield replace(self._left_out(read, stamp, str(error), error.kind), newest=newest)
            return
        yield BufferedRows(
            read.partition, read.offset, stamp, batch, counts_rows=True,
            producers=read.producers, newest=newest, changes=read.changes,
        )  # fmt: skip

    def _left_out(self, read: ReadRecords, stamp: int, reason: str, kind: str) -> BufferedRows:
        """A row becomes a dead letter; the piece that it leaves."""
        self.reader.reject(read.partition, read.offset, reason, read.value, kind)
        return BufferedRows(
            read.partition, read.offset, stamp, producer=read.producer, changes=read.changes
        )

    def _out_of_bounds(self, batch: Columns, stamp: int) -> Refused | None:
        return Bounds(self.admission.max_id, self._max_ahead).broken_by(batch, stamp)

    def _without(self, read: ReadRecords, record: Record, value: bytes, refused: Refused) -> Record:
        """The record without these rows, which become a dead letter: `value` if these are all of
        its rows, or late ones of a record that is rejected, else they as a record. record: what is
        left of the one that was read; value: its bytes."""
        rows = refused.rows
        if record.is_change or (refused.kind == "late" and self._settings.late == "reject"):
            rows = np.ones(len(rows), bool)
        letter = value if rows.all() else self._encoded(read.partition, record.only(rows))
        self.reader.reject(read.partition, read.offset, refused.reason, letter, refused.kind)
        return record.only(~rows)

    def _encoded(self, partition: Partition, record: Record) -> bytes:
        """The record as its topic takes it."""
        fields, times = self._settings.fields_of(partition.topic), record.batch.time
        if fields is not None and fields.time_unit is not None and times is not None:
            times = column_from_ms(times, fields.time_unit)
            record = replace(record, batch=record.batch.replace(time=times))
        return encode_record(record)

    def _with_ids(self, record: Record, ends: Column | None = None) -> Columns:
        """The updates, their vertices by the ids of the graph. ends: see `Stretch`."""
        if record.resolve is not None:
            return record.resolve(self._vertices)
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


def _why_ahead(time: int, stamp: int, ahead: int) -> str:
    unit = unit_of(time)
    hint = "say max_ahead if times are right so"
    if unit not in (None, "ms"):
        hint = (
            f"it looks like {UNITS[unit][1]}: declare these, as Fields(…, time_unit={unit!r}), or "
            "correct it where it is a date"
        )
    return f"time: {time} lies {time - stamp} past the clock, and at most {ahead} is taken: {hint}"


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
        return Refusal(
            "unsupported",
            "this graph keeps no predecessors: predecessors=True, or --predecessors, does",
        )
    if shed:
        return Refusal("retry", f"too many wait: ask in {RETRY_AFTER_MS} ms", RETRY_AFTER_MS)
    return None


# Names --------------------------------------------------------------------------------------


def ends_of(names: Names) -> Column:
    """src and dst of each row in turn."""
    return interleaved(column_of(names.src, "src"), column_of(names.dst, "dst"))


def mapped(dictionary: Dictionary, batch: Columns, ends: Column) -> Columns:
    """The updates with their ids in place. ends: src and dst of each row in turn. New names get
    theirs in this order, where the row appends or sets an edge or adds a vertex. Raises
    VertexLimitError."""
    ids = np.zeros(2 * len(batch), np.uint32)
    try:
        if batch.kind.any():  # not all append
            used = np.ones(len(ids), np.bool_)
            used[1::2] = edge_rows(batch.kind)
            gives = weighted_rows(batch.kind) | (batch.kind == Kind.ADD_VERTEX)
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
