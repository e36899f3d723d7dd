"""Where a repartitioning begins: its topics are made, and whether they are its own is checked."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from ..errors import CheckpointError, PipelineError, SourceError
from ..sources.base import Identity, LogWriter, Source
from ..sources.sqlite.log import SqliteLog
from ..types import Partition
from .partitioned import create_sharded, in_topic
from .repartition_state import Progress

Settings = dict[str, Any]


def make_topics(
    sink: LogWriter, topic: str, partitions: int | None, predecessors: bool, queries: str
) -> None:
    """Make what is to be written, or check that it is there. Raises SourceError, PipelineError."""
    if partitions is None:
        partitions = sink.partitions_of(topic)
        if partitions == 1:
            raise PipelineError(f"partitions: topic {topic!r} has 1; say how many it is to have")
    create_sharded(sink, topic, partitions, predecessors, queries=queries)


def begun(source: Source, sink: LogWriter, topic: str, settings: Settings) -> Progress:
    """The beginning, with nothing done. Raises SourceError if a topic has records, or is what is
    read."""
    topics = (topic, in_topic(topic)) if settings["predecessors"] else (topic,)
    target, ends = _looked_at(sink, topics)
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


def check_same_work(
    found: Progress, source: Source, sink: LogWriter, settings: Settings, path: Path
) -> None:
    """Raise CheckpointError or IdentityError unless this is what `found` was saved by."""
    for name, value in settings.items():
        if found.settings[name] != value:
            raise CheckpointError(
                f"{path}: was begun with {name} {found.settings[name]!r}, not {value!r}: say the "
                "same, or write another topic with another directory"
            )
    found.source.check(source.identity())
    found.target.check(_looked_at(sink, tuple(found.target.topics))[0])


def _looked_at(sink: Any, topics: tuple[str, ...]) -> tuple[Identity, dict[Partition, int]]:
    """Which topics these are, and where their partitions end."""
    with _reader(sink, topics) as reader:
        return reader.identity(), reader.end_offsets()


def _reader(sink: Any, topics: tuple[str, ...]) -> Any:
    if isinstance(sink, SqliteLog):
        return SqliteLog(sink.path, topics)
    from ..sources.kafka.source import KafkaSource

    return KafkaSource(sink.bootstrap, topics, settings=sink.settings, patience=sink.patience)
