"""Fetched batches taken apart: what kafka-python does record by record, compiled.

Idea: kafka-python still handles the protocol: sessions, leaders, aborted transactions, positions.
Only the place where a batch becomes records is replaced: a batch of Kafka's message format 2 is
walked by compiled code (batches.py). The CRC of every batch is checked. Batches of the older
formats, which old logs still hold, go through kafka-python.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...types import Partition, Polled
from .batches import polled, values

# `client` is imported before this: its error says what is missing.
from kafka.consumer.fetcher import Fetcher  # isort: skip
from kafka.errors import CorruptRecordError  # isort: skip

LOG_APPEND_TIME = 1  # the type of a batch whose records have the time at which a broker received it


class PartitionRecords(Fetcher.PartitionRecords):
    """The records of one fetch from one partition, each as a `Polled`."""

    def _unpack_records(
        self, tp: tuple[str, int], records: Any, key: None, value: None
    ) -> Iterator[Polled]:
        """Called once by kafka-python, which takes as many from the iterator as are polled, and
        after each reads `next_fetch_offset`: what is fetched next."""
        partition = Partition(*tp)
        while (batch := records.next_batch()) is not None:
            if not batch.validate_crc():
                raise CorruptRecordError(
                    f"{tp[0]}/{tp[1]}: the batch at offset {batch.base_offset} fails its crc"
                )
            if batch.magic < 2:
                for record in batch:
                    self.next_fetch_offset = record.offset + 1
                    yield polled(partition, record.offset, record.value, record.timestamp or 0)
                continue
            self.leader_epoch = batch.leader_epoch
            if not self._is_skipped(batch):
                appended = batch.max_timestamp if batch.timestamp_type == LOG_APPEND_TIME else None
                for offset, found, time in _values(batch, partition):
                    self.next_fetch_offset = offset + 1
                    yield polled(partition, offset, found, time if appended is None else appended)
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


def _values(batch: Any, partition: Partition) -> Iterator[tuple[int, bytes | None, int]]:
    """(offset, value, time when its producer made it) of each record of a batch."""
    iter(batch)  # decompresses it
    try:
        base, time = batch.base_offset, batch.first_timestamp
        return values(batch._buffer, batch._pos, batch.records_count, base, time)
    except ValueError as error:
        raise CorruptRecordError(f"{partition.topic}/{partition.number}: {error}") from None
