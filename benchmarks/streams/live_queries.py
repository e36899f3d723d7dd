"""How long a live query takes while updates come at half the rate that the pipeline sustains.

A pipeline ingests in a process of its own, with checkpoints, as a user's does; a producer and a
client share another. First the producer writes without a pause, and the pipeline's rate over the
whole is the sustainable one. Then it writes at half of that, evenly, while the client asks one
query after another, of each kind in turn. A query waits for what was buffered before it, so shorter
batches answer sooner. Over the embedded log, and over the Kafka that
KAFKA_BOOTSTRAP names.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ingest import Ask, Client, KafkaSink, KafkaSource, Pipeline, SqliteLog
from ingest.types import Sink
from lpma import Graph, Kind

from .. import workloads
from ..report import Report, Setting
from ..stopwatch import WrongAnswer, median
from .memory_source import RECORD, encoded
from .processes import running, wait_for

RECORDS_PER_WRITE = 8  # when the producer is not to pause
INTERVALS_S = (0.1, 0.01)  # of the batches
TIMEOUT_S = 30.0
KINDS = (Kind.EDGE, Kind.SUCCESSORS, Kind.PREDECESSORS, Kind.HOPS, Kind.DEGREE, Kind.VERTEX)


@dataclass(frozen=True)
class Road:
    """Where a stream's topics are: the file of an embedded log, or a Kafka's bootstrap."""

    name: str
    place: str
    topics: tuple[str, str, str]  # updates, queries, replies

    def source(self) -> Any:
        topics = self.topics[:2]
        return SqliteLog(self.place, topics) if self.is_file else KafkaSource(self.place, topics)

    def sink(self) -> Any:
        return SqliteLog(self.place) if self.is_file else KafkaSink(self.place)

    def client(self) -> Client:
        _, queries, replies = self.topics
        if self.is_file:
            log = SqliteLog(self.place)
            return Client(log, query_topic=queries, reply_topic=replies, timeout=TIMEOUT_S)
        return Client.kafka(self.place, query_topic=queries, reply_topic=replies, timeout=TIMEOUT_S)

    @property
    def is_file(self) -> bool:
        return os.path.sep in self.place


def live_queries(setting: Setting) -> Report:
    scale, records, seconds = (14, 100, 1.0) if setting.quick else (18, 1200, 15.0)
    report = Report("live-queries", "milliseconds from asking to the reply, one after another")
    workload = workloads.uniform(scale + 2, 1, RECORD * records)
    for kind in ("embedded log", "Kafka"):
        bootstrap = os.environ.get("KAFKA_BOOTSTRAP")
        if kind == "Kafka" and not bootstrap:
            report.notes.append("Kafka: not measured, for want of KAFKA_BOOTSTRAP.")
            continue
        for interval in INTERVALS_S:
            with tempfile.TemporaryDirectory() as name:
                road = _road(kind, bootstrap if kind == "Kafka" else f"{name}/log")
                report.add(_measured(road, workload, Path(name), interval, seconds))
    return report


def _road(name: str, place: str | None) -> Road:
    assert place is not None
    mark = uuid.uuid4().hex[:8]
    road = Road(name, place, (f"updates-{mark}", f"queries-{mark}", f"replies-{mark}"))
    with road.sink() as sink:
        for topic in road.topics:
            sink.create_topic(topic)
    return road


def _measured(
    road: Road, workload: workloads.Workload, directory: Path, interval: float, seconds: float
) -> dict[str, Any]:
    records = encoded(*workload.stream(0, workload.streamed))
    rows = RECORD * len(records)
    with _pipeline(road, directory / "checkpoint", interval) as wait, road.sink() as sink:
        started = time.perf_counter()
        for first in range(0, len(records), RECORDS_PER_WRITE):
            sink.produce_many(road.topics[0], records[first : first + RECORDS_PER_WRITE])
        wait(rows)
        rate = rows / (time.perf_counter() - started)
        stop = threading.Event()
        counted: list[int] = []
        producer = threading.Thread(
            target=lambda: counted.append(_paced(sink, road.topics[0], records, rate / 2, stop))
        )
        producer.start()
        with road.client() as client:
            try:
                ms = _ask(client, workload, time.monotonic() + seconds)
            finally:
                stop.set()
                producer.join()
            wait(rows + counted[0] + len(ms))
            _verify(client, workload, rows + counted[0])
    row = {"log": road.name, "interval, ms": round(1000 * interval)}
    row |= {"sustainable, op/s": round(rate), "written, op/s": round(counted[0] / seconds)}
    row |= {"queries": len(ms), "median": median(ms)}
    return row | {"99 %": float(np.quantile(ms, 0.99)), "slowest": max(ms)}


def _paced(sink: Sink, topic: str, records: list[bytes], rate: float, stop: threading.Event) -> int:
    """Write records in a ring, `rate` operations per second, until `stop`. Returns the number of
    operations written."""
    started = time.monotonic()
    written = 0
    while not stop.wait(max(0.0, started + written / rate - time.monotonic())):
        sink.produce_many(topic, [records[written // RECORD % len(records)]])
        written += RECORD
    return written


def _ask(client: Client, workload: workloads.Workload, until: float) -> list[float]:
    """Milliseconds of each query, the first of each kind left out."""
    rng = np.random.default_rng(1)
    ms: list[float] = []
    while time.monotonic() < until:
        for kind in KINDS:
            u, v = (
                int(ends[0]) for ends in workload.stream(int(rng.integers(workload.streamed)), 1)
            )
            query = Ask(kind, u, v if kind is Kind.EDGE else None, 2 if kind is Kind.HOPS else None)
            started = time.perf_counter()
            reply = client.ask(query)
            ms.append((time.perf_counter() - started) * 1e3)
            if kind is Kind.EDGE and not reply.answer.found[0]:  # type: ignore[union-attr]
                raise WrongAnswer(f"edge ({u}, {v}) is in the stream, and was not found")
    return ms


def _verify(client: Client, workload: workloads.Workload, operations: int) -> None:
    """Every edge is there, as often as it was written."""
    weight = 0.0
    some = slice(0, 50)
    src, dst = (ends[some] for ends in workload.stream(0, workload.streamed))
    for i, reply in enumerate(client.ask_many(
        Ask(Kind.EDGE, int(u), int(v)) for u, v in zip(src, dst, strict=True)
    )):  # fmt: skip
        weight = -(-(operations - i) // workload.streamed)
        if reply.answer.weights.tolist() != [weight]:  # type: ignore[union-attr]
            raise WrongAnswer(f"edge {i} of the stream: {reply}, expected weight {weight}")


# The pipeline's process ------------------------------------------------------------------------


@contextmanager
def _pipeline(road: Road, checkpoint: Path, interval: float) -> Iterator[Callable[[int], None]]:
    """Waits until it has applied so many operations."""
    context = multiprocessing.get_context("spawn")
    applied, stop = context.Value("q", -1), context.Event()
    process = context.Process(target=_ingest, args=(road, str(checkpoint), interval, applied, stop))

    def wait(operations: int) -> None:
        wait_for(lambda: applied.value >= operations, process, applied)

    with running(process, stop):
        wait(0)
        yield wait


def _ingest(road: Road, checkpoint: str, interval: float, applied: Any, stop: Any) -> None:
    settings: dict[str, Any] = {"reply_topics": road.topics[2:], "batch_interval": interval}
    with road.source() as source:
        graph = Graph(device="cpu", predecessors=True)
        pipeline = Pipeline(source, graph, checkpoint, **settings)

        def told(_: Any) -> None:
            applied.value = pipeline.stats.operations

        applied.value = 0
        with pipeline:
            pipeline.run(lambda _: stop.is_set(), told)
