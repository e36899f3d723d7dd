"""`GET /v1/run/{algorithm}`: what `lpma run` computes, on the graph as it is between two batches.

The pipeline's thread copies the graph, and one worker computes on the copy, so that the stream goes
on and at most one copy is in memory. `max_runs` more may wait, and the next are told when to come
back (429). What waits is forgotten if its client goes; what runs ends in its own time, but for
bicliques, whose count stops after `MAX_SECONDS`. An algorithm is called once on a small graph
before its first run, so that `seconds` leave out what is compiled.
"""

from __future__ import annotations

import asyncio
import math
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

import lpma
from lpma.errors import SnapshotTooLarge

from .. import analyses
from ..analyses.compact import compacted
from ..interludes import Moment
from ..state.vertex_names import VertexNames, Vertices
from .asking import until_gone
from .context import Context
from .problems import Problem
from .run_options import OPTIONS, options_of

MAX_SECONDS = 300.0  # that a client waits, for its turn and the result
MAX_EDGES = 200_000_000
MAX_EDGES_OF = {"truss": 50_000_000, "diversity": 50_000_000, "bicliques": 10_000_000}
MOST_RETRY_S = 60


def routes(context: Context) -> list[BaseRoute]:
    """`GET /v1/run/{algorithm}`."""
    runs = _Runs(context)
    context.on_close(runs.worker.close)
    route = Route("/v1/run/{algorithm}", runs.get, methods=["GET"])
    assert route.methods is not None
    route.methods.discard("HEAD")
    return [route]


class _Worker:
    """Calls functions one after the other in a thread, which is no reason not to exit."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]
        self._jobs = queue.SimpleQueue()
        self._futures: list[Future[Any]] = []
        threading.Thread(target=self._work, name="lpma-runs", daemon=True).start()

    @property
    def unfinished(self) -> int:
        """How many jobs wait or run."""
        self._futures = [future for future in self._futures if not future.done()]
        return len(self._futures)

    def submit(self, job: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self._futures.append(future)
        self._jobs.put((future, job))
        return future

    def close(self) -> None:
        """Do nothing more, and do not wait for what is being done."""
        for future in self._futures:
            future.cancel()
        self._jobs.put(None)

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            future, job = item
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(job())
                except BaseException as error:  # noqa: BLE001 - whoever asked is told
                    future.set_exception(error)


class _Runs:
    """The endpoint, with its worker."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._last_s = 1.0  # that a run took
        self.worker = _Worker()

    async def get(self, request: Request) -> Response:
        algorithm = request.path_params["algorithm"]
        options = options_of(algorithm, request.query_params)
        edges, most = self._context.graph.num_edges, MAX_EDGES_OF.get(algorithm, MAX_EDGES)
        if edges > most:
            raise Problem(
                409,
                f"the graph has {edges:,} edges, and {algorithm} takes at most {most:,} here: "
                "`lpma run` on a checkpoint takes any number",
            )
        if self.worker.unfinished > self._context.limits.max_runs:
            wait = min(MOST_RETRY_S, math.ceil(self._last_s))
            raise Problem(429, "others wait to be run: ask again later", retry_after_s=wait)
        until = time.monotonic() + MAX_SECONDS
        future = self.worker.submit(lambda: self._run(algorithm, options, until))
        return await _answer(request, future)

    # The worker's thread ---------------------------------------------------------------------

    def _run(self, algorithm: str, options: dict[str, Any], until: float) -> dict[str, Any]:
        moment, s = self._copied()
        names = moment.graph.names if moment.names is None else moment.names
        s = compacted(s)
        vertices = Vertices(s, VertexNames(names))
        found, seconds = analyses.timed(lambda: _computed(algorithm, options, s, vertices, until))
        self._last_s = max(0.0, seconds)  # another thread may have waited for kernels
        return {
            "algorithm": algorithm,
            "version": s.version,
            "time": moment.time,
            "vertices": s.num_rows,
            "edges": s.num_edges,
            "seconds": round(self._last_s, 4),
            **found,
        }

    def _copied(self) -> tuple[Moment, lpma.Snapshot]:
        """The graph as it lies. Raises TimeoutError."""
        copy = self._context.interludes.ask(lambda moment: (moment, moment.graph.snapshot()))
        try:
            return copy.result(self._context.limits.deadline_s)
        except TimeoutError:
            copy.cancel()  # or the stream would stop for it when it comes to it
            raise


def _computed(
    algorithm: str, options: dict[str, Any], s: lpma.Snapshot, v: Vertices, until: float
) -> dict[str, Any]:
    if algorithm != "bicliques":
        given = dict(options)
        top = given.pop("top")
        if algorithm == "diversity":
            given |= {"top": top, "every": False}
        elif algorithm == "similar":
            given |= {"top": top}
        found = analyses.ANALYSES[algorithm](s, v, **given)
        return {"summary": found.summary, "columns": list(found.ranking), "top": found.top(top)}
    if options["left"] is not None and v.names.count is not None:
        raise Problem(422, "left: vertices go by names here, not ids: leave it out")
    sides = s, v, options["p"], options["q"], options["left"]

    def in_time(done: int, total: int) -> None:
        if time.monotonic() > until:
            raise Problem(503, f"the count took more than {MAX_SECONDS:g} s: take `lpma run`")

    count = analyses.bicliques(*sides, options["method"], in_time)
    first = analyses.first_bicliques(*sides, options["list"]) if options["list"] else []
    top = [{"left": list(one.left), "right": list(one.right)} for one in first]
    return {"summary": {"bicliques": count}, "columns": ["left", "right"], "top": top}


# The event loop --------------------------------------------------------------------------------


async def _answer(request: Request, future: Future[Any]) -> Response:
    """The result as JSON, if the client waits for it. Raises Problem."""
    waiting = asyncio.wrap_future(future)
    gone = asyncio.ensure_future(until_gone(request.receive))
    try:
        await asyncio.wait(
            {waiting, gone}, timeout=MAX_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        if not waiting.done():
            waiting.cancel()
            raise Problem(503, f"not done within {MAX_SECONDS:g} s: take `lpma run`")
        return JSONResponse(waiting.result())
    except TimeoutError:
        raise Problem(503, "the stream did not come to it in time", retry_after_s=1) from None
    except SnapshotTooLarge as error:
        raise Problem(409, str(error)) from None
    finally:
        gone.cancel()
        with suppress(asyncio.CancelledError):
            await gone


assert OPTIONS.keys() == analyses.ANALYSES.keys() | {"bicliques"}
