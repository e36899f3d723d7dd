"""Streams of records in the envelope: outages, resumes, kills, past views, and what has no
registry."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import Fields, Pipeline, PipelineError, SchemaRegistry, SourceError, SqliteLog
from ingest.errors import AllRecordsBad, AwayError, ClusterError
from ingest.registry.schemas import ASK_AGAIN_MS, DIRECTORY
from tests.conftest import soak
from tests.support import killed_registry
from tests.support.kills import drawn
from tests.support.schema_registry import Registry, avro, enveloped, served
from tests.support.topics import dead_letters
from tests.support.waiting import wait_for

pytest.importorskip("fastavro", reason="pip install 'lpma-graph[registry]'")

FIELDS = Fields("user", "item", "stars")
SCHEMA = {"type": "record", "name": "E", "fields": [
    {"name": "user", "type": "string"}, {"name": "item", "type": "string"},
    {"name": "stars", "type": "double"}]}  # fmt: skip


def row(schema: int, user: str, item: str = "i", stars: float = 1.0) -> bytes:
    return enveloped(schema, avro(SCHEMA, {"user": user, "item": item, "stars": stars}))


def edges(graph: Any) -> set[Any]:
    """(source, target, weight) of each."""
    src, dst, weight, _ = (np.asarray(each).tolist() for each in graph.snapshot().edges())
    return set(zip(src, dst, weight, strict=True))


@pytest.fixture
def registry() -> Iterator[Registry]:
    with served() as found:
        yield found


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SqliteLog]:
    with SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
        yield log


def begun(log: SqliteLog, state: Path | None, url: Any, **settings: Any) -> Pipeline:
    given = {"records": FIELDS, "names": True, "schema_registry": url, **settings}
    return Pipeline(log, lpma.Graph(names=True, device="cpu"), state, **given)


def test_an_outage_is_waited_for_and_nothing_is_dropped(log: SqliteLog, tmp_path: Path) -> None:
    with served() as registry:
        id = registry.add(SCHEMA)
        port = int(registry.url.rpartition(":")[2])
    log.produce_many("updates", [row(id, f"u{i}") for i in range(5)])
    with begun(log, tmp_path / "state", registry.url) as pipeline:
        said = str(wait_for(lambda: pipeline.step(drain=True) or pipeline.stats.waits_for()))
        assert not pipeline.intake.at_end()
        assert "schemas are not read" in said
        # Others ask the graph meanwhile.
        asked = pipeline.requests.ask(lambda view: view.version)
        pipeline.step()
        assert asked.result(60) == pipeline.graph.version
        pipeline.checkpoint_now()
        with served(registry, port=port):
            assert pipeline.run("end") == 5
        assert pipeline.stats.waits_for() is None
        assert len(edges(pipeline.graph)) == 5
        assert pipeline.outputs.rejected == 0


def test_a_stream_that_waits_can_be_stopped_and_resumed(log: SqliteLog, tmp_path: Path) -> None:
    with served() as registry:
        id = registry.add(SCHEMA)
    log.produce("updates", row(id, "a"))
    with begun(log, tmp_path / "state", registry.url) as pipeline:
        threading.Timer(0.2, pipeline.stop).start()
        assert pipeline.run("end") == 0
    with served() as other:
        other.add(SCHEMA, id=id)
        with Pipeline.resume(tmp_path / "state", log, schema_registry=other.url) as pipeline:
            assert pipeline.run("end") == 1


def test_patience_ends_the_stream_and_not_the_records(log: SqliteLog, tmp_path: Path) -> None:
    with served() as registry:
        id = registry.add(SCHEMA)
    log.produce("updates", row(id, "a"))
    with pytest.raises(AwayError, match="no schema"):  # noqa: SIM117
        with begun(log, tmp_path / "state", SchemaRegistry(registry.url, patience=0)) as pipeline:
            pipeline.run("end")
    with served() as other:
        other.add(SCHEMA, id=id)
        with Pipeline.resume(tmp_path / "state", log, schema_registry=other.url) as pipeline:
            assert pipeline.run("end") == 1


def test_a_resume_needs_no_registry_for_what_is_known(
    log: SqliteLog, tmp_path: Path, registry: Registry
) -> None:
    id = registry.add(SCHEMA)
    state = tmp_path / "state"
    log.produce_many("updates", [row(id, "a"), row(99, "b")])
    with begun(log, state, registry.url, checkpoint_interval=1e6) as pipeline:
        pipeline.run("end")
        pipeline.close(checkpoint=False)  # so that a resume replays
    asked = len(registry.asked)
    log.produce("updates", row(id, "c"))
    with Pipeline.resume(state, log) as pipeline:
        assert pipeline.stats.replayed == 1
        assert pipeline.run("end") == 1
        assert edges(pipeline.graph) == {("a", "i", 1.0), ("c", "i", 1.0)}
        log.produce("updates", row(id + 50, "d"))
        with pytest.raises(SourceError, match="give schema_registry, or --schema-registry"):
            pipeline.run("end")
    assert len(registry.asked) == asked


def test_a_schema_that_is_registered_later_changes_no_replay(
    log: SqliteLog, tmp_path: Path, registry: Registry
) -> None:
    now = [1_700_000_000_000]
    clock = lambda: now[0]  # noqa: E731
    state = tmp_path / "state"
    with begun(log, state, registry.url, clock=clock, checkpoint_interval=1e6) as pipeline:
        log.produce("updates", row(1, "a"))
        pipeline.run("end")
        registry.add(SCHEMA)
        log.produce("updates", row(1, "b"))
        pipeline.run("end")
        now[0] += ASK_AGAIN_MS
        log.produce("updates", row(1, "c"))
        pipeline.run("end")
        found, version = edges(pipeline.graph), pipeline.graph.version
        pipeline.close(checkpoint=False)
    assert found == {("c", "i", 1.0)}
    assert {letter.reason for letter in dead_letters(log)} == {
        "schema 1: it is not in the registry"
    }
    with Pipeline.resume(state, log, clock=clock, schema_registry=registry.url) as pipeline:
        assert pipeline.stats.replayed == 1
        assert (edges(pipeline.graph), pipeline.graph.version) == (found, version)


def test_a_past_view_needs_no_registry(log: SqliteLog, tmp_path: Path, registry: Registry) -> None:
    id = registry.add(SCHEMA)
    with begun(log, tmp_path / "state", registry.url, checkpoint_interval=1e6) as pipeline:
        for user in "abc":
            log.produce("updates", row(id, user))
            pipeline.run("end")
        pipeline.close(checkpoint=False)
    before = sorted(p.name for p in (tmp_path / "state" / DIRECTORY).iterdir())
    graph = ingest.as_of(tmp_path / "state", log, version=2, device="cpu")
    assert edges(graph) == {("a", "i", 1.0), ("b", "i", 1.0)}
    assert sorted(p.name for p in (tmp_path / "state" / DIRECTORY).iterdir()) == before


def test_whether_there_is_a_registry_is_said_when_a_stream_begins(
    log: SqliteLog, tmp_path: Path, registry: Registry
) -> None:
    log.produce("updates", b'{"user": "a", "item": "b"}')
    with begun(log, tmp_path / "state", None) as pipeline:
        pipeline.run("end")
    with pytest.raises(PipelineError, match="the checkpoint was taken without one"):
        Pipeline.resume(tmp_path / "state", log, schema_registry=registry.url)
    with pytest.raises(PipelineError, match="schema_registry is 7"):
        begun(log, None, 7)
    with pytest.raises(ClusterError, match="give it to `lpma repartition`"):
        ingest.Cluster(log, 1, checkpoint=tmp_path / "c", schema_registry=registry.url)


def test_first_records_of_protobuf_end_the_stream(
    log: SqliteLog, tmp_path: Path, registry: Registry
) -> None:
    id = registry.add('syntax = "proto3";', "PROTOBUF")
    log.produce_many("updates", [enveloped(id, b"\0x")] * 3)
    state = tmp_path / "state"
    with pytest.raises(AllRecordsBad, match="Protobuf, which is not read"):  # noqa: SIM117
        with begun(log, state, registry.url, stop_if_first_bad=3) as pipeline:
            pipeline.run("end")
    assert not state.exists()


def test_what_an_interrupted_start_kept_is_forgotten(
    log: SqliteLog, tmp_path: Path, registry: Registry
) -> None:
    """It may say that there is no schema, until a stamp of the next start."""
    folder = tmp_path / "state" / DIRECTORY
    folder.mkdir(parents=True)
    (folder / "1.none-until-99999999999999.json").write_bytes(b"")
    id = registry.add(SCHEMA)
    log.produce("updates", row(id, "a"))
    with begun(log, tmp_path / "state", registry.url) as pipeline:
        assert pipeline.run("end") == 1


def test_a_repartitioning_reads_them_too(tmp_path: Path, registry: Registry) -> None:
    id = registry.add(SCHEMA)
    with SqliteLog(tmp_path / "from") as source, SqliteLog(tmp_path / "to") as sink:
        source.produce_many("updates", [row(id, f"u{i}") for i in range(9)] + [row(99, "x")])
        given: dict[str, Any] = {"names": True, "records": FIELDS, "partitions": 3}
        url = registry.url
        with ingest.Repartition(
            source, sink, "updates", tmp_path / "p", schema_registry=url, **given
        ) as work:
            done = work.run()
        assert (done.operations, done.rejected) == (9, 1)
        registry.fault = lambda path: (503, b"")
        source.produce("updates", row(id, "later"))
        with ingest.Repartition(source, sink, "updates", tmp_path / "p", **given) as work:
            assert work.run().operations == 10
        with Pipeline(sink, lpma.Graph(names=True, device="cpu"), names=True) as pipeline:
            pipeline.run("end")
            assert len(edges(pipeline.graph)) == 10


@pytest.mark.system
def test_kills(tmp_path: Path, registry: Registry) -> None:
    """Killed anywhere, the graph is at the end what it would have been, and each bad record is a
    dead letter."""
    rng = np.random.default_rng(3)
    first = registry.add(SCHEMA)
    second = registry.add({**SCHEMA, "name": "F"})
    third = registry.add({"type": "object"}, "JSON")
    origin = tmp_path / "origin"
    values, good, bad = [], set[tuple[str, str, float]](), set[int]()
    for i in range(120):
        data = json.dumps({"user": f"u{i}", "item": "i", "stars": i + 1.0}).encode()
        kinds = [row(first, f"u{i}", stars=i + 1.0), row(second, f"u{i}", stars=i + 1.0),
                 data, enveloped(third, data), enveloped(900 + i % 3, b"x")]  # fmt: skip
        kind = int(rng.integers(0, len(kinds)))
        values.append(kinds[kind])
        if kind < 4:
            good.add((f"u{i}", "i", i + 1.0))
        else:
            bad.add(i)
    with SqliteLog(origin) as log:
        log.produce_many("updates", values)

    def run(name: str, place: Any = None) -> Any:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        if not (folder / "log").exists():
            shutil.copy(origin, folder / "log")
        return killed_registry.in_a_process(folder / "log", folder / "state", registry.url, place)

    whole = run("whole")
    for number, place in enumerate(drawn(rng, whole.calls, soak(5, 200))):
        name = f"run{number}"
        run(name, place)
        run(name)
        with SqliteLog(tmp_path / name / "log") as log:
            graph = ingest.Pipeline.resume(tmp_path / name / "state", log, device="cpu")
            with graph as pipeline:
                found = edges(pipeline.graph)
            letters = {letter.offset for letter in dead_letters(log)}
        assert found == good, place
        assert letters == bad, place
        shutil.rmtree(tmp_path / name)
