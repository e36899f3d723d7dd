"""What only the page asks for: distributions, the newest dead letters, checkpoints.

Idea: a snapshot is copied in an interlude and read in a thread of its own, beside the stream. It
happens only when somebody asks, and not before twenty times what the last one took, so that to
watch takes a twentieth of a core at most. Whoever asks meanwhile gets the last result.

    GET /v1/page/distributions   core numbers, degrees, density by level
    GET /v1/page/letters         the newest dead letters
    GET /v1/page/checkpoints     the last ones of this process
"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from algorithms import core_numbers
from lpma.arrays import to_host
from lpma.errors import SnapshotTooLarge
from lpma.snapshot import Snapshot

from ..closing import Closing
from ..interludes import Moment
from ..settings import CheckpointFigures
from .context import Context
from .events import Hub
from .problems import Problem
from .sampling import newest_letters

Array = npt.NDArray[Any]

LEAST_S = 5.0  # between two looks at the whole graph
SHARE = 20  # of the time that one took
SHOWN_LETTERS = 50


@dataclass(frozen=True)
class Look:
    """What one look at the whole graph found: `document` for the page, and the core numbers by
    row, or by `ids` if those are not None, which rise. best: the vertex of the highest degree;
    None if there is no edge."""

    version: int
    document: dict[str, Any]
    cores: Array
    ids: Array | None
    best: int | None

    def core_of(self, id: int) -> int | None:
        """The core number of a vertex; None if it was not there."""
        row = id if self.ids is None else int(np.searchsorted(self.ids, id))
        if row >= len(self.cores) or (self.ids is not None and int(self.ids[row]) != id):
            return None
        return int(self.cores[row])


class Distributions(Closing):
    """Looks at the whole graph, at most one at a time."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="lpma-watching")
        self._running: Future[Look] | None = None
        self._due = 0.0
        self.newest: Look | None = None

    def ask(self) -> Future[Look]:
        """The newest look; the next one is begun if it is due. Waits for the first only."""
        with self._lock:
            newest = self.newest
            stale = newest is None or newest.version != self._context.graph.version
            if self._running is None and stale and time.monotonic() >= self._due:
                self._running = self._worker.submit(self._look)
            if newest is None and self._running is not None:
                return self._running
        done: Future[Look] = Future()
        if newest is None:
            done.set_exception(
                Problem(503, "the graph could not be read: ask again", retry_after_s=5)
            )
        else:
            done.set_result(newest)
        return done

    def _look(self) -> Look:
        started = time.monotonic()
        try:
            deadline = self._context.limits.deadline_s
            copied = self._context.interludes.ask(_copied).result(deadline)
            self.newest = _analysed(*copied, started)
            return self.newest
        finally:
            with self._lock:
                now = time.monotonic()
                self._due = now + max(LEAST_S, SHARE * (now - started))
                self._running = None

    def close(self) -> None:
        self._worker.shutdown(cancel_futures=True)


def _copied(moment: Moment) -> tuple[Snapshot, Array]:
    """In an interlude: a snapshot, and the densities by level."""
    graph = moment.graph
    try:
        snapshot = graph.snapshot()
    except SnapshotTooLarge:
        snapshot = graph.snapshot(compact=True)
    return snapshot, graph.level_densities()


def _analysed(snapshot: Snapshot, densities: Array, started: float) -> Look:
    cores = np.asarray(to_host(core_numbers(snapshot)))
    degrees = np.diff(np.asarray(to_host(snapshot._indptr)))
    there = cores > 0
    if snapshot._added is not None:
        there[np.asarray(to_host(snapshot._added))] = True
    by_core = np.bincount(cores[there])
    values = np.flatnonzero(by_core)
    document = {
        "version": snapshot.version,
        "vertices": int(there.sum()),
        "cores": {"value": values.tolist(), "count": by_core[values].tolist()},
        "degrees": binned(degrees[there]),
        "densities": [
            {"level": level, "density": round(value, 4), "segments": 1 << max(level - 1, 0)}
            for level, value in enumerate(densities.tolist())
        ],
        "seconds": round(time.monotonic() - started, 4),
    }
    ids = None if snapshot._ids is None else np.asarray(to_host(snapshot._ids))
    row = int(degrees.argmax()) if snapshot.num_edges else None
    best = row if row is None or ids is None else int(ids[row])
    return Look(snapshot.version, document, cores, ids, best)


def binned(degrees: Array) -> dict[str, list[int]]:
    """How many degrees are 0, 1, 2 … 3, 4 … 7 and so on: `from`, `to` and `count` of each bin that
    is not empty.

    >>> import numpy as np
    >>> from ingest.service.watching import binned
    >>> binned(np.array([0, 1, 2, 3, 9]))
    {'from': [0, 1, 2, 8], 'to': [0, 1, 3, 15], 'count': [1, 1, 2, 1]}
    """
    bins = np.frexp(degrees.astype(np.float64))[1]  # 0 for 0, else the number of binary digits
    counts = np.bincount(bins)
    used = np.flatnonzero(counts)
    low = np.where(used > 0, 1 << np.maximum(used - 1, 0), 0)
    high = np.where(used > 0, (1 << used) - 1, 0)
    return {"from": low.tolist(), "to": high.tolist(), "count": counts[used].tolist()}


def checkpoint_document(figures: CheckpointFigures) -> dict[str, Any]:
    """One checkpoint as JSON."""
    return dict(vars(figures))


def routes(context: Context, hub: Hub, looks: Distributions) -> list[BaseRoute]:
    """What the page asks for beside the queries."""
    context.on_close(looks.close)

    async def distributions(request: Request) -> Response:
        future = await run_in_threadpool(looks.ask)
        try:
            look = await asyncio.wait_for(asyncio.wrap_future(future), context.limits.deadline_s)
        except TimeoutError:
            raise Problem(503, "the graph is still being read", retry_after_s=2) from None
        return JSONResponse(look.document)

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
        age = None if pipeline is None else pipeline.checkpoint_age
        newest = [checkpoint_document(figures) for figures in reversed(found)]
        return JSONResponse({"age_s": age, "kept": age is not None, "newest": newest})

    return [
        Route("/v1/page/distributions", distributions),
        Route("/v1/page/letters", letters),
        Route("/v1/page/checkpoints", checkpoints),
    ]
