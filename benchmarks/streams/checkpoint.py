"""How long a stream stops for a checkpoint: batches through a pipeline, with and without.

Records come from memory and there are no queries, so that a step is decoding, journal and batch.
Every variant applies the same batches to the same graph. "synchronous" waits for the commit within
the step, as a checkpoint that is not written beside the stream does.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import lpma
from ingest import Pipeline

from .. import plots, workloads
from ..report import Report, Setting
from ..stopwatch import WrongAnswer, median
from .memory_source import RECORD, MemorySource, encoded, refuse

ON_CPU = (("cpu", "none"), ("cpu", "beside the stream"), ("cpu", "synchronous"))
ON_CUDA = (("cuda", "none"), ("cuda", "beside the stream"), ("cpu", "beside the stream"))


def checkpoint(setting: Setting) -> Report:
    report = measured("checkpoint", setting, ON_CPU)
    report.plots.append(_plot(setting, report))
    return report


def measured(name: str, setting: Setting, cells: Iterable[tuple[str, str]]) -> Report:
    """The same batches on each device and in each variant."""
    loaded, size, batches, every = (
        (30_000, 1_000, 24, 6) if setting.quick else (10_000_000, 100_000, 60, 15)
    )
    workload = workloads.rmat(14 if setting.quick else 20, loaded, batches * size)
    records = encoded(*workload.stream(0, batches * size))
    report = Report(
        name,
        f"milliseconds of {batches} batches of {size:,} edges at {loaded:,} of {workload.name}, "
        f"a checkpoint after every {every}",
    )
    expected = None
    for device, variant in cells:
        if not setting.wants(device) or setting.out_of_time():
            continue
        graph = lpma.Graph(device=device)
        graph.insert(*workload.base())
        with tempfile.TemporaryDirectory() as directory:
            row, ms = steps_of(variant, graph, records, (size, batches, every), Path(directory))
        expected = expected or graph.num_edges
        if graph.num_edges != expected:
            raise WrongAnswer("the variants must end alike")
        report.add({"device": device, "checkpoints": variant, **row})
        report.series[f"{device}, {variant}"] = ms
    report.notes.append(
        "stopped: what the stream waited for a checkpoint, the longest. longest with: the longest "
        "step that took one. commit: from its beginning until it was on disk."
    )
    return report


def steps_of(
    variant: str,
    graph: lpma.Graph,
    records: list[bytes],
    shape: tuple[int, int, int],
    directory: Path,
) -> tuple[dict[str, Any], list[float]]:
    """Milliseconds of the steps through `records`: their figures, and each. shape: operations per
    batch, batches, batches from one checkpoint to the next."""
    size, batches, every = shape
    own = variant == "beside the stream"
    steps: list[float] = []
    taken: list[bool] = []
    stopped: list[float] = []
    commits: list[float] = []
    with Pipeline(
        MemorySource(records),
        graph,
        None if variant == "none" else directory / "checkpoint",
        batch_size=size,
        batch_interval=10.0,
        poll_records=max(1, size // RECORD),
        dead_letters=refuse,
        checkpoint_operations=every * size if own else 1 << 60,
        checkpoint_interval=1e9,
    ) as pipeline:
        for number in range(1, batches + 1):
            started = time.perf_counter()
            pipeline.step(drain=True)
            if variant == "synchronous" and number % every == 0:
                pipeline.checkpoint_now()
            steps.append((time.perf_counter() - started) * 1e3)
            taken.append(number % every == 0)
            _note(pipeline, commits, stopped)
        while own and not commits:  # on a machine so busy that none has come through yet
            time.sleep(0.1)
            pipeline.step(drain=True)
            _note(pipeline, commits, stopped)
    ms = np.array(steps)
    none = variant == "none"
    return {
        "median": median(steps),
        "99 %": float(np.quantile(ms, 0.99)),
        "longest": float(ms.max()),
        "longest with": None if none else float(ms[np.array(taken)].max()),
        "stopped": None if none else (max(stopped) if own else max(commits)) * 1e3,
        "commit": None if none else median(commits) * 1e3,
        "checkpoints taken": len(commits),
    }, steps


def _note(pipeline: Pipeline, commits: list[float], stopped: list[float]) -> None:
    """Add the figures of a checkpoint that has been committed since; the first is not counted."""
    figures = pipeline.stats.checkpoint_figures
    if figures is not None and figures.number > len(commits):
        commits.append(figures.seconds)
        stopped.append(figures.stopped)


def _plot(setting: Setting, report: Report) -> str:
    place = {name: list(range(1, len(ms) + 1)) for name, ms in report.series.items()}
    series = {name: (place[name], ms) for name, ms in report.series.items()}
    panel = plots.Panel(report.title, "batch", "ms", series, log="y", points=False)
    return plots.save(setting.folder / "checkpoint.png", [panel])
