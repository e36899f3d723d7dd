"""GET /v1/page/neighborhood/{v}: a vertex, its best connected neighbours, the edges among them.
Without v: of the vertex with the highest degree, to begin with.

Idea: one interlude of a few point queries. Of many neighbours those of the highest degree are
shown; of more than `CONSIDERED`, those of the lowest ids are considered. Core numbers are those of
the last look at the whole graph (`watching.py`), null before the first.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from lpma.arrays import to_host
from lpma.names import column_of

from ..interludes import Moment
from ..state.vertex_names import VertexNames, name_of, word_of
from ..types import Name
from .context import Context
from .problems import Problem
from .watching import Distributions

Array = npt.NDArray[Any]

CONSIDERED = 10_000  # neighbours whose degrees are looked up
MOST_SHOWN = 200


class Row(NamedTuple):
    """A vertex by its id, whatever it goes by."""

    id: int


class _Ids:
    """The graph by ids, whoever has the names: its own dictionary is passed by."""

    def __init__(self, moment: Moment) -> None:
        graph = moment.graph
        self.graph = graph
        self.own = graph.names
        self.names = VertexNames(moment.names if self.own is None else self.own)

    def given(self, ids: Array) -> Array:
        """Ids as the graph takes them."""
        return ids if self.own is None else self.own.of(ids)

    def ids(self, found: Array) -> Array:
        """What the graph returned, as ids."""
        if self.own is None:
            return np.asarray(to_host(found))
        return self.own.look_up(column_of(found, "v"))

    def neighbors(self, id: int) -> Array:
        """Rising: all that an edge joins with a vertex, itself left out."""
        vertex = self.given(np.array([id], np.uint32))
        found = [self.graph.successors(vertex).ids]
        if self.graph.directed and self.graph.has_predecessors:
            found.append(self.graph.predecessors(vertex).ids)
        both = np.unique(np.concatenate([self.ids(ids[:CONSIDERED]) for ids in found]))
        return both[both != id]


def neighborhood(moment: Moment, vertex: Name | Row, limit: int) -> dict[str, Any]:
    """The document but for the core numbers; `rows` are the ids. Raises Problem, WordError."""
    ids = _Ids(moment)
    graph = moment.graph
    id = vertex.id if isinstance(vertex, Row) else ids.names.id(vertex)
    if ids.own is not None and id >= len(ids.own):
        raise _unknown(vertex)
    around = ids.neighbors(id)
    if not len(around) and not bool(graph.has_vertices(ids.given(np.array([id], np.uint32)))[0]):
        raise _unknown(vertex)
    degrees = _degrees(graph, ids.given(around))
    chosen = np.sort(np.argsort(-degrees, kind="stable")[:limit])
    rows = np.concatenate([np.array([id], np.uint32), around[chosen]])
    return {
        "version": moment.version,
        "time": moment.time,
        "rows": rows.tolist(),
        "ids": ids.names.of(rows).tolist(),
        "degree": _degrees(graph, ids.given(rows)).tolist(),
        "edges": _edges_among(graph, ids.given(rows)),
        "neighbors": len(around),
    }


def _unknown(vertex: Name | Row) -> Problem:
    known = "any" if isinstance(vertex, Row) else word_of(vertex)
    return Problem(404, f"there is no vertex {known}: ask for another")


def _degrees(graph: Any, vertices: Array) -> Array:
    return np.asarray(to_host(graph.degree(vertices))) if len(vertices) else np.empty(0, np.int64)


def _edges_among(graph: Any, vertices: Array) -> list[list[int]]:
    """Pairs of places, i < j unless only the edge from j to i is there."""
    n = len(vertices)
    i, j = np.triu_indices(n, 1)
    if not len(i):
        return []
    there = np.asarray(to_host(graph.edges(vertices[i], vertices[j]).found))
    back = np.asarray(to_host(graph.edges(vertices[j], vertices[i]).found)) & ~there
    pairs = [*zip(i[there], j[there], strict=True), *zip(j[back], i[back], strict=True)]
    return [[int(a), int(b)] for a, b in pairs]


def routes(context: Context, looks: Distributions) -> list[BaseRoute]:
    """GET /v1/page/neighborhood and /v1/page/neighborhood/{v}."""

    async def page_neighborhood(request: Request) -> Response:
        word = request.path_params.get("v")
        best = None if looks.newest is None else looks.newest.best
        if word is None and best is None:
            raise Problem(404, "the graph has no edges yet: ask again later")
        vertex = Row(best) if word is None and best is not None else name_of(word or "")
        limit = request.query_params.get("limit", "50")
        if not (
            limit.isascii()
            and limit.isdigit()
            and len(limit) <= 4
            and 1 <= int(limit) <= MOST_SHOWN
        ):
            raise Problem(422, f"limit is {limit[:40]!r}: expected 1 … {MOST_SHOWN}")
        asked = context.interludes.ask(lambda moment: neighborhood(moment, vertex, int(limit)))
        try:
            future = asyncio.wrap_future(asked)
            document = await asyncio.wait_for(future, context.limits.deadline_s)
        except TimeoutError:
            raise Problem(503, "the stream did not answer in time", retry_after_s=2) from None
        look = looks.newest
        rows = document.pop("rows")
        document["core"] = [None if look is None else look.core_of(row) for row in rows]
        return JSONResponse(document)

    return [
        Route("/v1/page/neighborhood", page_neighborhood),
        Route("/v1/page/neighborhood/{v:path}", page_neighborhood),
    ]
