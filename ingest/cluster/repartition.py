"""Repartitioning: a stream that is keyed otherwise, written to the partitions of its owners.

Idea: it is a producer like any other, whose rows come from a log or a file. To write each exactly
once it notes what it is about to write before it writes it, and writes it under numbers that mean
the same rows for ever (`repartition_state.py`). For each chunk:

    1. read records of the source
    2. save where they end, and what comes next: this is what a crash goes back to
    3. send dead letters, for what is no update
    4. write the rows to the partitions of their owners, with this name and these numbers
    5. between two chunks, end an epoch if it is time

A crash after step 2 repeats steps 3 to 5 of the same records in the same order. So dead letters may
come twice, and rows that were written already are dropped by whoever reads them.

Requires that nothing else writes the topic where edges are written twice.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from lpma.batch.columns import Columns

from ..errors import CheckpointError, PipelineError, SourceError
from ..fields import Records, checked_records, records_to_json, remembers_rows
from ..pipeline.outputs import Outputs
from ..pipeline.record_reader import RecordReader
from ..pipeline.recovery import Rereader, check_source, refuse_mirrored, refuse_named
from ..pipeline.topics.readers import TopicReaders
from ..registry.client import SchemaRegistry, checked_registry
from ..registry.schemas import Schemas, remove_schemas
from ..settings import DeadLetterSink
from ..sources.base import LogWriter, Source
from ..sources.fingerprints import check_fingerprints, check_same
from ..sources.sqlite.log import SqliteLog
from ..state.journal import Chunk
from ..timers import now_ms
from ..types import QUERIES, REPLIES, Closing, Polled, Rejected, Values
from .arguments import check_flags, check_interval, check_sink
from .partitioned import PartitionedSink, create_sharded
from .repartition_source import SourceTopics, UpdateReader
from .repartition_state import Pending, Progress, ProgressFile
from .topics import in_topic

CHUNK_BYTES = 8 << 20  # about, of what is read for one chunk
POLL_RECORDS = 10_000
WAIT_S = 0.1  # for records, where there are none
_ROW_BYTES = 16  # that a decoded row counts for


@dataclass(frozen=True)
class Repartitioned:
    """What has been done since the first start. records: read, of which `repeats`, `queries`,
    `markers` and `rejected` were left out. operations: the updates of the others; an edge that the
    source has twice is one. epoch: the last that was ended, −1 for none.

    >>> ingest.cluster.repartition.Repartitioned(records=3, operations=2, queries=1).rejected
    0
    """

    records: int = 0
    operations: int = 0
    repeats: int = 0
    queries: int = 0
    markers: int = 0
    rejected: int = 0
    epoch: int = -1


class Repartition(Closing):
    """Writes the updates of `source` to `topic` of `sink`, each exactly once, and goes on where it
    was if `checkpoint` says so.

    source: a log, or a file of edges. sink: an SqliteLog or a KafkaSink; neither is closed.
    checkpoint: a directory of its own. partitions: of the topics, which it makes; None: they are
    there. records: how the source's records are read, as `Settings` has it. queries: the query
    topic that is made beside it. dead_letters: as of a pipeline; None: the sink's own topic of
    them. schema_registry: as of `Settings`. The others as of `PartitionedSink`, and what a sharded
    source was written as.

    Raises SourceError if the source was written as something else, or the topic has records that
    are not its own; while it runs, before the first row, if a source with several partitions,
    sharded itself, has a removal of a vertex (`repartition_source.py` says why). Raises
    CheckpointError or IdentityError if `checkpoint` belongs to something else, LockedError if it is
    in use.

    >>> with ingest.SqliteLog("keyed-otherwise") as source, ingest.SqliteLog("by-owner") as log:
    ...     _ = source.produce("updates", ingest.encode_updates([1, 2, 3], [2, 3, 1]))
    ...     with ingest.Repartition(source, log, "updates", "progress", partitions=4) as work:
    ...         work.run().operations, log.partitions_of("updates")
    (3, 4)
    """

    def __init__(
        self,
        source: Source,
        sink: LogWriter,
        topic: str,
        checkpoint: str | os.PathLike[str],
        *,
        partitions: int | None = None,
        directed: bool = True,
        predecessors: bool = False,
        names: bool = False,
        records: Records = "msgpack",
        queries: str = QUERIES,
        shards: int | None = None,
        epoch_interval_s: float | None = None,
        dead_letters: DeadLetterSink = None,
        schema_registry: SchemaRegistry | str | None = None,
    ) -> None:
        check_source(source)
        check_sink(sink)
        check_flags(PipelineError, directed=directed, predecessors=predecessors, names=names)
        check_interval(PipelineError, epoch_interval_s)
        refuse_named(source, names)
        refuse_mirrored(source, directed)
        self._source = source
        predecessors = predecessors and directed
        self._names = names
        records = _checked_records(records)
        self._topics = SourceTopics(source, directed, names)
        self._interval_s = epoch_interval_s
        self._marked = time.monotonic()
        self._written = False  # whether something was, since the file was saved
        self._file = ProgressFile(checkpoint)
        try:
            found = self._file.load()
            if found is None:
                _make_topics(sink, topic, partitions, predecessors, queries)
            settings = {
                "directed": directed, "predecessors": predecessors, "names": names,
                "records": records_to_json(records),
                "partitions": partitions or sink.partitions_of(topic), "shards": shards,
            }  # fmt: skip
            registry = checked_registry(schema_registry)
            if registry is not None:
                settings["enveloped"] = True
            self.resumed = found is not None
            if found is None:
                self._progress = _begun(source, sink, topic, settings)
            else:
                self._progress = found
                _check_same_work(found, source, sink, settings, self._file.path)
                if found.undirected is not None:
                    self._topics.check_begun(found.undirected, self._file.path)
            self._sink = PartitionedSink(
                sink, topic, directed=directed, predecessors=predecessors, names=names,
                shards=shards, producer=self._progress.producer,
            )  # fmt: skip
            self._sink.seq, self._sink.epoch = self._progress.seq, self._progress.epoch
            letters = sink if dead_letters is None else dead_letters
            self._outputs = Outputs(letters, None, (REPLIES,))
            self._schemas = self._schemas_of(registry, Path(checkpoint))
            self._reader = RecordReader(
                TopicReaders(records, names, self._schemas, directed=directed),
                self._progress.seen,
                self._outputs,
            )
            self._held_back: list[Polled] = []  # until their schemas are known
            self._updates = UpdateReader(self._reader, self._outputs, self._topics, self._sink)
            if found is None:
                self._save()
            else:
                self._go_on(found)
        except BaseException:
            self._file.close()
            raise

    def _schemas_of(self, registry: SchemaRegistry | None, directory: Path) -> Schemas | None:
        """Those of records in Confluent's envelope; None: these are not read."""
        if not self.resumed:
            remove_schemas(directory)
        return Schemas(registry, directory) if self._progress.settings.get("enveloped") else None

    def close(self) -> None:
        """Save how far it has come, unless a write failed."""
        try:
            if self._written:
                self._save()
        finally:
            self._file.close()

    def _save(self) -> None:
        self._file.save(self._progress)
        self._written = False

    @property
    def partitions(self) -> int:
        """How many the topic has."""
        return self._sink.partitions

    @property
    def done(self) -> Repartitioned:
        """What has been done since the first start."""
        return Repartitioned(**self._progress.counts, epoch=self._progress.epoch)

    # Running ---------------------------------------------------------------------------------

    def run(
        self,
        *,
        follow: bool = False,
        stop: threading.Event | None = None,
        on_chunk: Callable[[Repartitioned], object] | None = None,
    ) -> Repartitioned:
        """Write all that the source has; with `follow` also what comes, until `stop` is set. An
        epoch ends with it, if epochs end at all. Raises SourceError and CheckpointError: then make
        another one, which goes on."""
        while stop is None or not stop.is_set():
            if self.step() and on_chunk is not None:
                on_chunk(self.done)
            elif not follow and not self._held_back and self._source.at_end():
                break
        if self._interval_s is not None:
            self._mark()
        self._save()
        return self.done

    def step(self, wait_s: float = WAIT_S) -> bool:
        """Write the next chunk; whether there was one."""
        polled = self._held_back
        if not polled and self._may_begin(wait_s):
            polled = self._read(wait_s)  # 1
        stamp = now_ms()
        ready = self._schemas is None or self._schemas.ready(
            self._reader.topics.schema_ids(polled), stamp, wait_s
        )
        self._held_back, polled = ([], polled) if ready else (polled, [])
        if polled:
            pending = Pending(self._progress.seq, stamp, _stretches(polled))
            self._progress.pending = pending
            self._save()  # 2
            self._write(polled, pending)
            self._reader.fields.changes.tell()
        if self._interval_s is not None and time.monotonic() - self._marked >= self._interval_s:
            self._mark()  # 5
        return bool(polled)

    def _read(self, wait_s: float) -> list[Polled]:
        polled: list[Polled] = []
        size = 0
        while size < CHUNK_BYTES:
            found = self._source.poll_many(POLL_RECORDS, 0.0 if polled else wait_s)
            if not found:
                break
            polled += found
            size += sum(map(_size, found))
        return polled

    def _may_begin(self, wait_s: float) -> bool:
        """Whether the source has been looked at, which is done once."""
        progress = self._progress
        if progress.undirected is None and self._topics.look(progress.positions, wait_s):
            progress.undirected = self._topics.undirected
        return progress.undirected is not None

    def _write(self, polled: list[Polled], pending: Pending) -> None:
        """Steps 3 and 4 of `pending`, whose records are `polled`."""
        progress = self._progress
        rows, counts = self._updates.read(polled, pending.stamp)
        self._outputs.flush()  # 3
        self._sink.write_rows(rows, stamp=pending.stamp)  # 4
        for stretch in pending.stretches:
            progress.positions[stretch.partition] = stretch.last + 1
        last = {record.partition: record for record in polled}
        found = {place: record.fingerprint for place, record in last.items()}
        progress.fingerprints |= {place: one for place, one in found.items() if one is not None}
        progress.seen = dict(self._reader.seen)
        progress.counts += counts
        progress.seq, progress.pending = self._sink.seq, None
        self._written = True

    def _mark(self) -> None:
        self._progress.epoch = self._sink.mark()
        self._marked = time.monotonic()

    def _go_on(self, progress: Progress) -> None:
        """Stand where `progress` does, after writing what the last process may not have written."""
        check_fingerprints(self._source, progress.fingerprints)
        self._source.seek(progress.positions)
        pending = progress.pending
        if pending is None:
            return
        reader = Rereader(self._source)
        polled: list[Polled] = []
        for stretch in pending.stretches:
            polled += reader.read(stretch)
            if stretch.digest and (fingerprint := polled[-1].fingerprint) is not None:
                check_same(
                    stretch.partition, fingerprint, fingerprint._replace(digest=stretch.digest)
                )
        if self._schemas is not None:
            self._schemas.wait(self._reader.topics.schema_ids(polled), pending.stamp)
        self._write(polled, pending)
        self._source.seek(progress.positions)  # the reader may have read on


def _size(polled: Polled) -> int:
    value = polled.value
    if isinstance(value, Columns):
        return _ROW_BYTES * len(value)
    if isinstance(value, Values):
        return int(value.stops[-1] - value.starts[0])
    return len(value.value if isinstance(value, Rejected) else value)


def _stretches(polled: list[Polled]) -> list[Chunk]:
    found = []
    for partition, stretch in groupby(polled, key=attrgetter("partition")):
        records = list(stretch)
        fingerprint = records[-1].fingerprint
        digest = "" if fingerprint is None else fingerprint.digest
        found.append(Chunk(0, partition, records[0].offset, records[-1].last, digest=digest))
    return found


# Beginning -----------------------------------------------------------------------------------


def _checked_records(records: Records) -> Records:
    """Raises PipelineError."""
    found = checked_records(records)
    if remembers_rows(found):
        raise PipelineError(
            "on_repeat='sum' remembers the rows of a table, and a repartitioning does not: read "
            "the table with a pipeline, or say on_repeat='last'"
        )
    return found


def _make_topics(
    sink: LogWriter, topic: str, partitions: int | None, predecessors: bool, queries: str
) -> None:
    """Make what is to be written, or check that it is there. Raises SourceError, PipelineError."""
    if partitions is None:
        partitions = sink.partitions_of(topic)
        if partitions == 1:
            raise PipelineError(f"partitions: topic {topic!r} has 1; say how many it is to have")
    create_sharded(sink, topic, partitions, predecessors, queries=queries)


def _begun(source: Source, sink: LogWriter, topic: str, settings: dict[str, Any]) -> Progress:
    """The beginning, with nothing done. Raises SourceError if a topic has records, or is what is
    read."""
    topics = (topic, in_topic(topic)) if settings["predecessors"] else (topic,)
    with _reader(sink, topics) as reader:
        target, ends = reader.identity(), reader.end_offsets()
    identity = source.identity()
    if (identity.cluster, identity.topics.get(topic)) == (target.cluster, target.topics[topic]):
        raise SourceError(f"topic {topic!r} is what is read: choose another to write")
    if any(ends.values()):
        raise SourceError(
            f"topic {topic!r} has records already, and would have some twice: choose another, or "
            "go on with the checkpoint of whoever wrote them"
        )
    producer = f"repartition-{secrets.token_hex(8)}"
    return Progress(producer, identity, target, settings, dict(source.positions()))


def _check_same_work(
    found: Progress, source: Source, sink: LogWriter, settings: dict[str, Any], path: Path
) -> None:
    """Raise CheckpointError or IdentityError unless this is what `found` was saved by."""
    for name, value in settings.items():
        then = found.settings.get(name)
        if then != value:
            raise CheckpointError(
                f"{path}: was begun with {name} {then!r}, not {value!r}: say the same, or "
                "write another topic with another directory"
            )
    found.source.check(source.identity())
    with _reader(sink, tuple(found.target.topics)) as reader:
        found.target.check(reader.identity())


def _reader(sink: Any, topics: tuple[str, ...]) -> Any:
    if isinstance(sink, SqliteLog):
        return SqliteLog(sink.path, topics)
    from ..sources.kafka.source import KafkaSource

    return KafkaSource(sink.bootstrap, topics, settings=sink.settings, patience=sink.patience)
