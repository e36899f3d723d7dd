"""Live queries on Kafka beside a backlog: read behind the partition at hand, not behind all."""

from __future__ import annotations

import time

import pytest

import ingest
from ingest import KafkaSource, Partition
from ingest.sources import Polled
from ingest.types import QUERIES
from lpma import Kind
from tests.support.fault_broker import FaultBroker
from tests.support.waiting import HANGS_S

pytestmark = pytest.mark.system

RECORDS = 60  # of each partition
PARTITIONS = 4


def polled_until(source: KafkaSource, query: bytes) -> list[Polled]:
    """What is polled, a few records at a time, up to that query."""
    found: list[Polled] = []
    deadline = time.monotonic() + HANGS_S
    while not any(record.value == query for record in found):
        assert time.monotonic() < deadline
        found += source.poll(3, 0.2)
    return found


def test_queries_are_read_before_what_was_fetched_with_them() -> None:
    first, second = (ingest.encode_query(id, Kind.DEGREE, 1) for id in ("q0", "q1"))
    with FaultBroker(queries=1, updates=PARTITIONS) as broker:
        broker.produce(QUERIES, [first])
        with KafkaSource(broker.bootstrap, [QUERIES, "updates"]) as source:
            polled_until(source, first)  # tells that this is a partition of queries
            row = ingest.encode_row(1, 2)
            for number in range(PARTITIONS):
                broker.produce("updates", [row] * RECORDS, number)
            broker.produce(QUERIES, [second])
            before = polled_until(source, second)
            # At most what a fetch under way had brought, and the partition at hand.
            assert len(before) < 2 * RECORDS
            while not source.at_end():
                before += source.poll(500, 0.2)
    for number in range(PARTITIONS):
        offsets = [p.offset for p in before if p.partition == Partition("updates", number)]
        assert offsets == list(range(RECORDS))
    assert sum(record.partition.topic == QUERIES for record in before) == 1
