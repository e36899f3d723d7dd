"""What is asked of a cluster that holds a graph: epochs, supersteps, and a shard that is killed.
Part of `cluster.py`."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

import algorithms
import ingest
from ingest.cluster.cluster import Cluster
from ingest.cluster.partitioned import create_sharded
from lpma.sharding import owners_of

from .. import workloads
from ..report import Report, Setting
from ..stopwatch import WrongAnswer, median
from .shards import PATIENCE_S, SHARDS, parts_of, ready


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


def _incarnation(cluster: Cluster) -> str | None:
    """Of the first shard; None while it is none."""
    status = cluster.status().shards[0].status
    return None if status is None else status.incarnation


def _recovery(report: Report, cluster: Cluster, engine: str, kills: int) -> None:
    vertex = int(np.flatnonzero(owners_of(np.arange(100), SHARDS) == 0)[0])
    epochs, answers = [], []
    with cluster.client() as client:
        for _ in range(kills):
            client.degree(vertex, timeout=PATIENCE_S)
            alive = _incarnation(cluster)
            started = time.perf_counter()
            cluster._handles[0].kill()
            while _incarnation(cluster) == alive:
                time.sleep(0.002)
            client.degree(vertex, timeout=PATIENCE_S)
            answers.append(time.perf_counter() - started)
            cluster.epoch(PATIENCE_S)
            epochs.append(time.perf_counter() - started)
    report.add({"engine": engine, "to an answer": median(answers), "to an epoch": median(epochs),
                "longest": max(epochs), "kills": kills})  # fmt: skip
