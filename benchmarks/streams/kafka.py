"""Topics of a real Kafka into a graph: records a second, by form, and where the time goes.

What is measured, and beside what, is that of `rows`; the loops that one writes by hand read with
kafka-python's consumer. The brokers are those of KAFKA_BOOTSTRAP; without it one is started, as for
the tests; it shares the cores.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import ingest

from ..report import Report, Setting
from .rows import POLL, Topic, compared

WAIT_MS = 10_000  # for the next record of a topic that holds it


def kafka(setting: Setting) -> Report:
    report = Report("kafka", "million operations a second from a broker, median")
    num_rows, num_columnar = (5_000, 40_000) if setting.quick else (300_000, 4_000_000)
    try:
        with brokers() as bootstrap:
            compared(report, setting, partial(_filled, bootstrap), num_rows, num_columnar)
    except (NoKafka, ingest.SourceError) as error:
        print(f"kafka: skipped, {error}", file=sys.stderr)
        report.notes.append(f"Skipped: {error}")
        return report
    report.notes.append("The broker and the client's own thread share the cores.")
    return report


@contextmanager
def _filled(bootstrap: str, records: list[bytes]) -> Iterator[Topic]:
    from kafka import KafkaConsumer, TopicPartition

    topic = f"benchmark-{uuid.uuid4().hex[:12]}"
    with ingest.KafkaSink(bootstrap) as sink:
        sink.create_topic(topic)
        sink.produce_many(topic, records, 0)

    def values() -> Iterator[bytes]:
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
        place, left = TopicPartition(topic, 0), len(records)
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        while left:
            polled = consumer.poll(WAIT_MS, POLL).get(place, ())
            if not polled:
                raise ingest.SourceError(f"{bootstrap}: {left} records of {topic} do not come")
            left -= len(polled)
            yield from (record.value for record in polled)
        consumer.close(autocommit=False)

    yield Topic(lambda: ingest.KafkaSource(bootstrap, [topic]), values)


class NoKafka(Exception):
    """No broker runs, and none can be started."""


@contextmanager
def brokers() -> Iterator[str]:
    """The bootstrap of running brokers, or of one of our own."""
    if running := os.environ.get("KAFKA_BOOTSTRAP"):
        yield running
        return
    try:  # at hand in a checkout only
        tests = importlib.import_module("tests.support.broker")
    except ImportError as error:
        raise NoKafka(f"no brokers: set KAFKA_BOOTSTRAP ({error})") from None
    with tempfile.TemporaryDirectory() as directory, tests.Broker(Path(directory)) as broker:
        try:
            broker.start()
        except tests.Unavailable as error:
            raise NoKafka(str(error)) from None
        yield broker.bootstrap
