"""A window's pipeline killed within its expiries, with the real store: nothing is lost, nothing is
counted twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from tests.conftest import soak
from tests.support.broker import Cluster
from tests.support.command_line import command_line, document

ROOT = Path(__file__).parents[2]
WIDTH = 300
COUNT = 4000
POINTS = ["Expiry.expanded", "Expiry._due", "Expiry._make", "Expiry.note", "sweep.sweep",
          "sweep._publish", "LPMA.commit", "LPMA.prepare", "Graph.apply"]  # fmt: skip

# Runs to the end of the log; killed at one passing of one point, before or after it.
INGESTER = """
import json, os, signal, sys
import ingest, lpma
from lpma import Graph, sweep
from lpma.expiry import Expiry
from lpma.store import LPMA

log, state, point, number, made, size = json.loads(sys.argv[1])
owner, _, name = point.partition(".")
owner, passed, function = globals()[owner], [0], getattr(globals()[owner], name)

def kill():
    if passed[0] == number:
        os.kill(os.getpid(), signal.SIGKILL)
    passed[0] += 1

def call(*args, **options):
    kill()
    result = function(*args, **options)
    kill()
    return result

setattr(owner, name, call)
source = ingest.SqliteLog(log)
options = dict(batch_size=size, checkpoint_operations=900, device="cpu")
if ingest.has_checkpoint(state):
    pipeline = ingest.Pipeline.resume(state, source, **options)
else:
    graph = lpma.Graph(**made, device="cpu", segment_size=4)
    pipeline = ingest.Pipeline(source, graph, state, window=300, names=made["names"], **options)
pipeline.run(until="end")
pipeline.close()
"""


def stream_of(rng: np.random.Generator, names: bool) -> tuple[list[bytes], dict[Any, int]]:
    """Records of edges that are all different, some too late, and what a window leaves of them."""
    keys = rng.permutation(200 * 201 // 2)[:COUNT]
    pairs = [(int(u), int(v)) for u, v in zip(*np.triu_indices(200), strict=True)]
    ends = [pairs[key] if rng.random() < 0.5 else pairs[key][::-1] for key in keys.tolist()]
    times = np.arange(COUNT) - rng.integers(0, 400, COUNT)
    called = [(f"v{u}", f"v{v}") if names else (u, v) for u, v in ends]
    data, at = [], 0
    while at < COUNT:
        end = at + int(rng.integers(1, 40))
        src, dst = zip(*called[at:end], strict=True)
        data.append(ingest.encode_updates(src, dst, time=times[at:end], names=names))
        at = end
    bound = int(times.max()) - WIDTH
    kept = zip(called, times.tolist(), strict=True)
    return data, {frozenset(pair): time for pair, time in kept if time >= bound}


@pytest.mark.soak
@pytest.mark.parametrize("made", [
    {"directed": True, "predecessors": True, "names": False},
    {"directed": False, "names": False}, {"directed": False, "names": True},
])  # fmt: skip
def test_expiries_that_are_killed_are_counted_once(tmp_path: Path, made: dict[str, Any]) -> None:
    """Every edge is appended once: so what is not there has expired, wherever batches ended."""
    rng = np.random.default_rng([len(made), made["names"], 5])
    data, expected = stream_of(rng, made["names"])
    for round_ in range(soak(1, 20)):
        log, state = tmp_path / f"log{round_}", tmp_path / f"state{round_}"
        with ingest.SqliteLog(log) as source:
            source.produce_many("updates", data)
        killed = 0
        for _ in range(soak(2, 6)):
            point, number = str(rng.choice(POINTS)), int(rng.integers(0, soak(8, 14)))
            killed += run(log, state, point, number, made, int(rng.integers(30, 400))) < 0
        assert run(log, state, "Graph.apply", -1, made, int(rng.integers(30, 400))) == 0
        assert killed
        with ingest.SqliteLog(log) as source:
            pipeline = ingest.Pipeline.resume(state, source, device="cpu")
            graph: Any = pipeline.graph
            graph.check()
            assert found_in(graph) == expected
            assert pipeline.expired == COUNT - len(expected)
            pipeline.close()


def run(log: Path, state: Path, *how: Any) -> int:
    """The exit status of the ingester."""
    arguments = json.dumps([str(log), str(state), *how])
    done = subprocess.run(
        [sys.executable, "-c", INGESTER, arguments], cwd=ROOT, capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def found_in(graph: lpma.Graph) -> dict[Any, int]:
    s = graph.snapshot(compact=True)
    ids = np.asarray(s.ids)
    rows = np.repeat(np.arange(s.num_rows), np.diff(s.indptr))
    called: Any = ids if graph.names is None else graph.names.of(ids)
    src, dst = called[rows].tolist(), called[np.asarray(s.indices)].tolist()
    assert s.times is not None
    return {frozenset((u, v)): t for u, v, t in zip(src, dst, s.times.tolist(), strict=True)}


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
               "--names", "--undirected", "--window", width, "--window-time", moved_by,
               "--device", "cpu"]  # fmt: skip
    for size in (40, 70):
        figures = tmp_path / f"run{size}"
        more = ["--follow", "--batch-size", size, "--statistics", figures]
        more += ["--checkpoint-operations", 300]
        process = subprocess.Popen(
            command_line(*command, *more), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        deadline = time.monotonic() + 300
        while not figures.exists() or figures.read_bytes().count(b"\n") < 17:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
        process.kill()
        process.communicate()
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
