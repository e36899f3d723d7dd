"""Compressed topics: all codecs of Kafka, in and out; one without its library is no outage."""

from __future__ import annotations

import kafka.codec
import pytest
from kafka.record import MemoryRecordsBuilder

import ingest
from ingest import KafkaSink, KafkaSource, SourceError
from ingest.sources.kafka.client import codecs
from tests.support.broker import Cluster
from tests.support.fault_broker import FaultBroker
from tests.support.fault_stream import Stream

CODECS = ("gzip", "lz4", "snappy", "zstd")
GZIP = 1


@pytest.mark.parametrize("name", CODECS)
def test_what_is_written_compressed_is_read(name: str, kafka: Cluster) -> None:
    assert codecs()[name], f"the library of {name} belongs to the tests' requirements"
    topic = kafka.topic()
    sent = [ingest.encode_row(n, n + 1) for n in range(3000)]
    with KafkaSink(kafka.bootstrap, settings={"compression_type": name}) as sink:
        sink.produce_many(topic, sent, partition=0)
    read: list[bytes] = []
    settings = {"compression_type": name}  # one file of settings serves both
    with KafkaSource(kafka.bootstrap, [topic], settings=settings) as source:
        while not source.at_end():
            read += [record.value for record in source.poll(1000, 0.5)]  # type: ignore[misc]
    assert read == sent


@pytest.mark.system
def test_a_codec_that_is_missing_is_an_error_at_once(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not an outage, in which the same is asked for a minute: no answer will be another."""
    batch = MemoryRecordsBuilder(magic=2, compression_type=GZIP, batch_size=1 << 20)
    for _ in range(100):  # a batch that compression makes no smaller is left as it is
        batch.append(timestamp=1, key=None, value=ingest.encode_row(1, 2))
    batch.close()
    stream.broker.append("updates", bytes(batch.buffer()))
    monkeypatch.setattr(kafka.codec, "has_gzip", lambda: False)
    with KafkaSource(stream.broker.bootstrap, ["updates"], patience=3600) as source:

        def read() -> None:
            while not source.at_end():
                source.poll(10, 0.2)

        with pytest.raises(SourceError, match=r"updates at .*gzip.*lpma-graph\[kafka\]"):
            read()


@pytest.mark.system
def test_what_cannot_be_written_is_refused_before_a_broker_is_asked(
    fault_broker: FaultBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka.codec, "has_zstd", lambda: False)
    with pytest.raises(SourceError, match=r"compression_type: 'zstd' .*lpma-graph\[kafka\]"):
        KafkaSink(fault_broker.bootstrap, settings={"compression_type": "zstd"})
    with pytest.raises(SourceError, match="'lzma' is none of gzip, lz4, snappy, zstd"):
        KafkaSink(fault_broker.bootstrap, settings={"compression_type": "lzma"})
