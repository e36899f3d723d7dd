"""A Ray that cannot be connected to is told at once, and why."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import HANGS_S

AT_ONCE_S = 60.0
ROOT = Path(__file__).parents[3]
CONNECTS = """
import json, sys, time
from ingest.cluster import ray_connection
from ingest.errors import ClusterError
ray_connection.ANSWER_TIMEOUT_S = 1.0
began, told = time.monotonic(), None
try:
    ray_connection.connected("lpma")
except ClusterError as error:
    told = str(error)
print(json.dumps([time.monotonic() - began, told]))
"""

pytestmark = pytest.mark.ray


def connected(**env: str) -> tuple[float, str | None]:
    """How long a process took to be connected, and what it was told instead."""
    pytest.importorskip("ray")
    kept = {name: it for name, it in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run(
        [sys.executable, "-c", CONNECTS], cwd=ROOT, check=True, timeout=HANGS_S, text=True,
        env={**kept, "PYTHONPATH": os.fspath(ROOT), **env}, stdout=subprocess.PIPE,
    )  # fmt: skip
    took_s, told = json.loads(done.stdout.splitlines()[-1])
    return took_s, told


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """What accepts connections, and says nothing."""
    with socket.create_server(("", 0)) as listener:
        yield listener


def test_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    took_s, told = connected(RAY_ADDRESS=f"127.0.0.1:{port}")
    assert told is not None
    assert f"(RAY_ADDRESS=127.0.0.1:{port}) does not answer" in told
    assert "refused: start it, or say another RAY_ADDRESS, or none" in told
    assert took_s < AT_ONCE_S


@pytest.mark.parametrize("address", ["127.0.0.1:port", "there"])
def test_no_address(address: str) -> None:
    took_s, told = connected(RAY_ADDRESS=address)
    assert told is not None
    assert f"RAY_ADDRESS is {address!r}: expected host:port" in told
    assert took_s < AT_ONCE_S


def test_something_else_listens(listener: socket.socket) -> None:
    took_s, told = connected(RAY_ADDRESS=f"127.0.0.1:{listener.getsockname()[1]}")
    assert told is not None
    assert "does not answer as the head of a Ray" in told
    assert took_s < AT_ONCE_S


@pytest.mark.parametrize("given", [None, "", "auto", "local", "ray://h:1"])
def test_no_head_is_named(monkeypatch: pytest.MonkeyPatch, given: str | None) -> None:
    """One is looked for here, and one is started if there is none; not if there was one."""
    ray = pytest.importorskip("ray")
    from ingest.cluster import ray_connection

    if given is None:
        monkeypatch.delenv("RAY_ADDRESS", raising=False)
    else:
        monkeypatch.setenv("RAY_ADDRESS", given)
    begun: list[str] = []
    monkeypatch.setattr(ray, "init", lambda address, **_: begun.append(address))
    monkeypatch.setattr(ray_connection, "canonicalize_bootstrap_address_or_die", nowhere)
    ray_connection._connect("lpma")
    left_to_ray = given == "ray://h:1"
    assert begun == (["auto"] if left_to_ray else ["local"])
    if not left_to_ray and given != "local":
        monkeypatch.setattr(
            ray_connection, "canonicalize_bootstrap_address_or_die", lambda _: "127.0.0.1:1"
        )
        told = "of the last `ray start` here.*refused.*or end what is left with `ray stop`"
        with pytest.raises(ConnectionError, match=told):
            ray_connection._connect("lpma")
        assert begun == ["local"]


def nowhere(address: str) -> str:
    raise ConnectionError("there is none")


@pytest.mark.parametrize("before", [lambda *_: None, signal.SIG_DFL])
def test_a_handler_of_somebody_else_is_put_back(before: Any) -> None:
    """Ray puts its own there, which stays where there was none."""
    pytest.importorskip("ray")
    from ingest.cluster import ray_connection

    def of_ray(*_: object) -> None: ...

    kept = signal.signal(signal.SIGTERM, before)
    try:
        with suppress(ConnectionError), ray_connection._keeping_handler():
            signal.signal(signal.SIGTERM, of_ray)
            raise ConnectionError
        expected = of_ray if before is signal.SIG_DFL else before
        assert signal.getsignal(signal.SIGTERM) is expected
    finally:
        signal.signal(signal.SIGTERM, kept)


def test_a_head_that_wants_a_token(ray_cluster: Any) -> None:
    """The Ray of the tests does. Ray itself goes on for 20 s, or as long as the last variable says,
    if it is shown another."""
    where = {"RAY_ADDRESS": ray_cluster.get_runtime_context().gcs_address}
    wrong = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64}
    soon = {"RAY_gcs_server_port_wait_time_s": "1"}
    for env in ({}, {"RAY_AUTH_MODE": "disabled"}, {**wrong, **soon}):
        took_s, told = connected(**where, **env)
        assert told is not None
        assert "RAY_AUTH_MODE, and the token, must be here what they were for `ray start`" in told
        assert "InvalidAuthToken" in told, "what Ray says of it"
        assert took_s < AT_ONCE_S
    token = os.environ["RAY_AUTH_TOKEN_PATH"]
    assert connected(**where, RAY_AUTH_MODE="token", RAY_AUTH_TOKEN_PATH=token)[1] is None
