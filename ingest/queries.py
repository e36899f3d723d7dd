"""Live queries: which are asked, and what goes back.

A query is an operation of the stream: it has a place in it, is answered in its batch as of that
place, and is answered again when the stream is replayed. What it may cost is bounded here: its
hops, the rows of its reply, its deadline. A query over a bound gets a reply that says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from lpma.answers import Answers as StoreAnswers
from lpma.batch import Kind, Neighbors

from .batcher import Asked, Refusal
from .records import Query
from .replies import Reply


@dataclass(frozen=True)
class QueryLimits:
    max_hops: int = 2
    max_rows: int = 1_000_000  # of one reply


class Directions(Protocol):
    """What must be known of a graph to know what can be asked."""

    @property
    def directed(self) -> bool: ...
    @property
    def has_predecessors(self) -> bool: ...


class VertexNames(Protocol):
    def names(self, ids: Any, /) -> Any: ...


class Answers(Protocol):
    def __getitem__(self, query: int, /) -> Any: ...


def refusal(query: Query, stamp: int, graph: Directions, limits: QueryLimits) -> Refusal | None:
    """Why `query`, buffered at `stamp` (ms since 1970), is not asked; None where it is.

    The deadline is held against the stamp, so that a replay decides as the first run did."""
    if query.deadline is not None and stamp > query.deadline:
        return Refusal(
            "deadline", f"read {stamp - query.deadline} ms after its deadline: ask again"
        )
    if query.kind is Kind.HOPS and int(query.dst) > limits.max_hops:
        return Refusal("hops", f"{query.dst} steps: at most {limits.max_hops} here")
    if query.kind is Kind.PREDECESSORS and graph.directed and not graph.has_predecessors:
        return Refusal("unsupported", "this graph keeps no predecessors: predecessors=True does")
    return None


def replies(
    queries: Sequence[Asked],
    answers: Answers,
    version: int,
    limits: QueryLimits,
    vertices: VertexNames | None = None,
) -> Iterator[tuple[str | None, Reply]]:
    """(reply topic, reply) of each query; `answers` are those of the ones not refused, in order,
    from a batch that made `version`. `vertices` turns ids into names, where ids are mapped."""
    if isinstance(answers, StoreAnswers):
        answers = answers.on_host()  # they are read one by one: copied once, not each
    number = 0
    for asked in queries:
        query = asked.query
        reply = Reply(query.id, query.kind, version, asked.stamp)
        refused = asked.refusal
        answer = None
        if refused is None:
            answer = answers[number]
            number += 1
            if isinstance(answer, Neighbors) and len(answer.ids) > limits.max_rows:
                message = f"{len(answer.ids)} rows: at most {limits.max_rows} a reply"
                refused = Refusal("rows", message)
            elif isinstance(answer, Neighbors) and vertices is not None:
                answer = replace(answer, ids=vertices.names(answer.ids))
        if refused is not None:
            reply = Reply(
                query.id, query.kind, version, asked.stamp, None, refused.error, refused.message
            )
        else:
            reply = Reply(query.id, query.kind, version, asked.stamp, answer)
        yield query.reply, reply
