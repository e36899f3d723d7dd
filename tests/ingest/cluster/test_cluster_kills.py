"""Whatever dies of a cluster, no update is lost or applied twice, no epoch is torn, and it answers
again.

The stream is a path: edge k leads from vertex k to k + 1, three in each write. So an epoch is whole
if it holds edges 0 … n − 1, each once, and n is a multiple of three."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest import Client, Cluster, PartitionedSink, SqliteLog, encode_updates
from ingest.timers import now_ms
from tests.conftest import soak, told_by_soak
from tests.support.cluster_driver import Driver
from tests.support.waiting import HANGS_S, wait_for

SHARDS = 4
EACH = 3  # edges of a write
ASKED = 8  # vertices, that have to have their edges
SETTINGS: dict[str, Any] = {"batch_interval": 0.01, "checkpoint_interval": 0.3}


class PathStream:
    """Writes the path in a thread of its own, while the block runs."""

    def __init__(self, log: SqliteLog) -> None:
        self._sink = PartitionedSink(SqliteLog(log.path))
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.edges = 0

    def _write(self) -> None:
        while not self._stopped.wait(0.004):
            ids = np.arange(self.edges, self.edges + EACH)
            self._sink.produce_many("updates", [encode_updates(ids, ids + 1)])
            self.edges += EACH

    def await_more(self, edges: int) -> None:
        """Wait until so many more were written."""
        target = self.edges + edges
        wait_for(lambda: self.edges >= target or not self._thread.is_alive(), f"{target} edges")
        assert self.edges >= target, "the writer failed"

    def stop(self) -> int:
        """How many edges were written."""
        self._stopped.set()
        self._thread.join()
        return self.edges

    def __enter__(self) -> PathStream:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


def check_whole(snapshot: Any) -> int:
    """That an epoch holds the beginning of the path; how many edges."""
    whole = snapshot.gather().to_numpy()
    indptr, found = whole["indptr"], whole["indices"]
    edges = len(found)
    path = np.arange(edges)
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    assert np.array_equal(rows, path), "an edge is not there"
    assert np.array_equal(found, path + 1), "an edge is not there"
    assert np.all(whole["weights"] == 1.0), "an edge was applied twice"
    assert edges % EACH == 0, "an epoch is torn"
    return edges


@pytest.mark.soak
def test_kills_of_shards(
    engine: str, sharded_log: SqliteLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One, or several at once, at any place of a stream that flows."""
    rng = np.random.default_rng(5)
    rounds = soak(5, 200) if engine == "local" else soak(2, 20)
    kills, took_s = 0, []
    with (
        Cluster(sharded_log, SHARDS, engine, checkpoint=tmp_path / "state", **SETTINGS) as cluster,
        cluster.client(timeout=HANGS_S, max_age_s=0.0) as client,
        PathStream(sharded_log) as path,
    ):
        path.await_more(ASKED)
        check_runs_again(cluster, engine)
        seen, restarts = 0, cluster.status().restarts
        for _ in range(rounds):
            path.await_more(int(rng.integers(0, 200)))
            dying = rng.choice(SHARDS, rng.integers(1, SHARDS), replace=False).tolist()
            kills += len(dying)
            _kill(cluster, engine, dying)
            began = time.monotonic()
            assert client.hops(0, 2).rows == 2
            assert all(client.degree(vertex).answer == [1] for vertex in range(ASKED))
            took_s.append(time.monotonic() - began)
            edges = check_whole(cluster.snapshot(HANGS_S))
            assert edges >= seen, "an epoch went back"
            seen = edges
            assert cluster.status().restarts >= restarts + kills, "each that died was started again"
        written = path.stop()
        assert check_whole(cluster.snapshot(HANGS_S)) == written
        assert cluster.status().problems == ()
    told_by_soak(
        capsys,
        f"{engine}: {kills} kills of shards, {rounds + 1} epochs checked, {written:,} edges; "
        f"answered again after {np.median(took_s):.2f} s, {max(took_s):.2f} s at most",
    )


def _kill(cluster: Cluster, engine: str, shards: list[int]) -> None:
    """Returns when they are dead."""
    if engine == "local":
        for number in shards:
            cluster._handles[number].kill()
    else:
        pids = [cluster._handles[number].call("status").pid for number in shards]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not any(map(_lives, pids)), f"the end of {pids}")


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def check_runs_again(cluster: Cluster, engine: str) -> None:
    """`run` takes another snapshot if the one before went with its shard, which it does on Ray."""
    epochs = []

    def work(snapshot: Any) -> bool:
        epochs.append(snapshot.epoch)
        if len(epochs) == 1:
            _kill(cluster, engine, [2])
        return bool(snapshot.degrees().sum() == snapshot.num_edges)

    assert cluster.run(work, HANGS_S)
    assert len(epochs) == (1 if engine == "local" else 2)


@pytest.mark.soak
def test_kills_of_the_driver(
    engine: str, sharded_log: SqliteLog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """kill -9 of the coordinator's process. On Ray the shards go on answering without it."""
    state, env = tmp_path / "state", {}
    if engine == "ray":
        import ray

        env = {"RAY_ADDRESS": ray.get_runtime_context().gcs_address}
    epochs = [0]
    with PathStream(sharded_log) as path:
        for _ in range(kills := soak(2, 20)):
            with Driver(sharded_log.path, state, engine, SHARDS, **env) as driver:
                for _ in range(3):
                    found = driver.next()
                    assert found["epoch"] > epochs[-1], "epochs rise for ever"
                    assert found["edges"] % EACH == 0, "an epoch is torn"
                    epochs.append(found["epoch"])
                driver.kill()
            if engine == "ray":
                with Client(SqliteLog(sharded_log.path, ())) as client:
                    assert client.degree(0).answer == [1]
        written = path.stop()
    with Driver(sharded_log.path, state, engine, SHARDS, **env) as driver:
        driver.until(written)
        driver.close()
    with Cluster(sharded_log, SHARDS, checkpoint=state, **SETTINGS) as cluster:
        assert check_whole(cluster.snapshot(HANGS_S)) == written
    told_by_soak(
        capsys,
        f"{engine}: {kills} kills of the driver, {len(epochs)} epochs checked, {written:,} edges",
    )


@contextmanager
def machines(count: int) -> Iterator[Any]:
    """A Ray of so many nodes beside the head, which has no room for shards."""
    from ray.cluster_utils import Cluster as Nodes

    head = {"num_cpus": 0, "object_store_memory": 80 << 20, "include_dashboard": False}
    nodes = Nodes(initialize_head=True, head_node_args=head)
    try:
        for _ in range(count):
            nodes.add_node(num_cpus=2, object_store_memory=80 << 20)
        yield nodes
    finally:
        nodes.shutdown()


def _shards_on(node: Any, pids: list[int]) -> int:
    """How many of these processes a node's raylet has started."""
    raylet = node.all_processes["raylet"][0].process.pid
    parents = [int(Path(f"/proc/{pid}/stat").read_text().rsplit(")")[1].split()[1]) for pid in pids]
    return parents.count(raylet)


@pytest.mark.ray
def test_kills_of_rays_processes(ray_cluster: Any, sharded_log: SqliteLog, tmp_path: Path) -> None:
    """All processes of a machine: its shards go on elsewhere. All of Ray: the driver ends with an
    error, however patient it is, and another one goes on."""
    state = tmp_path / "state"
    with PathStream(sharded_log) as path:
        with (
            machines(2) as nodes,
            Driver(sharded_log.path, state, "ray", 2, RAY_ADDRESS=nodes.address) as driver,
        ):
            first = driver.next()
            of_node = {node: _shards_on(node, first["pids"]) for node in nodes.worker_nodes}
            assert sum(of_node.values()) == 2
            lost = max(of_node, key=lambda node: of_node[node])
            nodes.remove_node(lost, allow_graceful=False)
            gone_ms = now_ms()
            while not set(first["pids"]) - set((found := driver.next_from(gone_ms))["pids"]):
                assert found["edges"] % EACH == 0  # its processes live on for a while
            print(f"\na machine with {of_node[lost]} shards: whole again after "
                  f"{(now_ms() - gone_ms) / 1000:.1f} s")  # fmt: skip
            assert found["edges"] >= first["edges"]
            assert found["edges"] % EACH == 0
            nodes.shutdown()
            driver.failed()
        with machines(1) as nodes:
            written = path.stop()
            with Driver(sharded_log.path, state, "ray", 2, RAY_ADDRESS=nodes.address) as driver:
                driver.until(written)
    with Cluster(sharded_log, 2, checkpoint=state, **SETTINGS) as cluster:
        assert check_whole(cluster.snapshot(HANGS_S)) == written
