"""A window's pipeline killed within its expiries, with the real store: nothing is lost, nothing is
counted twice."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import ingest
import lpma
from ingest.cli import app
from tests.conftest import soak
from tests.support.broker import Cluster
from tests.support.command_line import document
from tests.support.killed_stream import make_checkpoints_steady
from tests.support.kills import Place, drawn, run

WIDTH = 300
COUNT = 4000
POINTS = (
    "lpma.engine.expiry:Expiry.expanded", "lpma.engine.expiry:Expiry._due",
    "lpma.engine.expiry:Expiry._make", "lpma.engine.expiry:Expiry.note",
    "lpma.store.lpma:LPMA.commit", "lpma:Graph.apply",
)  # fmt: skip
UNDIRECTED: dict[str, Any] = {"directed": False, "names": False}
NAMED: dict[str, Any] = {"directed": False, "names": True}
DIRECTED: dict[str, Any] = {"directed": True, "predecessors": True, "names": False}


def ingest_all(log: Path, state: Path, made: dict[str, Any], size: int) -> None:
    """Start, or go on, to the end of the log, in batches of `size`."""
    make_checkpoints_steady(state)
    options: dict[str, Any] = {
        "batch_size": size, "batch_interval": 1e6, "checkpoint_operations": 900,
        "checkpoint_interval": 1e6, "device": "cpu",
    }  # fmt: skip
    with ingest.SqliteLog(log) as source:
        if ingest.has_checkpoint(state):
            pipeline = ingest.Pipeline.resume(state, source, **options)
        else:
            del options["device"]
            graph = lpma.Graph(**made, device="cpu", segment_size=4)
            names = made["names"]
            pipeline = ingest.Pipeline(source, graph, state, window=WIDTH, names=names, **options)
        pipeline.run(until="end")
        pipeline.close()


def stream_of(rng: np.random.Generator, names: bool) -> tuple[list[bytes], dict[Any, int]]:
    """Records of edges that are all different, some too late, and what a window leaves of them."""
    keys = rng.permutation(200 * 201 // 2)[:COUNT]
    pairs = [(int(u), int(v)) for u, v in zip(*np.triu_indices(200), strict=True)]
    ends = [pairs[key] if rng.random() < 0.5 else pairs[key][::-1] for key in keys.tolist()]
    times = np.arange(COUNT) - rng.integers(0, 400, COUNT)
    called = [(f"v{u}", f"v{v}") if names else (u, v) for u, v in ends]
    data, at = [], 0
    while at < COUNT:
        end = min(at + int(rng.integers(1, 40)), COUNT)
        src, dst = zip(*called[at:end], strict=True)
        kind = rng.choice([0, 11], end - at).astype(np.uint8)  # which do the same, once each
        data.append(ingest.encode_updates(src, dst, None, times[at:end], kind, names=names))
        at = end
    bound = int(times.max()) - WIDTH
    kept = zip(called, times.tolist(), strict=True)
    return data, {frozenset(pair): time for pair, time in kept if time >= bound}


@pytest.mark.soak
@pytest.mark.parametrize("made, kills", [
    pytest.param(NAMED, 3, marks=pytest.mark.system),
    *(pytest.param(made, 2 * len(POINTS), marks=pytest.mark.integration)
      for made in (DIRECTED, UNDIRECTED, NAMED)),
])  # fmt: skip
def test_expiries_that_are_killed_are_counted_once(
    tmp_path: Path, made: dict[str, Any], kills: int
) -> None:
    """Every edge is appended once: so what is not there has expired, wherever batches ended."""
    rng = np.random.default_rng([kills, made["directed"], made["names"]])
    data, expected = stream_of(rng, made["names"])
    original = tmp_path / "log"
    with ingest.SqliteLog(original) as source:
        source.produce_many("updates", data)
    size = int(rng.integers(30, 400))
    shutil.copy(original, tmp_path / "copy")
    calls = run(ingest_all, tmp_path / "copy", tmp_path / "whole", made, size, points=POINTS).calls
    assert calls.keys() == {*POINTS}
    for number, place in enumerate(drawn(rng, calls, soak(kills, 20 * kills))):
        log, state = tmp_path / f"log{number}", tmp_path / f"state{number}"
        shutil.copy(original, log)
        assert run(ingest_all, log, state, made, size, points=POINTS, place=place).killed, place
        another = int(rng.integers(30, 400))
        again = drawn(rng, calls, 1)[0]  # the resumed one may die too, if it comes by that place
        run(ingest_all, log, state, made, another, points=POINTS, place=again)
        with ingest.SqliteLog(log) as source:
            pipeline = ingest.Pipeline.resume(state, source, device="cpu")
            pipeline.run(until="end")
            graph: Any = pipeline.graph
            graph.check()
            assert found_in(graph) == expected
            assert pipeline.stats.expired == COUNT - len(expected)
            pipeline.close()


def found_in(graph: lpma.Graph) -> dict[Any, int]:
    s = graph.snapshot(compact=True)
    ids = np.asarray(s.ids)
    rows = np.repeat(np.arange(s.num_rows), np.diff(s.indptr))
    called: Any = ids if graph.names is None else graph.names.of(ids)
    src, dst = called[rows].tolist(), called[np.asarray(s.indices)].tolist()
    assert s.times is not None
    return {frozenset((u, v)): t for u, v, t in zip(src, dst, s.times.tolist(), strict=True)}


def as_command(*arguments: object) -> None:
    result = CliRunner().invoke(app, [*map(str, arguments)])
    if result.exception is not None:
        raise result.exception


@pytest.mark.soak
@pytest.mark.parametrize("moved_by", ["event", "arrival"])
def test_a_window_over_kafka_is_killed_and_goes_on(
    kafka: Cluster, tmp_path: Path, moved_by: str
) -> None:
    """Three partitions read by `lpma ingest`, killed between batches; undirected, by name."""
    data, expected = stream_of(np.random.default_rng(6), names=True)
    topic = kafka.topic(partitions=3, name="windowed")
    with ingest.KafkaSink(kafka.bootstrap) as sink:
        for partition in range(3):
            sink.produce_many(topic, data[partition::3], partition=partition)
    state = tmp_path / "state"
    width = WIDTH if moved_by == "event" else 1
    command = ["ingest", "--kafka", kafka.bootstrap, "--topic", topic, "--checkpoint", state,
               "--names", "--undirected", "--window", width, "--device", "cpu",
               "--set", f"records.window_time={moved_by}"]  # fmt: skip
    for size in (40, 70):
        more = "--follow", "--batch-size", size, "--set", "checkpoints.operations=300"
        place = Place("lpma:Graph.apply", 17, after=size == 70)
        assert run(as_command, *command, *more, points=[place.point], place=place).killed
    found = document(*command, "--batch-size", 100)
    assert found["total_operations"] == COUNT
    assert found["expired"] == COUNT - found["edges"]
    assert document("info", state)["expired"] == found["expired"]
    if moved_by == "event":
        assert found_in(lpma.Graph.load(newest(state) / "graph.lpma", "cpu")) == expected
        bound = found["window"]["expired_before"]
        assert bound == max(expected.values()) - WIDTH


def newest(state: Path) -> Path:
    return max(state.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
