"""Past views beside a pipeline that flows, after kills, and of a real Kafka."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import PastError, Pipeline, SqliteLog, past
from tests.conftest import soak
from tests.ingest.past.test_as_of import content
from tests.support.broker import Cluster
from tests.support.killed_stream import ingest_all, make_checkpoints_steady
from tests.support.kills import drawn, run
from tests.support.stream_model import SavedModel, random_records


@pytest.mark.parametrize("keep", ["", "1s=100"])
def test_a_view_beside_a_pipeline_that_prunes_is_what_was_or_is_refused(
    device: str, tmp_path: Path, keep: str
) -> None:
    """Whatever is asked for is what was, or is refused: nothing breaks when a checkpoint and its
    journal vanish. Ten batches flow beside each view, at the most."""
    log, state = tmp_path / "log", tmp_path / "state"
    rng = np.random.default_rng(3)
    with SqliteLog(log) as writer:
        writer.produce_many("updates", random_records(rng, 3000))
    after: dict[int, Any] = {}
    turns = threading.Semaphore(0)

    def flow() -> None:
        with SqliteLog(log) as source, Pipeline(
            source, lpma.Graph(device=device), state, batch_size=40, poll_records=20,
            checkpoint_operations=200, keep_checkpoints=keep,
        ) as pipeline:  # fmt: skip
            while pipeline.step(drain=True):
                graph: Any = pipeline.graph
                after[graph.version] = content(graph)
                if len(after) % 10 == 0:
                    turns.acquire()

    found, refused = 0, []
    with ThreadPoolExecutor(1) as threads, SqliteLog(log) as source:
        running = threads.submit(flow)
        try:
            while not running.done() or found <= 3:
                if len(after) < 2:
                    assert not running.done() or running.result()
                    continue
                version = int(rng.choice(list(after)[-12:]))
                turns.release()
                try:
                    graph = ingest.as_of(state, source, version=version, device=device)
                except PastError as error:
                    refused.append(str(error))
                else:
                    found += 1
                    assert content(graph) == after[version]
        finally:
            turns.release(1000)
        running.result()
    assert len(after) > 100
    assert all("before the oldest" in said for said in refused)
    assert not (keep and refused)


class NotedModel(SavedModel):
    """A model that notes what it was after every version, in a file."""

    notes: Path
    names = None

    def apply(self, batch: Any) -> list[Any]:
        answers = super().apply(batch)
        with open(self.notes, "a") as file:
            file.write(json.dumps([self.version, noted(self)]) + "\n")
        return answers


def noted(model: SavedModel) -> Any:
    return json.loads(model.image().content)


# Those of a commit, and of what it removes.
POINTS = (
    "ingest.state.journal:Journal.append",
    "ingest.state.journal:Journal.rotate",
    "ingest.state.journal:Fence.check",
    "ingest.state.directory:CheckpointDirectory.commit",
    "tests.support.stream_model:SavedModel.image",
    "tests.support.stream_model:SavedImage.write",
    "os:fsync",
    "os:mkdir",
    "os:rename",
    "os:unlink",
    "shutil:rmtree",
)
KEEP = "1s=2,1w=1"


def flow_noted(directory: Path, batch_size: int = 6) -> None:
    NotedModel.notes = directory / "notes"
    make_checkpoints_steady(directory / "state")  # the ladder goes by their times
    ingest_all(directory / "log", directory / "state", batch_size, NotedModel, KEEP)


@pytest.mark.soak
@pytest.mark.parametrize("kills", [
    pytest.param(4, marks=pytest.mark.system),
    pytest.param(2 * len(POINTS), marks=pytest.mark.integration),
])  # fmt: skip
def test_every_version_comes_back_after_kills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: int
) -> None:
    """Every version that ever was, before the next resume and after it."""
    rng = np.random.default_rng(kills)
    records = random_records(rng, 60)

    def with_log(name: str) -> Path:
        directory = tmp_path / name
        directory.mkdir()
        with SqliteLog(directory / "log") as source:
            source.produce_many("updates", records)
        return directory

    calls = run(flow_noted, with_log("unbroken"), points=POINTS).calls
    assert calls.keys() == {*POINTS}
    for number, place in enumerate(drawn(rng, calls, soak(kills, 10 * kills))):
        directory = with_log(str(number))
        assert run(flow_noted, directory, points=POINTS, place=place).killed, place
        check(directory, monkeypatch)
        again = drawn(rng, calls, 1)[0]  # the resumed one may die, too
        run(flow_noted, directory, points=POINTS, place=again._replace(call=again.call // 4))
        run(flow_noted, directory, int(rng.integers(1, 20)))
        check(directory, monkeypatch)


def check(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every version that was noted, always in the same words, is what comes back."""
    notes = directory / "notes"
    if not notes.exists() or not ingest.has_checkpoint(directory / "state"):
        return
    expected: dict[int, Any] = {}
    for line in notes.read_text().splitlines():
        version, was = json.loads(line)
        assert expected.setdefault(version, was) == was
    with monkeypatch.context() as patch, SqliteLog(directory / "log") as source:
        patch.setattr(NotedModel, "notes", directory / "elsewhere", raising=False)
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
