"""What all shards together answer: queries, asked of a snapshot of the whole graph.

Idea: a long answer comes in pages, and the next page may be as of a later epoch. So rows are in an
order that every epoch shares: by id; where vertices have names, by name, whole numbers before
texts. The rows' numbers would not do there: each epoch gives them anew
(`algorithms/sharded/naming.py`).

Invariant:
1. A row that is in the answer at each epoch of its pages is in one of the pages, and in no two.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lpma import Kind, Neighbors
from lpma.arrays import first_not_below

from ..queries.base import Ask, Vertex
from ..timers import now_ms
from ..types import Array, Reply

if TYPE_CHECKING:
    from algorithms.sharded import ShardedSnapshot


def answers(snapshot: ShardedSnapshot, queries: Sequence[Ask]) -> list[Reply]:
    """The replies as of a snapshot."""
    far = [query for query in queries if query.kind is Kind.HOPS]
    near = [query for query in queries if query.kind is not Kind.HOPS]
    each: dict[bool, Iterator[Neighbors]] = {True: iter(()), False: iter(())}
    if far:
        found = snapshot.hops([query.src for query in far], [query.steps or 0 for query in far])
        each[True] = map(_neighbors, found)
    if near:
        rows = [_row(snapshot, query.src) for query in near]
        of_shards = snapshot.run("edges_into", sources=rows)
        each[False] = map(_merged, zip(*of_shards, strict=True))
    return [_reply(snapshot, query, next(each[query.kind is Kind.HOPS])) for query in queries]


def _reply(snapshot: ShardedSnapshot, query: Ask, found: Neighbors) -> Reply:
    there = query.kind is Kind.VERTEX
    answer = np.array([len(found.ids) > 0]) if there else _after(snapshot, query, found)
    version = sum(snapshot.versions)
    return Reply("", query.kind, version, snapshot.time, answer, epoch=snapshot.epoch)


def refused(query: Ask, why: str) -> Reply:
    """The reply to a query that no snapshot could be taken for."""
    return Reply("", query.kind, 0, now_ms(), error="memory", message=why)


def _row(snapshot: ShardedSnapshot, vertex: Any) -> int:
    """The row of a vertex; −1 if there is none."""
    if snapshot.names is None:
        return int(vertex)
    row = snapshot.names.find(vertex)
    return -1 if row is None else row


def _neighbors(ids: Array, weight: Array | None = None, at: Array | None = None) -> Neighbors:
    return Neighbors(np.array([0, len(ids)], np.int64), ids, weight, at)


def _merged(parts: Sequence[tuple[Any, Any, Any]]) -> Neighbors:
    """(rows, weights, times) of all shards as one, by row."""
    rows = np.concatenate([part[0] for part in parts])
    order = np.argsort(rows, kind="stable")
    weight, at = (
        None if any(part[i] is None for part in parts)
        else np.concatenate([part[i] for part in parts])[order]
        for i in (1, 2)
    )  # fmt: skip
    return _neighbors(rows[order], weight, at)


def _after(snapshot: ShardedSnapshot, query: Ask, answer: Neighbors) -> Neighbors:
    """The rows behind `query.after`, under the names that they go by (invariant 1)."""
    if snapshot.names is not None:
        return _after_name(replace(answer, ids=snapshot.names.of(answer.ids)), query.after)
    if query.after is None:
        return answer
    assert not isinstance(query.after, str), "its vertices go by ids"
    first = first_not_below(answer.ids, query.after + 1)
    return answer.rows(first, len(answer.ids))


def _after_name(answer: Neighbors, after: Vertex | None) -> Neighbors:
    """The neighbours by name, from the first behind `after` on. That one need be no vertex now."""
    keys = [_place(name) for name in answer.ids.tolist()]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    if after is not None:
        order = order[bisect_right(order, _place(after), key=keys.__getitem__) :]
    weight, time = (None if one is None else one[order] for one in (answer.weights, answer.times))
    return _neighbors(answer.ids[order], weight, time)


def _place(name: Vertex) -> tuple[bool, Vertex]:
    return isinstance(name, str), name
