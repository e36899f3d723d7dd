"""Queries over HTTP: a client of the service (`ingest/service/`), with the methods of `Client`.

Idea: queries of one kind go in one request, as msgpack columns, and their answers come back as
columns of one version, which the service writes in `ingest/service/query_codecs.py`. Connections
are kept and used again, each by one thread at a time: a thread that finds none free opens another.
What is sent here changes nothing, so a request whose kept connection broke is simply sent again.

If the service says *retry later* (429 or 503), the client asks again after what `Retry-After` says
and growing pauses, while there is time.
"""

from __future__ import annotations

import http.client
import itertools
import json
import random
import ssl
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import msgpack
import numpy as np

from lpma import Edges, Neighbors
from lpma.batch.columns import Kind

from ..arguments import of_socket
from ..errors import QueryError, QueryRefused, QueryTimeout, RecordError, SourceError
from ..formats.msgpack import binary, integer, unpack
from ..formats.names import joined, name_fields, names_of, read_names
from ..types import Answer, Array, Closing, Reply, clipped
from .base import MAX_PAUSE_S, TIMEOUT_S, Ask, Queries, Vertex, timeout_of

AT_ONCE = 10_000  # queries of one request
PAUSE_S = 0.1  # before a request is sent again, unless the service asks for more
MAX_IDLE = 32  # connections that are kept
MAX_BYTES = 1 << 30  # of a response
MSGPACK = "application/msgpack"

_PATHS = {
    Kind.EDGE: "edges", Kind.SUCCESSORS: "successors", Kind.PREDECESSORS: "predecessors",
    Kind.HOPS: "hops", Kind.DEGREE: "degree", Kind.VERTEX: "vertices",
}  # fmt: skip
_COLUMNS = {Kind.EDGE: "src", Kind.PREDECESSORS: "v", Kind.VERTEX: "v"}  # "u" where not here
_ERRORS = {  # of a Reply, by the type of the problem document
    "urn:lpma:hops": "hops",
    "urn:lpma:unsupported": "unsupported",
    "urn:lpma:too-large": "memory",
    "urn:lpma:deadline": "deadline",
}


class HttpClient(Queries):
    """Asks the HTTP service at `url`, "http://host:port" or "https://…". `Client.http` makes it.

    token: one that may read, if the service asks for it. tls: how an https service is to be known;
    None: by the certificates that this machine trusts. timeout: seconds a call waits unless it says
    otherwise.

    The methods are those of `Client`. All answers of one request, and all pages of an answer, are
    of one version. Raises as `Client` does: QueryTimeout, QueryRefused, RecordError; and
    SourceError if the service cannot be reached, or refuses the token."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        timeout: float = TIMEOUT_S,
    ) -> None:
        self.timeout = timeout_of(timeout, TIMEOUT_S)
        self._url = url
        self._connections = _Connections(url, tls)
        self._headers = {"Content-Type": MSGPACK, "Accept": MSGPACK}
        if token is not None:
            if not token or not token.isascii() or not token.isprintable() or " " in token:
                raise QueryError("token: expected printable ASCII without spaces")
            self._headers["Authorization"] = f"Bearer {token}"
        self._numbers = itertools.count()

    def close(self) -> None:
        """Close the connections. Calls that are under way in other threads still end."""
        self._connections.close()

    # Queries ---------------------------------------------------------------------------------

    def ask_many(self, queries: Iterable[Ask], *, timeout: float | None = None) -> list[Reply]:
        """The replies, in the order asked; for a refused query, the reply that says so (`error`).
        Queries of one kind are answered at one version, those of another perhaps at a later one.
        `timeout` is for all together.

        Raises QueryTimeout, with the replies that came, if not all did."""
        asked, seconds = list(queries), timeout_of(timeout, self.timeout)
        until = time.monotonic() + seconds
        groups: dict[tuple[Kind, int | None], list[int]] = defaultdict(list)
        for place, query in enumerate(asked):
            groups[query.kind, query.steps].append(place)
        replies: list[Reply | None] = [None] * len(asked)
        try:
            for places in groups.values():
                for part in (places[i : i + AT_ONCE] for i in range(0, len(places), AT_ONCE)):
                    found = self._together([asked[place] for place in part], until)
                    for place, reply in zip(part, found, strict=True):
                        replies[place] = reply
        except TimeoutError:
            missing = sum(reply is None for reply in replies)
            raise QueryTimeout(
                f"{missing} of {len(asked)} queries had no reply from {self._url} within "
                f"{seconds:g} s: is the stream busy, or are they asking for much?", replies,
            ) from None  # fmt: skip
        return [reply for reply in replies if reply is not None]

    def pages(self, query: Ask, *, timeout: float | None = None) -> Iterator[Reply]:
        """The replies that together hold all rows, each requested when it is needed, with a
        time-out of its own. All are of one version, unless so much time passes between two that the
        service has dropped the rest: then the next rows are asked for anew."""
        cursor: str | None = None
        last: Reply | None = None
        while last is None or cursor is not None:
            fields = _fields([query]) if cursor is None else {"cursor": cursor}
            try:
                until = time.monotonic() + timeout_of(timeout, self.timeout)
                found = self._requested(query.kind, fields, until)
            except TimeoutError:
                raise QueryTimeout(f"no page from {self._url} in time", [None]) from None
            if isinstance(found, _Problem):
                if found.status != 410 or last is None:
                    raise QueryRefused(self._refused(query, found))
                query, last, cursor = query._replace(after=last.cursor), None, None
                continue
            cursor = found.cursor
            reply = self._reply(query, found, found.parts()[0], cursor)
            yield reply
            last = reply if last is None or reply.rows else last

    def _together(self, queries: Sequence[Ask], until: float) -> list[Reply]:
        """The replies to queries of one kind. Raises TimeoutError."""
        pages: list[_Rows] = []
        fields = _fields(queries)
        while True:
            found = self._requested(queries[0].kind, fields, until)
            if isinstance(found, _Problem):
                return [self._refused(query, found) for query in queries]
            pages.append(found)
            if found.cursor is None or len(queries) == 1:
                break
            fields = {"cursor": found.cursor}
        parts = _Rows.joined(pages).parts()
        rest = found.cursor
        return [self._reply(q, found, part, rest) for q, part in zip(queries, parts, strict=True)]

    def _reply(self, query: Ask, found: _Rows, answer: Answer, rest: str | None) -> Reply:
        id = f"{next(self._numbers):x}"
        return Reply(id, query.kind, found.version, found.time, answer, more=rest is not None)

    def _refused(self, query: Ask, problem: _Problem) -> Reply:
        later = problem.retry_after_s
        return Reply(
            f"{next(self._numbers):x}", query.kind, 0, 0, error=problem.error,
            message=problem.detail, retry_after_ms=None if later is None else round(1000 * later),
        )  # fmt: skip

    def _requested(self, kind: Kind, fields: dict[str, Any], until: float) -> _Rows | _Problem:
        """What the service answers; asked again while it says so and there is time. Raises
        TimeoutError, SourceError, RecordError."""
        body: bytes = msgpack.packb(fields)
        pause = PAUSE_S
        while True:
            status, headers, data = self._connections.sent(
                f"/v1/{_PATHS[kind]}", body, self._headers, until
            )
            if status == 200:
                try:
                    return _rows_in(data, kind)
                except RecordError as error:
                    said = f"{self._url} answers what no service of this release does: {error}"
                    raise SourceError(said) from None
            problem = _problem_in(status, headers, data)
            if status == 504:
                raise TimeoutError
            if status == 422 and problem.error == "invalid":
                raise RecordError(problem.detail)
            if problem.error != "retry":
                if status in (401, 403, 404, 405) or status >= 500:
                    raise SourceError(f"{self._url} answers {status}: {problem.detail}")
                return problem
            told = max(pause, problem.retry_after_s or 0.0) * random.uniform(1.0, 1.5)
            if time.monotonic() + told >= until:
                return problem
            time.sleep(told)
            pause = min(2 * pause, MAX_PAUSE_S)


def _fields(queries: Sequence[Ask]) -> dict[str, Any]:
    """The body that asks these queries, of one kind. Raises RecordError."""
    kind, steps = queries[0].kind, queries[0].steps
    name = _COLUMNS.get(kind, "u")
    fields: dict[str, Any] = {"rows": len(queries)}
    fields |= name_fields(name, names_of([query.src for query in queries], name))
    if kind is Kind.EDGE:
        targets: list[Vertex | None] = [query.dst for query in queries]
        fields |= name_fields("dst", names_of(targets, "dst"))
    elif any(query.dst is not None for query in queries):
        raise RecordError("dst: an edge query takes it, and no other")
    if kind is Kind.HOPS:
        if type(steps) is not int or not 1 <= steps <= 255:
            raise RecordError(f"steps: expected 1 … 255, got {steps!r:.40}")
        fields["k"] = steps
    elif steps is not None:
        raise RecordError("steps: a hops query takes it, and no other")
    after = [query.after for query in queries]
    if any(mark is not None for mark in after):
        if kind not in (Kind.SUCCESSORS, Kind.PREDECESSORS, Kind.HOPS):
            raise RecordError("after: a query for neighbours or hops takes it, and no other")
        plain = iter(names_of([mark for mark in after if mark is not None], "after").tolist())
        fields["after"] = [None if mark is None else next(plain) for mark in after]
    return fields


# Connections ---------------------------------------------------------------------------------


class _Connections(Closing):
    """Connections to the service at `url`. Raises QueryError if it is no such URL."""

    def __init__(self, url: str, tls: ssl.SSLContext | None) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        is_tls, host = parts.scheme == "https", parts.hostname
        if parts.scheme not in ("http", "https") or not host or parts.username is not None:
            raise QueryError(f"{url}: expected http://HOST:PORT or https://HOST:PORT")
        if parts.query or parts.fragment:
            raise QueryError(f"{url}: leave out what follows the path")
        if tls is not None and not is_tls:
            raise QueryError(f"{url}: tls is for https://")
        self._url = url
        self._path = parts.path.rstrip("/")
        self._open: Callable[[], http.client.HTTPConnection]
        if is_tls:
            tls = tls or ssl.create_default_context()
            self._open = partial(http.client.HTTPSConnection, host, port, context=tls)
        else:
            self._open = partial(http.client.HTTPConnection, host, port)
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._closed = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def sent(
        self, path: str, body: bytes, headers: dict[str, str], until: float
    ) -> tuple[int, Any, bytes]:
        """(status, headers, body) of the response. A kept connection may have been closed by the
        service meanwhile: then another is used. Raises TimeoutError, SourceError and, once closed,
        QueryError."""
        while True:
            with self._lock:
                if self._closed:
                    raise QueryError("the client was closed")
                is_new = not self._idle
                connection = self._open() if is_new else self._idle.pop()
            try:
                found = _exchange(connection, self._path + path, body, headers, until)
            except BaseException as error:
                connection.close()
                is_broken = isinstance(error, OSError | http.client.HTTPException)
                if not is_broken or isinstance(error, TimeoutError):
                    raise
                if is_new:
                    said = str(error) or type(error).__name__
                    raise SourceError(
                        f"{self._url}: {said}: does the service run there, and is it http or https?"
                    ) from error
                continue
            with self._lock:
                keeps = len(self._idle) < MAX_IDLE and not self._closed
                if keeps and connection.sock is not None:
                    self._idle.append(connection)
                    return found
            connection.close()
            return found


def _exchange(
    connection: http.client.HTTPConnection, path: str, body: bytes, headers: dict[str, str],
    until: float,
) -> tuple[int, Any, bytes]:  # fmt: skip
    connection.timeout = _left(until)
    if connection.sock is not None:
        connection.sock.settimeout(connection.timeout)
    connection.request("POST", path, body, headers)
    socket = connection.sock
    response = connection.getresponse()
    parts = []
    while part := response.read1(1 << 20):
        parts.append(part)
        with suppress(OSError):  # it may be closed already, with the rest of the answer buffered
            socket.settimeout(_left(until))
    return response.status, response.headers, b"".join(parts)


def _left(until: float) -> float | None:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return of_socket(left)


# Answers -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """The answers to the queries of one request, or a page of them."""

    version: int
    time: int
    answer: Answer
    cursor: str | None = None  # of the next page

    def parts(self) -> list[Answer]:
        """The answer to each query."""
        joint = self.answer
        if isinstance(joint, Neighbors):
            return [joint.rows(lo, hi) for lo, hi in pairwise(joint.indptr.tolist())]
        if isinstance(joint, Edges):
            return [joint.rows(i, i + 1) for i in range(len(joint.found))]
        return [joint[i : i + 1] for i in range(len(joint))]

    @staticmethod
    def joined(pages: list[_Rows]) -> _Rows:
        """All pages of an answer as one."""
        found = [page.answer for page in pages if isinstance(page.answer, Neighbors)]
        if len(pages) == 1 or len(found) != len(pages):
            return pages[0]
        counts = sum(np.diff(part.indptr) for part in found)
        starts = np.concatenate([[0], np.cumsum(counts)])
        # Rows of a vertex may lie in several pages, always in their order.
        columns = []
        for name in ("ids", "weights", "times"):
            present = [c for part in found if (c := getattr(part, name)) is not None]
            columns.append(joined(present) if present else None)
        joint = Neighbors(starts, *columns)  # type: ignore[arg-type]
        return _Rows(pages[0].version, pages[0].time, joint)


def _rows_in(data: bytes, kind: Kind) -> _Rows:
    """The answers in a response. Raises RecordError if it has none."""
    fields = unpack(data, MAX_BYTES)
    if not isinstance(fields, dict):
        raise RecordError("an answer is a map")
    version = integer(fields, "version", 0, 2**63 - 1)
    time = integer(fields, "time", -(2**63), 2**63 - 1)
    if kind is Kind.DEGREE:
        return _Rows(version, time, binary(fields, "degree", "<i8", _size(fields, "degree") // 8))
    if kind in (Kind.VERTEX, Kind.EDGE):
        name = "found" if kind is Kind.EDGE else "present"
        count = _size(fields, name)
        found = binary(fields, name, "u1", count).astype(bool)
        if kind is Kind.VERTEX:
            return _Rows(version, time, found)
        return _Rows(version, time, Edges(found, *_edge_columns(fields, count)))
    indptr = binary(fields, "indptr", "<i8", _size(fields, "indptr") // 8)
    rows = integer(fields, "rows", 0, MAX_BYTES)
    if not len(indptr) or indptr[0] != 0 or indptr[-1] != rows or bool((np.diff(indptr) < 0).any()):
        raise RecordError("indptr: it goes from 0 to the number of rows")
    cursor = fields.get("cursor")
    if cursor is not None and not isinstance(cursor, str):
        raise RecordError("cursor: expected text")
    ids = read_names(fields, "ids", rows, rows)
    return _Rows(version, time, Neighbors(indptr, ids, *_edge_columns(fields, rows)), cursor)


def _size(fields: dict[Any, Any], name: str) -> int:
    value = fields.get(name)
    return len(value) if isinstance(value, bytes) else 0


def _edge_columns(fields: dict[Any, Any], rows: int) -> tuple[Array | None, Array | None]:
    weight = binary(fields, "weight", "f", rows) if "weight" in fields else None
    return weight, binary(fields, "times", "<i8", rows) if "times" in fields else None


@dataclass(frozen=True)
class _Problem:
    """A problem document (RFC 9457). error: as `Reply.error` has it, or "invalid"."""

    status: int
    error: str
    detail: str
    retry_after_s: float | None = None


def _problem_in(status: int, headers: Any, data: bytes) -> _Problem:
    """What a response that is no answer says; from anything in between it may be in any form."""
    kind, detail = "", ""
    with suppress(ValueError, RecursionError):
        document = json.loads(data[: 64 << 10])
        if isinstance(document, dict):
            kind, detail = str(document.get("type", "")), str(document.get("detail", ""))
    detail = clipped(detail, 1024) or f"HTTP status {status}"
    if status not in (429, 503):
        return _Problem(status, _ERRORS.get(kind, "invalid"), detail)
    said = headers.get("Retry-After", "")
    later = min(float(said), 3600.0) if said.isascii() and said.isdigit() else 1.0
    return _Problem(status, "retry", detail, later)
