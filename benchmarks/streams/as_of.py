"""How long a past view takes: seconds from asking to a graph, against the distance in operations.

A stream in an embedded log is read once, with checkpoints at its beginning and before its last
10^4, 10^5, 10^6 and 10^7 operations; the batches are the stream's own. Then the newest version is
asked for with all but one of these checkpoints out of sight, so that each distance begins at a
checkpoint of its own. Beside it stands the pipeline's own rate over the same operations.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import lpma
from ingest import Pipeline, SqliteLog
from ingest.past import view
from ingest.state.directory import checkpoint_numbers, checkpoint_path

from .. import workloads
from ..report import Report, Setting
from ..stopwatch import median
from .memory_source import encoded, refuse

ROUNDS = 3
Noted = tuple[int, int, float, int]  # operations, version, seconds since the start, checkpoint


def as_of(setting: Setting) -> Report:
    return _measured(setting, "as-of", "cpu")


def gpu_as_of(setting: Setting) -> Report:
    return _measured(setting, "gpu-as-of", "cuda")


def _measured(setting: Setting, name: str, device: str) -> Report:
    distances = [1_000, 10_000] if setting.quick else [10**4, 10**5, 10**6, 10**7]
    size = 1_000 if setting.quick else 100_000
    base = max(distances)
    report = Report(
        name,
        f"seconds to a past view on {device}, batches of {size:,}, from {base:,} operations on",
    )
    total = base + sum(distances)
    workload = workloads.rmat(14 if setting.quick else 20, 0, total)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        with SqliteLog(path / "log") as log:
            log.produce_many("updates", encoded(*workload.stream(0, total)))
        noted, edges = _flow(path, device, size, base, sorted(distances, reverse=True))
        with SqliteLog(path / "log") as source:
            for before, after in pairwise(noted):
                report.add(_row(path, source, device, (before, after), edges))
    report.notes.append(
        "load: of the checkpoint. replay: of the operations since. stream: what the pipeline took "
        "over the same operations, once, journal and all."
    )
    return report


def _flow(
    path: Path, device: str, size: int, base: int, distances: list[int]
) -> tuple[list[Noted], dict[int, int]]:
    """Read the stream: where checkpoints were taken, and the edges of every such version."""
    noted: list[Noted] = []
    edges: dict[int, int] = {}
    with SqliteLog(path / "log") as source, Pipeline(
        source, lpma.Graph(device=device), path / "state", batch_size=size, batch_interval=60.0,
        dead_letters=refuse, checkpoint_operations=1 << 60, checkpoint_interval=1e9,
        keep_checkpoints="1s=1000",
    ) as pipeline:  # fmt: skip
        flowed = 0.0
        for operations in [base, *distances]:
            started = time.perf_counter()
            pipeline.run(until=operations)
            flowed += time.perf_counter() - started
            time.sleep(1.1)  # into the next rung
            pipeline.checkpoint_now()
            graph, figures = pipeline.graph, pipeline.stats.checkpoint_figures
            assert figures is not None
            noted.append((pipeline.stats.operations, graph.version, flowed, figures.number))
            edges[graph.version] = graph.num_edges
    return noted, edges


def _row(
    path: Path, source: SqliteLog, device: str, ends: tuple[Noted, Noted], edges: dict[int, int]
) -> dict[str, Any]:
    """The state at the second end, from the checkpoint at the first."""
    (first, _, begun, number), (last, version, ended, _) = ends
    seconds, loads, replays = [], [], []
    with _alone(path / "state", number):
        for _ in range(ROUNDS):
            started = time.perf_counter()
            found = view(path / "state", source, version=version, device=device)
            seconds.append(time.perf_counter() - started)
            loads.append(found.load_s)
            replays.append(found.replay_s)
            assert found.graph.num_edges == edges[version], "it is another graph"
            assert found.replayed == last - first
    operations, flowed = last - first, ended - begun
    replay = median(replays)
    row = {"operations": operations, "seconds": median(seconds), "load": median(loads)}
    row |= {"replay": replay, "million/s": operations / 1e6 / replay, "stream": flowed}
    return row | {"stream million/s": operations / 1e6 / flowed, "replay/stream": replay / flowed}


@contextmanager
def _alone(state: Path, number: int) -> Iterator[None]:
    """The directory without checkpoints after that one."""
    aside = state.with_name("aside")
    aside.mkdir(exist_ok=True)
    later = [n for n in checkpoint_numbers(state) if n > number]
    for one in later:
        checkpoint_path(state, one).rename(checkpoint_path(aside, one))
    try:
        yield
    finally:
        for one in later:
            checkpoint_path(aside, one).rename(checkpoint_path(state, one))
