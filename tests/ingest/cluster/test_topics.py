"""A query topic belongs to one sharded topic, and whoever would share it is refused before anything
is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import ingest
from ingest import Cluster, PartitionedSink, Repartition, SourceError, SqliteLog, create_sharded
from tests.ingest.cluster.repartitioning import polled_of
from tests.support.waiting import wait_for

REMEDY = r"name one.*queries='calls\.queries' \(`--query-topic` of.*`--queries` of"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqliteLog]:
    """Two sharded topics, of which the first has query topics, and the other is to have some."""
    with SqliteLog(tmp_path / "log") as log:
        create_sharded(log, "friends", 2, predecessors=True)
        for topic in ("calls", "calls.in"):
            log.create_topic(topic, 2)
        yield log


def test_two_graphs_do_not_share_a_query_topic(log: SqliteLog, tmp_path: Path) -> None:
    """Both would answer each query, and the first reply would be taken."""
    before = sorted(log.topic_names())
    with pytest.raises(SourceError, match=REMEDY):
        create_sharded(log, "calls", 2)
    with pytest.raises(SourceError, match=REMEDY):
        create_sharded(log, "calls", 2, queries="queries.in")
    with pytest.raises(SourceError, match=REMEDY):
        Cluster(log, 2, checkpoint=tmp_path / "state", topic="calls")
    with pytest.raises(SourceError, match=REMEDY):
        Repartition(source_of(log), log, "calls", tmp_path / "progress", partitions=2)
    assert sorted(log.topic_names()) == before
    assert not (tmp_path / "state").exists()
    assert not (tmp_path / "progress" / "repartition.json").exists()


def test_each_graph_answers_for_itself(log: SqliteLog, tmp_path: Path) -> None:
    create_sharded(log, "calls", 2, queries="asked")
    for topic, degree in (("friends", 3), ("calls", 5)):
        with PartitionedSink(log, topic) as sink:
            sink.produce_many(topic, [ingest.encode_updates([1] * degree, range(2, 2 + degree))])
    with (
        Cluster(log, 2, checkpoint=tmp_path / "a", topic="friends") as friends,
        Cluster(log, 2, checkpoint=tmp_path / "b", topic="calls", queries="asked") as calls,
        Cluster(log, 1, checkpoint=tmp_path / "c", topic="calls", queries="asked") as again,
    ):
        for cluster, degree in ((friends, 3), (calls, 5), (again, 5)):
            with cluster.client() as client:
                assert [degree_of(client, 1) for _ in range(5)] == [degree] * 5


def test_a_second_graph_does_not_make_the_query_topic_larger(
    log: SqliteLog, tmp_path: Path
) -> None:
    with Cluster(log, 2, checkpoint=tmp_path / "state", topic="friends") as cluster:
        with pytest.raises(SourceError, match="has the queries of 'friends'"):
            create_sharded(log, "more", 4)
        assert log.partitions_of("queries") == 2
        with cluster.client() as client:
            assert degree_of(client, 2) == 0
    create_sharded(log, "friends", 2)
    Cluster(log, 2, checkpoint=tmp_path / "state", topic="friends").close()


def test_one_that_grows_is_told(log: SqliteLog, tmp_path: Path) -> None:
    """Whoever makes it larger without asking spoils the cluster: it says so, and why. Shards that
    failed may lack a last checkpoint, which `close` may tell."""
    cluster = Cluster(log, 2, checkpoint=tmp_path / "state", topic="friends")
    try:
        assert cluster.status().problems == ()
        log.create_topic("queries", 4)
        problems = wait_for(lambda: cluster.status().problems, "a problem")
        assert "'queries'" in problems[0]
    finally:
        with suppress(ingest.ClusterError):
            cluster.close()


def test_topics_that_were_made_otherwise_are_noted_by_their_cluster(tmp_path: Path) -> None:
    """By the tools of Kafka, for instance."""
    with SqliteLog(tmp_path / "log") as log:
        for topic in ("friends", "queries"):
            log.create_topic(topic, 2)
        with pytest.raises(ingest.ClusterError, match="3 shards"):
            Cluster(log, 3, checkpoint=tmp_path / "state", topic="friends")
        assert "queries.of.friends" not in log.topic_names()
        Cluster(log, 2, checkpoint=tmp_path / "state", topic="friends").close()
        with pytest.raises(SourceError, match="has the queries of 'friends'"):
            create_sharded(log, "calls", 2)


def test_updates_and_queries_are_apart(log: SqliteLog, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"'friends' is a sharded topic of updates: name one"):
        create_sharded(log, "calls", 2, queries="friends")
    with pytest.raises(SourceError, match=r"'queries' has the queries of 'friends': choose"):
        create_sharded(log, "queries", 2, queries="more")
    with PartitionedSink(log, "calls") as sink:
        sink.produce_many("calls", [ingest.encode_row(1, 2)])
    with pytest.raises(SourceError, match=r"'calls' is a sharded topic of updates: name one"):
        create_sharded(log, "more", 2, queries="calls")
    for topic, queries in (("same", "same"), ("turned", "turned.in")):
        with pytest.raises(SourceError, match="each need a topic of their own"):
            create_sharded(log, topic, 2, predecessors=True, queries=queries)
        with pytest.raises(SourceError, match="each need a topic of their own"):
            Cluster(log, 2, checkpoint=tmp_path / "state", topic=topic, queries=queries,
                    predecessors=True)  # fmt: skip
    for bad in (None, 5, ""):
        options: Any = {"queries": bad}
        with pytest.raises(SourceError, match="no name of a topic: expected text"):
            create_sharded(log, "calls", 2, **options)
        with pytest.raises(SourceError, match="no name of a topic: expected text"):
            Cluster(log, 2, checkpoint=tmp_path / "state", topic="calls", **options)
    assert polled_of(log.path, ["friends"]) == []


def test_the_query_topic_of_one_that_is_gone_is_free(log: SqliteLog) -> None:
    for topic in ("friends", "friends.in"):
        log.delete_topic(topic)
    create_sharded(log, "calls", 2)
    with pytest.raises(SourceError, match="has the queries of 'calls'"):
        create_sharded(log, "friends", 2)


def test_a_name_that_is_like_a_note_is_none(log: SqliteLog) -> None:
    create_sharded(log, "a", 2, queries="friends.of.b")
    create_sharded(log, "queries.of.c", 2, queries="d")
    create_sharded(log, "friends", 2)


def test_a_log_that_refuses_the_note_is_used(log: SqliteLog, tmp_path: Path) -> None:
    class Refusing(SqliteLog):
        def create_topic(self, name: str, partitions: int = 1) -> None:
            if ".of." in name:
                raise SourceError("not allowed")
            super().create_topic(name, partitions)

    with Refusing(log.path) as refusing:
        create_sharded(refusing, "calls", 2, queries="asked")
    assert log.partitions_of("asked") == 2
    assert "asked.of.calls" not in log.topic_names()


def test_of_two_that_come_at_once_one_is_told(log: SqliteLog) -> None:
    """The other's note appears between the look and the own note."""

    class Raced(SqliteLog):
        def create_topic(self, name: str, partitions: int = 1) -> None:
            if name == "asked.of.calls":
                super().create_topic("asked.of.friends", 1)
            super().create_topic(name, partitions)

    with Raced(log.path) as raced, pytest.raises(SourceError, match="queries of 'friends'"):
        create_sharded(raced, "calls", 2, queries="asked")


def degree_of(client: Any, vertex: int) -> int:
    return int(client.degree(vertex).answer[0])


def source_of(log: SqliteLog) -> Any:
    return SqliteLog(log.path, ["friends"])


def test_query_topics_of_kafka_are_noted(kafka: Any, tmp_path: Path) -> None:
    from ingest.sources.kafka.sink import KafkaSink

    topic = kafka.topic(2)
    with KafkaSink(kafka.bootstrap) as sink:
        create_sharded(sink, topic, 2, queries=f"{topic}.asked")
        other = kafka.topic(2)
        with pytest.raises(SourceError, match=rf"has the queries of '{topic}'"):
            create_sharded(sink, other, 2, queries=f"{topic}.asked")
        with pytest.raises(SourceError, match=rf"has the queries of '{topic}'"):
            Cluster(f"kafka://{kafka.bootstrap}", 2, checkpoint=tmp_path / "state", topic=other,
                    queries=f"{topic}.asked")  # fmt: skip
