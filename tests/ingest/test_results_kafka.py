"""Results in a Kafka: in the topic each once, whatever happens to the pipeline that writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import KafkaSink, KafkaSource, Partition, Pipeline
from ingest.errors import SourceError
from ingest.results.reading import results_in
from tests.conftest import missing
from tests.ingest.test_results import TRACK, Reader
from tests.support.broker import Broker, Cluster, Unavailable


def published(kafka: Cluster, topic: str) -> list[ingest.Result]:
    with KafkaSource(kafka.bootstrap, [topic]) as source:
        return list(results_in(source))


def test_each_result_is_there_once_after_crashes(kafka: Cluster, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    topic, results = kafka.topic(name="u"), kafka.topic(name="results", partitions=2)
    with KafkaSink(kafka.bootstrap) as sink:
        for _ in range(40):
            deletes = (rng.random(6) < 0.3).astype(np.uint8)
            src, dst = rng.integers(0, 12, (2, 6))
            sink.produce_many(topic, [ingest.encode_updates(src, dst, kind=deletes)])
    graph: Any = None
    for crash in range(8):
        with KafkaSource(kafka.bootstrap, [topic]) as source:
            given: dict[str, Any] = {
                "track": TRACK, "alerts": ["core >= 2"], "results": (source.sink(), results),
                "batch_size": 10, "checkpoint_operations": 70,
            }  # fmt: skip
            if crash == 0:
                first = lpma.Graph(device="cpu")
                pipeline = Pipeline(source, first, tmp_path / "c", **given)
            else:
                pipeline = Pipeline.resume(tmp_path / "c", source, device="cpu", **given)
            pipeline.run(30 if crash < 7 else "end")
            graph = pipeline.graph
            pipeline.close(checkpoint=False)  # as a kill would leave it
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
            old._producer.send(topic, b"half", partition=0).get(10)
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


def test_a_transaction_log_that_cannot_be_made_is_told_with_its_setting(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "kafka", "transaction.state.log.replication.factor=3\n")
    try:
        broker.start()
    except Unavailable as error:
        missing("kafka", str(error))
    expected = pytest.raises(SourceError, match=r"transaction\.state\.log\.replication\.factor")
    with broker, KafkaSink(broker.bootstrap, patience=4, transactional_id="w") as sink, expected:
        sink.partitions_of("results")
