"""KafkaSink on a real Kafka: what it returns from is written, what it cannot write it says."""

from __future__ import annotations

import secrets

import pytest
from kafka import KafkaConsumer, TopicPartition

import ingest
from ingest import KafkaSink, Partition, RecordError, SourceError
from ingest.sources.kafka import sink as kafka_sink_module
from tests.support.broker import Cluster


def written(kafka: Cluster, topic: str, number: int = 0) -> list[bytes]:
    """What a partition holds, read by other means than ours."""
    place = TopicPartition(topic, number)
    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap, max_partition_fetch_bytes=64 << 20)
    consumer.assign([place])
    consumer.seek(place, 0)
    end = consumer.end_offsets([place])[place]
    found: list[bytes] = []
    while consumer.position(place) < end:
        found += [record.value for some in consumer.poll(1000).values() for record in some]
    consumer.close()
    return found


def test_all_is_there_in_order_when_it_returns(
    kafka: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        kafka_sink_module, "MAX_WINDOW_RECORDS", 7
    )  # so that there are many windows
    topic = kafka.topic(2)
    values = [f"{n}".encode() for n in range(100)]
    with KafkaSink(kafka.bootstrap) as sink:
        assert sink.produce_many(topic, values, 1) == [(1, offset) for offset in range(100)]
        assert written(kafka, topic, 1) == values
        places = sink.produce_many(topic, values)
        assert sink.produce_many(topic, []) == []
        for (number, offset), value in zip(places, values, strict=True):
            assert written(kafka, topic, number)[offset] == value
        both = written(kafka, topic, 0) + written(kafka, topic, 1)[100:]
        assert sorted(both) == sorted(values)


def test_parts_are_written_in_order_each(kafka: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_sink_module, "MAX_WINDOW_RECORDS", 7)
    topics = kafka.topic(3), kafka.topic(2)
    parts = {
        Partition(topic, number): [f"{topic}/{number} {n}".encode() for n in range(10)]
        for topic, number in ((topics[0], 2), (topics[1], 1), (topics[0], 0))
    }
    with KafkaSink(kafka.bootstrap) as sink:
        assert [sink.partitions_of(topic) for topic in topics] == [3, 2]
        assert sink.produce_parts(parts) == {place: list(range(10)) for place in parts}
        assert sink.produce_parts({}) == {}
        for (topic, number), values in parts.items():
            assert written(kafka, topic, number) == values
        assert written(kafka, topics[0], 1) == []
        with pytest.raises(SourceError, match="could not be written"):
            sink.produce_parts({Partition(topics[0], 9): [b"1"]})
        with pytest.raises(SourceError, match="no topic 'unknown'"):
            sink.partitions_of("unknown")


def test_a_topic_is_made_with_its_partitions(kafka: Cluster) -> None:
    name = f"made-{secrets.token_hex(4)}"
    with KafkaSink(kafka.bootstrap) as sink:
        ingest.create_sharded(sink, name, 4, queries=f"{name}-queries")
        assert [sink.partitions_of(f"{name}{end}") for end in ("", "-queries")] == [4, 4]
        with pytest.raises(SourceError, match="4 partitions, not 8"):
            ingest.create_sharded(sink, name, 8, queries=f"{name}-queries")


def test_windows_bound_what_is_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_sink_module, "MAX_WINDOW_BYTES", 10)
    monkeypatch.setattr(kafka_sink_module, "MAX_WINDOW_RECORDS", 3)
    sizes = [4, 4, 4, 20, 1, 1, 1, 1]
    made = kafka_sink_module._Outgoing
    outgoing = [made("updates", number, b"x" * size) for number, size in enumerate(sizes)]
    windows = list(kafka_sink_module._windows(outgoing))
    assert [record for window in windows for record in window] == outgoing
    assert [[len(record.value) for record in window] for window in windows] == [
        [4, 4], [4], [20], [1, 1, 1], [1]
    ]  # fmt: skip


def test_a_record_of_32_mib_is_written_where_the_topic_takes_it(kafka: Cluster) -> None:
    topic = kafka.topic(max_message_bytes=str(40 << 20))
    value = b"x" * kafka_sink_module.MAX_RECORD_BYTES
    with KafkaSink(kafka.bootstrap) as sink:
        sink.produce_many(topic, [b"before", value, b"after"])
    assert written(kafka, topic) == [b"before", value, b"after"]


def test_a_record_larger_than_the_topic_takes_is_a_record_error(kafka: Cluster) -> None:
    topic = kafka.topic()
    with KafkaSink(kafka.bootstrap) as sink:
        for size in (2 << 20, kafka_sink_module.MAX_RECORD_BYTES + 5000):
            with pytest.raises(RecordError, match=r"raise max\.message\.bytes"):
                sink.produce_many(topic, [b"x" * size])
        sink.produce_many(topic, [b"and on"])
    assert written(kafka, topic) == [b"and on"]


def test_create_topic_makes_it_once(kafka: Cluster) -> None:
    name = f"{kafka.topic()}-made"
    with KafkaSink(kafka.bootstrap) as sink:
        sink.create_topic(name)
        sink.create_topic(name)
        sink.produce_many(name, [b"x"])
        with pytest.raises(SourceError, match="a topic is"):
            sink.create_topic("no topic")
        with pytest.raises(SourceError, match="no topic 'absent'"):
            sink.produce_many("absent", [b"x"])
        with pytest.raises(SourceError, match="could not be written"):
            sink.produce_many(name, [b"x"], 7)
        sink.produce_many(name, [b"y"])
    assert written(kafka, name) == [b"x", b"y"]
