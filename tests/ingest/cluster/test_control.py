"""The control socket: one owner, whoever was killed before; one user; and no client can cost much
or stop another."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest import LockedError
from ingest.cluster import control
from ingest.cluster.control import ControlError, ControlServer, ask
from ingest.errors import PipelineError
from tests.support.waiting import HANGS_S, wait_for

ROOT = Path(__file__).parents[3]


class Actions:
    """What the server of these tests does."""

    def __init__(self) -> None:
        self.entered, self.waiting = threading.Event(), threading.Event()

    def fail(self, kind: str) -> None:
        raise {"pipeline": PipelineError, "bug": AssertionError, "key": KeyError}[kind]("so it is")

    def wait(self) -> str:
        self.entered.set()
        self.waiting.wait(HANGS_S)
        return "waited"

    def by_name(self) -> dict[str, Any]:
        return {
            "echo": lambda **given: given,
            "fail": self.fail,
            "wait": self.wait,
            "array": lambda: {"of": np.arange(3), "path": Path("a")},
            "long": lambda size: "x" * size,
        }


@pytest.fixture
def actions() -> Iterator[Actions]:
    found = Actions()
    yield found
    found.waiting.set()


@pytest.fixture
def server(tmp_path: Path, actions: Actions) -> Iterator[ControlServer]:
    with ControlServer(tmp_path / "state", actions.by_name()) as server:
        server.start()
        yield server


def connected(directory: Path) -> socket.socket:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(HANGS_S)
    with control._short(directory) as path:
        client.connect(path)
    return client


def said(client: socket.socket) -> Any:
    with client.makefile("rb") as lines:
        line = lines.readline()
    return json.loads(line) if line else None


def test_requests_and_replies(server: ControlServer, tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert ask(state, "echo", a=1, b=[None, "ü"]) == {"a": 1, "b": [None, "ü"]}
    assert ask(state, "array") == {"of": [0, 1, 2], "path": "a"}
    with connected(state) as client:
        client.sendall(b'{"do": "echo", "number": 7}\n')
        assert said(client)["result"] == {"number": 7}


@pytest.mark.parametrize("kind, error", [
    ("pipeline", "PipelineError"), ("bug", "AssertionError"), ("key", "KeyError"),
])  # fmt: skip
def test_what_an_action_raises_is_told(
    server: ControlServer, tmp_path: Path, kind: str, error: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ControlError, match="so it is") as raised:
        ask(tmp_path / "state", "fail", kind=kind)
    assert raised.value.kind == error
    assert bool(caplog.records) == (kind == "bug"), "a bug is logged, too"
    assert ask(tmp_path / "state", "echo") == {}


@pytest.mark.parametrize("line", [
    b"\n", b"nonsense\n", b"[]\n", b'"do"\n', b'{"do": []}\n', b'{"do": "nothing"}\n', b"{}\n",
    b'{"do": "fail"}\n', b'{"do": "echo", "": 1}\n', b"[" * 50_000 + b"\n", b"\xff\xfe\n",
])  # fmt: skip
def test_bad_requests_are_answered(server: ControlServer, tmp_path: Path, line: bytes) -> None:
    with connected(tmp_path / "state") as client:
        client.sendall(line)
        reply = said(client)
    assert reply["ok"] or reply["message"]
    assert ask(tmp_path / "state", "echo") == {}


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(any_server: Path, data: bytes) -> None:
    with connected(any_server) as client:
        client.sendall(data.replace(b"\n", b"") + b"\n")
        assert isinstance(said(client)["ok"], bool)


@pytest.fixture(scope="module")
def any_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("any")
    with ControlServer(directory, {"echo": lambda **given: given}) as server:
        server.start()
        yield directory


def test_a_request_is_bounded(server: ControlServer, tmp_path: Path) -> None:
    with connected(tmp_path / "state") as client:
        client.sendall(b"x" * control.MAX_REQUEST_BYTES)
        assert "at most" in said(client)["message"]
    with pytest.raises(ControlError, match="at most"):
        ask(tmp_path / "state", "echo", text="x" * control.MAX_REQUEST_BYTES)


def test_a_reply_is_bounded(
    server: ControlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "MAX_REPLY_BYTES", 1000)
    assert len(ask(tmp_path / "state", "long", size=900)) == 900
    with pytest.raises(ControlError, match="to a file"):
        ask(tmp_path / "state", "long", size=1000)


def silent_clients(directory: Path) -> list[socket.socket]:
    """As many as may be connected; one of them has said a little."""
    clients = [connected(directory)]
    clients[0].sendall(b'{"do": ')
    clients += [connected(directory) for _ in range(control.MAX_CONNECTIONS - 1)]
    return clients


def test_silent_clients_cost_a_place_each(
    server: ControlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "PATIENCE_S", HANGS_S)
    clients = silent_clients(tmp_path / "state")
    with pytest.raises(ControlError, match="connections are open"):
        ask(tmp_path / "state", "echo")
    for client in clients:
        client.close()


def test_silent_clients_lose_their_places(
    server: ControlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "PATIENCE_S", 0.05)
    clients = silent_clients(tmp_path / "state")
    wait_for(lambda: ask(tmp_path / "state", "echo") == {}, "a place", despite=ControlError)
    for client in clients:
        client.close()


def test_a_long_action_stops_no_other(
    server: ControlServer, actions: Actions, tmp_path: Path
) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(ask(tmp_path / "state", "wait")))
    thread.start()
    assert actions.entered.wait(HANGS_S)
    assert ask(tmp_path / "state", "echo") == {}
    with pytest.raises(ControlError, match="no answer within"):
        ask(tmp_path / "state", "wait", wait_s=0.1)
    actions.waiting.set()
    thread.join()
    assert found == ["waited"]


# One owner, one user -------------------------------------------------------------------------


def test_only_its_user_can_speak_to_it(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        server = ControlServer(tmp_path, {})
    finally:
        os.umask(old)
    with server:
        assert stat.S_IMODE((tmp_path / "control.sock").stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "control.lock").stat().st_mode) == 0o600


def test_never_two_owners(server: ControlServer, tmp_path: Path) -> None:
    with pytest.raises(LockedError, match="another cluster"):
        ControlServer(tmp_path / "state", {})
    assert ask(tmp_path / "state", "echo") == {}, "the first goes on"
    server.close()
    server.close()
    with pytest.raises(ControlError, match="no cluster runs"):
        ask(tmp_path / "state", "echo")
    with ControlServer(tmp_path / "state", {"other": lambda: 1}) as other:
        other.start()
        assert ask(tmp_path / "state", "other") == 1


PROGRAM = """
import threading
from ingest.cluster.control import ControlServer
def hang():
    print("asked", flush=True)
    threading.Event().wait()
server = ControlServer("state", {"hang": hang})
server.start()
print("ready", flush=True)
threading.Event().wait()
"""


@pytest.fixture
def another(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has a server in "state"."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


def test_what_a_kill_leaves_is_replaced(tmp_path: Path, another: subprocess.Popen[str]) -> None:
    with pytest.raises(LockedError):
        ControlServer(tmp_path / "state", {})
    hung: list[str] = []

    def hang() -> None:
        try:
            ask(tmp_path / "state", "hang", wait_s=HANGS_S)
        except ControlError as error:
            hung.append(str(error))

    thread = threading.Thread(target=hang)
    thread.start()
    assert another.stdout is not None
    assert another.stdout.readline() == "asked\n"
    another.kill()
    another.wait()
    thread.join()
    assert hung, "whoever waits is told"
    assert "no answer within" not in hung[0]
    assert (tmp_path / "state" / "control.sock").exists()
    with pytest.raises(ControlError, match="no cluster runs"):
        ask(tmp_path / "state", "hang")
    with ControlServer(tmp_path / "state", {"here": lambda: True}) as server:
        server.start()
        assert ask(tmp_path / "state", "here") is True


def test_something_else_of_that_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "control.sock").write_text("mine")
    with pytest.raises(ControlError, match="something else"):
        ControlServer(tmp_path, {})
    assert (tmp_path / "control.sock").read_text() == "mine"


def test_a_directory_with_a_long_name(tmp_path: Path) -> None:
    directory = tmp_path / ("d" * 200)
    with ControlServer(directory, {"here": lambda: True}) as server:
        server.start()
        assert ask(directory, "here") is True


def test_a_wait_that_a_socket_cannot_count(tmp_path: Path) -> None:
    """It counts ms in 32 bits, of which 1 would be left."""
    with ControlServer(tmp_path, {"slow": lambda: time.sleep(0.1)}) as server:
        server.start()
        assert ask(tmp_path, "slow", wait_s=(2**32 + 1) / 1000) is None


@pytest.mark.parametrize("there", [False, True])
def test_no_cluster(tmp_path: Path, there: bool) -> None:
    with pytest.raises(ControlError, match="no cluster runs"):
        ask(tmp_path if there else tmp_path / "nowhere", "status")
