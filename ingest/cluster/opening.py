"""A shard's source, opened where the shard runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import SourceError
from ..sources.sqlite.log import SqliteLog
from ..types import Partition
from .spec import KAFKA, ShardSpec

if TYPE_CHECKING:
    from ..sources.kafka.source import KafkaSource


def open_source(spec: ShardSpec, way: str) -> SqliteLog | KafkaSource:
    """What the shard's pipeline of that way reads, and nothing else. Raises SourceError, also if
    the topics cannot be shared among the shards."""
    updates, queries = topics = spec.topics(way)
    whole = _opened(spec, topics, None)
    with whole:
        counts = [sum(p.topic == topic for p in whole.positions()) for topic in topics]
    if counts[0] % spec.shards or counts[0] != counts[1]:
        raise SourceError(
            f"{spec.source}: topic {updates!r} has {counts[0]} partitions and {queries!r} "
            f"{counts[1]}; {spec.shards} shards need as many of both, and a multiple of "
            f"{spec.shards}: make them with create_sharded"
        )
    numbers = range(spec.number, counts[0], spec.shards)
    return _opened(spec, topics, {updates: numbers, queries: numbers})


def _opened(
    spec: ShardSpec, topics: tuple[str, str], partitions: dict[str, range] | None
) -> SqliteLog | KafkaSource:
    if not spec.source.startswith(KAFKA):
        return SqliteLog(spec.source, topics, partitions=partitions)
    from ..sources.kafka.source import KafkaSource

    brokers = spec.source.removeprefix(KAFKA)
    return KafkaSource(brokers, topics, partitions=partitions, settings=spec.kafka_settings)


def updates_of(source: SqliteLog | KafkaSource, spec: ShardSpec, way: str) -> set[Partition]:
    """The partitions of updates that it reads."""
    updates, _ = spec.topics(way)
    return {partition for partition in source.positions() if partition.topic == updates}


def check_share(source: SqliteLog | KafkaSource, spec: ShardSpec, way: str) -> None:
    """Raise SourceError if one of an embedded log's topics has more partitions by now than it was
    opened with: one that was never written to may still be made larger."""
    if not isinstance(source, SqliteLog):
        return
    for topic in spec.topics(way):
        count = source.partitions_of(topic)
        read = sum(partition.topic == topic for partition in source.positions())
        if count != read * spec.shards:
            raise SourceError(
                f"{spec.source}: topic {topic!r} has {count} partitions now, and had "
                f"{read * spec.shards} when this shard opened it: start the shard again"
            )
