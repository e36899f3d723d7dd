"""KafkaSource where it reads some partitions, and leaves some unread for a while."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from ingest import KafkaSink, KafkaSource, OffsetError, Partition, SourceError
from ingest.errors import IdentityError
from tests.support.broker import Cluster
from tests.support.waiting import HANGS_S


@pytest.fixture
def topic(kafka: Cluster) -> str:
    """The numbers 0 … 39 in four partitions in turn."""
    topic = kafka.topic(4)
    with KafkaSink(kafka.bootstrap) as sink:
        for number in range(4):
            values = [b"%d" % n for n in range(number, 40, 4)]
            sink.produce_many(topic, values, number)
    return topic


@pytest.fixture
def source(kafka: Cluster, topic: str) -> Iterator[KafkaSource]:
    with KafkaSource(kafka.bootstrap, [topic], partitions={topic: [1, 2, 3]}) as source:
        yield source


def numbers(source: KafkaSource, count: int, most: int = 500) -> list[int]:
    """The next `count` of them."""
    found: list[Any] = []
    deadline = time.monotonic() + HANGS_S
    while len(found) < count:
        assert time.monotonic() < deadline, found
        found += [record.value for record in source.poll(min(most, count - len(found)), 0.2)]
    return sorted(int(value) for value in found)


def test_only_these_are_read(kafka: Cluster, topic: str, source: KafkaSource) -> None:
    own = {Partition(topic, n) for n in (1, 2, 3)}
    for found in (source.positions(), source.end_offsets(), source.first_offsets()):
        assert found.keys() == own
    assert numbers(source, 30) == [n for n in range(40) if n % 4]
    assert source.at_end()
    with KafkaSink(kafka.bootstrap) as sink:
        sink.produce_many(topic, [b"40"], 0)
        assert source.at_end()
        assert source.poll(10, 0.3) == []
        sink.produce_many(topic, [b"41"], 1)
    assert numbers(source, 1) == [41]
    assert source.known_ends().keys() <= own
    with pytest.raises(OffsetError, match="that is read here"):
        source.seek({Partition(topic, 0): 0})
    with pytest.raises(SourceError, match="has no partition 4, only 4 of them"):
        KafkaSource(kafka.bootstrap, [topic], partitions={topic: [4]})


def test_some_are_left_unread(kafka: Cluster, topic: str, source: KafkaSource) -> None:
    """What was fetched of them comes when they are read again, and nothing twice."""
    before = numbers(source, 5, most=2)
    source.read_only([Partition(topic, 2)])
    standing = source.positions()
    rest = [n for n in range(2, 40, 4) if n not in before]
    assert numbers(source, len(rest)) == rest
    assert source.poll(10, 0.3) == []
    assert not source.at_end()
    ends = source.end_offsets()
    assert ends == {Partition(topic, n): 10 for n in (1, 2, 3)}
    assert source.positions() == {**standing, Partition(topic, 2): 10}
    found = source.records_at({Partition(topic, 1): 0, Partition(topic, 2): 9})
    assert {int(record.value) for record in found.values()} == {1, 38}  # type: ignore[arg-type]
    assert source.poll(10, 0.3) == []
    source.read_only([])
    assert source.poll(10, 0.3) == []
    source.read_only(None)
    left = [n for n in range(40) if n % 4 in (1, 3) and n not in before]
    assert numbers(source, len(left)) == left
    assert source.at_end()
    with pytest.raises(SourceError, match="is not read here"):
        source.read_only([Partition(topic, 0)])


def test_a_new_reader_leaves_them_unread_too(topic: str, source: KafkaSource) -> None:
    """After an outage the consumer is another one."""
    before = numbers(source, 9)
    source.read_only([Partition(topic, 2)])
    source._drop()
    rest = [n for n in range(2, 40, 4) if n not in before]
    assert numbers(source, len(rest)) == rest
    assert source.poll(10, 0.3) == []
    source.read_only(None)
    left = [n for n in range(40) if n % 4 and n not in before and n not in rest]
    assert numbers(source, len(left)) == left


def test_an_identity_of_what_is_read(kafka: Cluster, topic: str) -> None:
    other = kafka.topic()
    with KafkaSource(kafka.bootstrap, [topic, other], partitions={topic: []}) as source:
        assert source.identity().topics.keys() == {other}
        with KafkaSource(kafka.bootstrap, [topic]) as another, pytest.raises(IdentityError):
            source.identity().check(another.identity())
