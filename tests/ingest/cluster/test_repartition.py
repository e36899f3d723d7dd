"""Repartitioning, killed at any moment and resumed, writes what the stream says: once."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import Partition, Polled, RecordError, Repartition, SourceError, SqliteLog
from ingest.cluster import repartition as module
from ingest.cluster import repartition_state as state_module
from ingest.formats.markers import encode_marker, marker_of
from lpma import Kind
from tests.conftest import soak
from tests.support.shards import Content, applied, apply, content, joined, turned_round
from tests.support.stream_model import random_records

if TYPE_CHECKING:
    from tests.support.broker import Cluster

P = 3


class Torn(SqliteLog):
    """Writes the partitions of a write one by one, as Kafka does."""

    def produce_parts(self, parts: Mapping[Partition, Sequence[bytes]]) -> dict[Partition, range]:
        done: dict[Partition, range] = {}
        for partition, values in parts.items():
            done |= super().produce_parts({partition: values})
        return done


def fresh(names: bool = False, directed: bool = True) -> lpma.Graph:
    return lpma.Graph(device="cpu", names=names, directed=directed, weight="float64")


def polled_of(path: str | Path, topics: Sequence[str]) -> list[Polled]:
    with SqliteLog(path, topics=topics) as reader:
        return reader.poll(10**6)


def whole(polled: list[Polled], **options: Any) -> Content:
    """One graph from the stream as it is read, without what a producer sent before."""
    graph, seen = fresh(**options), dict[Any, Any]()
    for one in polled:
        try:
            record = ingest.decode_record(one.value, names=graph.names is not None)  # type: ignore[arg-type]
        except RecordError:
            continue
        key = one.partition, record.source
        if record.seq is not None:
            if record.seq <= seen.get(key, -1):
                continue
            seen[key] = record.seq
        apply(graph, record)
    return content(graph)


def sharded(path: str | Path, topic: str = "split", **options: Any) -> Content:
    """The graphs of the partitions together."""
    parts: dict[Partition, list[bytes]] = {}
    for one in polled_of(path, [topic]):
        parts.setdefault(one.partition, []).append(one.value)  # type: ignore[arg-type]
    return joined(content(applied(fresh(**options), values)) for values in parts.values())


def without_times(content: Content) -> Any:
    edges, vertices = content
    return {key: weight for key, (weight, _) in edges.items()}, vertices


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


# -- kills ----------------------------------------------------------------------------------------


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


def one_of(tmp_path: Path, sink: Any, topic: str = "split", **options: Any) -> Repartition:
    source = SqliteLog(tmp_path / "log", topics=["updates"])
    return Repartition(
        source, sink, topic, tmp_path / "progress", partitions=P, queries="asked", **options
    )


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


# -- what is read ---------------------------------------------------------------------------------


def test_what_is_no_update_is_counted_and_told(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log:
        twice = ingest.encode_row(1, 2, source="shop", seq=5)
        records = [twice, b"\xff", twice, encode_marker(3), ingest.encode_row(2, 3)]
        records += [ingest.encode_query("q1", Kind.DEGREE, 1), ingest.encode_row(3, 4, names=True)]
        records += [ingest.encode_row("ann", "bob", names=True)]
        records += [ingest.encode_row(1, kind=Kind.REMOVE_VERTEX)]
        log.produce_many("updates", records)
        letters: list[ingest.DeadLetter] = []
        with one_of(tmp_path, log, shards=1, dead_letters=letters.append) as task:
            done = task.run()
        assert done == ingest.Repartitioned(
            records=9, operations=4, repeats=1, queries=1, markers=1, rejected=2
        )
        assert [letter.offset for letter in letters] == [1, 7]
        assert letters[1].reason.startswith("src: ")
        assert polled_of(log.path, ["dead-letters"]) == []


def test_dead_letters_go_to_the_topic_of_that_name(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", [b"\xff", ingest.encode_row(1, 2)])
        with one_of(tmp_path, log) as task:
            task.run()
        (letter,) = polled_of(log.path, ["dead-letters"])
    found = ingest.decode_dead_letter(letter.value)  # type: ignore[arg-type]
    assert (found.topic, found.partition, found.offset, found.value) == ("updates", 0, 0, b"\xff")


@pytest.mark.parametrize("directed", [True, False])
def test_a_file_of_names_is_split(
    tmp_path: Path, directed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK_BYTES", 1)
    rng = np.random.default_rng(3)
    names = ["ann", "bob", "5", "-7", "żółć", "18446744073709551615", *map(str, range(20))]
    picked = rng.choice(names, (500, 2)).tolist()
    lines = [f"{u},{v},{rng.integers(1, 9) / 2}" for u, v in picked]
    path = tmp_path / "own.csv"
    path.write_text("from,to,weight\n" + "\n".join(lines) + "\nonly one\n")

    def source() -> Any:
        return ingest.FileSource(path, names=True, chunk=64)

    expected = fresh(names=True, directed=directed)
    for columns in ingest.read_edges(path, names=True):
        expected.insert(columns.src, columns.dst, columns.weight)
    with SqliteLog(tmp_path / "log") as log:
        options: dict[str, Any] = {"partitions": P, "names": True, "directed": directed}
        for _ in range(3):  # a step each time, as after a crash
            with Repartition(source(), log, "split", tmp_path / "progress", **options) as task:
                task.step()
        with Repartition(source(), log, "split", tmp_path / "progress", **options) as task:
            done = task.run()
        found = without_times(sharded(log.path, names=True))
    assert (done.operations, done.rejected) == (500, 1)
    assert found == without_times(content(expected))


def test_json_is_read(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", [b'{"user": 1, "item": 2}', b'{"user": 2, "item": 3}'])
        fields = ingest.JsonFields("user", "item")
        with one_of(tmp_path, log, records=fields) as task:
            assert task.run().operations == 2
        with one_of(tmp_path, log, records=fields) as task:
            assert task.resumed
        assert sharded(log.path)[0].keys() == {(1, 2), (2, 3)}


def test_it_follows_until_it_is_stopped(tmp_path: Path) -> None:
    stop = threading.Event()
    with SqliteLog(tmp_path / "log") as log:
        log.produce("updates", ingest.encode_row(1, 2))
        with one_of(tmp_path, log, epoch_interval_s=0.01) as task:
            thread = threading.Thread(target=task.run, kwargs={"follow": True, "stop": stop})
            thread.start()
            for target in range(3, 6):
                log.produce("updates", ingest.encode_row(1, target))
                deadline = time.monotonic() + 10
                while task.done.operations < target - 1 and time.monotonic() < deadline:
                    time.sleep(0.005)
            stop.set()
            thread.join()
            assert task.done.operations == 4
        ends = polled_of(log.path, ["split"])[-P:]
        assert {marker_of(one.value) for one in ends} == {task.done.epoch}


# -- what is refused ------------------------------------------------------------------------------


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[SqliteLog]:
    """A log whose updates were repartitioned, with more to come."""
    with SqliteLog(tmp_path / "log") as log:
        log.produce_many("updates", [ingest.encode_row(u, u + 1) for u in range(10)])
        with one_of(tmp_path, log) as task:
            task.run()
        log.produce("updates", ingest.encode_row(1, 7))
        yield log


@pytest.mark.parametrize(
    "options", [{"directed": False}, {"names": True}, {"shards": 1}, {"predecessors": True}]
)
def test_it_goes_on_with_the_same_settings_alone(
    begun: SqliteLog, tmp_path: Path, options: dict[str, Any]
) -> None:
    (name,) = options
    with pytest.raises(ingest.CheckpointError, match=name):
        one_of(tmp_path, begun, **options)
    with one_of(tmp_path, begun) as task:
        assert task.run().operations == 11


def test_a_topic_that_was_made_again_is_another(begun: SqliteLog, tmp_path: Path) -> None:
    begun.delete_topic("split")
    begun.create_topic("split", P)
    with pytest.raises(ingest.IdentityError, match="created again"):
        one_of(tmp_path, begun)


def test_a_source_that_was_rewritten_is_another(begun: SqliteLog, tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(begun.path)) as database, database:
        database.execute("UPDATE records SET value = x'01' WHERE offset = 9")
    with pytest.raises(ingest.RewrittenError):
        one_of(tmp_path, begun)


def test_two_do_not_write_at_once(begun: SqliteLog, tmp_path: Path) -> None:
    with one_of(tmp_path, begun), pytest.raises(ingest.LockedError):
        one_of(tmp_path, begun)


def test_a_damaged_file_is_refused(begun: SqliteLog, tmp_path: Path) -> None:
    path = tmp_path / "progress" / state_module.FILE
    good = path.read_bytes()
    for bad in (good[:-5], b"{}", json.dumps({**json.loads(good), "format": 9}).encode()):
        path.write_bytes(bad)
        with pytest.raises(ingest.CheckpointError, match="cannot be read"):
            one_of(tmp_path, begun)


def test_nothing_is_written_twice_with_another_directory(begun: SqliteLog, tmp_path: Path) -> None:
    source = SqliteLog(begun.path, topics=["updates"])
    with pytest.raises(SourceError, match="has records already"):
        Repartition(source, begun, "split", tmp_path / "other", partitions=P, queries="asked")
    with pytest.raises(SourceError, match="what is read"):
        Repartition(source, begun, "updates", tmp_path / "more", partitions=1, queries="queries")
    begun.create_topic("one")
    with pytest.raises(ingest.PipelineError, match="has 1; say how many"):
        Repartition(source, begun, "one", tmp_path / "third")
    with pytest.raises(ingest.PipelineError, match="epoch_interval_s"):
        Repartition(source, begun, "other", tmp_path / "progress", epoch_interval_s=0)
    with ingest.Pipeline(SqliteLog(begun.path), fresh(), tmp_path / "pipeline") as pipeline:
        pipeline.run(until="end")
    with pytest.raises(ingest.CheckpointError, match="pipeline's checkpoints"):
        Repartition(source, begun, "split", tmp_path / "pipeline", partitions=P)


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
