"""The endpoints, each declared once: Starlette's routes and the OpenAPI document are made of this
table, and the guard reads from it what is public and what only reads.

A module of endpoints has `handlers(context)`, which returns what answers each of its operations, by
their names here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct
from starlette.routing import BaseRoute, Route

from . import messages as m
from .media import COLUMNS, JSON, JSON_LINES, SNAPSHOTS, UPDATES

VERSION, TIME = 12, 1767225600000  # of the examples


class Content(NamedTuple):
    """What is sent or answered. media: in which forms. types: what JSON holds; if they are several,
    one of them. example: of JSON, or of the forms that it names."""

    types: tuple[Any, ...] = ()
    media: tuple[str, ...] = (JSON,)
    example: Any = None
    required: tuple[str, ...] = ()  # fields of an answer that has no type here
    description: str = "As asked."
    headers: Mapping[str, str] = {}  # by name, what they say; all are integers


class Operation(NamedTuple):
    """One endpoint. problems: the statuses of its refusals, beside those that all have.
    at: the path as Starlette has it, where it differs."""

    name: str
    method: str
    path: str
    tag: str
    summary: str
    gives: Mapping[int, Content]
    problems: tuple[int, ...] = ()
    query: type[Struct] = m.NoQuery
    takes: Content | None = None
    description: str = ""
    at: str = ""
    is_public: bool = False
    headers: Mapping[str, str] = {}  # those that are read


def _example(**fields: Any) -> dict[str, Any]:
    return {"version": VERSION, "time": TIME, **fields}


def _neighbors(*indptr: int) -> dict[str, Any]:
    return _example(
        indptr=list(indptr), weight=[1.0, 0.5], times=[TIME, TIME], ids=[2, 3], cursor=None
    )


_AT_ONE_VERSION = "All of one request is answered at one version of the graph."
_IN_PAGES = (
    f"{_AT_ONE_VERSION} A long answer comes in pages: `cursor`, by itself in the next body, asks "
    "for the next one, of the same version. A vertex may have more neighbours than an answer has "
    "rows: then the cursor leads on for as long as the graph is of that version (410 after that: "
    "go on with `after`)."
)


def _queries(
    name: str, summary: str, body: type[Struct], answer: type[Struct], asked: dict[str, Any],
    many: dict[str, Any], one: dict[str, Any], query: type[Struct] = m.NoQuery,
) -> list[Operation]:  # fmt: skip
    """POST asks for many at once, GET for one, whose vertices are in the path."""
    columns = [field for field in body.__struct_fields__ if field in ("src", "dst", "u", "v")]
    path, pages = f"/v1/{name}", (410,) if query is not m.NoQuery else ()
    at_once = Content((answer,), COLUMNS, many, (), "The answers, in the order asked.")
    alone = Content((answer,), COLUMNS, one, (), "The answer, in lists of one element.")
    return [
        Operation(
            name, "POST", path, "queries", f"{summary}: many at once", {200: at_once},
            (406, *pages, 413, 415, 422, 503, 504),
            takes=Content((body,), COLUMNS, asked),
            description=_IN_PAGES if pages else _AT_ONE_VERSION,
        ),
        Operation(
            f"{name}_of_one", "GET", f"{path}/{'/'.join(f'{{{column}}}' for column in columns)}",
            "queries", f"{summary}: one", {200: alone},
            (404, 406, *pages, 413, 422, 503, 504), query, at=f"{path}/{{vertex:path}}",
        ),
    ]  # fmt: skip


_GRAPH = _example(
    title="orders", live=True, vertices=3, rows=4, edges=3, device="cpu", directed=True,
    predecessors=False, weighted=True, times=True, names=False, levels=0, segments=1, density=0.1,
    bytes=14027, max_hops=2, since=TIME, lag=[{"topic": "updates", "partition": 0, "records": 0}],
    operations=3, batches=1, queries=0, dead_letters={"malformed": 1}, checkpoint=None,
    window={"width": 86400000, "time": "event", "expired_before": None, "late": 0}, expired=0,
)  # fmt: skip
_PLACE = {"topic": "updates", "partition": 0, "offset": 7, "last": 7, "operations": 2}
_RUN = {
    "algorithm": "core", **_example(vertices=3, edges=3, seconds=0.01, summary={"largest": 2}),
}  # fmt: skip
_AROUND = {200: Content(required=("version", "ids", "core", "degree", "edges"))}
_PAGE = {200: Content(media=("text/html",))}

OPERATIONS = (
    *_queries(
        "edges", "Whether edges are there, with their weights and times", m.EdgesBody, m.Edges,
        {"src": [1, 2], "dst": [2, 1]},
        _example(found=[True, False], weight=[0.5, None], times=[TIME, None]),
        _example(found=[True], weight=[0.5], times=[TIME]),
    ),
    *_queries(
        "successors", "The targets of vertices' edges, sorted by id", m.SuccessorsBody,
        m.Neighbors, {"u": [1, 2]}, _neighbors(0, 2, 2), _neighbors(0, 2), m.PagedQuery,
    ),
    *_queries(
        "predecessors", "The sources of vertices' edges, sorted by id; where the graph keeps them",
        m.PredecessorsBody, m.Neighbors, {"v": [3]}, _neighbors(0, 2, 2), _neighbors(0, 2),
        m.PagedQuery,
    ),
    *_queries(
        "hops", "The distinct vertices within 1 … k steps of vertices", m.HopsBody, m.Neighbors,
        {"u": [1], "k": 2}, _neighbors(0, 2, 2), _neighbors(0, 2), m.HopsQuery,
    ),
    *_queries(
        "degree", "How many successors vertices have", m.DegreeBody, m.Degrees, {"u": [1, 2]},
        _example(degree=[2, 0]), _example(degree=[2]),
    ),
    *_queries(
        "vertices", "Whether vertices are there", m.VerticesBody, m.Vertices, {"v": [1, 2]},
        _example(present=[True, False]), _example(present=[True]),
    ),
    Operation(
        "graph", "GET", "/v1/graph", "graph", "The graph and the stream in figures",
        {200: Content((m.Graph,), example=_GRAPH)}, (503, 504),
    ),
    Operation(
        "updates", "POST", "/v1/updates", "updates", "Write updates to the log of the stream",
        {
            200: Content(
                (m.Written,), example=_PLACE | {"version": VERSION},
                description="They are in the graph.",
            ),
            202: Content((m.Written,), example=_PLACE, description="They are in the log."),
        },
        (409, 413, 415, 422, 503), m.UpdatesQuery,
        Content(
            (m.UpdateColumns, m.UpdateRow, list[m.UpdateRow]), UPDATES,
            {
                JSON: {"src": [1, 2], "dst": [2, 3], "weight": [0.5, 1.0]},
                JSON_LINES: '{"src": 1, "dst": 2}\n{"src": 1, "dst": 2, "kind": "set"}\n',
            },
        ),
        "All of one request is in the log, and synced, before it is answered. Where it is refused, "
        "nothing was written, unless the problem's type is urn:lpma:maybe-written. With `source` "
        "and `seq` it is one record, which may be sent again and is applied once; the `seq` of a "
        "source rises.",
    ),
    Operation(
        "snapshot", "GET", "/v1/snapshot", "graph",
        "The whole graph at one version, as an Arrow stream or a NumPy archive",
        {
            200: Content(
                media=SNAPSHOTS,
                description="The graph.",
                headers={
                    "Lpma-Version": "The version of the graph.",
                    "Lpma-Time": "Its time, in ms since 1970.",
                },
            )
        },
        (406, 413, 422, 429, 503, 504), m.SnapshotQuery,
    ),
    Operation(
        "run", "GET", "/v1/run/{algorithm}", "graph",
        "Compute on a copy of the graph what `lpma run` does",
        {200: Content((m.Run,), example=_RUN)}, (404, 409, 422, 429, 503, 504),
        description="An option of another algorithm is refused.",
    ),
    Operation(
        "events", "GET", "/v1/events", "graph", "What happens, as it happens: server-sent events",
        {200: Content(media=("text/event-stream",))}, (422, 503), m.EventsQuery,
        description="Events: hello, batch, checkpoint, figures, alert, letter, gap. Each has an id "
        "and a JSON document.",
        headers={"Last-Event-ID": "As `after`; browsers send it."},
    ),
    Operation(
        "distributions", "GET", "/v1/page/distributions", "page",
        "Core numbers, degrees and densities", {200: Content(required=("version", "seconds"))},
        (503,),
    ),
    Operation(
        "letters", "GET", "/v1/page/letters", "page", "The newest records that were refused",
        {200: Content(required=("total", "reasons", "newest"))},
    ),
    Operation(
        "checkpoints", "GET", "/v1/page/checkpoints", "page", "The newest checkpoints",
        {200: Content(required=("age_s", "kept", "newest"))},
    ),
    Operation(
        "neighborhood", "GET", "/v1/page/neighborhood", "page",
        "What is around the vertex of the largest degree", _AROUND, (404, 422, 503),
        m.NeighborhoodQuery,
    ),
    Operation(
        "neighborhood_of", "GET", "/v1/page/neighborhood/{v}", "page", "What is around a vertex",
        _AROUND, (404, 422, 503), m.NeighborhoodQuery, at="/v1/page/neighborhood/{v:path}",
    ),
    Operation(
        "healthz", "GET", "/healthz", "operation", "Whether the process lives",
        {200: Content(example={"status": "ok"}, required=("status",))}, is_public=True,
    ),
    Operation(
        "readyz", "GET", "/readyz", "operation", "Whether the stream steps and its source answers",
        {200: Content(example={"status": "ready"}, required=("status",))}, (503,), is_public=True,
    ),
    Operation(
        "metrics", "GET", "/metrics", "operation", "Figures for Prometheus",
        {200: Content(media=("text/plain",))}, (503,),
    ),
    Operation(
        "openapi", "GET", "/openapi.json", "page", "This document",
        {200: Content(required=("openapi", "paths"))}, is_public=True,
    ),
    Operation("page", "GET", "/", "page", "The live page", _PAGE, is_public=True),
    Operation("docs", "GET", "/docs", "page", "This document, to be read", _PAGE, is_public=True),
)  # fmt: skip

PUBLIC = frozenset(operation.path for operation in OPERATIONS if operation.is_public)
# What only reads, though it is sent by POST. Every other POST needs the right to write.
QUERIES = frozenset(
    operation.path
    for operation in OPERATIONS
    if operation.method == "POST" and operation.tag == "queries"
)
_WITHOUT_HEAD = ("run", "snapshot")  # it would cost as much, and bring nothing


def routes_of(handlers: Mapping[str, Any]) -> list[BaseRoute]:
    """A route for each operation, answered by the handler of its name."""
    assert handlers.keys() == {operation.name for operation in OPERATIONS}
    found: list[BaseRoute] = []
    for operation in OPERATIONS:
        path, methods = operation.at or operation.path, [operation.method]
        route = Route(path, handlers[operation.name], methods=methods)
        if operation.name in _WITHOUT_HEAD:
            assert route.methods is not None
            route.methods.discard("HEAD")
        found.append(route)
    return found
