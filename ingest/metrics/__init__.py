"""A pipeline's figures for Prometheus: a collector that looks at the pipeline when it is scraped.

Idea: the pipeline counts and times what it does anyway (`pipeline.stats`, `outputs.rejected_by`,
the graph's own figures); this reads it in the thread that answers the scrape. So a pipeline that
nobody scrapes pays nothing and knows nothing of Prometheus.

Counters start at 0 with the process, except for lpma_operations_total and lpma_expired_total, which
a resume continues.
A scrape that needs the graph waits for the current batch: seconds of it show as a gap, not as a
wrong figure. Requires the extra [metrics].

    with MetricsServer(pipeline, "9464") as server:      # 127.0.0.1:9464/metrics
        pipeline.run()
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from lpma.dependencies import MissingPackage, how_to_install

from ..arguments import parse_address
from ..events import log_event
from ..pipeline.windows import width_of
from ..timers import BOUNDS_S, Stage
from ..types import Closing

try:
    from prometheus_client import CollectorRegistry, make_asgi_app
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )
    from prometheus_client.registry import Collector

    from ..service.server import AsgiServer, bind
except ImportError as error:
    raise MissingPackage(
        f"metrics: {error}: {how_to_install('metrics')}", name=error.name
    ) from error

if TYPE_CHECKING:
    from ..pipeline.pipeline import Pipeline
    from ..results.publisher import Publisher
    from ..types import Partition


MAX_CONNECTIONS = 32  # of a MetricsServer


class PipelineCollector(Collector):
    """The figures of one pipeline; register it with a registry of your own, or use
    `MetricsServer`."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline, self._stats = pipeline, pipeline.stats

    def collect(self) -> Iterator[Any]:
        pipeline, stats = self._pipeline, self._stats
        for name, said, value in (
            ("lpma_operations", "Operations applied since the stream began", stats.operations),
            ("lpma_batches", "Batches applied", stats.batches),
            ("lpma_queries", "Queries answered or refused", stats.queries),
            ("lpma_duplicates", "Records dropped as sent before", stats.duplicates),
            ("lpma_expired", "Edges expired since the stream began", stats.expired),
            ("lpma_window_late", "Edges that came too old for the window", stats.late_by_window),
            ("lpma_window_untimed", "Updates without a time, for a window", stats.untimed),
        ):
            yield CounterMetricFamily(name, said, value)
        unchanged, rejected = stats.unchanged.as_dict(), pipeline.outputs.rejected_by.copy()
        said = "Operations applied that changed nothing"
        yield self._by_reason("lpma_unchanged", said, unchanged)
        yield self._by_reason("lpma_dead_letters", "Records that were not applied", rejected)
        said = "Seconds a passage through a stage took"
        yield histogram("lpma_stage_seconds", said, "stage", stats.stages)
        if pipeline.results is not None:
            yield from self._results(pipeline.results)
        yield from self._checkpoints()
        yield from self._graph()
        yield from self._window()
        if lag := self._stats.lag():
            yield self._lag(lag)

    def _by_reason(self, name: str, said: str, counts: dict[str, int]) -> CounterMetricFamily:
        family = CounterMetricFamily(name, said, labels=["reason"])
        for reason, count in sorted(counts.items()):
            family.add_metric([reason], count)
        return family

    def _results(self, results: Publisher) -> Iterator[Any]:
        for name, said, value in (
            ("lpma_results_records", "Records of results sent", results.records),
            ("lpma_results_rows", "Changes and alerts in them", results.rows),
            ("lpma_results_alerts", "Alerts among these", results.alerts),
            ("lpma_results_repeats", "Not sent again after a resume", results.repeats),
        ):
            yield CounterMetricFamily(name, said, value)
        yield GaugeMetricFamily(
            "lpma_results_waiting", "Records of results that hold the stream back", results.waiting
        )

    def _checkpoints(self) -> Iterator[GaugeMetricFamily]:
        age = self._stats.checkpoint_age
        if age is not None:
            yield GaugeMetricFamily(
                "lpma_checkpoint_age_seconds", "Since the last checkpoint, or the start", age
            )
        figures = self._stats.checkpoint_figures
        if figures is not None:
            yield GaugeMetricFamily(
                "lpma_checkpoint_duration_seconds", "What the last checkpoint took, until it was "
                "on disk; how long the stream stood still is stage checkpoint", figures.seconds,
            )  # fmt: skip

    def _graph(self) -> Iterator[GaugeMetricFamily]:
        graph = self._pipeline.graph
        yield GaugeMetricFamily("lpma_version", "Batches the graph has seen", graph.version)
        yield GaugeMetricFamily("lpma_edges", "Edges in the graph", graph.num_edges)
        # Not the vertices present: counting those reads the whole graph, too much for each scrape.
        yield GaugeMetricFamily("lpma_rows", "1 + the largest vertex id present", graph.num_rows)
        yield GaugeMetricFamily("lpma_levels", "Levels of the store", graph.levels)
        yield GaugeMetricFamily("lpma_density", "Filled slots over slots", graph.density)

    def _window(self) -> Iterator[GaugeMetricFamily]:
        """In the unit of the edges' times."""
        width, before = width_of(self._pipeline.settings.window), self._stats.expired_before
        if width is not None:
            yield GaugeMetricFamily("lpma_window", "How long edges are kept", width)
        if before is not None:
            yield GaugeMetricFamily(
                "lpma_window_before", "Edges of an earlier time have expired", before
            )

    def _lag(self, lag: Mapping[Partition, int]) -> GaugeMetricFamily:
        family = GaugeMetricFamily(
            "lpma_lag_records", "Records not applied yet", labels=["topic", "partition"]
        )
        for partition, records in sorted(lag.items()):
            family.add_metric([partition.topic, str(partition.number)], records)
        return family


def histogram(
    name: str, said: str, label: str, stages: Iterable[tuple[str, Stage]]
) -> HistogramMetricFamily:
    """The passages through stages, each with its value of the label."""
    family = HistogramMetricFamily(name, said, labels=[label])
    bounds = [*map(str, BOUNDS_S), "+Inf"]
    for value, stage in stages:
        buckets = zip(bounds, accumulate(stage.counts), strict=True)
        family.add_metric([value], list(buckets), sum_value=stage.seconds)
    return family


class MetricsServer(Closing):
    """Serves a pipeline's figures over HTTP until closed, from one thread of its own. What clients
    cost is bounded: see `ingest/service/connection.py`.

    address: a port, which is bound to loopback only, or "host:port"; port 0 takes a free one.
    Raises PipelineError on a bad address, OSError if it cannot be bound."""

    def __init__(self, pipeline: Pipeline, address: str | int) -> None:
        self.host, port = parse_address(address)
        registry = CollectorRegistry()
        registry.register(PipelineCollector(pipeline))
        figures = make_asgi_app(registry)

        async def app(scope: Any, receive: Any, send: Any) -> None:
            try:
                await figures(scope, receive, send)
            except Exception as error:
                log_event("no figures", logging.ERROR, error=str(error))
                raise  # the server answers with 500

        self._server = AsgiServer(app, bind(self.host, port), max_connections=MAX_CONNECTIONS)
        self.port: int = self._server.port

    def close(self) -> None:
        self._server.close()
