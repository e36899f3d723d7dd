"""Writing a stream whose partitions are chosen by the owner of each vertex.

Idea: the producer splits, since it has the rows at hand as columns; a shard then reads its own
partitions and no other, and no process stands between. `routing.py` says which rows go where;
`docs/reference/format.md` states the hash.

    updates      (u, v) in the partition of u; undirected: (v, u) in that of v too
    updates.in   (v, u) in the partition of v, for a directed graph whose predecessors are asked
    queries      as many partitions: a query goes to the owner of its vertex (`Client` sees to it)

Invariants:
    1. Writes and markers take turns, so no marker stands between the two rows of an edge, as long
       as one writer writes a topic whose edges are doubled.
    2. A number `seq` means the same rows for ever. A write that failed may lie in some partitions,
       so nothing else is written before the same rows have been written again.
    3. What is wrong with rows is found before any of them is written.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

import numpy as np

from lpma.batch.columns import Columns, Kind

from ..errors import IngestError, PipelineError, RecordError, SourceError
from ..events import log_event
from ..formats.markers import encode_marker
from ..sources.base import LogWriter
from ..timers import now_ms
from ..types import QUERIES, UPDATES, Closing, Names, Partition, Record
from .arguments import (
    check_flags,
    check_interval,
    check_producer,
    check_sink,
    columns_of,
    records_of,
)
from .routing import Direction, Rows, checked, encoded, merged, split
from .topics import QueryTopics, TopicKind, in_topic, shared_partitions, topic_pairs

Parts = dict[Partition, list[bytes]]


def create_sharded(
    sink: LogWriter,
    topic: str = UPDATES,
    partitions: int = 1,
    predecessors: bool = False,
    *,
    queries: str = QUERIES,
) -> None:
    """Make the topics of a cluster in `sink`: `topic` and `queries`, with `predecessors` also those
    of edges turned round, each with so many partitions. Does nothing about one that is there.
    Raises SourceError if that has another number of partitions, or `queries` is the query topic of
    another sharded topic.

    >>> with ingest.SqliteLog("sharded-log") as log:
    ...     ingest.create_sharded(log, "updates", 4)
    ...     log.partitions_of("updates")
    4
    """
    check_sink(sink)
    check_flags(PipelineError, predecessors=predecessors)
    if type(partitions) is not int or partitions < 1:
        raise PipelineError(f"partitions is {partitions!r}: expected a whole number, at least 1")
    pairs = topic_pairs(topic, queries, predecessors)
    query_topics = QueryTopics(pairs)
    query_topics.check(sink)
    for name in (name for pair in pairs for name in pair):
        sink.create_topic(name, partitions)
        if (found := sink.partitions_of(name)) != partitions:
            raise SourceError(
                f"topic {name!r} has {found} partitions, not {partitions}, and they say which "
                "vertices it has where: choose another topic, which `lpma repartition` fills"
            )
    query_topics.note(sink)


class PartitionedSink(Closing):
    """Writes updates to the partitions of their owners, in `topic` of `sink`.

    sink: an SqliteLog or a KafkaSink; it stays open. topic: made by `create_sharded`. directed:
    False writes each edge for both ends. predecessors: True writes it to "<topic>.in" too, turned
    round. names: vertices go by names. shards: how many are to share the partitions, which that
    number then has to divide. producer: its own name; its records then carry it and a number,
    so that one that is written twice counts once. epoch_interval_s: seconds between markers, which
    a thread writes, and `close`; None: only `mark` writes them.

    Where each edge is written twice, this is the topic's only writer, and rows without a time get
    one here, the same for both. Methods may be called from any thread. Raises SourceError if a
    topic is not there or was written as another kind, PipelineError if the settings make no sense.

    >>> with ingest.SqliteLog("log") as log:
    ...     ingest.create_sharded(log, "updates", 2)
    ...     with ingest.PartitionedSink(log) as sink:
    ...         sink.write(lpma.Batch.from_columns(lpma.Kind.INSERT, [1, 2, 3], [2, 3, 4]))
    ...     for record in log.poll():
    ...         record.partition.number, ingest.decode(record.value).src.tolist()
    (0, [2, 3])
    (1, [1])
    """

    def __init__(
        self,
        sink: LogWriter,
        topic: str = UPDATES,
        *,
        directed: bool = True,
        predecessors: bool = False,
        names: bool = False,
        producer: str | None = None,
        epoch_interval_s: float | None = None,
        shards: int | None = None,
    ) -> None:
        check_sink(sink)
        check_flags(PipelineError, directed=directed, predecessors=predecessors, names=names)
        check_producer(producer)
        check_interval(PipelineError, epoch_interval_s)
        self.topic = topic
        self.partitions = sink.partitions_of(topic)
        self.seq = time.time_ns() // 1000  # of the next record: above an earlier process's
        self.epoch = -1  # the last one that was ended
        self._sink = sink
        self._directions = {topic: Direction.OUT if directed else Direction.BOTH}
        if predecessors and directed:
            self._directions[in_topic(topic)] = Direction.IN
        self._doubles = len(self._directions) > 1 or not directed
        self._names = names
        self._producer = producer
        self._shards = self.partitions if shards is None else shards
        self._lock = threading.Lock()  # invariant 1
        self._failed: tuple[int, Parts] | None = None  # invariant 2: its stamp, and what it writes
        self._closed = threading.Event()
        shared_partitions(sink, self._directions)
        if type(self._shards) is not int or self._shards < 1 or self.partitions % self._shards:
            raise PipelineError(
                f"shards is {shards!r}: expected a divisor of the {self.partitions} partitions"
            )
        self._kind = TopicKind(topic, directed, predecessors and directed, names)
        self._kind.check(sink)
        self._is_noted = False  # whether the topic is known to be of this kind
        self._marks = epoch_interval_s is not None
        if epoch_interval_s is not None:
            self._marker = threading.Thread(
                target=self._mark_on, args=(epoch_interval_s,), name="markers", daemon=True
            )
            self._marker.start()

    def close(self) -> None:
        """Stop writing markers, after a last one. The log stays open."""
        if self._closed.is_set():
            return
        self._closed.set()
        if self._marks:
            self._marker.join()
            with self._lock:
                if self._failed is None:
                    self._mark(None)

    # Writing ---------------------------------------------------------------------------------

    def write(self, columns: Columns, names: Names | None = None) -> None:
        """Write these updates; they are durable when it returns. If vertices go by names, these are
        `names`, or else src and dst of the columns.

        Raises RecordError if a row cannot be written: then none is. Raises SourceError if the log
        fails: then some may be, and nothing else is taken until the same rows are written again."""
        self.write_rows([self.checked(Record(columns_of(columns), names=names))])

    def expire(self, before: int) -> None:
        """Write the expiry of every edge whose time is less than `before`, to every partition.
        Raises as `write` does."""
        self.write(Columns.validated([Kind.EXPIRE], [0], [0], None, [before]))

    def produce_many(self, topic: str, values: Sequence[bytes]) -> None:
        """As `write`, of encoded records of updates. One that names its producer keeps that. Raises
        RecordError for another topic than the sink's, too."""
        if topic != self.topic:
            raise RecordError(f"topic {topic!r}: this sink writes {self.topic!r} alone")
        records = records_of(topic, values, self._names)
        self.write_rows([self.checked(record) for record in records])

    def write_rows(self, rows: Sequence[Rows], stamp: int | None = None) -> None:
        """As `write`, of rows that were `checked`. stamp: for those without a time, where they need
        one, in ms since 1970; None: now."""
        with self._lock:
            if self._closed.is_set():
                raise SourceError("the sink is closed")
            if self._failed is not None:
                stamp = self._failed[0]
            elif stamp is None:
                stamp = now_ms()
            parts, seq = self._split(rows, stamp)
            if self._failed is not None and self._failed[1] != parts:
                raise SourceError(
                    "the last write failed, and may lie in some partitions: write the same rows "
                    "again first"
                )
            if parts and not self._is_noted:
                self._kind.note(self._sink)
                self._is_noted = True
            self._failed = stamp, parts
            if parts:
                self._sink.produce_parts(parts)
            self._failed, self.seq = None, seq

    def checked(self, record: Record) -> Rows:
        """The rows of a record as they are written. Raises RecordError."""
        return checked(record, self._names)

    def _split(self, parts: Sequence[Rows], stamp: int) -> tuple[Parts, int]:
        """The records of each partition, and the number after theirs. Raises RecordError."""
        found: Parts = {}
        seq = self.seq
        for rows in merged(parts):
            batch, own = rows.batch, rows.producer is None
            if batch.time is None and self._doubles:
                batch = batch.replace(time=np.full(len(batch), stamp, np.int64))
            producer = self._producer if own else rows.producer
            for topic, direction in self._directions.items():
                for part in split(batch, rows.src, rows.dst, self.partitions, direction):
                    number = None if producer is None else seq if own else rows.seq
                    values = encoded(part, self._names, producer, number, whole=not own)
                    seq += len(values)
                    found.setdefault(Partition(topic, part.number), []).extend(values)
        return found, seq

    # Epochs ----------------------------------------------------------------------------------

    def mark(self, epoch: int | None = None) -> int:
        """End an epoch: its marker goes to every partition. epoch: above the last; None: the time
        now, in ms since 1970. Returns it. Raises RecordError if it does not rise, SourceError if
        the log fails: then some partitions may have it, and another one is needed."""
        with self._lock:
            if self._closed.is_set():
                raise SourceError("the sink is closed")
            return self._mark(epoch)

    def _mark(self, epoch: int | None) -> int:
        """`mark`, with the lock held."""
        if self._failed is not None:
            raise SourceError(
                "the last write failed, and may lie in some partitions: write the same rows again "
                "before an epoch ends"
            )
        if epoch is None:
            epoch = max(now_ms(), self.epoch + 1)
        if isinstance(epoch, int) and epoch <= self.epoch:
            raise RecordError(f"epoch {epoch}: the last was {self.epoch}, and they rise")
        marker = [encode_marker(epoch)]
        self.epoch = epoch  # even if it fails: it may lie in some partitions
        self._sink.produce_parts(
            {
                Partition(topic, n): marker
                for topic in self._directions
                for n in range(self.partitions)
            }
        )
        return epoch

    def _mark_on(self, interval_s: float) -> None:
        """Write markers until the sink is closed."""
        while not self._closed.wait(interval_s):
            with self._lock:
                if self._failed is not None or self._closed.is_set():
                    continue  # whoever writes is told
                try:
                    self._mark(None)
                except IngestError as error:
                    log_event("epoch failed", logging.WARNING, topic=self.topic, error=str(error))
