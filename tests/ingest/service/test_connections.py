"""What clients may do to connections: hang, trickle, flood, not read, send what is no request. Who
asks properly is answered all the while, and what they cost is bounded."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from uvicorn import Config
from uvicorn.server import ServerState

from ingest.service.framing import MAX_CHUNKS, MAX_HEAD_BYTES, MAX_HEADERS
from ingest.service.patience import Patience
from ingest.service.protocol import MAX_PIPELINED
from ingest.service.server import AsgiServer, bind
from ingest.service.turns import SHARE_BYTES, Turns, TurnsProtocol
from tests.support.raw_http import (
    LONG_S,
    ask,
    connect,
    read_all,
    read_answer,
    request,
    send_until_closed,
    until,
)

ROOT = Path(__file__).parents[3]
GET = request()
BRIEF = Patience(head_s=0.3, body_s=0.3, stalled_s=0.3, rate=1 << 20, idle_s=0.3, grace_s=0.3)
FEW = 40  # connections
HUGE = 256 << 20  # bytes, more than the system's buffers hold
LONG = 24 << 20


async def toy(scope: Any, receive: Any, send: Any) -> None:
    """Says how long the body was; /huge answers more than fits, /events without an end, /never not
    at all."""
    path, length, more = scope["path"], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length += len(message["body"])
        more = message["more_body"]
    if path == "/never":
        await receive()
        return
    start = {"type": "http.response.start", "status": 200, "headers": []}
    if path in ("/huge", "/events"):
        scope["state"]["endless"] = True
        await send(start)
        part = bytes(1 << 20) if path == "/huge" else b"data: x\n\n"
        gone = asyncio.ensure_future(receive())
        for _ in range(HUGE >> 20 if path == "/huge" else 1 << 30):
            await send({"type": "http.response.body", "body": part, "more_body": True})
            if path == "/events":
                await asyncio.sleep(0.01)
            if gone.done():
                return
        gone.cancel()
        await send({"type": "http.response.body", "body": b""})
        return
    said = bytes(LONG) if path == "/long" else f"{path} {length}".encode()
    start["headers"] = [(b"content-length", str(len(said)).encode())]
    await send(start)
    await send({"type": "http.response.body", "body": said})


Serve = Callable[..., AsgiServer]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Makes servers of `toy`: serve(patience=…, max_connections=…)."""
    servers: list[AsgiServer] = []

    def make(**options: Any) -> AsgiServer:
        servers.append(AsgiServer(toy, bind("127.0.0.1", 0), **options))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


def is_served(port: int) -> bool:
    return ask(port, GET).body == b"/ 0"


# Time-outs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [b"", b"\r\n", b"GET / HT", GET[:-2]],
    ids=["nothing", "an empty line", "a line", "a head"],
)
def test_who_says_half_of_something_is_closed(serve: Serve, sent: bytes) -> None:
    server = serve(patience=BRIEF)
    with connect(server.port) as client:
        client.sendall(sent)
        assert read_all(client) == b""


HALF = request("/", "POST", b"12345")[:-2]
CHUNKED = request("/", "POST", Transfer_Encoding="chunked")


@pytest.mark.parametrize(
    "before, sent",
    [(0, HALF), (0, CHUNKED + b"5\r\n12"), (1, HALF), (0, HALF[:-3]),
     (0, request("/", "POST", Content_Length="1000000") + bytes(900_000))],
    ids=["a body", "chunks", "behind another request", "no byte", "fast at first"],
)  # fmt: skip
def test_who_sends_half_a_body_is_told(serve: Serve, before: int, sent: bytes) -> None:
    server = serve(patience=replace(BRIEF, rate=1000))
    with connect(server.port) as client:
        client.sendall(GET * before + sent)
        for _ in range(before):
            assert read_answer(client).status == 200
        answer = read_answer(client)
        assert (answer.status, answer.headers["connection"]) == (408, "close")
        assert read_all(client) == b""


@pytest.mark.parametrize(
    "begun, drop",
    [(b"GET / HTTP/1.1\r\n", b"A: b\r\n"), (b"", b"\r\n"),
     (request("/", "POST", Content_Length="1000000"), b"1")],
    ids=["headers", "empty lines", "a body"],
)  # fmt: skip
def test_trickling_does_not_extend_the_time(serve: Serve, begun: bytes, drop: bytes) -> None:
    server = serve(patience=BRIEF)
    with connect(server.port) as client:
        client.sendall(begun)
        with pytest.raises(ConnectionError):
            send_until_closed(client, drop, 0.05)


def test_a_body_that_comes_fast_enough_may_take_longer(serve: Serve) -> None:
    """Twenty times body_s, and above the rate all the while."""
    server = serve(patience=Patience(body_s=0.3, rate=1000))
    with connect(server.port) as client:
        client.sendall(request("/", "POST", Content_Length="30000"))
        for _ in range(30):
            client.sendall(bytes(1000))
            time.sleep(0.05)
        assert read_answer(client).body == b"/ 30000"


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(serve: Serve) -> None:
    server = serve(patience=BRIEF)
    with connect(server.port) as client:
        for _ in range(20):
            client.sendall(GET)
            assert read_answer(client).body == b"/ 0"
            time.sleep(0.05)
        assert read_all(client) == b""


def test_an_answer_may_take_its_time(serve: Serve) -> None:
    server = serve(patience=BRIEF)
    with connect(server.port) as client:
        client.sendall(request("/never"))
        client.settimeout(1.5)
        with pytest.raises(TimeoutError):
            client.recv(1)


def test_who_does_not_read_is_closed(serve: Serve) -> None:
    server = serve(patience=BRIEF)
    with connect(server.port) as client:
        client.sendall(request("/huge"))
        until(lambda: server.connections() == 1)
        until(lambda: server.connections() == 0)
        assert len(read_all(client)) < HUGE


@pytest.mark.parametrize("headers", [{}, {"Connection": "close"}], ids=["kept", "closed"])
def test_who_reads_slowly_but_steadily_gets_all(serve: Serve, headers: dict[str, Any]) -> None:
    """It takes many times stalled_s and idle_s, though the answer was written in one piece."""
    server = serve(patience=BRIEF)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        client.settimeout(LONG_S)
        client.connect(("127.0.0.1", server.port))
        client.sendall(request("/long", **headers))
        got = 0
        while got < LONG:
            end = got + (1 << 19)
            while got < end and (part := client.recv(1 << 16)):
                got += len(part)
            assert part or got > LONG
            time.sleep(0.05)


def test_who_reads_ever_so_slowly_is_closed(serve: Serve) -> None:
    server = serve(patience=BRIEF)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        client.connect(("127.0.0.1", server.port))
        client.sendall(request("/huge"))
        until(lambda: server.connections() == 1)
        until(lambda: client.recv(1 << 12) and server.connections() == 0)


def test_who_does_not_read_a_short_answer_is_closed(serve: Serve) -> None:
    """It lies in the system's buffers: the connection is idle."""
    server = serve(patience=BRIEF)
    with connect(server.port) as client:
        client.sendall(GET)
        until(lambda: server.connections() == 1)
        until(lambda: server.connections() == 0)


# Floods --------------------------------------------------------------------------------------


def test_half_open_connections_are_bounded_and_harm_nobody(serve: Serve) -> None:
    server = serve(max_connections=FEW)
    with connect(server.port) as old:
        old.sendall(GET)
        assert read_answer(old).status == 200
        held = [connect(server.port) for _ in range(5 * FEW)]
        for client in held:
            client.sendall(b"GET / HTTP/1.1\r\n")
        assert is_served(server.port)
        until(lambda: server.connections() <= FEW)
        old.sendall(GET)  # it made a whole request before: it is still there
        assert read_answer(old).status == 200
        for client in held:
            client.close()


def test_idle_connections_make_room(serve: Serve) -> None:
    server = serve(max_connections=FEW)
    held = []
    for _ in range(2 * FEW):
        held.append(connect(server.port))
        held[-1].sendall(GET)
        assert read_answer(held[-1]).status == 200
    until(lambda: server.connections() <= FEW)
    assert read_all(held[0]) == b""
    held[-1].sendall(GET)
    assert read_answer(held[-1]).status == 200
    for client in held:
        client.close()


def test_while_all_are_being_answered_a_newcomer_is_turned_away(serve: Serve) -> None:
    server = serve(max_connections=FEW)
    held = [connect(server.port) for _ in range(FEW)]
    for client in held:
        client.sendall(request("/events"))
        assert client.recv(1)
    with connect(server.port) as late:
        assert read_all(late) == b""
    held.pop().close()
    until(lambda: server.connections() < FEW)
    assert is_served(server.port)
    for client in held:
        assert client.recv(1)  # it is still being answered
        client.close()


def test_slow_loris_beside_honest_clients(serve: Serve) -> None:
    """Threads that open connections and trickle, as fast as they can, harm no request."""
    server = serve(max_connections=FEW)
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


def test_descriptors_that_run_out_are_made_free(tmp_path: Path) -> None:
    """The limit of the process is below that of the service: the oldest goes all the same."""
    script = tmp_path / "few.py"
    script.write_text(
        textwrap.dedent("""
        import os, resource, socket, sys
        from ingest.service.server import AsgiServer, bind
        from tests.ingest.service.test_connections import GET, toy
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


# What is no request --------------------------------------------------------------------------

HOST = b"Host: localhost\r\n"
POST = b"POST / HTTP/1.1\r\n" + HOST


@pytest.mark.parametrize(
    "sent",
    [
        POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        POST + b"Content-Length: +3\r\n\r\nabc",
        POST + b"Content-Length: 3,3\r\n\r\nabc",
        POST + b"Content-Length: -1\r\n\r\n",
        POST + b"Content-Length: 99999999999999999999999\r\n\r\n",
        POST + b"Content-Length : 3\r\n\r\nabc",
        POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFFF\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b" folded: yes\r\n\r\n",
        b"GET / HTTP/1.1\nHost: localhost\n\n",
        b"GET / HTTP/1.1\r\nHost: local\0host\r\n\r\n",
        b"GET / HTTP/9.9\r\n" + HOST + b"\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/2.0\r\n" + HOST + b"\r\n",
        b"GET http://localhost HTTP/1.1\r\n" + HOST + b"\r\n",
        b"CONNECT localhost:80 HTTP/1.1\r\n" + HOST + b"\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n",
    ],
)
def test_ambiguous_or_broken_requests_are_refused_and_closed(serve: Serve, sent: bytes) -> None:
    """Whatever follows is not read as another request: nothing is smuggled past a proxy."""
    server = serve()
    with connect(server.port) as client:
        client.sendall(sent)
        client.sendall(request("/smuggled"))
        answer = read_all(client)
    assert answer.startswith(b"HTTP/1.1 400 ") or answer == b""
    assert b"/smuggled" not in answer
    assert answer.count(b"HTTP/1.1") == (answer != b"") + answer.count(b"not a request of HTTP/1.1")
    assert is_served(server.port)


def test_requests_in_one_piece_are_answered_in_order(serve: Serve) -> None:
    server = serve()
    with connect(server.port) as client:
        client.sendall(request("/a") + request("/b", "POST", b"123") + request("/c"))
        assert [read_answer(client).body for _ in "abc"] == [b"/a 0", b"/b 3", b"/c 0"]


def test_too_many_requests_in_one_piece_are_refused(serve: Serve) -> None:
    server = serve()
    with connect(server.port) as client:
        client.sendall(GET * (MAX_PIPELINED + 2))
        assert read_all(client).count(b"HTTP/1.1 200") <= MAX_PIPELINED + 1
    with connect(server.port) as client:
        client.sendall(GET * MAX_PIPELINED)
        assert [read_answer(client).status for _ in range(MAX_PIPELINED)] == [200] * MAX_PIPELINED
    assert is_served(server.port)


def test_a_bad_request_behind_one_that_is_answered_is_not_its_answer(serve: Serve) -> None:
    server = serve()
    with connect(server.port) as client:
        client.sendall(request("/never") + b"nonsense\r\n\r\n")
        assert read_all(client) == b""


def answer_to_parts(port: int, sent: list[bytes]) -> bytes:
    """What comes back when these parts are sent apart, until the server closes."""
    with connect(port) as client:
        with suppress(ConnectionError):
            for part in sent:
                client.sendall(part)
                time.sleep(0.005)
        return read_all(client)


@pytest.mark.parametrize(
    "sent",
    [
        [request("/" + "a" * MAX_HEAD_BYTES)],
        [request("/", A="b" * (MAX_HEAD_BYTES // 2), C="d" * (MAX_HEAD_BYTES // 2))],
        [GET[:-2], b"A: b\r\n" * (MAX_HEADERS + 1), b"\r\n"],
        [GET[:-2] + b"A: ", *[b"b" * 1000] * 40],
        [b"GET /", *[b"b" * 1000] * 40],
    ],
    ids=["a path", "two headers", "many headers", "a header without end", "a line without end"],
)
def test_a_long_head_is_refused(serve: Serve, sent: list[bytes]) -> None:
    server = serve()
    answer = answer_to_parts(server.port, sent)
    assert answer.startswith(b"HTTP/1.1 431 ") or answer == b""  # a reset may overtake it
    assert is_served(server.port)


@pytest.mark.parametrize(
    "sent",
    [[CHUNKED + b"0\r\n", *[b"a:\r\n" * 20] * (MAX_HEADERS // 20 + 1)],
     [CHUNKED + b"0\r\na: ", *[b"b" * 1000] * 40],
     [CHUNKED + b"1", *[b";" + b"b" * 1000] * 40]],
    ids=["many trailers", "a trailer without end", "an extension without end"],
)  # fmt: skip
def test_what_is_around_chunks_is_bounded_as_a_head(serve: Serve, sent: list[bytes]) -> None:
    server = serve()
    answer = answer_to_parts(server.port, sent)
    assert answer.startswith(b"HTTP/1.1 431 ") or answer == b""
    assert b"200" not in answer
    assert is_served(server.port)


@pytest.mark.parametrize(
    "chunk, enough",
    [(b"1\r\nx\r\n", MAX_CHUNKS + 1), (b"1;" + b"b" * 1000 + b"\r\nx\r\n", 1000)],
    ids=["one byte each", "long extensions"],
)
def test_chunks_with_little_in_them_are_refused(serve: Serve, chunk: bytes, enough: int) -> None:
    server = serve()
    assert ask(server.port, CHUNKED, chunk * 100, b"0\r\n\r\n").body == b"/ 100"
    with connect(server.port) as client:
        with suppress(ConnectionError):
            client.sendall(CHUNKED + chunk * enough)
        answer = read_all(client)
    assert (answer.startswith(b"HTTP/1.1 400 ") and b"larger" in answer) or answer == b""
    assert is_served(server.port)


def test_many_chunks_of_a_fair_size_are_a_body(serve: Serve) -> None:
    server = serve()
    chunk = b"64\r\n" + bytes(100) + b"\r\n"
    said = f"/ {100 * 2 * MAX_CHUNKS}".encode()
    assert ask(server.port, CHUNKED, chunk * (2 * MAX_CHUNKS), b"0\r\n\r\n").body == said


def test_others_have_their_turn_between_two_shares() -> None:
    """What came at once is parsed in shares, in order, and nothing more is read meanwhile."""
    parsed: list[bytes] = []
    calls: list[str] = []

    class Connection(TurnsProtocol):
        def parse(self, data: bytes) -> None:
            parsed.append(data)

    class Transport(asyncio.Transport):
        def pause_reading(self) -> None:
            calls.append("pause")

        def resume_reading(self) -> None:
            calls.append("resume")

        def is_closing(self) -> bool:
            return False

    async def receive() -> None:
        loop = asyncio.get_running_loop()
        config, turns = Config(toy, log_config=None, lifespan="off"), Turns(loop)
        connection = Connection(config, ServerState(), turns, loop)
        connection.connection_made(Transport())
        sent = os.urandom(3 * SHARE_BYTES + 1)
        connection.data_received(sent)
        assert (len(parsed), calls) == (1, ["pause"])
        connection.flow.pause_reading()
        connection.flow.resume_reading()  # an application that waits for more
        connection.data_received(b"and more")
        for turn in range(2, 5):
            assert calls == ["pause"]
            await asyncio.sleep(0)
            assert len(parsed) == turn
        assert b"".join(parsed) == sent + b"and more"
        assert max(map(len, parsed)) == SHARE_BYTES
        assert calls == ["pause", "resume"]
        parsed.clear()
        many = [Connection(config, ServerState(), turns, loop) for _ in range(5)]
        for each in many:
            each.connection_made(Transport())
            each.data_received(sent)
        assert len(parsed) == len(many)
        for turn in range(1, 3 * len(many) + 1):  # however many wait, one in each turn
            await asyncio.sleep(0)
            assert len(parsed) == len(many) + turn
        assert not any(each.is_behind for each in many)

    asyncio.run(receive())


def test_a_head_without_end_behind_an_answer_without_end_is_not_kept(serve: Serve) -> None:
    server = serve()
    with connect(server.port) as client:
        client.sendall(request("/events") + b"GET / HTTP/1.1\r\nA: ")
        client.recv(1)
        with pytest.raises(ConnectionError):
            send_until_closed(client, b"b" * 1000, 0.01)


def test_an_upgrade_that_is_not_offered_is_ignored(serve: Serve) -> None:
    """Clients of HTTP/2 ask for it in their first request, and go on without."""
    server = serve()
    upgrade: dict[str, Any] = {"Connection": "Upgrade", "Upgrade": "h2c"}
    with connect(server.port) as client:
        client.sendall(request("/a", **upgrade))
        assert read_answer(client).body == b"/a 0"
        client.sendall(request("/b", "POST", b"12", **upgrade))
        assert read_answer(client).body == b"/b 2"
        client.sendall(request("/c"))
        assert read_answer(client).body == b"/c 0"


# The end -------------------------------------------------------------------------------------


def test_closing_finishes_answers_and_ends_those_without_end() -> None:
    server = AsgiServer(toy, bind("127.0.0.1", 0), patience=Patience(grace_s=LONG_S))
    with connect(server.port) as events, connect(server.port) as huge, connect(server.port) as idle:
        events.sendall(request("/events"))
        assert events.recv(1)
        idle.sendall(GET)
        assert read_answer(idle).status == 200
        huge.sendall(request("/", "POST", Content_Length="3") + b"12")
        until(lambda: server.connections() == 3)
        closing = threading.Thread(target=server.close)
        closing.start()
        assert read_all(idle) == b""
        read_all(events)
        huge.sendall(b"3")
        assert read_answer(huge).body == b"/ 3"
        closing.join(LONG_S)
        assert not closing.is_alive()
    with pytest.raises(ConnectionError):
        connect(server.port)
    server.close()


def test_closing_does_not_wait_for_ever() -> None:
    with (
        AsgiServer(toy, bind("127.0.0.1", 0), patience=BRIEF) as server,
        connect(server.port) as client,
    ):
        client.sendall(request("/never"))
        until(lambda: server.connections() == 1)
        server.close()
        assert b"/never" not in read_all(client)
    assert not [t for t in threading.enumerate() if t.name == "lpma-service" and t.is_alive()]


def test_an_address_in_use_is_said_in_one_line(serve: Serve) -> None:
    server = serve()
    with pytest.raises(OSError, match=f"127.0.0.1 port {server.port} cannot be served: .*in use"):
        bind("127.0.0.1", server.port)
