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
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import algorithms
import ingest
import lpma
from ingest.cluster.cluster import Cluster
from ingest.cluster.partitioned import create_sharded

from .. import workloads
from ..report import Report, Setting
from ..stopwatch import WrongAnswer, median
from ..streams.kafka import NoKafka, brokers
from .shards import (
    PATIENCE_S,
    SHARDS,
    Embedded,
    Kafka,
    Parts,
    parts_of,
    ready,
    seconds_of_kill,
    wait_until_applied,
)

OPTIONS: dict[str, Any] = {"checkpoint_interval": 1e9, "checkpoint_operations": 1 << 60}
ROUNDS = 3
LOOK_S = 0.05  # between two looks at what is applied


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
            row = {"log": log.name, "what": name, "M ops/s": operations / found / 1e6}
            ratio = float(median(seconds[beside])) / float(found)
            report.add(row | {"seconds": found, "ratio": ratio})


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
        wait_until_applied(cluster, operations, LOOK_S)
        return time.perf_counter() - started


def _independent(log: Embedded | Kafka, parts: Parts, engine: str) -> float:
    """The same of pipelines of their own, one a partition."""
    context = multiprocessing.get_context("spawn")
    make: Any = context.Process if engine == "ray" else threading.Thread
    ready, done = (context.Barrier(SHARDS + 1) for _ in range(2))
    with log.new() as (source, names, write), tempfile.TemporaryDirectory() as state:
        topic = names.get("topic", "updates")
        workers = []
        for number in range(SHARDS):
            records = parts[ingest.Partition("updates", number)]
            count = sum(len(ingest.decode(record).src) for record in records)
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


def asked(setting: Setting, folder: Path, engines: list[str]) -> list[Report]:
    """The three tables."""
    loaded = 50_000 if setting.quick else 2_000_000
    rounds = 5 if setting.quick else 50
    kills = 1 if setting.quick else 5
    of = f"{loaded:,} edges in {SHARDS} shards"
    epochs = Report("cluster-epochs", f"milliseconds of an epoch, {of}")
    supersteps = Report("cluster-supersteps", f"milliseconds of a superstep, {of}")
    recovery = Report("cluster-recovery", f"seconds from the kill of a shard, {of}")
    edges = workloads.rmat(18, 0, loaded).stream(0, loaded)
    for engine in engines:
        with ExitStack() as opened:
            opened.enter_context(ready(engine))
            path = folder / f"asked-{engine}"
            log = opened.enter_context(ingest.SqliteLog(path))
            create_sharded(log, "updates", SHARDS)
            log.produce_parts(parts_of(*edges))
            state = folder / f"state-{engine}"
            running = opened.enter_context(Cluster(str(path), SHARDS, engine, checkpoint=state))
            running.wait_until_read(PATIENCE_S)
            _epochs(epochs, running, log, engine, rounds)
            _supersteps(supersteps, running, log, engine)
            _recovery(recovery, running, engine, kills)
        shutil.rmtree(state, ignore_errors=True)
    recovery.notes.append(
        "The kill is as of kill -9. The shard loads its checkpoint, replays its journal, and joins "
        "the next epoch; on Ray a new process starts and imports first."
    )
    supersteps.notes.append(
        "path: hops along a path, each a superstep of one vertex. whole: the same graph in one "
        "piece, on as many threads as there are cores."
    )
    return [epochs, supersteps, recovery]


def _epochs(report: Report, cluster: Cluster, log: Any, engine: str, rounds: int) -> None:
    for load in ("at rest", "beside a stream"):
        stopped = threading.Event()
        writer = threading.Thread(target=_write_until, args=(log, stopped))
        if load != "at rest":
            writer.start()
        samples = []
        for _ in range(rounds):
            started = time.perf_counter()
            cluster.epoch(PATIENCE_S)
            samples.append((time.perf_counter() - started) * 1e3)
            time.sleep(0.02)
        stopped.set()
        if writer.ident is not None:
            writer.join()
        report.add(
            {"engine": engine, "stream": load, "median": median(samples),
             "99 %": float(np.quantile(samples, 0.99)), "longest": max(samples)}
        )  # fmt: skip


def _write_until(log: Any, stopped: threading.Event) -> None:
    """Some 200,000 operations a second."""
    rng = np.random.default_rng(5)
    while not stopped.wait(0.1):
        src, dst = rng.integers(0, 1 << 18, (2, 20_000))
        log.produce_parts(parts_of(src, dst))


def _supersteps(report: Report, cluster: Cluster, log: Any, engine: str) -> None:
    steps = 200
    base = 1 << 20  # a path apart from the rest
    path = np.arange(base, base + steps, dtype=np.uint32)
    log.produce_parts(parts_of(path, path + 1))
    snapshot = cluster.snapshot(PATIENCE_S)
    rounds = 20

    def timed(action: Callable[[], Any]) -> float:
        action()
        started = time.perf_counter()
        action()
        return time.perf_counter() - started

    found = algorithms.bfs(snapshot, base)
    if found[base + steps] != steps:
        raise WrongAnswer(f"{found[base + steps]} hops of {steps}")
    whole = snapshot.gather()
    report.add(
        {
            "engine": engine,
            "path": timed(lambda: algorithms.bfs(snapshot, base)) / steps * 1e3,
            "PageRank": timed(lambda: algorithms.pagerank(snapshot, 0.85, 0.0, rounds))
            / rounds
            * 1e3,
            "PageRank, whole": timed(lambda: algorithms.pagerank(whole, 0.85, 0.0, rounds))
            / rounds
            * 1e3,
            "components": timed(lambda: algorithms.connected_components(snapshot)) * 1e3,
            "components, whole": timed(lambda: algorithms.connected_components(whole)) * 1e3,
        }
    )


def _recovery(report: Report, cluster: Cluster, engine: str, kills: int) -> None:
    taken = [seconds_of_kill(cluster, lambda: cluster.epoch(PATIENCE_S)) for _ in range(kills)]
    answers, epochs = zip(*taken, strict=True)
    report.add({"engine": engine, "to an answer": median(answers), "to an epoch": median(epochs),
                "longest": max(epochs), "kills": kills})  # fmt: skip
