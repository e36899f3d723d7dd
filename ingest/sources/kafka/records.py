"""Fetched batches taken apart: what kafka-python does record by record, compiled.

Idea: kafka-python still handles the protocol: sessions, leaders, aborted transactions, positions.
Only the place where a batch becomes records is replaced: a batch of Kafka's message format 2 is
walked by compiled code (formats/kafka_batches.py). The CRC of every batch is checked. Batches of
the older formats, which old logs still hold, go through kafka-python.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...formats.kafka_batches import Places, places_of, polled, stretch_of
from ...types import Partition, Polled, Values

# `client` is imported before this: its error says what is missing.
from kafka.consumer.fetcher import Fetcher  # isort: skip
from kafka.errors import CorruptRecordError  # isort: skip

LOG_APPEND_TIME = 1  # the type of a batch whose records have the time at which a broker received it


class PartitionRecords(Fetcher.PartitionRecords):
    """The records of one fetch from one partition, each as a `Polled`; with `together`, which may
    change between two polls, consecutive ones as one."""

    together = False
    _most = 1  # records that the next `Polled` may have

    def take(self, n: int | None = None) -> list[Polled]:
        if not self.together or n is None:
            self._most = 1
            found: list[Polled] = super().take(n)
            return found
        taken: list[Polled] = []
        while n > 0:
            self._most = n
            try:
                one = super().take(1)
            except Exception as error:
                if not taken:
                    raise
                self._next_inline_exception = error  # as kafka-python does it
                break
            if not one:
                break
            taken += one
            n -= one[0].records
        return taken

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
                    yield polled(
                        partition, record.offset, record.value, record.timestamp or 0,
                        record.key or b"",
                    )  # fmt: skip
                continue
            self.leader_epoch = batch.leader_epoch
            if not self._is_skipped(batch):
                data, places = _places(batch, partition)
                offsets, times, *_ = places
                if batch.timestamp_type == LOG_APPEND_TIME:
                    times = np.full_like(times, batch.max_timestamp)
                at = int(np.searchsorted(offsets, self.fetch_offset))
                while at < len(offsets):
                    stop = stretch_of(places, at, self._most)
                    self.next_fetch_offset = int(offsets[stop - 1]) + 1
                    found = _values(data, times[at:stop], *(it[at:stop] for it in places[2:]))
                    yield polled(partition, int(offsets[at]), found[0], int(times[stop - 1]),
                                 found[1])  # fmt: skip
                    at = stop
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


def _values(
    data: bytes, times: Any, starts: Any, stops: Any, key_starts: Any, key_stops: Any
) -> tuple[bytes | Values | None, bytes]:
    """One value (None: a record without one) and its key, or many, with theirs."""
    if len(starts) > 1:
        keys = Values(data, key_starts, key_stops) if key_stops.any() else None
        return Values(data, starts, stops, times, keys), b""
    value = data[starts[0] : stops[0]] if starts[0] >= 0 else None
    return value, data[key_starts[0] : key_stops[0]]


def _places(batch: Any, partition: Partition) -> tuple[bytes, Places]:
    """The bytes of a batch, and where its records lie in them."""
    iter(batch)  # decompresses it
    data = batch._buffer
    try:
        base, time = batch.base_offset, batch.first_timestamp
        return bytes(data), places_of(data, batch._pos, batch.records_count, base, time)
    except ValueError as error:
        raise CorruptRecordError(f"{partition.topic}/{partition.number}: {error}") from None
