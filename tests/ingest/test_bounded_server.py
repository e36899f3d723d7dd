"""A server that clients may hurt: what they cost is bounded, and who asks properly is answered."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from ingest.metrics import server as bounded_server
from ingest.metrics.server import MAX_CONNECTIONS, BoundedServer
from tests.conftest import soak
from tests.support.waiting import HANGS_S, wait_for

ROOT = Path(__file__).parents[2]
ASK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now

    sleep = staticmethod(time.sleep)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Stands still until a test moves it, so that nobody is answered because others had to go. The
    server looks at it when somebody comes or says something."""
    clock = Clock()
    monkeypatch.setattr(bounded_server, "time", clock)
    return clock


class Hello(BaseHTTPRequestHandler):
    body = b"hello"

    def do_GET(self) -> None:
        if self.path == "/broken":
            raise ValueError("no figures")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: Any) -> None:
        pass


class Huge(Hello):
    body = bytes(64 << 20)  # more than the system's buffers take


@pytest.fixture
def server() -> Iterator[BoundedServer]:
    with BoundedServer("127.0.0.1", 0, Hello) as server:
        yield server


def connect(server: BoundedServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=HANGS_S)


def ask(server: BoundedServer, request: bytes = ASK) -> bytes:
    """All that is answered until the connection is closed."""
    with connect(server) as client:
        client.sendall(request)
        return b"".join(iter(lambda: client.recv(1 << 16), b""))


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_half_open_connections_cost_neither_threads_nor_files(
    server: BoundedServer, clock: Clock
) -> None:
    threads, before = threading.active_count(), descriptors()
    hanging = [connect(server) for _ in range(600)]
    try:
        for half_open in hanging[::2]:
            half_open.sendall(b"GET / HT")
        assert ask(server).endswith(b"hello")
        assert threading.active_count() == threads
        assert len(hanging) < descriptors() - before <= len(hanging) + MAX_CONNECTIONS
        clock.now += bounded_server.PATIENCE_S
        assert ask(server).endswith(b"hello")
        wait_for(lambda: descriptors() - before <= len(hanging), "the last to come have to go")
        assert hanging[-1].recv(1) == b""
    finally:
        for half_open in hanging:
            half_open.close()


def test_the_oldest_connection_makes_room(server: BoundedServer) -> None:
    clients = [connect(server) for _ in range(MAX_CONNECTIONS)]
    wait_for(lambda: len(server._connections) == MAX_CONNECTIONS)
    clients.append(connect(server))
    assert clients[0].recv(1) == b""
    for client in clients[:0:-1]:
        client.sendall(ASK)
        assert b"".join(iter(lambda: client.recv(1 << 16), b"")).endswith(b"hello")  # noqa: B023
    for client in clients:
        client.close()


def test_who_asks_is_answered_while_others_come_without_end(server: BoundedServer) -> None:
    stopped = threading.Event()

    def flood() -> None:
        hanging: list[socket.socket] = []
        while not stopped.is_set():
            hanging.append(connect(server))
            if len(hanging) > 200:
                hanging.pop(0).close()
        for half_open in hanging:
            half_open.close()

    flooding = threading.Thread(target=flood)
    flooding.start()
    try:
        for _ in range(soak(20, 500)):
            assert ask(server).endswith(b"hello")
    finally:
        stopped.set()
        flooding.join()


def test_a_request_may_come_in_crumbs(server: BoundedServer) -> None:
    with connect(server) as client:
        for byte in ASK:
            client.sendall(bytes([byte]))
        assert client.recv(1 << 16).startswith(b"HTTP/1.0 200")


def test_who_drips_is_closed(server: BoundedServer, clock: Clock) -> None:
    """The time is that of the whole request, not of a byte."""
    with connect(server) as client:
        for number in range(1, 10):
            client.sendall(b"x")
            wait_for(lambda: received(server) == number, "the byte has come")  # noqa: B023
            clock.now += bounded_server.PATIENCE_S / 10
        clock.now += bounded_server.PATIENCE_S / 5
        client.sendall(b"x")
        with pytest.raises(ConnectionError):  # noqa: PT012
            while client.recv(1):
                pass
            raise ConnectionError("it was closed")


def received(server: BoundedServer) -> int:
    return sum(len(connection.request) for connection in [*server._connections])


def test_who_says_too_much_is_closed(server: BoundedServer) -> None:
    with connect(server) as client, pytest.raises(ConnectionError):  # noqa: PT012
        while True:
            client.sendall(b"x" * 4096)


def test_who_does_not_read_holds_nobody_up(clock: Clock) -> None:
    before = descriptors()
    with BoundedServer("127.0.0.1", 0, Huge) as server:
        mine = descriptors() - before
        with connect(server) as client:
            client.sendall(ASK)
            assert len(ask(server)) > len(Huge.body)
            clock.now += bounded_server.PATIENCE_S
            connect(server).close()
            wait_for(lambda: descriptors() - before - mine == 1, "only the client's own is left")
    assert descriptors() == before


def test_an_error_is_answered_and_the_server_goes_on(server: BoundedServer) -> None:
    broken = ask(server, b"GET /broken HTTP/1.0\r\n\r\n")
    assert broken.startswith(b"HTTP/1.0 500")
    assert b"ValueError: no figures" in broken
    assert b"Bad request syntax" in ask(server, b"NONSENSE\r\n\r\n")
    assert b" 501 " in ask(server, b"POST / HTTP/1.0\r\nContent-Length: 0\r\n\r\n")
    assert ask(server).endswith(b"hello")


def test_closing_waits_for_nobody_and_leaves_nothing() -> None:
    threads, before = threading.active_count(), descriptors()
    server = BoundedServer("127.0.0.1", 0, Hello)
    hanging = [connect(server) for _ in range(50)]
    server.close()
    assert threading.active_count() == threads
    for half_open in hanging:
        half_open.close()
    assert descriptors() == before
    with pytest.raises(ConnectionRefusedError):
        connect(server)


# Few files ------------------------------------------------------------------------------------

PROGRAM = """
import resource, sys
import ingest
from ingest import Pipeline, SqliteLog
from ingest.metrics import server as bounded_server
from ingest.metrics import MetricsServer
from lpma import Kind
from tests.support.stream_model import SavedModel

bounded_server.PATIENCE_S = 3600.0
log = SqliteLog(sys.argv[1] + "/log")
log.create_topic("updates")
pipeline = Pipeline(log, SavedModel(), sys.argv[1] + "/c", checkpoint_operations=50)
server = MetricsServer(pipeline, 0)
soft = len(__import__("os").listdir("/proc/self/fd")) + 48
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, soft))
print(server.port, flush=True)
for number, line in enumerate(sys.stdin):
    log.produce_many("updates", [ingest.encode_row(number, number + 1)] * 9)
    log.produce("queries", ingest.encode_query(f"q{number}", Kind.DEGREE, number))
    assert pipeline.run(until="end") == 10
    print(pipeline.stats.operations, flush=True)
pipeline.checkpoint_now()
pipeline.close()
server.close()
print("whole")
"""


def test_a_pipeline_with_few_files_outlives_600_half_open_connections(tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client")
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    hanging: list[socket.socket] = []
    try:
        port = int(child.stdout.readline())
        for number in range(12):
            hanging += [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
            child.stdin.write("go\n")
            child.stdin.flush()
            assert int(child.stdout.readline()) == 10 * (number + 1)
            with socket.create_connection(("127.0.0.1", port), timeout=HANGS_S) as client:
                client.sendall(ASK)
                assert b" 200 OK" in client.recv(1 << 16)
        out, error = child.communicate(timeout=HANGS_S)
        assert (out.strip(), error) == ("whole", "")
    finally:
        child.kill()
        child.communicate()
        for half_open in hanging:
            half_open.close()
