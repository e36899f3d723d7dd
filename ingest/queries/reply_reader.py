"""One reader of a reply topic for all threads that wait for replies.

Idea: no thread of its own. Of the threads that wait, one reads the topic and hands what it finds to
the others; when it has its own, another takes over. So nothing runs while nobody waits.

A reply topic may be shared by many clients. Ids begin with their client's prefix, and replies with
their id, so replies to others are skipped without being decoded. A reply repeated after a crash is
no longer expected, and is dropped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable

from ..errors import OffsetError, QueryError, RecordError
from ..formats.replies import decode_reply
from ..sources.base import Log
from ..types import Reply

POLL_RECORDS = 500
HEAD_BYTES = 80  # of a reply: the id lies within
POLL_S = 0.5  # at most, so that a close is noticed
IDLE_S = 1.0  # without any wait, after which whatever has come since is skipped


class ReplyReader:
    """Replies to the queries whose ids begin with `prefix`, from the present end of `log` on.

    `log` is read only from within `wait` and `expect`, by one thread at a time. Invariants, of the
    state that the lock guards:
    1. `_replies` has a key for every id that is expected, and its value once that has come.
    2. `_reading` is true while one thread is in `log.poll`, without the lock."""

    def __init__(self, log: Log, prefix: str) -> None:
        self._log = log
        self._prefix = prefix.encode()
        self._lock = threading.Condition()
        self._replies: dict[str, Reply | None] = {}
        self._reading = False
        self._closed = False
        self._skip()

    def close(self) -> None:
        """Let every `wait` raise, and return when none is reading the log."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
            while self._reading:
                self._lock.wait()

    def expect(self, ids: Iterable[str]) -> None:
        """Keep the replies to these ids. Called before the queries are sent."""
        with self._lock:
            idle = not self._replies and not self._reading
            if idle and time.monotonic() - self._read > IDLE_S:
                self._skip()
            self._replies.update(dict.fromkeys(ids))

    def forget(self, ids: Iterable[str]) -> None:
        """Drop the replies to these ids, whether they have come or not."""
        with self._lock:
            for id in ids:
                self._replies.pop(id, None)

    def wait(self, ids: Collection[str], until: float) -> list[Reply]:
        """The replies to `ids` that have come, which are then no longer expected: at least one, or
        none at time `until` (of time.monotonic). Raises what reading the log raises, and QueryError
        once closed."""
        with self._lock:
            while True:
                if self._closed:
                    raise QueryError("the client was closed")
                come = [reply for id in ids if (reply := self._replies.get(id)) is not None]
                left = until - time.monotonic()
                if come or left <= 0:
                    break
                if self._reading:
                    self._lock.wait(left)
                else:
                    self._read_once(left)
            for reply in come:
                del self._replies[reply.id]
            return come

    def _read_once(self, timeout: float) -> None:
        """Poll, without the lock, and hand out the replies."""
        self._reading = True
        self._lock.release()
        found: list[Reply] = []
        try:
            found = self._poll(min(timeout, POLL_S))
        finally:
            self._lock.acquire()
            self._reading = False
            self._read = time.monotonic()
            for reply in found:
                # Only the first for each id, in case a crash has repeated it.
                if self._replies.get(reply.id, reply) is None:
                    self._replies[reply.id] = reply
            self._lock.notify_all()

    def _poll(self, timeout: float) -> list[Reply]:
        try:
            polled = self._log.poll(POLL_RECORDS, timeout)
        except OffsetError:
            self._skip()  # trimmed before being read: those replies are gone
            return []
        found = []
        for record in polled:
            if isinstance(record.value, bytes) and self._prefix in record.value[:HEAD_BYTES]:
                try:
                    found.append(decode_reply(record.value))
                except RecordError:
                    continue  # not from a pipeline; the query will time out
        return found

    def _skip(self) -> None:
        """Go to the end of the log."""
        self._log.seek(self._log.end_offsets())
        self._read = time.monotonic()
