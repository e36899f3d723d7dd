"""Shards that die while they write a snapshot's Parquet files: the export is begun again, and ends
with a file a shard and the manifest, whatever was left."""

from __future__ import annotations

import os
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from algorithms.sharded import read_manifest, read_parquet
from algorithms.sharded.parquet import file_name
from ingest import Cluster, ClusterError, EngineLost, PartitionedSink, SqliteLog, encode_updates
from ingest.cluster.engine import Handle
from ingest.cluster.reply_boxes import RemoteWorkers
from tests.support.killed_export import mortal_shard, order_of
from tests.support.waiting import HANGS_S

SHARDS = 2


class Busy(Handle):
    """At work until somebody waits for its answer, which is an error if it is given one."""

    def __init__(self, number: int, error: Exception | None = None) -> None:
        self.number = number
        self.is_at_rest = False
        self._error = error

    def ask(self, method: str, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if method != "at_box":
            future.set_result(None)
        return future

    def result_of(self, future: Future[Any], method: str, timeout_s: float) -> Any:
        if not future.done():
            self.is_at_rest = True
            if self._error is None:
                future.set_result(self.number)
            else:
                future.set_exception(self._error)
        return super().result_of(future, method, timeout_s)

    def translated(self, error: BaseException) -> BaseException:
        return error

    def kill(self) -> None: ...

    def end(self) -> None: ...


@pytest.mark.parametrize(
    "error", [ClusterError("its process died", 0), OSError("the disk is full")]
)
def test_an_error_waits_for_the_others(error: Exception) -> None:
    """Of what they write, not of a superstep."""
    for method, waits in (("call", True), ("step", False)):
        late = [Busy(1), Busy(2, ClusterError("later", 2))]
        workers = RemoteWorkers([Busy(0, error), *late], 5, 10.0)
        with pytest.raises(type(error), match=str(error)):
            getattr(workers, method)("write_parquet")
        assert [handle.is_at_rest for handle in late] == [waits] * 2


def test_nobody_waits_where_the_engine_is_gone() -> None:
    late = Busy(1)
    workers = RemoteWorkers([Busy(0, EngineLost("Ray has ended")), late], 5, 10.0)
    with pytest.raises(EngineLost):
        workers.call("write_parquet")
    assert not late.is_at_rest


@pytest.mark.ray
def test_kills_during_an_export(ray_cluster: Any, sharded_log: SqliteLog, tmp_path: Path) -> None:
    from ingest.cluster.ray_engine import RayEngine

    with PartitionedSink(sharded_log) as sink:
        columns = np.random.default_rng(4).integers(0, 1000, (2, 3000))
        sink.produce_many("updates", [encode_updates(*columns)])
    engine = RayEngine(partial(mortal_shard, tmp_path))
    with Cluster(sharded_log.path, SHARDS, engine, checkpoint=tmp_path / "state") as cluster:
        names = [file_name(number, SHARDS) for number in range(SHARDS)]
        for dying in range(SHARDS):
            for when in ("begun", "whole"):
                target = tmp_path / f"{when}-{dying}"
                order_of(tmp_path, dying).write_text(when)
                assert _exported(cluster, target) == 2, "it died once"
                assert sorted(os.listdir(target)) == sorted([*names, "manifest.json"])
                edges = cluster.snapshot(HANGS_S).num_edges
                assert read_manifest(target).edges == len(read_parquet(target)) == edges


def _exported(cluster: Cluster, target: Path) -> int:
    """How often the export was begun."""
    attempts = 0

    def work(snapshot: Any) -> None:
        nonlocal attempts
        attempts += 1
        snapshot.write_parquet(target)

    cluster.run(work, HANGS_S)
    return attempts
