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
from ..types import Closing, Partition


def _missing(error: ImportError) -> MissingPackage:
    return MissingPackage(f"metrics: {error}: {how_to_install('metrics')}", name=error.name)


try:
    from prometheus_client import CollectorRegistry, make_asgi_app
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )
    from prometheus_client.registry import Collector
except ImportError as error:
    raise _missing(error) from error

if TYPE_CHECKING:
    from ..pipeline.pipeline import Pipeline

MAX_CONNECTIONS = 32  # of a MetricsServer


class PipelineCollector(Collector):
    """The figures of one pipeline; register it with a registry of your own, or use
    `MetricsServer`."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline, self._stats = pipeline, pipeline.stats

    def collect(self) -> Iterator[Any]:
        for name, said, count in self._counts():
            yield CounterMetricFamily(name, said, count)
        for name, said, value in self._values():
            if value is not None:
                yield GaugeMetricFamily(name, said, value)
        said = "Operations applied that changed nothing"
        yield _by_reason("lpma_unchanged", said, self._stats.unchanged.as_dict())
        rejected = self._pipeline.outputs.rejected_by.copy()
        yield _by_reason("lpma_dead_letters", "Records that were not applied", rejected)
        said = "Seconds a passage through a stage took"
        yield histogram("lpma_stage_seconds", said, "stage", self._stats.stages)
        said = "Records not applied yet"
        yield from _by_partition("lpma_lag_records", said, self._stats.lag())
        said = "How long the first record that is not applied has waited"
        yield from _by_partition("lpma_lag_seconds", said, self._stats.lag_seconds())

    def _counts(self) -> Iterator[tuple[str, str, int]]:
        stats, results = self._stats, self._pipeline.results
        yield "lpma_operations", "Operations applied since the stream began", stats.operations
        yield "lpma_batches", "Batches applied", stats.batches
        yield "lpma_queries", "Queries answered or refused", stats.queries
        yield "lpma_duplicates", "Records dropped as sent before", stats.duplicates
        yield "lpma_skipped", "Records of Debezium about no row", stats.skipped.total()
        yield "lpma_expired", "Edges expired since the stream began", stats.expired
        yield "lpma_window_late", "Edges that came too old for the window", stats.late_by_window
        yield "lpma_window_untimed", "Updates without a time, for a window", stats.untimed
        if (feed := self._pipeline.feed) is not None:
            yield "lpma_changes_records", "Records of the edge feed sent", feed.records
            yield "lpma_changes_rows", "Edges and vertices changed in them", feed.rows
            yield "lpma_changes_repeats", "Not sent again after a resume", feed.repeats
        if results is not None:
            yield "lpma_results_records", "Records of results sent", results.records
            yield "lpma_results_rows", "Changes and alerts in them", results.rows
            yield "lpma_results_alerts", "Alerts among these", results.alerts
            yield "lpma_results_repeats", "Not sent again after a resume", results.repeats

    def _values(self) -> Iterator[tuple[str, str, float | None]]:
        """None where there is no such value."""
        graph, stats, results = self._pipeline.graph, self._stats, self._pipeline.results
        if results is not None:
            said = "Records of results that hold the stream back"
            yield "lpma_results_waiting", said, results.waiting
        if (feed := self._pipeline.feed) is not None:
            said = "Records of the edge feed that hold the stream back"
            yield "lpma_changes_waiting", said, feed.waiting
        said = "Since the last checkpoint, or the start"
        yield "lpma_checkpoint_age_seconds", said, stats.checkpoint_age
        if stats.checkpoint_figures is not None:
            said = (
                "What the last checkpoint took, until it was on disk; how long the stream stood "
                "still is stage checkpoint"
            )
            yield "lpma_checkpoint_duration_seconds", said, stats.checkpoint_figures.seconds
        yield "lpma_version", "Batches the graph has seen", graph.version
        yield "lpma_edges", "Edges in the graph", graph.num_edges
        # Not the vertices present: counting those reads the whole graph, too much for each scrape.
        yield "lpma_rows", "1 + the largest vertex id present", graph.num_rows
        yield "lpma_levels", "Levels of the store", graph.levels
        yield "lpma_density", "Filled slots over slots", graph.density
        # In the unit of the edges' times.
        yield "lpma_window", "How long edges are kept", width_of(self._pipeline.settings.window)
        before = stats.expired_before
        yield "lpma_window_before", "Edges of an earlier time have expired", before


def _by_reason(name: str, said: str, counts: Mapping[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, said, labels=["reason"])
    for reason, count in sorted(counts.items()):
        family.add_metric([reason], count)
    return family


def _by_partition(
    name: str, said: str, values: Mapping[Partition, float]
) -> Iterator[GaugeMetricFamily]:
    """Nothing of a source without partitions that it knows the ends of, as a file."""
    if values:
        family = GaugeMetricFamily(name, said, labels=["topic", "partition"])
        for partition, value in sorted(values.items()):
            family.add_metric([partition.topic, str(partition.number)], value)
        yield family


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
        try:  # uvicorn, which the collector does without
            from ..service.server import AsgiServer, bind
        except ImportError as error:
            raise _missing(error) from error
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
