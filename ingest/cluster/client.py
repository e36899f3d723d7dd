"""Asking a cluster: one shard at its exact place in its partition, all of them as of an epoch.

What the owner of a vertex knows by itself, its rows and their number, is asked through the log, as
of any pipeline. What lies at several shards is asked of a snapshot of the whole graph:

    edge, successors, degree      the owner
    predecessors                  the owner, if edges are kept turned round too, or have no
                                  direction; else all shards, each of which looks through its rows
    vertex                        the owner; if it knows none, and edges into the vertex may lie
                                  elsewhere, all shards
    hops                          all shards

So the first say what was written when they were asked; the others may be as old as `max_age_s`.

A long answer comes in pages, and the next page may be as of a later epoch. So rows are in an order
that every epoch shares: by id; where vertices have names, by name, whole numbers before texts. The
rows' numbers would not do there: each epoch gives them anew
(`algorithms/sharded/programs/naming.py`).

Invariant:
1. A row that is in the answer at each epoch of its pages is in one of the pages, and in no two.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from lpma import Kind, Neighbors
from lpma.arrays import first_not_below

from ..arguments import seconds_of
from ..errors import ClusterError, QueryError, QueryTimeout, SnapshotRefused
from ..formats.encode import encode_query
from ..queries.base import TIMEOUT_S, Ask, Queries, Vertex, timeout_of
from ..settings import Settings
from ..timers import now_ms
from ..types import REPLIES, Array, Reply
from .engine import retried

if TYPE_CHECKING:
    from algorithms.sharded import ShardedSnapshot

    from .cluster_log import ClusterLog

MAX_AGE_S = 1.0


class Snapshots(Protocol):
    """Who takes snapshots of the whole graph: a `Cluster`."""

    def check(self) -> None: ...

    def snapshot(self, timeout_s: float = ..., /) -> ShardedSnapshot: ...


class ClusterClient(Queries):
    """Asks `cluster`, whose log is `log`; `Cluster.client` makes one.

    timeout: seconds a call waits unless it says otherwise. max_age_s: how old an epoch may be that
    is answered from; 0: a new one for each call; inf: the first for ever. reply_topic: one of the
    shards' `reply_topics`; None: "replies" if that is one, else their first. settings: the shards'.
    Raises QueryError if one of these makes no sense.

    A Reply that all shards gave has `epoch`, and `time`, that of the newest update in it; its
    `version` is the sum of the shards'. One that needs all shards is refused ("memory") if they can
    hold no snapshot. Raises as `Client` does; QueryTimeout says which shard was missing. After
    `close`, of the client or of the cluster, and when Ray is gone, QueryError at once. May be used
    from any number of threads."""

    def __init__(
        self,
        cluster: Snapshots,
        log: ClusterLog,
        *,
        timeout: float = TIMEOUT_S,
        max_age_s: float = MAX_AGE_S,
        reply_topic: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.timeout = timeout
        max_age_s = seconds_of(max_age_s, "max_age_s", QueryError)
        self._graph = log.spec
        self._settings = settings or Settings()
        reply_topic = _reply_topic(reply_topic, self._settings.reply_topics)
        self._out = log.client(log.spec.queries, reply_topic=reply_topic, timeout=timeout)
        self._in = None
        if log.in_queries is not None:
            self._in = log.client(log.in_queries, reply_topic=reply_topic, timeout=timeout)
        self._cluster = cluster
        self._recent = _Recent(cluster, max_age_s)
        self._closed = False

    def close(self) -> None:
        self._closed = True
        self._out.close()
        if self._in is not None:
            self._in.close()
        self._recent.close()

    def ask_many(self, queries: Iterable[Ask], *, timeout: float | None = None) -> list[Reply]:
        """As of `Client`. Those that need all shards are answered as of one epoch."""
        asked = list(queries)
        timeout = timeout_of(timeout, self.timeout)
        for query in asked:
            self._check(query)
        self._check_open()
        call = _Call(asked, time.monotonic() + timeout)
        call.refuse_far(self._settings.max_hops)
        call.ask_by_log(self._out, self._owners_question)
        if self._in is not None:
            call.ask_by_log(self._in, _turned)
        elif self._graph.directed:
            call.drop_denied()
        if left := [place for place, reply in enumerate(call.replies) if reply is None]:
            found = self._recent.ask([asked[place] for place in left], call)
            for place, one in zip(left, found, strict=True):
                call.replies[place] = one.first_rows(self._settings.max_reply_rows)
        return [reply for reply in call.replies if reply is not None]

    def _check_open(self) -> None:
        if self._closed:
            raise QueryError("the client was closed")
        try:
            self._cluster.check()
        except ClusterError as error:
            raise QueryError(str(error)) from error

    def _check(self, query: Ask) -> None:
        """Raise RecordError for arguments that no query can have."""
        kind, src, dst, steps, after = query
        encode_query("-", kind, src, dst, steps=steps, after=after, names=self._graph.names)

    def _owners_question(self, query: Ask, reply: Reply | None) -> Ask | None:
        """What the owner is to be asked instead of `query`; None: nothing."""
        if query.kind is Kind.PREDECESSORS:
            return None if self._graph.directed else query._replace(kind=Kind.SUCCESSORS)
        return None if query.kind is Kind.HOPS else query


def _turned(query: Ask, reply: Reply | None) -> Ask | None:
    """What the owner of turned edges is to be asked, when its other half has replied."""
    if query.kind is Kind.PREDECESSORS:
        return query._replace(kind=Kind.SUCCESSORS)
    return query if _denied(query, reply) else None


def _denied(query: Ask, reply: Reply | None) -> bool:
    """Whether a shard replied that it knows no such vertex."""
    if query.kind is not Kind.VERTEX or reply is None or reply.error is not None:
        return False
    return not np.any(np.asarray(reply.answer))


def _reply_topic(given: str | None, known: Sequence[str]) -> str:
    """The topic that replies are asked to come through. Raises QueryError if the shards, which know
    these, would not reply there."""
    if given is None:
        return REPLIES if REPLIES in known else next(iter(known))
    if given not in known:
        raise QueryError(
            f"reply_topic is {given!r}: this cluster replies to {', '.join(known)}: name "
            "another, or make the cluster with reply_topics=[…]"
        )
    return given


class _Call:
    """The state of one `ask_many`."""

    def __init__(self, queries: Sequence[Ask], until: float) -> None:
        self.queries = queries
        self.until = until
        self.replies: list[Reply | None] = [None] * len(queries)

    def refuse_far(self, max_hops: int) -> None:
        """Refuse queries of more steps, as a pipeline does."""
        for place, query in enumerate(self.queries):
            if query.kind is Kind.HOPS and (query.steps or 0) > max_hops:
                told = f"{query.steps} steps: at most {max_hops} here"
                self.replies[place] = Reply("", Kind.HOPS, 0, now_ms(), error="hops", message=told)

    def ask_by_log(self, client: Queries, question: Any) -> None:
        """Ask what `question` makes of the queries, and take the replies."""
        asked = [(i, question(q, self.replies[i])) for i, q in enumerate(self.queries)]
        asked = [(i, instead) for i, instead in asked if instead is not None]
        if not asked:
            return
        left_s = max(0.001, self.until - time.monotonic())
        late = None
        found: Sequence[Reply | None]
        try:
            found = client.ask_many([instead for _, instead in asked], timeout=left_s)
        except QueryTimeout as error:
            found, late = error.replies, str(error)
        for (place, _), reply in zip(asked, found, strict=True):
            if reply is not None:
                self.replies[place] = replace(reply, kind=self.queries[place].kind)
        if late is not None:
            raise QueryTimeout(late, self.replies)

    def drop_denied(self) -> None:
        """Replies that no vertex is there do not count: edges into it may lie elsewhere."""
        for place, query in enumerate(self.queries):
            if _denied(query, self.replies[place]):
                self.replies[place] = None


class _Recent:
    """The newest snapshot that was taken for one client. One call at a time asks it."""

    def __init__(self, cluster: Snapshots, max_age_s: float) -> None:
        self._cluster = cluster
        self._max_age_s = max_age_s
        self._lock = threading.Lock()
        self._snapshot: ShardedSnapshot | None = None
        self._begun = 0.0  # by the monotonic clock

    def close(self) -> None:
        with self._lock:
            self._snapshot = None

    def ask(self, queries: Sequence[Ask], call: _Call) -> list[Reply]:
        """The replies of all shards. Tried again with another snapshot while there is time."""
        if not self._lock.acquire(timeout=max(0.0, call.until - time.monotonic())):
            raise QueryTimeout("other queries of this client took all the time", call.replies)
        try:
            return retried(lambda left_s: self._answers(queries, left_s), call.until)
        except SnapshotRefused as error:
            refused = Reply("", Kind.HOPS, 0, now_ms(), error="memory", message=str(error))
            return [replace(refused, kind=query.kind) for query in queries]
        except ClusterError as error:
            if error.final:
                raise QueryError(str(error)) from error
            told = f"the shards did not all answer in time: {error}"
            raise QueryTimeout(told, call.replies) from error
        finally:
            self._lock.release()

    def _answers(self, queries: Sequence[Ask], left_s: float) -> list[Reply]:
        now = time.monotonic()
        try:
            if self._snapshot is None or now - self._begun > self._max_age_s:
                self._snapshot = None  # the shards may need its memory
                self._snapshot = self._cluster.snapshot(left_s)
                self._begun = now
            return answers(self._snapshot, queries)
        except ClusterError:
            self._snapshot = None
            raise


# What all shards together answer -------------------------------------------------------------


def answers(snapshot: ShardedSnapshot, queries: Sequence[Ask]) -> list[Reply]:
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
