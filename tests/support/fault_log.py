"""Kafka's log in memory, for the fault broker: topics with ids, partitions of record batches.

A batch is kept as the bytes a broker would have on disk (message format 2), with its first offset
written into it; what a client fetches are those bytes. Offsets below `first` are trimmed.
"""

from __future__ import annotations

import struct
import time
import uuid
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kafka.record.memory_records import MemoryRecordsBuilder

_BASE = struct.Struct(">q")  # the first offset, not covered by the checksum
_LENGTH = struct.Struct(">i")  # at 8: of what follows it
_LAST_DELTA = struct.Struct(">i")  # at 23: last offset − first
_PRODUCER = struct.Struct(">qhi")  # at 43: id, epoch, first sequence number


class Batch(NamedTuple):
    first: int
    last: int
    data: bytes


class Log:
    """One partition."""

    def __init__(self) -> None:
        self.first = 0
        self.end = 0
        self.batches: list[Batch] = []
        self._produced: dict[tuple[int, int], int] = {}  # (producer, sequence) → first offset

    def append(self, data: bytes) -> int:
        """Append encoded batches under the next offsets; the first of these. A batch that an
        idempotent producer sends again is not appended again."""
        start = self.end
        for batch in batches_of(data):
            producer, _, sequence = _PRODUCER.unpack_from(batch, 43)
            if producer >= 0:
                known = self._produced.setdefault((producer, sequence), self.end)
                if known < self.end:
                    start = known
                    continue
            last = self.end + _LAST_DELTA.unpack_from(batch, 23)[0]
            self.batches.append(Batch(self.end, last, _BASE.pack(self.end) + batch[8:]))
            self.end = last + 1
        return start

    def read(self, offset: int, max_bytes: int) -> bytes:
        """What a fetch from `offset` brings: the batch that holds it, whole, and those behind it,
        cut at `max_bytes` wherever that falls, as brokers do."""
        found: list[bytes] = []
        size = 0
        at = bisect_left(self.batches, offset, key=lambda batch: batch.last)
        while at < len(self.batches) and (size < max_bytes or not found):
            found.append(self.batches[at].data)
            size += len(found[-1])
            at += 1
        return b"".join(found)[: max(max_bytes, len(found[0]) if found else 0)]

    def trim(self, before: int) -> None:
        """Drop what lies below offset `before`, whole batches of it in memory."""
        self.first = min(max(self.first, before), self.end)
        self.batches = [batch for batch in self.batches if batch.last >= self.first]

    def roll_back(self, to: int) -> None:
        """Lose what was written from offset `to` on, as an older copy of the log has."""
        self.batches = [batch for batch in self.batches if batch.first < to]
        self.end = to
        self._produced.clear()


class Topic:
    def __init__(self, name: str, partitions: int) -> None:
        self.name = name
        self.id = uuid.uuid4()
        self.logs = [Log() for _ in range(partitions)]


def encoded(values: Iterable[bytes | None], later_ms: int = 0) -> bytes:
    """Values as one record batch of now, or a little later, with offsets from 0 on."""
    now = time.time_ns() // 1_000_000 + later_ms
    builder = MemoryRecordsBuilder(2, 0, 1 << 30)
    for value in values:
        builder.append(timestamp=now, key=None, value=value)
    builder.close()
    return bytes(builder.buffer())


def batches_of(data: bytes) -> Iterator[bytes]:
    """The batches that encoded bytes consist of."""
    at = 0
    while at < len(data):
        end = at + 12 + _LENGTH.unpack_from(data, at + 8)[0]
        yield data[at:end]
        at = end
