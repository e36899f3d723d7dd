"""The client over HTTP: against a real service, and against servers that go wrong."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

import ingest
import lpma
from ingest import Ask, QueryError, QueryRefused, QueryTimeout, RecordError, SourceError
from ingest.service.context import Limits
from lpma import Kind
from tests.support.command_line import run
from tests.support.oracles import assert_same
from tests.support.serving import every_query
from tests.support.waiting import HANGS_S

Serve = Callable[..., Any]


def graph_of(seed: int, vertices: int = 12) -> lpma.Graph:
    graph = lpma.Graph(device="cpu", predecessors=True)
    src, dst = np.random.default_rng(seed).integers(0, vertices, (2, 60))
    graph.insert(src, dst, time=5)
    return graph


def alone(graph: lpma.Graph, query: Ask) -> Any:
    u = query.src
    match query.kind:
        case Kind.EDGE:
            return graph.edges([u], [query.dst])
        case Kind.SUCCESSORS:
            return graph.successors([u])
        case Kind.PREDECESSORS:
            return graph.predecessors([u])
        case Kind.HOPS:
            return graph.hops([u], query.steps or 0)
        case Kind.DEGREE:
            return graph.degree([u])
        case _:
            return graph.has_vertices([u])


def test_every_query(serve_store: Serve) -> None:
    graph = graph_of(1)
    with ingest.Client.http(serve_store(graph).url) as client:
        queries = every_query(13)
        for query, reply in zip(queries, client.ask_many(queries), strict=True):
            assert reply.error is None
            assert reply.kind is query.kind
            assert reply.version == graph.version
            assert_same(reply.answer, alone(graph, query))
        assert_same(client.edge(1, 2).answer, graph.edges([1], [2]))
        assert_same(client.successors(3).answer, graph.successors([3]))
        assert_same(client.predecessors(3).answer, graph.predecessors([3]))
        assert_same(client.hops(3, 2).answer, graph.hops([3], 2))
        assert_same(client.degree(3).answer, graph.degree([3]))
        assert_same(client.vertex(3).answer, graph.has_vertices([3]))
        assert client.ask_many([]) == []


def test_pages(serve_store: Serve) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([1] * 25 + [2] * 8, [*range(25), *range(8)])
    served = serve_store(graph, limits=Limits(page_rows=10))
    with ingest.Client.http(served.url) as client:
        first = client.successors(1)
        assert (first.more, first.rows, first.cursor) == (True, 10, 9)
        assert client.successors(1, after=9).answer.ids.tolist() == [*range(10, 20)]  # type: ignore[union-attr]
        pages = list(client.pages(Ask(Kind.SUCCESSORS, 1)))
        assert [page.rows for page in pages] == [10, 10, 5]
        assert [page.more for page in pages] == [True, True, False]
        numpys = client.successors(first.answer.ids[1], after=first.answer.ids[9])  # type: ignore[union-attr]
        assert numpys.answer.ids.tolist() == [*range(10, 20)]  # type: ignore[union-attr]
        assert client.hops(np.int64(2), 1).rows == 8
        many = client.ask_many([Ask(Kind.SUCCESSORS, u) for u in (1, 3, 2)])
        assert [reply.answer.ids.tolist() for reply in many] == [[*range(25)], [], [*range(8)]]  # type: ignore[union-attr]


def test_pages_go_on_after_the_rest_was_dropped(serve_store: Serve) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([1] * 25, range(25))
    served = serve_store(graph, limits=Limits(page_rows=10, kept_s=0.0))
    with ingest.Client.http(served.url) as client:
        pages = list(client.pages(Ask(Kind.SUCCESSORS, 1)))
    ids = [page.answer.ids.tolist() for page in pages]  # type: ignore[union-attr]
    assert [*chain(*ids)] == [*range(25)]


def test_names(serve_stream: Serve) -> None:
    served = serve_stream(names=True)
    names: list[int | str] = ["bob", 7, -3, "7", 2**64 - 1]
    served.produce(["ann"] * 5, names, names=True)
    served.settle()
    with ingest.Client.http(served.url) as client:
        assert client.successors("ann").answer.ids.tolist() == names  # type: ignore[union-attr]
        assert client.successors("ann", after=-3).answer.ids.tolist() == names[3:]  # type: ignore[union-attr]
        found = client.ask_many([Ask(Kind.EDGE, "ann", name) for name in [*names, "carl"]])
        assert [bool(reply.answer.found[0]) for reply in found] == [True] * 5 + [False]  # type: ignore[union-attr]
        with pytest.raises(RecordError, match="64-bit"):
            client.degree(2**64)


def test_what_was_applied_is_seen_by_any_thread(serve_stream: Serve) -> None:
    served = serve_stream()
    served.produce([0] * 50, range(50))
    served.settle()
    with ingest.Client.http(served.url) as client, ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(client.degree, [0] * 200))
    assert {int(reply.answer[0]) for reply in replies} == {50}  # type: ignore[index]


def test_pages_of_a_row_that_is_longer_than_an_answer(serve_stream: Serve) -> None:
    """Also if the graph changes between two answers: then they go on at a newer version."""
    served = serve_stream(limits=Limits(max_answer_rows=3, page_rows=2))
    served.produce([0] * 20, range(20))
    served.settle()
    with ingest.Client.http(served.url) as client:
        ids: list[int] = []
        for number, reply in enumerate(client.pages(Ask(Kind.SUCCESSORS, 0))):
            ids += reply.answer.ids.tolist()  # type: ignore[union-attr]
            if number == 4:
                version = served.context.graph.version
                served.produce([0], [100])
                while served.context.graph.version == version:
                    assert not served.failures
    assert ids == [*range(20), 100]


def test_refusals(serve_store: Serve) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([1] * 100, range(100))
    limits = Limits(max_hops=1, max_rows=10, kept_bytes=1 << 10)
    with ingest.Client.http(serve_store(graph, limits=limits).url) as client:
        for ask, error in (
            (lambda: client.hops(1, 2), "hops"),
            (lambda: client.predecessors(1), "unsupported"),
        ):
            with pytest.raises(QueryRefused) as refused:
                ask()
            assert refused.value.reply.error == error
            assert refused.value.reply.message
        both = client.ask_many([Ask(Kind.HOPS, 1, steps=2), Ask(Kind.DEGREE, 1)])
        assert [reply.error for reply in both] == ["hops", None]
        long = client.ask_many([Ask(Kind.SUCCESSORS, 1)] * 2)
        assert [reply.error for reply in long] == ["memory", "memory"]
        for ask in (
            lambda: client.degree("ann"),
            lambda: client.degree(-1),
            lambda: client.ask(Ask(Kind.HOPS, 1)),
            lambda: client.ask(Ask(Kind.DEGREE, 1, dst=2)),
            lambda: client.ask(Ask(Kind.DEGREE, 1, after=2)),
            lambda: client.ask(Ask(Kind.DEGREE, 1, steps=2)),
            lambda: client.ask(Ask(Kind.EDGE, 1)),
        ):
            with pytest.raises(RecordError):
                ask()
        with pytest.raises(QueryError, match="positive"):
            client.degree(1, timeout=0)
        with pytest.raises(QueryError, match="timeout is nan"):
            client.degree(1, timeout=float("nan"))
        assert client.degree(1, timeout=float("inf")).rows == 1
    with pytest.raises(QueryError, match="closed"):
        client.degree(1)


@pytest.mark.parametrize(
    "url", ["", "host:80", "ftp://h", "http://", "http://u:p@h", "http://h/?q", "http://h:99999"]
)
def test_no_such_url(url: str) -> None:
    with pytest.raises(QueryError):
        ingest.Client.http(url)


def test_no_such_token() -> None:
    for token in ("", "a b", "a\nb", "ä"):
        with pytest.raises(QueryError, match="token"):
            ingest.Client.http("http://h", token)


# Servers that go wrong -----------------------------------------------------------------------


def received(client: socket.socket) -> bytes:
    """One request."""
    data = b""
    while True:
        data += client.recv(1 << 16)
        head, _, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"Content-Length: (\d+)", head)
        if length is not None and len(body) >= int(length[1]):
            return data


@contextmanager
def answering(*answers: bytes | None) -> Iterator[tuple[str, list[bytes]]]:
    """A server whose connections are each given one of these answers, and closed; None: nothing
    until the client goes. The URL, and what was asked."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for answer in answers:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    asked.append(received(client))
                    if answer is None:
                        client.recv(1)
                    else:
                        client.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
    thread.join(10)


def http(status: int, body: bytes, *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


GOOD = http(200, msgpack.packb({"version": 1, "time": 2, "degree": (3).to_bytes(8, "little")}))
BUSY = http(503, b"{}", "Retry-After: 0")


def test_asks_again_when_it_is_told_to() -> None:
    unclear = http(429, b"no json", "Retry-After: soon")
    with (
        answering(BUSY, unclear, GOOD) as (url, asked),
        ingest.Client.http(url, "secret") as client,
    ):
        assert client.degree(1).answer.tolist() == [3]  # type: ignore[union-attr]
    assert len(asked) == 3
    assert all(b"Authorization: Bearer secret\r\n" in request for request in asked)


def test_gives_up_asking_when_there_is_no_time_left() -> None:
    with (
        answering(http(503, b"{}", "Retry-After: 60")) as (url, _),
        ingest.Client.http(url) as client,
        pytest.raises(QueryRefused) as refused,
    ):
        client.degree(1, timeout=50)
    assert refused.value.reply.error == "retry"
    assert refused.value.reply.retry_after_ms == 60_000


def test_time_outs() -> None:
    for answer in (None, http(504, b'{"detail": "late"}')):
        with answering(answer) as (url, _), ingest.Client.http(url) as client:
            with pytest.raises(QueryTimeout) as late:
                client.ask_many([Ask(Kind.DEGREE, 1), Ask(Kind.DEGREE, 2)], timeout=0.3)
            assert late.value.replies == [None, None]


@pytest.mark.parametrize("answer", [
    b"", b"nonsense\r\n\r\n", http(200, b""), http(200, b"\xc1"), http(200, msgpack.packb([1])),
    http(200, msgpack.packb({"version": -1, "time": 0, "degree": b""})),
    http(200, msgpack.packb({"version": 1, "time": 0, "degree": b"123"})),
    http(500, b"oops"), http(401, b'{"detail": "a token is asked for"}'), http(404, b"\xff"),
    http(403, b"[" * 10_000), http(200, b"x")[:-1],
])  # fmt: skip
def test_what_is_no_answer(answer: bytes) -> None:
    with (
        answering(answer) as (url, _),
        ingest.Client.http(url) as client,
        pytest.raises(SourceError),
    ):
        client.degree(1, timeout=HANGS_S)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with ingest.Client.http(url) as client, pytest.raises(SourceError, match="does the service"):
        client.degree(1)


def test_a_kept_connection_that_was_closed_is_replaced() -> None:
    kept = GOOD.replace(b"Connection: close", b"Connection: keep-alive")
    with answering(kept, kept, kept) as (url, asked), ingest.Client.http(url) as client:
        for _ in range(3):
            assert client.degree(1).version == 1
    assert len(asked) == 3


# The command line ----------------------------------------------------------------------------


def test_lpma_query(serve_store: Serve, tmp_path: Path) -> None:
    url = serve_store(graph_of(2)).url
    token = tmp_path / "token"
    token.write_text("secret\n")
    found = run("query", "edge", url, "1", "2", "--json", "--token-file", str(token))
    expected = graph_of(2).edges(1, 2).found[0]
    assert json.loads(found.stdout)["results"][0]["found"] == bool(expected)
    found = run("query", "successors", url, "3", "4", "--json")
    ids = [result["ids"] for result in json.loads(found.stdout)["results"]]
    assert ids == [graph_of(2).successors(u).ids.tolist() for u in (3, 4)]
