"""KafkaSource on a real Kafka: order, offsets, identity, and what it does in trouble."""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kafka import KafkaProducer

import ingest
from ingest import KafkaSink, KafkaSource, OffsetError, Partition, SourceError
from ingest.errors import IdentityError
from ingest.sources import Polled
from tests.support.broker import PASSWORD, USER, Cluster
from tests.support.waiting import HANGS_S


def values(topic: str, *ranges: range) -> list[bytes]:
    return [f"{topic}/{n}".encode() for some in ranges for n in some]


def drained(source: KafkaSource) -> list[Polled]:
    """All that the source now has."""
    found: list[Polled] = []
    deadline = time.monotonic() + HANGS_S
    while not source.at_end():
        assert time.monotonic() < deadline, "the end does not come"
        found += source.poll(500, 0.2)
    return found


def polled_until(source: KafkaSource, count: int) -> list[Polled]:
    found: list[Polled] = []
    deadline = time.monotonic() + HANGS_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count}"
        found += source.poll(500, 0.2)
    return found


@contextmanager
def producing(kafka: Cluster) -> Iterator[KafkaSink]:
    with KafkaSink(kafka.bootstrap) as sink:
        yield sink


def test_reads_each_partition_in_order(kafka: Cluster) -> None:
    topics = [kafka.topic(2), kafka.topic()]
    with producing(kafka) as sink, KafkaSource(kafka.bootstrap, topics) as source:
        assert source.at_end()
        assert source.poll(10, 0.1) == []
        partitions = [Partition(topics[0], 0), Partition(topics[0], 1), Partition(topics[1], 0)]
        for partition in partitions:
            sink.produce_many(partition.topic, values("a", range(300)), partition.number)
        found = drained(source)
        for partition in partitions:
            mine = [p for p in found if p.partition == partition]
            assert [p.offset for p in mine] == list(range(300))
            assert [p.value for p in mine] == values("a", range(300))
        assert source.positions() == source.end_offsets() == dict.fromkeys(partitions, 300)


def test_a_poll_takes_at_most_max_records(kafka: Cluster) -> None:
    topic = kafka.topic()
    with producing(kafka) as sink, KafkaSource(kafka.bootstrap, [topic]) as source:
        sink.produce_many(topic, values("a", range(100)))
        found: list[Polled] = []
        while len(found) < 100:
            some = source.poll(7, HANGS_S)
            assert 0 < len(some) <= 7
            found += some
            assert source.positions() == {Partition(topic, 0): len(found)}
        assert [p.offset for p in found] == list(range(100))


def test_seeks_to_any_offset(kafka: Cluster) -> None:
    topic = kafka.topic()
    place = Partition(topic, 0)
    with producing(kafka) as sink, KafkaSource(kafka.bootstrap, [topic]) as source:
        sink.produce_many(topic, values("a", range(50)))
        for start in (0, 30, 50, 7):
            source.seek({place: start})
            assert source.positions() == {place: start}
            assert [p.offset for p in drained(source)] == list(range(start, 50))
        # Between two polls of one fetch, too: nothing of the old place is handed out.
        source.seek({place: 0})
        polled_until(source, 1)
        source.seek({place: 20})
        assert drained(source)[0].offset == 20


def test_an_offset_that_is_not_there_is_refused(kafka: Cluster) -> None:
    topic = kafka.topic()
    place = Partition(topic, 0)
    with producing(kafka) as sink, KafkaSource(kafka.bootstrap, [topic]) as source:
        sink.produce_many(topic, values("a", range(50)))
        with pytest.raises(OffsetError, match="offset 51 was never written, the log ends at 50"):
            source.seek({place: 51})
        kafka.trim(topic, 0, 20)
        with pytest.raises(OffsetError, match="offset 19 was trimmed, the first kept is 20"):
            source.seek({place: 19})
        with pytest.raises(OffsetError, match="not a partition"):
            source.seek({Partition(topic, 1): 0})
        assert source.positions() == {place: 0}
        source.seek({place: 20})
        assert [p.offset for p in drained(source)] == list(range(20, 50))


def test_a_trim_ahead_of_the_reader_is_found(kafka: Cluster) -> None:
    topic = kafka.topic()
    with producing(kafka) as sink, KafkaSource(kafka.bootstrap, [topic]) as source:
        sink.produce_many(topic, values("a", range(50)))
        kafka.trim(topic, 0, 20)
        with pytest.raises(OffsetError, match="offset 0 was trimmed, the first kept is 20"):
            polled_until(source, 1)


def test_a_new_reader_starts_where_the_log_now_begins(kafka: Cluster) -> None:
    topic = kafka.topic()
    with producing(kafka) as sink:
        sink.produce_many(topic, values("a", range(50)))
        kafka.trim(topic, 0, 20)
        with KafkaSource(kafka.bootstrap, [topic]) as source:
            assert [p.offset for p in drained(source)] == list(range(20, 50))


def test_identity_names_the_cluster_and_the_topics(kafka: Cluster) -> None:
    first, second = kafka.topic(), kafka.topic()
    with KafkaSource(kafka.bootstrap, [first, second]) as source:
        identity = source.identity()
        assert identity.topics.keys() == {first, second}
        assert identity.cluster == kafka.admin.describe_cluster()["cluster_id"]
    with KafkaSource(kafka.bootstrap, [second]) as source:
        assert source.identity().topics[second] == identity.topics[second]
        with pytest.raises(IdentityError, match="not in this source"):
            identity.check(source.identity())


def test_a_topic_made_again_is_another(kafka: Cluster) -> None:
    topic = kafka.topic()
    with producing(kafka) as sink, KafkaSource(kafka.bootstrap, [topic]) as source:
        sink.produce_many(topic, values("a", range(50)))
        assert len(drained(source)) == 50
        kafka.delete(topic)
        kafka.make(topic)
        sink.produce_many(topic, values("b", range(100)))
        with pytest.raises(IdentityError, match="replaced or created again"):
            polled_until(source, 1)


def test_a_partition_added_is_read_from_its_beginning(kafka: Cluster) -> None:
    topic = kafka.topic()
    with producing(kafka) as sink, KafkaSource(kafka.bootstrap, [topic]) as source:
        sink.produce_many(topic, values("a", range(10)), 0)
        assert len(drained(source)) == 10
        kafka.add_partitions(topic, 2)
        with producing(kafka) as newer:
            newer.produce_many(topic, values("b", range(10)), 1)
        found = polled_until(source, 10)
        assert [(p.partition.number, p.offset) for p in found] == [(1, n) for n in range(10)]


def transactional(kafka: Cluster, id: str) -> Any:
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id=id)
    producer.init_transactions()
    return producer


def test_transactions_leave_gaps_and_aborted_ones_nothing(kafka: Cluster) -> None:
    topic = kafka.topic()
    producer = transactional(kafka, f"t-{topic}")
    with KafkaSource(kafka.bootstrap, [topic]) as source:
        for round, commit in enumerate([True, False, True]):
            producer.begin_transaction()
            for n in range(3):
                producer.send(topic, f"{round}/{n}".encode())
            producer.flush()  # what was not sent when a transaction is aborted never is
            if commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
        found = drained(source)
        # A mark ends each transaction, at an offset of its own.
        assert [p.offset for p in found] == [0, 1, 2, 8, 9, 10]
        assert [p.value for p in found] == [f"{r}/{n}".encode() for r in (0, 2) for n in range(3)]
        assert source.positions() == {Partition(topic, 0): 11}
        assert source.end_offsets() == {Partition(topic, 0): 12}
        for start, expected in ((3, [8, 9, 10]), (11, []), (12, [])):
            source.seek({Partition(topic, 0): start})
            assert [p.offset for p in drained(source)] == expected
        producer.begin_transaction()
        producer.send(topic, b"open").get(HANGS_S)
        assert source.at_end(), "what is not committed is not there yet"
        producer.commit_transaction()
        assert [p.value for p in polled_until(source, 1)] == [b"open"]
    producer.close()


def test_a_record_without_a_value_is_rejected_not_lost(kafka: Cluster) -> None:
    topic = kafka.topic()
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap)
    producer.send(topic, key=b"k", value=None).get(HANGS_S)
    producer.close()
    with KafkaSource(kafka.bootstrap, [topic]) as source:
        (polled,) = drained(source)
        assert isinstance(polled.value, ingest.sources.Rejected)


def test_a_missing_topic_is_refused_and_not_made(kafka: Cluster) -> None:
    there, absent = kafka.topic(), f"{kafka.topic()}-absent"
    with pytest.raises(SourceError, match=f"no topic {absent}: create it"):
        KafkaSource(kafka.bootstrap, [there, absent])
    with producing(kafka) as sink, pytest.raises(SourceError, match=f"no topic '{absent}'"):
        sink.produce_many(absent, [b"x"])
    assert absent not in kafka.admin.list_topics()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("127.0.0.1", ["t"]), "host:port"),
        (("127.0.0.1:1/x", ["t"]), "host:port"),
        (("", ["t"]), "host:port"),
        (("127.0.0.1:1", "t"), "a sequence"),
        (("127.0.0.1:1", []), "a sequence"),
        (("127.0.0.1:1", ["a b"]), "a topic is"),
    ],
)
def test_bad_arguments_are_refused(arguments: tuple[Any, Any], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        KafkaSource(*arguments)


@pytest.mark.parametrize(
    "setting", ["group_id", "enable_auto_commit", "isolation_level", "check_crcs", "nonsense"]
)
def test_settings_that_carry_promises_are_not_the_callers(setting: str) -> None:
    with pytest.raises(SourceError, match=f"{setting}: cannot be set here"):
        KafkaSource("127.0.0.1:1", ["t"], settings={setting: None})


SASL = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": USER,
    "sasl_plain_password": PASSWORD,
}


def test_sasl_is_passed_on_and_secrets_are_not_shown(
    kafka: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in errors, in reprs, or in what kafka-python logs at its most talkative."""
    if kafka.sasl_bootstrap is None:
        pytest.skip("KAFKA_BOOTSTRAP is not known to speak SASL")
    caplog.set_level("DEBUG")
    topic = kafka.topic()
    with KafkaSource(kafka.sasl_bootstrap, [topic], settings=SASL) as source:
        source.sink().produce_many(topic, [b"x"])
        assert [p.value for p in polled_until(source, 1)] == [b"x"]
        shown = f"{source!r} {source.sink()!r}"
    monkeypatch.setattr("ingest.sources.kafka.source._CONNECT_TIMEOUT_S", 1.0)
    monkeypatch.setattr("ingest.sources.kafka.client._KNOCK_TIMEOUT_S", HANGS_S)
    wrong = SASL | {"sasl_plain_password": f"{PASSWORD}, but wrong"}
    with pytest.raises(SourceError, match="check the address and the TLS and SASL") as failure:
        KafkaSource(kafka.sasl_bootstrap, [topic], settings=wrong)
    told = "".join(traceback.format_exception(failure.value))
    assert "kafka" in caplog.text
    assert PASSWORD not in shown + told + caplog.text


def test_it_is_closed_once_and_for_all(kafka: Cluster) -> None:
    source = KafkaSource(kafka.bootstrap, [kafka.topic()])
    sink = source.sink()
    assert source.sink() is sink
    source.close()
    source.close()
    with pytest.raises(SourceError, match="is closed"):
        source.poll()
    with pytest.raises(SourceError, match="is closed"):
        sink.produce_many("t", [b"x"])


def test_ingest_works_without_kafka_python() -> None:
    code = """if True:
        import sys
        sys.modules["kafka"] = None
        import ingest
        try:
            ingest.KafkaSource
        except ingest.SourceError as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=HANGS_S
    )
    assert "pip install 'lpma-graph[kafka]', in a checkout '.[kafka]'" in done.stdout
