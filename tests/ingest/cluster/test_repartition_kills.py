"""Repartitioning, killed at any moment and resumed, writes what the stream says: once."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import ingest
from ingest import Partition, Polled, Repartition, SourceError, SqliteLog
from ingest.cluster import repartition as module
from ingest.formats.markers import marker_of
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
from tests.support.shards import Content, applied, content, joined, turned_round
from tests.support.stream_model import random_records

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
        sent.append(ingest.encode_row(u, v, 0.5, source=source, seq=number))
        if rng.random() < 0.3:
            sent.append(sent[int(rng.integers(len(sent)))])
    at = np.sort(rng.integers(0, count, len(sent)))
    for place, record in reversed(list(zip(at.tolist(), sent, strict=True))):
        records.insert(place, record)
    return records


def work(log: str, directory: Path, torn: bool, **options: Any) -> None:
    """Repartition all of "updates" to "split", in small chunks."""
    module.CHUNK_BYTES, module.POLL_RECORDS = 600, 6
    kind = Torn if torn else SqliteLog
    with (
        SqliteLog(log, topics=["updates"]) as source,
        kind(log) as sink,
        Repartition(source, sink, "split", directory, queries="asked", **options) as task,
    ):
        task.run()


def in_a_child(seconds: float, call: Any) -> bool:
    """Call it in a process of its own, killed after so many seconds; whether it came to its end."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            call()
            status = 0
        finally:
            os._exit(status)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert os.WEXITSTATUS(status) == 0, "the child failed by itself"
            return True
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return not os.WIFSIGNALED(status)


def killed_until_done(rng: np.random.Generator, call: Any, longest_s: float) -> int:
    """Start it, kill it at a random moment, and again until it is done; how many kills."""
    kills = 0
    while not in_a_child(float(rng.uniform(0.0, longest_s)) if kills < 40 else 600.0, call):
        kills += 1
    return kills


@pytest.mark.soak
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("torn", [True, False])
def test_killed_at_random_moments_it_writes_each_row_once(
    tmp_path: Path, directed: bool, torn: bool
) -> None:
    kills = seed = 0
    while kills < soak(6, 200):
        seed += 1
        log, directory = str(tmp_path / f"log-{seed}"), tmp_path / f"progress-{seed}"
        with SqliteLog(log) as made:
            fill(made, stream(seed, 600), 2, seed)
        call = partial(
            work, log, directory, torn,
            directed=directed, predecessors=True, partitions=P, epoch_interval_s=0.02,
        )  # fmt: skip
        kills += killed_until_done(np.random.default_rng([seed, directed, torn]), call, 0.12)
        expected = without_times(whole(polled_of(log, ["updates"]), directed=directed))
        assert without_times(sharded(log)) == expected
        if directed:
            assert without_times(turned_round(sharded(log, "split.in"))) == expected
        check_epochs(log, directed)


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
    records += [ingest.encode_row(1, u, source="shop", seq=u) for u in (1, 2, 3, 3, 2, 4)]
    with ingest.KafkaSink(kafka.bootstrap) as sink:
        for start in range(0, len(records), 100):
            sink.produce_many(topic, records[start : start + 100], start // 100 % 2)

    def call() -> None:
        module.CHUNK_BYTES, module.POLL_RECORDS = 500, 10
        with (
            ingest.KafkaSource(kafka.bootstrap, [topic]) as source,
            ingest.KafkaSink(kafka.bootstrap) as sink,
            Repartition(
                source, sink, target, tmp_path / "progress", partitions=P, directed=False,
                queries=f"{target}-queries", epoch_interval_s=0.05, dead_letters=lambda _: None,
            ) as task,
        ):  # fmt: skip
            task.run()

    kills = 0
    while not in_a_child(float(rng.uniform(0.3, 0.7)) if kills < soak(8, 60) else 60.0, call):
        kills += 1
    assert kills >= 2
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
