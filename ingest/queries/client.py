"""Live queries: a client asks a running pipeline through its log, and waits for the replies.

Idea: a query is a record of the query topic, so it has a place in the stream and is answered as of
that place; the reply comes through a topic that the pipeline allows for it, with the version and
the time that the answer holds for. The same client works over the embedded log and over Kafka: it
needs a sink to ask through, and a log to read replies from.

    Client(log)                     an SqliteLog
    Client.kafka("host:9092")       the topics of a Kafka
    Client.http("http://host:8080") no log: the HTTP service of the pipeline (http_client.py)
    Client(sink, replies)           anything with `produce_many`, and a Log of the reply topic

If the query topic has several partitions, a query goes to that of its vertex's owner
(`lpma/sharding.py`): the reader of that partition knows the vertex.

Every query has an id of its own, a random prefix of the client's and a number, and a deadline, when
the client stops waiting: the clocks of both machines must agree to well within that time. If the
pipeline says *retry later*, the client asks again after growing pauses, while there is time.
"""

from __future__ import annotations

import heapq
import itertools
import random
import secrets
import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from lpma.sharding import owners_of

from ..arguments import MOST_OF_A_SOCKET_S, by_name
from ..errors import QueryError, QueryTimeout, RecordError
from ..formats.encode import encode_query
from ..sources.base import Log, LogWriter
from ..sources.sqlite.file import NoLog
from ..sources.sqlite.log import SqliteLog
from ..timers import now_ms
from ..types import QUERIES, REPLIES, Ids, Partition, Reply, Sink
from .base import MAX_PAUSE_S, TIMEOUT_S, Ask, Queries, Vertex, timeout_of
from .reply_reader import ReplyReader

if TYPE_CHECKING:
    import ssl

    from .http_client import HttpClient

MAX_IN_FLIGHT = 1000  # queries of one call that are outstanding at once


class Client(Queries):
    """Asks the pipeline that reads `query_topic` of `log`.

    log: the embedded log, or any sink that takes queries. replies: where `reply_topic` is read
    from; None: the log, if it is an SqliteLog. It is the client's alone, as is its position.
    reply_topic: one that the pipeline allows (`reply_topics`); clients may share it.
    names: True if the pipeline's is: vertices are named by any integer or text.
    timeout: seconds a call waits unless it says otherwise.

    Each method asks what the method of `lpma.Graph` of that name does, for one vertex or edge, and
    returns a Reply: `answer`, of leading length 1, as of `version` and `time`. They raise
    QueryTimeout if no reply came, although the query may have been asked,
    QueryRefused if the pipeline does not answer it, SourceError if the log fails, and RecordError
    on an argument that no query can have. May be used from any number of threads.

    >>> log = ingest.SqliteLog("log")
    >>> _ = log.produce("updates", ingest.encode_updates([1, 2], [2, 3]))
    >>> pipeline = ingest.Pipeline(log, lpma.Graph(device="cpu"))
    >>> thread = threading.Thread(target=pipeline.run)
    >>> thread.start()
    >>> with ingest.Client(log) as client:
    ...     client.degree(1).answer
    array([1])
    >>> pipeline.stop()
    >>> thread.join()
    """

    def __init__(
        self,
        log: SqliteLog | Sink,
        replies: Log | None = None,
        *,
        query_topic: str = QUERIES,
        reply_topic: str = REPLIES,
        names: bool = False,
        timeout: float = TIMEOUT_S,
        ids: Ids | None = None,
    ) -> None:
        self.timeout = timeout_of(timeout, TIMEOUT_S)
        self._query_topic = query_topic
        self._reply_topic = reply_topic
        self._names = by_name(names, ids, RecordError)
        self._sink = log
        self._sending = threading.Lock()  # held while the sink is used
        self._partitions: int | None = None  # of the query topic; None: not known yet
        self._prefix = secrets.token_hex(8)
        self._numbers = itertools.count()
        with ExitStack() as opened:
            if replies is None:
                replies = opened.enter_context(_reader_of(log, reply_topic))
            self._reader = ReplyReader(replies, self._prefix)
            self._opened = opened.pop_all()

    @classmethod
    def kafka(
        cls,
        bootstrap: str | Sequence[str],
        *,
        settings: Mapping[str, Any] | None = None,
        query_topic: str = QUERIES,
        reply_topic: str = REPLIES,
        names: bool = False,
        timeout: float = TIMEOUT_S,
        ids: Ids | None = None,
    ) -> Self:
        """A client of the pipeline that reads `query_topic` there. bootstrap, settings: as of
        `KafkaSource`. Raises SourceError if no broker is reached within `timeout`, or a topic is
        not there."""
        from ..sources.kafka.sink import KafkaSink
        from ..sources.kafka.source import PATIENCE_S, KafkaSource

        timeout = timeout_of(timeout, TIMEOUT_S)
        most_s = min(timeout, MOST_OF_A_SOCKET_S)
        with ExitStack() as opened:
            replies = KafkaSource(bootstrap, [reply_topic], settings=settings, patience=most_s)
            opened.enter_context(replies)
            replies.patience = PATIENCE_S  # a call's own time-out comes first
            sink = KafkaSink(bootstrap, settings=settings, patience=max(1.0, most_s))
            opened.enter_context(sink)
            client = cls(
                sink, replies,
                query_topic=query_topic, reply_topic=reply_topic, names=names, timeout=timeout,
                ids=ids,
            )  # fmt: skip
            client._opened.push(opened.pop_all())
            return client

    @staticmethod
    def http(
        url: str,
        token: str | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        timeout: float = TIMEOUT_S,
    ) -> HttpClient:
        """A client of the HTTP service at `url`, of a pipeline or of a saved store: see
        `HttpClient`. Nothing is connected before the first query.

        >>> with ingest.Client.http("http://127.0.0.1:8080") as client:
        ...     client.timeout
        10.0
        """
        from .http_client import HttpClient

        return HttpClient(url, token, tls=tls, timeout=timeout)

    def close(self) -> None:
        """Close what the client opened. Calls that wait in other threads raise QueryError."""
        self._reader.close()
        with self._sending:
            self._opened.close()

    # Many ------------------------------------------------------------------------------------

    def ask_many(self, queries: Iterable[Ask], *, timeout: float | None = None) -> list[Reply]:
        """The replies, in the order asked; for a refused query, the reply that says so (`error`).
        The queries of one call are in the stream in that order, unless one was put off or the query
        topic has several partitions.
        `timeout` is for all together.

        Raises QueryTimeout, with the replies that came, if not all did."""
        call = _Call(list(queries), timeout_of(timeout, self.timeout))
        try:
            while call.is_open():
                self._send(call)
                for reply in self._reader.wait(call.out, call.next_look()):
                    call.take(reply)
        finally:
            self._reader.forget(call.out)
        return call.replies()

    def _send(self, call: _Call) -> None:
        """Write the queries whose time has come, as many as may be outstanding at once."""
        records = {}
        for place in call.due():
            id = f"{self._prefix}-{next(self._numbers):x}"
            kind, src, dst, steps, after = call.queries[place]
            call.out[id] = place
            records[id] = encode_query(
                id, kind, src, dst, steps=steps, after=after, reply=self._reply_topic,
                deadline=call.deadline, names=self._names,
            )  # fmt: skip
        if records:
            self._reader.expect(records)
            sources = [call.queries[call.out[id]].src for id in records]
            with self._sending:
                self._produce(sources, list(records.values()))

    def _produce(self, sources: list[Vertex], records: list[bytes]) -> None:
        """Write queries, whose vertices are `sources`, each to the partition of its vertex's owner.
        REQUIRES: `_sending` is held."""
        count = self._count_partitions()
        if count == 1:
            self._sink.produce_many(self._query_topic, records)
            return
        assert isinstance(self._sink, LogWriter)
        parts = defaultdict(list)
        for owner, record in zip(owners_of(sources, count).tolist(), records, strict=True):
            parts[Partition(self._query_topic, owner)].append(record)
        self._sink.produce_parts(parts)

    def _count_partitions(self) -> int:
        """Of the query topic. 1 if the sink cannot be asked, or its log is still to be made."""
        if self._partitions is None and isinstance(self._sink, LogWriter):
            try:
                self._partitions = self._sink.partitions_of(self._query_topic)
            except NoLog:
                return 1
        return self._partitions or 1


class _Call:
    """The state of one `ask_many`. A query is waiting to be asked, outstanding (`out`), or done."""

    def __init__(self, queries: Sequence[Ask], timeout: float) -> None:
        self.queries = queries
        self.until = time.monotonic() + timeout
        self.deadline = now_ms() + round(1000 * timeout)
        self.timeout = timeout
        self.out: dict[str, int] = {}  # query id: place among the queries
        self._ready = deque(range(len(queries)))
        self._put_off: list[tuple[float, int]] = []  # (when, place), a heap
        self._attempts = [0] * len(queries)
        self._replies: list[Reply | None] = [None] * len(queries)

    def is_open(self) -> bool:
        waits = self.out or self._ready or self._put_off
        return bool(waits) and time.monotonic() < self.until

    def due(self) -> list[int]:
        """The places of the queries to ask now; they are no longer waiting."""
        now = time.monotonic()
        while self._put_off and self._put_off[0][0] <= now:
            self._ready.append(heapq.heappop(self._put_off)[1])
        room = MAX_IN_FLIGHT - len(self.out)
        return [self._ready.popleft() for _ in range(min(room, len(self._ready)))]

    def next_look(self) -> float:
        """Until when to wait for replies."""
        return min(self.until, self._put_off[0][0]) if self._put_off else self.until

    def take(self, reply: Reply) -> None:
        """Note a reply; a query that is to be asked later is put off, if there is time."""
        place = self.out.pop(reply.id)
        if reply.error == "retry":
            when = time.monotonic() + self._pause(place, reply)
            if when < self.until:
                heapq.heappush(self._put_off, (when, place))
                return
        self._replies[place] = reply

    def _pause(self, place: int, reply: Reply) -> float:
        """Seconds: twice as long each time, and spread at random among queries put off together."""
        told = (reply.retry_after_ms or 0) / 1000
        pause = max(told, min(told * 2 ** self._attempts[place], MAX_PAUSE_S))
        self._attempts[place] += 1
        return pause * random.uniform(1.0, 1.5)

    def replies(self) -> list[Reply]:
        found = [reply for reply in self._replies if reply is not None]
        if len(found) < len(self._replies):
            raise QueryTimeout(
                f"{len(self._replies) - len(found)} of {len(self._replies)} queries had no reply "
                f"within {self.timeout:g} s: does a pipeline read the query topic, does it allow "
                "the reply topic (or else its dead letters say so), and does it keep up?",
                self._replies,
            )
        return found


def _reader_of(log: Any, topic: str) -> SqliteLog:
    """A reader of the embedded log with a position of its own."""
    if not isinstance(log, SqliteLog):
        raise QueryError("replies: name the log they are read from; only an SqliteLog is both")
    if log.path == ":memory:":
        raise QueryError(f"{log.path}: a client cannot read a log that is not in a file")
    return SqliteLog(log.path, topics=(topic,))
