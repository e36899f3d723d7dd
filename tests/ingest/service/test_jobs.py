"""Work that takes long holds up nothing, and ends when nobody waits for it any more."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.requests import ClientDisconnect

import lpma
from ingest import analyses
from ingest.pipeline.graph_requests import GraphRequests
from ingest.service import jobs, runs, snapshot
from ingest.service.context import Context, Limits
from ingest.service.jobs import Job, Stopped, Worker
from ingest.service.problems import Problem
from lpma.cpu.threads import run_all
from lpma.snapshot import compact
from tests.support.waiting import HANGS_S, wait_for

from .conftest import Served
from .http import ask

Serve = Callable[..., Served]


async def never() -> Any:
    """What a request receives whose client stays."""
    await asyncio.Event().wait()


async def gone() -> Any:
    return {"type": "http.disconnect"}


# A job -------------------------------------------------------------------------------------------


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker("test") as worker:
        yield worker


def endless(job: Job[Any]) -> None:
    while True:
        run_all(lambda: None, [()])


def test_a_job_ends_between_two_pieces_when_the_last_who_waits_has_left(worker: Worker) -> None:
    async def scenario() -> tuple[list[bool], int]:
        was_open = []
        job = worker.begin(endless)
        stays = asyncio.ensure_future(job.wait(never, 60, "late"))
        with pytest.raises(ClientDisconnect):
            await job.wait(gone, 60, "late")
        was_open.append(job.is_open)
        with pytest.raises(Problem, match="too late"):
            await job.wait(never, 0, "too late")
        was_open.append(job.is_open)
        stays.cancel()
        await asyncio.wait([stays])
        was_open.append(job.is_open)
        after = worker.begin(lambda job: 7)
        return was_open, await after.wait(never, 60, "late")

    assert asyncio.run(scenario()) == ([True, True, False], 7)


def test_a_job_that_was_not_begun_is_dropped(worker: Worker) -> None:
    let_go, done = threading.Event(), []
    first = worker.begin(lambda job: let_go.wait(60))
    second = worker.begin(lambda job: done.append(1))
    assert worker.unfinished == 2
    second.stop()
    assert worker.unfinished == 1
    let_go.set()
    first.future.result(60)
    worker.begin(lambda job: None).future.result(60)
    assert not done


def test_a_stopped_job_does_not_wait_for_its_turn(worker: Worker) -> None:
    """And the stream does not stop for it when it comes to it."""
    context: Any = type("", (), {"requests": GraphRequests(), "limits": Limits(deadline_s=1e6)})()
    asked: list[Any] = []
    job = worker.begin(lambda job: job.copied(context, asked.append))
    while context.requests.due(False) is None:
        pass
    job.stop()
    with pytest.raises(Stopped):
        job.future.result(60)
    context.requests.answer(_moment(), 0, lambda: None)
    assert not asked


def _moment() -> Any:
    return type("", (), {"version": 1})()


def test_what_does_not_come_in_time_is_not_done(worker: Worker) -> None:
    context = Context(GraphRequests(), None, limits=Limits(deadline_s=0))  # type: ignore[arg-type]
    asked: list[Any] = []
    with pytest.raises(Problem, match="did not come to it in time"):
        asyncio.run(jobs.in_turn(context, asked.append))
    with pytest.raises(Problem, match="did not come to it in time"):
        worker.begin(lambda job: job.copied(context, asked.append)).future.result(60)
    context.requests.answer(_moment(), 0, lambda: None)
    assert not asked


# The service -------------------------------------------------------------------------------------


class Gate:
    """Where work stands until it is let go, or, endless, until it is stopped."""

    def __init__(self) -> None:
        self.begun, self.let_go = threading.Semaphore(0), threading.Event()
        self.stopped = threading.Semaphore(0)

    def passed(self) -> None:
        self.begun.release()
        assert self.let_go.wait(60)

    def endless(self, *given: Any) -> Any:
        self.begun.release()
        try:
            endless(Job(endless))
        except Stopped:
            self.stopped.release()
            raise


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.let_go.set()


def sent(served: Served, path: str) -> socket.socket:
    """A connection over which something was asked for."""
    address = urlsplit(served.url)
    connection = socket.create_connection((address.hostname, address.port))
    connection.settimeout(HANGS_S)
    connection.sendall(
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    )
    return connection


LONG = [
    "/v1/snapshot?compact=true", "/v1/run/core", "/v1/graph", "/v1/page/distributions",
    "/v1/page/neighborhood",
]  # fmt: skip


@pytest.mark.parametrize("path", LONG)
def test_the_stream_goes_on_while_a_copy_is_renumbered(
    serve_stream: Serve, gate: Gate, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    served = serve_stream()
    served.produce([0, 1], [1, 2])
    served.settle()
    real = compact.of_rows

    def slow(*given: Any) -> Any:
        gate.passed()
        return real(*given)

    monkeypatch.setattr(compact, "of_rows", slow)
    connection = sent(served, path)
    assert gate.begun.acquire(timeout=HANGS_S)
    assert ask(served.url, "GET", "/v1/degree/1").json["degree"] == [1]
    body = {"src": [7], "dst": [8]}
    assert ask(served.url, "POST", "/v1/updates?wait=applied", body).status == 200
    gate.let_go.set()
    assert connection.recv(12) == b"HTTP/1.1 200"
    connection.close()


@pytest.mark.parametrize("path", LONG)
def test_work_ends_with_its_last_client(
    serve_stream: Serve, gate: Gate, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    served = serve_stream()
    served.produce([0, 1], [1, 2])
    served.settle()
    with monkeypatch.context() as patch:
        patch.setattr(compact, "of_rows", gate.endless)
        connection = sent(served, path)
        assert gate.begun.acquire(timeout=HANGS_S)
        connection.close()
        assert gate.stopped.acquire(timeout=HANGS_S)
    statuses: list[int] = []

    def has_room() -> bool:
        statuses.append(ask(served.url, "GET", path).status)
        return statuses[-1] != 429

    wait_for(has_room, "what was left is gone")
    assert statuses[-1] == 200


def test_a_run_ends_between_two_pieces_when_its_client_is_refused(
    serve_store: Serve, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(analyses.ANALYSES, "core", gate.endless)
    graph = lpma.Graph(device="cpu")
    graph.insert(1, 2)
    served = serve_store(graph)
    with monkeypatch.context() as patch:
        patch.setattr(runs, "MAX_SECONDS", 0.05)
        refused = ask(served.url, "GET", "/v1/run/core")
    assert (refused.status, "not done within" in refused.json["detail"]) == (503, True)
    assert ask(served.url, "GET", "/v1/run/triangles").status == 200


def test_a_snapshot_ends_when_its_client_is_refused(
    serve_store: Serve, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert(1, 2)
    served = serve_store(graph)
    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "MAX_SECONDS", 0.05)
        patch.setattr(compact, "of_rows", gate.endless)
        assert ask(served.url, "GET", "/v1/snapshot?compact=true").status == 503
    assert ask(served.url, "GET", "/v1/snapshot?compact=true").status == 200


def test_a_snapshot_is_written_for_whoever_is_left(
    serve_store: Serve, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([0, 1], [1, 2])
    served = serve_store(graph)
    real, made = compact.of_rows, []

    def slow(*given: Any) -> Any:
        made.append(1)
        gate.passed()
        return real(*given)

    wait, waiting = Job.wait, []

    async def noted(job: Job[Any], *given: Any) -> Any:
        waiting.append(1)
        return await wait(job, *given)

    monkeypatch.setattr(compact, "of_rows", slow)
    monkeypatch.setattr(Job, "wait", noted)
    first = sent(served, "/v1/snapshot?compact=true")
    assert gate.begun.acquire(timeout=HANGS_S)
    second = sent(served, "/v1/snapshot?compact=true")
    wait_for(lambda: len(waiting) == 2, "the second waits for the same")
    first.close()
    wait_for(lambda: served.context.figures.in_progress == 1, "the first has left")
    gate.let_go.set()
    assert second.recv(12) == b"HTTP/1.1 200"
    second.close()
    assert len(made) == 1
