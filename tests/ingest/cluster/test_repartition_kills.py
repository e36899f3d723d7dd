"""Repartitioning, killed at any point and resumed, writes what the stream says: once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

import ingest
from ingest import Partition, Repartition, SourceError, SqliteLog
from ingest.cluster import repartition as module
from ingest.formats.markers import marker_of
from ingest.sources import Polled
from tests.conftest import soak
from tests.ingest.cluster.repartitioning import (
    P,
    Torn,
    fresh,
    one_of,
    polled_of,
    sharded,
    whole,
    without_times,
)
from tests.support.kills import Ended, drawn, run
from tests.support.shards import Content, applied, content, joined, turned_round
from tests.support.stream_model import random_records
from tests.support.ticks import Ticks

if TYPE_CHECKING:
    from tests.support.broker import Cluster


def fill(log: SqliteLog, records: list[bytes], partitions: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    log.create_topic("updates", partitions)
    for start in range(0, len(records), 7):
        number = int(rng.integers(partitions))
        log.produce_many("updates", records[start : start + 7], number)


def stream(seed: int, count: int) -> list[bytes]:
    """Records of every form; some from producers, that send some of theirs twice."""
    rng = np.random.default_rng(seed)
    records = random_records(rng, count, vertices=30)
    sent: list[bytes] = []
    for number in range(count // 4):
        u, v = (int(x) for x in rng.integers(0, 30, 2))
        source = f"shop-{rng.integers(3)}"
        sent.append(ingest.encode_row(u, v, 0.5, producer=source, seq=number))
        if rng.random() < 0.3:
            sent.append(sent[int(rng.integers(len(sent)))])
    at = np.sort(rng.integers(0, count, len(sent)))
    for place, record in reversed(list(zip(at.tolist(), sent, strict=True))):
        records.insert(place, record)
    return records


def work(log: str, directory: Path, torn: bool, directed: bool) -> None:
    """Repartition all of "updates" to "split", in small chunks, with an epoch after every few."""
    module.CHUNK_BYTES, module.POLL_RECORDS = 600, 6
    cast("Any", module).time = Ticks()
    kind = Torn if torn else SqliteLog
    with (
        SqliteLog(log, topics=["updates"]) as source,
        kind(log) as sink,
        Repartition(
            source, sink, "split", directory, queries="asked", partitions=P, directed=directed,
            predecessors=True, epoch_interval_s=4.0,
        ) as task,
    ):  # fmt: skip
        task.run()


def killed_until_done(work: Any, unbroken: Ended, points: Sequence[str], seed: int) -> None:
    """Let `work` die at each of `points`, soon enough that something is left to do, and then come
    to its end. unbroken: such work that was not killed."""
    rng, sessions = np.random.default_rng(seed), 2 * len(points)
    early = Counter({point: 1 + unbroken.calls[point] // sessions for point in points})
    for place in drawn(rng, early, len(points)):
        assert run(work, points=points, place=place).killed, place
    assert not run(work).killed


POINTS = (
    "ingest.cluster.partitioned:PartitionedSink.mark",
    "ingest.cluster.repartition_state:ProgressFile.save",
    "ingest.sources.sqlite.log:SqliteLog.poll_many",
    "ingest.sources.sqlite.log:SqliteLog.produce_parts",
    "os:fsync",
    "os:replace",
)


def killed_at_each_point(tmp_path: Path, torn: bool, directed: bool, seed: int) -> None:
    unbroken_log, log = (str(tmp_path / f"{name}-{seed}") for name in ("unbroken", "log"))
    for path in (unbroken_log, log):
        with SqliteLog(path) as made:
            fill(made, stream(seed, 600), 2, seed)

    def on(path: str) -> Any:
        return partial(work, path, Path(f"{path}-progress"), torn, directed)

    killed_until_done(on(log), run(on(unbroken_log), points=POINTS), POINTS, seed)
    expected = without_times(whole(polled_of(log, ["updates"]), directed=directed))
    assert without_times(sharded(log)) == expected
    if directed:
        assert without_times(turned_round(sharded(log, "split.in"))) == expected
    check_epochs(log, directed)


def test_killed_at_each_point_it_writes_each_row_once(tmp_path: Path) -> None:
    killed_at_each_point(tmp_path, torn=True, directed=True, seed=0)


@pytest.mark.integration
@pytest.mark.soak
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("torn", [True, False])
def test_killed_at_many_places_it_writes_each_row_once(
    tmp_path: Path, directed: bool, torn: bool
) -> None:
    for seed in range(1, 1 + soak(3, 33)):
        killed_at_each_point(tmp_path, torn, directed, seed)


def check_epochs(log: str, directed: bool) -> None:
    """Each edge is on both sides of every marker that all partitions have, or on neither."""
    parts: dict[Partition, list[bytes]] = {}
    for one in polled_of(log, ["split", "split.in"] if directed else ["split"]):
        parts.setdefault(one.partition, []).append(one.value)  # type: ignore[arg-type]
    marks = {place: [marker_of(value) for value in values] for place, values in parts.items()}
    shared = set.intersection(*(set(own) for own in marks.values()))
    epochs = {epoch for epoch in shared if epoch is not None}
    assert len(epochs) >= 2
    for own in marks.values():
        rising: list[int] = [epoch for epoch in own if epoch is not None]
        assert rising == sorted(set(rising))
    for epoch in sorted(epochs)[:: max(1, len(epochs) // 5)]:
        sides: dict[bool, Content] = {}
        for into in (False, True):
            some = [place for place in parts if place.topic.endswith(".in") == into]
            sides[into] = joined(
                content(applied(fresh(), parts[place][: marks[place].index(epoch)]))
                for place in some
            )
        other = turned_round(sides[directed])
        assert without_times(sides[False])[0] == without_times(other)[0]


def test_a_chunk_that_was_written_in_part_is_written_again_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever has come to the source since, the same records get the same numbers."""
    monkeypatch.setattr(module, "POLL_RECORDS", 5)
    monkeypatch.setattr(module, "CHUNK_BYTES", 1)
    with SqliteLog(tmp_path / "log") as log, Torn(tmp_path / "log") as sink:
        log.produce_many("updates", [ingest.encode_row(u, u + 1) for u in range(30)])
        for start, fails in enumerate((*range(P), 1)):
            with one_of(tmp_path, sink) as task, monkeypatch.context() as patch:
                assert task.resumed == (start > 0)
                patch.setattr(Torn, "produce_parts", failing_at(fails))
                with pytest.raises(SourceError, match="away"):
                    task.run()
            log.produce_many("updates", [ingest.encode_row(u, u + 1) for u in range(40)])
        with one_of(tmp_path, sink) as task:
            task.run()
        polled = polled_of(log.path, ["updates"])
        assert without_times(sharded(log.path)) == without_times(whole(polled))
        assert task.done.records == task.done.operations == len(polled)


def failing_at(place: int) -> Any:
    """A `produce_parts` that fails in its second call, before so many partitions are written."""
    calls = iter(range(10**6))

    def parts(self: Any, parts: Any) -> None:
        fails = next(calls) == 1
        for at, (partition, values) in enumerate(parts.items()):
            if fails and at == min(place, len(parts) - 1):
                raise SourceError("the log is away")
            SqliteLog.produce_parts(self, {partition: values})

    return parts


# -- Kafka ----------------------------------------------------------------------------------------


POINTS_ON_KAFKA = (
    "ingest.cluster.partitioned:PartitionedSink.mark",
    "ingest.cluster.repartition_state:ProgressFile.save",
    "ingest.sources.kafka.sink:KafkaSink.produce_parts",
    "ingest.sources.kafka.source:KafkaSource.poll_many",
)


def work_on_kafka(bootstrap: str, topic: str, target: str, directory: Path) -> None:
    module.CHUNK_BYTES, module.POLL_RECORDS = 500, 10
    cast("Any", module).time = Ticks()
    with (
        ingest.KafkaSource(bootstrap, [topic]) as source,
        ingest.KafkaSink(bootstrap) as sink,
        Repartition(
            source, sink, target, directory, partitions=P, directed=False,
            queries=f"{target}-queries", epoch_interval_s=4.0, dead_letters=lambda _: None,
        ) as task,
    ):  # fmt: skip
        task.run()


@pytest.mark.soak
def test_from_kafka_to_kafka_under_kills(kafka: Cluster, tmp_path: Path) -> None:
    topic, target = kafka.topic(2), f"split-{os.getpid()}"
    rng = np.random.default_rng(5)
    # Weights that are added up: the order between the partitions of a Kafka is anyone's.
    records = [
        ingest.encode_updates(
            rng.integers(0, 30, 5), rng.integers(0, 30, 5), rng.integers(1, 9, 5) / 4
        )
        for _ in range(1500)
    ]
    records += [ingest.encode_row(1, u, producer="shop", seq=u) for u in (1, 2, 3, 3, 2, 4)]
    with ingest.KafkaSink(kafka.bootstrap) as sink:
        for start in range(0, len(records), 100):
            sink.produce_many(topic, records[start : start + 100], start // 100 % 2)

    def of(name: str) -> Any:
        return partial(work_on_kafka, kafka.bootstrap, topic, name, tmp_path / name)

    unbroken = run(of(f"whole-{target}"), points=POINTS_ON_KAFKA)
    for number in range(soak(1, 12)):
        killed_until_done(of(f"{target}-{number}"), unbroken, POINTS_ON_KAFKA, number)
        check_split(kafka, topic, f"{target}-{number}")


def check_split(kafka: Cluster, topic: str, target: str) -> None:
    parts: dict[int, list[bytes]] = {n: [] for n in range(P)}
    for one in read_from(kafka, target):
        parts[one.partition.number].append(one.value)  # type: ignore[arg-type]
    found = joined(content(applied(fresh(), values)) for values in parts.values())
    expected = whole(read_from(kafka, topic), directed=False)
    assert without_times(found) == without_times(expected)


def read_from(kafka: Cluster, topic: str) -> list[Polled]:
    polled: list[Polled] = []
    with ingest.KafkaSource(kafka.bootstrap, [topic]) as reader:
        while not reader.at_end():
            polled += reader.poll(10_000, 1.0)
    return polled
