"""What is served, in figures: GET /v1/graph.

All of them are read in one turn of the stream, so they are of one version. The vertices present are
counted beside the stream, from a copy of the graph, at most every `COUNT_S`, and for at most a
hundredth of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.requests import Request

from ..pipeline.graph_requests import GraphView
from ..timers import now_ms
from .context import Context
from .jobs import Job, Worker, in_turn

if TYPE_CHECKING:
    import lpma

    from ..pipeline.pipeline import Pipeline

    Copy = Callable[[], lpma.Snapshot]

COUNT_S = 10.0  # between two counts of the vertices
COUNT_SHARE = 100  # of the time to that of a count


class GraphFigures:
    """Reads the figures of a service's graph."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._since = now_ms()
        self._counted: tuple[int, int] | None = None  # (version, vertices)
        self._counting: Job[None] | None = None  # the newest count
        self._count_due = 0.0
        self._worker = Worker("lpma-figures")
        context.on_close(self._worker.close)

    async def now(self, request: Request) -> dict[str, Any]:
        """The figures. Raises Problem."""
        figures, copy = await in_turn(self._context, self._read)
        if copy is not None:
            version = figures["version"]
            self._counting = self._worker.begin(lambda job: self._count(copy, version))
        if copy is not None or self._counted is None:
            assert self._counting is not None
            late = "the vertices were not counted in time"
            await self._counting.wait(request.receive, self._context.limits.deadline_s, late)
        assert self._counted is not None
        return figures | {"vertices": self._counted[1]}

    def _count(self, copy: Copy, version: int) -> None:
        """In the worker's thread."""
        started = time.monotonic()
        self._counted = version, copy().num_rows
        took = time.monotonic() - started
        self._count_due = started + max(COUNT_S, COUNT_SHARE * took)

    def _read(self, view: GraphView) -> tuple[dict[str, Any], Copy | None]:
        """In the pipeline's thread: all figures but the number of vertices, and a copy of which
        these are counted, if that is due."""
        graph, context, counted = view.graph, self._context, self._counted
        is_due = counted is None or (
            counted[0] != view.version and time.monotonic() >= self._count_due
        )
        if self._counting is not None and self._counting.is_open:
            is_due = False
        figures: dict[str, Any] = {
            "title": context.title,
            "live": context.pipeline is not None,
            "rows": graph.num_rows,
            "edges": graph.num_edges,
            "version": view.version,
            "time": view.time,
            "device": graph.device,
            "directed": graph.directed,
            "predecessors": graph.has_predecessors,
            "weighted": graph.weight_dtype is not None,
            "times": graph.has_times,
            "names": view.by_id().names is not None,
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
