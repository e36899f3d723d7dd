"""What a real broker sent, kept in a file and read back without a broker or a client of Kafka.

    python tests/support/recorded_kafka.py

starts the tests' broker, fills a topic, reads it, and writes tests/support/data/kafka-fetch.bin:
the record batches of one partition, byte for byte as they came.

The topic holds updates of every kind in columns, single rows, queries, a record without a value and
some that are no records, in batches with and without compression. Format of a batch:

    base offset i8, length i4, leader epoch i4, magic u1 = 2, crc u4, attributes u2 (bits 0 to 2:
    compression, 1 gzip), last offset delta i4, first and last time i8, producer id i8, its epoch
    i2, base sequence i4, count i4, records      big-endian; the crc is CRC-32C of what follows it
"""

from __future__ import annotations

import gzip
import struct
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import ingest
from ingest.formats.kafka_batches import polled, values
from ingest.sources.base import Identity
from ingest.types import Partition, Polled
from tests.support import stream_model

FILE = Path(__file__).parent / "data" / "kafka-fetch.bin"
PARTITION = Partition("recorded", 0)
ROWS = 4096  # operations of a large record
SPAN = 200  # vertices

_HEAD = struct.Struct(">qiiBIHiqqqhii")
_CRC_AT = 21  # of what the crc covers
_GZIP = 1


class RecordedSource(ingest.Source):
    """A source of the records in FILE, held in memory."""

    def __init__(self) -> None:
        self.records = [polled(PARTITION, *record, 0) for record in batches(FILE.read_bytes())]
        self._next = 0

    def poll(self, max_records: int, timeout: float) -> list[Polled]:
        start = self._next
        self._next = min(start + max_records, len(self.records))
        return self.records[start : self._next]

    def seek(self, positions: Mapping[Partition, int]) -> None:
        self._next = positions.get(PARTITION, self._next)

    def positions(self) -> dict[Partition, int]:
        return {PARTITION: self._next}

    def at_end(self) -> bool:
        return self._next == len(self.records)

    def identity(self) -> Identity:
        return Identity("recorded", {PARTITION.topic: "0"})


def batches(data: bytes) -> Iterator[tuple[int, bytes | None]]:
    """(offset, value) of all records of the batches in `data`."""
    at = 0
    while at < len(data):
        base, length, _, magic, crc, attributes, *_, count = _HEAD.unpack_from(data, at)
        end = at + 12 + length
        assert magic == 2
        assert crc == crc32c(data[at + _CRC_AT : end]), f"the batch at offset {base} is damaged"
        records = data[at + _HEAD.size : end]
        compression = attributes & 7
        assert compression in (0, _GZIP)
        if compression:
            records = gzip.decompress(records)
        for offset, value, _ in values(records, 0, count, base, 0):
            yield offset, value
        at = end


def crc32c(data: bytes) -> int:
    table = []
    for entry in range(256):
        for _ in range(8):
            entry = entry >> 1 ^ (0x82F63B78 if entry & 1 else 0)
        table.append(entry)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


# Recording -----------------------------------------------------------------------------------


def _large(rng: np.random.Generator) -> bytes:
    src, dst = rng.integers(0, SPAN, (2, ROWS))
    kind = rng.choice([0, 1, 2, 3], ROWS, p=[0.88, 0.117, 0.002, 0.001])
    weight = rng.integers(-4, 12, ROWS).astype(np.float32) / 4
    return ingest.encode_updates(src, dst, weight, None, kind)


def _fill(bootstrap: str, topic: str) -> int:
    """Produce what is to be recorded; how many records."""
    from kafka import KafkaProducer

    rng = np.random.default_rng(17)
    count = 0
    for round in range(4):
        small: list[bytes | None] = [*stream_model.random_records(rng, 60, SPAN, first=60 * round)]
        small.insert(round, None)
        for compression, records in (("gzip", [_large(rng)]), (None, small)):
            producer: Any = KafkaProducer(bootstrap_servers=bootstrap, compression_type=compression)
            for record in records:
                headers = [("form", b"tested")] if count % 7 == 0 else []
                key = b"key" if record is None or count % 5 == 0 else None
                producer.send(topic, record, key, headers, partition=0)
                count += 1
            producer.flush()
            producer.close()
    return count


def _fetched(bootstrap: str, topic: str, count: int) -> bytes:
    """The batches of all `count` records, as they come off the wire."""
    from kafka import KafkaConsumer, TopicPartition

    from ingest.sources.kafka.records import PartitionRecords

    taken: list[bytes] = []

    class Recording(PartitionRecords):
        def _unpack_records(
            self, tp: tuple[str, int], records: Any, key: None, value: None
        ) -> Iterator[Polled]:
            taken.append(bytes(records._buffer))
            return super()._unpack_records(tp, records, key, value)

    consumer: Any = KafkaConsumer(bootstrap_servers=bootstrap)
    consumer._fetcher.PartitionRecords = Recording
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek(partition, 0)
    while consumer.position(partition) < count:
        consumer.poll(1000)
    consumer.close()
    return b"".join(taken)


def main() -> None:
    from tests.support.broker import Broker, Cluster

    with tempfile.TemporaryDirectory() as directory, Broker(Path(directory)) as broker:
        broker.start()
        with Cluster(broker.bootstrap) as cluster:
            topic = cluster.topic()
        count = _fill(broker.bootstrap, topic)
        data = _fetched(broker.bootstrap, topic, count)
    offsets = [offset for offset, _ in batches(data)]
    assert offsets == list(range(count)), "fetched more, or less, than once"
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(data)
    print(f"{FILE}: {len(data):,} bytes, {count} records", file=sys.stderr)


if __name__ == "__main__":
    main()
