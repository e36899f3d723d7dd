"""What is no request, and many in one piece: refused and closed, or answered in order."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from ingest.service.connection import MAX_CHUNKS, MAX_HEAD_BYTES, MAX_HEADERS, MAX_PIPELINED
from tests.ingest.service.connections import CHUNKED, GET, Held, Serve, is_served
from tests.support.raw_http import ask, connect, read_all, read_answer, request
from tests.support.waiting import wait_for

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
def test_ambiguous_or_broken_requests_are_refused_and_closed(serve_toy: Serve, sent: bytes) -> None:
    """Whatever follows is not read as another request: nothing is smuggled past a proxy."""
    server = serve_toy()
    with connect(server.port) as client:
        client.sendall(sent)
        client.sendall(request("/smuggled"))
        answer = read_all(client)
    assert answer.startswith(b"HTTP/1.1 400 ") or answer == b""
    assert b"/smuggled" not in answer
    assert answer.count(b"HTTP/1.1") == (answer != b"") + answer.count(b"not a request of HTTP/1.1")
    assert is_served(server.port)


def test_requests_in_one_piece_are_answered_in_order(serve_toy: Serve) -> None:
    server = serve_toy()
    with connect(server.port) as client:
        client.sendall(request("/a") + request("/b", "POST", b"123") + request("/c"))
        assert [read_answer(client).body for _ in "abc"] == [b"/a 0", b"/b 3", b"/c 0"]


def test_too_many_requests_in_one_piece_are_refused(serve_toy: Serve) -> None:
    server = serve_toy()
    with connect(server.port) as client:
        client.sendall(GET * (MAX_PIPELINED + 2))
        assert read_all(client).count(b"HTTP/1.1 200") <= MAX_PIPELINED + 1
    with connect(server.port) as client:
        client.sendall(GET * MAX_PIPELINED)
        assert [read_answer(client).status for _ in range(MAX_PIPELINED)] == [200] * MAX_PIPELINED
    assert is_served(server.port)


def test_a_bad_request_behind_one_that_is_answered_is_not_its_answer(serve_toy: Serve) -> None:
    server = serve_toy()
    with connect(server.port) as client:
        client.sendall(request("/never") + b"nonsense\r\n\r\n")
        assert read_all(client) == b""


def answer_to_parts(held: Held, sent: list[bytes]) -> bytes:
    """What comes back when these parts are read one by one, until the server closes."""
    with connect(held.port) as client:
        held.send(client, *sent)
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
def test_a_long_head_is_refused(held: Held, sent: list[bytes]) -> None:
    answer = answer_to_parts(held, sent)
    assert answer.startswith(b"HTTP/1.1 431 ") or answer == b""  # a reset may overtake it
    assert is_served(held.port)


@pytest.mark.parametrize(
    "sent",
    [[CHUNKED + b"0\r\n", *[b"a:\r\n" * 20] * (MAX_HEADERS // 20 + 1)],
     [CHUNKED + b"0\r\na: ", *[b"b" * 1000] * 40],
     [CHUNKED + b"1", *[b";" + b"b" * 1000] * 40]],
    ids=["many trailers", "a trailer without end", "an extension without end"],
)  # fmt: skip
def test_what_is_around_chunks_is_bounded_as_a_head(held: Held, sent: list[bytes]) -> None:
    answer = answer_to_parts(held, sent)
    assert answer.startswith(b"HTTP/1.1 431 ") or answer == b""
    assert b"200" not in answer
    assert is_served(held.port)


@pytest.mark.parametrize(
    "chunk, enough",
    [(b"1\r\nx\r\n", MAX_CHUNKS + 1), (b"1;" + b"b" * 1000 + b"\r\nx\r\n", 1000)],
    ids=["one byte each", "long extensions"],
)
def test_chunks_with_little_in_them_are_refused(
    serve_toy: Serve, chunk: bytes, enough: int
) -> None:
    server = serve_toy()
    assert ask(server.port, CHUNKED, chunk * 100, b"0\r\n\r\n").body == b"/ 100"
    with connect(server.port) as client:
        with suppress(ConnectionError):
            client.sendall(CHUNKED + chunk * enough)
        answer = read_all(client)
    assert (answer.startswith(b"HTTP/1.1 400 ") and b"larger" in answer) or answer == b""
    assert is_served(server.port)


def test_many_chunks_of_a_fair_size_are_a_body(serve_toy: Serve) -> None:
    server = serve_toy()
    chunk = b"64\r\n" + bytes(100) + b"\r\n"
    said = f"/ {100 * 2 * MAX_CHUNKS}".encode()
    assert ask(server.port, CHUNKED, chunk * (2 * MAX_CHUNKS), b"0\r\n\r\n").body == said


def test_a_head_without_end_behind_an_answer_without_end_is_not_kept(serve_toy: Serve) -> None:
    server = serve_toy()
    with connect(server.port) as client:
        client.sendall(request("/events") + b"GET / HTTP/1.1\r\nA: ")
        client.recv(1)
        with pytest.raises(ConnectionError):
            wait_for(lambda: client.sendall(b"b" * 1000), "the connection is closed")


def test_an_upgrade_that_is_not_offered_is_ignored(serve_toy: Serve) -> None:
    """Clients of HTTP/2 ask for it in their first request, and go on without."""
    server = serve_toy()
    upgrade: dict[str, Any] = {"Connection": "Upgrade", "Upgrade": "h2c"}
    with connect(server.port) as client:
        client.sendall(request("/a", **upgrade))
        assert read_answer(client).body == b"/a 0"
        client.sendall(request("/b", "POST", b"12", **upgrade))
        assert read_answer(client).body == b"/b 2"
        client.sendall(request("/c"))
        assert read_answer(client).body == b"/c 0"
