"""The edge feed: what a stream costs without one and with one, and how far a copy is behind.

    without     batches, journaled; nothing is published
    published   and what each changed leaves: to a function, a file of JSON lines, an embedded log
    lag         a copy in a process of its own follows the log, while the stream comes at half the
                rate that it has with the feed: from a writer's version to the same of the copy

Graphs, batches and the forms of figures are those of `results.py`: rates are thousands of
operations a second, medians of rounds in turns; `cpu` is milliseconds of processor time a batch,
which says more on a machine that others share. The first batches of each pipeline are left out,
which pay for its buffers. For the lag the batches come four times, and those of the first time are
left out, while the copy's process warms up. At the end a copy that followed
the log has to be the graph.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import ingest
import lpma
from ingest.sources import Polled

from .. import workloads
from ..report import Report, Row, Setting
from ..stopwatch import Figure, WrongAnswer, median
from ..workloads import Workload
from .memory_source import MemorySource, refuse
from .processes import PATIENCE_S, running
from .results import LOADED, SIZE, TIMED, _records

ROUNDS, BATCHES, WARM = 7, 28, 4
WAYS = ("without", "function", "file", "log")
STAGES = ("apply", "journal", "feed")
OPTIONS: dict[str, Any] = {
    "dead_letters": refuse, "checkpoint_interval": 1e9, "checkpoint_operations": 10**12,
}  # fmt: skip


def feed(setting: Setting) -> Report:
    streamed = 2 * SIZE * (WARM + BATCHES)
    graphs = [workloads.rmat(12, 30_000, 20_000)]
    if not setting.quick:
        timed = workloads.real(TIMED, loaded_share=1 / 3)
        graphs = [workloads.rmat(18, LOADED, streamed), *([] if timed is None else [timed])]
    report = Report("feed", "thousand operations a second, median")
    for graph in graphs:
        for case, half in (("insert", False), ("mixed", True)):
            report.add(_row(graph, case, half, setting))
    report.notes.append("share: the rate with a feed in an embedded log to that without any.")
    report.notes.append("lag: ms, of a copy's version behind the writer's, at half the rate.")
    return report


def _row(graph: Workload, case: str, half: bool, setting: Setting) -> Row:
    loaded, size, batches = graph.loaded, SIZE, BATCHES
    if setting.quick:
        loaded, size, batches = 30_000, 1_000, 5
    records = list(_records(graph.src, graph.dst, loaded, size, WARM + batches, half))
    ways = [way for way in WAYS if setting.wants(way)]
    rates: dict[str, list[float]] = {way: [] for way in ways}
    spent: dict[str, list[float]] = {way: [] for way in ways}
    stages: dict[str, float] = {}
    first = lpma.Graph(device="cpu")
    first.insert(graph.src[:loaded], graph.dst[:loaded])
    for _ in range(1 if setting.quick else ROUNDS):
        for way in ways:
            seconds, cpu_seconds, stages = _run(way, first.copy(), records, size)
            rates[way].append(size * batches / seconds / 1e3)
            spent[way].append(1e3 * cpu_seconds / batches)
    figures = {way: Figure(float(median(found)), found) for way, found in rates.items()}
    row: Row = {"graph": graph.name, "case": case, "batch": size, **figures}
    if {"without", "log"} <= figures.keys():
        row["share"] = float(figures["log"]) / float(figures["without"])
        due_s = size / float(figures["log"]) / 1e3 * 2
        lags = _lags(first, 4 * records, size, due_s)[WARM + batches :]
        row |= {"lag": float(np.median(lags)), "lag 99 %": float(np.percentile(lags, 99))}
    row |= {f"{way} cpu": float(median(spent[way])) for way in ("without", "log") if way in spent}
    row |= {f"{name} ms": 1e3 * stages[name] / batches for name in STAGES}
    return row


def _run(
    way: str, graph: lpma.Graph, records: list[bytes], size: int
) -> tuple[float, float, dict[str, float]]:
    """Seconds that the stream took in this way, of processor time too, and those of its stages."""
    with tempfile.TemporaryDirectory() as name:
        folder, told = Path(name), list[ingest.EdgeChanges]()
        graph.save(folder / "start.lpma")
        with ingest.SqliteLog(folder / "log") as log:
            places: dict[str, Any] = {"function": told.append, "file": folder / "fed", "log": log}
            with ingest.Pipeline(
                MemorySource(records), graph, folder / "state", batch_size=size,
                changes=places.get(way), **OPTIONS,
            ) as pipeline:  # fmt: skip
                warm = graph.version + WARM
                pipeline.run(lambda stepped: stepped.graph.version >= warm)
                before = pipeline.stats.stages.seconds()
                started, cpu_started = time.perf_counter(), time.process_time()
                pipeline.run("end")
                seconds = time.perf_counter() - started
                cpu_seconds = time.process_time() - cpu_started
                spent = {n: s - before[n] for n, s in pipeline.stats.stages.seconds().items()}
            if way == "log":
                _check(folder, graph)
    return seconds, cpu_seconds, spent


def _check(folder: Path, graph: lpma.Graph) -> None:
    with (
        ingest.SqliteLog(folder / "log", ["changes"]) as feed,
        ingest.follow(feed, start=folder / "start.lpma", device="cpu") as copy,
    ):
        copy.run("end")
    made, there = copy.graph.snapshot(), graph.snapshot()  # type: ignore[attr-defined]
    same = all(
        np.array_equal(getattr(made, name), getattr(there, name))
        for name in ("indptr", "indices", "weights", "times", "version")
    )
    if not same:
        raise WrongAnswer("a copy that followed the feed is another graph")


# How far a copy is behind --------------------------------------------------------------------


class PacedSource(MemorySource):
    """The same records, each batch of so many operations `due_s` after the one before."""

    def __init__(self, records: list[bytes], a_batch: int, due_s: float) -> None:
        super().__init__(records)
        self._a_batch, self._due_s = a_batch, due_s
        self._begun = 0.0

    def poll(self, max_records: int, timeout: float) -> list[Polled]:
        self._begun = self._begun or time.monotonic()
        at = self.positions()
        batch, within = divmod(next(iter(at.values())), self._a_batch)
        left = self._begun + batch * self._due_s - time.monotonic()
        if left > 0:
            time.sleep(min(left, timeout))
            if left > timeout:
                return []
        return super().poll(min(max_records, self._a_batch - within), timeout)


def _lags(first: lpma.Graph, records: list[bytes], size: int, due_s: float) -> list[float]:
    """Ms from each version of a writer to the same of a copy that follows it."""
    context = multiprocessing.get_context("spawn")
    a_batch = -(-size // 4096)
    with tempfile.TemporaryDirectory() as name, ingest.SqliteLog(f"{name}/log") as log:
        first.save(f"{name}/start.lpma")
        written: dict[int, float] = {}
        with ingest.Pipeline(
            PacedSource(records, a_batch, due_s), first.copy(), f"{name}/state", batch_size=size,
            changes=log, batch_interval=1e3, **OPTIONS,
        ) as pipeline:  # fmt: skip
            begun, done, stop = context.Event(), context.Queue(), context.Event()
            last = first.version + -(-len(records) // a_batch)
            told = name, last, begun, done, stop
            process = context.Process(target=_follow, args=told, daemon=True)
            with running(process, stop):
                begun.wait(PATIENCE_S)

                def note(stepped: ingest.Pipeline) -> bool:
                    written.setdefault(stepped.graph.version, time.time())
                    return stepped.graph.version >= last

                pipeline.run(note)
                followed: Mapping[int, float] = done.get(timeout=PATIENCE_S)
    return [1e3 * (at - written[version]) for version, at in sorted(followed.items())]


def _follow(folder: str, last: int, begun: Any, done: Any, stop: Any) -> None:
    """A process: when the copy came to each version up to the last."""
    times: dict[int, float] = {}
    with (
        ingest.SqliteLog(f"{folder}/log", ["changes"]) as feed,
        ingest.follow(feed, start=f"{folder}/start.lpma", device="cpu") as copy,
    ):
        begun.set()

        def note(stepped: ingest.Pipeline) -> bool:
            times.setdefault(stepped.graph.version, time.time())
            return stepped.graph.version >= last or stop.is_set()

        copy.run(note)
    times.pop(min(times))
    done.put(times)
