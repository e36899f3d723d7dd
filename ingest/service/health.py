"""What orchestrators and Prometheus ask: whether the service lives, whether it is ready, its
figures.

    /healthz    200 while the process answers at all
    /readyz     200 while the stream steps and its source answers; else 503, and why. A service is
                made once a resume's replay is done, so that is no question here
    /metrics    the figures of the pipeline (ingest/metrics) and of the service (context.py)

Tricks: the stream shows that it steps by coming to a turn, which is asked for and not waited
for long: a probe has a second. A scrape reads the graph, which may wait for a batch, so scrapes are
made in a thread of their own, one after the other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lpma.dependencies import MissingPackage

from .context import Context, Figures
from .problems import Problem

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

PROBE_S = 0.5  # that a probe waits for the stream, and for its source
STALE_S = 10.0  # without a turn, after which a stream does not step any more


def handlers(context: Context) -> dict[str, Any]:
    health = _Health(context)
    context.on_close(health.close)
    return {"healthz": _lives, "readyz": health.ready, "metrics": health.metrics}


async def _lives(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


class _Health:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._probes = ThreadPoolExecutor(1, "lpma-health")
        self._scrapes = ThreadPoolExecutor(1, "lpma-metrics")
        self._step: Future[int] | None = None  # a turn that was asked for
        self._asked_at = 0.0  # when it was
        self._look: asyncio.Future[str | None] | None = None  # at the source
        self._registry: CollectorRegistry | None = None

    def close(self) -> None:
        for threads in (self._probes, self._scrapes):
            threads.shutdown(wait=False, cancel_futures=True)

    # Readiness -------------------------------------------------------------------------------

    async def ready(self, request: Request) -> Response:
        reason = self._waits_for() or await self._stands_still() or await self._trouble()
        if reason is not None:
            raise Problem(503, reason, retry_after_s=1)
        return JSONResponse({"status": "ready"})

    def _waits_for(self) -> str | None:
        """What the stream waits for beside its source, None if nothing."""
        pipeline = self._context.pipeline
        return None if pipeline is None else pipeline.stats.waits_for()

    async def _stands_still(self) -> str | None:
        """Why the stream does not step, None if it does."""
        asked = self._step
        if asked is None or asked.done():
            self._asked_at = time.monotonic()
            asked = self._step = self._context.requests.ask(lambda view: view.version)
        step = asyncio.wrap_future(asked)
        await asyncio.wait({asyncio.shield(step)}, timeout=PROBE_S)
        if step.done():
            error = step.exception()
            return None if error is None else f"the stream does not run: {error}"
        # A saved store, which has no stream, takes no step unless it is asked for one.
        age = time.monotonic() - (self._context.requests.stepped_at or self._asked_at)
        return None if age < STALE_S else f"the stream has not taken a step for {age:.0f} s"

    async def _trouble(self) -> str | None:
        """What the source does not answer with, None if it answers."""
        pipeline = self._context.pipeline
        if pipeline is None:
            return None
        look = self._look
        if look is None or look.done():
            loop = asyncio.get_running_loop()
            look = self._look = loop.run_in_executor(self._probes, pipeline.source.trouble)
        # Another probe may begin the next look while this one waits: it is this look that counts.
        await asyncio.wait({look}, timeout=PROBE_S)
        return look.result() if look.done() else "the source does not answer"

    # Figures ---------------------------------------------------------------------------------

    async def metrics(self, request: Request) -> Response:
        loop = asyncio.get_running_loop()
        try:
            text = await loop.run_in_executor(self._scrapes, self._figures)
        except MissingPackage as error:
            raise Problem(501, str(error)) from None
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    def _figures(self) -> bytes:
        if self._registry is None:
            self._registry = _registry(self._context)
        from prometheus_client import generate_latest

        text = generate_latest(self._registry)
        self._context.requests.note_told(self._context.graph.version)
        return text


def _registry(context: Context) -> CollectorRegistry:
    """Raises MissingPackage."""
    from ..metrics import PipelineCollector  # says what to install

    from prometheus_client import CollectorRegistry  # isort: skip

    registry = CollectorRegistry()
    if context.pipeline is not None:
        registry.register(PipelineCollector(context.pipeline))
    ours: Any = _ServiceCollector(context.figures)
    registry.register(ours)
    return registry


class _ServiceCollector:
    """The figures of a service; Prometheus' own base is there only where its package is."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        from ..metrics import histogram

        figures, labels = self._figures, ["endpoint", "method", "status"]
        requests = CounterMetricFamily("lpma_http_requests", "Requests answered", labels=labels)
        for (endpoint, method, status), count in sorted(figures.requests.copy().items()):
            requests.add_metric([endpoint, method, str(status)], count)
        yield requests
        said = "From a request's head to its answer's end"
        seconds = sorted(figures.seconds.copy().items())
        yield histogram("lpma_http_request_seconds", said, "endpoint", seconds)
        yield GaugeMetricFamily(
            "lpma_http_requests_in_progress", "Requests being answered", figures.in_progress
        )
        if figures.connections is not None:
            yield GaugeMetricFamily(
                "lpma_http_connections", "Clients that are connected", figures.connections()
            )
