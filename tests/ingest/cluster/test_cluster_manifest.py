"""What cannot be right is said before anything starts: another kind of cluster than a checkpoint's,
and places that can hold none."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import ingest
from ingest import Cluster, PartitionedSink, SqliteLog
from ingest.cluster.cluster_manifest import FILE, ClusterManifest, check_directory, settle
from ingest.cluster.partitioned import create_sharded
from ingest.cluster.spec import ShardSpec
from ingest.errors import CheckpointError, ClusterError, IngestError, SourceError

OTHERS: list[tuple[dict[str, Any], str]] = [
    ({"shards": 1}, "1 shard of 'updates'"),
    ({"directed": False}, "undirected"),
    ({"names": True}, "with names"),
    ({"predecessors": True}, "with predecessors"),
    ({"topic": "others", "queries": "asked"}, "'others'"),
]


@pytest.fixture
def log(tmp_path: Path) -> Any:
    with SqliteLog(tmp_path / "log") as log:
        for topic, queries in (("updates", "queries"), ("others", "asked")):
            create_sharded(log, topic, 2, predecessors=True, queries=queries)
        with PartitionedSink(log, predecessors=True) as sink:
            sink.produce_many("updates", [ingest.encode_updates([1, 2, 3], [2, 3, 1])])
        log.delete_topic("updates.in-and-out.ids")  # here the checkpoint alone is to tell
        yield log


def spec_of(log: SqliteLog, state: Path, **options: Any) -> ShardSpec:
    values: dict[str, Any] = {"number": 0, "shards": 2, "checkpoint": str(state), **options}
    return ShardSpec(log.path, None, **values)


@pytest.mark.parametrize("begun", [{}, {"predecessors": True}])
@pytest.mark.parametrize(("options", "said"), OTHERS)
def test_another_kind_is_refused_before_anything_starts(
    log: SqliteLog, tmp_path: Path, options: dict[str, Any], said: str, begun: dict[str, Any]
) -> None:
    options = {"shards": 2, **options} if options != begun else {"shards": 2}
    with Cluster(log, checkpoint=tmp_path / "state", shards=2, **begun) as cluster:
        assert cluster.snapshot().num_edges == 3
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CheckpointError) as told:
        Cluster(log, checkpoint=tmp_path / "state", **options)
    message = str(told.value)
    assert str(ClusterManifest(2, "updates", **begun)) in message, "what is there"
    assert said in message or "directed" in message, "and what was said"
    assert "another checkpoint directory" in message
    assert sorted(tmp_path.rglob("*")) == before
    with Cluster(log, checkpoint=tmp_path / "state", shards=2, **begun) as cluster:
        assert cluster.snapshot().num_edges == 3


def test_a_shard_looks_itself(log: SqliteLog, tmp_path: Path) -> None:
    """On another machine than the cluster's, nobody else can see its directory."""
    settle(spec_of(log, tmp_path), "out")
    settle(spec_of(log, tmp_path), "out")
    for options, said in OTHERS:
        with pytest.raises(CheckpointError, match=said):
            settle(spec_of(log, tmp_path, **options), "out")
    settle(spec_of(log, tmp_path, number=1, predecessors=True), "in")
    settle(spec_of(log, tmp_path, number=1, predecessors=True), "out")
    with pytest.raises(CheckpointError, match="with predecessors"):
        settle(spec_of(log, tmp_path, number=1), "out")


@pytest.mark.parametrize("begun", [{}, {"predecessors": True}])
def test_a_kept_checkpoint_keeps_its_kind(
    log: SqliteLog, tmp_path: Path, begun: dict[str, Any]
) -> None:
    """Whoever begins with it is compared as whoever goes on."""
    state, keep = tmp_path / "state", str(tmp_path / "kept")
    with Cluster(log, 2, checkpoint=state, keep=keep, **begun) as cluster:
        cluster.wait_until_read()
    shutil.rmtree(state)
    with pytest.raises(CheckpointError, match="with names"):
        settle(spec_of(log, state, keep=keep, names=True), "out")
    assert not state.exists()
    with Cluster(log, 2, checkpoint=state, keep=keep, **begun) as cluster:
        assert cluster.snapshot().num_edges == 3
    assert sorted(path.name for path in state.rglob(FILE)) == [FILE] * (4 if begun else 2)


def test_a_damaged_file_is_told(log: SqliteLog, tmp_path: Path) -> None:
    settle(spec_of(log, tmp_path), "out")
    for content in (b"{", b"{}", b'{"color": 3}'):
        (tmp_path / "shard-0000" / FILE).write_bytes(content)
        with pytest.raises(CheckpointError, match="damaged"):
            check_directory(str(tmp_path), ClusterManifest(2, "updates"))


def test_places_that_hold_no_checkpoints(
    log: SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    before = sorted(tmp_path.iterdir())
    for options, said in (
        ({"checkpoint": ""}, "checkpoint is empty: name a directory"),
        ({"checkpoint": "file"}, "is a file: name a directory"),
        ({"checkpoint": "state", "keep": "file"}, "is a file: checkpoints are kept in a directory"),
        ({"checkpoint": "state", "keep": ""}, "keep is empty"),
        ({"checkpoint": "state", "keep": "nowhere://x"}, "no place to keep checkpoints"),
    ):
        with pytest.raises((ClusterError, CheckpointError), match=said):
            Cluster(log, 2, **options)  # type: ignore[arg-type]
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("missing", ["updates.in", "queries.in"])
def test_missing_topics_of_predecessors(tmp_path: Path, missing: str) -> None:
    with SqliteLog(tmp_path / "bare") as log:
        create_sharded(log, "updates", 2)
        for topic in {"updates.in", "queries.in"} - {missing}:
            log.create_topic(topic, 2)
        with pytest.raises(IngestError, match=rf"no topic '{missing}'.*create_sharded\(…, pred"):
            Cluster(log, 2, checkpoint=tmp_path / "state", predecessors=True)
        if missing == "updates.in":
            with pytest.raises(SourceError, match=r"create_sharded\(…, predecessors=True"):
                PartitionedSink(log, predecessors=True)
    assert not (tmp_path / "state").exists()


# The topic itself ----------------------------------------------------------------------------

KINDS: list[dict[str, Any]] = [
    {"directed": directed, "predecessors": predecessors, "names": names}
    for directed, predecessors in ((True, False), (True, True), (False, False))
    for names in (False, True)
]


@pytest.mark.parametrize("written", KINDS)
def test_a_topic_has_one_kind(tmp_path: Path, written: dict[str, Any]) -> None:
    """Who disagrees with its first writer is told before anything is written or read."""
    row = [ingest.encode_row(1, 2, names=written["names"])]
    with SqliteLog(tmp_path / "one-kind") as log:
        create_sharded(log, "updates", 2, predecessors=True)
        early = [PartitionedSink(log, **kind) for kind in KINDS]
        early[KINDS.index(written)].produce_many("updates", row)
        ends = ends_of(log.path)
        for kind, sink in zip(KINDS, early, strict=True):
            if kind == written:
                sink.produce_many("updates", row)
                ends = ends_of(log.path)
                PartitionedSink(log, **kind).produce_many("updates", row)
                ends = ends_of(log.path)
                continue
            with pytest.raises(SourceError, match=r"topic 'updates' is written as .*, not as"):
                sink.produce_many("updates", row)
            reads_out = {**written, "predecessors": False}
            if kind == reads_out:
                Cluster(log, 1, checkpoint=tmp_path / "state", **kind).close()
                continue
            with pytest.raises(SourceError, match="is written as"):
                PartitionedSink(log, **kind)
            with pytest.raises(SourceError, match="the same directed, predecessors and names"):
                Cluster(log, 1, checkpoint=tmp_path / "another", **kind)
        assert ends_of(log.path) == ends
        assert not (tmp_path / "another").exists()


def ends_of(path: str) -> dict[Any, int]:
    with SqliteLog(path, ["updates", "updates.in"]) as log:
        return log.end_offsets()


def test_a_log_that_refuses_the_note_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise SourceError("not allowed")

    with SqliteLog(tmp_path / "log") as log, PartitionedSink(bare_of(log)) as sink:
        monkeypatch.setattr(log, "create_topic", refuse)
        for _ in range(2):
            sink.produce_many("updates", [ingest.encode_row(1, 2)])
        assert log.topic_names() >= {"updates"}
        assert not [name for name in log.topic_names() if "directed" in name]


def bare_of(log: SqliteLog) -> SqliteLog:
    create_sharded(log, "updates", 2)
    return log


def test_a_topic_of_kafka_has_one_kind(kafka: Any) -> None:
    from ingest.sources.kafka.sink import KafkaSink

    topic = kafka.topic(2)
    with KafkaSink(kafka.bootstrap) as sink:
        with PartitionedSink(sink, topic, directed=False) as updates:
            updates.produce_many(topic, [ingest.encode_row(1, 2)])
            updates.produce_many(topic, [ingest.encode_row(2, 3)])
        assert f"{topic}.undirected.ids" in sink.topic_names()
        others: list[dict[str, Any]] = [{}, {"directed": False, "names": True}]
        for options in others:
            with pytest.raises(SourceError, match=r"written as undirected\.ids, not as"):
                PartitionedSink(sink, topic, **options)
        assert sink.partitions_of(topic) == 2
