"""Past views beside a pipeline that flows, after kills, and of a real Kafka."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import PastError, Pipeline, SqliteLog, past
from tests.conftest import soak
from tests.ingest import test_kill as kills
from tests.ingest.past.test_as_of import content
from tests.support.broker import Cluster
from tests.support.stream_model import SavedModel, random_records


@pytest.mark.parametrize("keep", ["", "1s=100"])
def test_beside_a_pipeline_that_prunes(device: str, tmp_path: Path, keep: str) -> None:
    """Whatever is asked for is what was, or is refused: nothing breaks when a checkpoint and its
    journal vanish."""
    log, state = tmp_path / "log", tmp_path / "state"
    rng = np.random.default_rng(3)
    with SqliteLog(log) as writer:
        writer.produce_many("updates", random_records(rng, 3000))
    after: dict[int, Any] = {}

    def flow() -> None:
        with SqliteLog(log) as source, Pipeline(
            source, lpma.Graph(device=device), state, batch_size=40, poll_records=20,
            checkpoint_operations=200, keep_checkpoints=keep,
        ) as pipeline:  # fmt: skip
            while pipeline.step(drain=True):
                graph: Any = pipeline.graph
                after[graph.version] = content(graph)

    found, refused = 0, []
    with ThreadPoolExecutor(1) as threads, SqliteLog(log) as source:
        running = threads.submit(flow)
        while not running.done() or not found:
            if len(after) < 2:
                continue
            version = int(rng.choice(list(after)[-12:]))
            try:
                graph = ingest.as_of(state, source, version=version, device=device)
            except PastError as error:
                refused.append(str(error))
            else:
                found += 1
                assert content(graph) == after[version]
        running.result()
    assert found > 3
    assert all("before the oldest" in said for said in refused)
    assert not (keep and refused)


class NotedModel(SavedModel):
    """A model that notes what it was after every version, in a file."""

    notes: Path
    names = None

    def apply(self, batch: Any, opera: bool = True) -> list[Any]:
        answers = super().apply(batch, opera)
        with open(self.notes, "a") as file:
            file.write(json.dumps([self.version, noted(self)]) + "\n")
        return answers


def noted(model: SavedModel) -> Any:
    return json.loads(model.image().content)


POINTS = ["journal append", "image", "next segment", "commit", "part", "fence", "rename", "unlink",
          "rmtree", "fsync", "mkdir"]  # fmt: skip


@pytest.mark.soak
def test_after_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at any point of a commit, and of what it removes: every version that ever was comes
    back, before the next resume and after it."""
    monkeypatch.setattr(kills, "SavedModel", NotedModel)
    monkeypatch.setitem(kills.OPTIONS, "keep_checkpoints", "1s=2,1w=1")
    rng = np.random.default_rng(8)
    dead = 0
    for kill in range(soak(2, 20) * len(POINTS)):
        directory = tmp_path / str(kill)
        directory.mkdir()
        NotedModel.notes = directory / "notes"
        log, state = directory / "log", directory / "state"
        with SqliteLog(log) as source:
            source.produce_many("updates", random_records(rng, 60))
        at = POINTS[kill % len(POINTS)], int(rng.integers(0, 8))
        dead += kills.in_a_child(log, state, at)[0]
        check(directory, monkeypatch)
        kills.in_a_child(log, state, (str(rng.choice(POINTS)), int(rng.integers(0, 8))))
        kills.ingest_all(log, state, int(rng.integers(1, 20)))
        check(directory, monkeypatch)
    assert dead > len(POINTS)


def check(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every version that was noted, always in the same words, is what comes back."""
    if not NotedModel.notes.exists() or not ingest.has_checkpoint(directory / "state"):
        return
    expected: dict[int, Any] = {}
    for line in NotedModel.notes.read_text().splitlines():
        version, was = json.loads(line)
        assert expected.setdefault(version, was) == was
    with monkeypatch.context() as patch, SqliteLog(directory / "log") as source:
        patch.setattr(NotedModel, "notes", directory / "elsewhere")
        patch.setattr(past, "_loaded", lambda kept, _: NotedModel.load(kept.path / "graph.lpma"))
        for version, was in expected.items():
            found: Any = ingest.as_of(directory / "state", source, version=version, device="cpu")
            assert noted(found) == was


def test_of_kafka(device: str, kafka: Cluster, tmp_path: Path) -> None:
    """Three partitions, whose order only the journal knows."""
    from ingest import KafkaSink, KafkaSource

    topic = kafka.topic(3)
    records = random_records(np.random.default_rng(1), 90)
    with KafkaSink(kafka.bootstrap) as sink:
        for number in range(3):
            sink.produce_many(topic, records[number::3], number)
    after: dict[int, Any] = {}
    with KafkaSource(kafka.bootstrap, [topic]) as source, Pipeline(
        source, lpma.Graph(device=device), tmp_path / "state", batch_size=20, poll_records=7,
        replies=lambda reply: None, dead_letters=lambda letter: None, keep_checkpoints="1w=2",
    ) as pipeline:  # fmt: skip
        while pipeline.step(drain=True) or not source.at_end():
            graph: Any = pipeline.graph
            after[graph.version] = content(graph)
            if graph.version == 4:
                pipeline.checkpoint_now()
    assert len(after) > 5
    with KafkaSource(kafka.bootstrap, [topic]) as source:
        for version in sorted(after, reverse=True):
            graph = ingest.as_of(tmp_path / "state", source, version=version, device=device)
            assert content(graph) == after[version]
