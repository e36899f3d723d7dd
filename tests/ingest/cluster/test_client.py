"""What the client of a cluster is given: judged when it is made, or at its first call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
from ingest import Ask, Cluster, PartitionedSink, QueryError, SqliteLog, encode_updates
from ingest.cluster.partitioned import create_sharded
from lpma import Kind
from lpma.batch.columns import UPDATES

SHARDS = 2
INF, NAN = float("inf"), float("nan")


def cluster_of(log: SqliteLog, directory: Path, **options: Any) -> Cluster:
    return Cluster(log, SHARDS, checkpoint=directory / "state", batch_interval=0.01, **options)


@pytest.fixture
def cluster(sharded_log: SqliteLog, tmp_path: Path) -> Iterator[Cluster]:
    """Edges 1 → 2 → 3 → 1."""
    PartitionedSink(sharded_log).produce_many("updates", [encode_updates([1, 2, 3], [2, 3, 1])])
    with cluster_of(sharded_log, tmp_path) as cluster:
        yield cluster


@pytest.mark.parametrize(
    "options, told",
    [
        ({"max_age_s": NAN}, "max_age_s is nan: expected seconds"),
        ({"max_age_s": -1}, "max_age_s is -1"),
        ({"max_age_s": "x"}, "max_age_s is 'x'"),
        ({"max_age_s": None}, "max_age_s is None"),
        ({"timeout": NAN}, "timeout is nan"),
        ({"timeout": 0}, "timeout is 0: it must be positive"),
        ({"timeout": "x"}, "timeout is 'x'"),
        ({"reply_topic": "no"}, "reply_topic is 'no': this cluster replies to replies"),
        ({"reply_topic": 5}, "reply_topic is 5"),
    ],
)
def test_what_makes_no_sense_is_refused(
    cluster: Cluster, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(QueryError, match=told):
        cluster.client(**options)


def test_how_old_an_epoch_may_be(cluster: Cluster) -> None:
    with cluster.client(max_age_s=INF) as kept, cluster.client(max_age_s=np.float32(0)) as fresh:
        assert len({kept.hops(1, 1).epoch for _ in range(3)}) == 1
        assert len({fresh.hops(1, 1).epoch for _ in range(3)}) == 3


@pytest.mark.parametrize("topics", [["x"], ("x", "y"), ["y", "replies"]])
def test_replies_come_through_a_topic_of_the_shards(
    sharded_log: SqliteLog, tmp_path: Path, topics: Any
) -> None:
    with cluster_of(sharded_log, tmp_path, reply_topics=topics) as cluster:
        for given in (None, *topics):
            with cluster.client(reply_topic=given) as client:
                assert client.degree(1).answer.tolist() == [0]  # type: ignore[union-attr]
                assert client.hops(1, 1).rows == 0
        for given in {"no", "replies"} - set(topics):
            with pytest.raises(QueryError, match=f"replies to {', '.join(topics)}: name another"):
                cluster.client(reply_topic=given)


@pytest.mark.parametrize("integer", [np.int8, np.int64, np.uint32, np.uint64])
def test_vertices_may_be_integers_of_numpy(cluster: Cluster, integer: Any) -> None:
    """As an answer's ids are."""
    one, two = integer(1), integer(2)
    with cluster.client() as client, cluster.client() as plain:
        for kind in Kind:
            if kind not in UPDATES:
                check_same(client, plain, kind, integer)
        (near,) = client.hops(one, two, after=two).answer.ids  # type: ignore[union-attr]
        assert client.successors(near).answer.ids.tolist() == [1]  # type: ignore[union-attr]
        assert client.edge(one, two).answer.found.tolist() == [True]  # type: ignore[union-attr]


def check_same(client: Any, plain: Any, kind: Kind, integer: Any) -> None:
    """That a question is answered as it is with integers of Python."""
    asked = Ask(kind, 1, 2 if kind is Kind.EDGE else None, 2 if kind is Kind.HOPS else None)
    numpys = asked._replace(src=integer(1), dst=asked.dst and integer(2))
    found, expected = client.ask(numpys), plain.ask(asked)
    assert str(found.answer) == str(expected.answer)


def test_names_may_be_integers_of_numpy(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log:
        create_sharded(log, "updates", SHARDS)
        names = [np.int64(-5), "ann", np.uint64(2**63)]
        with PartitionedSink(log, names=True) as sink:
            updates = encode_updates(names, names[1:] + names[:1], names=True)
            sink.produce_many("updates", [updates])
        with cluster_of(log, tmp_path, names=True) as cluster, cluster.client() as client:
            assert client.degree(np.int16(-5)).answer.tolist() == [1]  # type: ignore[union-attr]
            found = client.hops(np.int64(-5), 2, after=np.int8(-5)).answer.ids  # type: ignore[union-attr]
            assert found.tolist() == [2**63, "ann"]
            assert client.predecessors(np.uint64(2**63)).rows == 1
            with pytest.raises(ingest.RecordError):
                client.degree(np.bool_(True))  # type: ignore[arg-type]
