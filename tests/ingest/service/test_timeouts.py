"""How long clients may take: they hang, trickle and do not read, until they are closed."""

from __future__ import annotations

import socket
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from tests.ingest.service.connections import CHUNKED, GET, HUGE, LONG, Held, Serve
from tests.support.raw_http import connect, read_all, read_answer, request


@pytest.mark.parametrize(
    "sent",
    [b"", b"\r\n", b"GET / HT", GET[:-2]],
    ids=["nothing", "an empty line", "a line", "a head"],
)
def test_who_says_half_of_something_is_closed(held: Held, sent: bytes) -> None:
    with connect(held.port) as client:
        held.send(client, sent)
        held.pass_time(held.timeouts.head_s - 0.5)
        assert held.connections() == 1
        held.pass_time(1)
        assert read_all(client) == b""


HALF = request("/", "POST", b"12345")[:-2]


@pytest.mark.parametrize(
    "before, sent",
    [(0, HALF), (0, CHUNKED + b"5\r\n12"), (1, HALF), (0, HALF[:-3]),
     (0, request("/", "POST", Content_Length="1000000") + bytes(900_000))],
    ids=["a body", "chunks", "behind another request", "no byte", "fast at first"],
)  # fmt: skip
def test_who_sends_half_a_body_is_told(held: Held, before: int, sent: bytes) -> None:
    with connect(held.port) as client:
        held.send(client, GET * before + sent)
        for _ in range(before):
            assert read_answer(client).status == 200
        held.pass_time(held.timeouts.body_s - 0.5)
        assert held.connections() == 1
        held.pass_time(1)
        answer = read_answer(client)
        assert (answer.status, answer.headers["connection"]) == (408, "close")
        assert read_all(client) == b""


@pytest.mark.parametrize(
    "begun, drop, limit",
    [(b"GET / HTTP/1.1\r\n", b"A: b\r\n", "head_s"), (b"", b"\r\n", "head_s"),
     (request("/", "POST", Content_Length="1000000"), b"1", "body_s")],
    ids=["headers", "empty lines", "a body"],
)  # fmt: skip
def test_trickling_does_not_extend_the_time(
    held: Held, begun: bytes, drop: bytes, limit: str
) -> None:
    with connect(held.port) as client:
        held.send(client, begun)
        for _ in range(9):
            held.send(client, drop)
            held.pass_time(getattr(held.timeouts, limit) / 10)
            assert held.connections() == 1
        held.send(client, drop)
        held.pass_time(1.1)
        assert held.connections() == 0


def test_a_body_that_comes_fast_enough_may_take_longer(held: Held) -> None:
    """Four times body_s, and above the rate all the while."""
    second = int(held.timeouts.rate)
    with connect(held.port) as client:
        held.send(client, request("/", "POST", Content_Length=str(40 * second)))
        for _ in range(40):
            held.send(client, bytes(second))
            held.pass_time(0.99)
        assert read_answer(client).body == f"/ {40 * second}".encode()


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(held: Held) -> None:
    with connect(held.port) as client:
        for _ in range(5):
            client.sendall(GET)
            assert read_answer(client).body == b"/ 0"
            held.until_idle()
            held.pass_time(held.timeouts.idle_s - 1)
            assert held.connections() == 1
        held.pass_time(2)
        assert read_all(client) == b""


def test_an_answer_may_take_its_time(held: Held) -> None:
    with connect(held.port) as client:
        held.send(client, request("/never"))
        held.pass_time(1e6)
        assert held.connections() == 1


def test_who_does_not_read_is_closed(held: Held) -> None:
    with connect(held.port) as client:
        client.sendall(request("/huge"))
        held.until_stalled()
        held.pass_time(held.timeouts.stalled_s - 1)
        assert held.connections() == 1
        held.pass_time(1000)  # more than what the system has taken meanwhile is worth
        assert held.connections() == 0
        assert len(read_all(client)) < HUGE


@pytest.mark.parametrize("headers", [{}, {"Connection": "close"}], ids=["kept", "closed"])
def test_who_reads_slowly_but_steadily_gets_all(
    serve_toy: Serve, monkeypatch: pytest.MonkeyPatch, headers: dict[str, Any]
) -> None:
    """It takes three times stalled_s and idle_s, though the answer was written in one piece."""
    rate = LONG // 40
    held = Held(serve_toy, monkeypatch, stalled_s=12, idle_s=12, rate=rate)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        client.connect(("127.0.0.1", held.port))
        client.sendall(request("/long", **headers))
        held.until_stalled()
        got = 0
        while got < LONG:
            end = min(got + rate, LONG)
            while got < end:
                part = client.recv(1 << 16)
                assert part, "it was closed"
                got += len(part)
            held.pass_time(0.99)


def test_who_reads_ever_so_slowly_is_closed(held: Held) -> None:
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        client.connect(("127.0.0.1", held.port))
        client.sendall(request("/huge"))
        held.until_stalled()
        while held.connections():
            assert client.recv(1 << 12)
            held.pass_time(1)


def test_who_does_not_read_a_short_answer_is_closed(held: Held) -> None:
    """It lies in the system's buffers: the connection is idle."""
    with connect(held.port) as client:
        held.send(client, GET)
        held.until_idle()
        held.pass_time(held.timeouts.idle_s + 1)
        assert held.connections() == 0
