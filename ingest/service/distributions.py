"""What only the page asks for: distributions, the newest dead letters, checkpoints.

Idea: the graph is copied in a turn of the stream and read beside it, in a thread: only while
somebody waits for it, and at most a twentieth of the time, so that watching costs a twentieth of a
core. Whoever asks meanwhile gets the last result; or waits for the next one, if anybody was told of
a newer version before.

    GET /v1/page/distributions   core numbers, degrees, density by level
    GET /v1/page/letters         the newest dead letters
    GET /v1/page/checkpoints     the last ones of this process
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from algorithms import core_numbers
from lpma import Snapshot
from lpma.arrays import first_not_below, to_host

from ..pipeline.graph_requests import GraphView
from ..types import Closing
from .context import Context
from .events import Hub
from .jobs import Job, Worker
from .problems import Problem
from .query_queue import Receive
from .sampling import newest_letters

Array = npt.NDArray[Any]

LEAST_S = 1.0  # between two looks at the whole graph
SHARE = 20  # of the time that one took
MAX_SECONDS = 300.0  # that a client waits for one
SHOWN_LETTERS = 50


@dataclass(frozen=True)
class Look:
    """What one look at the whole graph found: `document` for the page, and the core numbers of the
    vertices `ids`, which rise. best: the vertex of the highest degree; None if there is no edge."""

    version: int
    document: dict[str, Any]
    cores: Array
    ids: Array
    best: int | None

    def core_of(self, id: int) -> int | None:
        """The core number of a vertex; None if it was not there."""
        row = first_not_below(self.ids, id)
        there = row < len(self.ids) and int(self.ids[row]) == id
        return int(self.cores[row]) if there else None


class Distributions(Closing):
    """Looks at the whole graph, at most one at a time. Used by the event loop, but for
    `_look`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._worker = Worker("lpma-distributions")
        self._running: Job[Look] | None = None
        self._due = 0.0
        self.newest: Look | None = None

    async def look(self, receive: Receive, least: int | None = None) -> Look:
        """A look at the graph of version `least` or later; None: of no version below one that was
        told before. receive: of the request, whose body was read. Raises Problem."""
        least = self._context.requests.told if least is None else least
        until = time.monotonic() + MAX_SECONDS
        late = f"the graph is still being read after {MAX_SECONDS:g} s"
        while True:
            newest, running, wait_s = self.newest, self._running, self._due - time.monotonic()
            is_running = running is not None and running.is_open
            if newest is not None and newest.version >= least:
                is_current = newest.version == self._context.graph.version
                if is_current or is_running or wait_s > 0:
                    return newest
            if running is None or not is_running:
                if time.monotonic() + wait_s > until:
                    raise Problem(503, late, retry_after_s=math.ceil(wait_s))
                if wait_s > 0:
                    await asyncio.sleep(min(wait_s, 1.0))  # by then somebody may have begun it
                    continue
                running = self._running = self._worker.begin(self._look)
            look = await running.wait(receive, MAX_SECONDS, late)
            if look.version >= least:
                return look

    def _look(self, job: Job[Look]) -> Look:
        """In the worker's thread."""
        started = time.monotonic()
        try:
            copy, densities = job.copied(self._context, _copied)
            self.newest = _analysed(copy(), densities, started)
            return self.newest
        finally:
            now = time.monotonic()
            self._due = now + max(LEAST_S, SHARE * (now - started))

    def close(self) -> None:
        self._worker.close()


def _copied(view: GraphView) -> tuple[Callable[[], Snapshot], Array]:
    """In a turn: a copy of the graph, and the densities by level."""
    return view.graph.begin_snapshot(compact=True), view.graph.level_densities()


def _analysed(snapshot: Snapshot, densities: Array, started: float) -> Look:
    """REQUIRES: a compact snapshot, each row of which is a vertex."""
    cores = np.asarray(to_host(core_numbers(snapshot)))
    degrees = np.diff(np.asarray(to_host(snapshot._indptr)))
    by_core = np.bincount(cores)
    values = np.flatnonzero(by_core)
    document = {
        "version": snapshot.version,
        "vertices": len(cores),
        "cores": {"value": values.tolist(), "count": by_core[values].tolist()},
        "degrees": binned(degrees),
        "densities": [
            {"level": level, "density": round(value, 4), "segments": 1 << max(level - 1, 0)}
            for level, value in enumerate(densities.tolist())
        ],
        "seconds": round(time.monotonic() - started, 4),
    }
    ids = np.asarray(to_host(snapshot._ids))
    best = int(ids[degrees.argmax()]) if snapshot.num_edges else None
    return Look(snapshot.version, document, cores, ids, best)


def binned(degrees: Array) -> dict[str, list[int]]:
    """How many degrees are 0, 1, 2 … 3, 4 … 7 and so on: `from`, `to` and `count` of each bin that
    is not empty.

    >>> import numpy as np
    >>> from ingest.service.distributions import binned
    >>> binned(np.array([0, 1, 2, 3, 9]))
    {'from': [0, 1, 2, 8], 'to': [0, 1, 3, 15], 'count': [1, 1, 2, 1]}
    """
    bins = np.frexp(degrees.astype(np.float64))[1]  # 0 for 0, else the number of binary digits
    counts = np.bincount(bins)
    used = np.flatnonzero(counts)
    low = np.where(used > 0, 1 << np.maximum(used - 1, 0), 0)
    high = np.where(used > 0, (1 << used) - 1, 0)
    return {"from": low.tolist(), "to": high.tolist(), "count": counts[used].tolist()}


def handlers(context: Context, hub: Hub, looks: Distributions) -> dict[str, Any]:
    """What the page asks for beside the queries."""
    context.on_close(looks.close)

    async def distributions(request: Request) -> Response:
        return JSONResponse((await looks.look(request.receive)).document)

    async def letters(request: Request) -> Response:
        pipeline = context.pipeline
        if pipeline is None:
            return JSONResponse({"total": 0, "reasons": {}, "newest": []})
        outputs = pipeline.outputs
        newest = newest_letters(outputs.kept, SHOWN_LETTERS)
        reasons = dict(outputs.rejected_by.copy())
        return JSONResponse({"total": outputs.rejected, "reasons": reasons, "newest": newest})

    async def checkpoints(request: Request) -> Response:
        found = list(hub.sampler.checkpoints) if hub.sampler is not None else []
        pipeline = context.pipeline
        age = None if pipeline is None else pipeline.stats.checkpoint_age
        newest = [vars(figures) for figures in reversed(found)]
        return JSONResponse({"age_s": age, "kept": age is not None, "newest": newest})

    return {"distributions": distributions, "letters": letters, "checkpoints": checkpoints}
