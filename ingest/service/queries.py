"""Point queries: /v1/edges, successors, predecessors, degree, vertices and hops; /v1/graph.

POST asks for many at once, in the forms of `bodies.py`; GET asks for one, whose vertices are words
of the path as on the command line: 5 is an integer, "5" in quotes is text, ann is text.

These endpoints are plain ASGI: a request object and a response object of Starlette's would cost
more than the rest of a point query does.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote_to_bytes

from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from lpma import Kind
from lpma.batch.columns import MAX_VERTEX
from lpma.engine.admission import NO_PREDECESSORS

from ..errors import WordError
from ..state.vertex_names import name_of
from ..types import Name
from .asking import HOPS, UNSUPPORTED, Asking, ClientGone, Receive
from .bodies import (
    CONTENT_TYPES,
    Column,
    accepted,
    check_vertices,
    decoded,
    form_of,
    marks,
    only,
    vertices,
    whole,
)
from .context import Context
from .encoding import Page, encoded, page_of
from .graph_figures import GraphFigures
from .pages import Pages, not_kept
from .problems import Problem, wrong
from .questions import Answer, Vertices

LONG = 10_000  # rows, above which an answer is written by another thread

Scope = dict[str, Any]
Send = Any


class Endpoint(NamedTuple):
    """One kind of query: its path, and the fields that have its vertices."""

    name: str
    kind: Kind
    columns: tuple[str, ...]
    optional: tuple[str, ...] = ()

    @property
    def in_pages(self) -> bool:
        return "cursor" in self.optional


ENDPOINTS = (
    Endpoint("edges", Kind.EDGE, ("src", "dst")),
    Endpoint("successors", Kind.SUCCESSORS, ("u",), ("after", "cursor")),
    Endpoint("predecessors", Kind.PREDECESSORS, ("v",), ("after", "cursor")),
    Endpoint("degree", Kind.DEGREE, ("u",)),
    Endpoint("vertices", Kind.VERTEX, ("v",)),
    Endpoint("hops", Kind.HOPS, ("u",), ("k", "after", "cursor")),
)


def routes(context: Context) -> list[BaseRoute]:
    """The routes of this module."""
    shared = _Shared(context)
    found: list[BaseRoute] = []
    for endpoint in ENDPOINTS:
        path = f"/v1/{endpoint.name}"
        found.append(Route(f"{path}/{{vertex:path}}", _One(shared, endpoint), methods=["GET"]))
        found.append(Route(path, _Many(shared, endpoint), methods=["POST"]))
    figures = GraphFigures(context)

    async def graph(request: Any) -> JSONResponse:
        return JSONResponse(await figures.now(request))

    return [*found, Route("/v1/graph", graph, methods=["GET"])]


class _Shared:
    """What all endpoints of this module use."""

    def __init__(self, context: Context) -> None:
        self.limits = context.limits
        self.graph = context.graph
        self.asking = Asking(context)
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
        try:
            answer = await self.asking.ask(receive, kind, u, v, after, k)
        except ClientGone:
            return
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
        try:
            answer = await self.asking.ask(receive, kind, page.u, None, [page.after], k)
        except ClientGone:
            return
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
            (b"content-type", CONTENT_TYPES[form]),
            (b"content-length", b"%d" % len(body)),
            (b"vary", b"accept"),
        ]
        with suppress(OSError):  # the client went away
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})


class _Many:
    """POST: many at once."""

    def __init__(self, shared: _Shared, endpoint: Endpoint) -> None:
        self._shared = shared
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        content_type = accept = ""
        for name, value in scope["headers"]:
            if name == b"content-type":
                content_type = value.decode("latin-1")
            elif name == b"accept":
                accept = value.decode("latin-1")
        form, shared, endpoint = accepted(accept), self._shared, self._endpoint
        given = form_of(content_type)
        body = await _body(receive, shared.limits.max_body_bytes)
        if body is None:
            return
        if len(body) > LONG:
            fields = await asyncio.to_thread(decoded, given, body, shared.limits)
        else:
            fields = decoded(given, body, shared.limits)
        if endpoint.in_pages and fields.get("cursor") is not None:
            if len(fields) > 1:
                raise wrong("cursor: stands alone: it knows what was asked")
            await shared.reply_from(send, receive, form, endpoint.kind, fields["cursor"])
            return
        await shared.reply(send, receive, form, endpoint.kind, **self._asked(fields))

    def _asked(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The question in a body. Raises Problem."""
        endpoint, named, most = self._endpoint, self._shared.named, self._shared.limits.max_rows
        columns, optional = endpoint.columns, endpoint.optional
        known = ("rows", *columns, *optional) if "rows" in fields else (*columns, *optional)
        only(fields, known)
        u = vertices(fields, columns[0], named, most)
        asked: dict[str, Any] = {"u": u}
        if len(columns) == 2:
            asked["v"] = vertices(fields, columns[1], named, most)
            if len(asked["v"]) != len(u):
                raise wrong(
                    f"{columns[1]}: has {len(asked['v']):,} vertices, and {columns[0]} has "
                    f"{len(u):,}: they must agree"
                )
        if "after" in optional:
            asked["after"] = marks(fields, len(u), named)
        if "k" in optional:
            asked["k"] = whole(_one_number(fields), "k", 1, 255)
        return asked


def _one_number(fields: dict[str, Any]) -> dict[str, Any]:
    """The same with `k` of a body of Arrow as a number: there it is a column."""
    k = fields.get("k")
    same = hasattr(k, "tolist") and len(k) and (k == k[0]).all()  # type: ignore[arg-type, index]
    return {**fields, "k": k[0].item()} if same else fields  # type: ignore[index]


class _One:
    """GET: one, whose vertices are words of the path."""

    def __init__(self, shared: _Shared, endpoint: Endpoint) -> None:
        self._shared = shared
        self._endpoint = endpoint
        self._start = f"/v1/{endpoint.name}/".encode()
        self._parameters = endpoint.optional

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        accept = ""
        for name, value in scope["headers"]:
            if name == b"accept":
                accept = value.decode("latin-1")
        form, shared, endpoint = accepted(accept), self._shared, self._endpoint
        names = self._vertices(scope)
        asked: dict[str, Any] = {"u": names[:1]}
        if len(names) == 2:
            asked["v"] = names[1:]
        query = scope["query_string"]
        if query or "k" in endpoint.optional:
            parameters = self._query(query)
            if "cursor" in parameters:
                cursor = parameters["cursor"]
                await shared.reply_from(send, receive, form, endpoint.kind, cursor)
                return
            if "after" in parameters:
                asked["after"] = _checked([_word(parameters["after"])], "after", shared.named)
            if "k" in endpoint.optional:
                asked["k"] = _number(parameters.get("k"))
        await shared.reply(send, receive, form, endpoint.kind, **asked)

    def _vertices(self, scope: Scope) -> list[Name]:
        """The vertices in the path, from its raw bytes: a name may have a slash in it, as %2F."""
        raw = scope.get("raw_path") or scope["path"].encode()
        at = raw.find(self._start)
        words = raw[at + len(self._start) :].split(b"/")
        columns = self._endpoint.columns
        if at < 0 or len(words) != len(columns):
            said = "/".join(f"{{{name}}}" for name in columns)
            raise Problem(404, f"/v1/{self._endpoint.name}/{said} is asked for")
        names: list[Name] = []
        for word in words:
            if word.isdigit() and len(word) < 10 and (word[0] != 48 or word == b"0"):
                names.append(int(word))
            else:
                try:
                    names.append(_word(unquote_to_bytes(word).decode()))
                except UnicodeDecodeError:
                    raise wrong("the path is no UTF-8: encode names in it as UTF-8") from None
        if not self._shared.named:
            for word, name in zip(words, names, strict=True):
                if type(name) is not int or not 0 <= name <= MAX_VERTEX:
                    said = unquote_to_bytes(word[:64]).decode(errors="replace")
                    raise wrong(f"{said!r}: vertices of this graph go by numbers: 0 … {MAX_VERTEX}")
        return names

    def _query(self, query: bytes) -> dict[str, str]:
        """The parameters. Raises Problem 422 for one that is not known, or comes twice."""
        try:
            pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict",
                              max_num_fields=16)  # fmt: skip
        except ValueError:
            raise wrong("the parameters are malformed: name=value, percent-encoded UTF-8") from None
        found = dict(pairs)
        unknown = found.keys() - set(self._parameters)
        if unknown or len(found) != len(pairs):
            known = ", ".join(self._parameters) or "none"
            name = min(unknown)[:64] if unknown else "one that comes twice"
            raise wrong(f"parameter {name!r}: this endpoint takes {known}, each once")
        return found


def _word(word: str) -> Name:
    try:
        return name_of(word)
    except WordError as error:
        raise wrong(str(error)) from None


def _checked(names: list[Name], what: str, named: bool) -> Column:
    check_vertices(names, what, named)
    return names


def _number(word: str | None) -> int:
    if word is None or not (word.isascii() and word.isdigit() and len(word) <= 3):
        raise wrong("k: give the number of steps, ?k=2")
    return whole({"k": int(word)}, "k", 1, 255)


async def _body(receive: Receive, max_bytes: int) -> bytes | None:
    """A request's body; None if the client went away. Raises Problem 413."""
    message = await receive()
    if not message.get("more_body", False):
        return message.get("body", b"") if message["type"] == "http.request" else None
    parts: list[bytes] = [message.get("body", b"")]
    size = len(parts[0])
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > max_bytes:
            raise Problem(413, f"the body has more than {max_bytes:,} bytes: ask for fewer at once")
        if not message.get("more_body", False):
            return b"".join(parts)
