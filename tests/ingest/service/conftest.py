"""Services that tests talk to: of a stream that runs, and of a saved store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import ingest
import lpma

pytest.importorskip("starlette")
uvicorn = pytest.importorskip("uvicorn")

from ingest.service.app import make_app  # noqa: E402
from ingest.service.connection import Timeouts  # noqa: E402
from ingest.service.context import Context, Figures, Limits  # noqa: E402
from ingest.service.security import Access, Guard  # noqa: E402
from ingest.service.server import AsgiServer, bind  # noqa: E402
from ingest.service.stored import StoredGraph  # noqa: E402
from tests.ingest.service import connections, guarded  # noqa: E402
from tests.support.waiting import HANGS_S, wait_for  # noqa: E402


@dataclass
class Served:
    """A service on a free port of this process, and what it serves."""

    context: Context
    url: str
    log: ingest.SqliteLog | None = None
    pipeline: ingest.Pipeline | None = None
    failures: list[BaseException] = field(default_factory=list)

    def produce(self, src: Any, dst: Any, **columns: Any) -> None:
        """Write updates to the log."""
        assert self.log is not None
        self.log.produce("updates", ingest.encode_updates(src, dst, **columns))

    def settle(self) -> None:
        """Wait until everything in the log is applied."""
        assert self.pipeline is not None

        def settled() -> bool:
            assert not self.failures, self.failures
            return bool(pipeline.stats.operations) and not any(pipeline.stats.lag().values())

        pipeline = self.pipeline
        wait_for(settled, "everything in the log is applied")


class Standstill:
    """Of a service's stream, from when a test says so until it says that it is over."""

    def __init__(self) -> None:
        self._begun, self._over = threading.Event(), threading.Event()

    def begins(self, served: Served) -> None:
        served.context.requests.ask(self._stand)
        assert self._begun.wait(HANGS_S)

    def _stand(self, moment: Any) -> None:
        self._begun.set()
        self._over.wait(HANGS_S)

    def ends(self) -> None:
        self._over.set()


@pytest.fixture
def standstill() -> Iterator[Standstill]:
    standstill = Standstill()
    yield standstill
    standstill.ends()


def start_server(context: Context, port: int = 0) -> tuple[str, Callable[[], None]]:
    """Serve `context`; the URL, and how to stop."""
    app = Guard(make_app(context), Access(), "127.0.0.1", context.limits, context.figures)
    config = uvicorn.Config(
        app, host="127.0.0.1", port=port, log_level="warning", lifespan="off",
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_for(lambda: server.started or not thread.is_alive(), "the server is up")
    assert server.started
    port = server.servers[0].sockets[0].getsockname()[1]

    def stop() -> None:
        server.should_exit = True
        thread.join(HANGS_S)

    return f"http://127.0.0.1:{port}", stop


@pytest.fixture
def serve_stream(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Makes a service of a stream: serve_stream(names=…, limits=…, graph options…)."""
    closers: list[Callable[[], object]] = []

    def serve(
        *,
        limits: Limits | None = None,
        settings: Any = None,
        checkpoint: bool = False,
        **options: Any,
    ) -> Served:
        log = ingest.SqliteLog(tmp_path / "log")
        log.create_topic("updates")
        log.create_topic("queries")
        graph = lpma.Graph(**{"device": "cpu", **options})
        given = {"batch_interval": 0.01, **(settings or {})}
        if graph.names is not None:
            given["names"] = True
        path = tmp_path / "state" if checkpoint else None
        pipeline = ingest.Pipeline(log, graph, path, **given)
        context = Context(pipeline.requests, graph, pipeline, "log", limits or Limits())
        served = Served(context, "", log, pipeline)

        def run() -> None:
            try:
                pipeline.run()
            except BaseException as error:  # noqa: BLE001 - the test is told
                served.failures.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        served.url, stop = start_server(context)

        def close() -> None:
            stop()
            context.close()
            pipeline.stop()
            thread.join(HANGS_S)
            pipeline.close()
            log.close()

        closers.append(close)
        return served

    yield serve
    for close in closers:
        close()


@pytest.fixture
def serve_store() -> Iterator[Callable[..., Served]]:
    """Makes a service of a graph that no longer changes: serve_store(graph, limits=…)."""
    closers: list[Callable[[], object]] = []

    def serve(graph: lpma.Graph, *, limits: Limits | None = None) -> Served:
        stored = StoredGraph(graph)
        context = Context(stored.requests, graph, None, "store", limits or Limits())
        url, stop = start_server(context)
        closers.extend([stop, context.close, stored.close])
        return Served(context, url)

    yield serve
    for close in closers:
        close()


@pytest.fixture
def serve_toy() -> Iterator[connections.Serve]:
    """Makes servers of the toy of `connections`: serve_toy(timeouts=…, max_connections=…)."""
    servers: list[AsgiServer] = []

    def make(**options: Any) -> AsgiServer:
        servers.append(AsgiServer(connections.toy, bind("127.0.0.1", 0), **options))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def held(serve_toy: connections.Serve, monkeypatch: pytest.MonkeyPatch) -> connections.Held:
    return connections.Held(serve_toy, monkeypatch)


@pytest.fixture
def serve_guarded() -> Iterator[guarded.Serve]:
    """The port of the toy of `guarded`, behind the guard: serve_guarded(read_token=…, limits=…)."""
    servers: list[AsgiServer] = []

    def make(limits: Limits = guarded.LIMITS, **access: Any) -> int:
        guard = Guard(guarded.toy(), Access(**access), "127.0.0.1", limits, Figures())
        servers.append(AsgiServer(guard, bind("127.0.0.1", 0), timeouts=Timeouts(grace_s=1)))
        return servers[-1].port

    yield make
    for server in servers:
        server.close()
