"""What `lpma query` asks: a store that is opened, or a pipeline that runs, by the same methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from lpma.batch import Edges, Kind, Neighbors

from ..sources.kafka_config import read_settings
from .targets import KAFKA, TargetError, is_log, open_store

if TYPE_CHECKING:
    import lpma

    from ..client import Ask, Client
    from ..replies import Reply

Target = Annotated[
    str,
    typer.Argument(
        metavar="STORE",
        help="A saved store or a checkpoint directory; of a pipeline that runs, its embedded log "
        "or kafka://HOST:PORT.",
    ),
]


@contextmanager
def answering(
    target: str, device: str, config: Path | None, query_topic: str, reply_topic: str
) -> Iterator[lpma.Graph | Live]:
    """What answers for `target`, within the block. config: a file of settings for Kafka."""
    if config is not None and not target.startswith(KAFKA):
        raise typer.BadParameter("kafka://HOST:PORT needs it, nothing else", param_hint="STORE")
    topics = {"query_topic": query_topic, "reply_topic": reply_topic}
    with ExitStack() as opened:
        if target.startswith(KAFKA):
            from ..client import Client

            settings = None if config is None else read_settings(config)
            brokers = target.removeprefix(KAFKA)
            client = Client.kafka(brokers, settings=settings, **topics)  # type: ignore[arg-type]
            yield Live(opened.enter_context(client))
        elif is_log(Path(target)):
            from ..client import Client
            from ..sources import SqliteLog

            log = opened.enter_context(SqliteLog(target))
            yield Live(opened.enter_context(Client(log, **topics)))  # type: ignore[arg-type]
        else:
            store = open_store(Path(target), device)
            if store.mapped:
                raise TargetError(
                    f"{target}: its vertices go by the names in the stream, not by ids: ask the "
                    "running pipeline, or look them up in `Pipeline.resume(…).vertices`"
                )
            yield store.graph


class Live:
    """The queries of `lpma.Graph`, answered by a running pipeline. `version` and `time` are those
    of the last answer: each is as of its own place in the stream."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.version = 0
        self.time = 0

    def edges(self, src: Sequence[int], dst: Sequence[int]) -> Edges:
        from ..client import Ask

        (reply,) = self._asked([Ask(Kind.EDGE, src[0], dst[0])])
        assert isinstance(reply.answer, Edges)
        return reply.answer

    def successors(self, u: Sequence[int]) -> Neighbors:
        return self._neighbors(u, lambda ask, v: ask(Kind.SUCCESSORS, v))

    def predecessors(self, u: Sequence[int]) -> Neighbors:
        return self._neighbors(u, lambda ask, v: ask(Kind.PREDECESSORS, v))

    def hops(self, u: Sequence[int], k: int) -> Neighbors:
        return self._neighbors(u, lambda ask, v: ask(Kind.HOPS, v, steps=k))

    def degree(self, u: Sequence[int]) -> npt.NDArray[np.int64]:
        return self._values(Kind.DEGREE, u)

    def has_vertices(self, u: Sequence[int]) -> npt.NDArray[np.bool_]:
        return self._values(Kind.VERTEX, u)

    def _asked(self, queries: list[Ask]) -> list[Reply]:
        from ..errors import QueryRefused

        replies = self._client.ask_many(queries)
        for reply in replies:
            if reply.error is not None:
                raise QueryRefused(reply)
        self.version, self.time = replies[-1].version, replies[-1].time
        return replies

    def _values(self, kind: Kind, vertices: Sequence[int]) -> npt.NDArray[Any]:
        from ..client import Ask

        return np.concatenate([r.answer for r in self._asked([Ask(kind, v) for v in vertices])])

    def _neighbors(self, vertices: Sequence[int], query: Callable[..., Ask]) -> Neighbors:
        """All rows of all vertices, however many replies they come in."""
        from ..client import Ask

        parts: list[Neighbors] = []
        counts = []
        for vertex in vertices:
            rows = 0
            for reply in self._client.pages(query(Ask, vertex)):
                assert isinstance(reply.answer, Neighbors)
                parts.append(reply.answer)
                rows += len(reply.answer.ids)
                self.version, self.time = reply.version, reply.time
            counts.append(rows)
        columns = [[getattr(part, name) for part in parts] for name in ("ids", "weight", "time")]
        joined = [None if some[0] is None else np.concatenate(some) for some in columns]
        return Neighbors(np.cumsum([0, *counts]), *joined)  # type: ignore[arg-type]
