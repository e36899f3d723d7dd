"""Live queries: which are asked, and what goes back.

A query is an operation of the stream: it has a place in it, is answered in its batch as of that
place, and is answered again when the stream is replayed. What it may cost is bounded here: its
hops, the rows of its reply, its deadline, how many wait with it. A query over a bound gets a reply
that says so; one with more rows than a reply holds gets the first, and asks for the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from lpma import Kind, Neighbors
from lpma.answers import Answers as StoreAnswers

from ..batcher import Asked, Refusal
from ..formats.records import Query
from ..formats.replies import Reply, neighbor_rows

RETRY_AFTER_MS = 200


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


def refusal(
    query: Query, stamp: int, graph: Directions, limits: QueryLimits, shed: bool
) -> Refusal | None:
    """Why `query`, buffered at `stamp` (ms since 1970), is not asked; None where it is. `shed`:
    because too many wait.

    The deadline is held against the stamp, so that a replay decides as the first run did."""
    if query.deadline is not None and stamp > query.deadline:
        return Refusal(
            "deadline", f"read {stamp - query.deadline} ms after its deadline: ask again"
        )
    if query.kind is Kind.HOPS and int(query.dst) > limits.max_hops:
        return Refusal("hops", f"{query.dst} steps: at most {limits.max_hops} here")
    if query.kind is Kind.PREDECESSORS and graph.directed and not graph.has_predecessors:
        return Refusal("unsupported", "this graph keeps no predecessors: predecessors=True does")
    if shed:
        return Refusal("retry", f"too many wait: ask in {RETRY_AFTER_MS} ms", RETRY_AFTER_MS)
    return None


def unanswered(queries: Sequence[Asked]) -> list[Asked]:
    """The same queries, refused because their answers found no memory."""
    full = Refusal("memory", "the answers of its batch found no memory: ask for less at once")
    return [replace(asked, refusal=asked.refusal or full) for asked in queries]


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
        query, refused = asked.query, asked.refusal
        reply = Reply(query.id, query.kind, version, asked.stamp)
        if refused is not None:
            yield (
                query.reply,
                replace(
                    reply,
                    error=refused.error,
                    message=refused.message,
                    retry_after_ms=refused.retry_after_ms,
                ),
            )
            continue
        answer = answers[number]
        number += 1
        if query.after is not None and isinstance(answer, Neighbors):
            # The ids of one query rise.
            first = int(np.searchsorted(answer.ids, query.after, "right"))
            answer = neighbor_rows(answer, first, len(answer.ids))
        reply = replace(reply, answer=answer).first_rows(limits.max_rows)
        if vertices is not None and isinstance(reply.answer, Neighbors):
            named = replace(reply.answer, ids=vertices.names(reply.answer.ids))
            reply = replace(reply, answer=named)
        yield query.reply, reply
