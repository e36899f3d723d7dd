"""A cluster has one driver at a time, whatever its engine: a second one leaves the first alone."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ingest import Cluster, LockedError, PartitionedSink, SqliteLog, encode_updates
from ingest.cluster.control import OF_DRIVER, DirectoryLock
from ingest.errors import CheckpointError
from tests.support.cluster_driver import Driver

SHARDS = 2
HOLDS = """
import sys
from ingest.cluster.control import OF_DRIVER, DirectoryLock
with DirectoryLock(sys.argv[1], OF_DRIVER):
    print("held", flush=True)
    sys.stdin.read()
"""
ROOT = Path(__file__).parents[3]


def cluster_of(log: SqliteLog, directory: Path, engine: str, **options: Any) -> Cluster:
    return Cluster(log, SHARDS, engine, checkpoint=directory, batch_interval=0.01, **options)


# The lock ------------------------------------------------------------------------------------


def test_another_process_holds_it(tmp_path: Path) -> None:
    state = tmp_path / "a" / "state"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(state)], cwd=ROOT, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        (tmp_path / "link").symlink_to(state)
        for name in (state, tmp_path / "link"):
            told = f"{name}: another cluster runs here (process {holder.pid} on "
            with pytest.raises(LockedError, match=re.escape(told + socket.gethostname())):
                DirectoryLock(name, OF_DRIVER)
        (state / OF_DRIVER).write_text("who")
        with pytest.raises(LockedError, match="another cluster runs here: stop it"):
            DirectoryLock(state, OF_DRIVER)
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    DirectoryLock(state, OF_DRIVER).close()


def test_it_is_this_processs_once(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path, OF_DRIVER)
    with pytest.raises(LockedError, match=r"\(this process on .*, since 20"):
        DirectoryLock(tmp_path, OF_DRIVER)
    lock.close()
    lock.close()
    with DirectoryLock(tmp_path, OF_DRIVER), DirectoryLock(tmp_path / "another", OF_DRIVER):
        pass


def test_a_place_without_locks(tmp_path: Path) -> None:
    (tmp_path / "state" / OF_DRIVER).mkdir(parents=True)
    with pytest.raises(CheckpointError, match="cannot be locked"):
        DirectoryLock(tmp_path / "state", OF_DRIVER)


# Clusters ------------------------------------------------------------------------------------


def test_a_second_cluster_leaves_the_first_alone(
    engine: str, sharded_log: SqliteLog, tmp_path: Path
) -> None:
    """Of the same specification or another one, by the same name or another one; on any engine."""
    PartitionedSink(sharded_log).produce_many("updates", [encode_updates([1, 2, 3], [2, 3, 1])])
    state, link = tmp_path / "state", tmp_path / "link"
    link.symlink_to(state)
    with cluster_of(sharded_log, state, engine) as first:
        hosts = [first._handles[n].call("status").name for n in range(SHARDS)]
        for place, on, options in [
            (state, engine, {}), (state, engine, {"batch_size": 100}), (link, engine, {}),
            (state, "local", {}),
        ]:  # fmt: skip
            with pytest.raises(LockedError, match="another cluster runs here"):
                cluster_of(sharded_log, place, on, **options)
        assert first.epoch().num_entries == 3
        assert [first._handles[n].call("status").name for n in range(SHARDS)] == hosts
        assert first.status().problems == ()
    with cluster_of(sharded_log, state, engine, batch_size=100) as second:
        assert second.epoch().num_entries == 3


def test_what_is_refused_is_not_locked(sharded_log: SqliteLog, tmp_path: Path) -> None:
    """Nor is a directory made for it; a cluster that does not start holds nothing."""
    state = tmp_path / "state"
    with pytest.raises(Exception, match="devices"):
        cluster_of(sharded_log, state, "local", devices="cuda:99")
    assert not state.exists()
    (state / "shard-0001").mkdir(parents=True)
    (state / "shard-0001" / "lock").mkdir()
    with pytest.raises(Exception, match="shard 1"):
        cluster_of(sharded_log, state, "local")
    (state / "shard-0001" / "lock").rmdir()
    with cluster_of(sharded_log, state, "local") as cluster:
        assert cluster.epoch().num_entries == 0


@pytest.mark.ray
def test_a_killed_driver_holds_nothing(
    ray_cluster: Any, sharded_log: SqliteLog, tmp_path: Path
) -> None:
    """Its actors are adopted by the next one; not by one that comes while it lives."""
    PartitionedSink(sharded_log).produce_many("updates", [encode_updates([1, 2, 3], [2, 3, 1])])
    state = tmp_path / "state"
    address = ray_cluster.get_runtime_context().gcs_address
    with Driver(sharded_log.path, state, "ray", SHARDS, RAY_ADDRESS=address) as driver:
        pids = driver.next()["pids"]
        with pytest.raises(LockedError, match="another cluster runs here"):
            Cluster(sharded_log, SHARDS, "ray", checkpoint=state)
        assert driver.next()["pids"] == pids
        driver.kill()
    with Cluster(sharded_log, SHARDS, "ray", checkpoint=state) as cluster:
        assert [handle.call("status").pid for handle in cluster._handles] == pids
        assert cluster.epoch().num_entries == 3
