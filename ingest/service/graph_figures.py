"""What is served, in figures: GET /v1/graph.

All of them are read in one turn of the stream, so they are of one version. Several who ask at once
share them, unless anybody was told of a newer version before. The vertices present are counted
beside the stream, from a copy of the graph, at most every `COUNT_S`, and for at most a hundredth of
the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from ..pipeline.graph_requests import GraphView
from ..timers import now_ms
from .beside import Job, Shared, Worker
from .context import Context

if TYPE_CHECKING:
    import lpma

    from ..pipeline.pipeline import Pipeline

    Copy = Callable[[], lpma.Snapshot]

COUNT_S = 10.0  # between two counts of the vertices
COUNT_SHARE = 100  # of the time to that of a count
SHARED_S = 0.1  # how long figures are told again


class GraphFigures:
    """Reads the figures of a service's graph."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._since = now_ms()
        self._counted: tuple[int, int] | None = None  # (version, vertices)
        self._count_due = 0.0
        self._read: Shared[dict[str, Any]] | None = None
        self._read_at = 0.0
        self._worker = Worker("lpma-figures")
        context.on_close(self._worker.close)

    async def now(self, request: Request) -> dict[str, Any]:
        """The figures, at most `SHARED_S` old, and of no version below one that was told before
        they were asked for. Raises Problem."""
        told, seconds = self._context.requests.told, self._context.limits.deadline_s
        while True:
            read = self._read
            if read is None or not self._is_shared(read, told):
                self._read_at = time.monotonic()
                read = self._read = Shared(self._worker.begin(self._figures))
            late = "the stream did not come to it in time"
            figures = await read.wait(request.receive, seconds, late)
            if figures["version"] >= told:
                return figures

    def _is_shared(self, read: Shared[dict[str, Any]], told: int) -> bool:
        """Whether one more may have what is read, or was."""
        found = read.result
        if found is None:
            return read.is_open
        return found["version"] >= told and time.monotonic() - self._read_at <= SHARED_S

    # The worker's thread ---------------------------------------------------------------------

    def _figures(self, job: Job[dict[str, Any]]) -> dict[str, Any]:
        figures, copy = job.copied(self._context, self._read_all)
        if copy is not None:
            started = time.monotonic()
            self._counted = figures["version"], copy().num_rows
            took = time.monotonic() - started
            self._count_due = started + max(COUNT_S, COUNT_SHARE * took)
        assert self._counted is not None
        return figures | {"vertices": self._counted[1]}

    def _read_all(
        self, moment: GraphView
    ) -> tuple[dict[str, Any], Callable[[], lpma.Snapshot] | None]:
        """In the pipeline's thread: all figures but the number of vertices, and a copy of which
        these are counted, if that is due."""
        graph, context, counted = moment.graph, self._context, self._counted
        is_due = counted is None or (
            counted[0] != moment.version and time.monotonic() >= self._count_due
        )
        figures: dict[str, Any] = {
            "title": context.title,
            "live": context.pipeline is not None,
            "vertices": 0,  # counted later
            "rows": graph.num_rows,
            "edges": graph.num_edges,
            "version": moment.version,
            "time": moment.time,
            "device": graph.device,
            "directed": graph.directed,
            "predecessors": graph.has_predecessors,
            "weighted": graph.weight_dtype is not None,
            "times": graph.has_times,
            "names": moment.names is not None or graph.names is not None,
            "levels": graph.levels,
            "segments": graph.segments,
            "density": graph.density,
            "bytes": graph.nbytes,
            "max_hops": context.limits.max_hops,
            "since": self._since,
        }
        if context.pipeline is not None:
            figures |= of_stream(context.pipeline)
        return figures, graph.begin_snapshot(compact=True) if is_due else None


def of_stream(pipeline: Pipeline) -> dict[str, Any]:
    """What a pipeline adds: how far it is, and what it has done."""
    stats = pipeline.stats
    last, age = stats.checkpoint_figures, stats.checkpoint_age
    checkpoint = None
    if last is not None and age is not None:
        checkpoint = {"number": last.number, "age_s": age, "bytes": last.bytes,
                      "seconds": last.seconds}  # fmt: skip
    return {
        "lag": [
            {"topic": partition.topic, "partition": partition.number, "records": records}
            for partition, records in stats.lag().items()
        ],
        "operations": stats.operations,
        "batches": stats.batches,
        "queries": stats.queries,
        "dead_letters": dict(pipeline.outputs.rejected_by),
        "checkpoint": checkpoint,
        "window": stats.window_facts(),
        "expired": stats.expired,
    }
