"""The server as a whole: addresses, certificates, its beginning and its end."""

from __future__ import annotations

import ssl
import subprocess
import threading
import warnings
from contextlib import ExitStack
from pathlib import Path

import pytest

import lpma
from ingest.errors import PipelineError
from ingest.service.app import Service, check_address
from ingest.service.connection import Timeouts
from ingest.service.context import Context, Figures
from ingest.service.security import Access, Guard
from ingest.service.server import AsgiServer, bind
from ingest.service.stored import StoredGraph
from tests.ingest.service import connections
from tests.ingest.service.guarded import LIMITS, READ, bearer, problem, toy
from tests.support.raw_http import ask, connect, read_all, read_answer, request
from tests.support.waiting import HANGS_S, wait_for

# Addresses and TLS ---------------------------------------------------------------------------


def certificate(folder: Path) -> tuple[Path, Path]:
    """A throw-away certificate for localhost, and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    try:
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-keyout", key, "-out", cert, "-days", "1", "-subj", "/CN=localhost",
             "-addext", "subjectAltName=DNS:localhost"],
            check=True, capture_output=True,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("openssl, which makes a certificate, is not installed")
    return cert, key


def test_an_address_that_is_not_loopback_needs_a_token_and_tls(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    for lacking, access in (
        (["a token", "TLS"], Access()),
        (["TLS"], Access(READ)),
        (["a token"], Access(certificate=cert, key=key)),
    ):
        with pytest.raises(PipelineError, match=r"serve\.insecure") as raised:
            check_address("0.0.0.0:0", access)
        assert [word for word in ("a token", "TLS") if word in str(raised.value)] == lacking
    assert check_address("0.0.0.0:0", Access(READ, certificate=cert, key=key))
    assert check_address("0.0.0.0:0", Access(insecure=True))
    for loopback in ("8080", "127.0.0.7:0", "[::1]:0", "localhost:0"):
        assert not check_address(loopback, Access())


def test_a_certificate_that_cannot_be_read(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    cert, _ = certificate(tmp_path)
    with pytest.raises(PipelineError, match="no certificate with its key"):
        Access(certificate=cert, key=certificate(other)[1]).tls_context()
    with pytest.raises(PipelineError, match="No such file"):
        Access(certificate=cert, key=tmp_path / "none").tls_context()
    with pytest.raises(PipelineError, match="needs both"):
        Access(certificate=cert)


def test_tls(tmp_path: Path) -> None:
    """Who speaks no TLS, or hangs in its handshake, harms nobody."""
    cert, key = certificate(tmp_path)
    trust = ssl.create_default_context(cafile=cert)
    tls = Access(certificate=cert, key=key).tls_context()
    guard = Guard(toy(), Access(READ), "127.0.0.1", LIMITS, Figures())
    patient = Timeouts(head_s=HANGS_S)
    with AsgiServer(guard, bind("127.0.0.1", 0), tls, 20, patient) as server:
        hanging = [connect(server.port) for _ in range(100)]
        with connect(server.port, trust) as client:
            client.sendall(request("/v1/graph", **bearer(READ)))
            assert read_answer(client).status == 200
        with connect(server.port) as plain:
            plain.sendall(request("/"))
            assert b"HTTP/1.1 200" not in read_all(plain)
        for client in hanging[:80]:  # they made room
            assert read_all(client) == b""
        old = ssl.create_default_context(cafile=cert)
        with warnings.catch_warnings(action="ignore"):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            connect(server.port, old)
    for client in hanging:
        assert read_all(client) == b""
        client.close()
    brief = Timeouts(head_s=0.1)
    with (
        AsgiServer(guard, bind("127.0.0.1", 0), tls, 20, brief) as server,
        connect(server.port) as silent,
    ):
        assert read_all(silent) == b""


def test_half_a_request_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, key = certificate(tmp_path)
    tls = Access(certificate=cert, key=key).tls_context()
    with ExitStack() as servers:

        def serve(timeouts: Timeouts) -> AsgiServer:
            app = connections.toy
            return servers.enter_context(
                AsgiServer(app, bind("127.0.0.1", 0), tls, timeouts=timeouts)
            )

        held = connections.Held(serve, monkeypatch, head_s=HANGS_S)
        with connect(held.port, ssl.create_default_context(cafile=cert)) as half:
            held.send(half, b"GET / HTTP")
            held.pass_time(HANGS_S + 1)
            assert read_all(half) == b""


# The service ---------------------------------------------------------------------------------


def test_the_service_is_up_when_it_is_made_and_gone_when_it_is_closed() -> None:
    closed: list[bool] = []
    with StoredGraph(lpma.Graph(device="cpu")) as stored:
        context = Context(stored.requests, stored.graph)
        context.on_close(lambda: closed.append(True))
        with Service(context) as service:
            assert service.url == f"http://127.0.0.1:{service.port}"
            answer = ask(service.port, request("/nothing/here"))
            assert answer.status == 404
            problem(answer)
        assert closed == [True]
        service.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "lpma-service"]


def test_watchers_of_events_are_let_go_when_it_is_closed() -> None:
    """At once, though their answers have no end and somebody else is being answered."""
    with StoredGraph(lpma.Graph(device="cpu")) as stored:
        context = Context(stored.requests, stored.graph)
        timeouts = Timeouts(grace_s=1e6)
        with Service(context, timeouts=timeouts) as service, connect(service.port) as watcher:
            watcher.sendall(request("/v1/events"))
            head = watcher.recv(1 << 16)
            assert head.startswith(b"HTTP/1.1 200 OK\r\n")
            closing = threading.Thread(target=service.close)
            closing.start()
            read_all(watcher)
            closing.join(HANGS_S)
            assert not closing.is_alive()


def test_what_is_refused_is_counted() -> None:
    with StoredGraph(lpma.Graph(device="cpu")) as stored:
        context = Context(stored.requests, stored.graph)
        with Service(context, access=Access(READ)) as service:
            assert ask(service.port, request("/v1/graph")).status == 401
            assert ask(service.port, request("/", Host="evil.org")).status == 421
            assert ask(service.port, request("/metrics", **bearer(READ))).status == 200
            counted = context.figures.requests
            assert (counted["other", "GET", 401], counted["other", "GET", 421]) == (1, 1)
            connections = context.figures.connections
            assert connections is not None
            wait_for(lambda: connections() == 0, "all have left")


# Closing, and an address in use --------------------------------------------------------------


def test_closing_finishes_answers_and_ends_those_without_end() -> None:
    server = AsgiServer(connections.toy, bind("127.0.0.1", 0), timeouts=Timeouts(grace_s=HANGS_S))
    with connect(server.port) as events, connect(server.port) as huge, connect(server.port) as idle:
        events.sendall(request("/events"))
        assert events.recv(1)
        idle.sendall(connections.GET)
        assert read_answer(idle).status == 200
        huge.sendall(request("/", "POST", Content_Length="3") + b"12")
        wait_for(lambda: server.connections() == 3, "three connections")
        closing = threading.Thread(target=server.close)
        closing.start()
        assert read_all(idle) == b""
        read_all(events)
        huge.sendall(b"3")
        assert read_answer(huge).body == b"/ 3"
        closing.join(HANGS_S)
        assert not closing.is_alive()
    with pytest.raises(ConnectionError):
        connect(server.port)
    server.close()


def test_closing_does_not_wait_for_ever() -> None:
    with (
        AsgiServer(connections.toy, bind("127.0.0.1", 0), timeouts=Timeouts(grace_s=0.1)) as server,
        connect(server.port) as client,
    ):
        client.sendall(request("/never"))
        wait_for(lambda: server.connections() == 1, "the connection")
        server.close()
        assert b"/never" not in read_all(client)
    assert not [t for t in threading.enumerate() if t.name == "lpma-service" and t.is_alive()]


def test_an_address_in_use_is_said_in_one_line(serve_toy: connections.Serve) -> None:
    server = serve_toy()
    with pytest.raises(OSError, match=f"127.0.0.1 port {server.port} cannot be served: .*in use"):
        bind("127.0.0.1", server.port)
