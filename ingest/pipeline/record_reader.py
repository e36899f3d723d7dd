"""What was polled is decoded, and what its producer sent before is left out: the first stages of a
pipeline (`record_decoder.py`), and all that a repartitioning reads by (`ingest/cluster/`).

    1. decode      a record that is malformed, or that cannot be served, becomes a dead letter
    2. repeats     a record that its producer sent before is dropped

Idea: how a topic is read is `topics/`'s to know. Rows at consecutive offsets are read together, as
columns, and stay together; any other record is read by itself. Each is judged as it would be alone,
and depends on the earlier records only, so a replay decides alike.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lpma.batch.columns import Columns
from lpma.names import Column

from ..errors import RecordError
from ..formats.encode import encode_record
from ..formats.replies import MAX_KEPT_BYTES, DeadLetter
from ..formats.row_reader import Stretch
from ..registry.envelope import id_of
from ..types import NO_UPDATES, Names, Partition, Polled, Record, Rejected, Values
from .batching import Producer
from .mapped_fields import MappedFields
from .outputs import FirstRecords, Outputs
from .topics.base import TopicReader
from .topics.readers import TopicReaders

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
    """Reads the records of one stream. topics: how each topic is read. seen: the last number of
    each producer in a partition. first: judges the first records; None: nobody does; it is told of
    bad ones and of repeats here, of others by who takes them. check: raises RecordError for a
    record that cannot be served."""

    def __init__(
        self,
        topics: TopicReaders,
        seen: Mapping[tuple[Partition, str], int],
        outputs: Outputs,
        first: FirstRecords | None = None,
        check: Callable[[Record], None] = lambda record: None,
    ) -> None:
        self.topics = topics
        self.duplicates = 0  # records dropped because they were sent before
        self.seen = dict(seen)  # as of what was read
        self.fields = MappedFields()
        self._outputs = outputs
        self._first = first or FirstRecords(0, outputs)
        self._first.fields = self.fields
        self._check = check
        self._producers = Counter(partition for partition, _ in self.seen)
        self._repeats: dict[tuple[Partition, int], None] = {}  # where the last of them lie

    def read(self, polled: Polled, stamp: int) -> Iterator[ReadRecords]:
        """All that was polled from one place, in order. stamp: decides which schemas there are.
        Raises AllRecordsBad. REQUIRES: all of `topics.schema_ids` are known."""
        partition, offset, value = polled.partition, polled.offset, polled.value
        if isinstance(value, Columns):
            names = Names(value.src, value.dst) if self.topics.names else None
            yield ReadRecords(partition, offset, Record(value, names=names), counts_rows=True)
            return
        topic = self.topics.of(partition.topic)
        self.fields.look(topic, polled, stamp)
        if isinstance(value, Values):
            for stretch in topic.stretches(value, stamp):
                yield from self._stretch(topic, polled, value, stretch, stamp)
        else:
            yield self._one(topic, partition, offset, value, polled.key, stamp)

    def _stretch(
        self, topic: TopicReader, polled: Polled, values: Values, stretch: Stretch, stamp: int
    ) -> Iterator[ReadRecords]:
        """A stretch of many records: rows by column, others one by one."""
        partition, offset = polled.partition, polled.offset + stretch.start
        producers = [Producer(*each) for each in stretch.producers or ()]
        if stretch.rows is None or not self._remembers(partition, producers):
            for at in range(stretch.start, stretch.stop):
                key = b"" if values.keys is None else values.keys[at]
                yield self._one(topic, partition, polled.offset + at, values[at], key, stamp)
            return
        found = ReadRecords(
            partition, offset, Record(stretch.rows), values[stretch.start : stretch.stop], True,
            stretch.ends, producers, stretch.changes,
        )  # fmt: skip
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
        self, topic: TopicReader, partition: Partition, offset: int, value: bytes | Rejected,
        key: bytes, stamp: int,
    ) -> ReadRecords:  # fmt: skip
        raw = value.value if isinstance(value, Rejected) else value
        changes = 0
        try:
            record, changes = topic.one(value, key, stamp)
            record.batch.checked = True  # just now, and nobody else has it
            self._check(record)
            producer = self._producer(partition, record)
        except RecordError as error:
            if changes:
                topic.revert()
            reason = str(error)
            if error.kind == "malformed" and self.topics.schemas is not None and id_of(raw) is None:
                reason += HEADERS
            self.reject(partition, offset, reason, raw, error.kind)
            return ReadRecords(partition, offset)
        if producer is None:
            return ReadRecords(partition, offset, record, (raw,), changes=changes)
        if not self._is_new(partition, producer):
            self._note_repeat(partition, offset)
            return ReadRecords(partition, offset)
        return ReadRecords(partition, offset, record, (raw,), producers=(producer,))

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
