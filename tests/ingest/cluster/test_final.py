"""What no later attempt can mend ends every call at once, and says what to do: ids too large for a
snapshot, a cluster that was closed, a Ray that is gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ingest
from ingest import Ask, Cluster, ClusterError, PartitionedSink, SqliteLog, encode_updates
from ingest.cli.cluster._actions import Actions
from ingest.cli.cluster._run import _watch
from ingest.cluster import engine as engine_module
from ingest.cluster.control import ControlError, ControlServer, ask
from ingest.cluster.coordinator import Coordinator
from ingest.cluster.engine import Engine, Handle, LocalEngine
from ingest.cluster.spec import ShardSpec
from ingest.errors import ClusterClosed, EngineLost, SnapshotRefused
from lpma import Kind
from lpma.sharding import owners_of
from tests.support.waiting import HANGS_S, wait_for

SHARDS = 2
FAR = (1 << 28) + 7  # the first row beyond what a snapshot may have is 2^28 − 1
AT_ONCE_S = 60.0
LONG_S = HANGS_S  # what calls are given that must not take it
ROOT = Path(__file__).parents[3]


def cluster_of(log: SqliteLog, directory: Path, engine: str | Engine = "local") -> Cluster:
    return Cluster(log, SHARDS, engine, checkpoint=directory / "state", batch_interval=0.01)


def at_once(call: Callable[[], Any], error: type[Exception], told: str) -> Any:
    """That the call raises this soon; the error."""
    began = time.monotonic()
    with pytest.raises(error, match=told) as raised:
        call()
    assert time.monotonic() - began < AT_ONCE_S
    return raised.value


def every_call(cluster: Cluster) -> Iterable[Callable[[], Any]]:
    yield lambda: cluster.epoch(LONG_S)
    yield lambda: cluster.snapshot(LONG_S)
    yield lambda: cluster.run(lambda snapshot: snapshot.num_rows, LONG_S)
    yield lambda: cluster.wait_until_read(LONG_S)


# Snapshots -----------------------------------------------------------------------------------


def test_ids_too_large_for_a_snapshot(sharded_log: SqliteLog, tmp_path: Path) -> None:
    sink = PartitionedSink(sharded_log)
    sink.produce_many("updates", [encode_updates([1, FAR], [2, 3])])
    owner = int(owners_of([FAR], SHARDS)[0])
    with cluster_of(sharded_log, tmp_path) as cluster, cluster.client(timeout=LONG_S) as client:
        assert cluster.epoch().num_entries == 2
        marks: list[int] = []
        mark = cluster._coordinator._mark
        assert mark is not None

        def noted(epoch: int) -> int:
            marks.append(epoch)
            return mark(epoch)

        cluster._coordinator._mark = noted
        told = rf"shard {owner}: no snapshot: indptr for ids up to {FAR} .* smaller ids.*names=True"
        for call in (lambda: cluster.snapshot(LONG_S), lambda: cluster.run(len, LONG_S)):  # type: ignore[arg-type]
            assert at_once(call, SnapshotRefused, told).shard == owner
        refused = at_once(lambda: client.hops(1, 2), ingest.QueryRefused, told).reply
        assert (refused.error, len(marks)) == ("memory", 3), "markers are written once a call"
        replies = client.ask_many([Ask(Kind.DEGREE, 1), Ask(Kind.HOPS, 1, steps=1)])
        assert [reply.error for reply in replies] == [None, "memory"]
        actions = Actions("log", tmp_path)
        actions.cluster = cluster
        with ControlServer(tmp_path / "control", actions.by_name()) as server:
            server.start()
            given: Any = {"target": str(tmp_path / "parts"), "timeout_s": LONG_S, "view": {}}
            error = at_once(
                lambda: ask(tmp_path / "control", "snapshot", **given),
                ControlError,
                told,
            )
            assert error.kind == "SnapshotRefused"
        assert not (tmp_path / "parts").exists()
        until_forgotten(cluster)
        sink.produce_many("updates", [encode_updates([FAR], [3], kind=Kind.DELETE)])
        assert client.hops(1, 2).rows == 1, "the stream went on, and the ids are small again"


def until_forgotten(cluster: Cluster) -> None:
    """The other shards hold nothing of an epoch that one refused."""

    def held() -> list[Any]:
        return [view.status and view.status.held for view in cluster.status().shards]

    wait_for(lambda: not any(held()), "that nothing is held")


def test_ids_too_large_where_the_writer_marks(sharded_log: SqliteLog, tmp_path: Path) -> None:
    sink, ended = PartitionedSink(sharded_log), threading.Event()
    sink.produce_many("updates", [encode_updates([1, FAR], [2, 3])])

    def write() -> None:
        while not ended.wait(0.1):
            sink.mark(time.time_ns() // 1_000_000)

    with cluster_of(sharded_log, tmp_path) as cluster:
        writer = threading.Thread(target=write)
        writer.start()
        try:
            coordinator = Coordinator(cluster._handles, None)
            at_once(lambda: coordinator.epoch(LONG_S, hold=True), SnapshotRefused, "smaller ids")
            assert coordinator.epoch(LONG_S).num_entries == 2, "an epoch without a snapshot is one"
        finally:
            ended.set()
            writer.join()


# Times ---------------------------------------------------------------------------------------


def test_calls_wait_as_long_as_it_takes(sharded_log: SqliteLog, tmp_path: Path) -> None:
    with cluster_of(sharded_log, tmp_path) as cluster, cluster.client() as client:
        actions = Actions("log", tmp_path)
        actions.cluster = cluster
        directory = tmp_path / "control"
        with ControlServer(directory, actions.by_name()) as server:
            server.start()
            for long_s in (float("inf"), 1e308, 9e18, 1e12, threading.TIMEOUT_MAX):
                assert cluster.epoch(long_s).num_entries == 0
                assert cluster.snapshot(long_s).num_edges == 0
                assert cluster.run(lambda snapshot: snapshot.num_rows, long_s) == 0
                assert cluster.status(long_s).problems == ()
                cluster.wait_until_read(long_s)
                assert client.degree(1, timeout=long_s).answer.tolist() == [0]  # type: ignore[union-attr]
                assert client.hops(1, 1, timeout=long_s).rows == 0
                assert ask(directory, "epoch", wait_s=long_s, timeout_s=long_s)["edges"] == [0, 0]


def test_what_is_no_time_is_refused(sharded_log: SqliteLog, tmp_path: Path) -> None:
    no_times: list[Any] = [float("nan"), -1, "1", None]
    with cluster_of(sharded_log, tmp_path) as cluster, cluster.client() as client:
        for given in no_times:
            for call in (
                lambda: cluster.epoch(given),  # noqa: B023
                lambda: cluster.snapshot(given),  # noqa: B023
                lambda: cluster.run(len, given),  # type: ignore[arg-type]  # noqa: B023
                lambda: cluster.status(given),  # noqa: B023
                lambda: cluster.wait_until_read(given),  # noqa: B023
            ):
                at_once(call, ClusterError, "timeout_s is .*: expected seconds")
            at_once(
                lambda: ask(tmp_path, "epoch", wait_s=given),  # noqa: B023
                ControlError,
                "wait_s is",
            )
            if given is not None:
                at_once(lambda: client.degree(1, timeout=given), ingest.QueryError, "timeout is")  # noqa: B023


# Closing -------------------------------------------------------------------------------------


def test_after_the_end(sharded_log: SqliteLog, tmp_path: Path) -> None:
    cluster = cluster_of(sharded_log, tmp_path)
    closed, left = cluster.client(timeout=LONG_S), cluster.client(timeout=LONG_S)
    closed.close()
    for client in (closed, left):
        for asked in (lambda: client.degree(1), lambda: client.hops(1, 1)):  # noqa: B023
            at_once(asked, ingest.QueryError, "client was closed|cluster was closed")
        cluster.close()
    for call in (*every_call(cluster), cluster.status, cluster.client):
        at_once(call, ClusterClosed, "this cluster was closed: make another")
    cluster.close()
    left.close()


class Turn:
    """Of a coordinator: a lock that counts who asks for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.release = self._lock.release
        self.asked: list[threading.Thread] = []

    def acquire(self, timeout: float) -> bool:
        self.asked.append(threading.current_thread())
        return self._lock.acquire(timeout=timeout)


def test_what_goes_on_at_the_end(sharded_log: SqliteLog, tmp_path: Path) -> None:
    """An epoch that would never close, and whoever asked for it through the socket."""
    cluster, turn, marked = cluster_of(sharded_log, tmp_path), Turn(), threading.Event()

    def mark(epoch: int) -> int:
        marked.set()
        return epoch  # and nothing is written

    cluster._coordinator._turn = turn  # type: ignore[assignment]
    cluster._coordinator._mark = mark
    actions = Actions("log", tmp_path)
    actions.cluster = cluster
    found: list[Exception] = []

    def asking() -> None:
        try:
            ask(tmp_path / "control", "epoch", timeout_s=LONG_S)
        except ControlError as error:
            found.append(error)

    with ControlServer(tmp_path / "control", actions.by_name()) as server:
        server.start()
        waiting = [threading.Thread(target=asking)]
        waiting += [threading.Thread(target=_noted, args=(c, found)) for c in every_call(cluster)]
        for thread in waiting:
            thread.start()
        wait_for(lambda: len(turn.asked) == len(waiting) and marked.is_set(), "them all")
        began = time.monotonic()
        cluster.close()
        for thread in waiting:
            thread.join(AT_ONCE_S)
        assert time.monotonic() - began < AT_ONCE_S
    kinds = sorted(getattr(e, "kind", type(e).__name__) for e in found)
    assert kinds == ["ClusterClosed"] * 5


def _noted(call: Callable[[], Any], found: list[Exception]) -> None:
    try:
        call()
    except ClusterError as error:
        found.append(error)


# Engines -------------------------------------------------------------------------------------


class LosableEngine(LocalEngine):
    """One that is gone when `why` says so: calls are never answered then."""

    why: str | None = None

    def launch(self, spec: ShardSpec) -> Any:
        handle = super().launch(spec)
        asks = handle.ask

        def asked(method: str, *args: Any) -> Future[Any]:
            return asks(method, *args) if self.why is None else Future()

        def check() -> None:
            if self.why is not None:
                raise EngineLost(self.why)

        handle.ask, handle.check = asked, check  # type: ignore[method-assign]
        return handle

    def problem(self) -> str | None:
        return self.why


class Screen:
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, line: str) -> None:
        self.said.append(line)


def test_a_lost_engine(
    sharded_log: SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "LOOK_S", 0.1)
    sink, engine = PartitionedSink(sharded_log), LosableEngine()
    sink.produce_many("updates", [encode_updates(range(50), range(1, 51))])
    cluster = cluster_of(sharded_log, tmp_path, engine)
    client, screen = cluster.client(timeout=LONG_S), Screen()
    actions = Actions("log", tmp_path)
    actions.cluster = cluster
    assert client.hops(0, 1).rows == 1
    engine.why = "it is gone"
    at_once(lambda: cluster.epoch(LONG_S), EngineLost, "it is gone")
    problems = cluster.status().problems
    assert problems == ("it is gone",), "and not once more for each shard"
    assert json.loads(cluster.status().to_json())["engine_problem"] == "it is gone"
    for call in every_call(cluster):
        at_once(call, EngineLost, "it is gone")
    for asked in (lambda: client.degree(1), lambda: client.hops(1, 1)):
        at_once(asked, ingest.QueryError, "it is gone")
    # `lpma cluster run` ends, so that whoever started it starts it again.
    at_once(lambda: _watch(actions, threading.Event(), screen), EngineLost, "it is gone")  # type: ignore[arg-type]
    assert len(screen.said) == 1
    at_once(cluster.close, EngineLost, "it is gone")
    client.close()
    handles: list[Handle] = cluster._handles
    engine.why = None
    for handle in handles:
        handle.end()
    with cluster_of(sharded_log, tmp_path) as again:
        assert again.snapshot().num_edges == 50


@pytest.mark.ray
def test_a_call_starts_no_other_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray itself would, in a process that was disconnected."""
    ray = pytest.importorskip("ray")
    from ingest.cluster.ray_connection import Head
    from ingest.cluster.ray_engine import RayHandle

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    handle = RayHandle(0, SimpleNamespace(ping=None), Head("127.0.0.1:1"))
    at_once(lambda: handle.call("ping"), EngineLost, "disconnected from Ray: start Ray")
    handle.end()


RAY_ENDS = """
import json, os, signal, sys, time
from tests.support.waiting import HANGS_S as LONG_S
import ray
ray.init("local", num_cpus=4, include_dashboard=False, object_store_memory=80 << 20,
         log_to_driver=False, namespace="lpma",
         runtime_env={"env_vars": {"PYTHONPATH": sys.argv[3]}})
import ingest
if __name__ == "__main__":
    found = {}
    def timed(name, call):
        began = time.monotonic()
        try:
            told = call()
        except ingest.IngestError as error:
            told = [type(error).__name__, str(error)]
        found[name] = [round(time.monotonic() - began, 2), told]
    try:
        ingest.Cluster(sys.argv[1], 2, "ray", "cuda", sys.argv[2])
    except ingest.ClusterError as error:
        found["gpu"] = str(error)
    cluster = ingest.Cluster(sys.argv[1], 2, "ray", checkpoint=sys.argv[2])
    client = cluster.client(timeout=LONG_S)
    assert client.hops(0, 2).rows == 2
    from ray._private import worker
    processes = worker._global_node.all_processes
    killed = ["raylet"] if sys.argv[4] == "raylet" else processes
    pids = [one.process.pid for kind in killed for one in processes[kind]]
    for pid in pids + [handle.call("status").pid for handle in cluster._handles]:
        os.kill(pid, signal.SIGKILL)
    timed("epoch", lambda: cluster.epoch(LONG_S))
    timed("status", lambda: cluster.status().problems)
    timed("snapshot", lambda: cluster.snapshot(LONG_S))
    timed("degree", lambda: client.degree(0))
    timed("hops", lambda: client.hops(0, 2))
    timed("close", cluster.close)
    print(json.dumps(found), flush=True)
    os._exit(0)  # Ray's own hook would ask a head that is gone
"""


@pytest.mark.ray
@pytest.mark.parametrize("what", ["all", "raylet"])
def test_ray_dies(sharded_log: SqliteLog, tmp_path: Path, what: str) -> None:
    """Head, raylet and shards at once, as `ray stop --force` does it, or all but the head: all
    calls end at once, and another cluster goes on exactly. No GPU is offered: that is told
    before anything is launched."""
    pytest.importorskip("ray")
    PartitionedSink(sharded_log).produce_many("updates", [encode_updates(range(50), range(1, 51))])
    token = tmp_path / "token"
    token.write_text("0" * 64)
    env = {**os.environ, "PYTHONPATH": os.fspath(ROOT), "RAY_AUTH_TOKEN_PATH": os.fspath(token)}
    env.pop("RAY_ADDRESS", None)
    words = [sharded_log.path, tmp_path / "state", ROOT, what]
    done = subprocess.run(
        [sys.executable, "-c", RAY_ENDS, *map(str, words)],
        env=env, cwd=ROOT, timeout=HANGS_S, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout.splitlines()[-1])
    assert "no machine of this Ray offers a GPU" in found.pop("gpu")
    took_s, problems = found.pop("status")
    assert took_s < AT_ONCE_S
    assert len(problems) == 1
    gone = {"all": "its head at ", "raylet": "its raylet on this machine, at "}
    assert problems[0].startswith(f"Ray is gone: {gone[what]}")
    kinds = {name: told[0] for name, (_, told) in found.items()}
    of_client = dict.fromkeys(("degree", "hops"), "QueryError")
    assert kinds == dict.fromkeys(("epoch", "snapshot", "close"), "EngineLost") | of_client
    for took_s, (_, told) in found.values():
        assert took_s < AT_ONCE_S
        assert "the cluster with the same checkpoint: it goes on from there" in told
    with cluster_of(sharded_log, tmp_path) as again:
        assert again.snapshot().num_edges == 50
        assert sum(view.status.operations for view in again.status().shards if view.status) == 50
