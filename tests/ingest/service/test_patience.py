"""How long clients may take: they hang, trickle and do not read, until they are closed."""

from __future__ import annotations

import socket
import time
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from ingest.service.patience import Patience
from tests.ingest.service.connections import BRIEF, CHUNKED, GET, HUGE, LONG, Serve
from tests.support.raw_http import (
    LONG_S,
    connect,
    read_all,
    read_answer,
    request,
    send_until_closed,
    until,
)


@pytest.mark.parametrize(
    "sent",
    [b"", b"\r\n", b"GET / HT", GET[:-2]],
    ids=["nothing", "an empty line", "a line", "a head"],
)
def test_who_says_half_of_something_is_closed(serve_toy: Serve, sent: bytes) -> None:
    server = serve_toy(patience=BRIEF)
    with connect(server.port) as client:
        client.sendall(sent)
        assert read_all(client) == b""


HALF = request("/", "POST", b"12345")[:-2]


@pytest.mark.parametrize(
    "before, sent",
    [(0, HALF), (0, CHUNKED + b"5\r\n12"), (1, HALF), (0, HALF[:-3]),
     (0, request("/", "POST", Content_Length="1000000") + bytes(900_000))],
    ids=["a body", "chunks", "behind another request", "no byte", "fast at first"],
)  # fmt: skip
def test_who_sends_half_a_body_is_told(serve_toy: Serve, before: int, sent: bytes) -> None:
    server = serve_toy(patience=replace(BRIEF, rate=1000))
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
def test_trickling_does_not_extend_the_time(serve_toy: Serve, begun: bytes, drop: bytes) -> None:
    server = serve_toy(patience=BRIEF)
    with connect(server.port) as client:
        client.sendall(begun)
        with pytest.raises(ConnectionError):
            send_until_closed(client, drop, 0.05)


def test_a_body_that_comes_fast_enough_may_take_longer(serve_toy: Serve) -> None:
    """Twenty times body_s, and above the rate all the while."""
    server = serve_toy(patience=Patience(body_s=0.3, rate=1000))
    with connect(server.port) as client:
        client.sendall(request("/", "POST", Content_Length="30000"))
        for _ in range(30):
            client.sendall(bytes(1000))
            time.sleep(0.05)
        assert read_answer(client).body == b"/ 30000"


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(serve_toy: Serve) -> None:
    server = serve_toy(patience=BRIEF)
    with connect(server.port) as client:
        for _ in range(20):
            client.sendall(GET)
            assert read_answer(client).body == b"/ 0"
            time.sleep(0.05)
        assert read_all(client) == b""


def test_an_answer_may_take_its_time(serve_toy: Serve) -> None:
    server = serve_toy(patience=BRIEF)
    with connect(server.port) as client:
        client.sendall(request("/never"))
        client.settimeout(1.5)
        with pytest.raises(TimeoutError):
            client.recv(1)


def test_who_does_not_read_is_closed(serve_toy: Serve) -> None:
    server = serve_toy(patience=BRIEF)
    with connect(server.port) as client:
        client.sendall(request("/huge"))
        until(lambda: server.connections() == 1)
        until(lambda: server.connections() == 0)
        assert len(read_all(client)) < HUGE


@pytest.mark.parametrize("headers", [{}, {"Connection": "close"}], ids=["kept", "closed"])
def test_who_reads_slowly_but_steadily_gets_all(serve_toy: Serve, headers: dict[str, Any]) -> None:
    """It takes many times stalled_s and idle_s, though the answer was written in one piece."""
    server = serve_toy(patience=BRIEF)
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


def test_who_reads_ever_so_slowly_is_closed(serve_toy: Serve) -> None:
    server = serve_toy(patience=BRIEF)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        client.connect(("127.0.0.1", server.port))
        client.sendall(request("/huge"))
        until(lambda: server.connections() == 1)
        until(lambda: client.recv(1 << 12) and server.connections() == 0)


def test_who_does_not_read_a_short_answer_is_closed(serve_toy: Serve) -> None:
    """It lies in the system's buffers: the connection is idle."""
    server = serve_toy(patience=BRIEF)
    with connect(server.port) as client:
        client.sendall(GET)
        until(lambda: server.connections() == 1)
        until(lambda: server.connections() == 0)
