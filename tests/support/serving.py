"""A pipeline that answers queries in a thread of its own, and what is asked of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import ingest
import lpma
from ingest import Ask, Pipeline, Reply, SqliteLog
from ingest.types import QUERIES
from lpma import Kind
from tests.support.stream_model import SavedModel
from tests.support.topics import replies

NEIGHBOURS = (Kind.SUCCESSORS, Kind.PREDECESSORS)


@contextmanager
def running(pipeline: Pipeline) -> Iterator[Pipeline]:
    """The pipeline, in a thread of its own within the block."""
    failed: list[BaseException] = []

    def work() -> None:
        try:
            pipeline.run()
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield pipeline
    finally:
        pipeline.stop()
        thread.join()
        pipeline.close(checkpoint=False)
    assert not failed


def serving(log: SqliteLog, graph: Any, **settings: Any) -> AbstractContextManager[Pipeline]:
    return running(Pipeline(SqliteLog(log.path), graph, **{"batch_interval": 0.02, **settings}))


def answered(model: SavedModel, query: Ask) -> Any:
    """What the model says, after the row `query.after`."""
    ask = {
        Kind.EDGE: lambda: model.edges(query.src, query.dst),
        Kind.SUCCESSORS: lambda: model.successors(query.src),
        Kind.PREDECESSORS: lambda: model.predecessors(query.src),
        Kind.HOPS: lambda: model.hops(query.src, query.steps or 0),
        Kind.DEGREE: lambda: model.degree([query.src]),
        Kind.VERTEX: lambda: model.has_vertices(query.src),
    }
    return ask[query.kind]()


def ids_of(*replies: Reply) -> list[int]:
    """The rows of replies, one after the other."""
    ids: list[int] = []
    for reply in replies:
        assert isinstance(reply.answer, lpma.Neighbors)
        ids += reply.answer.ids.tolist()
    return ids


def every_query(vertices: int) -> list[Ask]:
    """Every query about vertices 0 to vertices - 1, of each kind."""
    ids = range(vertices)
    pairs = [(u, v) for u in ids for v in ids]
    return [
        *(Ask(Kind.EDGE, u, v) for u, v in pairs),
        *(Ask(kind, u) for kind in (*NEIGHBOURS, Kind.DEGREE, Kind.VERTEX) for u in ids),
        *(Ask(Kind.HOPS, u, steps=k) for u in ids for k in (1, 2)),
    ]


def flood(log: SqliteLog, count: int) -> None:
    """Ask `count` queries at once: f0, f1, …."""
    encode = ingest.encode_query
    log.produce_many(QUERIES, [encode(f"f{i}", Kind.DEGREE, 1) for i in range(count)])


def sent(log: SqliteLog) -> list[tuple[str, str | None]]:
    """The ids and errors of all replies in the log, in their order."""
    return [(reply.id, reply.error) for reply in replies(log)]
