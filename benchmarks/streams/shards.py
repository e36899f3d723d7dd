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
from ingest.cluster.niceness import OF_RAY
from ingest.cluster.partitioned import create_sharded
from ingest.formats.encode import encode_updates
from lpma.sharding import owners_of

from ..keys import Array

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
