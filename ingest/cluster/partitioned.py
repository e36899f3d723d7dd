"""Writing a stream whose partitions are chosen by the owner of each vertex.

Idea: the producer splits, since it has the rows at hand as columns; a shard then reads its own
partitions and no other, and no process stands between them. `splitting.py` says which rows go
where. `docs/format.md` states the hash.

    updates      (u, v) in the partition of u; undirected: (v, u) in that of v too
    updates.in   (v, u) in the partition of v, for a directed graph whose predecessors are asked
    queries      as many partitions: a query goes to the owner of its vertex (`Client` does it)

Invariants:
    1. One writer writes a topic whose edges are doubled. Its writes and its markers take turns, so
       that no marker stands between the two rows of an edge.
    2. A number `seq` means the same rows for ever. A write that failed may lie in some partitions,
       so nothing else is written before the same rows have been written again.
    3. What is wrong with rows is found before any of them is written.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from lpma.arrays import to_host
from lpma.batch import FIRST_QUERY, Columns

from ..closing import Closing
from ..errors import RecordError, SourceError
from ..formats.encode import encode_updates
from ..formats.markers import encode_marker
from ..formats.names import names_of
from ..formats.records import MAX_TEXT_ROWS, decode_record
from ..timers import now_ms
from ..types import QUERIES, UPDATES, Array, Names, PartedSink, Partition, Record
from .splitting import Part, Way, split

PIECE_BYTES = 512 << 10  # of a record, about: brokers take 1 MiB unless they are told otherwise
_TEXT_BYTES = 5  # of a name in a column of text, besides its UTF-8


def in_topic(topic: str) -> str:
    """The topic that holds the edges of `topic` turned round."""
    return f"{topic}.in"


def create_sharded(
    sink: PartedSink,
    topic: str = UPDATES,
    partitions: int = 1,
    predecessors: bool = False,
    *,
    queries: str = QUERIES,
) -> None:
    """Make what a cluster reads in `sink`: `topic` and `queries`, and those of edges turned round
    with `predecessors`, each with so many partitions; does nothing if they are there. Raises
    SourceError if one is there with another number.

    >>> with ingest.SqliteLog("log") as log:
    ...     partitioned.create_sharded(log, "updates", 4)
    ...     log.partitions_of("updates")
    4
    """
    topics = [topic, queries]
    if predecessors:
        topics += [in_topic(topic), in_topic(queries)]
    for name in topics:
        sink.create_topic(name, partitions)
        if (found := sink.partitions_of(name)) != partitions:
            raise SourceError(
                f"topic {name!r} has {found} partitions, not {partitions}: which partition a vertex "
                "belongs to depends on it; choose another topic, and `lpma repartition` fills it"
            )


class PartitionedSink(Closing):
    """Writes updates to the partitions of their owners, in `topic` of `sink`.

    sink: an SqliteLog or a KafkaSink; it stays open. topic: made by `create_sharded`. directed:
    False writes each edge for both ends. predecessors: True writes it to "<topic>.in" too, turned
    round. names: vertices go by names. shards: how many will share the partitions; None: one each.
    source: this producer's name; its records then carry it and a number, so that one that is
    repeated is dropped. epoch_interval_s: seconds between markers, written by a thread of its own;
    None: only `mark` writes them.

    Where each edge is written twice, this is to be the topic's only writer, and rows without a
    time get one here, the same for both. Methods may be called from any thread. Raises SourceError
    if a topic is not there.

    >>> with ingest.SqliteLog("log") as log:
    ...     partitioned.create_sharded(log, "updates", 2)
    ...     with ingest.PartitionedSink(log) as sink:
    ...         sink.write(lpma.Batch.from_columns(lpma.Kind.APPEND, [1, 2, 3], [2, 3, 4]))
    ...     [(r.partition.number, ingest.decode(r.value).src.tolist()) for r in log.poll()]
    [(0, [2]), (1, [1, 3])]
    """

    def __init__(
        self,
        sink: PartedSink,
        topic: str = UPDATES,
        *,
        directed: bool = True,
        predecessors: bool = False,
        names: bool = False,
        source: str | None = None,
        epoch_interval_s: float | None = None,
        shards: int | None = None,
    ) -> None:
        self.topic = topic
        self.partitions = sink.partitions_of(topic)
        self.seq = time.time_ns() // 1000  # of the next record: above those of an earlier process
        self._sink = sink
        self._ways = {topic: Way.OUT if directed else Way.BOTH}
        if predecessors and directed:
            self._ways[in_topic(topic)] = Way.IN
        self._doubles = not directed or predecessors
        self._names = names
        self._source = source
        self._lock = threading.Lock()  # invariant 1
        self._epoch = -1  # the last
        self._failed: tuple[int, dict[Partition, list[bytes]]] | None = None

    def close(self) -> None:
        pass

    def write(self, columns: Columns, names: Names | None = None) -> None:
        """Write these updates; durable when it returns. With names=True the vertices are `names`,
        or else src and dst of the columns themselves.

        Raises RecordError if a row cannot be written: then none is. Raises SourceError if the log
        fails: then some may be, and nothing else is taken before the same rows."""
        with self._lock:
            stamp = now_ms()
            self._produce(self._encoded(Record(columns, names=names), stamp))

    def produce_many(self, topic: str, values: Sequence[bytes]) -> None:
        """Write these records of updates, as `write` does. One that names its producer keeps that.
        Raises RecordError for another topic too."""
        if topic != self.topic:
            raise RecordError(f"topic {topic!r}: this sink writes {self.topic!r} alone")
        for value in values:
            record = decode_record(value, names=self._names)
            self.write(record.batch, record.names)

    def mark(self, epoch: int | None = None) -> int:
        """End an epoch: write its marker to every partition. epoch: above the last; None: the time
        now, in ms since 1970. Returns it."""
        with self._lock:
            if epoch is None:
                epoch = max(now_ms(), self._epoch + 1)
            marker = [encode_marker(epoch)]
            self._sink.produce_parts(
                {Partition(t, n): marker for t in self._ways for n in range(self.partitions)}
            )
            self._epoch = epoch
            return epoch

    def _produce(self, parts: dict[Partition, list[bytes]]) -> None:
        if parts:
            self._sink.produce_parts(parts)
            self.seq += sum(map(len, parts.values()))

    def _encoded(self, record: Record, stamp: int) -> dict[Partition, list[bytes]]:
        """The records of each partition. Raises RecordError."""
        columns, src, dst = self._checked(record)
        if self._doubles and columns.time is None:
            columns = replace(columns, time=np.full(len(columns), stamp, np.int64))
        parts: dict[Partition, list[bytes]] = {}
        seq = self.seq
        for topic, way in self._ways.items():
            for part in split(columns, src, dst, self.partitions, way):
                values = parts[Partition(topic, part.number)] = []
                for piece in _pieces(part):
                    values.append(
                        encode_updates(
                            piece.src,
                            piece.dst,
                            piece.weight,
                            piece.time,
                            piece.kind,
                            source=self._source,
                            seq=None if self._source is None else seq,
                            names=self._names,
                        )  # fmt: skip
                    )
                    seq += 1
        return parts

    def _checked(self, record: Record) -> tuple[Columns, Array, Array]:
        """The updates on the host, and their ends. Raises RecordError."""
        columns = record.batch.moved(to_host) if record.batch.on_device else record.batch
        if int(columns.kind.max(initial=0)) >= FIRST_QUERY:
            raise RecordError("a query goes to the query topic: ask through a client")
        if not self._names:
            return columns, columns.src, columns.dst
        ends = record.names or columns
        src, dst = names_of(ends.src, "src"), names_of(ends.dst, "dst")
        if src.dtype != dst.dtype:
            src, dst = src.astype(object), dst.astype(object)
        return columns, src, dst


def _pieces(part: Part) -> Iterator[Part]:
    """The part in pieces of about PIECE_BYTES."""
    rows = len(part.src)
    columns = [column for column in part[1:] if column is not None]
    row_bytes = sum(c.itemsize for c in columns if c.dtype != object)
    at = np.arange(1, rows + 1) * row_bytes if part.src.dtype == object else None
    if at is None:
        step = max(1, PIECE_BYTES // row_bytes)
        bounds = [*range(0, rows, step), rows]
    else:
        for column in (part.src, part.dst):
            at += np.cumsum([len(str(n).encode()) + _TEXT_BYTES for n in column.tolist()])
        bounds = [0]
        while bounds[-1] < rows:
            start = bounds[-1]
            limit = (int(at[start - 1]) if start else 0) + PIECE_BYTES
            stop = int(np.searchsorted(at, limit, "right"))
            bounds.append(min(max(stop, start + 1), start + MAX_TEXT_ROWS))
    for start, stop in zip(bounds[:-1], bounds[1:], strict=True):
        yield Part(part.number, *(c if c is None else c[start:stop] for c in part[1:]))
