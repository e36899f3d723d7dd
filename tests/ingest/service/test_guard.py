"""What the guard lets through: by which names, from which pages; and what its answers say."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("uvicorn")

from ingest.service.exchange import SECURITY_HEADERS
from tests.ingest.service.guarded import Serve, problem
from tests.support.raw_http import ask, request
from tests.support.waiting import wait_for


@pytest.mark.parametrize(
    "host, status",
    [("localhost", 200), ("LOCALHOST:8080", 200), ("127.0.0.1:1", 200), ("[::1]:80", 200),
     ("192.168.1.7:80", 200), ("[fe80::1]", 200), ("graph.example.org", 200),
     ("evil.example.org", 421), ("localhost.evil.org", 421), ("127.0.0.1.evil.org", 421),
     ("127.1.evil", 421), ("", 400), ("a b", 400), ("localhost:80:90", 400), ("localhost/x", 400),
     ("u@localhost", 400), ("[localhost]", 400), ("localhost:port", 400)],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/v1/graph"])
def test_the_names_it_goes_by(serve_guarded: Serve, host: str, status: int, path: str) -> None:
    """A page whose name is made to resolve to this machine is not let in."""
    port = serve_guarded(allow_hosts=("graph.example.org",))
    assert ask(port, request(path, Host=host)).status == status


def test_a_name_that_is_not_its_own_is_told_how(serve_guarded: Serve) -> None:
    answer = ask(serve_guarded(), request("/", Host="store:80"))
    assert answer.status == 421
    assert "--set serve.allow_hosts=store" in problem(answer)


def test_no_host_and_two_hosts(serve_guarded: Serve) -> None:
    port = serve_guarded()
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
def test_scripts_of_other_pages(serve_guarded: Serve, origin: str, status: int, path: str) -> None:
    """Another port of the same machine is another origin, too."""
    port = serve_guarded(allow_hosts=("graph.example.org",))
    sent = request(path, "POST", b"{}", Host="localhost:80", Origin=origin)
    answer = ask(port, sent)
    assert answer.status == status
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("site", ["same-origin", "none", "same-site", "cross-site", "unheard-of"])
def test_what_a_browser_says_of_the_site(serve_guarded: Serve, site: str) -> None:
    """An <img> of another page may not set an algorithm going, but a link to the page works."""
    port = serve_guarded()
    expected = 200 if site in ("same-origin", "none") else 403
    for path, method in (("/v1/graph", "GET"), ("/metrics", "GET"), ("/v1/edges", "POST")):
        assert ask(port, request(path, method, b"", Sec_Fetch_Site=site)).status == expected
    assert ask(port, request("/", Sec_Fetch_Site=site)).status == 200


def test_a_preflight_allows_nothing(serve_guarded: Serve) -> None:
    port = serve_guarded()
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
def test_a_path_stays_below_its_folder(serve_guarded: Serve, path: str) -> None:
    answer = ask(serve_guarded(), request(path))
    assert answer.status == 400
    assert "by POST" in problem(answer)


@pytest.mark.parametrize("name", ["%22a.b%22", "...", "%22..%22", "a%2Fb", "%22a%5Cb%22", "%252e"])
def test_names_with_dots_and_slashes_are_paths(serve_guarded: Serve, name: str) -> None:
    assert ask(serve_guarded(), request(f"/v1/successors/{name}")).status == 200


@pytest.mark.parametrize("path", ["/", "/none", "/v1/broken", "/v1/graph", "/page/.."])
def test_every_answer_keeps_browsers_safe(serve_guarded: Serve, path: str) -> None:
    headers = ask(serve_guarded(), request(path)).headers
    for name, value in SECURITY_HEADERS:
        assert headers[name.decode()] == value.decode()
    assert "server" not in headers


def test_a_bug_is_logged_and_told_to_nobody_else(
    serve_guarded: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    answer = ask(serve_guarded(), request("/v1/broken"))
    assert answer.status == 500
    assert b"a bug" not in answer.body
    wait_for(
        lambda: any("service error" in record.getMessage() for record in caplog.records), "the log"
    )
