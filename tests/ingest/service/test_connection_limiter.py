"""Floods of connections: who asks properly is answered all the while, and what they cost is
bounded."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import ssl
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from ingest.service.server import ConnectionLimiter, bind
from tests.ingest.service.connections import GET, Serve, is_served
from tests.support.raw_http import connect, read_all, read_answer, request
from tests.support.waiting import HANGS_S, wait_for

ROOT = Path(__file__).parents[3]
FEW = 40  # connections


def test_half_open_connections_are_bounded_and_harm_nobody(serve_toy: Serve) -> None:
    server = serve_toy(max_connections=FEW)
    with connect(server.port) as old:
        old.sendall(GET)
        assert read_answer(old).status == 200
        held = [connect(server.port) for _ in range(5 * FEW)]
        for client in held:
            client.sendall(b"GET / HTTP/1.1\r\n")
        assert is_served(server.port)
        wait_for(lambda: server.connections() <= FEW, "others made room")
        old.sendall(GET)  # it made a whole request before: it is still there
        assert read_answer(old).status == 200
        for client in held:
            client.close()


def test_idle_connections_make_room(serve_toy: Serve) -> None:
    server = serve_toy(max_connections=FEW)
    held = []
    for _ in range(2 * FEW):
        held.append(connect(server.port))
        held[-1].sendall(GET)
        assert read_answer(held[-1]).status == 200
    wait_for(lambda: server.connections() <= FEW, "others made room")
    assert read_all(held[0]) == b""
    held[-1].sendall(GET)
    assert read_answer(held[-1]).status == 200
    for client in held:
        client.close()


def test_while_all_are_being_answered_a_newcomer_is_turned_away(serve_toy: Serve) -> None:
    server = serve_toy(max_connections=FEW)
    held = [connect(server.port) for _ in range(FEW)]
    for client in held:
        client.sendall(request("/events"))
        assert client.recv(1)
    with connect(server.port) as late:
        assert read_all(late) == b""
    held.pop().close()
    wait_for(lambda: server.connections() < FEW, "one has left")
    assert is_served(server.port)
    for client in held:
        assert client.recv(1)  # it is still being answered
        client.close()


def test_slow_loris_beside_honest_clients(serve_toy: Serve) -> None:
    """Threads that open connections and trickle, as fast as they can, harm no request."""
    server = serve_toy(max_connections=FEW)
    done = threading.Event()

    def attack() -> None:
        held: list[socket.socket] = []
        while not done.is_set():
            try:
                held.append(connect(server.port))
                held[-1].sendall(b"GET / HTTP/1.1\r\nA: ")
                held[len(held) // 2].sendall(b"b")
            except OSError:
                pass
            if len(held) > 3 * FEW:
                held.pop(0).close()
        for client in held:
            client.close()

    attackers = [threading.Thread(target=attack) for _ in range(2)]
    for attacker in attackers:
        attacker.start()
    try:
        with connect(server.port) as old:
            for _ in range(100):
                old.sendall(GET)
                assert read_answer(old).body == b"/ 0"
        assert is_served(server.port)
    finally:
        done.set()
        for attacker in attackers:
            attacker.join()


@pytest.mark.parametrize("turns", range(10))
def test_a_newcomer_is_let_in_whenever_a_handshake_fails(turns: int) -> None:
    """The door has one place, whose owner fails. turns: of the loop, until the newcomer comes."""

    async def main() -> None:
        loop, listener = asyncio.get_running_loop(), bind("127.0.0.1", 0)
        port = listener.getsockname()[1]
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        make: Any = Arriving
        door = ConnectionLimiter(loop, listener, make, set(), 1, tls, HANGS_S)
        with connect(port) as first:
            first.sendall(b"This is no TLS, nor will it be.")
            for _ in range(turns):
                await asyncio.sleep(0)
            with connect(port) as newcomer:
                newcomer.setblocking(False)
                for _ in range(100):
                    await asyncio.sleep(0)
                with pytest.raises(BlockingIOError):  # not closed: the service waits for its hello
                    newcomer.recv(1)
                door.close()
                await door.wait_closed()

    asyncio.run(main())


class Arriving(asyncio.Protocol):
    """What the door knows of a protocol."""

    transport = None
    requests = 0
    is_waiting = True


def test_descriptors_that_run_out_are_made_free(tmp_path: Path) -> None:
    """The limit of the process is below that of the service: the oldest goes all the same."""
    script = tmp_path / "few.py"
    script.write_text(
        textwrap.dedent("""
        import os, resource, socket, sys
        from ingest.service.server import AsgiServer, bind
        from tests.ingest.service.connections import GET, toy
        from tests.support.raw_http import ask
        with AsgiServer(toy, bind("127.0.0.1", 0)) as server:
            print(server.port, flush=True)
            used = len(os.listdir("/proc/self/fd"))
            resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, used + 20))
            sys.stdin.readline()
        """)
    )
    with subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        port = int(process.stdout.readline())
        held = [connect(port) for _ in range(100)]
        assert is_served(port)
        process.communicate("\n")
        for client in held:
            client.close()
    assert process.returncode == 0


def test_a_process_of_few_descriptors_has_few_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    from ingest.service.server import _allowed

    for allowed, expected in ((20_000, 1024), (1024, 768), (256, 128), (-1, 1024)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, n=allowed: (n, n))
        assert _allowed(1024) == expected
