"""What of a stream is to be written again: its updates, each once.

The rules are those of a pipeline (`record_decoder.py`): a record that is none becomes a dead
letter, and one that its producer sent before is dropped. Queries and markers belong to the stream
that is read, and are left out. Everything that is left out is counted.

A sharded topic is no plain stream. What it is written as, its name says (`topics.py`):

    undirected   each edge is there twice, (u, v) and (v, u): one of the two rows is written again,
                 for both ends. It is that of the end which orders first, integers before texts. So
                 all updates of an edge come from one partition, in their order. A loop is there
                 once.
    any          REMOVE_VERTEX is in every partition, at a place of its own in each. Read one after
                 the other there is no place that is right for all, so it is refused. (Nor can each
                 partition be read up to its copy: with several writers, one that died, or a log
                 that was trimmed, the copies are not the same ones in the same order.)

So all that is there is looked through for removals before the first row is written; one that comes
later stops the work. A topic that nothing is known of is a plain stream.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from lpma.batch.columns import FIRST_OTHER, Columns, Kind

from ..errors import CheckpointError, RecordError, SourceError
from ..fields import fields_of
from ..formats.encode import encode_record
from ..formats.markers import marker_of
from ..formats.records import decode_record
from ..formats.replies import MAX_KEPT_BYTES, DeadLetter
from ..formats.row_reader import RowReaders, as_columns
from ..pipeline.record_decoder import MAX_PRODUCERS
from ..sources.base import LogWriter, Source
from ..types import Array, Names, Partition, Polled, Record, Rejected
from .partitioned import PartitionedSink
from .rows import Rows
from .topics import IN_AND_OUT, UNDIRECTED, in_topic, noted_kinds

LOOK_RECORDS = 10_000  # that are looked through at once
LOOK_WAIT_S = 0.1  # for them

Seen = Mapping[tuple[Partition, str], int]  # the last number of each producer in a partition


class SourceTopics:
    """The topics of `source` as they are noted now. Raises SourceError if they are written as
    something else than is said. directed, names: as of `Repartition`.

    undirected: the topics in which each edge is there twice."""

    def __init__(self, source: Source, directed: bool, names: bool) -> None:
        sink = source.sink()
        self._names = names
        self._readers = RowReaders("msgpack", names)
        self.undirected: list[str] = []
        self._shared: set[str] = set()  # sharded, with several partitions
        if not isinstance(sink, LogWriter):
            return  # a file, say: nothing is noted of it
        for topic in sorted(source.identity().topics):
            for turned in noted_kinds(sink, topic.removesuffix(in_topic(""))):
                if topic.endswith(in_topic("")) and turned.startswith(IN_AND_OUT):
                    raise SourceError(
                        f"topic {topic!r} has the edges turned round: read "
                        f"{topic.removesuffix(in_topic(''))!r}, which has them all as they are"
                    )
            for kind in noted_kinds(sink, topic):
                edges, _, vertices = kind.partition(".")
                if (edges != UNDIRECTED, vertices == "names") != (directed, names):
                    raise _differs(topic, kind)
                if edges == UNDIRECTED:
                    self.undirected.append(topic)
                if sink.partitions_of(topic) > 1:
                    self._shared.add(topic)

    def check_begun(self, undirected: list[str], where: object) -> None:
        """Raise CheckpointError unless work that was begun with these goes on as it began."""
        if undirected != self.undirected:
            raise CheckpointError(
                f"{where}: was begun when it was not noted that {self.undirected or undirected} "
                "has each edge twice: write another topic, with another directory"
            )

    def once(self, partition: Partition, rows: Rows) -> Rows:
        """The rows of that partition that are to be written, so that each update is once. Raises
        SourceError for what cannot be."""
        kind = rows.batch.kind
        if partition.topic in self._shared and bool((kind == Kind.REMOVE_VERTEX).any()):
            raise _removed(partition.topic)
        if partition.topic not in self.undirected:
            return rows
        kept = np.flatnonzero((kind >= FIRST_OTHER) | _in_order(rows.src, rows.dst))
        if len(kept) == len(kind):
            return rows
        return rows._replace(batch=rows.batch.take(kept), src=rows.src[kept], dst=rows.dst[kept])

    def searched(self, source: Source) -> Iterator[None]:
        """Read all that is there now, a piece at a time. Raises SourceError at a removal that
        `once` will not take."""
        if not self._shared:
            return
        ends = source.end_offsets()
        while True:
            polled = source.poll(LOOK_RECORDS, LOOK_WAIT_S)
            for record in as_columns(polled, self._readers):
                if record.partition.topic in self._shared and self._removes(record.value):
                    raise _removed(record.partition.topic)
            at = source.positions()
            if source.at_end() or all(at[place] >= end for place, end in ends.items()):
                return
            yield

    def _removes(self, value: object) -> bool:
        """Whether a record removes a vertex. One that cannot be read does nothing."""
        if not isinstance(value, bytes):
            return False  # rows that were read together only append and delete
        try:
            record = decode_record(value, names=self._names)
        except RecordError:
            return False
        return bool((record.batch.kind == Kind.REMOVE_VERTEX).any())


class Beginning:
    """What is found out about `source` with its first record, before anything is written: its kinds
    are noted when it is first written to, so not before that. directed, names: as of
    `Repartition`."""

    def __init__(self, source: Source, directed: bool, names: bool) -> None:
        self._source, self._given = source, (directed, names)
        self._search: Iterator[None] | None = None
        self.topics = SourceTopics(source, directed, names)

    def look(self, positions: Mapping[Partition, int], wait_s: float) -> list[str] | None:
        """A step of looking at all that stands behind `positions`; at its end `undirected` of the
        topics, and the source stands there again. None: there is more to look at, or nothing yet.
        Raises SourceError for what cannot be written again."""
        source = self._source
        if source.bounded:
            return self.topics.undirected
        if self._search is None:
            if not source.poll(1, wait_s):
                return None
            source.seek(positions)
            self.topics = SourceTopics(source, *self._given)
            self._search = self.topics.searched(source)
        for _ in self._search:
            return None
        source.seek(positions)
        return self.topics.undirected


def _removed(topic: str) -> SourceError:
    return SourceError(
        f"topic {topic!r} has removals of vertices, each at another place in every partition, so "
        "no order of reading them is right: make the new topic from a snapshot. Stop the writers, "
        "`lpma cluster snapshot DIR whole.parquet`, and then `lpma repartition whole.parquet TOPIC "
        "--to LOG`, with an empty topic and another --checkpoint; vertices without edges are added "
        "again by whoever needs them"
    )


def _differs(topic: str, kind: str) -> SourceError:
    edges, _, vertices = kind.partition(".")
    directed, names = edges != UNDIRECTED, vertices == "names"
    options = "--directed" if directed else "--undirected", "--names" if names else "--no-names"
    return SourceError(
        f"topic {topic!r}, which is to be read, is written as {kind}: say the same, "
        f"{' and '.join(options)}, or directed={directed} and names={names}"
    )


def _in_order(src: Array, dst: Array) -> Array:
    """bool[n]: whether the source orders before the target, or is the same."""
    if src.dtype != object:
        ordered: Array = src <= dst
        return ordered
    pairs = zip(src.tolist(), dst.tolist(), strict=True)
    return np.fromiter(((isinstance(u, str), u) <= (isinstance(v, str), v) for u, v in pairs),
                       bool, len(src))  # fmt: skip


# Updates, dead letters, repeats -------------------------------------------------------------


@dataclass
class Admitted:
    """The updates in their order, the dead letters, and what this adds to `seen` and to the
    counts."""

    rows: list[Rows] = field(default_factory=list)
    letters: list[DeadLetter] = field(default_factory=list)
    seen: dict[tuple[Partition, str], int] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)


def admit(
    polled: Iterable[Polled],
    sink: PartitionedSink,
    seen: Seen,
    readers: RowReaders,
    topics: SourceTopics,
) -> Admitted:
    """What `sink` is to write of these. Depends on nothing but them, `seen` and `topics`. Raises
    SourceError for what cannot be written again at all."""
    found = Admitted()
    for one in as_columns(list(polled), readers):
        try:
            record = _decoded(one, readers, found.counts)
            if record is None or _is_repeat(one.partition, record, seen, found):
                continue
            rows = sink.checked(replace(record, producer=None, seq=None))
        except RecordError as error:
            found.letters.append(_letter(one, error, readers.names))
            continue
        rows = topics.once(one.partition, rows)
        found.counts["operations"] += len(rows.batch)
        found.rows.append(rows)
    return found


def _decoded(polled: Polled, readers: RowReaders, counts: Counter[str]) -> Record | None:
    """The record, None if it is no update. Raises RecordError."""
    value = polled.value
    if isinstance(value, Columns):
        counts["records"] += len(value)
        return Record(value, names=Names(value.src, value.dst) if readers.names else None)
    counts["records"] += 1
    if isinstance(value, Rejected):
        raise RecordError(value.reason, "unreadable")
    if marker_of(value) is not None:
        counts["markers"] += 1
        return None
    fields = fields_of(readers.records, polled.partition.topic)
    assert isinstance(value, bytes)
    record = decode_record(value, names=readers.names, fields=fields)
    counts["queries"] += len(record.queries)
    return None if record.queries else record


def _is_repeat(partition: Partition, record: Record, seen: Seen, found: Admitted) -> bool:
    """Whether its producer sent it before; if not, it has now. Raises RecordError if there are too
    many producers."""
    if record.producer is None or record.seq is None:
        return False
    key = partition, record.producer
    last = found.seen.get(key, seen.get(key))
    if last is not None and record.seq <= last:
        found.counts["repeats"] += 1
        return True
    if last is None and len(seen) + len(found.seen) >= MAX_PRODUCERS:
        raise RecordError(
            f"source {record.producer!r}: {MAX_PRODUCERS} are remembered already: let producers "
            "keep their names",
            "unserved",
        )
    found.seen[key] = record.seq
    return False


def _letter(polled: Polled, error: RecordError, names: bool) -> DeadLetter:
    value = polled.value
    if isinstance(value, Rejected):
        raw = value.value
    elif isinstance(value, Columns):
        raw = encode_record(Record(value, names=Names(value.src, value.dst) if names else None))
    else:
        assert isinstance(value, bytes)
        raw = value
    digest = hashlib.sha256(raw).digest()
    kept = bytes(raw[:MAX_KEPT_BYTES])
    return DeadLetter(
        *polled.partition, polled.offset, str(error), len(raw), kept, digest, error.kind
    )
