"""What a cluster costs: shards beside as many pipelines that know nothing of each other, epochs,
supersteps, and a shard that is killed.

    cluster-rates       million operations a second that all shards apply together, from an embedded
                        log and from Kafka, in threads and on Ray; beside independent pipelines over
                        the same partitions, in threads and in processes; and with an epoch a second
    cluster-epochs      milliseconds of an epoch, at rest and beside a stream
    cluster-supersteps  milliseconds of a superstep that carries next to nothing, and of PageRank's
    cluster-recovery    seconds from the kill of a shard to the next epoch, and to an answer of its

All wait, ready, until the stream is there; so no start is counted. Rivals take turns. Every run's
edges are counted. Ray and Kafka are left out where they are not.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import ingest
import lpma
from ingest.cluster.cluster import Cluster

from .. import workloads
from ..report import Report, Setting
from ..stopwatch import WrongAnswer, median
from .cluster_asked import asked
from .kafka import NoKafka, brokers
from .shards import PATIENCE_S, ROWS, SHARDS, Embedded, Kafka, Parts, parts_of, ready

OPTIONS: dict[str, Any] = {"checkpoint_interval": 1e9, "checkpoint_operations": 1 << 60}
ROUNDS = 3
LOOK_S = 0.05  # between two looks at what is applied: each is a call to every shard


def cluster(setting: Setting) -> list[Report]:
    """All four tables."""
    with tempfile.TemporaryDirectory() as folder:
        engines = ["local", "ray"] if _has_ray() else ["local"]
        if len(engines) == 1:
            print("cluster: without Ray, which cannot be imported", file=sys.stderr)
        reports = [_rates(setting, Path(folder), engines)]
        reports += asked(setting, Path(folder), engines)
    return reports


def _has_ray() -> bool:
    return importlib.util.find_spec("ray") is not None


# Rates -----------------------------------------------------------------------------------------


def _rates(setting: Setting, folder: Path, engines: list[str]) -> Report:
    operations = 100_000 if setting.quick else 20_000_000
    report = Report(
        "cluster-rates",
        f"M operations/s of {SHARDS} shards together, {operations:,} operations of RMAT 18",
    )
    workload = workloads.rmat(18, 0, operations)
    edges = workload.stream(0, operations)
    parts = parts_of(*edges)
    _rates_from(report, setting, Embedded(folder), parts, operations, engines)
    try:
        with brokers() as bootstrap:
            _rates_from(report, setting, Kafka(bootstrap), parts, operations, engines)
    except (NoKafka, ingest.SourceError) as error:
        report.notes.append(f"Without Kafka: {error}")
    report.notes.append(
        "ratio: of a cluster's rate to that of the pipelines beside it, which read the same "
        "partitions in the same kind of threads or processes."
    )
    return report


def _rates_from(
    report: Report,
    setting: Setting,
    log: Embedded | Kafka,
    parts: Parts,
    operations: int,
    engines: list[str],
) -> None:
    runs: dict[str, Callable[[], float]] = {}
    for engine in engines:
        beside = "threads" if engine == "local" else "processes"
        clustered = partial(_clustered, log, parts, operations, engine)
        runs[f"pipelines in {beside}"] = partial(_independent, log, parts, engine)
        runs[f"cluster, {engine}"] = partial(clustered, None)
        runs[f"cluster, {engine}, an epoch a second"] = partial(clustered, 1.0)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(1 if setting.quick else ROUNDS):
        for name, run in runs.items():
            seconds[name].append(run())
    for engine in engines:
        beside = f"pipelines in {'threads' if engine == 'local' else 'processes'}"
        for name in (beside, f"cluster, {engine}", f"cluster, {engine}, an epoch a second"):
            found = median(seconds[name])
            report.add(
                {
                    "log": log.name,
                    "what": name,
                    "M ops/s": operations / found / 1e6,
                    "seconds": found,
                    "ratio": float(median(seconds[beside])) / float(found),
                }
            )


def _clustered(
    log: Embedded | Kafka, parts: Parts, operations: int, engine: str, interval_s: float | None
) -> float:
    """Seconds from the first write until every shard has applied all."""
    with (
        ready(engine),
        log.new() as (source, names, write),
        tempfile.TemporaryDirectory() as state,
        Cluster(
            source, SHARDS, engine, checkpoint=state, epoch_interval_s=interval_s, **names,
            **OPTIONS,
        ) as cluster,
    ):  # fmt: skip
        started = time.perf_counter()
        write(parts)
        deadline = started + PATIENCE_S
        while _applied(cluster) < operations:
            if time.perf_counter() > deadline:
                raise WrongAnswer(f"{_applied(cluster)} operations of {operations}")
            time.sleep(LOOK_S)
        return time.perf_counter() - started


def _applied(cluster: Cluster) -> int:
    return sum(0 if s.status is None else s.status.operations for s in cluster.status().shards)


def _independent(log: Embedded | Kafka, parts: Parts, engine: str) -> float:
    """The same of pipelines of their own, one a partition."""
    context = multiprocessing.get_context("spawn")
    make: Any = context.Process if engine == "ray" else threading.Thread
    ready, done = (context.Barrier(SHARDS + 1) for _ in range(2))
    with log.new() as (source, names, write), tempfile.TemporaryDirectory() as state:
        topic = names.get("topic", "updates")
        workers = []
        for number in range(SHARDS):
            count = operations_of(parts, number)
            arguments = (source, topic, number, f"{state}/{number}", count, ready, done)
            workers.append(make(target=pipeline_of, args=arguments, daemon=True))
        for worker in workers:
            worker.start()
        ready.wait(PATIENCE_S)
        started = time.perf_counter()
        write(parts)
        done.wait(PATIENCE_S)
        seconds = time.perf_counter() - started
        for worker in workers:
            worker.join()
    return seconds


def operations_of(parts: Parts, number: int) -> int:
    records = parts[ingest.Partition("updates", number)]
    return sum(len(ingest.decode(record).src) for record in (records[0], records[-1])) + ROWS * max(
        0, len(records) - 2
    )


def pipeline_of(
    source: str, topic: str, number: int, state: str, count: int, ready: Any, done: Any
) -> None:
    """Apply the operations of one partition: what a worker of `_independent` does."""
    partitions = {topic: [number]}
    stream: Any
    if source.startswith("kafka://"):
        address = source.removeprefix("kafka://")
        stream = ingest.KafkaSource(address, [topic], partitions=partitions)
    else:
        stream = ingest.SqliteLog(source, (topic,), partitions=partitions)
    with stream:
        graph = lpma.Graph(device="cpu")
        pipeline = ingest.Pipeline(
            stream, graph, state, dead_letters=print, replies=print, **OPTIONS
        )
        ready.wait(PATIENCE_S)
        pipeline.run(until=count)
        done.wait(PATIENCE_S)
        pipeline.close(checkpoint=False)
