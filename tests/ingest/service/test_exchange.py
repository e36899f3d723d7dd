"""How much the guard lets through: bodies, requests at once, trailers."""

from __future__ import annotations

import pytest

pytest.importorskip("uvicorn")

from ingest.service import exchange
from tests.ingest.service.guarded import LIMITS, READ, WRITE, Serve, bearer, problem
from tests.support.raw_http import ask, connect, read_answer, request
from tests.support.waiting import wait_for


def chunked(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in [*parts, b""])


def test_a_body_may_be_as_long_as_allowed(serve_guarded: Serve) -> None:
    port = serve_guarded()
    assert ask(port, request("/v1/edges", "POST", bytes(1000))).body == b"/v1/edges 1000"
    sent = request("/v1/edges", "POST", Transfer_Encoding="chunked") + chunked(*[bytes(100)] * 10)
    assert ask(port, sent).body == b"/v1/edges 1000"


@pytest.mark.parametrize("length", ["1001", "99999999999999"])
def test_a_length_that_is_too_long_is_refused_before_it_is_read(
    serve_guarded: Serve, length: str
) -> None:
    answer = ask(serve_guarded(), request("/v1/edges", "POST", Content_Length=length))
    assert answer.status == 413
    assert "1,000 bytes" in problem(answer)


def test_chunks_that_become_too_long_are_refused(serve_guarded: Serve) -> None:
    head = request("/v1/edges", "POST", Transfer_Encoding="chunked")
    answer = ask(serve_guarded(), head + chunked(bytes(500), bytes(501)))
    assert answer.status == 413


def test_a_huge_body_is_not_read_to_its_end(serve_guarded: Serve) -> None:
    with connect(serve_guarded()) as client:
        client.sendall(request("/v1/edges", "POST", Content_Length=str(1 << 40)))
        with pytest.raises(ConnectionError):
            client.sendall(bytes(1 << 30))


def test_a_wrong_token_is_refused_before_the_body(serve_guarded: Serve) -> None:
    port = serve_guarded(read_token=READ)
    head = request("/v1/edges", "POST", Content_Length="1000")
    assert ask(port, head + b"only the beginning").status == 401


@pytest.mark.parametrize("body", [None, b"x"])
def test_too_many_at_once(serve_guarded: Serve, body: bytes | None) -> None:
    """Watchers of events do not count, and probes of health are answered all the while."""
    port = serve_guarded()
    watchers = [connect(port) for _ in range(5)]
    for watcher in watchers:
        watcher.sendall(request("/v1/events"))
        assert watcher.recv(1)
    held = [connect(port) for _ in range(LIMITS.max_requests)]
    for client in held:
        client.sendall(request("/v1/slow", "GET" if body is None else "POST", body))
    wait_for(lambda: ask(port, request("/v1/graph")).status == 503, "all places are taken")
    for sent in (request("/v1/graph"), request("/v1/edges", "POST", b"{}")):
        refused = ask(port, sent)
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        problem(refused)
    for probe in ("/healthz", "/readyz"):
        assert ask(port, request(probe)).status == 200
    for client in [*held, *watchers]:
        client.close()
    wait_for(lambda: ask(port, request("/v1/graph")).status == 200, "a place is free")


@pytest.mark.parametrize("sent", [b"", b"1"])
def test_requests_that_are_half_sent_take_no_place(serve_guarded: Serve, sent: bytes) -> None:
    port = serve_guarded()
    held = [connect(port) for _ in range(10 * LIMITS.max_requests)]
    for client in held:
        client.sendall(request("/v1/edges", "POST", Content_Length="2") + sent)
    for _ in range(10):
        assert ask(port, request("/v1/graph")).status == 200
        assert ask(port, request("/v1/edges", "POST", b"{}")).status == 200
    for client in held:
        client.sendall(b"22"[len(sent) :])
        assert read_answer(client).body == b"/v1/edges 2"
        client.close()


def test_a_body_that_becomes_whole_while_all_places_are_taken_is_refused(
    serve_guarded: Serve,
) -> None:
    port = serve_guarded()
    late = connect(port)
    late.sendall(request("/v1/edges", "POST", Content_Length="2") + b"1")
    assert ask(port, request("/v1/graph")).status == 200  # it was let in before
    held = [connect(port) for _ in range(LIMITS.max_requests)]
    for client in held:
        client.sendall(request("/v1/slow"))
    wait_for(lambda: ask(port, request("/v1/graph")).status == 503, "all places are taken")
    late.sendall(b"2")
    assert read_answer(late).status == 503
    for client in [*held, late]:
        client.close()


def test_the_body_that_stands_still_makes_room(
    serve_guarded: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bodies that never end lock nobody out."""
    monkeypatch.setattr(exchange, "_HALF_BYTES", 2500)
    join, joined = exchange.Exchange._join_halves, []

    def noted(self: exchange.Exchange) -> None:
        join(self)
        joined.append(self._body_bytes)

    monkeypatch.setattr(exchange.Exchange, "_join_halves", noted)
    port = serve_guarded()
    held = [connect(port) for _ in range(5)]
    for number, client in enumerate(held, 1):
        client.sendall(request("/v1/edges", "POST", Content_Length="1000") + bytes(999))
        wait_for(lambda: joined.count(999) == number, "they stand still in this order")  # noqa: B023
    for client in held[:3]:
        refused = read_answer(client)
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert "stood still" in problem(refused)
    for client in held[3:]:
        client.sendall(b"x")
        assert read_answer(client).body == b"/v1/edges 1000"
    assert ask(port, request("/v1/edges", "POST", bytes(1000))).status == 200
    for client in held:
        client.close()


def test_who_leaves_in_the_middle_of_a_body_is_forgotten(serve_guarded: Serve) -> None:
    port = serve_guarded()
    for _ in range(4 * LIMITS.max_requests):
        with connect(port) as client:
            client.sendall(request("/v1/edges", "POST", Content_Length="2") + b"1")
    wait_for(lambda: ask(port, request("/v1/graph")).status == 200, "a place is free")


@pytest.mark.parametrize(
    "headers, status",
    [({"Content_Encoding": "gzip"}, 415), ({"Content_Encoding": "GZIP, identity"}, 415),
     ({"Content_Encoding": "br"}, 415), ({"Content_Encoding": "identity"}, 200),
     ({"Content_Type": "application/json; charset=latin-1"}, 415),
     ({"Content_Type": 'application/json;a=b; Charset = "UTF-16"'}, 415),
     ({"Content_Type": "application/json; charset=utf-8"}, 200),
     ({"Content_Type": 'application/json;charset="UTF-8"'}, 200)],
)  # fmt: skip
def test_bodies_that_would_have_to_be_decoded(
    serve_guarded: Serve, headers: dict[str, str], status: int
) -> None:
    answer = ask(serve_guarded(), request("/v1/edges", "POST", b"{}", **headers))
    assert answer.status == status
    if status == 415:
        assert problem(answer).startswith(next(iter(headers)).replace("_", "-") + ": ")


TRAILERS = b"Origin: http://evil.org\r\nAuthorization: Bearer %s\r\nHost: b\r\n" % WRITE.encode()


def test_trailers_are_no_headers(serve_guarded: Serve) -> None:
    """Neither of this request nor of the next."""
    port = serve_guarded(read_token=READ, write_token=WRITE)
    head = request("/v1/edges", "POST", Transfer_Encoding="chunked")
    sent = head + b"1\r\nx\r\n0\r\n" + TRAILERS + b"\r\n"
    with connect(port) as client:
        client.sendall(sent + request("/v1/graph"))
        assert [read_answer(client).status for _ in range(2)] == [401, 401]
    head = request("/v1/edges", "POST", Transfer_Encoding="chunked", **bearer(READ))
    assert ask(port, head + b"1\r\nx\r\n0\r\n" + TRAILERS + b"\r\n").body == b"/v1/edges 1"
