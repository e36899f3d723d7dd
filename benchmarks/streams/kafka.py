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
from typing import Any

import numpy as np

import ingest
import lpma

from .. import workloads
from ..keys import Array
from ..report import Report, Setting
from ..stopwatch import Figure, WrongAnswer

ROWS = 4096  # operations of a columnar record
REPEATS = 3


class _TimedSource:
    """A source whose polls are timed."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.seconds = 0.0

    def poll(self, max_records: int, timeout: float) -> Any:
        started = time.perf_counter()
        polled = self._source.poll(max_records, timeout)
        self.seconds += time.perf_counter() - started
        return polled

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)


def kafka(setting: Setting) -> Report:
    report = Report("kafka", "operations a second from a broker into the store; seconds by stage")
    columnar, rows = (400_000, 40_000) if setting.quick else (4_000_000, 500_000)
    workload = workloads.rmat(18, 100_000, columnar)
    src, dst = workload.stream(0, columnar)
    try:
        broker = brokers()
        with broker as bootstrap:
            batches = [slice(i, i + ROWS) for i in range(0, columnar, ROWS)]
            records = [ingest.encode_updates(src[part], dst[part]) for part in batches]
            _measure(report, bootstrap, f"columns, {ROWS:,} a record", records, src, dst, setting)
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
    report.add(
        {
            "form": form,
            "operations": len(src),
            "M ops/s": len(src) / seconds / 1e6,
            "k records/s": len(records) / seconds / 1e3,
            "seconds": seconds,
            "poll": poll,
            "buffer": total - poll - apply,
            "apply": apply,
            "slowest M ops/s": len(src) / max(runs)[0] / 1e6,
        }
    )


def _drained(bootstrap: str, topic: str, src: Array, dst: Array) -> tuple[float, float, float]:
    """Seconds in all, in polls, in the store."""
    graph = lpma.Graph(device="cpu")
    with (
        tempfile.TemporaryDirectory() as directory,
        ingest.KafkaSource(bootstrap, [topic]) as source,
    ):
        timed = _TimedSource(source)
        pipeline = ingest.Pipeline(timed, graph, directory, dead_letters=print, replies=print)
        started = time.perf_counter()
        pipeline.run(until="end")
        total = time.perf_counter() - started
        pipeline.close(checkpoint=False)
    if pipeline.operations != len(src):
        raise WrongAnswer(f"{pipeline.operations} operations of {len(src)}")
    snapshot = graph.snapshot()
    expected = np.unique(src.astype(np.uint64) << np.uint64(32) | dst.astype(np.uint64))
    found = np.repeat(np.arange(snapshot.num_rows, dtype=np.uint64), np.diff(snapshot.indptr))
    if not np.array_equal(found << np.uint64(32) | snapshot.indices, expected):
        raise WrongAnswer("the graph is not what was produced")
    return total, timed.seconds, sum(batch.seconds for batch in pipeline.history)


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
