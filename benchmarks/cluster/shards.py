"""Sharded streams for the benchmarks of a cluster: records by their owner, logs to put them in, and
a Ray of their own."""

from __future__ import annotations

import importlib
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import ingest
from ingest.cluster.cluster import Cluster
from ingest.cluster.niceness import OF_RAY
from ingest.cluster.partitioned import create_sharded
from ingest.formats.encode import encode_updates
from lpma.sharding import owners_of

from ..keys import Array
from ..stopwatch import WrongAnswer

SHARDS = 2
ROWS = 4096  # operations of a record, but of a partition's last
PATIENCE_S = 300.0

Parts = dict[ingest.Partition, list[bytes]]


def parts_of(src: Array, dst: Array, shards: int = SHARDS) -> Parts:
    """The records of each partition."""
    owners = owners_of(src, shards)
    found: Parts = {}
    for number in range(shards):
        rows = np.flatnonzero(owners == number)
        pieces = [rows[at : at + ROWS] for at in range(0, len(rows), ROWS)]
        found[ingest.Partition("updates", number)] = [
            encode_updates(src[piece], dst[piece]) for piece in pieces
        ]
    return found


def wait_until_applied(cluster: Cluster, operations: int, look_s: float) -> None:
    """Look after look_s seconds again: a look is a call to every shard."""
    deadline = time.perf_counter() + PATIENCE_S
    while (applied := _applied(cluster)) < operations:
        if time.perf_counter() > deadline:
            raise WrongAnswer(f"{applied} operations of {operations}")
        time.sleep(look_s)


def _applied(cluster: Cluster) -> int:
    return sum(0 if s.status is None else s.status.operations for s in cluster.status().shards)


def seconds_of_kill(cluster: Cluster, then: Callable[[], object] | None = None) -> list[float]:
    """From the kill of the first shard until a vertex of it is answered for again; and until
    `then` has returned."""
    shards = len(cluster.status().shards)
    vertex = int(np.flatnonzero(owners_of(np.arange(100), shards) == 0)[0])
    with cluster.client() as client:
        client.degree(vertex, timeout=PATIENCE_S)
        before = _incarnation(cluster)
        started = time.perf_counter()
        cluster._handles[0].kill()
        while _incarnation(cluster) == before:
            time.sleep(0.002)
        client.degree(vertex, timeout=PATIENCE_S)
        answered = time.perf_counter() - started
        if then is not None:
            then()
        return [answered, time.perf_counter() - started]


def _incarnation(cluster: Cluster) -> str | None:
    """Of the first shard; None while it is none."""
    status = cluster.status().shards[0].status
    return None if status is None else status.incarnation


@contextmanager
def ready(engine: str) -> Iterator[None]:
    """Within, a Ray of one node if the engine is Ray; never one that is there for somebody else."""
    if engine != "ray":
        yield
        return
    ray = importlib.import_module("ray")
    ray.init("local", num_cpus=2 * SHARDS, include_dashboard=False, log_to_driver=False,
             object_store_memory=150 << 20, namespace="lpma",
             _system_config={**OF_RAY})  # fmt: skip
    try:
        yield
    finally:
        ray.shutdown()


class Embedded:
    """Logs in files, a new one for each run."""

    name = "embedded log"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def new(self) -> Iterator[tuple[str, dict[str, Any], Callable[[Parts], object]]]:
        """(source, names of its topics for a cluster, what writes all parts)."""
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            path = str(Path(folder) / "log")
            with ingest.SqliteLog(path) as log:
                create_sharded(log, "updates", SHARDS)
                yield path, {}, log.produce_parts


class Kafka:
    """Topics of a broker, new ones for each run."""

    name = "Kafka"

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._runs = 0

    @contextmanager
    def new(self) -> Iterator[tuple[str, dict[str, Any], Callable[[Parts], object]]]:
        self._runs += 1
        topic = f"cluster-{time.time_ns()}-{self._runs}"
        with ingest.KafkaSink(self._bootstrap) as sink:
            create_sharded(sink, topic, SHARDS, queries=f"{topic}.queries")

            def write(parts: Parts) -> None:
                sink.produce_parts(
                    {ingest.Partition(topic, p.number): records for p, records in parts.items()}
                )

            names = {"topic": topic, "queries": f"{topic}.queries"}
            yield f"kafka://{self._bootstrap}", names, write
