"""A shard of a topic of Kafka, whose markers come partition by partition."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ingest import KafkaSink, Partition
from ingest.cluster import epoch_source
from ingest.cluster.shard import Shard
from ingest.cluster.spec import ShardSpec
from ingest.formats.markers import encode_marker
from tests.support.broker import Cluster
from tests.support.epochs import before, edges_of, random_record, replayed
from tests.support.waiting import HANGS_S


def test_epochs_of_a_topic(kafka: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed, given up, and closed again by the shard that goes on; the stream is read whole."""
    monkeypatch.setattr(epoch_source, "ALIGN_S", HANGS_S)
    topic, queries = kafka.topic(4), kafka.topic(4)
    own = [Partition(topic, number) for number in (1, 3)]
    rng = np.random.default_rng(2)
    stream: dict[Partition, list[bytes]] = {partition: [] for partition in own}
    spec = ShardSpec(
        f"kafka://{kafka.bootstrap}", None, 1, 2, str(tmp_path), topic=topic, queries=queries
    )
    with KafkaSink(kafka.bootstrap) as sink:

        def write(partition: Partition, *records: bytes) -> None:
            sink.produce_parts({partition: list(records)})
            stream[partition] += records

        def some(partition: Partition) -> list[bytes]:
            return [random_record(rng, partition.number, 4) for _ in range(20)]

        shard = Shard(spec)
        shard.expect(5)
        shard.expect(7)
        shard.start()
        for partition in own:
            write(partition, *some(partition), encode_marker(5), *some(partition))
        assert shard.closed(5, HANGS_S) is not None
        write(own[0], *some(own[0]), encode_marker(6), *some(own[0]))
        with monkeypatch.context() as patch:
            patch.setattr(epoch_source, "ALIGN_S", 0.1)
            assert shard.closed(6, HANGS_S) is None
        for partition in own:
            write(partition, *some(partition), encode_marker(7))
        assert shard.closed(7, HANGS_S) is not None
        for epoch in (5, 7):
            cut = before(stream, epoch)
            assert cut is not None
            assert edges_of(shard.worker(epoch).part) == replayed(cut)
        shard.close()
        again = Shard(spec)
        again.expect(7)
        again.expect(8)
        again.start()
        assert again.closed(7, HANGS_S) is not None
        for partition in own:
            write(partition, *some(partition), encode_marker(8))
        assert again.closed(8, HANGS_S) is not None
        assert edges_of(again.worker(8).part) == replayed(stream)
        assert edges_of(again.worker(7).part) == edges_of(shard.worker(7).part)
        again.close()
        assert again.status().problem is None


def test_what_lies_behind_a_transaction_lets_an_epoch_go(
    kafka: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partition that ends with the mark of a transaction is at its end, although its end lies
    behind its last record."""
    from kafka import KafkaProducer

    monkeypatch.setattr(epoch_source, "ALIGN_S", 0.1)
    topic, queries = kafka.topic(2), kafka.topic(2)
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id=topic)
    producer.init_transactions()
    rng = np.random.default_rng(2)
    shard = Shard(
        ShardSpec(
            f"kafka://{kafka.bootstrap}", None, 0, 1, str(tmp_path), topic=topic, queries=queries
        )
    )
    producer.begin_transaction()
    producer.send(topic, random_record(rng, 1, 2), partition=1)
    producer.commit_transaction()
    producer.close()
    with KafkaSink(kafka.bootstrap) as sink:
        sink.produce_many(topic, [encode_marker(5), random_record(rng, 0, 2)], 0)
    shard.start()
    assert shard.closed(5, HANGS_S) is None
    assert shard.status().state == "running"
    assert shard.status().highest_epoch == 5
    shard.close()
