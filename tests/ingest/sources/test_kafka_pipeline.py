"""The pipeline on a real Kafka, queries to replies and back from crashes, against the model."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kafka import KafkaProducer

import ingest
from ingest import KafkaSink, KafkaSource, Partition, Pipeline
from ingest.sources.kafka.outage import Outage
from tests.support.broker import Broker, Cluster
from tests.support.stream_model import SavedModel, random_records, same_answer, serial, weighted
from tests.support.waiting import HANGS_S, wait_for


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
        with KafkaSink(self.kafka.bootstrap, patience=HANGS_S) as sink:
            sink.produce_many(self.topic, records)
        self.records += records

    def source(self, **options: Any) -> KafkaSource:
        return KafkaSource(self.kafka.bootstrap, [self.topic], **options)

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


def test_crashes_lose_nothing_and_repeat_nothing(stream: Stream, tmp_path: Path) -> None:
    """In a log with gaps: offsets that hold a transaction's mark, or what was aborted."""
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
            wait_for(lambda: steps_to_where_nothing_is_behind(pipeline))
        else:
            pipeline.run(until="end")
        assert pipeline.stats.lag() == {stream.place: 0}
        send(4, commit=True)
        send(1, commit=False)
        wait_for(lambda: knows_of_more_after_a_poll(source, stream.place))
        assert pipeline.stats.lag()[stream.place] > 0
    producer.close()


def steps_to_where_nothing_is_behind(pipeline: Pipeline) -> bool:
    pipeline.step()
    lag = pipeline.stats.lag()  # empty until the broker has said where the ends are
    return bool(pipeline.stats.operations and lag) and not any(lag.values())


def knows_of_more_after_a_poll(source: KafkaSource, place: Partition) -> bool:
    source.poll(1, 0.1)
    return source.known_ends()[place] > 3


@pytest.fixture
def hurt(broker: Broker) -> Iterator[tuple[Broker, Stream]]:
    with Cluster(broker.bootstrap) as cluster:
        yield broker, Stream(cluster)


def test_restarts_and_stalls_of_the_broker(
    hurt: tuple[Broker, Stream], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipeline over a broker that is stopped, stalled and killed while records are on their way,
    each time until the source or its sink has noticed."""
    broker, stream = hurt
    records = random_records(np.random.default_rng(5), 400)
    # A loaded machine may take longer to connect than a source allows; the next try is as slow.
    for name in (
        "sink.CONNECT_TIMEOUT_S",
        "source._CONNECT_TIMEOUT_S",
        "source.RECONNECT_TIMEOUT_S",
    ):
        monkeypatch.setattr(f"ingest.sources.kafka.{name}", HANGS_S)
    failures, fails = [0], Outage.fails

    def failing(outage: Outage, *given: Any, **named: Any) -> None:
        failures[0] += 1
        fails(outage, *given, **named)

    monkeypatch.setattr(Outage, "fails", failing)

    over = threading.Event()

    def torment(source: KafkaSource) -> None:
        def all_read() -> bool:
            assert not over.is_set(), "the pipeline has ended"
            return source.positions()[stream.place] == len(stream.records)

        for at, hurt_it, heal in (
            (0, broker.stop, broker.start),
            (130, broker.stall, broker.resume),
            (260, broker.kill, broker.start),
        ):
            stream.produce(records[at : at + 70])
            wait_for(all_read)
            stream.produce(records[at + 70 : at + 130])
            before = failures[0]
            hurt_it()
            wait_for(lambda: failures[0] > before)  # noqa: B023 - called in this round alone
            heal()
        stream.produce(records[390:])
        wait_for(all_read)

    with stream.source(patience=HANGS_S) as source:
        graph = SavedModel(predecessors=True)
        pipeline = Pipeline(source, graph, tmp_path / "c", **stream.settings(source))
        with ThreadPoolExecutor(1) as pool:
            tormenting = pool.submit(torment, source)
            try:
                pipeline.run(lambda p: tormenting.done() and p.source.at_end())
            finally:
                over.set()
            tormenting.result()
        pipeline.close()
    stream.check(graph, records, list(range(400)))
