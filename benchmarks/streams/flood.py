"""How long a live query takes when the pipeline is idle and beside a flood, and what it costs the
stream.

A log is filled with far more updates than a poll brings. A pipeline in a process of its own, with
checkpoints and the default settings, reads it twice: alone, and while a client in this process asks
one query after another. Each reading begins with a new checkpoint directory and an empty graph;
readings of the two kinds take turns. Only replies that came before the last update was applied
count as beside the flood. Once it is, the client goes on: those replies are idle ones. At last the
pipeline is left alone, and the processor time that waiting costs is read. A reply can not be
quicker than the syncs that it waits for (the query's, the journal's, its own): *sync* is what one
costs on this disk.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import lpma
from ingest import Ask, Client, Pipeline, SqliteLog
from ingest.datasets import generators
from lpma import Graph, Kind

from ..report import Report, Setting
from ..stopwatch import Figure, WrongAnswer, median
from ..workloads import SEED
from .memory_source import RECORD, encoded
from .processes import PATIENCE_S, running, wait_for

RECORDS_PER_WRITE = 64
KINDS = (Kind.EDGE, Kind.SUCCESSORS, Kind.DEGREE, Kind.VERTEX)
CHECKED = 50  # edges whose weights are compared with the stream
# At most, between two idle queries: they meet every state of waiting, and do not use up what a
# disk that limits operations a second allows.
IDLE_PAUSE_S = 0.2

Ends = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def flood(setting: Setting) -> Report:
    scale, records, rounds, idle, seconds = (
        (12, 200, 1, 20, 0.5) if setting.quick else (18, 12_000, 3, 100, 5.0)
    )
    report = Report("flood", "milliseconds to a reply; operations a second of the stream")
    ends = generators.rmat(scale, RECORD * (records // 4), seed=SEED)
    lpma.compile("cpu")
    with tempfile.TemporaryDirectory() as name:
        log = filled(Path(name) / "log", ends, records)
        for turn in range(rounds):
            for asks in (False, True) if turn % 2 else (True, False):
                with _reading(log, 2 * turn + asks) as reading:
                    found = _asked(reading, ends, idle, seconds) if asks else {}
                    report.add(_row(turn, reading.rate(), found, _sync_ms(Path(name))))
    alone, beside = ([r["op/s"] for r in report.rows if r["asks"] == asks] for asks in (0, 1))
    report.notes.append(
        f"{records * RECORD:,} operations wait. While a client asks, the stream has "
        f"{100 * median(beside) / median(alone):.0f} % of its rate."
    )
    return report


def _row(turn: int, rate: float, found: dict[str, Any], sync: Figure) -> dict[str, Any]:
    row: dict[str, Any] = {"round": turn, "asks": bool(found), "op/s": round(rate)}
    for name in ("flood", "idle"):
        ms = found.get(name) or [float("nan")]
        row[f"{name}, median"] = median(ms)
        row[f"{name}, 95 %"] = float(np.quantile(ms, 0.95))
    return row | {
        "queries": len(found.get("flood", ())),
        "idle, processor %": found.get("processor"),
        "sync": sync,
    }


def _sync_ms(folder: Path) -> Figure:
    """Milliseconds that a small write takes to be on the disk."""
    with open(folder / "sync", "ab", buffering=0) as file:
        found = []
        for _ in range(100):
            file.write(bytes(100))
            started = time.perf_counter()
            os.fsync(file.fileno())
            found.append((time.perf_counter() - started) * 1e3)
    return median(found)


def filled(path: Path, ends: Ends, records: int) -> tuple[Path, int]:
    """A log of so many records, and the operations in it."""
    made = encoded(*ends)
    with SqliteLog(path) as log:
        for first in range(0, records, RECORDS_PER_WRITE):
            numbers = range(first, min(first + RECORDS_PER_WRITE, records))
            log.produce_many("updates", [made[i % len(made)] for i in numbers])
    return path, records * RECORD


# The client ----------------------------------------------------------------------------------


def _asked(reading: _Reading, ends: Ends, idle: int, seconds: float) -> dict[str, Any]:
    """Milliseconds of replies beside the flood and after it, and what waiting costs."""
    rng = np.random.default_rng(SEED)
    with SqliteLog(reading.path) as log, Client(
        log, query_topic=reading.queries, reply_topic=reading.replies, timeout=PATIENCE_S
    ) as client:  # fmt: skip
        flood: list[float] = []
        while not reading.is_over():
            ms = _ask(client, ends, rng, len(flood))
            if not reading.is_over():
                flood.append(ms)
        idle_ms = []
        for number in range(idle):
            time.sleep(rng.uniform(0, IDLE_PAUSE_S))
            idle_ms.append(_ask(client, ends, rng, number))
        before = reading.processor.value
        time.sleep(seconds)  # the pipeline notes its time after each step
        spent = reading.processor.value - before
        _verify(client, ends, reading.operations)
    return {"flood": flood, "idle": idle_ms, "processor": 100 * spent / seconds}


def _ask(client: Client, ends: Ends, rng: np.random.Generator, number: int) -> float:
    kind = KINDS[number % len(KINDS)]
    place = int(rng.integers(len(ends[0])))
    u, v = int(ends[0][place]), int(ends[1][place])
    started = time.perf_counter()
    client.ask(Ask(kind, u, v if kind is Kind.EDGE else None))
    return (time.perf_counter() - started) * 1e3


def _verify(client: Client, ends: Ends, operations: int) -> None:
    """Edges are there as often as they were written."""
    src, dst = ends
    times, left = divmod(operations, len(src))
    for u, v in zip(src[:CHECKED].tolist(), dst[:CHECKED].tolist(), strict=True):
        same = (src == u) & (dst == v)
        expected = times * np.count_nonzero(same) + np.count_nonzero(same[:left])
        weight = client.edge(u, v).answer.weights.tolist()  # type: ignore[union-attr]
        if weight != [expected]:
            raise WrongAnswer(f"edge ({u}, {v}): weight {weight}, expected {expected}")


# The pipeline's process ------------------------------------------------------------------------


class _Reading:
    """One pipeline over the log, and what its process tells of itself."""

    def __init__(self, path: Path, operations: int, number: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.path = str(path)
        self.checkpoint = f"{path}-{number}"
        self.queries, self.replies = f"queries-{number}", f"replies-{number}"
        self.operations = operations
        self.done = context.Value("q", -1)  # updates applied
        self.seconds = context.Value("d", 0.0)  # that all of them took
        self.processor = context.Value("d", 0.0)  # seconds of the whole process
        self.stop = context.Event()
        self.process = context.Process(target=_ingest, args=(self,))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "process"}

    def is_over(self) -> bool:
        return bool(self.done.value >= self.operations)

    def wait(self, operations: int) -> None:
        wait_for(lambda: self.done.value >= operations, self.process, self.done)

    def rate(self) -> float:
        self.wait(self.operations)
        return float(self.operations / self.seconds.value)


@contextmanager
def _reading(log: tuple[Path, int], number: int) -> Iterator[_Reading]:
    reading = _Reading(*log, number)
    with SqliteLog(reading.path) as file:
        file.create_topic(reading.queries)
        file.create_topic(reading.replies)
    with running(reading.process, reading.stop):
        reading.wait(0)
        yield reading
    shutil.rmtree(reading.checkpoint)


def _ingest(reading: _Reading) -> None:
    with (
        SqliteLog(reading.path, ("updates", reading.queries)) as source,
        Pipeline(source, Graph(device="cpu"), reading.checkpoint,
                 reply_topics=(reading.replies,)) as pipeline,
    ):  # fmt: skip
        started = time.perf_counter()
        reading.done.value = 0

        def after(_: Pipeline) -> bool:
            updates = pipeline.stats.operations - pipeline.stats.queries
            if reading.done.value < reading.operations <= updates:
                reading.seconds.value = time.perf_counter() - started
            reading.processor.value = time.process_time()
            reading.done.value = updates
            return bool(reading.stop.is_set())

        pipeline.run(after)
