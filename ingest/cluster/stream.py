"""The log of a cluster, as its coordinator and its clients need it: where it is, whether it fits,
who writes its markers, how it is asked.

An embedded log takes the markers of an epoch in one transaction, so the coordinator may write them
whoever writes the updates. In Kafka they come partition by partition. That tears no edge of a topic
in which each lies once; one whose edges are doubled is marked by its only writer, between two
writes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ..errors import ClusterError, SourceError
from ..queries.client import Client
from ..sources.sqlite.log import SqliteLog
from ..types import Closing
from .partitioned import NO_IN_TOPICS, PartitionedSink, in_topic, topic_pairs
from .query_topics import QueryTopics

if TYPE_CHECKING:
    from ..sources.kafka.sink import KafkaSink

KAFKA = "kafka://"
WRITE_TIMEOUT_S = 10.0  # for the markers of one epoch


class ClusterLog(Closing):
    """The log at `source` with the sharded topics of one graph. See `Cluster` for the parameters.

    address: what a shard opens it by. can_mark: whether the cluster writes the markers."""

    def __init__(
        self,
        source: str | os.PathLike[str] | SqliteLog,
        topic: str,
        queries: str,
        directed: bool,
        predecessors: bool,
        names: bool,
        kafka_settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.address = _address(source)
        self.names = names
        self.directed = directed
        self.topic, self.queries = topic, queries
        self.in_queries = in_topic(queries) if predecessors else None
        self.can_mark = self._is_embedded or (directed and not predecessors)
        self._kafka_settings = kafka_settings
        pairs = topic_pairs(topic, queries, predecessors)
        self._topics = [name for pair in pairs for name in pair]
        self._query_topics = QueryTopics(pairs)
        with ExitStack() as opened:
            self._sink = self._opened_sink()
            opened.callback(self._sink.close)
            self._updates = PartitionedSink(
                self._sink, topic, directed=directed, predecessors=predecessors, names=names
            )
            opened.callback(self._updates.close)
            self._opened = opened.pop_all()

    @property
    def _is_embedded(self) -> bool:
        return not self.address.startswith(KAFKA)

    @property
    def _brokers(self) -> list[str]:
        return self.address.removeprefix(KAFKA).split(",")

    def _opened_sink(self) -> SqliteLog | KafkaSink:
        if self._is_embedded:
            return SqliteLog(self.address, (), timeout=WRITE_TIMEOUT_S)
        from ..sources.kafka.outage import Outage
        from ..sources.kafka.sink import KafkaSink

        # `check` raises what an outage would say of brokers that are not there from the first.
        outage = Outage(",".join(self._brokers), reached=False)
        return KafkaSink(
            self._brokers, settings=self._kafka_settings, patience=WRITE_TIMEOUT_S, outage=outage
        )

    def check(self, shards: int) -> None:
        """Raise ClusterError unless so many shards can share the topics' partitions, SourceError if
        the query topic is another graph's."""
        counts = {topic: self._count(topic) for topic in self._topics}
        partitions = counts[self.topic]
        if uneven := {name: n for name, n in counts.items() if n != partitions}:
            raise ClusterError(
                f"topic {self.topic!r} has {partitions} partitions, {uneven} as many: make them "
                "together, with ingest.create_sharded"
            )
        if partitions % shards:
            raise ClusterError(
                f"{shards} shards cannot share the {partitions} partitions of {self.topic!r} "
                "evenly: take a number of shards that divides them"
            )
        self._query_topics.check(self._sink)

    def note(self) -> None:
        """Note whose query topic it is, for other graphs. Raises SourceError as `check` does."""
        self._query_topics.note(self._sink)

    def _count(self, topic: str) -> int:
        try:
            return self._sink.partitions_of(topic)
        except SourceError as error:
            if topic != self.in_queries:
                raise
            raise SourceError(f"{error}: {NO_IN_TOPICS}") from None

    def mark(self, epoch: int) -> int:
        """Write the markers of an epoch. REQUIRES: `can_mark`. Raises SourceError."""
        return self._updates.mark(epoch)

    def client(self, query_topic: str, **options: Any) -> Client:
        """A client that asks through `query_topic`, whose partitions it chooses by owner."""
        options = {"query_topic": query_topic, "names": self.names, **options}
        if self._is_embedded:
            return _OwnLogClient(self.address, **options)
        return Client.kafka(self._brokers, settings=self._kafka_settings, **options)

    def close(self) -> None:
        self._opened.close()


class _OwnLogClient(Client):
    """A client with a handle of its own on an embedded log."""

    def __init__(self, path: str, **options: Any) -> None:
        log = SqliteLog(path, ())
        try:
            super().__init__(log, **options)
        except BaseException:
            log.close()
            raise
        self._opened.callback(log.close)


def _address(source: str | os.PathLike[str] | SqliteLog) -> str:
    if isinstance(source, SqliteLog):
        source = source.path
    elif not isinstance(source, str | os.PathLike):
        raise ClusterError(
            f"source is {source!r}: give the path of a log, or 'kafka://host:port,…'"
        )
    path = os.fspath(source)
    if path.startswith(KAFKA):
        return path
    if path == ":memory:":
        raise ClusterError("a log in memory cannot be read by shards: keep it in a file")
    return os.path.abspath(path)
