"""Point queries: /v1/edges, successors, predecessors, degree, vertices and hops; /v1/graph.

POST asks for many at once, in the forms of `query_codecs.py`; GET asks for one, whose vertices are
words of the path as on the command line: 5 is an integer, "5" in quotes is text, ann is text.

These endpoints are plain ASGI: a request object and a response object of Starlette's would cost
more than the rest of a point query does.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import unquote_to_bytes

from msgspec import UNSET, Struct, structs
from starlette.requests import Request
from starlette.responses import JSONResponse

from lpma import Kind
from lpma.batch.columns import MAX_VERTEX
from lpma.engine.admission import NO_PREDECESSORS

from ..errors import RecordError
from ..state.vertex_names import name_of
from ..types import Name
from . import messages
from .answering import Answer, Vertices
from .context import Context
from .cursors import Cursors, not_kept
from .graph_figures import GraphFigures
from .media import COLUMNS, accepted, form_of
from .problems import Problem
from .query_codecs import VERTICES, Page, decoded, encoded, marks, page_of, vertices
from .query_queue import HOPS, UNSUPPORTED, QueryQueue, Receive
from .routes import OPERATIONS, Operation

LONG = 10_000  # rows, above which an answer is written by another thread

Scope = dict[str, Any]
Send = Any


KINDS = {
    "edges": Kind.EDGE,
    "successors": Kind.SUCCESSORS,
    "predecessors": Kind.PREDECESSORS,
    "hops": Kind.HOPS,
    "degree": Kind.DEGREE,
    "vertices": Kind.VERTEX,
}


def handlers(context: Context) -> dict[str, Any]:
    """The endpoints of this module, by the names of their operations."""
    queries, figures = _Queries(context), GraphFigures(context)

    async def graph(request: Request) -> JSONResponse:
        return JSONResponse(await figures.now(request))

    found: dict[str, Any] = {"graph": graph}
    declared = {operation.name: operation for operation in OPERATIONS}
    for name, kind in KINDS.items():
        body: Any = declared[name].takes
        found[name] = _Many(queries, kind, body.types[0])
        of_one = f"{name}_of_one"
        found[of_one] = _One(queries, kind, body.types[0], declared[of_one])
    return found


class _Queries:
    """What all endpoints of this module have in common: from a body to its answer."""

    def __init__(self, context: Context) -> None:
        self.limits = context.limits
        self.graph = context.graph
        self.queue = QueryQueue(context)
        self.cursors = Cursors(context.limits)
        of_stream = None if context.pipeline is None else context.pipeline.vertices
        self.named = of_stream is not None or getattr(context.graph, "names", None) is not None

    async def answer(
        self, scope: Scope, receive: Receive, send: Send, kind: Kind, body: Struct
    ) -> None:
        """Ask what a body asks, and send what comes. Raises Problem, RecordError."""
        form = accepted(_header(scope, b"accept"), COLUMNS)
        if isinstance(body, messages.PagedBody) and body.cursor is not None:
            given_too = [n for n in body.__struct_fields__ if n != "cursor"]
            if any(getattr(body, name) not in (None, UNSET) for name in given_too):
                raise RecordError("cursor: it goes on by itself: leave out the other fields")
            await self._go_on(send, receive, form, kind, body.cursor)
            return
        asked = self._asked(body)
        if asked.get("k", 0) > self.limits.max_hops:
            said = f"k: {asked['k']} steps, and at most {self.limits.max_hops} are taken here"
            raise Problem(422, said, type=HOPS)
        if kind is Kind.PREDECESSORS and not self.graph.has_predecessors and self.graph.directed:
            raise Problem(422, NO_PREDECESSORS, type=UNSUPPORTED)
        found = await self.queue.ask(receive, kind, **asked)
        await self._send_first(send, form, found, asked["u"])

    def _asked(self, body: Struct) -> dict[str, Any]:
        """The question that a body is. Raises RecordError."""
        named, most = self.named, self.limits.max_rows
        columns = [vertices(body, name, named, most) for name in _columns_of(type(body))]
        if len(columns) == 2 and len(columns[0]) != len(columns[1]):
            raise RecordError(
                f"dst: has {len(columns[1]):,} vertices, and src has {len(columns[0]):,}"
            )
        asked: dict[str, Any] = dict(zip("uv", columns, strict=False))
        if isinstance(body, messages.PagedBody):
            asked["after"] = marks(body.after, len(columns[0]), named)
        if isinstance(body, messages.HopsBody):
            if body.k is UNSET:
                raise RecordError("k: is missing: give the number of steps")
            asked["k"] = body.k
        return asked

    async def _go_on(
        self, send: Send, receive: Receive, form: str, kind: Kind, cursor: object
    ) -> None:
        """Send the page that a cursor stands for."""
        page = self.cursors.next(cursor, kind)
        if isinstance(page, Page):
            await _send_page(send, form, page)
            return
        k = 1 if kind is Kind.HOPS else 0
        answer = await self.queue.ask(receive, kind, page.u, None, [page.after], k)
        if answer.version != page.version:
            raise not_kept()
        await self._send_first(send, form, answer, page.u)

    async def _send_first(self, send: Send, form: str, answer: Answer, u: Vertices) -> None:
        long = answer.rows > LONG
        page = await asyncio.to_thread(page_of, answer) if long else page_of(answer)
        await _send_page(send, form, self.cursors.first(answer, page, u))


@cache
def _columns_of(body: type[Struct]) -> tuple[str, ...]:
    """The fields that are vertices."""
    return tuple(name for name in body.__struct_fields__ if name in VERTICES)


async def _send_page(send: Send, form: str, page: Page) -> None:
    long = page.rows > LONG
    body = await asyncio.to_thread(encoded, page, form) if long else encoded(page, form)
    headers = [
        (b"content-type", form.encode()),
        (b"content-length", b"%d" % len(body)),
        (b"vary", b"accept"),
    ]
    with suppress(OSError):  # the client went away
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class _Many:
    """POST: many at once."""

    def __init__(self, queries: _Queries, kind: Kind, body: type[Struct]) -> None:
        self._queries, self._kind, self._body = queries, kind, body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        form, limits = form_of(_header(scope, b"content-type"), COLUMNS), self._queries.limits
        data = await Request(scope, receive).body()
        if len(data) > LONG:
            body = await asyncio.to_thread(decoded, form, data, self._body, limits)
        else:
            body = decoded(form, data, self._body, limits)
        await self._queries.answer(scope, receive, send, self._kind, body)


class _One:
    """GET: one, whose vertices are words of the path."""

    def __init__(
        self, queries: _Queries, kind: Kind, body: type[Struct], operation: Operation
    ) -> None:
        self._queries, self._kind, self._body = queries, kind, body
        self._operation = operation
        self._columns = _columns_of(body)
        self._start = operation.path[: operation.path.index("{")].encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given: dict[str, Any] = {}
        if scope["query_string"]:
            query = messages.parameters(scope["query_string"], self._operation.query)
            given = {name: x for name, x in structs.asdict(query).items() if x is not UNSET}
        vertices = self._vertices(scope)
        if "after" in given:
            given["after"] = [name_of(given["after"])]
        if "cursor" in given:
            given = {"cursor": given["cursor"]}
        else:
            given |= {name: [v] for name, v in zip(self._columns, vertices, strict=True)}
        await self._queries.answer(scope, receive, send, self._kind, self._body(**given))

    def _vertices(self, scope: Scope) -> list[Name]:
        """The vertices in the path, from its raw bytes: a name may have a slash in it, as %2F."""
        raw = scope.get("raw_path") or scope["path"].encode()
        at = raw.find(self._start)
        words = raw[at + len(self._start) :].split(b"/")
        if at < 0 or len(words) != len(self._columns):
            raise Problem(404, f"{self._operation.path} is asked for")
        names: list[Name] = []
        for word in words:
            if word.isdigit() and len(word) < 10 and (word[0] != 48 or word == b"0"):
                names.append(int(word))
            else:
                try:
                    names.append(name_of(unquote_to_bytes(word).decode()))
                except UnicodeDecodeError:
                    raise RecordError("the path is no UTF-8: encode names in it as UTF-8") from None
        if not self._queries.named:
            for word, name in zip(words, names, strict=True):
                if type(name) is not int or not 0 <= name <= MAX_VERTEX:
                    said = unquote_to_bytes(word[:64]).decode(errors="replace")
                    raise RecordError(
                        f"{said!r}: vertices of this graph go by numbers: 0 … {MAX_VERTEX}"
                    )
        return names


def _header(scope: Scope, name: bytes) -> str:
    return next((x.decode("latin-1") for found, x in scope["headers"] if found == name), "")
