"""Whose tokens are let in, and where they are told."""

from __future__ import annotations

import logging
import secrets
import traceback

import pytest

pytest.importorskip("uvicorn")

from ingest.errors import PipelineError
from ingest.events import JsonLines
from ingest.service.security import Access, Right
from tests.ingest.service.guarded import QUERIES, READ, WRITE, Serve, bearer, problem
from tests.support.raw_http import ask, connect, read_all, request


@pytest.mark.parametrize(
    "token, reads, writes",
    [(None, 401, 401), (READ, 200, 403), (WRITE, 200, 200), ("wrong" * 5, 401, 401),
     (READ[:-1], 401, 401), (READ + "r", 401, 401), ("", 401, 401), ("ü" * 20, 401, 401)],
)  # fmt: skip
def test_tokens(serve_guarded: Serve, token: str | None, reads: int, writes: int) -> None:
    port = serve_guarded(read_token=READ, write_token=WRITE)
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


def test_the_page_needs_no_token(serve_guarded: Serve) -> None:
    port = serve_guarded(read_token=READ)
    for path in ("/", "/docs", "/openapi.json", "/healthz", "/readyz", "/page/page.js"):
        assert ask(port, request(path)).status == 200
        with connect(port) as client:
            client.sendall(request(path, "HEAD", Connection="close"))
            assert read_all(client).startswith(b"HTTP/1.1 200 OK\r\n")


def test_what_a_refusal_says(serve_guarded: Serve) -> None:
    port = serve_guarded(read_token=READ, write_token=WRITE)
    absent = ask(port, request("/v1/graph"))
    assert absent.headers["www-authenticate"] == 'Bearer realm="lpma"'
    assert "Authorization: Bearer" in problem(absent)
    wrong = ask(port, request("/v1/graph", **bearer("w" * 20)))
    assert wrong.headers["www-authenticate"] == 'Bearer realm="lpma", error="invalid_token"'
    weak = ask(port, request("/v1/updates", "POST", b"", **bearer(READ)))
    assert 'error="insufficient_scope"' in weak.headers["www-authenticate"]
    assert "serve.write_token_file" in problem(weak)


@pytest.mark.parametrize(
    "header", [f"bearer {READ}", f"BEARER  {READ} ", f"Bearer\t{READ}", f"Basic {READ}", READ]
)
def test_how_a_token_is_written(serve_guarded: Serve, header: str) -> None:
    port = serve_guarded(read_token=READ)
    expected = 200 if header.lower().startswith("bearer ") else 401
    assert ask(port, request("/v1/graph", Authorization=header)).status == expected


def test_two_authorizations_are_refused(serve_guarded: Serve) -> None:
    port = serve_guarded(read_token=READ)
    twice = request("/v1/graph", Authorization=f"Bearer {READ}", AUTHORIZATION="Bearer x")
    assert ask(port, twice).status == 400


def test_a_token_in_the_url_counts_for_nothing(serve_guarded: Serve) -> None:
    port = serve_guarded(read_token=READ)
    for name in ("token", "access_token", "bearer"):
        assert ask(port, request(f"/v1/graph?{name}={READ}")).status == 401


def test_with_one_token_the_other_right_is_nobodys(serve_guarded: Serve) -> None:
    reading, writing = serve_guarded(read_token=READ), serve_guarded(write_token=WRITE)
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


def test_no_secret_is_told(serve_guarded: Serve, capfd: pytest.CaptureFixture[str]) -> None:
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
        port = serve_guarded(read_token=READ, write_token=WRITE)
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
