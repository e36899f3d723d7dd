"""Fetched batches taken apart: what kafka-python does record by record, compiled.

Idea: kafka-python keeps doing what is Kafka's: sessions, leaders, aborted transactions, positions.
Only the place where a batch becomes records is replaced: a batch of Kafka's message format 2 is
walked by compiled code that finds where each value lies, and of a record nothing is kept but its
offset and its value. The CRC of every batch is checked. Batches of the older formats, which lie
about in logs of long ago, take kafka-python's own road.

    record := length, attributes u1, timestamp delta, offset delta, key bytes, value bytes
            , headers: count, (key bytes, value bytes)*        lengths and deltas as zigzag varints
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import njit

from .base import Partition, Polled, Rejected

# kafka_client says what is missing where it is: it is imported before this.
from kafka.consumer.fetcher import Fetcher  # isort: skip
from kafka.errors import CorruptRecordError  # isort: skip

NO_VALUE = Rejected(b"", "a record without a value, as compaction takes for a deletion")


class PartitionRecords(Fetcher.PartitionRecords):
    """The records of one fetch from one partition, each as a `Polled`."""

    def _unpack_records(
        self, tp: tuple[str, int], records: Any, key: None, value: None
    ) -> Iterator[Polled]:
        """Called once by kafka-python, which takes from the iterator as many as are polled, and
        after each take reads `next_fetch_offset`: what is fetched next."""
        partition = Partition(*tp)
        while (batch := records.next_batch()) is not None:
            if not batch.validate_crc():
                raise CorruptRecordError(
                    f"{tp[0]}/{tp[1]}: the batch at offset {batch.base_offset} fails its crc"
                )
            if batch.magic < 2:
                for record in batch:
                    self.next_fetch_offset = record.offset + 1
                    yield _polled(partition, record.offset, record.value)
                continue
            self.leader_epoch = batch.leader_epoch
            if not self._is_skipped(batch):
                for offset, found in _values(batch, partition):
                    self.next_fetch_offset = offset + 1
                    yield _polled(partition, offset, found)
            # The last offset of a batch stays when compaction removes its last record.
            self.next_fetch_offset = batch.next_offset
        self.drain()

    def _is_skipped(self, batch: Any) -> bool:
        """Whether a batch is a mark at the end of a transaction, or of one that was aborted."""
        if batch.has_producer_id():
            self._consume_aborted_transactions_up_to(batch.last_offset)
            if self._contains_abort_marker(batch):
                self.aborted_producer_ids.discard(batch.producer_id)
            elif self._is_batch_aborted(batch):
                return True
        return bool(batch.is_control_batch)


def _polled(partition: Partition, offset: int, value: bytes | None) -> Polled:
    return Polled(partition, offset, NO_VALUE if value is None else value)


def _values(batch: Any, partition: Partition) -> Iterator[tuple[int, bytes | None]]:
    """(offset, value) of each record of a batch."""
    iter(batch)  # decompresses it
    data = batch._buffer
    count = batch.records_count
    offsets, starts, stops = (np.empty(count, np.int64) for _ in range(3))
    if not walk(np.frombuffer(data, np.uint8), batch._pos, offsets, starts, stops):
        raise CorruptRecordError(
            f"{partition.topic}/{partition.number}: the batch at offset {batch.base_offset} is "
            "not made of records"
        )
    offsets += batch.base_offset
    for offset, start, stop in zip(offsets.tolist(), starts.tolist(), stops.tolist(), strict=True):
        yield offset, None if start < 0 else bytes(data[start:stop])


@njit(cache=True, nogil=True)
def walk(data: Any, at: int, offsets: Any, starts: Any, stops: Any) -> bool:
    """Find the offset delta of each record and where its value lies (start −1: it has none).
    False where the records are not exactly what lies from `at` to the end of `data`."""
    for i in range(len(offsets)):
        length, at = _varint(data, at)
        if at < 0 or length < 0 or length > len(data) - at:
            return False
        end = at + length
        at += 1  # attributes
        _, at = _varint(data, at)  # timestamp
        offsets[i], at = _varint(data, at)
        _, at = _bytes(data, at)  # key
        starts[i], at = _bytes(data, at)
        stops[i] = at
        headers, at = _varint(data, at)
        if headers < 0:
            return False
        for _ in range(headers):
            if at < 0 or at > end:
                return False
            start, at = _bytes(data, at)
            if start < 0:
                return False  # a header has a name
            _, at = _bytes(data, at)
        if at != end:
            return False
    return bool(at == len(data))


@njit(cache=True, nogil=True)
def _varint(data: Any, at: int) -> Any:
    """A zigzag integer and the place behind it; −1 as the place where there is none."""
    value = np.uint64(0)
    shift = np.uint64(0)
    while 0 <= at < len(data) and shift < 64:
        byte = np.uint64(data[at])
        at += 1
        value |= (byte & np.uint64(0x7F)) << shift
        if byte < 128:
            # Shifted as unsigned: the sign is in the lowest bit.
            half = np.int64(value >> np.uint64(1))
            return half ^ -np.int64(value & np.uint64(1)), at
        shift += np.uint64(7)
    return np.int64(0), -1


@njit(cache=True, nogil=True)
def _bytes(data: Any, at: int) -> Any:
    """Where bytes begin, −1 where they are absent, and the place behind them."""
    length, at = _varint(data, at)
    if at < 0 or length > len(data) - at:
        return np.int64(-1), -1
    if length < 0:
        return np.int64(-1), at
    return np.int64(at), at + length
