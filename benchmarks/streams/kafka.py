"""From a real Kafka into a CPU store: operations per second, and the stages in which the time is
spent.

A topic is filled first and then read as fast as it goes, with a checkpoint directory, so that the
journal is written as in real use. The brokers are those of KAFKA_BOOTSTRAP; without it one is
started, as for the tests; it shares the cores. After every run the graph is compared with the edges
produced.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ingest
import lpma

from .. import workloads
from ..keys import Array
from ..model import Model
from ..report import Report, Setting
from ..stopwatch import Figure, WrongAnswer
from ..stores.base import Lpma
from .memory_source import RECORD, encoded

REPEATS = 3


def kafka(setting: Setting) -> Report:
    report = Report("kafka", "operations a second from a broker into the store; seconds by stage")
    columnar, rows = (400_000, 40_000) if setting.quick else (4_000_000, 500_000)
    workload = workloads.rmat(18, 100_000, columnar)
    src, dst = workload.stream(0, columnar)
    try:
        broker = brokers()
        with broker as bootstrap:
            form, records = f"columns, {RECORD:,} a record", encoded(src, dst)
            _measure(report, bootstrap, form, records, src, dst, setting)
            src, dst = src[:rows], dst[:rows]
            records = [
                ingest.encode_row(u, v, 1.0)
                for u, v in zip(src.tolist(), dst.tolist(), strict=True)
            ]
            _measure(report, bootstrap, "rows, one a record", records, src, dst, setting)
    except (NoKafka, ingest.SourceError) as error:
        print(f"kafka: skipped, {error}", file=sys.stderr)
        report.notes.append(f"Skipped: {error}")
        return report
    report.notes.append(
        "Median of the repeats. Poll: fetched, checked, taken apart. Buffer: decoded, journaled, "
        "cut into batches, checkpoints. Apply: the store. The broker and the client's own thread "
        "share the cores."
    )
    return report


def _measure(
    report: Report,
    bootstrap: str,
    form: str,
    records: list[bytes],
    src: Array,
    dst: Array,
    setting: Setting,
) -> None:
    topic = f"benchmark-{uuid.uuid4().hex[:12]}"
    with ingest.KafkaSink(bootstrap) as sink:
        sink.create_topic(topic)
        sink.produce_many(topic, records, 0)
    _drained(bootstrap, topic, src, dst)  # compiles what is not compiled yet
    runs = [_drained(bootstrap, topic, src, dst) for _ in range(1 if setting.quick else REPEATS)]
    total, poll, apply = sorted(runs)[len(runs) // 2]
    seconds = Figure(total, (run[0] for run in runs))
    row = {"form": form, "operations": len(src), "M ops/s": len(src) / seconds / 1e6}
    row |= {"k records/s": len(records) / seconds / 1e3, "seconds": seconds}
    row |= {"poll": poll, "buffer": total - poll - apply, "apply": apply}
    report.add(row | {"slowest M ops/s": len(src) / max(runs)[0] / 1e6})


def _drained(bootstrap: str, topic: str, src: Array, dst: Array) -> tuple[float, float, float]:
    """Seconds in all, in polls, in the store."""
    graph = lpma.Graph(device="cpu")
    with (
        tempfile.TemporaryDirectory() as directory,
        ingest.KafkaSource(bootstrap, [topic]) as source,
    ):
        pipeline = ingest.Pipeline(source, graph, directory, dead_letters=print, replies=print)
        started = time.perf_counter()
        pipeline.run(until="end")
        total = time.perf_counter() - started
        pipeline.close(checkpoint=False)
    if pipeline.stats.operations != len(src):
        raise WrongAnswer(f"{pipeline.stats.operations} operations of {len(src)}")
    held = Lpma()
    held.graph = graph
    held.verify(Model(src, dst).fingerprint)
    stages = pipeline.stats.stages.seconds()
    return total, stages["poll"], stages["apply"]


class NoKafka(Exception):
    """No broker runs, and none can be started."""


@contextmanager
def brokers() -> Iterator[str]:
    """The bootstrap of running brokers, or of one of our own."""
    if running := os.environ.get("KAFKA_BOOTSTRAP"):
        yield running
        return
    try:  # at hand in a checkout only
        tests = importlib.import_module("tests.support.broker")
    except ImportError as error:
        raise NoKafka(f"no brokers: set KAFKA_BOOTSTRAP ({error})") from None
    with tempfile.TemporaryDirectory() as directory, tests.Broker(Path(directory)) as broker:
        try:
            broker.start()
        except tests.Unavailable as error:
            raise NoKafka(str(error)) from None
        yield broker.bootstrap
