"""What was polled is decoded, and what its producer sent before is left out: the first stages of a
pipeline (`record_decoder.py`), and all that a repartitioning reads by (`ingest/cluster/`).

    1. decode      a record that is malformed, or that cannot be served, becomes a dead letter
    2. repeats     a record that its producer sent before is dropped

Idea: rows at consecutive offsets are read together, as columns (`formats/row_reader.py`, and
`formats/debezium/rows.py` of changes of a table), and stay together; any other record is read by
itself. Each is judged as it would be alone, and depends on the earlier records only, so a replay
decides alike.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise, repeat

import numpy as np
import numpy.typing as npt

from lpma.batch.columns import MAX_WEIGHT, Columns
from lpma.names import Column

from ..errors import RecordError
from ..fields import Debezium, Records, fields_of, records_of
from ..formats.debezium.changes import ChangeReader, Event, Skipped
from ..formats.debezium.rows import ChangeRows
from ..formats.encode import encode_record
from ..formats.mapped import is_msgpack
from ..formats.records import decode_record
from ..formats.replies import MAX_KEPT_BYTES, DeadLetter
from ..formats.row_reader import RowReaders, Stretch, named_ends
from ..registry.envelope import Envelopes, Unwrapping, id_of, in_stretches
from ..state.table_rows import Sum, TableRow, TableRows
from ..types import NO_UPDATES, NO_VALUE, Names, Partition, Polled, Record, Rejected, Values
from .batching import Producer
from .mapped_fields import MappedFields
from .outputs import FirstRecords, Outputs

MAX_PRODUCERS = 100_000  # per partition, whose last seq is remembered
KEPT_REPEATS = 10_000  # whose places are remembered
HEADERS = (  # of a record that is in no envelope, beside others
    " (a schema's id in a header, __value_schema_id, is not read: have the producer put it before "
    "the value, as is its default)"
)
_NOTHING = Record(NO_UPDATES)


@dataclass(frozen=True)
class ReadRecords:
    """What one record holds; or, if `counts_rows`, rows that each have an offset of their own, from
    `offset` on.

    values: the bytes that each came as; (): none, they were decoded already. ends: see `Stretch`.
    producers: of each; (): they have none. changes: see `BufferedRows`."""

    partition: Partition
    offset: int
    record: Record = _NOTHING
    values: Sequence[bytes] = ()
    counts_rows: bool = False
    ends: Column | None = None
    producers: Sequence[Producer] = ()
    changes: int = 0

    def part(self, start: int, stop: int) -> ReadRecords:
        """Some of the rows. REQUIRES: counts_rows."""
        if (start, stop) == (0, len(self.record.batch)):
            return self
        return ReadRecords(
            self.partition, self.offset + start, self.record.rows(start, stop),
            self.values[start:stop], True, self.ends and self.ends.take(slice(2 * start, 2 * stop)),
            self.producers[start:stop], stop - start if self.changes else 0,
        )  # fmt: skip

    def parted(self, refused: npt.NDArray[np.bool_] | None) -> Iterator[tuple[ReadRecords, bool]]:
        """Each row that is refused by itself, and the stretches between; and which is which.
        REQUIRES: counts_rows."""
        if refused is None:
            yield self, False
            return
        for start, stop in _runs(refused[1:] | refused[:-1]):
            yield self.part(start, stop), bool(refused[start])

    @property
    def is_left_out(self) -> bool:
        """Whether it was bad, or a repeat."""
        return self.record is _NOTHING

    @property
    def value(self) -> bytes:
        """The record of a single one."""
        return self.values[0] if self.values else encode_record(self.record)

    @property
    def producer(self) -> Producer | None:
        """Of a single one."""
        return self.producers[0] if self.producers else None


class RecordReader:
    """Reads the records of one stream. records, names: how, as `RecordSettings` has it. seen: the
    last number of each producer in a partition. first: judges the first records; None: nobody
    does; it is told of bad ones and of repeats here, of others by who takes them. check: raises
    RecordError for a record that cannot be served. envelopes: unwraps records in Confluent's
    envelope. rows: of tables, if these are remembered. is_alone: whether all updates come from one
    topic. decoder: reads records; None: they are in our forms."""

    def __init__(
        self,
        records: Records,
        names: bool,
        seen: Mapping[tuple[Partition, str], int],
        outputs: Outputs,
        first: FirstRecords | None = None,
        check: Callable[[Record], None] = lambda record: None,
        envelopes: Envelopes | None = None,
        rows: TableRows | None = None,
        is_alone: bool = False,
        decoder: Callable[[bytes], Record] | None = None,
    ) -> None:
        self.duplicates = 0  # records dropped because they were sent before
        self.skipped: Counter[str] = Counter()  # records of Debezium that are about no row
        self.seen = dict(seen)  # as of what was read
        self.envelopes = envelopes or Envelopes(None, records)
        self.fields = MappedFields(records, self.envelopes)
        self._readers = RowReaders(records, names)
        self._tables: dict[str, ChangeRows | None] = {}  # by topic
        self._rows, self._is_alone = rows, is_alone
        self._outputs = outputs
        self._first = first or FirstRecords(0, outputs)
        self._first.fields = self.fields
        self._check = check
        self._decoder = decoder
        self._producers = Counter(partition for partition, _ in self.seen)
        self._repeats: dict[tuple[Partition, int], None] = {}  # where the last of them lie

    def read(self, polled: Polled, stamp: int) -> Iterator[ReadRecords]:
        """All that was polled from one place, in order. stamp: decides which schemas there are.
        Raises AllRecordsBad. REQUIRES: `envelopes.ready`."""
        partition, offset, value = polled.partition, polled.offset, polled.value
        if self._decoder is None:
            self.fields.look(polled, stamp)
        if isinstance(value, Values) and self._decoder is not None:
            for at, one in enumerate(value, offset):
                yield self._one(partition, at, one, stamp)
        elif isinstance(value, Values):
            yield from self._many(polled, value, stamp)
        elif isinstance(value, Columns):
            names = Names(value.src, value.dst) if self._readers.names else None
            yield ReadRecords(partition, offset, Record(value, names=names), counts_rows=True)
        else:
            yield self._one(partition, offset, value, stamp, polled.key)

    def _table(self, topic: str) -> ChangeRows | None:
        """What reads the changes of a table, if the topic has them."""
        if topic not in self._tables:
            of_topic = records_of(self._readers.records, topic)
            self._tables[topic] = None
            if isinstance(of_topic, Debezium):
                names = self._readers.names
                self._tables[topic] = ChangeRows(of_topic, names, topic, self._is_alone)
        return self._tables[topic]

    def _enveloped(
        self, polled: Polled, values: Values, id: int, stamp: int
    ) -> Iterator[ReadRecords]:
        """Many records in the envelope, of one schema."""
        topic = polled.partition.topic
        try:
            unwrapping = self.envelopes.unwrapping(topic, id, stamp)
        except RecordError:  # each says why
            for at, value in enumerate(values, polled.offset):
                yield self._one(polled.partition, at, value, stamp)
            return
        rows = unwrapping.plain_rows(values, self._readers.names)
        if rows is None:
            yield from self._decoded(polled, values, unwrapping, stamp)
            return
        for start, stop in rows.bounds():
            if rows.plain[start]:
                yield from self._stretch(polled, values, rows.stretch(start, stop), stamp)
            else:
                some = polled._replace(offset=polled.offset + start)
                yield from self._decoded(some, values[start:stop], unwrapping, stamp)

    def _decoded(
        self, polled: Polled, values: Values, unwrapping: Unwrapping, stamp: int
    ) -> Iterator[ReadRecords]:
        """The same of records that are no plain rows. Where they cannot be unwrapped together, the
        halves."""
        topic = polled.partition.topic
        inner = unwrapping.many(values)
        if inner is not None:
            for stretch in self._readers.of(topic, unwrapping.fields).stretches(inner):
                yield from self._stretch(polled, values, stretch, stamp)
        elif len(values) == 1:
            yield self._one(polled.partition, polled.offset, values[0], stamp)
        else:
            half = len(values) // 2
            yield from self._decoded(polled, values[:half], unwrapping, stamp)
            behind = polled._replace(offset=polled.offset + half)
            yield from self._decoded(behind, values[half:], unwrapping, stamp)

    def _many(self, polled: Polled, values: Values, stamp: int) -> Iterator[ReadRecords]:
        """Records at consecutive offsets."""
        topic = polled.partition.topic
        if (table := self._table(topic)) is not None:
            yield from self._changes(polled, values, table, stamp)
            return
        for part in in_stretches(values):
            some = polled._replace(offset=polled.offset + part.start)
            inner = values[part.start : part.stop]
            if part.id is not None:
                yield from self._enveloped(some, inner, part.id, stamp)
                continue
            for stretch in self._readers.of(topic).stretches(inner):
                yield from self._stretch(some, inner, stretch, stamp)

    def _stretch(
        self, polled: Polled, values: Values, stretch: Stretch, stamp: int
    ) -> Iterator[ReadRecords]:
        """A stretch of many records: rows by column, others one by one."""
        partition, offset = polled.partition, polled.offset + stretch.start
        values = values[stretch.start : stretch.stop]
        producers = [Producer(*each) for each in stretch.producers or ()]
        if stretch.rows is None or not self._remembers(partition, producers):
            keys = values.keys or repeat(b"")
            for at, value, key in zip(count(offset), values, keys, strict=False):
                yield self._one(partition, at, value, stamp, key)
            return
        record = Record(stretch.rows)
        found = ReadRecords(partition, offset, record, values, True, stretch.ends, producers)
        if not producers:
            yield found
            return
        new = np.array([self._is_new(partition, producer) for producer in producers])
        for start, stop in _runs(new[1:] != new[:-1]):
            if new[start]:
                yield found.part(start, stop)
                continue
            for at in range(offset + start, offset + stop):
                self._note_repeat(partition, at)
                yield ReadRecords(partition, at)

    def _one(
        self,
        partition: Partition,
        offset: int,
        value: bytes | Rejected,
        stamp: int,
        key: bytes = b"",
    ) -> ReadRecords:
        table, changes = self._table(partition.topic), 0
        raw = value.value if isinstance(value, Rejected) else value
        try:
            if table is not None and (value == NO_VALUE or not _is_ours(value)):
                record, changes = self._change(table, partition.topic, value, key, stamp)
            elif isinstance(value, Rejected):
                raise RecordError(value.reason, "unreadable")
            else:
                record = self._decoded_one(partition.topic, value, stamp, table is None)
            record.batch.checked = True  # just now, and nobody else has it
            self._check(record)
            producer = self._producer(partition, record)
        except RecordError as error:
            if changes and self._rows is not None:
                self._rows.revert()
            reason = str(error)
            if error.kind == "malformed" and self.envelopes.are_read and id_of(raw) is None:
                reason += HEADERS
            self.reject(partition, offset, reason, raw, error.kind)
            return ReadRecords(partition, offset)
        if producer is None:
            return ReadRecords(partition, offset, record, (raw,), changes=changes)
        if not self._is_new(partition, producer):
            self._note_repeat(partition, offset)
            return ReadRecords(partition, offset)
        return ReadRecords(partition, offset, record, (raw,), producers=(producer,))

    # Changes of tables -----------------------------------------------------------------------

    def _changes(
        self, polled: Polled, values: Values, table: ChangeRows, stamp: int
    ) -> Iterator[ReadRecords]:
        """Many records of a table. Where one cannot be unwrapped, each is read by itself."""
        topic = polled.partition.topic
        try:
            inner = self._unwrapped(topic, values, stamp)
            keys = None if values.keys is None else self._unwrapped(topic, values.keys, stamp)
        except RecordError:
            yield from self._stretch(polled, values, Stretch(0, len(values)), stamp)
            return
        within = Values(inner.data, inner.starts, inner.stops, keys=keys)
        for stretch in table.stretches(within):
            if stretch.rows is None or not table.remembers:
                yield from self._stretch(polled, values, stretch, stamp)
            else:
                part = within[stretch.start : stretch.stop].keys
                assert part is not None
                texts = table.row_keys(part)
                yield from self._summed_rows(polled, values, stretch, texts, stamp)

    def _unwrapped(self, topic: str, values: Values, stamp: int) -> Values:
        """These, out of Confluent's envelope. Raises RecordError."""
        if all(part.id is None for part in in_stretches(values)):
            return values
        return Values.of([self._inner(topic, value, stamp) for value in values])

    def _inner(self, topic: str, data: bytes, stamp: int) -> bytes:
        """The same of one value, or key."""
        id = id_of(data)
        if id is None:
            return data
        return self.envelopes.unwrapping(topic, id, stamp, whole=True).one(data)

    def _change(
        self, table: ChangeRows, topic: str, value: bytes | Rejected, key: bytes, stamp: int
    ) -> tuple[Record, int]:
        """What a record of a table does, and how many remembered rows it changed: 0 or 1. Raises
        RecordError."""
        data = None if isinstance(value, Rejected) else self._inner(topic, value, stamp)
        event = table.reader.event(data, self._inner(topic, key, stamp))
        if isinstance(event, Skipped):
            self.skipped[event.what] += 1
            return Record(NO_UPDATES), 0
        if not table.remembers:
            return table.reader.record(event), 0
        assert self._rows is not None
        return self._summed(table.reader, topic, event, self._rows)

    def _summed_rows(
        self, polled: Polled, values: Values, stretch: Stretch, keys: Sequence[str], stamp: int
    ) -> Iterator[ReadRecords]:
        """The same of a stretch of rows that are set. Those that change their own edge alone stay
        together, with the sums in place of their weights."""
        rows = stretch.rows
        assert rows is not None
        assert self._rows is not None
        topic, start = polled.partition.topic, polled.offset + stretch.start
        ends = (rows.src, rows.dst) if stretch.ends is None else named_ends(stretch.ends)
        weights = repeat(1.0) if rows.weight is None else rows.weight.tolist()
        times = repeat(None) if rows.time is None else rows.time.tolist()
        sums: list[Sum] = []  # of the records from number `first` on
        first = 0
        for at, (key, src, dst, weight, time) in enumerate(
            zip(keys, ends[0].tolist(), ends[1].tolist(), weights, times, strict=False)
        ):
            changed = self._rows.change(topic, key, TableRow(src, dst, weight, time))
            if len(changed) == 1 and abs(changed[0].weight or 0.0) <= MAX_WEIGHT and (
                time is not None or changed[0].time is None
            ):  # fmt: skip
                sums.append(changed[0])
                continue
            self._rows.revert()
            yield from self._sums(polled, values, stretch, first, sums)
            place = stretch.start + at
            its_key = b"" if values.keys is None else values.keys[place]
            yield self._one(polled.partition, start + at, values[place], stamp, its_key)
            sums, first = [], at + 1
        yield from self._sums(polled, values, stretch, first, sums)

    def _sums(
        self, polled: Polled, values: Values, stretch: Stretch, first: int, sums: list[Sum]
    ) -> Iterator[ReadRecords]:
        """The records of a stretch from number `first` on as these sums."""
        if not sums:
            return
        assert stretch.rows is not None
        count = len(sums)
        batch = stretch.rows.rows(first, first + count)
        batch = batch.replace(weight=np.array([each.weight for each in sums]))
        if batch.time is not None:
            batch = batch.replace(time=np.array([each.time for each in sums], np.int64))
        ends = stretch.ends and stretch.ends.take(slice(2 * first, 2 * (first + count)))
        start = stretch.start + first
        yield ReadRecords(
            polled.partition, polled.offset + start, Record(batch), values[start : start + count],
            True, ends, changes=count,
        )  # fmt: skip

    def _summed(
        self, reader: ChangeReader, topic: str, event: Event, rows: TableRows
    ) -> tuple[Record, int]:
        """The same where rows are remembered. Raises RecordError; then none has changed."""
        time = reader.time_ms(event)
        if event.op == "t":
            if reader.is_alone or reader.is_of_another_table(event):
                record = reader.truncation(event)
                rows.clear(topic)
                return record, 1
            sums = rows.clear(topic)
        else:
            key, row = reader.row_key(event), reader.table_row(event)
            sums = rows.change(topic, key, None if row is None else TableRow(*row))
        try:
            return reader.summed(sums, time), 1
        except RecordError:
            rows.revert()
            raise

    def _decoded_one(self, topic: str, value: bytes, stamp: int, may_be_enveloped: bool) -> Record:
        """Raises RecordError."""
        if self._decoder is not None:
            return self._decoder(value)
        fields = fields_of(self._readers.records, topic)
        if may_be_enveloped and (id := id_of(value)) is not None:
            unwrapping = self.envelopes.unwrapping(topic, id, stamp)
            value, fields = unwrapping.one(value), unwrapping.fields
        return decode_record(value, names=self._readers.names, fields=fields)

    def reject(
        self, partition: Partition, offset: int, reason: str, value: bytes, kind: str
    ) -> None:
        """Make a record a dead letter. kind: as of RecordError. Raises AllRecordsBad."""
        kept, sha256 = bytes(value[:MAX_KEPT_BYTES]), hashlib.sha256(value).digest()
        letter = DeadLetter(*partition, offset, reason, len(value), kept, sha256, kind)
        self._outputs.reject(letter)
        if kind != "late":
            self._first.bad()

    # Producers -------------------------------------------------------------------------------

    def knows(self, partition: Partition, source: str) -> bool:
        """Whether this producer has sent something there. May be called from any thread."""
        return (partition, source) in self.seen

    def producers_left(self, partition: Partition) -> int:
        """How many more can be remembered. May be called from any thread."""
        return MAX_PRODUCERS - self._producers[partition]

    def is_repeat(self, partition: Partition, offset: int) -> bool:
        """Whether that record is among the last that were dropped. May be called from any
        thread."""
        return (partition, offset) in self._repeats

    def _remembers(self, partition: Partition, producers: list[Producer]) -> bool:
        """Whether all of these can be remembered."""
        sources = {producer.source for producer in producers}
        new = sum(not self.knows(partition, source) for source in sources)
        return new == 0 or new <= self.producers_left(partition)

    def _producer(self, partition: Partition, record: Record) -> Producer | None:
        if record.producer is None or record.seq is None:
            return None
        if not self.knows(partition, record.producer) and self.producers_left(partition) < 1:
            # Forgetting another would let its repeats be applied a second time, unnoticed.
            raise RecordError(
                f"source {record.producer!r}: {MAX_PRODUCERS} of this partition are remembered "
                "already: let producers keep their names, or send without source and seq",
                "unserved",
            )
        return Producer(record.producer, record.seq)

    def _is_new(self, partition: Partition, producer: Producer) -> bool:
        key = partition, producer.source
        if producer.seq <= self.seen.get(key, -1):
            return False
        self._producers[partition] += key not in self.seen
        self.seen[key] = producer.seq
        return True

    def _note_repeat(self, partition: Partition, offset: int) -> None:
        self._first.good()
        self.duplicates += 1
        if len(self._repeats) >= KEPT_REPEATS:
            del self._repeats[next(iter(self._repeats))]
        self._repeats[partition, offset] = None


def _runs(cuts: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Stretches of rows, cut between each row and the next where this says so."""
    return pairwise([0, *(np.flatnonzero(cuts) + 1).tolist(), len(cuts) + 1])


def _is_ours(value: bytes | Rejected) -> bool:
    """Whether a record in a topic of changes is in one of our own forms, as a query is."""
    return isinstance(value, Rejected) or is_msgpack(value)
