"""Reading again exactly what a journal names, from a source that only goes forward.

A source's partitions may come back in another order than the first time. One that can be read by
partition is read so. From any other, what comes too early is held until the journal asks for it;
that is at most what was buffered since the checkpoint.
"""

from __future__ import annotations

from collections import deque

from ..errors import OffsetError
from ..sources.base import Source
from ..types import Partition, Polled
from .journal import Chunk

POLL_RECORDS = 500
WAIT_S = 1.0  # for the first record of a poll


class Rereader:
    """REQUIRES: `source` stands at the offsets of the checkpoint the journal belongs to."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._held: dict[Partition, deque[Polled]] = {}

    def read(self, chunk: Chunk) -> list[Polled]:
        """The records chunk.first … chunk.last. Raises OffsetError if they are gone."""
        taken: list[Polled] = []
        while not taken or taken[-1].last < chunk.last:
            taken.append(self._next(chunk))
        return taken

    def _next(self, chunk: Chunk) -> Polled:
        held = self._held.setdefault(chunk.partition, deque())
        if not held and (found := self._source.poll_one(chunk.partition, POLL_RECORDS)) is not None:
            if not found:
                raise _gone(chunk)
            held.extend(found)
        while not held:
            if self._source.at_end():
                raise _gone(chunk)
            # Nothing within the wait does not mean the end: the rest of a log may be hidden, as the
            # end of a transaction is, or its broker may be away; then the source decides how long
            # to wait.
            for record in self._source.poll(POLL_RECORDS, WAIT_S):
                self._held.setdefault(record.partition, deque()).append(record)
        record = held.popleft()
        if not chunk.first <= record.offset <= chunk.last:
            raise _gone(chunk)
        if record.last > chunk.last:
            record, rest = record.split(chunk.last + 1)
            held.appendleft(rest)
        return record


def _gone(chunk: Chunk) -> OffsetError:
    topic, number = chunk.partition
    return OffsetError(
        f"{topic}/{number}: records {chunk.first} … {chunk.last} were read before the crash and "
        "are not there now: restore the log, or start a new checkpoint"
    )
