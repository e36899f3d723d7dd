"""Offsets told to a consumer group: what Kafka's own tool says of it, and that nothing depends on
it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

import ingest
import lpma
from ingest import KafkaSink, KafkaSource, Partition, Pipeline, SourceError
from ingest.sources.kafka import group as groups
from tests.support.broker import Cluster, group_lags
from tests.support.events import events_named
from tests.support.waiting import HANGS_S, wait_for


def rows(count: int, start: int = 0) -> list[bytes]:
    return [ingest.encode_row(start + i, start + i + 1) for i in range(count)]


def produce(kafka: Cluster, topic: str, records: list[bytes], number: int = 0) -> None:
    with KafkaSink(kafka.bootstrap, patience=HANGS_S) as sink:
        sink.produce_many(topic, records, number)


def overwrite(kafka: Cluster, group: str, place: Partition, offset: int) -> None:
    """Let the group say something else."""
    consumer: Any = KafkaConsumer(
        bootstrap_servers=kafka.bootstrap, group_id=group, enable_auto_commit=False
    )
    consumer.commit({TopicPartition(*place): OffsetAndMetadata(offset)})
    consumer.close(autocommit=False)


def test_the_tool_shows_the_lag_that_the_pipeline_reports(kafka: Cluster, tmp_path: Path) -> None:
    topic, group = kafka.topic(2), "lag-of-a-stream"
    produce(kafka, topic, rows(30))
    produce(kafka, topic, rows(20), 1)
    state = tmp_path / "state"
    with (
        KafkaSource(kafka.bootstrap, [topic], group=group) as source,
        Pipeline(source, lpma.Graph(device="cpu"), state, batch_size=12) as pipeline,
    ):
        pipeline.run(24)
        reported = {(p.topic, p.number): lag for p, lag in pipeline.stats.lag().items()}
    assert sum(reported.values()) == 26
    assert group_lags(kafka.bootstrap, group) == reported
    with (
        KafkaSource(kafka.bootstrap, [topic], group=group) as source,
        Pipeline.resume(state, source, device="cpu") as pipeline,
    ):
        pipeline.run("end")
    assert group_lags(kafka.bootstrap, group) == {(topic, 0): 0, (topic, 1): 0}


def test_marks_of_transactions_are_no_lag(kafka: Cluster, tmp_path: Path) -> None:
    topic, group = kafka.topic(), "behind-marks"
    with (
        KafkaSink(kafka.bootstrap, patience=HANGS_S) as sink,
        sink.in_transactions("writes-marks") as writer,
    ):
        writer.produce_many(topic, rows(5), 0)
    with (
        KafkaSource(kafka.bootstrap, [topic], group=group) as source,
        Pipeline(source, lpma.Graph(device="cpu"), tmp_path / "state") as pipeline,
    ):
        assert pipeline.run("end") == 5
    assert group_lags(kafka.bootstrap, group) == {(topic, 0): 0}


@pytest.mark.parametrize("offset", [0, 3, 10_000])
def test_a_group_that_says_something_else_changes_nothing(
    kafka: Cluster, tmp_path: Path, offset: int
) -> None:
    topic, group = kafka.topic(), f"overwritten-{offset}"
    produce(kafka, topic, rows(10))

    def source() -> KafkaSource:
        return KafkaSource(kafka.bootstrap, [topic], group=group)

    with source() as first, Pipeline(first, lpma.Graph(device="cpu"), tmp_path / "s") as pipeline:
        pipeline.run(4)
    overwrite(kafka, group, Partition(topic, 0), offset)
    with source() as second, Pipeline.resume(tmp_path / "s", second, device="cpu") as pipeline:
        assert pipeline.run("end") == 6
        assert pipeline.graph.num_edges == 10
    assert group_lags(kafka.bootstrap, group) == {(topic, 0): 0}


def test_a_group_with_members_is_told_of_and_stops_nothing(
    kafka: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topic, group = kafka.topic(), "has-members"
    produce(kafka, topic, rows(10))
    member: Any = KafkaConsumer(topic, bootstrap_servers=kafka.bootstrap, group_id=group)
    try:
        wait_for(lambda: member.poll(100) is not None and bool(member.assignment()))
        with (
            caplog.at_level(logging.WARNING, "lpma.ingest"),
            KafkaSource(kafka.bootstrap, [topic], group=group) as source,
            Pipeline(source, lpma.Graph(device="cpu"), tmp_path / "state") as pipeline,
        ):
            assert pipeline.run("end") == 10
        (event,) = events_named(caplog, "group not told")
        assert event.fields["group"] == group
        assert "members" in event.fields["error"]
    finally:
        member.close()


def test_what_could_not_be_told_is_told_later(
    kafka: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, group, commit, tries = kafka.topic(), "told-later", groups.GroupOffsets._commit, []
    produce(kafka, topic, rows(9))

    def fails_first(self: groups.GroupOffsets, positions: Any) -> None:
        tries.append(dict(positions))
        if len(tries) < 3:
            raise SourceError("away")
        commit(self, positions)

    monkeypatch.setattr(groups.GroupOffsets, "_commit", fails_first)
    monkeypatch.setattr(groups, "RETRY_S", 0.0)
    told = groups.GroupOffsets(kafka.bootstrap, group, {})
    told.tell({Partition(topic, 0): 7})
    wait_for(lambda: len(tries) >= 3)
    told.close()
    assert group_lags(kafka.bootstrap, group) == {(topic, 0): 2}


def test_names_of_groups() -> None:
    with pytest.raises(SourceError, match=r"group: "):
        KafkaSource("127.0.0.1:1", ["updates"], group="no blanks", patience=0)
