"""What of a stream is to be written again: its updates, each once.

Records are read as a pipeline reads them (`record_reader.py`): a bad one becomes a dead letter, and
one that its producer sent before is dropped. Queries and markers belong to the stream that is read,
and are left out. Everything that is left out is counted.

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

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from lpma.batch.columns import Columns, Kind, edge_rows

from ..errors import CheckpointError, RecordError, SourceError
from ..formats.markers import marker_of
from ..formats.records import decode_record
from ..formats.row_reader import RowReader, as_columns, in_runs, with_names
from ..pipeline.outputs import Outputs
from ..pipeline.record_reader import ReadRecords, RecordReader
from ..sources.base import LogWriter, Source
from ..types import Array, Names, Partition, Polled, Record
from .partitioned import PartitionedSink
from .routing import Rows
from .topics import IN_AND_OUT, UNDIRECTED, in_topic, noted_kinds

LOOK_RECORDS = 10_000  # that are looked through at once
LOOK_WAIT_S = 0.1  # for them


class SourceTopics:
    """The topics of `source`: what they are written as, as far as that is noted now. directed,
    names: as of `Repartition`. Raises SourceError if they are written as something else.

    undirected: the topics in which each edge is there twice."""

    def __init__(self, source: Source, directed: bool, names: bool) -> None:
        self._source, self._directed, self._names = source, directed, names
        self._reader = RowReader(None, names)
        self._search: Iterator[None] | None = None
        self._learn()

    def _learn(self) -> None:
        sink = self._source.sink()
        self.undirected: list[str] = []
        self._shared: set[str] = set()  # sharded, with several partitions
        if not isinstance(sink, LogWriter):
            return  # a file, say: nothing is noted of it
        for topic in sorted(self._source.identity().topics):
            for turned in noted_kinds(sink, topic.removesuffix(in_topic(""))):
                if topic.endswith(in_topic("")) and turned.startswith(IN_AND_OUT):
                    raise SourceError(
                        f"topic {topic!r} has the edges turned round: read "
                        f"{topic.removesuffix(in_topic(''))!r}, which has them all as they are"
                    )
            for kind in noted_kinds(sink, topic):
                edges, _, vertices = kind.partition(".")
                if (edges != UNDIRECTED, vertices == "names") != (self._directed, self._names):
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
        kept = np.flatnonzero(~edge_rows(kind) | _in_order(rows.src, rows.dst))
        if len(kept) == len(kind):
            return rows
        return rows._replace(batch=rows.batch.take(kept), src=rows.src[kept], dst=rows.dst[kept])

    # Before anything is written ---------------------------------------------------------------

    def look(self, positions: Mapping[Partition, int], wait_s: float) -> bool:
        """A step of looking at all that stands behind `positions`, from the first record on: what a
        topic is written as is noted when it is first written to. Whether that is done, and the
        source stands there again. Raises SourceError for what cannot be written again."""
        source = self._source
        if source.bounded:
            return True
        if self._search is None:
            if not source.poll(1, wait_s):
                return False
            source.seek(positions)
            self._learn()
            self._search = self._searched()
        for _ in self._search:
            return False
        source.seek(positions)
        return True

    def _searched(self) -> Iterator[None]:
        """Read all that is there now, a piece at a time. Raises SourceError at a removal that
        `once` will not take."""
        if not self._shared:
            return
        source = self._source
        ends = source.end_offsets()
        while True:
            polled = source.poll_many(LOOK_RECORDS, LOOK_WAIT_S)
            for record in as_columns(polled, self._reader):
                if record.partition.topic in self._shared and self._removes(record.value):
                    raise _removed(record.partition.topic)
            at = source.positions()
            if source.at_end() or all(at[place] >= end for place, end in ends.items()):
                return
            yield

    def _removes(self, value: object) -> bool:
        """Whether a record removes a vertex. One that cannot be read does nothing."""
        if isinstance(value, Columns):
            return bool((value.kind == Kind.REMOVE_VERTEX).any())
        if not isinstance(value, bytes):
            return False
        try:
            record = decode_record(value, names=self._names)
        except RecordError:
            return False
        return bool((record.batch.kind == Kind.REMOVE_VERTEX).any())


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


# Updates -------------------------------------------------------------------------------------


class UpdateReader:
    """Reads what `sink` is to write, by `reader`, whose dead letters go to `outputs`."""

    def __init__(
        self, reader: RecordReader, outputs: Outputs, topics: SourceTopics, sink: PartitionedSink
    ) -> None:
        self._reader, self._outputs, self._topics, self._sink = reader, outputs, topics, sink

    def read(self, polled: Iterable[Polled], stamp: int) -> tuple[list[Rows], Counter[str]]:
        """The updates in their order, and the counts of `Repartitioned`. Depends on nothing but
        these records, those read before, the topics, and which schemas there were at this stamp.
        Raises SourceError for what cannot be
        written again at all."""
        counts: Counter[str] = Counter()
        repeats, rejected = self._reader.duplicates, len(self._outputs.letters)
        found: list[Rows] = []
        for run in in_runs(list(polled)):
            counts["records"] += run.last - run.offset + 1
            for read in self._reader.read(run, stamp):
                counts["queries"] += len(read.record.queries)
                counts["markers"] += len(read.values) == 1 and marker_of(read.values[0]) is not None
                if not len(read.record.batch):
                    continue
                try:
                    rows = self._sink.checked(_updates(read))
                except RecordError as error:  # of a source that decodes its rows itself
                    place = read.partition, read.offset
                    self._reader.reject(*place, str(error), read.value, error.kind)
                    continue
                rows = self._topics.once(read.partition, rows)
                counts["operations"] += len(rows.batch)
                found.append(rows)
        counts["repeats"] = self._reader.duplicates - repeats
        counts["rejected"] = len(self._outputs.letters) - rejected
        return found, counts


def _updates(read: ReadRecords) -> Record:
    """The updates under no producer's name, and with the names of their vertices."""
    record = replace(read.record, producer=None, seq=None)
    if read.ends is None:
        return record
    ends = with_names(record.batch, read.ends)
    return replace(record, names=Names(ends.src, ends.dst))
