"""Batches taken apart by compiled code, against kafka-python's own reader."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kafka.consumer.fetcher import Fetcher
from kafka.errors import CorruptRecordError
from kafka.protocol.consumer import IsolationLevel
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.structs import TopicPartition

from ingest import Partition
from ingest.formats.kafka_batches import walk
from ingest.sources import Polled, Rejected
from ingest.sources.kafka.records import PartitionRecords

TOPIC = TopicPartition("t", 3)


def batch(rng: np.random.Generator, first: int, count: int, compression: int = 0) -> bytes:
    """A batch whose records have keys, headers and values, or have none."""
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=compression, is_transactional=0,
        producer_id=-1, producer_epoch=-1, base_sequence=-1, batch_size=1 << 30,
    )  # fmt: skip

    def some_bytes() -> bytes | None:
        return rng.bytes(int(rng.integers(0, 200))) if rng.integers(4) else None

    for i in range(count):
        headers = [(f"h{n}", some_bytes()) for n in range(int(rng.integers(0, 3)))]
        time = 10**12 + int(rng.integers(-1000, 1000))
        builder.append(i, time, some_bytes(), some_bytes(), headers)
    data = builder.build()
    data[:8] = first.to_bytes(8, "big")  # the broker writes it; no part of the crc
    return bytes(data)


def read(kind: Any, data: bytes, first: int = 0) -> Any:
    return kind(first, TOPIC, MemoryRecords(data), isolation_level=IsolationLevel.READ_COMMITTED)


@pytest.mark.parametrize("compression", [0, 1])
def test_records_are_kafka_pythons(compression: int) -> None:
    rng = np.random.default_rng(1)
    data = b"".join(batch(rng, 1000 * n, int(rng.integers(1, 40)), compression) for n in range(9))
    for first in (0, 5, 4003):
        ours, theirs = (
            read(PartitionRecords, data, first),
            read(Fetcher.PartitionRecords, data, first),
        )
        while theirs:
            some, expected = ours.take(7), theirs.take(7)
            assert [(p.partition, p.offset, p.time) for p in some] == [
                (Partition(*TOPIC), record.offset, record.timestamp) for record in expected
            ]
            assert [None if isinstance(p.value, Rejected) else p.value for p in some] == [
                record.value for record in expected
            ]
            assert ours.next_fetch_offset == theirs.next_fetch_offset
        assert not ours


def test_records_together_are_those_of_one_by_one() -> None:
    """Their times, too, wherever what came together is split."""
    rng = np.random.default_rng(4)
    data = b"".join(batch(rng, 40 * n, 40) for n in range(9))
    apart, ours = read(PartitionRecords, data).take(), read(PartitionRecords, data)
    ours.together = True
    found: list[Polled] = []
    while ours:
        for rest in ours.take(25):
            while rest.offset < rest.last:
                one, rest = rest.split(rest.offset + 1)
                found.append(one)
            found.append(rest)
    assert len(found) == len(apart) == 360
    assert [one.final.fingerprint for one in found] == [one.fingerprint for one in apart]


def test_a_batch_with_changed_bytes_is_refused() -> None:
    data = batch(np.random.default_rng(2), 0, 5)
    for at in range(17, len(data)):  # what the crc covers, and the crc
        damaged = bytearray(data)
        damaged[at] ^= 0x10
        with pytest.raises(CorruptRecordError, match="fails its crc"):
            read(PartitionRecords, bytes(damaged)).take()


class Reading:
    """Message format 2 as its grammar says it, one byte after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
            if shift >= 64:
                raise ValueError("too long")
        value &= 2**64 - 1
        return (value >> 1) ^ -(value & 1)

    def field(self) -> bytes | None:
        length = self.varint()
        if length < 0:
            return None
        start, self.at = self.at, self.at + length
        if self.at > len(self.data):
            raise ValueError("too short")
        return self.data[start : self.at]

    def record(self) -> tuple[int, bytes | None, bytes]:
        length = self.varint()
        end = self.at + length
        self.at += 1  # attributes
        self.varint()  # time
        offset = self.varint()
        key = self.field()
        value = self.field()
        headers = self.varint()
        if headers < 0 or length < 0:
            raise ValueError("negative")
        for _ in range(headers):
            if self.field() is None:
                raise ValueError("a header without a name")
            self.field()
        if self.at != end:
            raise ValueError("of another length")
        return offset, value, key or b""


def plainly(data: bytes, count: int) -> list[tuple[int, bytes | None, bytes]] | None:
    reading = Reading(data)
    try:
        found = [reading.record() for _ in range(count)]
    except (ValueError, IndexError):
        return None
    return found if reading.at == len(data) else None


def test_no_bytes_hurt_it() -> None:
    """Damaged records whose batch has a crc to match: refused, or what the grammar says."""
    rng = np.random.default_rng(3)
    taken = 0
    for _ in range(3000):
        count = int(rng.integers(1, 4))
        data = bytearray(batch(rng, 0, count)[61:])
        for _ in range(int(rng.integers(1, 3))):
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
        expected = plainly(bytes(data), count)
        offsets, times, *found = (np.zeros(count, np.int64) for _ in range(6))
        ok = walk(np.frombuffer(bytes(data), np.uint8), 0, offsets, times, *found)
        assert ok == (expected is not None)
        if expected is not None:
            taken += 1
            assert expected == [
                (offset, None if start < 0 else bytes(data[start:stop]), bytes(data[key:end]))
                for offset, start, stop, key, end in zip(offsets.tolist(), *found, strict=True)
            ]
    assert taken > 500  # bytes of keys and values may be any
