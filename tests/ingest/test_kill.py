"""Killed at any point, a pipeline resumes to the state, and to the replies, of an unbroken run.

At least 50 kills at named points, before and after each; under `make soak` at least 500."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import Pipeline, SqliteLog
from ingest.queries.sinks import Outputs
from ingest.state.checkpointer import Checkpointer
from ingest.state.directory import CheckpointDirectory
from ingest.state.journal import Fence, Journal
from lpma import Kind
from tests.conftest import soak
from tests.support import named_stream
from tests.support.stream_model import (
    SavedImage,
    SavedModel,
    check_outputs,
    random_records,
    serial,
    weighted,
)
from tests.support.window_model import Op, WindowModel, record_of

KILLS = soak(2, 15)  # at each point, before it and after it
ROOT = Path(__file__).parents[2]

OPTIONS: dict[str, Any] = {
    "poll_records": 9,
    "batch_interval": 10.0,
    "query_interval": 10.0,  # batches close by size, in every run alike
    "checkpoint_operations": 40,
}
POINTS: dict[str, tuple[Any, str]] = {
    "poll": (SqliteLog, "poll"),
    "journal append": (Journal, "append"),
    "journal sync": (Journal, "sync"),
    "dead letters": (Outputs, "flush"),
    "apply": (SavedModel, "apply"),
    "replies": (Outputs, "send"),
    "to a topic": (SqliteLog, "produce_many"),
    "checkpoint": (Checkpointer, "begin"),
    "image": (SavedModel, "image"),
    "next segment": (Journal, "rotate"),
    "commit": (CheckpointDirectory, "commit"),
    "part": (SavedImage, "write"),
    "fence": (Fence, "check"),
    "write": (os, "write"),
    "fsync": (os, "fsync"),
    "mkdir": (os, "mkdir"),
    "rename": (os, "rename"),
    "replace": (os, "replace"),
    "unlink": (os, "unlink"),
    "rmtree": (shutil, "rmtree"),
    "close": (Checkpointer, "close"),
}
Place = tuple[str, int]  # a point, and which passing of it: 2 i before the i-th call, 2 i + 1 after


class Killer:
    """Counts how often each point is passed, and at the place chosen kills this process."""

    def __init__(self, at: Place | None) -> None:
        self.at = at
        self.passed: Counter[str] = Counter()
        for name, (owner, attribute) in POINTS.items():
            setattr(owner, attribute, self.wrapped(name, getattr(owner, attribute)))

    def wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            number = self.passed[name]
            self.passed[name] = number + 1
            self.kill_at((name, 2 * number))
            result = function(*args, **options)
            self.kill_at((name, 2 * number + 1))
            return result

        return call

    def kill_at(self, place: Place) -> None:
        if place == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def ingest_all(log: Path, checkpoint: Path, batch_size: int, **reading: Any) -> Pipeline:
    """Start, or go on, and end with a checkpoint. Batches of another size each time: those that
    were cut before the crash must not change."""
    source = SqliteLog(log)
    options = {**OPTIONS, "batch_size": batch_size}
    if ingest.has_checkpoint(checkpoint):
        pipeline = Pipeline.resume(checkpoint, source, load=SavedModel.load, **options)
    else:
        graph = SavedModel(predecessors=True)
        pipeline = Pipeline(source, graph, checkpoint, **reading, **options)
    pipeline.run(until="end")
    pipeline.close()
    source.close()
    return pipeline


def in_a_child(
    log: Path, checkpoint: Path, at: Place | None, **reading: Any
) -> tuple[bool, Counter[str]]:
    """Run in a process of its own; whether it was killed, and how often it passed each point."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            killer = Killer(at)
            ingest_all(log, checkpoint, batch_size=6, **reading)
            killer.at = None
            os.write(writer, json.dumps(killer.passed).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        passed = json.loads(file.read() or b"{}")
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status)
    assert killed or os.WEXITSTATUS(status) == 0, "the child failed by itself"
    return killed, Counter(passed)


def check(log: Path, graph: SavedModel, records: list[bytes]) -> None:
    expected, answers, bad = serial(records)
    assert weighted(graph) == weighted(expected)
    assert graph.markers == expected.markers
    check_outputs(log, answers, bad)


@pytest.fixture(scope="module")
def stream(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, list[bytes], Counter[str]]:
    """A log, its records, and how often a run over it passes each point."""
    directory = tmp_path_factory.mktemp("stream")
    records = random_records(np.random.default_rng(5), 60)
    with SqliteLog(directory / "log") as log:
        log.produce_many("updates", records)
    shutil.copy(directory / "log", directory / "unbroken")
    killed, passed = in_a_child(directory / "unbroken", directory / "checkpoint", None)
    assert not killed
    assert passed.keys() == POINTS.keys()
    return directory / "log", records, passed


@pytest.mark.soak
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_point_loses_and_repeats_nothing(
    stream: tuple[Path, list[bytes], Counter[str]], tmp_path: Path, point: str
) -> None:
    original, records, passed = stream
    rng = np.random.default_rng(sum(point.encode()))
    # How many checkpoints are taken depends on how long each takes to write: now and then a run
    # has fewer calls than the one that was counted.
    calls = (passed[point] + 1) // 2
    kills = 0
    for number in range(2 * KILLS):
        call = int(rng.integers(0, calls))
        directory = tmp_path / str(number)
        directory.mkdir()
        log, checkpoint = directory / "log", directory / "checkpoint"
        shutil.copy(original, log)
        killed, _ = in_a_child(log, checkpoint, (point, 2 * call + number % 2))
        kills += killed
        if number % 2:  # often the resumed one dies too
            again = str(rng.choice(list(POINTS)))
            kills += in_a_child(log, checkpoint, (again, int(rng.integers(0, 6))))[0]
        graph = ingest_all(log, checkpoint, batch_size=int(rng.integers(1, 20))).graph
        assert isinstance(graph, SavedModel)
        check(log, graph, records)
        shutil.rmtree(directory)
    assert kills >= 2 * KILLS - 1


@pytest.mark.soak
def test_a_kill_changes_no_name_and_makes_nothing_late(tmp_path: Path) -> None:
    """As above, with a vertex dictionary, JSON among the records and a late policy."""
    records = named_stream.random_records(np.random.default_rng(6), 60)
    reading: dict[str, Any] = {
        "records": named_stream.JSON,
        "names": True,
        "late": "dead-letter",
        "max_lateness": 30,
    }
    expected = named_stream.serial(records, "dead-letter", 30)
    rng = np.random.default_rng(3)
    for kill in range(soak(10, 300)):
        log, checkpoint = tmp_path / f"log{kill}", tmp_path / f"checkpoint{kill}"
        with SqliteLog(log) as source:
            source.produce_many("updates", records)
        for _ in range(3):
            place = str(rng.choice(list(POINTS))), int(rng.integers(0, 60))
            in_a_child(log, checkpoint, place, **reading)
        pipeline = ingest_all(log, checkpoint, int(rng.integers(1, 20)), **reading)
        assert pipeline.vertices is not None
        names = pipeline.vertices.of(np.arange(len(pipeline.vertices)))
        assert names.tolist() == expected.names
        assert named_stream.named_edges(pipeline) == expected.edges
        with SqliteLog(log, topics=("replies", "dead-letters")) as reader:
            sent = [(r.partition.topic, bytes(r.value)) for r in reader.poll(10**6)]  # type: ignore[arg-type]
        replies = [ingest.decode_reply(data) for topic, data in sent if topic == "replies"]
        letters = [ingest.decode_dead_letter(data) for topic, data in sent if topic != "replies"]
        assert {r.id for r in replies} == set(expected.answers)
        assert all(named_stream.said(r) == expected.answers[r.id] for r in replies)
        assert {letter.offset for letter in letters} == set(expected.letters)


@pytest.mark.soak
@pytest.mark.parametrize("late", ["apply", "dead-letter"])
def test_a_kill_changes_no_window(tmp_path: Path, late: str) -> None:
    """The edges, their times and the bound of an unbroken run; a repeated reply is the same,
    though it says what a batch's expiry has left. Weights only grow, so no cut shows at the end."""
    rng = np.random.default_rng(8)
    stream = timed_stream(rng, 60)
    most = 0 if late == "apply" else 10**6
    reading: dict[str, Any] = {"window": 40, "late": late, "max_lateness": most}
    model = WindowModel(40)
    for ops in stream:
        bound = model.bound
        kept = [op for op in ops if late == "apply" or op.kind in (Kind.EDGE, Kind.EXPIRE)
                or bound is None or op.time is None or op.time >= bound]  # fmt: skip
        model.batch(kept)
    for kill in range(soak(12, 300)):
        log, checkpoint = tmp_path / f"log{kill}", tmp_path / f"checkpoint{kill}"
        with SqliteLog(log) as source:
            source.produce_many("updates", [record_of(o, f"q{i}") for i, o in enumerate(stream)])
        for _ in range(3):
            place = str(rng.choice(list(POINTS))), int(rng.integers(0, 60))
            in_a_child(log, checkpoint, place, **reading)
        pipeline = ingest_all(log, checkpoint, int(rng.integers(1, 20)), **reading)
        found: Any = pipeline.graph
        times = {key: time for key, (_, time) in found.state.items()}
        assert times == {key: time for key, (_, time) in model.edges.items()}
        assert pipeline.expired_before == model.bound
        with SqliteLog(log, topics=("replies",)) as reader:
            sent = [bytes(r.value) for r in reader.poll(10**6)]  # type: ignore[arg-type]
        assert len(set(sent)) == len({ingest.decode_reply(data).id for data in sent})


def timed_stream(rng: np.random.Generator, count: int) -> list[list[Op]]:
    """Records of one row with a time that rises and falls, among them deletions, expiries and
    queries; some come too late for a window of 40."""
    stream = []
    for at in range(count):
        u, v = (int(x) for x in rng.integers(0, 6, 2))
        time = 3 * at + int(rng.integers(-60, 20))
        kind = Kind(int(rng.choice([0, 0, 0, 0, 1, 4, 5])))
        if kind is Kind.EXPIRE:
            stream.append([Op(kind, time=3 * at - 20)])
        else:
            stream.append([Op(kind, u, v, time=None if kind is Kind.EDGE else time)])
    return stream


_INGESTER = """
import sys
import ingest, lpma
log = ingest.SqliteLog(sys.argv[1])
options = dict(batch_size=2000, checkpoint_operations=15_000)
if ingest.has_checkpoint(sys.argv[2]):
    p = ingest.Pipeline.resume(sys.argv[2], log, **options)
else:
    graph = lpma.Graph(device="cpu", segment_size=8)
    p = ingest.Pipeline(log, graph, sys.argv[2], **options)
print("ready", p.operations, flush=True)
p.run(until="end", progress=lambda stats: print(stats.total_operations, flush=True))
p.close()
"""


@pytest.mark.soak
@pytest.mark.slow
def test_the_store_killed_at_random_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    kind = rng.choice([0, 0, 0, 0, 1], 200_000).astype(np.uint8)
    src, dst = rng.integers(0, 3000, (2, len(kind)))
    weight = rng.integers(-4, 12, len(kind)) / 4
    log = SqliteLog(tmp_path / "log")
    for start in range(0, len(kind), 3000):
        part = slice(start, start + 3000)
        columns = src[part], dst[part], weight[part], None, kind[part]
        log.produce("updates", ingest.encode_updates(*columns))
        log.produce("queries", ingest.encode_query(f"q{start}", lpma.Kind.DEGREE, int(src[start])))
    command = [sys.executable, "-c", _INGESTER, str(tmp_path / "log"), str(tmp_path / "c")]
    kills = 0
    wanted = soak(4, 100)
    while True:
        child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        batches = int(rng.integers(0, 100 // wanted + 8)) if kills < wanted else 10**9
        for _ in range(batches + 1):
            if not child.stdout.readline():
                break
        time.sleep(float(rng.uniform(0, 0.01)))
        if kills == wanted:
            child.stdout.read()
            assert child.wait() == 0
            break
        child.kill()
        child.wait()
        child.stdout.close()
        kills += 1
    pipeline = Pipeline.resume(tmp_path / "c", log)
    assert pipeline.operations == len(kind) + 67
    assert isinstance(pipeline.graph, lpma.Graph)
    pipeline.graph.check()
    model = lpma.Graph(device="cpu")
    model.apply(lpma.Batch.from_columns(kind, src, dst, weight, np.zeros(len(kind), np.int64)))
    assert weighted(pipeline.graph) == weighted(model)
    pipeline.close()
    with SqliteLog(log.path, topics=("replies",)) as reader:
        sent = [ingest.decode_reply(bytes(r.value)) for r in reader.poll(10**6)]  # type: ignore[arg-type]
    assert {r.id for r in sent} == {f"q{start}" for start in range(0, len(kind), 3000)}
    assert len({ingest.encode_reply(r) for r in sent}) == len({r.id for r in sent})
    log.close()
