"""Appending to the pipeline's log for many clients: what waits is written together, with one sync.

Idea: group commit. A thread takes all that waits, writes it in one `append`, which returns
when the log is synced, and settles the futures after that. While it writes, the next group gathers:
the more clients there are, the more share a sync, and one alone waits for nobody.

Invariants:
1. A future has its result only after `append` returned: what was acknowledged is in the log.
2. What is cancelled before its group is taken is never written.
3. At most `max_waiting` requests and `MAX_WAITING_BYTES` wait; more are refused.
4. Groups go to one partition, in the order of their requests: a client's second request lies behind
   its first, and what a source repeats goes where it went before.

The writer has a handle of its own on the log, so that it waits for nobody's reads. A large request
is a group by itself: a broker that takes no record so large refuses that request alone.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import IngestError, SourceError
from ..sources.base import LogWriter
from ..types import Closing, Partition

MAX_WAITING_BYTES = 64 << 20
MAX_GROUP_BYTES = 16 << 20
ALONE_BYTES = 512 << 10  # from which on a request is a group by itself


class Written(NamedTuple):
    """Where the records of a request lie: the first and the last. None: the broker knows that it
    has them, and not any more where."""

    first: int | None
    last: int | None


class QueueFull(IngestError):
    """More waits to be written than is kept in memory."""


@dataclass(frozen=True)
class _Request:
    values: Sequence[bytes]
    size: int
    future: Future[Written]


class UpdateWriter(Closing):
    """Appends to one partition from a thread of its own.

    connect: opens the handle, when the first request comes and again after it failed; it is closed
    with the writer."""

    def __init__(
        self, connect: Callable[[], LogWriter], partition: Partition, max_waiting: int
    ) -> None:
        self.partition = partition
        self._connect = connect
        self._max_waiting = max_waiting
        self._waiting: deque[_Request] = deque()
        self._bytes = 0  # that wait
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._write_all, name="lpma-writer", daemon=True)
        self._thread.start()

    def append(self, values: Sequence[bytes]) -> Future[Written]:
        """Where the records lie, once they are durable. The future raises SourceError if the log
        cannot be written: the records may be in it all the same; RecordError if one is too large
        for the brokers. Raises QueueFull, and nothing is written."""
        request = _Request(values, sum(map(len, values)), Future())
        with self._changed:
            if self._closed:
                raise SourceError("the service is being closed: send it again later")
            full = len(self._waiting) >= self._max_waiting
            if full or self._bytes + request.size > MAX_WAITING_BYTES:
                raise QueueFull(
                    f"{len(self._waiting)} requests of {self._bytes:,} bytes wait to be written: "
                    "send it again later"
                )
            self._waiting.append(request)
            self._bytes += request.size
            self._changed.notify()
        return request.future

    def close(self) -> None:
        """Write what waits, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    # The thread ------------------------------------------------------------------------------

    def _write_all(self) -> None:
        log: LogWriter | None = None
        while group := self._next_group():
            try:
                log = log or self._connect()
                self._write(log, group)
            except Exception as error:  # noqa: BLE001 - whoever asked is told
                for request in group:
                    if not request.future.done():
                        request.future.set_exception(error)
                if isinstance(error, SourceError) and log is not None:
                    with suppress(Exception):
                        log.close()
                    log = None
        if log is not None:
            log.close()

    def _next_group(self) -> list[_Request]:
        """The requests to be written next, none if the writer was closed. Waits for them."""
        with self._changed:
            while True:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                group: list[_Request] = []
                size = 0
                while self._waiting:
                    if group and not _fits(size, len(group), self._waiting[0].size):
                        break
                    request = self._waiting.popleft()
                    self._bytes -= request.size
                    if request.future.set_running_or_notify_cancel():
                        group.append(request)
                        size += request.size
                if group or self._closed:
                    return group

    def _write(self, log: LogWriter, group: list[_Request]) -> None:
        values = [value for request in group for value in request.values]
        offsets = log.append(self.partition, values)
        at = 0
        for request in group:
            first, last = offsets[at], offsets[at + len(request.values) - 1]
            at += len(request.values)
            request.future.set_result(Written(_known(first), _known(last)))


def _fits(size: int, requests: int, more: int) -> bool:
    """Whether a request of `more` bytes joins a group of so many requests and bytes."""
    alone = more >= ALONE_BYTES or (requests == 1 and size >= ALONE_BYTES)
    return not alone and size + more <= MAX_GROUP_BYTES


def _known(offset: int) -> int | None:
    return offset if offset >= 0 else None
