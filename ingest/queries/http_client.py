"""Queries over HTTP: a client of the service (`ingest/service/`), with the methods of `Client`.

Idea: queries of one kind go in one request, as msgpack columns, and their answers come back as
columns of one version (`http_replies.py`). `http_connections.py` sends the requests.

If the service says *retry later* (429 or 503), the client asks again after what `Retry-After` says
and growing pauses, while there is time.
"""

from __future__ import annotations

import itertools
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgpack

from lpma.batch.columns import Kind

from ..errors import QueryError, QueryRefused, QueryTimeout, RecordError, SourceError
from ..formats.names import name_fields, names_of
from ..types import Reply
from .base import MAX_PAUSE_S, TIMEOUT_S, Ask, Queries, Vertex, timeout_of
from .http_connections import Connections
from .http_replies import Problem, Rows, problem_in, rows_in

if TYPE_CHECKING:
    import ssl

AT_ONCE = 10_000  # queries of one request
PAUSE_S = 0.1  # before a request is sent again, unless the service asks for more
MSGPACK = "application/msgpack"

_PATHS = {
    Kind.EDGE: "edges", Kind.SUCCESSORS: "successors", Kind.PREDECESSORS: "predecessors",
    Kind.HOPS: "hops", Kind.DEGREE: "degree", Kind.VERTEX: "vertices",
}  # fmt: skip
_COLUMNS = {Kind.EDGE: "src", Kind.PREDECESSORS: "v", Kind.VERTEX: "v"}  # "u" where not here


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
        self._connections = Connections(url, tls)
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
        asked, until = list(queries), self._until(timeout)
        groups: dict[tuple[Kind, int | None], list[int]] = defaultdict(list)
        for place, query in enumerate(asked):
            groups[query.kind, query.steps].append(place)
        replies: list[Reply | None] = [None] * len(asked)
        try:
            for places in groups.values():
                for start in range(0, len(places), AT_ONCE):
                    part = places[start : start + AT_ONCE]
                    found = self._together([asked[place] for place in part], until)
                    for place, reply in zip(part, found, strict=True):
                        replies[place] = reply
        except TimeoutError:
            waited = self.timeout if timeout is None else timeout
            missing = sum(reply is None for reply in replies)
            raise QueryTimeout(
                f"{missing} of {len(asked)} queries had no reply from {self._url} within "
                f"{waited:g} s: is the stream busy, or are they asking for much?", replies,
            ) from None  # fmt: skip
        return [reply for reply in replies if reply is not None]

    def pages(self, query: Ask, *, timeout: float | None = None) -> Iterator[Reply]:
        """The replies that together hold all rows, each requested when it is needed, with a
        time-out of its own. All are of one version, unless so much time passes between two that the
        service has dropped the rest: then the next rows are asked for anew."""
        while True:
            reply, cursor = self._page(query, None, timeout)
            yield reply
            last = reply
            while cursor is not None:
                try:
                    reply, cursor = self._page(query, cursor, timeout)
                except _Gone:
                    break
                yield reply
                last = reply if len(reply.answer.ids) else last  # type: ignore[union-attr]
            else:
                return
            query = query._replace(after=last.cursor)

    def _page(
        self, query: Ask, cursor: str | None, timeout: float | None
    ) -> tuple[Reply, str | None]:
        try:
            fields = {"cursor": cursor} if cursor is not None else _fields([query])
            found = self._requested(query.kind, fields, self._until(timeout))
        except TimeoutError:
            raise QueryTimeout(f"no page from {self._url} in time", [None]) from None
        if isinstance(found, Problem):
            if found.status == 410:
                raise _Gone
            raise QueryRefused(self._refused(query, found))
        return self._reply(query, found, found.parts()[0], found.cursor), found.cursor

    def _together(self, queries: Sequence[Ask], until: float) -> list[Reply]:
        """The replies to queries of one kind. Raises TimeoutError."""
        kind = queries[0].kind
        found = self._requested(kind, _fields(queries), until)
        if isinstance(found, Problem):
            return [self._refused(query, found) for query in queries]
        rest = found.cursor
        if len(queries) == 1:
            return [self._reply(queries[0], found, found.parts()[0], rest)]
        pages = [found]
        while rest is not None:
            more = self._requested(kind, {"cursor": rest}, until)
            if isinstance(more, Problem):
                return [self._refused(query, more) for query in queries]
            pages.append(more)
            rest = more.cursor
        parts = Rows.joined(pages).parts()
        return [
            self._reply(query, found, part, None)
            for query, part in zip(queries, parts, strict=True)
        ]

    def _reply(self, query: Ask, found: Rows, answer: Any, cursor: str | None) -> Reply:
        id = f"{next(self._numbers):x}"
        more = cursor is not None
        return Reply(id, query.kind, found.version, found.time, answer, more=more)

    def _refused(self, query: Ask, problem: Problem) -> Reply:
        id, later = f"{next(self._numbers):x}", None
        if problem.retry_after_s is not None:
            later = round(1000 * problem.retry_after_s)
        return Reply(id, query.kind, 0, 0, error=problem.error, message=problem.detail,
                     retry_after_ms=later)  # fmt: skip

    def _until(self, timeout: float | None) -> float:
        return time.monotonic() + timeout_of(timeout, self.timeout)

    # Requests --------------------------------------------------------------------------------

    def _requested(self, kind: Kind, fields: dict[str, Any], until: float) -> Rows | Problem:
        """What the service answers; asked again while it says so and there is time. Raises
        TimeoutError, SourceError, RecordError."""
        body: bytes = msgpack.packb(fields)
        pause = PAUSE_S
        while True:
            status, headers, data = self._connections.sent(
                f"/v1/{_PATHS[kind]}", body, self._headers, until
            )
            if status == 200:
                return rows_in(data, kind, self._url)
            problem = problem_in(status, headers, data)
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


class _Gone(Exception):
    """The service no longer keeps the rest of an answer."""


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
