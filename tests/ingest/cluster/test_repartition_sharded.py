"""Repartitioning a topic that is sharded already: each update once, or refused before anything is
written."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
import lpma
from ingest import PartitionedSink, Repartition, SourceError, SqliteLog, create_sharded
from ingest.cluster import repartition as module
from ingest.cluster import repartition_source as source_module
from ingest.cluster.repartition_state import FILE
from lpma import Kind
from lpma.batch.columns import OF_EDGES
from tests.ingest.cluster.repartitioning import P, one_of, polled_of, sharded
from tests.support.shards import Content

COUNT = 120
NAMES: list[Any] = [0, 7, -3, 2**64 - 1, "7", "-3", "ann", "bob", "żółć"]
IDS: list[Any] = [0, 1, 2, 3, 7, 500]


class Stream:
    """Updates of every kind, one a record, with times, and what they make: a dictionary."""

    def __init__(self, seed: int, directed: bool, names: bool, removals: bool) -> None:
        rng = random.Random(seed)
        self.kind: dict[str, Any] = {"directed": directed, "names": names}
        self.records: list[bytes] = []
        self.removals = 0
        self.edges: dict[tuple[Any, Any], tuple[float, int]] = {}
        self.added: set[Any] = set()
        vertices = NAMES if names else IDS
        for time in range(1, COUNT + 1):
            kind = rng.choice([Kind.INSERT] * 3 + [Kind.DELETE, Kind.ADD_VERTEX, Kind.SET])
            if removals and rng.random() < 0.05:
                kind = Kind.REMOVE_VERTEX
            u, v, weight = rng.choice(vertices), rng.choice(vertices), rng.randint(1, 8) / 2
            weight = 0.0 if kind is Kind.SET and rng.random() < 0.2 else weight
            is_edge = kind in OF_EDGES
            dst, w = (v, weight) if is_edge else (None, None)
            record = ingest.encode_row(u, dst, w, time, kind, names=names)
            self.records.append(record)
            self._operate(kind, u, v, weight, time)
            if not directed and u != v and is_edge:
                self._operate(kind, v, u, weight, time)

    def _operate(self, kind: Kind, u: Any, v: Any, weight: float, time: int) -> None:
        if kind == Kind.INSERT:
            self.edges[u, v] = self.edges.get((u, v), (0.0, 0))[0] + weight, time
        elif kind == Kind.SET and weight > 0:
            self.edges[u, v] = weight, time
        elif kind in (Kind.DELETE, Kind.SET):
            self.edges.pop((u, v), None)
        elif kind == Kind.ADD_VERTEX:
            self.added.add(u)
        else:
            self.edges = {edge: at for edge, at in self.edges.items() if u not in edge}
            self.added.discard(u)
            self.removals += 1

    @property
    def content(self) -> Content:
        return self.edges, self.added.union(*self.edges)

    def write(self, log: SqliteLog, partitions: int, **more: Any) -> None:
        create_sharded(log, "updates", partitions, more.get("predecessors", False))
        with PartitionedSink(log, **self.kind, **more) as sink:
            for start in range(0, len(self.records), 11):
                sink.produce_many("updates", self.records[start : start + 11])
                if start == 55:
                    sink.mark()


def updates(directed: bool = True, names: bool = False) -> Stream:
    return Stream(3, directed, names, removals=False)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 2**32), st.booleans(), st.booleans(), st.booleans(), st.integers(1, 4)
)  # fmt: skip
def test_each_update_is_written_once(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    directed: bool,
    names: bool,
    removals: bool,
    partitions: int,
) -> None:
    """In steps, each by a process of its own, it writes what the stream said; or nothing, and then
    the way by a snapshot that it names leads to the same graph."""
    tmp_path = tmp_path_factory.mktemp("sharded")
    stream = Stream(seed, directed, names, removals)
    with pytest.MonkeyPatch.context() as patch, SqliteLog(tmp_path / "log") as log:
        patch.setattr(module, "CHUNK_BYTES", 600)
        patch.setattr(module, "POLL_RECORDS", 3)
        stream.write(log, partitions)
        if stream.removals and partitions > 1:
            with (
                pytest.raises(SourceError, match="removals of vertices"),
                one_of(tmp_path, log, **stream.kind) as task,
            ):
                task.run()
            assert polled_of(log.path, ["split"]) == []
            by_snapshot(tmp_path, log, partitions, stream)
            return
        more = True
        while more:
            with one_of(tmp_path, log, **stream.kind) as task:
                more = task.step(0.0)
                operations = task.done.operations
        assert operations == len(stream.records)
        assert sharded(log.path, names=names) == stream.content


def by_snapshot(tmp_path: Path, log: SqliteLog, partitions: int, stream: Stream) -> None:
    """Vertices without edges are not in the file, and are told to be."""
    path = tmp_path / "whole.parquet"
    with ingest.Cluster(log, partitions, checkpoint=tmp_path / "state", **stream.kind) as cluster:
        cluster.snapshot().gather().write_parquet(path)
    names, directed = stream.kind["names"], stream.kind["directed"]
    source: Any = ingest.FileSource(path, names=names, mirror=directed)
    with Repartition(
        source, log, "again", tmp_path / "more", partitions=P, queries="more", **stream.kind
    ) as task:
        task.run()
    assert sharded(log.path, "again", names=names)[0] == stream.edges


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("predecessors", [True, False])
@pytest.mark.parametrize("names", [True, False])
def test_it_is_to_be_read_as_it_was_written(
    tmp_path: Path, directed: bool, predecessors: bool, names: bool
) -> None:
    with SqliteLog(tmp_path / "log") as log:
        right = directed, names
        updates(*right).write(log, 2, predecessors=predecessors)
        before = log.topic_names()
        for said in ((True, True), (True, False), (False, True), (False, False)):
            if said == right:
                continue
            with pytest.raises(SourceError, match=r"is written as .*: say the same") as told:
                one_of(tmp_path, log, directed=said[0], names=said[1])
            assert f"directed={right[0]} and names={right[1]}" in str(told.value)
        assert log.topic_names() == before
        assert not (tmp_path / "progress").exists()
        with one_of(tmp_path, log, directed=right[0], names=names) as task:
            assert task.run().operations == COUNT


def test_edges_that_are_turned_round_are_not_read(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log:
        updates().write(log, 2, predecessors=True)
        source = SqliteLog(log.path, topics=["updates.in"])
        with pytest.raises(SourceError, match=r"'updates\.in' has the edges turned .*'updates'"):
            Repartition(source, log, "split", tmp_path / "progress", partitions=P, queries="asked")


def test_a_source_may_be_written_to_after_the_start(tmp_path: Path) -> None:
    """What it is written as is known with its first record, not before."""
    stream = updates(directed=False)
    with SqliteLog(tmp_path / "log") as log:
        create_sharded(log, "updates", 2)
        with one_of(tmp_path, log, directed=False) as task:
            assert not task.step(0.0)
            stream.write(log, 2)
            assert task.run().operations == COUNT
        assert sharded(log.path) == stream.content
    with SqliteLog(tmp_path / "other") as log:
        create_sharded(log, "updates", 2)
        source = SqliteLog(log.path, topics=["updates"])
        with Repartition(
            source, log, "split", tmp_path / "more", partitions=P, queries="asked"
        ) as task:
            assert not task.step(0.0)
            stream.write(log, 2)
            with pytest.raises(SourceError, match="say the same"):
                task.run()
        assert polled_of(log.path, ["split"]) == []


def test_work_that_took_a_source_for_another_does_not_go_on(tmp_path: Path) -> None:
    """So it was before kinds were looked at: each edge was written twice."""
    with SqliteLog(tmp_path / "log") as log:
        updates(directed=False).write(log, 2)
        with one_of(tmp_path, log, directed=False) as task:
            task.run()
        path = tmp_path / "progress" / FILE
        progress = json.loads(path.read_text())
        assert progress.pop("undirected") == ["updates"]
        path.write_text(json.dumps(progress))
        with pytest.raises(ingest.CheckpointError, match="twice: write another topic"):
            one_of(tmp_path, log, directed=False)


def removing(log: SqliteLog) -> None:
    """A vertex goes, and its edges come again in the same record."""
    rows, kinds = [5, 1, 2, 3, 4], [Kind.REMOVE_VERTEX] + [Kind.INSERT] * 4
    with PartitionedSink(log) as sink:
        sink.write(lpma.Batch.from_columns(np.array(kinds, np.uint8), rows, [5] * 5))


def test_a_removal_among_several_partitions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its copies stand at places of their own. Nothing is written, however often it is tried, and
    however far behind it stands."""
    monkeypatch.setattr(module, "CHUNK_BYTES", 100)
    monkeypatch.setattr(source_module, "LOOK_RECORDS", 3)
    with SqliteLog(tmp_path / "log") as log:
        updates().write(log, 2)
        removing(log)
        for _ in range(2):
            with pytest.raises(SourceError) as told, one_of(tmp_path, log) as task:
                task.run()
            for word in ("removals of vertices", "lpma cluster snapshot DIR whole", "--to LOG"):
                assert word in str(told.value)
            assert polled_of(log.path, ["split"]) == []
            assert polled_of(log.path, ["dead-letters"]) == []


def test_a_long_source_is_looked_through_and_then_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be read is no removal: it becomes a dead letter when its turn comes."""
    monkeypatch.setattr(source_module, "LOOK_RECORDS", 3)
    stream = updates()
    with SqliteLog(tmp_path / "log") as log:
        stream.write(log, 2)
        log.produce("updates", b"\xff")
        with one_of(tmp_path, log) as task:
            assert not task.step(0.0), "there is more to look at"
            done = task.run()
        assert (done.operations, done.rejected, done.markers) == (COUNT, 1, 2)
        assert sharded(log.path) == stream.content


def test_a_removal_that_comes_later_stops_it(tmp_path: Path) -> None:
    """Nothing of its piece is written, however often it is tried."""
    stream = updates()
    with SqliteLog(tmp_path / "log") as log:
        stream.write(log, 2)
        with one_of(tmp_path, log) as task:
            task.run()
            removing(log)
            with pytest.raises(SourceError, match="removals of vertices"):
                task.run()
        for _ in range(2):
            with pytest.raises(SourceError, match="removals of vertices"):
                one_of(tmp_path, log)
        assert sharded(log.path) == stream.content


def test_a_sharded_topic_of_kafka(kafka: Any, tmp_path: Path) -> None:
    from ingest.sources.kafka.sink import KafkaSink
    from ingest.sources.kafka.source import KafkaSource

    stream, topic = updates(directed=False), kafka.topic(2)
    path = tmp_path / "log"
    with (
        KafkaSink(kafka.bootstrap) as sink,
        KafkaSource(kafka.bootstrap, [topic]) as source,
        SqliteLog(path) as log,
    ):
        with PartitionedSink(sink, topic, directed=False) as updates_of:
            updates_of.produce_many(topic, stream.records)
        with pytest.raises(SourceError, match="say the same"):
            Repartition(source, log, "split", tmp_path / "no", partitions=P)
        with Repartition(
            source, log, "split", tmp_path / "progress", partitions=P, directed=False
        ) as task:
            assert task.run().operations == COUNT
        assert sharded(path) == stream.content
        with PartitionedSink(sink, topic, directed=False) as updates_of:
            updates_of.write(lpma.Batch.from_columns(Kind.REMOVE_VERTEX, [500], [0]))
    with (
        KafkaSource(kafka.bootstrap, [topic]) as source,
        SqliteLog(path) as log,
        Repartition(
            source, log, "again", tmp_path / "more", partitions=P, directed=False, queries="asked"
        ) as task,
    ):
        with pytest.raises(SourceError, match="removals of vertices"):
            task.run()
        assert polled_of(path, ["again"]) == []
