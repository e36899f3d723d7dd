"""GET /v1/page/neighborhood/{v}: a vertex, its best connected neighbours, the edges among them.
Without v: of the vertex with the highest degree, to begin with.

Idea: one turn of a few point queries. Of many neighbours those of the highest degree are shown; of
more than `CONSIDERED`, those of the lowest ids are read at all. Core numbers are those of the last
look at the whole graph (`distributions.py`), null before the first. The vertex to begin with comes
from a look, too: one is taken if none has found a vertex yet.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from lpma.arrays import to_host

from ..pipeline.graph_requests import GraphView
from ..state.vertex_names import VertexNames, name_of, word_of
from ..types import Name
from .context import Context
from .distributions import Distributions
from .jobs import in_turn
from .messages import NeighborhoodQuery, parameters
from .problems import Problem

Array = npt.NDArray[Any]

CONSIDERED = 10_000  # neighbours whose degrees are looked up


class Row(NamedTuple):
    """A vertex by its id, whatever it goes by."""

    id: int


def _neighbors(graph: Any, id: int) -> Array:
    """Rising: all that an edge joins with a vertex, itself left out."""
    vertex = np.array([id], np.uint32)
    found = [graph.successors_after(vertex, limit=CONSIDERED).ids]
    if graph.directed and graph.has_predecessors:
        found.append(graph.predecessors_after(vertex, limit=CONSIDERED).ids)
    both = np.unique(np.concatenate([to_host(ids) for ids in found]))
    return both[both != id]


def neighborhood(view: GraphView, vertex: Name | Row, limit: int) -> dict[str, Any]:
    """The document but for the core numbers; `rows` are the ids. Raises Problem, WordError."""
    view = view.by_id()
    graph, names = view.graph, VertexNames(view.names)
    id = vertex.id if isinstance(vertex, Row) else names.id(vertex)
    around = _neighbors(graph, id)
    if not len(around) and not bool(graph.has_vertices([id])[0]):
        known = "any" if isinstance(vertex, Row) else word_of(vertex)
        raise Problem(404, f"there is no vertex {known}: ask for another")
    degrees = _degrees(graph, around)
    chosen = np.sort(np.argsort(-degrees, kind="stable")[:limit])
    rows = np.concatenate([np.array([id], np.uint32), around[chosen]])
    return {
        "version": view.version,
        "time": view.time,
        "rows": rows.tolist(),
        "ids": names.of(rows).tolist(),
        "degree": _degrees(graph, rows).tolist(),
        "edges": _edges_among(graph, rows),
        "neighbors": len(around),
    }


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


def handlers(context: Context, looks: Distributions) -> dict[str, Any]:

    async def around(vertex: Name | Row, limit: int) -> dict[str, Any]:
        return await in_turn(context, lambda view: neighborhood(view, vertex, limit))

    async def around_the_best(request: Request, limit: int) -> dict[str, Any]:
        """Of the last look, unless it knew no vertex, or this one has gone since."""
        if looks.newest is not None and looks.newest.best is not None:
            with suppress(Problem):
                return await around(Row(looks.newest.best), limit)
        look = await looks.look(request.receive, context.graph.version)
        if look.best is None:
            raise Problem(404, "the graph has no edges yet: ask again later")
        return await around(Row(look.best), limit)

    async def page_neighborhood(request: Request) -> Response:
        limit = parameters(request.scope["query_string"], NeighborhoodQuery).limit
        word = request.path_params.get("v")
        if word is None:
            document = await around_the_best(request, limit)
        else:
            document = await around(name_of(word), limit)
        look = looks.newest
        rows = document.pop("rows")
        document["core"] = [None if look is None else look.core_of(row) for row in rows]
        return JSONResponse(document)

    return {"neighborhood": page_neighborhood, "neighborhood_of": page_neighborhood}
