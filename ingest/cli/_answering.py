"""What answers `lpma query`: an opened store or a running pipeline, through the same methods.

They take and return the names of vertices. A pipeline is queried as if its vertices go by names: if
they do not, integers are encoded the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpma import Edges, Kind
from lpma.arrays import to_host
from lpma.batch.columns import MAX_VERTEX

from ..errors import QueryRefused, QueryTimeout
from ..queries.base import Ask, Queries
from ..sources.kafka.config import read_settings
from ..state.vertex_names import VertexNames
from ..types import Name
from ._as_of import NOW, AsOfOptions, open_as_of
from ._targets import HTTP, KAFKA, is_log

if TYPE_CHECKING:
    import lpma

Columns = dict[str, list[Any]]

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
            yield Live(opened.enter_context(client), query_topic)
        else:
            from ..sources import SqliteLog

            log = opened.enter_context(SqliteLog(target))
            yield Live(opened.enter_context(Client(log, **options)), query_topic)


class Stored:
    """Queries answered by a graph."""

    def __init__(self, graph: lpma.Graph) -> None:
        self._graph = graph
        self._names = VertexNames(graph.names)
        self.version, self.time = graph.version, graph.time

    def edge(self, src: Name, dst: Name) -> Edges:
        """The edge."""
        return self._graph.edges(self._given([src]), self._given([dst]))

    def values(self, kind: Kind, vertices: Sequence[Name]) -> list[Any]:
        """The degree of each vertex, or whether it is there."""
        ask = self._graph.degree if kind is Kind.DEGREE else self._graph.has_vertices
        found: list[Any] = ask(self._given(vertices)).tolist()
        return found

    def neighbors(self, kind: Kind, vertices: Sequence[Name], steps: int) -> Iterator[Columns]:
        """Of each vertex its successors, predecessors, or the vertices within so many steps."""
        given, more = self._given(vertices), [steps] if kind is Kind.HOPS else []
        found = getattr(self._graph, kind.name.lower())(given, *more)
        columns = _columns(found)
        for first, last in pairwise(found.indptr.tolist()):
            yield {name: column[first:last] for name, column in columns.items()}

    def _given(self, vertices: Sequence[Name]) -> list[Name]:
        if self._graph.names is not None:
            return list(vertices)
        return [self._names.id(name) for name in vertices]


class Live:
    """The same, answered by a running pipeline. `version` and `time` are those of the last answer,
    since each answer has its own place in the stream."""

    def __init__(self, client: Queries, query_topic: str | None = None) -> None:
        """query_topic: where queries are written; None: nowhere, but asked over HTTP."""
        self._client = client
        self._query_topic = query_topic
        self.version = 0
        self.time = 0

    def edge(self, src: Name, dst: Name) -> Edges:
        (answer,) = self._asked([Ask(Kind.EDGE, src, dst)])
        assert isinstance(answer, Edges)
        return answer

    def values(self, kind: Kind, vertices: Sequence[Name]) -> list[Any]:
        return [answer[0].item() for answer in self._asked([Ask(kind, v) for v in vertices])]

    def neighbors(self, kind: Kind, vertices: Sequence[Name], steps: int) -> Iterator[Columns]:
        """All rows of all vertices, however many replies they come in."""
        for vertex in vertices:
            ask = Ask(kind, vertex, steps=steps if kind is Kind.HOPS else None)
            found: Columns = {}
            with self._explaining([ask]):
                for reply in self._client.pages(ask):
                    for name, column in _columns(reply.answer).items():
                        found.setdefault(name, []).extend(column)
                    self.version, self.time = reply.version, reply.time
            yield found

    def _asked(self, queries: list[Ask]) -> list[Any]:
        with self._explaining(queries):
            replies = self._client.ask_many(queries)
        for reply in replies:
            if reply.error is not None:
                raise QueryRefused(reply)
        self.version, self.time = replies[-1].version, replies[-1].time
        return [reply.answer for reply in replies]

    @contextmanager
    def _explaining(self, queries: Sequence[Ask]) -> Iterator[None]:
        """If a query times out, say what reads it: a pipeline of its topic, and, if it names a
        vertex, only one with names."""
        try:
            yield
        except QueryTimeout as error:
            if self._query_topic is None:
                raise
            hint = (
                "no stream says in its topics what it reads, so only waiting tells: `lpma ingest` "
                f"reads queries of the topic {self._query_topic} where it is given no --topic, or "
                f"--topic {self._query_topic} as well"
            )
            ends = [end for ask in queries for end in (ask.src, ask.dst) if end is not None]
            if not all(isinstance(end, int) and 0 <= end <= MAX_VERTEX for end in ends):
                hint += ", and names where it is given --names"
            raise QueryTimeout(f"{error} ({hint})", error.replies) from None


def _columns(answer: Any) -> Columns:
    """Neighbours, with their weights and times if the graph has them. Weights stay NumPy's, whose
    text is the shortest of their type."""
    found: Columns = {"ids": to_host(answer.ids).tolist()}
    if answer.weights is not None:
        found["weight"] = list(to_host(answer.weights))
    if answer.times is not None:
        found["time"] = to_host(answer.times).tolist()
    return found
