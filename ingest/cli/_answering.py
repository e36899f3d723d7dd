"""What answers `lpma query`: an opened store or a running pipeline, through the same methods.

They take and return the names of vertices. A pipeline is queried as if its vertices go by names: if
they do not, integers are encoded the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from lpma import Edges, Kind, Neighbors
from lpma.arrays import to_host
from lpma.batch.columns import MAX_VERTEX

from ..formats.names import joined as joined_names
from ..sources.kafka.config import read_settings
from ..state.vertex_names import VertexNames
from ..types import Name
from ._as_of import NOW, AsOfOptions, open_as_of
from ._targets import HTTP, KAFKA, is_log

if TYPE_CHECKING:
    import lpma

    from ..queries.base import Ask, Queries
    from ..types import Reply

Target = Annotated[
    str,
    typer.Argument(
        metavar="STORE",
        help="A saved store, a checkpoint directory, or the embedded log or kafka://HOST:PORT of a "
        "running pipeline, or http://HOST:PORT of a service.",
    ),
]


@contextmanager
def answering(
    target: str, device: str, config: Path | None, query_topic: str, reply_topic: str,
    token_file: Path | None = None, past: AsOfOptions = NOW,
) -> Iterator[Stored | Live]:  # fmt: skip
    """What answers for `target`, within the block. config: a file of settings for Kafka.
    token_file: it holds the token that a service asks for. past: which past view of a checkpoint
    directory answers."""
    if token_file is not None and not target.startswith(HTTP):
        raise typer.BadParameter("only http://HOST:PORT has one", param_hint="--token-file")
    if config is not None and not target.startswith(KAFKA):
        raise typer.BadParameter("kafka://HOST:PORT needs it, nothing else", param_hint="STORE")
    options: Any = {"query_topic": query_topic, "reply_topic": reply_topic, "names": True}
    if not target.startswith((*HTTP, KAFKA)) and not is_log(Path(target)):
        yield Stored(open_as_of(Path(target), device, past).graph)
        return
    from ..queries.client import Client

    past.check_unused(target)
    with ExitStack() as opened:
        if target.startswith(HTTP):
            token = None if token_file is None else token_file.read_text().strip()
            yield Live(opened.enter_context(Client.http(target, token)))
        elif target.startswith(KAFKA):
            settings = None if config is None else read_settings(config)
            brokers = target.removeprefix(KAFKA)
            client = Client.kafka(brokers, settings=settings, **options)
            yield Live(opened.enter_context(client))
        else:
            from ..sources import SqliteLog

            log = opened.enter_context(SqliteLog(target))
            yield Live(opened.enter_context(Client(log, **options)))


class Stored:
    """Queries answered by a graph."""

    def __init__(self, graph: lpma.Graph) -> None:
        self._graph = graph
        self._names = VertexNames(graph.names)
        self.version, self.time = graph.version, graph.time

    def edge(self, src: Name, dst: Name) -> Edges:
        """The edge."""
        return self._graph.edges(self._given([src]), self._given([dst]))

    def values(self, kind: Kind, vertices: Sequence[Name]) -> npt.NDArray[Any]:
        """The degree of each vertex, or whether it is there."""
        ask = self._graph.degree if kind is Kind.DEGREE else self._graph.has_vertices
        return ask(self._given(vertices))

    def neighbors(self, kind: Kind, vertices: Sequence[Name], steps: int = 1) -> Neighbors:
        """Each vertex's successors, predecessors, or the vertices within so many steps."""
        given = self._given(vertices)
        if kind is Kind.HOPS:
            found = self._graph.hops(given, steps)
        else:
            found = getattr(self._graph, kind.name.lower())(given)
        return replace(found, ids=to_host(found.ids))

    def _given(self, vertices: Sequence[Name]) -> list[Name]:
        if self._graph.names is not None:
            return list(vertices)
        return [self._names.id(name) for name in vertices]


class Live:
    """The same, answered by a running pipeline. `version` and `time` are those of the last answer,
    since each answer has its own place in the stream."""

    def __init__(self, client: Queries) -> None:
        self._client = client
        self.version = 0
        self.time = 0

    def edge(self, src: Name, dst: Name) -> Edges:
        from ..queries.base import Ask

        (reply,) = self._asked([Ask(Kind.EDGE, src, dst)])
        assert isinstance(reply.answer, Edges)
        return reply.answer

    def values(self, kind: Kind, vertices: Sequence[Name]) -> npt.NDArray[Any]:
        from ..queries.base import Ask

        return np.concatenate([r.answer for r in self._asked([Ask(kind, v) for v in vertices])])

    def _asked(self, queries: list[Ask]) -> list[Reply]:
        from ..errors import QueryRefused

        with _saying_who_knows_names(queries):
            replies = self._client.ask_many(queries)
        for reply in replies:
            if reply.error is not None:
                raise QueryRefused(reply)
        self.version, self.time = replies[-1].version, replies[-1].time
        return replies

    def neighbors(self, kind: Kind, vertices: Sequence[Name], steps: int = 1) -> Neighbors:
        """All rows of all vertices, however many replies they come in."""
        from ..queries.base import Ask

        parts: list[Neighbors] = []
        counts = []
        for vertex in vertices:
            rows = 0
            ask = Ask(kind, vertex, steps=steps if kind is Kind.HOPS else None)
            with _saying_who_knows_names([ask]):
                for reply in self._client.pages(ask):
                    assert isinstance(reply.answer, Neighbors)
                    parts.append(reply.answer)
                    rows += len(reply.answer.ids)
                    self.version, self.time = reply.version, reply.time
            counts.append(rows)
        columns = [[getattr(part, name) for part in parts] for name in ("ids", "weights", "times")]
        together = [None if some[0] is None else joined_names(some) for some in columns]
        return Neighbors(np.cumsum([0, *counts]), *together)  # type: ignore[arg-type]


@contextmanager
def _saying_who_knows_names(queries: Sequence[Ask]) -> Iterator[None]:
    """If a query that names a vertex times out, say that only a pipeline with names
    reads it."""
    from ..errors import QueryTimeout

    try:
        yield
    except QueryTimeout as error:
        ends = [end for ask in queries for end in (ask.src, ask.dst) if end is not None]
        if all(isinstance(end, int) and 0 <= end <= MAX_VERTEX for end in ends):
            raise
        hint = "does it read names (--names)?"
        raise QueryTimeout(f"{error} And {hint}", error.replies) from None
