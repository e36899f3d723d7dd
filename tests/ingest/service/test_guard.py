"""What the guard lets through: whose tokens, by which names, from which pages, how much."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("uvicorn")

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from ingest.errors import PipelineError
from ingest.events import JsonLines
from ingest.service import exchange
from ingest.service.access import Access, Right
from ingest.service.context import Limits
from ingest.service.exchange import SECURITY_HEADERS
from ingest.service.figures import Figures
from ingest.service.guard import Guard
from ingest.service.patience import Patience
from ingest.service.server import AsgiServer, bind
from tests.support.raw_http import (
    Answer,
    ask,
    connect,
    read_all,
    read_answer,
    request,
    until,
)

READ = "to-read-" + "r" * 20
WRITE = "to-write-" + "w" * 20
LIMITS = Limits(max_body_bytes=1000, max_requests=3)


async def echo(asked: Request) -> Response:
    return PlainTextResponse(f"{asked.url.path} {len(await asked.body())}")


async def slow(asked: Request) -> Response:
    """Answers when its client is gone."""
    await asked.body()
    while not await asked.is_disconnected():
        await asyncio.sleep(0.01)
    return PlainTextResponse("")


async def broken(asked: Request) -> Response:
    raise ValueError("a bug")


async def events(asked: Request) -> Response:
    async def parts() -> Any:
        yield "data: 1\n\n"
        await never.wait()

    never = asyncio.Event()
    return StreamingResponse(parts(), media_type="text/event-stream")


PATHS = [
    "/", "/docs", "/openapi.json", "/healthz", "/readyz", "/metrics", "/page/page.js",
    "/v1/graph", "/v1/page/letters",
]  # fmt: skip
QUERIES = ["edges", "successors", "predecessors", "degree", "vertices", "hops"]


def toy() -> Starlette:
    return Starlette(
        routes=[
            *(Route(path, echo) for path in PATHS),
            *(Route(f"/v1/{name}", echo, methods=["POST"]) for name in QUERIES),
            Route("/v1/updates", echo, methods=["POST"]),
            Route("/v1/successors/{u:path}", echo),
            Route("/v1/broken", broken),
            Route("/v1/slow", slow, methods=["GET", "POST"]),
            Route("/v1/events", events),
        ]
    )


Serve = Callable[..., int]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """The port of a guarded toy: serve(read_token=…, limits=…)."""
    servers: list[AsgiServer] = []

    def make(limits: Limits = LIMITS, **access: Any) -> int:
        guard = Guard(toy(), Access(**access), "127.0.0.1", limits, Figures())
        servers.append(AsgiServer(guard, bind("127.0.0.1", 0), patience=Patience(grace_s=1)))
        return servers[-1].port

    yield make
    for server in servers:
        server.close()


def problem(answer: Answer) -> str:
    """What a problem document says to do."""
    assert answer.headers["content-type"] == "application/problem+json"
    document = json.loads(answer.body)
    assert document.keys() == {"type", "title", "status", "detail"}
    assert document["status"] == answer.status
    return str(document["detail"])


# Tokens --------------------------------------------------------------------------------------


def bearer(token: str | None) -> dict[str, Any]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    "token, reads, writes",
    [(None, 401, 401), (READ, 200, 403), (WRITE, 200, 200), ("wrong" * 5, 401, 401),
     (READ[:-1], 401, 401), (READ + "r", 401, 401), ("", 401, 401), ("ü" * 20, 401, 401)],
)  # fmt: skip
def test_tokens(serve: Serve, token: str | None, reads: int, writes: int) -> None:
    port = serve(read_token=READ, write_token=WRITE)
    given = bearer(token)
    for path in ("/v1/graph", "/metrics", "/v1/page/letters", "/v1/successors/7", "/none"):
        expected = 404 if (path, reads) == ("/none", 200) else reads
        assert ask(port, request(path, **given)).status == expected
    for name in QUERIES:
        assert ask(port, request(f"/v1/{name}", "POST", b"{}", **given)).status == reads
    assert ask(port, request("/v1/updates", "POST", b"{}", **given)).status == writes
    for method, path in (("DELETE", "/"), ("PUT", "/v1/edges"), ("POST", "/v1/none")):
        answer = ask(port, request(path, method, b"", **given))
        assert answer.status == writes if writes != 200 else answer.status in (404, 405, 200)


def test_the_page_needs_no_token(serve: Serve) -> None:
    port = serve(read_token=READ)
    for path in ("/", "/docs", "/openapi.json", "/healthz", "/readyz", "/page/page.js"):
        assert ask(port, request(path)).status == 200
        with connect(port) as client:
            client.sendall(request(path, "HEAD", Connection="close"))
            assert read_all(client).startswith(b"HTTP/1.1 200 OK\r\n")


def test_what_a_refusal_says(serve: Serve) -> None:
    port = serve(read_token=READ, write_token=WRITE)
    absent = ask(port, request("/v1/graph"))
    assert absent.headers["www-authenticate"] == 'Bearer realm="lpma"'
    assert "Authorization: Bearer" in problem(absent)
    wrong = ask(port, request("/v1/graph", **bearer("w" * 20)))
    assert wrong.headers["www-authenticate"] == 'Bearer realm="lpma", error="invalid_token"'
    weak = ask(port, request("/v1/updates", "POST", b"", **bearer(READ)))
    assert 'error="insufficient_scope"' in weak.headers["www-authenticate"]
    assert "--write-token-file" in problem(weak)


@pytest.mark.parametrize(
    "header", [f"bearer {READ}", f"BEARER  {READ} ", f"Bearer\t{READ}", f"Basic {READ}", READ]
)
def test_how_a_token_is_written(serve: Serve, header: str) -> None:
    port = serve(read_token=READ)
    expected = 200 if header.lower().startswith("bearer ") else 401
    assert ask(port, request("/v1/graph", Authorization=header)).status == expected


def test_two_authorizations_are_refused(serve: Serve) -> None:
    port = serve(read_token=READ)
    twice = request("/v1/graph", Authorization=f"Bearer {READ}", AUTHORIZATION="Bearer x")
    assert ask(port, twice).status == 400


def test_a_token_in_the_url_counts_for_nothing(serve: Serve) -> None:
    port = serve(read_token=READ)
    for name in ("token", "access_token", "bearer"):
        assert ask(port, request(f"/v1/graph?{name}={READ}")).status == 401


def test_with_one_token_the_other_right_is_nobodys(serve: Serve) -> None:
    reading, writing = serve(read_token=READ), serve(write_token=WRITE)
    assert ask(reading, request("/v1/updates", "POST", b"", **bearer(READ))).status == 403
    assert ask(reading, request("/v1/updates", "POST", b"", **bearer(""))).status == 401
    assert ask(writing, request("/v1/graph")).status == 401
    assert ask(writing, request("/v1/graph", **bearer(WRITE))).status == 200


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """By compare_digest, of values of one length, and both of them whatever the first says."""
    compared: list[tuple[bytes, bytes]] = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((a, b))
        return a == b

    monkeypatch.setattr(secrets, "compare_digest", compare)
    access = Access(READ, WRITE)
    for token, right in ((READ, Right.READ), (WRITE, Right.WRITE), ("x", Right.NOTHING)):
        compared.clear()
        assert access.right_of(token.encode()) is right
        assert len(compared) == 2
        assert {len(value) for pair in compared for value in pair} == {32}
    assert Access(READ).right_of(b"") is Right.NOTHING
    assert Access(READ).right_of(None) is Right.NOTHING


@pytest.mark.parametrize("token", ["", "short", "with blank in it, long", "ü" * 20, "x" * 2000])
def test_a_token_that_is_too_weak_or_cannot_be_sent(token: str) -> None:
    with pytest.raises(PipelineError, match="openssl rand -hex 32") as raised:
        Access(token)
    assert token == "" or token not in str(raised.value)


def test_one_token_for_both_is_refused() -> None:
    with pytest.raises(PipelineError, match="make two"):
        Access(READ, READ)


# Names and origins ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host, status",
    [("localhost", 200), ("LOCALHOST:8080", 200), ("127.0.0.1:1", 200), ("[::1]:80", 200),
     ("192.168.1.7:80", 200), ("[fe80::1]", 200), ("graph.example.org", 200),
     ("evil.example.org", 421), ("localhost.evil.org", 421), ("127.0.0.1.evil.org", 421),
     ("127.1.evil", 421), ("", 400), ("a b", 400), ("localhost:80:90", 400), ("localhost/x", 400),
     ("u@localhost", 400), ("[localhost]", 400), ("localhost:port", 400)],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/v1/graph"])
def test_the_names_it_goes_by(serve: Serve, host: str, status: int, path: str) -> None:
    """A page whose name is made to resolve to this machine is not let in."""
    port = serve(allow_hosts=("graph.example.org",))
    assert ask(port, request(path, Host=host)).status == status


def test_a_name_that_is_not_its_own_is_told_how(serve: Serve) -> None:
    answer = ask(serve(), request("/", Host="store:80"))
    assert answer.status == 421
    assert "--allow-host store" in problem(answer)


def test_no_host_and_two_hosts(serve: Serve) -> None:
    port = serve()
    assert ask(port, b"GET / HTTP/1.1\r\n\r\n").status == 400
    assert ask(port, b"GET / HTTP/1.0\r\n\r\n").status == 400
    assert ask(port, request("/", HOST="localhost")).status == 400


@pytest.mark.parametrize(
    "origin, status",
    [("http://localhost:80", 200), ("https://localhost:80", 200), ("HTTP://LOCALHOST:80", 200),
     ("http://localhost:3000", 403), ("http://localhost", 403), ("http://evil.org", 403),
     ("null", 403), ("", 403), ("http://localhost:80.evil.org", 403), ("localhost:80", 403),
     ("https://graph.example.org", 200), ("https://graph.example.org:99", 200),
     ("https://graph.example.org.evil.org", 403)],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/v1/updates", "/v1/edges"])
def test_scripts_of_other_pages(serve: Serve, origin: str, status: int, path: str) -> None:
    """Another port of the same machine is another origin, too."""
    port = serve(allow_hosts=("graph.example.org",))
    sent = request(path, "POST", b"{}", Host="localhost:80", Origin=origin)
    answer = ask(port, sent)
    assert answer.status == status
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("site", ["same-origin", "none", "same-site", "cross-site", "unheard-of"])
def test_what_a_browser_says_of_the_site(serve: Serve, site: str) -> None:
    """An <img> of another page may not set an algorithm going, but a link to the page works."""
    port = serve()
    expected = 200 if site in ("same-origin", "none") else 403
    for path, method in (("/v1/graph", "GET"), ("/metrics", "GET"), ("/v1/edges", "POST")):
        assert ask(port, request(path, method, b"", Sec_Fetch_Site=site)).status == expected
    assert ask(port, request("/", Sec_Fetch_Site=site)).status == 200


def test_a_preflight_allows_nothing(serve: Serve) -> None:
    port = serve()
    plain = ask(port, request("/v1/edges", "OPTIONS"))
    assert (plain.status, plain.headers["allow"], plain.body) == (204, "POST", b"")
    asked: dict[str, Any] = {"Origin": "http://evil.org", "Access_Control_Request_Method": "POST"}
    answer = ask(port, request("/v1/edges", "OPTIONS", **asked))
    assert answer.status == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "path",
    ["/page/../secret", "/page/%2e%2e/secret", "/page/..%2fsecret", "/..", "/page/./page.js",
     "/page/..%5csecret", "/page/%2E%2E", "//page/../x", "/page/a%00.js", "/v1/successors/a%0ab"],
)  # fmt: skip
def test_a_path_stays_below_its_folder(serve: Serve, path: str) -> None:
    answer = ask(serve(), request(path))
    assert answer.status == 400
    assert "by POST" in problem(answer)


@pytest.mark.parametrize("name", ["%22a.b%22", "...", "%22..%22", "a%2Fb", "%22a%5Cb%22", "%252e"])
def test_names_with_dots_and_slashes_are_paths(serve: Serve, name: str) -> None:
    assert ask(serve(), request(f"/v1/successors/{name}")).status == 200


# Sizes ---------------------------------------------------------------------------------------


def chunked(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in [*parts, b""])


def test_a_body_may_be_as_long_as_allowed(serve: Serve) -> None:
    port = serve()
    assert ask(port, request("/v1/edges", "POST", bytes(1000))).body == b"/v1/edges 1000"
    sent = request("/v1/edges", "POST", Transfer_Encoding="chunked") + chunked(*[bytes(100)] * 10)
    assert ask(port, sent).body == b"/v1/edges 1000"


@pytest.mark.parametrize("length", ["1001", "99999999999999"])
def test_a_length_that_is_too_long_is_refused_before_it_is_read(serve: Serve, length: str) -> None:
    answer = ask(serve(), request("/v1/edges", "POST", Content_Length=length))
    assert answer.status == 413
    assert "1,000 bytes" in problem(answer)


def test_chunks_that_become_too_long_are_refused(serve: Serve) -> None:
    head = request("/v1/edges", "POST", Transfer_Encoding="chunked")
    answer = ask(serve(), head + chunked(bytes(500), bytes(501)))
    assert answer.status == 413


def test_a_huge_body_is_not_read_to_its_end(serve: Serve) -> None:
    with connect(serve()) as client:
        client.sendall(request("/v1/edges", "POST", Content_Length=str(1 << 40)))
        with pytest.raises(ConnectionError):
            client.sendall(bytes(1 << 30))


def test_a_wrong_token_is_refused_before_the_body(serve: Serve) -> None:
    port = serve(read_token=READ)
    head = request("/v1/edges", "POST", Content_Length="1000")
    assert ask(port, head + b"only the beginning").status == 401


@pytest.mark.parametrize("body", [None, b"x"])
def test_too_many_at_once(serve: Serve, body: bytes | None) -> None:
    """Watchers of events do not count, and probes of health are answered all the while."""
    port = serve()
    watchers = [connect(port) for _ in range(5)]
    for watcher in watchers:
        watcher.sendall(request("/v1/events"))
        assert watcher.recv(1)
    held = [connect(port) for _ in range(LIMITS.max_requests)]
    for client in held:
        client.sendall(request("/v1/slow", "GET" if body is None else "POST", body))
    until(lambda: ask(port, request("/v1/graph")).status == 503)
    for sent in (request("/v1/graph"), request("/v1/edges", "POST", b"{}")):
        refused = ask(port, sent)
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        problem(refused)
    for probe in ("/healthz", "/readyz"):
        assert ask(port, request(probe)).status == 200
    for client in [*held, *watchers]:
        client.close()
    until(lambda: ask(port, request("/v1/graph")).status == 200)


@pytest.mark.parametrize("sent", [b"", b"1"])
def test_requests_that_are_half_sent_take_no_place(serve: Serve, sent: bytes) -> None:
    port = serve()
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


def test_a_body_that_becomes_whole_while_all_places_are_taken_is_refused(serve: Serve) -> None:
    port = serve()
    late = connect(port)
    late.sendall(request("/v1/edges", "POST", Content_Length="2") + b"1")
    assert ask(port, request("/v1/graph")).status == 200  # it was let in before
    held = [connect(port) for _ in range(LIMITS.max_requests)]
    for client in held:
        client.sendall(request("/v1/slow"))
    until(lambda: ask(port, request("/v1/graph")).status == 503)
    late.sendall(b"2")
    assert read_answer(late).status == 503
    for client in [*held, late]:
        client.close()


def test_the_body_that_stands_still_makes_room(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bodies that never end lock nobody out."""
    monkeypatch.setattr(exchange, "_HALF_BYTES", 2500)
    port = serve()
    held = [connect(port) for _ in range(5)]
    for client in held:
        client.sendall(request("/v1/edges", "POST", Content_Length="1000") + bytes(999))
        time.sleep(0.05)  # in this order
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


def test_who_leaves_in_the_middle_of_a_body_is_forgotten(serve: Serve) -> None:
    port = serve()
    for _ in range(4 * LIMITS.max_requests):
        with connect(port) as client:
            client.sendall(request("/v1/edges", "POST", Content_Length="2") + b"1")
    until(lambda: ask(port, request("/v1/graph")).status == 200)


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
    serve: Serve, headers: dict[str, str], status: int
) -> None:
    answer = ask(serve(), request("/v1/edges", "POST", b"{}", **headers))
    assert answer.status == status
    if status == 415:
        assert problem(answer).startswith(next(iter(headers)).replace("_", "-") + ": ")


TRAILERS = b"Origin: http://evil.org\r\nAuthorization: Bearer %s\r\nHost: b\r\n" % WRITE.encode()


def test_trailers_are_no_headers(serve: Serve) -> None:
    """Neither of this request nor of the next."""
    port = serve(read_token=READ, write_token=WRITE)
    head = request("/v1/edges", "POST", Transfer_Encoding="chunked")
    sent = head + b"1\r\nx\r\n0\r\n" + TRAILERS + b"\r\n"
    with connect(port) as client:
        client.sendall(sent + request("/v1/graph"))
        assert [read_answer(client).status for _ in range(2)] == [401, 401]
    head = request("/v1/edges", "POST", Transfer_Encoding="chunked", **bearer(READ))
    assert ask(port, head + b"1\r\nx\r\n0\r\n" + TRAILERS + b"\r\n").body == b"/v1/edges 1"


# Answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/none", "/v1/broken", "/v1/graph", "/page/.."])
def test_every_answer_keeps_browsers_safe(serve: Serve, path: str) -> None:
    headers = ask(serve(), request(path)).headers
    for name, value in SECURITY_HEADERS:
        assert headers[name.decode()] == value.decode()
    assert "server" not in headers


def test_a_bug_is_logged_and_told_to_nobody_else(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    answer = ask(serve(), request("/v1/broken"))
    assert answer.status == 500
    assert b"a bug" not in answer.body
    until(lambda: any("service error" in record.getMessage() for record in caplog.records))


def test_no_secret_is_told(serve: Serve, capfd: pytest.CaptureFixture[str]) -> None:
    """In no log at its most talkative, no error, no repr: neither a right token nor a wrong one."""
    heard: list[str] = []

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.extend([logging.Formatter().format(record), JsonLines().format(record)])

    handler, root = Heard(logging.NOTSET), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(1)
    wrong = "a-wrong-one-" + "x" * 20
    try:
        port = serve(read_token=READ, write_token=WRITE)
        for token in (READ, WRITE, wrong):
            for path in ("/v1/graph", "/v1/broken", f"/v1/graph?token={token}", "/none"):
                answer = ask(port, request(path, **bearer(token)))
                heard += [str(answer.headers), answer.body.decode()]
            with connect(port) as client:
                client.sendall(request("/v1/graph", **bearer(token))[:-2] + b"broken\0\r\n\r\n")
                heard.append(read_all(client).decode())
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    heard += [repr(Access(READ, WRITE)), *capfd.readouterr()]
    try:
        Access(READ, READ)
    except PipelineError as error:
        heard.append("".join(traceback.format_exception(error)))
    text = "\n".join(heard)
    assert "service error" in text
    assert not [secret for secret in (READ, WRITE, wrong) if secret in text]
