"""A table's topic in Kafka, of three partitions by the row's key, read by `lpma ingest` that is
killed: the table, and nothing else, at the end and at every checkpoint."""

from __future__ import annotations

import zlib
from pathlib import Path
from random import Random

import numpy as np
import pytest
from kafka import KafkaProducer

from ingest.types import Partition
from tests.conftest import soak
from tests.support.broker import Cluster
from tests.support.cdc.cases import Case, database_of
from tests.support.cdc.database import Rows, Table, apply
from tests.support.cdc.envelopes import Encoding, Message, messages
from tests.support.cdc.expected import summed
from tests.support.command_line import document
from tests.support.killed_tables import POINTS, as_command, command, kept
from tests.support.kills import drawn, run

PARTITIONS = 3
NAMED = Table(text_ends=True)
CASE = Case(NAMED, Encoding(amounts="decimal", times="us"), "sum")


@pytest.mark.soak
def test_a_table_in_kafka_over_kills(kafka: Cluster, tmp_path: Path) -> None:
    """Without truncations: Debezium promises no order of theirs among partitions."""
    random, rng = Random(11), np.random.default_rng(11)
    database = database_of(CASE, random, truncates=False, keys=40)
    topic, state = kafka.topic(PARTITIONS, name="table"), tmp_path / "state"
    told: list[list[Message]] = [[] for _ in range(PARTITIONS)]
    line = command(["--kafka", kafka.bootstrap, "--topic", topic, *CASE.options], state,
                   "--batch-size", 7)  # fmt: skip
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap)

    def more() -> None:
        start = len(database.history)
        for message in messages(database.run(40)[start:], NAMED, CASE.encoding):
            assert message.key is not None
            partition = zlib.crc32(message.key) % PARTITIONS
            told[partition].append(message)
            producer.send(topic, message.value, key=message.key, partition=partition)
        producer.flush()

    for _ in range(2):  # to start, and to resume
        more()
        calls = run(as_command, state, *line, points=POINTS).calls
    killed = 0
    for _ in range(soak(6, 60)):
        more()
        (place,) = drawn(rng, calls, 1)
        killed += run(as_command, state, *line, points=[place.point], place=place).killed
    producer.close()
    assert killed > 2
    assert document(*line)["rejected"] == 0
    ends = [len(part) for part in told]
    seen = []
    for positions, weights in kept(state):
        offsets = [positions.get(Partition(topic, number), 0) for number in range(PARTITIONS)]
        rows: Rows = {}
        for number, offset in enumerate(offsets):
            for message in told[number][:offset]:
                rows = apply(rows, message.change, NAMED)
        assert weights == summed(rows, NAMED)
        seen.append(offsets)
    assert ends in seen
    assert len(seen) > 3
