"""What every query client has: a method for each kind of query, in terms of `ask_many`.

`client.py` asks through a log, `http_client.py` over HTTP.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lpma.batch.columns import Kind

from ..arguments import seconds_of
from ..errors import QueryError, QueryRefused
from ..types import Closing, Name, Reply

TIMEOUT_S = 10.0
MAX_PAUSE_S = 5.0  # before a query is asked again, unless its reply asks for more

Vertex = Name | np.integer[Any]  # as the stream names it


class Ask(NamedTuple):
    """One query of many: `dst` is for Kind.EDGE, `steps` for Kind.HOPS; `after` leaves out what an
    earlier reply had, up to its `cursor`.

    >>> ingest.Ask(lpma.Kind.HOPS, 7, steps=2).steps
    2
    """

    kind: Kind
    src: Vertex
    dst: Vertex | None = None
    steps: int | None = None
    after: Vertex | None = None


def timeout_of(given: float | None, usual: float) -> float:
    """The seconds that a call waits: what it was given, or else the usual. Raises QueryError."""
    timeout = usual if given is None else given
    seconds = seconds_of(timeout, "timeout", QueryError)
    if not seconds:
        raise QueryError(f"timeout is {timeout}: it must be positive")
    return seconds


class Queries(Closing):
    """The queries of a client."""

    def edge(self, u: Vertex, v: Vertex, *, timeout: float | None = None) -> Reply:
        """Edges: whether (u, v) is there, its weight and time."""
        return self.ask(Ask(Kind.EDGE, u, v), timeout=timeout)

    def successors(
        self, u: Vertex, *, after: Vertex | None = None, timeout: float | None = None
    ) -> Reply:
        """Neighbors: the first rows, by id; if `more` is true, `pages` has them all."""
        return self.ask(Ask(Kind.SUCCESSORS, u, after=after), timeout=timeout)

    def predecessors(
        self, v: Vertex, *, after: Vertex | None = None, timeout: float | None = None
    ) -> Reply:
        """As `successors`. Refused if the graph keeps no predecessors."""
        return self.ask(Ask(Kind.PREDECESSORS, v, after=after), timeout=timeout)

    def hops(
        self, u: Vertex, k: int, *, after: Vertex | None = None, timeout: float | None = None
    ) -> Reply:
        """Neighbors, ids alone: distinct vertices within 1 … k steps. Refused above the pipeline's
        `max_hops`."""
        return self.ask(Ask(Kind.HOPS, u, steps=k, after=after), timeout=timeout)

    def degree(self, u: Vertex, *, timeout: float | None = None) -> Reply:
        """int64[1]: how many successors u has."""
        return self.ask(Ask(Kind.DEGREE, u), timeout=timeout)

    def vertex(self, v: Vertex, *, timeout: float | None = None) -> Reply:
        """bool[1]: whether v is there, by itself or as an end of an edge."""
        return self.ask(Ask(Kind.VERTEX, v), timeout=timeout)

    def ask(self, query: Ask, *, timeout: float | None = None) -> Reply:
        """The reply to one query."""
        (reply,) = self.ask_many([query], timeout=timeout)
        if reply.error is not None:
            raise QueryRefused(reply)
        return reply

    def pages(self, query: Ask, *, timeout: float | None = None) -> Iterator[Reply]:
        """The replies that together hold all rows, each requested when it is needed, with a
        time-out of its own. Each is right as of its version; between two the graph may change."""
        more = True
        while more:
            reply = self.ask(query, timeout=timeout)
            yield reply
            query = query._replace(after=reply.cursor)
            more = reply.more

    @abstractmethod
    def ask_many(self, queries: Iterable[Ask], *, timeout: float | None = None) -> list[Reply]:
        """The replies, in the order asked; for a refused query, the reply that says so."""
