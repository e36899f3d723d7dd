"""What orchestrators and Prometheus ask: they are told why, and soon, and figures are right."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

import lpma
from ingest import SourceError, SqliteLog, encode_query, encode_updates, timers
from ingest.service import health
from lpma import Kind
from lpma.dependencies import MissingPackage
from tests.ingest.service.conftest import Standstill
from tests.support.waiting import HANGS_S, wait_for

from .conftest import Served
from .http import ask

Serve = Callable[..., Served]


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe waits as long as a slow machine takes; tests of what does not answer say less."""
    monkeypatch.setattr(health, "PROBE_S", HANGS_S)


def figures(served: Served) -> dict[str, float]:
    answer = ask(served.url, "GET", "/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain")
    lines = [line for line in answer.body.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def ready(served: Served) -> tuple[int, str]:
    answer = ask(served.url, "GET", "/readyz")
    return answer.status, answer.json.get("detail", "")


def test_what_runs_is_alive_and_ready(serve_stream: Serve, serve_store: Serve) -> None:
    for served in (serve_stream(), serve_store(lpma.Graph(device="cpu"))):
        assert ask(served.url, "GET", "/healthz").json == {"status": "ok"}
        assert ask(served.url, "GET", "/readyz").json == {"status": "ready"}


def test_a_stream_that_ended_is_not_ready_and_alive(serve_stream: Serve) -> None:
    served = serve_stream()
    assert served.pipeline is not None
    served.pipeline.stop()
    pipeline = served.pipeline
    wait_for(lambda: not pipeline._stopping, "`run` has returned")
    served.pipeline.close()
    status, why = ready(served)
    assert (status, "does not run" in why) == (503, True)
    assert ask(served.url, "GET", "/healthz").status == 200


def test_a_stream_that_stands_still_is_not_ready(
    serve_stream: Serve, standstill: Standstill, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    monkeypatch.setattr(health, "time", SimpleNamespace(monotonic=lambda: now))
    served = serve_stream()
    assert ready(served) == (200, "")
    standstill.begins(served)
    with monkeypatch.context() as patch:
        patch.setattr(health, "PROBE_S", 0.01)
        patch.setattr(health._Health, "_trouble", no_trouble)  # which may take longer
        assert ready(served)[0] == 200, "a batch may take some time"
        assert served.pipeline is not None
        now = served.pipeline.requests.stepped_at + health.STALE_S
        status, why = ready(served)
    assert (status, "not taken a step for 10 s" in why) == (503, True)
    assert ask(served.url, "GET", "/healthz").status == 200
    standstill.ends()
    wait_for(lambda: ready(served)[0] == 200, "the stream steps again")


async def no_trouble(self: Any) -> None:
    pass


def test_a_source_that_does_not_answer_is_told(
    serve_stream: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve_stream()

    def away(self: SqliteLog) -> Any:
        raise SourceError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteLog, "end_offsets", away)
        assert ready(served) == (503, "the disk is gone")
    assert ready(served) == (200, "")
    let_go = threading.Event()
    monkeypatch.setattr(health, "PROBE_S", 0.01)
    monkeypatch.setattr(SqliteLog, "end_offsets", lambda self: let_go.wait(HANGS_S) and {})
    assert ready(served) == (503, "the source does not answer")
    let_go.set()


@pytest.mark.parametrize("what", ["results", "replies"])
def test_what_the_stream_waits_for_is_told(
    serve_stream: Serve, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Though it stands still meanwhile, and its source answers."""
    waits, let_go = threading.Event(), threading.Event()
    write = SqliteLog.produce_parts if what == "results" else SqliteLog.produce_many
    name = write.__name__

    def slow(self: SqliteLog, *given: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            waits.set()
            assert let_go.wait(HANGS_S)
        return write(self, *given)

    results = SqliteLog(":memory:")
    settings = {"track": ["triangles"], "results": results} if what == "results" else {}
    served = serve_stream(settings=settings)
    assert served.log is not None
    body = [encode_updates([1, 2, 3], [2, 3, 1])]
    if what == "replies":
        body.append(encode_query("q", Kind.DEGREE, 1))
    with monkeypatch.context() as patch:
        patch.setattr(SqliteLog, name, slow)
        for record in body:
            served.log.produce_many("updates", [record])
        assert waits.wait(HANGS_S)
        patch.setattr(timers, "SLOW_S", HANGS_S)
        patch.setattr(health, "PROBE_S", 0.01)
        patch.setattr(health, "STALE_S", HANGS_S)
        patch.setattr(health._Health, "_trouble", no_trouble)
        assert ready(served) == (200, ""), "not for long"
        patch.setattr(timers, "SLOW_S", 0.0)
        status, why = ready(served)
    assert (status, "are not written for" in why) == (503, True)
    assert what in why
    let_go.set()
    wait_for(lambda: ready(served)[0] == 200, "it is written")


def test_a_probe_is_told_of_the_look_that_it_waited_for(serve_stream: Serve) -> None:
    """Though another probe has begun the next look by the time it goes on."""
    context = serve_stream().context
    probes = health._Health(context)

    async def scenario() -> tuple[str | None, str | None]:
        loop = asyncio.get_running_loop()
        step, look = Future[int](), loop.create_future()
        probes._step, probes._look = step, look
        waiting = [
            asyncio.ensure_future(call()) for call in (probes._stands_still, probes._trouble)
        ]
        await asyncio.sleep(0)  # until both wait
        step.set_result(1)
        look.set_result(None)
        probes._step, probes._look = Future(), loop.create_future()
        still, trouble = await asyncio.gather(*waiting)
        return still, trouble

    assert asyncio.run(scenario()) == (None, None)
    probes.close()


def test_the_figures_are_those_of_the_pipeline_and_of_the_service(serve_stream: Serve) -> None:
    served = serve_stream()
    served.context.figures.connections = lambda: 7
    body = {"src": [1, 2], "dst": [2, 3]}
    assert ask(served.url, "POST", "/v1/updates?wait=applied", body).status == 200
    for path in ("/v1/run/core", "/v1/run/none", "/no/such/1", "/no/such/2", "/v1/updates"):
        ask(served.url, "GET", path)
    found = figures(served)
    assert found["lpma_operations_total"] == 2
    assert found["lpma_edges"] == 2
    assert found["lpma_http_connections"] == 7
    assert found["lpma_http_requests_in_progress"] == 1, "this one"
    requests = {name: n for name, n in found.items() if name.startswith("lpma_http_requests_total")}
    assert requests == {
        f'lpma_http_requests_total{{endpoint="{endpoint}",method="{method}",status="{status}"}}': n
        for endpoint, method, status, n in (
            ("/v1/updates", "POST", 200, 1), ("/v1/updates", "GET", 405, 1),
            ("/v1/run/{algorithm}", "GET", 200, 1), ("/v1/run/{algorithm}", "GET", 404, 1),
            ("other", "GET", 404, 2),
        )
    }  # fmt: skip
    seconds = 'lpma_http_request_seconds_bucket{endpoint="/v1/run/{algorithm}",le="+Inf"}'
    assert found[seconds] == 2


def test_a_store_has_figures_of_its_service(serve_store: Serve) -> None:
    served = serve_store(lpma.Graph(device="cpu"))
    assert figures(served)["lpma_http_requests_in_progress"] == 1


def test_a_scrape_that_waits_for_a_batch_holds_up_nothing_else(
    serve_stream: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve_stream()
    scrapes, let_go = [], threading.Event()
    real = health._Health._figures

    def slow(self: Any) -> bytes:
        scrapes.append(1)
        assert let_go.wait(HANGS_S)
        return real(self)

    monkeypatch.setattr(health._Health, "_figures", slow)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(figures(served))) for _ in range(5)]
    for thread in threads:
        thread.start()
    wait_for(lambda: served.context.figures.in_progress == 5, "five scrapes")
    assert ask(served.url, "GET", "/healthz").status == 200
    let_go.set()
    for thread in threads:
        thread.join()
    assert (len(found), len(scrapes)) == (5, 5)


def test_without_prometheus_it_is_told_what_to_install(
    serve_stream: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve_stream()

    def absent(context: Any) -> Any:
        raise MissingPackage("metrics need prometheus-client", name="prometheus_client")

    monkeypatch.setattr(health, "_registry", absent)
    answer = ask(served.url, "GET", "/metrics")
    assert (answer.status, answer.json["detail"]) == (501, "metrics need prometheus-client")


def test_an_error_of_the_service_counts_as_one(
    serve_stream: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve_stream()

    def broken(self: Any) -> bytes:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(health._Health, "_figures", broken)
        assert ask(served.url, "GET", "/metrics").status == 500
    name = 'lpma_http_requests_total{endpoint="/metrics",method="GET",status="500"}'
    assert figures(served)[name] == 1
