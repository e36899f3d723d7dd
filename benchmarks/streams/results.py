"""Continuous results: what a stream costs without them, with figures tracked, and published.

    without     batches, journaled; nothing is tracked
    tracked     core numbers and triangles after every batch
    published   and what changed leaves: to a function, a file of JSON lines, an embedded log

Batches of 10^4 insertions, or of half as many insertions and deletions, come to a uniform and an
RMAT graph of 2 M edges, on a GPU of 10 M, and to two thirds of a real one in its order of time; to
that one also a tenth as large.
Figures are thousands of operations a second, medians of rounds in turns; each pipeline reads the
same records from memory, begins with its own copy of the graph, and keeps a journal, so each batch
of results waits for a sync. A stream lasts until its last results have left. At the end the core
numbers that the results tell are compared with an algorithm's. Seconds of the stages are those of
the embedded log; what goes on beside the stream is in them, too. `cpu` is milliseconds of processor
time a batch: on a machine that others share it says more.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import algorithms
import ingest
import lpma
from ingest.results.reading import read_results
from lpma.arrays import to_host

from .. import workloads
from ..keys import Array
from ..report import Report, Row, Setting
from ..stopwatch import Figure, WrongAnswer, median
from ..workloads import Workload
from .memory_source import RECORD, MemorySource, refuse

ROUNDS = 3
LOADED, SIZE, BATCHES = 2_000_000, 10_000, 8
GPU_LOADED, GPU_BATCHES = 10_000_000, 32
TIMED = "sx-mathoverflow"
TRACK = ("core", "triangles")
STAGES = ("apply", "track", "journal", "results")
WAYS = ("without", "tracked", "function", "file", "log")


def results(setting: Setting) -> Report:
    streamed = 2 * SIZE * BATCHES
    graphs = [workloads.rmat(12, 30_000, 20_000)]
    if not setting.quick:
        graphs = [workloads.uniform(20, LOADED, streamed), workloads.rmat(18, LOADED, streamed)]
        timed = workloads.real(TIMED, loaded_share=2 / 3)
        graphs += [] if timed is None else [timed]
    return _report("results", graphs, setting, "cpu", BATCHES)


def gpu_results(setting: Setting) -> Report:
    streamed = 2 * SIZE * GPU_BATCHES
    graphs = [workloads.rmat(12, 30_000, 20_000)]
    if not setting.quick:
        timed = workloads.real(TIMED, loaded_share=2 / 3)
        graphs = [workloads.rmat(20, GPU_LOADED, streamed)] + ([] if timed is None else [timed])
    return _report("gpu-results", graphs, setting, "cuda", GPU_BATCHES)


def _report(
    name: str, graphs: list[Workload], setting: Setting, device: str, batches: int
) -> Report:
    report = Report(name, "thousand operations a second, median")
    for graph in graphs:
        for size in (SIZE, SIZE // 10) if graph.name == TIMED else (SIZE,):
            for case, half in (("insert", False), ("mixed", True)):
                report.add(_row(graph, case, half, size, batches * SIZE // size, setting, device))
    report.notes.append("share: the rate with results in an embedded log to that without any.")
    report.notes.append("cost: seconds that publishing to the log took, of those of tracking.")
    return report


def _row(
    graph: Workload, case: str, half: bool, size: int, batches: int, setting: Setting, device: str
) -> Row:
    loaded = graph.loaded
    if setting.quick:
        loaded, size, batches = 30_000, 1_000, 5
    records = list(_records(graph.src, graph.dst, loaded, size, batches, half))
    rates: dict[str, list[float]] = {way: [] for way in WAYS if setting.wants(way)}
    spent: dict[str, list[float]] = {way: [] for way in rates}
    stages: dict[str, float] = {}
    for _ in range(1 if setting.quick else ROUNDS):
        for way in rates:
            first = lpma.Graph(device=device)
            first.insert(graph.src[:loaded], graph.dst[:loaded])
            seconds, cpu_seconds, stages = _run(way, first, records, size)
            rates[way].append(size * batches / seconds / 1e3)
            spent[way].append(1e3 * cpu_seconds / batches)
    figures = {way: Figure(float(median(found)), found) for way, found in rates.items()}
    row: Row = {"graph": graph.name, "case": case, "batch": size, **figures}
    if {"without", "log"} <= figures.keys():
        row["share"] = float(figures["log"]) / float(figures["without"])
    row |= {f"{way} cpu": float(median(spent[way])) for way in ("without", "log") if way in spent}
    row |= {f"{name} ms": 1e3 * stages[name] / batches for name in STAGES}
    row["cost"] = stages["results"] / stages["track"] if stages["track"] else None
    return row


def _records(
    src: Array, dst: Array, loaded: int, size: int, batches: int, half: bool
) -> Iterator[bytes]:
    """Batches as records of RECORD operations at most."""
    at, gone = loaded, 0
    for _ in range(batches):
        inserted = size // 2 if half else size
        new, old = slice(at, at + inserted), slice(gone, gone + size - inserted)
        at, gone = new.stop, old.stop
        ends = (np.concatenate([column[new], column[old]]) for column in (src, dst))
        kind = np.repeat(np.array([0, 1], np.uint8), [inserted, size - inserted])
        columns = (*ends, kind)
        for start in range(0, size, RECORD):
            u, v, k = (column[start : start + RECORD] for column in columns)
            yield ingest.encode_updates(u, v, kind=k)


def _run(
    way: str, graph: lpma.Graph, records: list[bytes], size: int
) -> tuple[float, float, dict[str, float]]:
    """Seconds that the stream took in this way, of processor time too, and those of its stages."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        told: list[ingest.Result] = []
        log = ingest.SqliteLog(folder / "log")
        sinks: dict[str, Any] = {"function": told.append, "file": folder / "results", "log": log}
        given: dict[str, Any] = {} if way == "without" else {"track": TRACK}
        if way in sinks:
            given["results"] = sinks[way]
        with ingest.Pipeline(
            MemorySource(records), graph, folder / "state", batch_size=size, dead_letters=refuse,
            checkpoint_interval=1e9, checkpoint_operations=10**12, **given,
        ) as pipeline:  # fmt: skip
            pipeline._results.track()  # the first time figures are computed, not followed
            before = pipeline.stats.stages.seconds()
            started, cpu_started = time.perf_counter(), time.process_time()
            pipeline.run("end")
            seconds = time.perf_counter() - started
            cpu_seconds = time.process_time() - cpu_started
            spent = {name: s - before[name] for name, s in pipeline.stats.stages.seconds().items()}
        if way in sinks:
            _check(_READERS[way](sinks[way]), graph)
        log.close()
    return seconds, cpu_seconds, spent


def _from_log(log: ingest.SqliteLog) -> Iterator[ingest.Result]:
    with ingest.SqliteLog(log.path, ["results"]) as reader:
        while polled := reader.poll():
            for record in polled:
                assert isinstance(record.value, bytes)
                yield ingest.decode_result(record.value)


_READERS: dict[str, Callable[[Any], Iterator[ingest.Result]]] = {
    "function": lambda append: iter(append.__self__),
    "file": read_results,
    "log": _from_log,
}


def _check(told: Iterator[ingest.Result], graph: lpma.Graph) -> None:
    """Compare what the results tell with starting over."""
    expected = to_host(algorithms.core_numbers(graph.snapshot()))
    cores, triangles = np.zeros(len(expected), np.int32), 0
    for result in told:
        if result.figure == "core":
            cores[result.vertex] = result.new
        elif result.figure == "triangles":
            triangles = result.new
    if not (cores == expected).all() or triangles != algorithms.triangle_count(graph.snapshot()):
        raise WrongAnswer("the results tell other figures than the graph has")
