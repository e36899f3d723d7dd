"""Shards that die while they write a snapshot's Parquet files: the export is begun again, and ends
with a file a shard and the manifest, whatever was left."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from algorithms.sharded import read_manifest, read_parquet
from algorithms.sharded.parquet import file_name
from ingest import Cluster, ClusterError, EngineLost, PartitionedSink, SqliteLog, encode_updates
from ingest.cluster.desks import DeskWorkers
from ingest.cluster.engine import Handle

SHARDS = 2
EDGES = 300_000


class Slow(Handle):
    """Answers after a while, with an error if it is given one."""

    def __init__(self, number: int, after_s: float, error: Exception | None = None) -> None:
        self.number = number
        self.is_at_rest = False
        self._after_s, self._error = after_s, error

    def ask(self, method: str, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if method != "at_desk":
            future.set_result(None)
            return future

        def answer() -> None:
            time.sleep(self._after_s)
            self.is_at_rest = True
            if self._error is None:
                future.set_result(self.number)
            else:
                future.set_exception(self._error)

        threading.Thread(target=answer, daemon=True).start()
        return future

    def translated(self, error: BaseException) -> BaseException:
        return error

    def kill(self) -> None: ...

    def end(self) -> None: ...


@pytest.mark.parametrize(
    "error", [ClusterError("its process died", 0), LookupError("none"), OSError("the disk is full")]
)
def test_an_error_waits_for_the_others(error: Exception) -> None:
    """Of what they write, not of a superstep."""
    expected = ClusterError if isinstance(error, LookupError) else type(error)
    for method, waits in (("call", True), ("step", False)):
        late = [Slow(1, 0.3), Slow(2, 0.5, ClusterError("later", 2))]
        workers = DeskWorkers([Slow(0, 0.0, error), *late], 5, 10.0)
        with pytest.raises(expected, match=str(error)):
            getattr(workers, method)("write_parquet")
        assert [handle.is_at_rest for handle in late] == [waits] * 2


def test_nobody_waits_where_the_engine_is_gone() -> None:
    late = Slow(1, 5.0)
    workers = DeskWorkers([Slow(0, 0.0, EngineLost("Ray has ended")), late], 5, 10.0)
    with pytest.raises(EngineLost):
        workers.call("write_parquet")
    assert not late.is_at_rest


@pytest.mark.ray
def test_kills_during_an_export(ray_cluster: Any, sharded_log: SqliteLog, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    with PartitionedSink(sharded_log) as sink:
        for _ in range(3):
            columns = rng.integers(0, 100_000, (2, EDGES // 3))
            sink.produce_many("updates", [encode_updates(*columns)])
    with Cluster(sharded_log.path, SHARDS, "ray", checkpoint=tmp_path / "state") as cluster:
        cluster.wait_until_read()
        attempts = []
        for dying in range(SHARDS):
            for when in ("begun", "whole"):
                target = tmp_path / f"{when}-{dying}"
                attempts.append(_exported(cluster, target, dying, when))
                names = [file_name(number, SHARDS) for number in range(SHARDS)]
                assert sorted(os.listdir(target)) == sorted([*names, "manifest.json"])
                edges = cluster.snapshot().num_edges
                assert read_manifest(target).edges == len(read_parquet(target)) == edges
        assert max(attempts) > 1, "one was killed in time"


def _exported(cluster: Cluster, target: Path, dying: int, when: str) -> int:
    """Export, and kill a shard as soon as it has begun its file, or has it whole; the attempts."""
    attempts = 0
    name = file_name(dying, SHARDS)
    sought = f".writing-*/.{name}.*.tmp" if when == "begun" else f".writing-*/{name}"
    pid = cluster._handles[dying].call("status").pid

    def kill() -> None:
        while not list(target.glob(sought)):
            time.sleep(0.001)
        os.kill(pid, signal.SIGKILL)

    def work(snapshot: Any) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            threading.Thread(target=kill, daemon=True).start()
        snapshot.write_parquet(target)

    cluster.run(work, 120.0)
    return attempts
