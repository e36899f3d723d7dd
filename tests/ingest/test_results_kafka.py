"""Results in a Kafka: in the topic each once, whatever happens to the pipeline that writes them."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kafka.errors import KafkaTimeoutError

import ingest
import lpma
from ingest import KafkaSink, KafkaSource, LockedError, Partition, Pipeline, RecordError, timers
from ingest.errors import SourceError
from ingest.events import Event
from ingest.results.reading import results_in
from ingest.sources.kafka import sink as kafka_sink_module
from ingest.state.journal import Fence
from tests.conftest import missing
from tests.ingest.test_results import TRACK, Reader
from tests.support.broker import Broker, Cluster, Unavailable
from tests.support.kills import Place, run
from tests.support.waiting import HANGS_S, wait_for


def published(kafka: Cluster, topic: str) -> list[ingest.Result]:
    with KafkaSource(kafka.bootstrap, [topic]) as source:
        return list(results_in(source))


def publish_all(bootstrap: str, topic: str, results: str, state: Path) -> Any:
    """Start, or go on, to the end of the topic; the graph then."""
    with KafkaSource(bootstrap, [topic]) as source:
        given: dict[str, Any] = {
            "track": TRACK, "alerts": ["core >= 2"], "results": (source.sink(), results),
            "batch_size": 10, "batch_interval": 1e6, "checkpoint_operations": 70,
        }  # fmt: skip
        if ingest.has_checkpoint(state):
            pipeline = Pipeline.resume(state, source, device="cpu", **given)
        else:
            pipeline = Pipeline(source, lpma.Graph(device="cpu"), state, **given)
        with pipeline:
            pipeline.run("end")
        return pipeline.graph


KILLS = [
    Place(point, 2, after)
    for after in (False, True)
    for point in (
        "ingest:KafkaSink._commit",
        "ingest.results.publisher:Publisher.send",
        "ingest.results.publisher:Publisher.make",
        "lpma:Graph.apply",
    )
]


def test_each_result_is_there_once_after_kills(kafka: Cluster, tmp_path: Path) -> None:
    """Of the three batches that there are for each kill, it comes within the third."""
    rng = np.random.default_rng(1)
    topic, results = kafka.topic(name="u"), kafka.topic(name="results", partitions=2)
    with KafkaSink(kafka.bootstrap) as sink:
        for _ in range(5 * len(KILLS)):
            deletes = (rng.random(6) < 0.3).astype(np.uint8)
            src, dst = rng.integers(0, 12, (2, 6))
            sink.produce_many(topic, [ingest.encode_updates(src, dst, kind=deletes)])
    given = kafka.bootstrap, topic, results, tmp_path / "c"
    for place in KILLS:
        assert run(publish_all, *given, points=[place.point], place=place).killed, place
    graph = publish_all(*given)
    found = published(kafka, results)
    assert [r.place for r in found] == sorted({r.place for r in found})
    assert len({r.run for r in found}) == 1
    Reader().read(found).agrees_with(graph)


def test_a_writer_that_was_replaced_writes_no_more(kafka: Cluster) -> None:
    topic, values = kafka.topic(), [b"1", b"2"]
    with KafkaSink(kafka.bootstrap) as sink:
        name = f"writer-of-{topic}"
        with sink.in_transactions(name) as old, sink.in_transactions(name) as new:
            assert [n for n, _ in old.produce_parts({Partition(topic, 0): values}).items()]
            old._producer.begin_transaction()
            old._producer.send(topic, b"half", partition=0).get(HANGS_S)
            new.partitions_of(topic)
            with pytest.raises(SourceError, match="could not be written"):
                old.produce_parts({Partition(topic, 0): [b"late"]})
            new.produce_parts({Partition(topic, 0): [b"3"]})
    with KafkaSource(kafka.bootstrap, [topic]) as source:
        seen: list[Any] = []
        while not source.at_end():
            seen += [record.value for record in source.poll(100, 0.2)]
    assert seen == [b"1", b"2", b"3"]


def test_a_writer_that_was_replaced_is_told_by_what(kafka: Cluster) -> None:
    place = Partition(kafka.topic(), 0)
    one: dict[str, Any] = {"transactional_id": f"writer-of-{place.topic}"}
    with KafkaSink(kafka.bootstrap, **one) as old, KafkaSink(kafka.bootstrap, **one) as new:
        old.produce_parts({place: [b"1"]})
        new.produce_parts({place: [b"2"]})
        with pytest.raises(SourceError, match=r"another one writes there.* keep only one"):
            old.produce_parts({place: [b"3"]})


@pytest.mark.integration
def test_a_transaction_log_that_cannot_be_made_is_told_with_its_setting(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "kafka", "transaction.state.log.replication.factor=3\n")
    try:
        broker.start()
    except Unavailable as error:
        missing("kafka", str(error))
    expected = pytest.raises(SourceError, match=r"transaction\.state\.log\.replication\.factor")
    with broker, KafkaSink(broker.bootstrap, patience=HANGS_S) as sink:
        sink.create_topic("results")  # so that the broker is known to answer
        with KafkaSink(broker.bootstrap, patience=4, transactional_id="w") as writer, expected:
            writer.partitions_of("results")


# Brokers that go away, and what is sent again ----------------------------------------------------


def sent(bootstrap: str, topic: str, count: int, seed: int = 1) -> None:
    """So many records of ten edges."""
    rng = np.random.default_rng(seed)
    with KafkaSink(bootstrap) as sink:
        for _ in range(count):
            src, dst = rng.integers(0, 12, (2, 10))
            sink.produce_many(topic, [ingest.encode_updates(src, dst)])


def times_out(*_: Any) -> None:
    raise KafkaTimeoutError("Expiring 1 record(s)")


POINTS = ("before it is sent", "before it is committed", "after it is committed")


@pytest.mark.parametrize("point", POINTS)
def test_results_that_time_out_are_sent_again_and_are_there_once(
    kafka: Cluster, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Also where they are there, and nobody said so. Each third version meets it."""
    topic, results = kafka.topic(name="u"), kafka.topic(name="results")
    sent(kafka.bootstrap, topic, 9)
    send, commit, versions, failed = KafkaSink._send, KafkaSink._commit, [0], [0]

    def fails(now: str) -> None:
        if now == point and versions[0] % 3 == 0:
            versions[0] += 1
            failed[0] += 1
            times_out()

    def sending(self: KafkaSink, *given: Any) -> Any:
        if self.transactional_id is not None:
            fails(POINTS[0])
        return send(self, *given)

    def committing(self: KafkaSink, *given: Any) -> None:
        fails(POINTS[1])
        commit(self, *given)
        fails(POINTS[2])
        versions[0] += 1

    monkeypatch.setattr(KafkaSink, "_send", sending)
    monkeypatch.setattr(KafkaSink, "_commit", committing)
    with KafkaSource(kafka.bootstrap, [topic]) as source:
        graph = lpma.Graph(device="cpu")
        given: dict[str, Any] = {"track": TRACK, "results": (source.sink(), results)}
        with Pipeline(source, graph, batch_size=10, **given) as pipeline:
            pipeline.run("end")
            assert pipeline.stats.waits_for() is None
    assert failed[0] >= 2
    found = published(kafka, results)
    assert [r.place for r in found] == sorted({r.place for r in found})
    assert len({r.run for r in found}) == 1
    Reader().read(found).agrees_with(graph)


def test_results_are_not_sent_again_once_another_writer_has_taken_over(
    kafka: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connecting anew would stop that one."""
    topic, results = kafka.topic(name="u"), kafka.topic(name="results")
    sent(kafka.bootstrap, topic, 3)

    def taken_over(*_: Any) -> None:
        Fence(tmp_path / "c")
        times_out()

    with KafkaSource(kafka.bootstrap, [topic]) as source:
        given: dict[str, Any] = {"track": TRACK, "results": (source.sink(), results)}
        pipeline = Pipeline(source, lpma.Graph(device="cpu"), tmp_path / "c", **given)
        with monkeypatch.context() as patch:
            patch.setattr(KafkaSink, "_commit", taken_over)
            with pytest.raises(LockedError, match="taken over"):
                pipeline.run("end")
        pipeline.close(checkpoint=False)
    assert published(kafka, results) == []


def test_results_are_given_up_when_the_patience_ends(
    kafka: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, results = kafka.topic(name="u"), kafka.topic(name="results")
    sent(kafka.bootstrap, topic, 1)
    tries = [0]

    def committing(self: KafkaSink, *given: Any) -> None:
        tries[0] += 1
        if tries[0] == 3:
            self.patience = 0.0
        times_out()

    with KafkaSource(kafka.bootstrap, [topic]) as source:
        given: dict[str, Any] = {"track": TRACK, "results": (source.sink(), results)}
        pipeline = Pipeline(source, lpma.Graph(device="cpu"), **given)
        monkeypatch.setattr(KafkaSink, "_commit", committing)
        with pytest.raises(SourceError, match=r"could not be written: KafkaTimeoutError: Expiring"):
            pipeline.run("end")
        assert tries == [3]
        assert pipeline.results is not None
        monkeypatch.setattr(timers, "SLOW_S", 0.0)
        assert "results are not written for" in str(pipeline.stats.waits_for())
        assert "Expiring 1 record(s)" in str(pipeline.stats.waits_for())
        pipeline.close()


def test_results_wait_for_a_broker_that_is_away(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is killed while a transaction is open, and comes back when that was given up. It is told
    once, though the source notices it, too."""
    monkeypatch.setattr(kafka_sink_module, "ATTEMPT_S", 5.0)
    with Cluster(broker.bootstrap) as cluster:
        topic, results = cluster.topic(name="u"), cluster.topic(name="results")
    sent(broker.bootstrap, topic, 6)
    commit, killed = KafkaSink._commit, threading.Event()

    def committing(self: KafkaSink, *given: Any) -> None:
        if self.transactional_id is not None and not killed.is_set():
            broker.kill()
            killed.set()
        commit(self, *given)

    monkeypatch.setattr(KafkaSink, "_commit", committing)
    monkeypatch.setattr(timers, "SLOW_S", 0.0)
    with KafkaSource(broker.bootstrap, [topic], patience=HANGS_S) as source:
        graph = lpma.Graph(device="cpu")
        given: dict[str, Any] = {"track": TRACK, "results": (source.sink(), results)}
        pipeline = Pipeline(source, graph, batch_size=10, **given)
        ran: list[int] = []
        thread = threading.Thread(target=lambda: ran.append(pipeline.run(60)))
        thread.start()
        assert killed.wait(HANGS_S)
        place: Any = pipeline.results
        wait_for(lambda: place._sink.problem is not None or not thread.is_alive())
        assert thread.is_alive()
        assert "results are not written for" in str(pipeline.stats.waits_for())
        broker.start()
        thread.join(HANGS_S)
        assert ran == [60]
        events = [r.msg.name for r in caplog.records if isinstance(r.msg, Event)]
        assert events.count("outage") == 1
        pipeline.close()
    with Cluster(broker.bootstrap) as cluster:
        found = published(cluster, results)
    assert [r.place for r in found] == sorted({r.place for r in found})
    Reader().read(found).agrees_with(graph)


def test_a_topic_that_is_deleted_meanwhile_is_told_once(
    kafka: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topic, results = kafka.topic(name="u"), kafka.topic(name="results")
    sent(kafka.bootstrap, topic, 1)
    with KafkaSource(kafka.bootstrap, [topic]) as source:
        given: dict[str, Any] = {"track": TRACK, "results": (source.sink(), results)}
        pipeline = Pipeline(source, lpma.Graph(device="cpu"), **given)
        pipeline.run("end")
        kafka.delete(results)
        sent(kafka.bootstrap, topic, 1, seed=2)
        monkeypatch.setattr(kafka_sink_module, "_SILENCE_S", 0.5)
        monkeypatch.setattr(kafka_sink_module, "_GONE_S", 0.5)
        with caplog.at_level(logging.WARNING):
            with pytest.raises(SourceError, match=f"topic '{results}' is gone: was it deleted?"):
                pipeline.run("end")
            pipeline.close(checkpoint=False)
    assert [str(record.msg).partition(" ")[0] for record in caplog.records] == ["error"]


def test_results_are_cut_for_a_topic_that_takes_little(kafka: Cluster, tmp_path: Path) -> None:
    """A version is there whole, in parts of its own numbers, and once: also after a crash, when the
    pipeline does not know yet how little the topic takes."""
    topic = kafka.topic(name="u")
    results = kafka.topic(name="results", max_message_bytes="2000")
    n = 700
    with KafkaSink(kafka.bootstrap) as sink:
        for shift in (1, 2, 3, 4):
            src = np.arange(n)
            sink.produce_many(topic, [ingest.encode_updates(src, (src + shift) % n)])
    graph: Any = lpma.Graph(device="cpu")
    for crash in range(4):
        with KafkaSource(kafka.bootstrap, [topic]) as source:
            given: dict[str, Any] = {
                "track": TRACK, "results": (source.sink(), results), "batch_size": n,
            }  # fmt: skip
            if crash == 0:
                pipeline = Pipeline(source, graph, tmp_path / "c", **given)
            else:
                pipeline = Pipeline.resume(tmp_path / "c", source, device="cpu", **given)
            pipeline.run(n)
            graph = pipeline.graph
            pipeline.close(checkpoint=False)
    found = published(kafka, results)
    assert max(len(ingest.formats.results.encode_result(r)) for r in found) < 2000
    assert [r.place for r in found] == sorted({r.place for r in found})
    assert len({r.run for r in found}) == 1
    Reader().read(found).agrees_with(graph)


def test_a_result_that_cannot_be_cut_is_an_error_that_says_what_to_do(kafka: Cluster) -> None:
    topic = kafka.topic(name="u")
    results = kafka.topic(name="results", max_message_bytes="100")
    sent(kafka.bootstrap, topic, 1)
    with KafkaSource(kafka.bootstrap, [topic]) as source:
        given: dict[str, Any] = {"track": TRACK, "results": (source.sink(), results)}
        pipeline = Pipeline(source, lpma.Graph(device="cpu"), **given)
        with pytest.raises(RecordError, match=r"raise max\.message\.bytes"):
            pipeline.run("end")
        pipeline.close()
