"""`GET /v1/run/{algorithm}`: what `lpma run` computes, on the graph as it is between two batches.

The pipeline's thread copies the graph, and one worker computes on the copy, so that the stream goes
on and at most one copy is in memory. `max_runs` more may wait, and the next are told when to come
back (429). A run whose client goes, or has waited for `MAX_SECONDS`, is stopped: one that waits is
forgotten, and one that is under way ends between two pieces of its work (`jobs.py`). An algorithm
is called once on a small graph before its first run, so that `seconds` leave out what is compiled.

Its options are those of `lpma run`, with the same names and defaults: what the algorithms declare
(`analyses.OPTIONS`), within limits of the service; and since, until, half_life and now, for a view
in time. OpenAPI's parameters are made of them, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

import lpma
from algorithms.biclique import check_method
from algorithms.options import REQUIRED, Limits, Option, Vertex
from lpma.errors import BatchError

from .. import analyses
from ..errors import WordError
from ..state.vertex_names import VertexNames, Vertices, name_of
from ..views import ABOUT, view_of
from .context import Context
from .jobs import Job, Worker, copied, in_turn
from .problems import Problem

MAX_SECONDS = 300.0  # that a client waits, for its turn and the result
MAX_EDGES = 200_000_000
MAX_EDGES_OF = {"truss": 50_000_000, "diversity": 50_000_000, "bicliques": 10_000_000}
MOST_RETRY_S = 60
MAX_TOP = 1000
# What one request may ask for: no more than this, whatever the algorithm takes.
MOST = {"tol": 1, "max_iter": 10_000, "p": 256, "q": 256, "left": 2**32 - 2}

_TOP = Option("top", int, 5, Limits(le=MAX_TOP), "how many of the largest values are told")
_LIST = Option("list", int, 0, Limits(le=MAX_TOP), "how many are listed")


def handlers(context: Context) -> dict[str, Any]:
    runs = _Runs(context)
    context.on_close(runs.worker.close)
    return {"run": runs.get}


class _Runs:
    """The endpoint, with its worker."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._last_s = 1.0  # that a run took
        self.worker = Worker("lpma-runs")

    async def get(self, request: Request) -> Response:
        algorithm = request.path_params["algorithm"]
        given = request.query_params
        options = options_of(algorithm, given)
        in_time = view_of({name: given.get(name) for name in ABOUT})
        # In a turn: the graph's lock may be held for as long as a batch takes.
        edges = await in_turn(self._context, lambda view: int(view.graph.num_edges))
        most = MAX_EDGES_OF.get(algorithm, MAX_EDGES)
        if edges > most:
            raise Problem(
                409,
                f"the graph has {edges:,} edges, and {algorithm} takes at most {most:,} here: "
                "`lpma run` on a checkpoint takes any number",
            )
        if self.worker.unfinished > self._context.limits.max_runs:
            wait = min(MOST_RETRY_S, math.ceil(self._last_s))
            raise Problem(429, "others wait to be run: ask again later", retry_after_s=wait)
        run = self.worker.begin(lambda job: self._run(algorithm, options, in_time, job))
        late = f"not done within {MAX_SECONDS:g} s: take `lpma run`"
        return JSONResponse(await run.wait(request.receive, MAX_SECONDS, late))

    # The worker's thread ---------------------------------------------------------------------

    def _run(
        self, algorithm: str, options: dict[str, Any], in_time: dict[str, int], job: Job[Any]
    ) -> dict[str, Any]:
        view, finish = job.copied(self._context, partial(copied, compact=True, view=in_time))
        s = finish()
        vertices = Vertices(s, VertexNames(view.names))
        found, seconds = analyses.timed(
            lambda: _computed(algorithm, options, s, vertices, job.check)
        )
        self._last_s = max(0.0, seconds)  # another thread may have waited for kernels
        return {
            "algorithm": algorithm,
            "version": s.version,
            "time": view.time,
            "vertices": s.num_rows,
            "edges": s.num_edges,
            "seconds": round(self._last_s, 4),
            **found,
        }


def _computed(
    algorithm: str, options: dict[str, Any], s: lpma.Snapshot, v: Vertices,
    check: Callable[[], None],
) -> dict[str, Any]:  # fmt: skip
    """check: raises an error once nobody wants the result."""
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
    count = analyses.bicliques(*sides, options["method"], lambda done, total: check())
    first = analyses.first_bicliques(*sides, options["list"]) if options["list"] else []
    top = [{"left": list(one.left), "right": list(one.right)} for one in first]
    return {"summary": {"bicliques": count}, "columns": ["left", "right"], "top": top}


# Options -------------------------------------------------------------------------------------


def _options_of(algorithm: str) -> Iterator[Option]:
    for option in analyses.OPTIONS[algorithm].values():
        most = MOST.get(option.name, option.limits.le)
        yield replace(option, limits=replace(option.limits, le=most))
    yield _LIST if algorithm == "bicliques" else _TOP


OPTIONS = {
    algorithm: {option.name: option for option in _options_of(algorithm)}
    for algorithm in analyses.OPTIONS
}


def options_of(algorithm: str, given: Mapping[str, str]) -> dict[str, Any]:
    """The options of an algorithm as a request's query gives them, beside those of a view in time.
    Raises Problem, BatchError."""
    if algorithm not in OPTIONS:
        raise Problem(404, f"no algorithm {algorithm[:64]!r}: there are {', '.join(OPTIONS)}")
    known = OPTIONS[algorithm]
    if unknown := sorted(set(given) - {*known, *ABOUT}):
        said = ", ".join((*known, *ABOUT))
        raise Problem(422, f"unknown option {unknown[0][:64]!r}: {algorithm} takes {said}")
    found = {}
    for name, option in known.items():
        if name in given:
            found[name] = _read(option, given[name])
        elif option.default is REQUIRED:
            raise Problem(422, f"{name}: {algorithm} needs it")
        else:
            found[name] = option.default
    if algorithm == "bicliques":
        check_method(found["method"], found["p"], found["q"])
    return analyses.reading_weights(algorithm, found) if "half_life" in given else found


def _read(option: Option, text: str) -> Any:
    """The value that a text is. Raises Problem."""
    try:
        if option.kind is Vertex:
            return name_of(text)
        if option.kind is bool:
            return {"true": True, "false": False}[text]
        return option.admit(option.kind(text))
    except WordError as error:
        raise Problem(422, f"{option.name}: {error}") from None
    except (KeyError, ValueError, BatchError):
        raise Problem(422, f"{option.name}: expected {option.wanted}") from None


def parameters() -> list[dict[str, Any]]:
    """The parameters of `/v1/run/{algorithm}` in OpenAPI: the algorithm, and the options of all."""
    algorithm = {"type": "string", "enum": list(OPTIONS)}
    path = {"name": "algorithm", "in": "path", "required": True, "description": "Which one.",
            "schema": algorithm}  # fmt: skip
    every = {option.name: option for options in OPTIONS.values() for option in options.values()}
    queries = []
    for name, option in every.items():
        takers = ", ".join(algorithm for algorithm, options in OPTIONS.items() if name in options)
        said = f"Of {takers}: {option.description}."
        queries.append({"name": name, "in": "query", "description": said,
                        "schema": _schema(option)})  # fmt: skip
    for name, said in ABOUT.items():
        queries.append({"name": name, "in": "query", "description": said,
                        "schema": {"type": "string"}})  # fmt: skip
    return [path, *queries]


def _schema(option: Option) -> dict[str, Any]:
    kind = {int: "integer", float: "number"}.get(option.kind, "string")
    limits, default = option.limits, option.default
    choices = ("true", "false") if option.kind is bool else limits.choices
    ends = {"minimum": limits.ge, "maximum": limits.le} if kind != "string" else {}
    if option.kind is bool:
        default = str(default).lower()
    found = {"type": kind, "enum": choices, **ends, "default": default}
    return {key: x for key, x in found.items() if x not in (None, (), REQUIRED)}
