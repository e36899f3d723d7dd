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
from ingest import PartitionedSink, Repartition, SourceError, SqliteLog, create_sharded
from ingest.cluster import repartition as module
from ingest.cluster.repartition_state import FILE
from lpma import Kind
from tests.ingest.cluster.repartitioning import P, fresh, one_of, polled_of, sharded
from tests.support.shards import Content, applied, content

NAMES: list[Any] = [0, 7, -3, 2**64 - 1, "7", "-3", "ann", "bob", "żółć"]
IDS: list[Any] = [0, 1, 2, 3, 7, 500]


def records_of(seed: int, vertices: list[Any], names: bool, removals: bool) -> list[bytes]:
    """Updates of every kind, with times, so that what they make can be compared whole."""
    rng, records = random.Random(seed), []
    for time in range(1, 120):
        kind = rng.choice([0, 0, 0, 1, 2, 3] if removals else [0, 0, 0, 1, 2])
        u, v = rng.choice(vertices), rng.choice(vertices)
        if kind >= Kind.ADD_VERTEX:
            record = ingest.encode_row(u, kind=Kind(kind), time=time, names=names)
        else:
            weight = rng.randint(1, 8) / 2
            record = ingest.encode_row(u, v, weight, kind=Kind(kind), time=time, names=names)
        records.append(record)
    return records


def made(log: SqliteLog, records: list[bytes], partitions: int, **kind: Any) -> None:
    create_sharded(log, "updates", partitions, kind.get("predecessors", False))
    with PartitionedSink(log, **kind) as sink:
        for start in range(0, len(records), 11):
            sink.produce_many("updates", records[start : start + 11])


def expected(records: list[bytes], directed: bool, names: bool) -> Content:
    return content(applied(fresh(names=names, directed=directed), records))


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.booleans(), st.integers(1, 4))
def test_each_update_is_written_once(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    directed: bool,
    names: bool,
    partitions: int,
) -> None:
    """In steps, each by a process of its own, it writes what the stream said."""
    tmp_path = tmp_path_factory.mktemp("sharded")
    vertices = NAMES if names else IDS
    records = records_of(seed, vertices, names, removals=partitions == 1)
    kind: dict[str, Any] = {"directed": directed, "names": names}
    with pytest.MonkeyPatch.context() as patch, SqliteLog(tmp_path / "log") as log:
        patch.setattr(module, "CHUNK_BYTES", 600)
        patch.setattr(module, "POLL_RECORDS", 3)
        made(log, records, partitions, **kind)
        more = True
        while more:
            with one_of(tmp_path, log, **kind) as task:
                more = task.step(0.0)
                operations = task.done.operations
        assert operations == len(records)
        assert sharded(log.path, names=names) == expected(records, directed, names)


@pytest.mark.parametrize("written", [{}, {"predecessors": True}, {"directed": False}])
@pytest.mark.parametrize("names", [True, False])
def test_it_is_to_be_read_as_it_was_written(
    tmp_path: Path, written: dict[str, Any], names: bool
) -> None:
    with SqliteLog(tmp_path / "log") as log:
        made(log, records_of(1, IDS, names, False), 2, names=names, **written)
        before = log.topic_names()
        right = written.get("directed", True), names
        for said in ((True, True), (True, False), (False, True), (False, False)):
            if said == right:
                continue
            with pytest.raises(SourceError, match=r"is written as .*: say the same") as told:
                one_of(tmp_path, log, directed=said[0], names=said[1])
            assert f"directed={right[0]} and names={right[1]}" in str(told.value)
        assert log.topic_names() == before
        assert not (tmp_path / "progress").exists()
        with one_of(tmp_path, log, directed=right[0], names=names) as task:
            assert task.run().operations == 119


def test_edges_that_are_turned_round_are_not_read(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log:
        made(log, records_of(1, IDS, False, False), 2, predecessors=True)
        source = SqliteLog(log.path, topics=["updates.in"])
        with pytest.raises(SourceError, match=r"'updates\.in' has the edges turned .*'updates'"):
            Repartition(source, log, "split", tmp_path / "progress", partitions=P, queries="asked")


def test_a_source_may_be_written_to_after_the_start(tmp_path: Path) -> None:
    """What it is written as is known with its first record, not before."""
    records = records_of(3, IDS, False, False)
    with SqliteLog(tmp_path / "log") as log:
        create_sharded(log, "updates", 2)
        with one_of(tmp_path, log, directed=False) as task:
            assert not task.step(0.0)
            made(log, records, 2, directed=False)
            assert task.run().operations == len(records)
        assert sharded(log.path) == expected(records, False, False)
    with SqliteLog(tmp_path / "other") as log:
        create_sharded(log, "updates", 2)
        source = SqliteLog(log.path, topics=["updates"])
        with Repartition(
            source, log, "split", tmp_path / "more", partitions=P, queries="asked"
        ) as task:
            assert not task.step(0.0)
            made(log, records, 2, directed=False)
            with pytest.raises(SourceError, match="say the same"):
                task.run()
        assert polled_of(log.path, ["split"]) == []


def test_work_that_took_a_source_for_another_does_not_go_on(tmp_path: Path) -> None:
    """So it was before kinds were looked at: each edge was written twice."""
    with SqliteLog(tmp_path / "log") as log:
        made(log, records_of(3, IDS, False, False), 2, directed=False)
        with one_of(tmp_path, log, directed=False) as task:
            task.run()
        path = tmp_path / "progress" / FILE
        progress = json.loads(path.read_text())
        assert progress.pop("undirected") == ["updates"]
        path.write_text(json.dumps(progress))
        with pytest.raises(ingest.CheckpointError, match="twice: write another topic"):
            one_of(tmp_path, log, directed=False)


def test_a_removal_among_several_partitions_is_refused(tmp_path: Path) -> None:
    """Its copies stand at places of their own. Nothing of its piece is written, however often it is
    tried."""
    rows = [5, 1, 2, 3, 4]
    kinds = np.array([Kind.REMOVE_VERTEX] + [Kind.APPEND] * 4, np.uint8)
    records = [
        ingest.encode_updates([1, 2, 3, 4], [5] * 4),
        ingest.encode_updates(rows, [5] * 5, kind=kinds),
    ]
    with SqliteLog(tmp_path / "log") as log:
        made(log, records, 2)
        for _ in range(2):
            with pytest.raises(SourceError) as told, one_of(tmp_path, log) as task:
                task.run()
            for word in ("removals of vertices", "lpma cluster snapshot DIR whole.csv", "--to LOG"):
                assert word in str(told.value)
            assert polled_of(log.path, ["split"]) == []
            assert polled_of(log.path, ["dead-letters"]) == []
