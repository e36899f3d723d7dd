"""A shard on Ray has the priority of any pipeline, unless somebody has chosen another."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ingest import Cluster, SqliteLog
from ingest.cluster import niceness
from ingest.cluster.niceness import VARIABLE, take_usual_priority
from lpma.host import threads_of_process
from tests.ingest.cluster.keeping import event_of
from tests.support.waiting import HANGS_S

ROOT = Path(__file__).parents[3]
OF_CHECKPOINTS = 5  # a thread that is to be nice: see ingest/state/checkpointer.py
STARTS = """
import os
from ingest.cluster import ray_connection
ray_connection.connected("lpma")
import ray
print(ray.get(ray.remote(lambda: os.nice(0)).remote()))
ray.shutdown()
"""

may_lower = pytest.mark.skipif(os.geteuid() != 0, reason="only root may lower its niceness")


@pytest.fixture
def nice(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """Two threads of this process, and their niceness; this one and another."""
    threads = {0: 15, 7: 15, 8: 0}
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(niceness, "threads_of_process", lambda: [*threads, 9])

    def getpriority(which: int, thread: int) -> int:
        if thread not in threads:
            raise ProcessLookupError
        return threads[thread]

    def setpriority(which: int, thread: int, value: int) -> None:
        threads[thread] = value

    monkeypatch.setattr(os, "getpriority", getpriority)
    monkeypatch.setattr(os, "setpriority", setpriority)
    return threads


def test_every_thread_is_as_any(nice: dict[int, int]) -> None:
    take_usual_priority()
    assert nice == {0: 0, 7: 0, 8: 0}


def test_what_somebody_chose_stays(nice: dict[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "10")
    take_usual_priority()
    assert nice == {0: 15, 7: 15, 8: 0}


def test_who_may_not_says_so(
    nice: dict[int, int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(which: int, thread: int, value: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    take_usual_priority()
    (event,) = [record for record in caplog.records if event_of(record) == "low priority"]
    told: Any = event.msg
    assert "RAY_worker_niceness=0" in told.fields["remedy"]


def test_threads_are_known() -> None:
    assert threading.get_native_id() in threads_of_process()


@may_lower
@pytest.mark.ray
def test_shards_on_ray(ray_cluster: Any, sharded_log: SqliteLog, tmp_path: Path) -> None:
    """Whoever started that Ray."""
    with Cluster(sharded_log, 2, "ray", checkpoint=tmp_path / "state") as cluster:
        for handle in cluster._handles:
            pid = handle.call("status").pid
            threads = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
            found = {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads}
            assert 0 in found
            assert found <= {0, OF_CHECKPOINTS}


@pytest.mark.ray
def test_a_ray_of_ours(tmp_path: Path) -> None:
    """Needs no right: Ray is told when it is started."""
    pytest.importorskip("ray")
    token = tmp_path / "token"
    token.write_text("0" * 64)
    kept = {name: it for name, it in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run(
        [sys.executable, "-c", STARTS], cwd=ROOT, check=True, timeout=HANGS_S, text=True,
        env={**kept, "PYTHONPATH": os.fspath(ROOT), "RAY_AUTH_TOKEN_PATH": os.fspath(token),
             "RAY_ADDRESS": "local"},  # not that of another test
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert int(done.stdout.splitlines()[-1]) == 0


def test_another_ray_has_nothing_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray adds its own settings, those of one session, to what it is given."""
    ray = pytest.importorskip("ray")
    from ingest.cluster import ray_connection

    monkeypatch.delenv(VARIABLE, raising=False)
    given: list[dict[str, Any]] = []

    def init(address: str, *, _system_config: dict[str, Any], **_: Any) -> None:
        given.append(dict(_system_config))
        _system_config["object_spilling_config"] = "of this session"

    monkeypatch.setattr(ray, "init", init)
    ray_connection._start("lpma")
    ray_connection._start("lpma")
    assert given == [{"worker_niceness": 0}] * 2
