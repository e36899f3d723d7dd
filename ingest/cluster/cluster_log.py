"""The log of a cluster: what its coordinator and its clients do with it, and what a shard reads.

An embedded log takes the markers of an epoch in one transaction, so the coordinator may write them
whoever writes the updates. In Kafka they come partition by partition. That tears no edge of a topic
in which each lies once; one whose edges are doubled is marked by its only writer, between two
writes.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ..errors import ClusterError, SourceError
from ..queries.client import Client
from ..sources.sqlite.log import SqliteLog
from ..types import Closing, Partition
from .partitioned import PartitionedSink
from .spec import KAFKA, ShardSpec
from .topics import QueryTopics, in_topic, shared_partitions, topic_pairs

if TYPE_CHECKING:
    from ..sources.kafka.sink import KafkaSink
    from ..sources.kafka.source import KafkaSource

WRITE_TIMEOUT_S = 10.0  # for the markers of one epoch


class ClusterLog(Closing):
    """The log with the sharded topics that the shards of `spec`, whichever its number, read.

    can_mark: whether the cluster writes the markers. in_queries: where queries about edges turned
    round go; None: nowhere."""

    def __init__(self, spec: ShardSpec) -> None:
        self.spec = spec
        self.in_queries = in_topic(spec.queries) if spec.predecessors else None
        self.can_mark = not spec.is_kafka or (spec.directed and not spec.predecessors)
        pairs = topic_pairs(spec.topic, spec.queries, spec.predecessors)
        self._topics = [name for pair in pairs for name in pair]
        self._query_topics = QueryTopics(pairs)
        with ExitStack() as opened:
            self._sink = self._opened_sink()
            opened.callback(self._sink.close)
            self._updates = PartitionedSink(
                self._sink,
                spec.topic,
                directed=spec.directed,
                predecessors=spec.predecessors,
                names=spec.names,
            )
            opened.callback(self._updates.close)
            self._opened = opened.pop_all()

    def _opened_sink(self) -> SqliteLog | KafkaSink:
        spec = self.spec
        if not spec.is_kafka:
            return SqliteLog(spec.source, (), timeout=WRITE_TIMEOUT_S)
        from ..sources.kafka.outage import Outage
        from ..sources.kafka.sink import KafkaSink

        # `check` raises what an outage would say of brokers that are not there from the first.
        outage = Outage(spec.brokers, reached=False)
        return KafkaSink(
            spec.brokers, settings=spec.kafka_settings, patience=WRITE_TIMEOUT_S, outage=outage
        )

    def check(self) -> None:
        """Raise ClusterError unless the shards can share the topics' partitions, SourceError if
        these differ, or the query topic is another graph's."""
        shards, partitions = self.spec.shards, shared_partitions(self._sink, self._topics)
        if partitions % shards:
            raise ClusterError(
                f"{shards} shards cannot share the {partitions} partitions of {self.spec.topic!r} "
                "evenly: take a number of shards that divides them"
            )
        self._query_topics.check(self._sink)

    def note(self) -> None:
        """Note whose query topic it is, for other graphs. Raises SourceError as `check` does."""
        self._query_topics.note(self._sink)

    def mark(self, epoch: int) -> int:
        """Write the markers of an epoch. REQUIRES: `can_mark`. Raises SourceError."""
        return self._updates.mark(epoch)

    def client(self, query_topic: str, **options: Any) -> Client:
        """A client that asks through `query_topic`, whose partitions it chooses by owner."""
        spec = self.spec
        options = {"query_topic": query_topic, "names": spec.names, **options}
        if spec.is_kafka:
            return Client.kafka(spec.brokers, settings=spec.kafka_settings, **options)
        with ExitStack() as opened:
            client = Client(opened.enter_context(SqliteLog(spec.source, ())), **options)
            client._opened.push(opened.pop_all())
            return client

    def close(self) -> None:
        self._opened.close()


def address_of(source: str | os.PathLike[str] | SqliteLog) -> str:
    """What a shard opens the log by: see `ShardSpec`. Raises ClusterError."""
    if isinstance(source, SqliteLog):
        source = source.path
    elif not isinstance(source, str | os.PathLike):
        raise ClusterError(
            f"source is {source!r}: give the path of a log, or 'kafka://host:port,…'"
        )
    path = os.fspath(source)
    if path == ":memory:":
        raise ClusterError("a log in memory cannot be read by shards: keep it in a file")
    return path if path.startswith(KAFKA) else os.path.abspath(path)


# What a shard reads --------------------------------------------------------------------------


def open_source(spec: ShardSpec, direction: str) -> SqliteLog | KafkaSource:
    """What the shard's pipeline of that direction reads, and nothing else. Raises SourceError, also
    if the topics cannot be shared among the shards."""
    updates, queries = topics = spec.topics(direction)
    with _opened(spec, topics, None) as whole:
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
    if not spec.is_kafka:
        return SqliteLog(spec.source, topics, partitions=partitions)
    from ..sources.kafka.source import KafkaSource

    return KafkaSource(spec.brokers, topics, partitions=partitions, settings=spec.kafka_settings)


def updates_of(source: SqliteLog | KafkaSource, spec: ShardSpec, direction: str) -> set[Partition]:
    """The partitions of updates that it reads."""
    updates, _ = spec.topics(direction)
    return {partition for partition in source.positions() if partition.topic == updates}


def check_share(source: SqliteLog | KafkaSource, spec: ShardSpec, direction: str) -> None:
    """Raise SourceError if one of an embedded log's topics has more partitions by now than it was
    opened with: one that was never written to may still be made larger."""
    if not isinstance(source, SqliteLog):
        return
    for topic in spec.topics(direction):
        count = source.partitions_of(topic)
        read = sum(partition.topic == topic for partition in source.positions())
        if count != read * spec.shards:
            raise SourceError(
                f"{spec.source}: topic {topic!r} has {count} partitions now, and had "
                f"{read * spec.shards} when this shard opened it: start the shard again"
            )
