"""The pipeline on a real Kafka, queries to replies and back from crashes, against the model."""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kafka import KafkaProducer

import ingest
import lpma
from ingest import IdentityError, KafkaSink, KafkaSource, OffsetError, Partition, Pipeline
from ingest.sources.kafka import trouble
from ingest.sources.kafka.reader import Reader
from lpma import Kind
from tests.support.broker import Broker, Cluster
from tests.support.stream_model import SavedModel, random_records, same_answer, serial, weighted


def read(kafka: Cluster, topic: str, decode: Callable[[bytes], Any]) -> list[Any]:
    with KafkaSource(kafka.bootstrap, [topic]) as source:
        found: list[Any] = []
        while not source.at_end():
            found += [decode(p.value) for p in source.poll(500, 0.2) if isinstance(p.value, bytes)]
        return found


class Stream:
    """A topic of records, with topics of its own for what a pipeline answers."""

    def __init__(self, kafka: Cluster) -> None:
        self.kafka = kafka
        self.topic, self.replies, self.letters = (kafka.topic(name=n) for n in ("u", "r", "d"))
        self.place = Partition(self.topic, 0)
        self.records: list[bytes] = []

    def produce(self, records: list[bytes]) -> None:
        with KafkaSink(self.kafka.bootstrap) as sink:
            sink.produce_many(self.topic, records)
        self.records += records

    def source(self) -> KafkaSource:
        return KafkaSource(self.kafka.bootstrap, [self.topic])

    def settings(self, source: KafkaSource) -> dict[str, Any]:
        to = (source.sink(), self.letters)
        return {"reply_topics": (self.replies,), "dead_letters": to, "batch_interval": 0.05}

    def check(self, graph: SavedModel, records: list[bytes], offsets: list[int]) -> None:
        """The graph and what was answered are what `records`, at `offsets`, lead to."""
        expected, answers, bad = serial(records)
        assert weighted(graph) == weighted(expected)
        replies = {r.id: r for r in read(self.kafka, self.replies, ingest.decode_reply)}
        assert replies.keys() == answers.keys()
        for id, reply in replies.items():
            assert (answers[id] is None) == (reply.error == "hops")
            assert same_answer(reply.answer, answers[id])
        letters = read(self.kafka, self.letters, ingest.decode_dead_letter)
        assert {(d.topic, d.partition, d.offset, d.value) for d in letters} == {
            (self.topic, 0, offsets[n], records[n]) for n in bad
        }


@pytest.fixture
def stream(kafka: Cluster) -> Stream:
    return Stream(kafka)


def killed_and_resumed(stream: Stream, directory: Path, rng: np.random.Generator) -> SavedModel:
    """The graph after many pipelines, each given up somewhere without a word."""
    with stream.source() as source:
        Pipeline(
            source, SavedModel(predecessors=True), directory, **stream.settings(source)
        ).close()
    while True:
        with stream.source() as source:
            pipeline = Pipeline.resume(
                directory,
                source,
                load=SavedModel.load,
                batch_size=int(rng.integers(1, 40)),
                checkpoint_operations=int(rng.integers(1, 150)),
                **stream.settings(source),
            )
            applied = [pipeline.step(drain=True) for _ in range(int(rng.integers(1, 8)))]
            graph = pipeline.graph
            assert isinstance(graph, SavedModel)
            if not applied[-1] and source.at_end():
                pipeline.close()
                return graph
            assert pipeline._checkpoints is not None
            pipeline._checkpoints.close()  # as a kill would leave it: no last checkpoint


@pytest.mark.parametrize("seed", [1, 2])
def test_crashes_lose_nothing_and_repeat_nothing(stream: Stream, tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    stream.produce(random_records(rng, 150))
    graph = killed_and_resumed(stream, tmp_path / "checkpoint", rng)
    stream.check(graph, stream.records, list(range(150)))


def test_crashes_in_a_log_with_gaps(stream: Stream, tmp_path: Path) -> None:
    """Transactions, some aborted: offsets that hold a mark, or nothing for us."""
    rng = np.random.default_rng(3)
    producer = KafkaProducer(
        bootstrap_servers=stream.kafka.bootstrap, transactional_id=str(uuid.uuid4())
    )
    producer.init_transactions()
    records: list[bytes] = []
    offsets: list[int] = []
    for some in np.array_split(np.array(random_records(rng, 120), object), 20):
        producer.begin_transaction()
        futures = [producer.send(stream.topic, record) for record in some]
        producer.flush()
        if rng.integers(3):
            producer.commit_transaction()
            records += list(some)
            offsets += [future.get().offset for future in futures]
        else:
            producer.abort_transaction()
    producer.close()
    assert offsets[-1] > len(offsets) + 10
    graph = killed_and_resumed(stream, tmp_path / "checkpoint", rng)
    stream.check(graph, records, offsets)


@pytest.mark.parametrize("follows", [False, True])
def test_behind_an_aborted_transaction_nothing_is_behind(stream: Stream, follows: bool) -> None:
    """Marks and aborted records at the end are no lag, and what is committed after them is."""
    producer = KafkaProducer(
        bootstrap_servers=stream.kafka.bootstrap, transactional_id=stream.topic
    )
    producer.init_transactions()

    def send(records: int, *, commit: bool) -> None:
        producer.begin_transaction()
        for v in range(records):
            producer.send(stream.topic, ingest.encode_row(1, v))
        producer.flush()
        (producer.commit_transaction if commit else producer.abort_transaction)()

    send(3, commit=True)
    send(5, commit=False)
    with stream.source() as source:
        pipeline = Pipeline(source, SavedModel(), **stream.settings(source))
        if follows:
            deadline = time.monotonic() + 10
            while not pipeline.operations or any(pipeline.lag().values()):
                assert time.monotonic() < deadline, pipeline.lag()
                pipeline.step()
        else:
            pipeline.run(until="end")
        assert pipeline.lag() == {stream.place: 0}
        send(4, commit=True)
        send(1, commit=False)
        deadline = time.monotonic() + 10
        while not source.known_ends()[stream.place] > 3:
            assert time.monotonic() < deadline
            source.poll(1, 0.1)
        assert pipeline.lag()[stream.place] > 0
    producer.close()


def test_its_own_cluster_gets_replies_and_dead_letters(stream: Stream) -> None:
    """Topics are made where there are none, without a word from the caller."""
    with stream.source() as source:
        stream.produce([ingest.encode_query("q", Kind.DEGREE, 1), b"\xc1"])
        Pipeline(source, SavedModel()).run(until="end")
    replies = read(stream.kafka, "replies", ingest.decode_reply)
    assert "q" in [reply.id for reply in replies]
    letters = read(stream.kafka, "dead-letters", ingest.decode_dead_letter)
    assert (stream.topic, 1) in [(letter.topic, letter.offset) for letter in letters]


def test_a_reply_that_the_brokers_do_not_take_is_cut(stream: Stream) -> None:
    ids = np.arange(100_000)
    stream.produce(
        [
            *(ingest.encode_updates(np.zeros(len(some), int), some) for some in np.split(ids, 2)),
            ingest.encode_query("small", Kind.DEGREE, 0),
            ingest.encode_query("large", Kind.SUCCESSORS, 0),
            ingest.encode_query("and on", Kind.DEGREE, 0),
        ]
    )
    with stream.source() as source:
        Pipeline(source, SavedModel(), **stream.settings(source)).run(until="end")
    replies = read(stream.kafka, stream.replies, ingest.decode_reply)
    by_id = {reply.id: reply for reply in replies}
    assert by_id.keys() == {"small", "large", "and on"}
    large = by_id["large"]
    assert large.more
    assert isinstance(large.answer, lpma.Neighbors)
    assert 1000 < large.rows < len(ids)
    assert large.answer.ids.tolist() == ids[: large.rows].tolist()
    assert by_id["small"].answer == by_id["and on"].answer == [len(ids)]


def test_a_dead_letter_that_the_brokers_do_not_take_is_cut(stream: Stream, tmp_path: Path) -> None:
    stream.letters = stream.kafka.topic(name="d", max_message_bytes="2000")
    bad = [b"\xc1" * size for size in (100, 60_000, 1_000_000, 5000)]
    stream.produce([ingest.encode_row(1, 2), *bad, ingest.encode_row(1, 3)])
    with stream.source() as source:
        pipeline = Pipeline(source, SavedModel(), tmp_path / "c", **stream.settings(source))
        with pipeline:
            pipeline.run(until="end")
        assert weighted(pipeline.graph) == {(1, 2): 1, (1, 3): 1}
    found = read(stream.kafka, stream.letters, ingest.decode_dead_letter)
    letters = {letter.offset: letter for letter in found}
    assert letters.keys() == {1, 2, 3, 4}
    for offset, record in enumerate(bad, 1):
        letter = letters[offset]
        assert (letter.size, letter.sha256) == (len(record), hashlib.sha256(record).digest())
        assert len(letter.value) >= min(len(record), 400)


def test_a_resume_refuses_what_is_not_the_log_it_was(stream: Stream, tmp_path: Path) -> None:
    stream.produce(random_records(np.random.default_rng(1), 60))
    with stream.source() as source:
        pipeline = Pipeline(source, SavedModel(True), tmp_path, **stream.settings(source))
        pipeline.run(until=20)
        pipeline.close()

    def resume() -> None:
        with stream.source() as source:
            Pipeline.resume(tmp_path, source, load=SavedModel.load, **stream.settings(source))

    stream.kafka.trim(stream.topic, 0, 50)
    with pytest.raises(OffsetError, match="was trimmed, the first kept is 50"):
        resume()
    stream.kafka.delete(stream.topic)
    stream.kafka.make(stream.topic)
    stream.produce(random_records(np.random.default_rng(1), 60))
    with pytest.raises(IdentityError, match="created again"):
        resume()


def polls_nothing(source: KafkaSource, limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        assert source.poll(10, 0.1) == []


# Trouble -------------------------------------------------------------------------------------


def test_after_any_error_a_new_consumer_goes_on_where_it_was(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors in the middle of a poll, after kafka-python's own position has moved."""
    rng = np.random.default_rng(1)
    monkeypatch.setattr(trouble, "FIRST_BACKOFF_S", 0.0)
    monkeypatch.setattr(trouble, "MAX_BACKOFF_S", 0.01)
    poll = Reader.poll
    failures = iter([ValueError("bytes"), AssertionError(), RuntimeError("StopIteration")] * 4)

    def failing(reader: Reader, max_records: int, timeout: float) -> Any:
        polled = poll(reader, max_records, timeout)
        if polled and rng.integers(2) and (error := next(failures, None)):
            raise error
        return polled

    monkeypatch.setattr(Reader, "poll", failing)
    stream.produce([f"{n}".encode() for n in range(500)])
    with stream.source() as source:
        found = []
        while not source.at_end():
            found += source.poll(10, 1.0)
    assert next(failures, None) is None
    assert [p.offset for p in found] == list(range(500))
    assert [p.value for p in found] == stream.records


def test_damage_that_stays_is_an_error_in_the_end(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(reader: Reader, max_records: int, timeout: float) -> Any:
        raise ValueError("Record batch at offset 7 failed crc check")

    monkeypatch.setattr(Reader, "poll", damaged)
    source = KafkaSource(stream.kafka.bootstrap, [stream.topic], patience=1.0)
    with source, pytest.raises(ingest.SourceError, match="batch at offset 7 failed crc"):
        polls_nothing(source, 20)


@pytest.fixture
def hurt(broker: Broker) -> Iterator[tuple[Broker, Stream]]:
    with Cluster(broker.bootstrap) as cluster:
        yield broker, Stream(cluster)


@pytest.mark.slow
def test_restarts_and_stalls_of_the_broker(hurt: tuple[Broker, Stream], tmp_path: Path) -> None:
    """A pipeline over a broker that is stopped, killed and stalled while records come in."""
    broker, stream = hurt
    records = random_records(np.random.default_rng(5), 400)
    chunks = [records[i : i + 100] for i in range(0, 400, 100)]
    finished = threading.Event()

    def torment() -> None:
        try:
            stream.produce(chunks[0])
            broker.stop()
            broker.start()
            stream.produce(chunks[1])
            broker.stall()
            time.sleep(2.0)
            broker.resume()
            stream.produce(chunks[2])
            broker.kill()
            broker.start()
            stream.produce(chunks[3])
        finally:
            finished.set()

    with stream.source() as source:
        graph = SavedModel(predecessors=True)
        pipeline = Pipeline(source, graph, tmp_path / "c", **stream.settings(source))
        tormentor = threading.Thread(target=torment)
        tormentor.start()
        try:
            pipeline.run(lambda p: finished.is_set() and p.source.at_end())
        finally:
            tormentor.join()
        pipeline.close()
    stream.check(graph, records, list(range(400)))


@pytest.mark.slow
def test_a_broker_that_stays_away_is_an_error_after_the_patience(
    hurt: tuple[Broker, Stream],
) -> None:
    broker, stream = hurt
    for hurt_it in (broker.stall, broker.kill):
        with KafkaSource(broker.bootstrap, [stream.topic], patience=3.0) as source:
            assert source.poll(10, 0.1) == []
            hurt_it()
            with pytest.raises(ingest.SourceError, match=f"{stream.topic} at {broker.bootstrap}"):
                polls_nothing(source, 60)
        broker.kill()
        broker.start()
