"""A topic that is not the one that was read any more: rolled back and written again, or trimmed."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

import ingest
from ingest import KafkaSink, KafkaSource, OffsetError, Partition, Pipeline
from ingest.errors import RewrittenError
from tests.support.broker import Cluster
from tests.support.events import events_named
from tests.support.fault_broker import FaultBroker
from tests.support.fault_log import encoded
from tests.support.fault_stream import UPDATES, Stream
from tests.support.stream_model import SavedModel, weighted
from tests.support.waiting import HANGS_S

pytestmark = pytest.mark.system


def edges(first: int, count: int) -> list[bytes]:
    return [ingest.encode_row(1, first + i) for i in range(count)]


def put(broker: FaultBroker, records: list[bytes], later_ms: int = 0) -> None:
    for record in records:
        broker.append("updates", encoded([record], later_ms))


@pytest.mark.parametrize("operations", [1, 10**6])
@pytest.mark.parametrize("to", [0, 30, 49])
def test_a_topic_written_again_is_refused(stream: Stream, to: int, operations: int) -> None:
    """At a resume, by the checkpoint's mark, or by the journal's: that of the last record of a
    poll, of which the first is short."""
    stream.settings |= {"checkpoint_operations": operations}
    put(stream.broker, edges(0, 50))
    stream.sent = edges(0, 50)
    with stream.read_to_end():
        pass
    stream.broker.roll_back("updates", to)
    put(stream.broker, edges(100, 90))
    with (
        pytest.raises(RewrittenError, match=r"updates/0: offset (31|49) holds another"),
        stream.reading(),
    ):
        pass


def test_the_same_bytes_at_another_time_are_another_record(stream: Stream) -> None:
    record = ingest.encode_row(1, 2)
    stream.sent = [record] * 9
    put(stream.broker, stream.sent)
    with stream.read_to_end():
        pass
    stream.broker.roll_back("updates", 3)
    put(stream.broker, [record] * 20, later_ms=1)
    stream.check_refused(RewrittenError, "offset 8 ")


@pytest.mark.parametrize("rewritten", [False, True])
def test_a_topic_written_again_during_an_outage_is_refused(stream: Stream, rewritten: bool) -> None:
    """Where kafka-python's consumer is lost: a new one knows no epoch of what was read."""
    stream.sent = edges(0, 50)
    put(stream.broker, stream.sent)
    with stream.read_to_end() as pipeline:
        stream.broker.stop()
        more = edges(100, 40)
        if rewritten:
            stream.broker.roll_back("updates", 20)
            put(stream.broker, [*edges(200, 30), *more])
        else:
            put(stream.broker, more)
            stream.sent = [*stream.sent, *more]
        pipeline.source._drop()  # type: ignore[attr-defined]
        stream.broker.start()
        if rewritten:
            with pytest.raises(RewrittenError, match="offset 49 "):
                pipeline.run("end")
        else:
            stream.run_to_end(pipeline)
            stream.check(pipeline)


def test_what_was_compacted_away_cannot_be_told(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    """Behind the last record read there is another; before the next is read nothing is lost."""
    stream.settings |= {"checkpoint_operations": 1}
    stream.sent = edges(0, 50)
    put(stream.broker, stream.sent)
    with stream.read_to_end() as pipeline:
        pipeline.checkpoint_now()
    more = edges(50, 5)
    put(stream.broker, more)
    log = stream.broker.topics["updates"].logs[0]
    log.batches = [batch for batch in log.batches if batch.first != 49]
    with caplog.at_level(logging.WARNING, "lpma.ingest"), stream.reading() as pipeline:
        (event,) = events_named(caplog, "unchecked")
        assert event.fields["offset"] == 49
        stream.sent = [*stream.sent, *more]
        stream.run_to_end(pipeline)
        assert weighted(pipeline.graph) == {(1, v): 1.0 for v in range(55)}


def test_a_gap_of_a_topic_is_accepted(stream: Stream) -> None:
    stream.sent = edges(0, 50)
    put(stream.broker, stream.sent)
    with stream.read_to_end() as pipeline:
        pipeline.checkpoint_now()
    put(stream.broker, edges(50, 50))
    stream.broker.trim("updates", 80)
    stream.check_refused(OffsetError, r"offset 50 was trimmed.*accept_gap=true")
    stream.settings["accept_gap"] = True
    with stream.reading() as pipeline:
        assert [(gap.partition, gap.start, gap.stop) for gap in pipeline.stats.gaps] == [
            (UPDATES, 50, 80)
        ]
    del stream.settings["accept_gap"]
    stream.sent = edges(0, 100)
    with stream.read_to_end() as pipeline:
        assert {v for _, v in weighted(pipeline.graph)} == {*range(50), *range(80, 100)}
        assert [one.kind for one in pipeline.stats.accepted] == ["gap"]


# On a real broker ----------------------------------------------------------------------------


def read_on(source: Any, directory: Path, **options: Any) -> Pipeline:
    return Pipeline.resume(directory, source, load=SavedModel.load, **options)


def test_resumes_of_a_real_topic(kafka: Cluster, tmp_path: Path) -> None:
    """Nothing is refused that is the same: several partitions, transactions that ended, a topic
    trimmed behind and before the position."""
    topic, directory = kafka.topic(3), tmp_path / "c"
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id=topic)
    producer.init_transactions()
    with KafkaSink(kafka.bootstrap) as sink:
        for number in range(3):
            sink.produce_many(topic, edges(100 * number, 40), number)
        for commit in (True, False):
            producer.begin_transaction()
            for record in edges(1000 if commit else 2000, 20):
                producer.send(topic, record, partition=1)
            producer.commit_transaction() if commit else producer.abort_transaction()
        expected = {*range(40), *range(100, 140), *range(200, 240), *range(1000, 1020)}
        with KafkaSource(kafka.bootstrap, [topic]) as source:
            pipeline = Pipeline(source, SavedModel(), directory, batch_size=7, replies=print)
            pipeline.run("end")
            assert {v for _, v in weighted(pipeline.graph)} == expected
            pipeline.close(checkpoint=False)
        for close in (False, True, True):
            with KafkaSource(kafka.bootstrap, [topic]) as source:
                pipeline = read_on(source, directory)
                pipeline.run("end")
                assert {v for _, v in weighted(pipeline.graph)} == expected
                pipeline.close(checkpoint=close)
        kafka.trim(topic, 0, 40)
        sink.produce_many(topic, edges(300, 10), 2)
        kafka.trim(topic, 2, 45)
        with KafkaSource(kafka.bootstrap, [topic]) as source:
            with pytest.raises(OffsetError, match="offset 40 was trimmed, the first kept is 45"):
                read_on(source, directory)
            pipeline = read_on(source, directory, accept_gap=True)
            assert [str(gap) for gap in pipeline.stats.gaps] == [
                f"{topic}/2: 5 records are gone, 40 … 44"
            ]
            pipeline.run("end")
            assert {v for _, v in weighted(pipeline.graph)} == {*expected, *range(305, 310)}
            pipeline.close()
        with KafkaSource(kafka.bootstrap, [topic]) as source:
            found = source.records_at({Partition(topic, 1): 3, Partition(topic, 2): 44})
            assert {(p.number, r.offset, r.value) for p, r in found.items()} == {
                (1, 3, edges(103, 1)[0])
            }
            assert source.first_offsets() == {
                Partition(topic, n): o for n, o in ((0, 40), (1, 0), (2, 45))
            }
            assert source.positions() == source.first_offsets()
            assert len(source.poll(500, HANGS_S)) > 0


def test_looking_at_records_leaves_what_is_read_next(kafka: Cluster) -> None:
    """Whatever had been fetched of any partition by then."""
    topic = kafka.topic(4)
    partitions = [Partition(topic, number) for number in range(4)]
    with KafkaSink(kafka.bootstrap) as sink, KafkaSource(kafka.bootstrap, [topic]) as source:
        for partition in partitions:
            sink.produce_many(topic, edges(0, 40), partition.number)
        for round in range(8):
            source.seek(dict.fromkeys(partitions, 30))
            source.poll(round, 0.2) if round % 2 else None
            at = source.positions()
            asked = dict.fromkeys(partitions[: 1 + round % 4], 29)
            assert source.records_at(asked).keys() == asked.keys()
            assert source.positions() == at
            found: list[tuple[Partition, int]] = []
            deadline = time.monotonic() + HANGS_S
            while not source.at_end():
                assert time.monotonic() < deadline, f"stands at {source.positions()}"
                found += [(r.partition, r.offset) for r in source.poll(7, 0.2)]
            assert sorted(found) == [(p, n) for p in partitions for n in range(at[p], 40)]
