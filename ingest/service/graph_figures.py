"""What is served, in figures: GET /v1/graph.

All of them are read in one interlude, so they are of one version; several who ask at once share it.
The vertices present are counted at most every `COUNT_S`, because that reads the whole graph while
the stream waits, and more rarely where it takes long: it gets a hundredth of the time.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from ..interludes import Moment
from ..progress import Progress
from ..timers import now_ms
from .context import Context

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
        self._read: asyncio.Future[dict[str, Any]] | None = None
        self._read_at = 0.0

    async def now(self) -> dict[str, Any]:
        """The figures, at most `SHARED_S` old."""
        if self._read is None or time.monotonic() - self._read_at > SHARED_S:
            self._read_at = time.monotonic()
            self._read = asyncio.wrap_future(self._context.interludes.ask(self._figures))
        return await asyncio.wait_for(asyncio.shield(self._read), self._context.limits.deadline_s)

    def _figures(self, moment: Moment) -> dict[str, Any]:
        """In the pipeline's thread."""
        graph, context = moment.graph, self._context
        figures: dict[str, Any] = {
            "title": context.title,
            "live": context.pipeline is not None,
            "vertices": self._vertices(moment),
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
        return figures if context.pipeline is None else figures | of_stream(context.pipeline)

    def _vertices(self, moment: Moment) -> int:
        """How many were present when they were last counted."""
        started = time.monotonic()
        counted = self._counted
        if counted is None or (counted[0] != moment.version and started >= self._count_due):
            counted = self._counted = moment.version, moment.graph.num_vertices
            took = time.monotonic() - started
            self._count_due = started + max(COUNT_S, COUNT_SHARE * took)
        return counted[1]


def of_stream(pipeline: Any) -> dict[str, Any]:
    """What a pipeline adds: how far it is, and what it has done."""
    assert isinstance(pipeline, Progress)
    outputs: Any = getattr(pipeline, "outputs", None)
    last, age = pipeline.checkpoint_figures, pipeline.checkpoint_age
    checkpoint = None
    if last is not None and age is not None:
        checkpoint = {"number": last.number, "age_s": age, "bytes": last.bytes,
                      "seconds": last.seconds}  # fmt: skip
    return {
        "lag": [
            {"topic": partition.topic, "partition": partition.number, "records": records}
            for partition, records in pipeline.lag().items()
        ],
        "operations": pipeline.operations,
        "batches": pipeline.batches,
        "queries": pipeline.queries,
        "dead_letters": dict(outputs.rejected_by) if outputs is not None else {},
        "checkpoint": checkpoint,
        "window": pipeline.window_facts(),
        "expired": pipeline.expired,
    }
