"""Point queries: /v1/edges, successors, predecessors, degree, vertices and hops; /v1/graph.

POST asks for many at once, in the forms of `query_codecs.py`; GET asks for one, whose vertices are
words of the path as on the command line: 5 is an integer, "5" in quotes is text, ann is text.

These endpoints are plain ASGI: a request object and a response object of Starlette's would cost
more than the rest of a point query does.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any
from urllib.parse import unquote_to_bytes

from msgspec import UNSET, Struct
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
from .cursors import Pages, not_kept
from .graph_figures import GraphFigures
from .media import COLUMNS, accepted, form_of
from .problems import Problem
from .query_codecs import Page, check_vertices, decoded, encoded, marks, page_of, vertices
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
    shared = _Shared(context)
    figures = GraphFigures(context)

    async def graph(request: Request) -> JSONResponse:
        return JSONResponse(await figures.now(request))

    queries = [operation for operation in OPERATIONS if operation.tag == "queries"]
    found = {each.name: (_Many if each.takes else _One)(shared, each) for each in queries}
    return {"graph": graph, **found}


class _Shared:
    """What all endpoints of this module use."""

    def __init__(self, context: Context) -> None:
        self.limits = context.limits
        self.graph = context.graph
        self.queue = QueryQueue(context)
        self.pages = Pages(context.limits)
        of_stream = None if context.pipeline is None else context.pipeline.vertices
        self.named = of_stream is not None or getattr(context.graph, "names", None) is not None

    async def reply(
        self, send: Send, receive: Receive, form: str, kind: Kind, u: Vertices,
        v: Vertices | None = None, after: list[Name | None] | None = None, k: int = 0,
    ) -> None:  # fmt: skip
        """Ask, and send what came."""
        if kind is Kind.HOPS and k > self.limits.max_hops:
            most = self.limits.max_hops
            raise Problem(422, f"k: {k} steps, and at most {most} are taken here", type=HOPS)
        if kind is Kind.PREDECESSORS and not self.graph.has_predecessors and self.graph.directed:
            raise Problem(422, NO_PREDECESSORS, type=UNSUPPORTED)
        answer = await self.queue.ask(receive, kind, u, v, after, k)
        await self._send_first(send, form, answer, u)

    async def reply_from(
        self, send: Send, receive: Receive, form: str, kind: Kind, cursor: object
    ) -> None:
        """Send the page that a cursor stands for."""
        page = self.pages.next(cursor, kind)
        if isinstance(page, Page):
            await self.send_page(send, form, page)
            return
        k = 1 if kind is Kind.HOPS else 0
        answer = await self.queue.ask(receive, kind, page.u, None, [page.after], k)
        if answer.version != page.version:
            raise not_kept()
        await self._send_first(send, form, answer, page.u)

    async def _send_first(self, send: Send, form: str, answer: Answer, u: Vertices) -> None:
        long = answer.rows > LONG
        page = await asyncio.to_thread(page_of, answer) if long else page_of(answer)
        await self.send_page(send, form, self.pages.first(answer, page, u))

    async def send_page(self, send: Send, form: str, page: Page) -> None:
        if page.rows > LONG:
            body = await asyncio.to_thread(encoded, page, form)
        else:
            body = encoded(page, form)
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

    def __init__(self, shared: _Shared, operation: Operation) -> None:
        assert operation.takes is not None
        self._shared = shared
        self._kind = KINDS[operation.name]
        (self._body,) = operation.takes.types
        self._columns = operation.columns

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        form, shared = accepted(_header(scope, b"accept"), COLUMNS), self._shared
        given = form_of(_header(scope, b"content-type"), COLUMNS)
        data = await Request(scope, receive).body()
        if len(data) > LONG:
            body = await asyncio.to_thread(decoded, given, data, self._body, shared.limits)
        else:
            body = decoded(given, data, self._body, shared.limits)
        if isinstance(body, messages.PagedBody) and body.cursor is not None:
            given_too = [n for n in body.__struct_fields__ if n != "cursor"]
            if any(getattr(body, name) not in (None, UNSET) for name in given_too):
                raise RecordError("cursor: it goes on by itself: leave out the other fields")
            await shared.reply_from(send, receive, form, self._kind, body.cursor)
            return
        await shared.reply(send, receive, form, self._kind, **self._asked(body))

    def _asked(self, body: Struct) -> dict[str, Any]:
        """What a body asks for. Raises RecordError."""
        named, most = self._shared.named, self._shared.limits.max_rows
        columns = [vertices(body, name, named, most) for name in self._columns]
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


class _One:
    """GET: one, whose vertices are words of the path."""

    def __init__(self, shared: _Shared, operation: Operation) -> None:
        name = operation.name.removesuffix("_of_one")
        self._shared = shared
        self._kind = KINDS[name]
        self._operation = operation
        self._start = f"/v1/{name}/".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        form, shared = accepted(_header(scope, b"accept"), COLUMNS), self._shared
        asked: dict[str, Any] = dict(zip("uv", ([v] for v in self._vertices(scope)), strict=False))
        if scope["query_string"] or self._kind is Kind.HOPS:
            query = messages.parameters(scope["query_string"], self._operation.query)
            if isinstance(query, messages.PagedQuery):
                if query.cursor is not UNSET:
                    await shared.reply_from(send, receive, form, self._kind, query.cursor)
                    return
                if query.after is not UNSET:
                    asked["after"] = [name_of(query.after)]
                    check_vertices(asked["after"], "after", shared.named)
            if isinstance(query, messages.HopsQuery):
                if query.k is UNSET:
                    raise RecordError("k: give the number of steps, ?k=2")
                asked["k"] = query.k
        await shared.reply(send, receive, form, self._kind, **asked)

    def _vertices(self, scope: Scope) -> list[Name]:
        """The vertices in the path, from its raw bytes: a name may have a slash in it, as %2F."""
        raw = scope.get("raw_path") or scope["path"].encode()
        at = raw.find(self._start)
        words = raw[at + len(self._start) :].split(b"/")
        if at < 0 or len(words) != len(self._operation.columns):
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
        if not self._shared.named:
            for word, name in zip(words, names, strict=True):
                if type(name) is not int or not 0 <= name <= MAX_VERTEX:
                    said = unquote_to_bytes(word[:64]).decode(errors="replace")
                    raise RecordError(
                        f"{said!r}: vertices of this graph go by numbers: 0 … {MAX_VERTEX}"
                    )
        return names


def _header(scope: Scope, name: bytes) -> str:
    return next((x.decode("latin-1") for found, x in scope["headers"] if found == name), "")
