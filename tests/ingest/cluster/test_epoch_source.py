"""Epochs at one pipeline: wherever the markers lie, what is closed is what lay before them, and the
stream goes on."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
import lpma
from ingest import Partition, Pipeline, SqliteLog
from ingest.cluster import epoch_source as epochs_module
from ingest.cluster.epoch_source import EpochSource, NotedEpoch
from ingest.cluster.owners import Ownership
from ingest.formats.markers import encode_marker
from ingest.formats.row_reader import in_runs
from ingest.pipeline.graph_requests import GraphView
from ingest.sources import Polled
from lpma import Kind
from tests.conftest import soak
from tests.support.epochs import Edges, before, edges_of, in_all, random_record, replayed
from tests.support.stream_model import weighted
from tests.support.waiting import HANGS_S

QUICK = "/dev/shm" if os.path.isdir("/dev/shm") else None  # a disk would be synced for each record
OPTIONS: dict[str, Any] = {"batch_interval": 0.0, "dead_letters": print}


class Noting:
    """Keeps what each epoch was, and how it ended."""

    def __init__(self) -> None:
        self.closed: list[tuple[int, Edges]] = []
        self.floors: list[int] = []

    def close(self, epoch: int, moment: GraphView) -> Edges:
        return edges_of(moment.graph.snapshot())

    def ended(self, floor: int, closed: Future[Any] | None) -> None:
        self.floors.append(floor)
        if closed is not None:
            self.closed.append((floor, closed.result()))


class Anything(Ownership):
    """Partitions that may hold any rows."""

    def __init__(self) -> None:
        super().__init__(1)

    def owned(self, partition: Partition, batch: lpma.Columns, names: Any) -> lpma.Columns:
        return batch


class Together(SqliteLog):
    """Brings the records of each partition as runs, as Kafka does."""

    def poll_many(self, max_records: int, timeout: float) -> list[Polled]:
        found = sorted(self.poll(max_records, timeout), key=attrgetter("partition"))
        return list(in_runs(found))


class Run:
    """A pipeline over the partitions of a log, with epochs; it can be started again."""

    def __init__(self, directory: Path, partitions: int, kind: type[SqliteLog] = SqliteLog) -> None:
        self._kind = kind
        self.log = SqliteLog(directory / "log")
        self.log.create_topic("wide", partitions)
        self.partitions = [Partition("wide", number) for number in range(partitions)]
        self.stream: dict[Partition, list[bytes]] = {p: [] for p in self.partitions}
        self.noting = Noting()
        self.replies: list[ingest.Reply] = []
        self._directory = directory
        self.start()

    def start(self, **options: Any) -> None:
        noted = NotedEpoch(self._directory / "epoch")
        self._reader = self._kind(self.log.path, ("wide", "queries"))
        self.source = EpochSource(self._reader, self.partitions, noted, Anything())
        options = {**OPTIONS, "replies": self.replies.append, **options}
        where = self._directory / "checkpoint"
        if ingest.has_checkpoint(where):
            self.pipeline = Pipeline.resume(where, self.source, **options)
        else:
            self.pipeline = Pipeline(self.source, lpma.Graph(device="cpu"), where, **options)
        self.source.begin(self.pipeline.requests, self.noting, self.pipeline.intake.fingerprints)

    def write(self, number: int, data: bytes) -> None:
        self.stream[self.partitions[number]].append(data)
        self.log.produce("wide", data, number)

    def step(self) -> None:
        self.pipeline.step(drain=True)

    def stop(self, *, checkpoint: bool = False) -> None:
        self.pipeline.close(checkpoint=checkpoint)
        self._reader.close()

    def end(self) -> None:
        self.pipeline.run(until="end")

    def check(self) -> None:
        """What was closed is exact, and all of the stream was applied."""
        for epoch, edges in self.noting.closed:
            told = before(self.stream, epoch)
            assert told is not None, f"epoch {epoch} is torn"
            assert edges == replayed(told)
        assert weighted(self.pipeline.graph) == replayed(self.stream)


MARKS = st.sampled_from(["rising", "missing", "twice", "any"])


def drawn_markers(data: st.DataObject, partitions: int, how: str) -> list[list[int]]:
    """The epochs of each partition's markers, in their order."""
    epochs = sorted(data.draw(st.sets(st.integers(1, 30), max_size=5)))
    if how == "rising":
        return [epochs] * partitions
    if how == "any":
        several = st.lists(st.integers(1, 6), max_size=6)
        return [data.draw(several) for _ in range(partitions)]
    lists = [[e for e in epochs if data.draw(st.integers(0, 3))] for _ in range(partitions)]
    if how == "twice":
        for some in lists:
            for epoch in list(some):
                if data.draw(st.booleans()):
                    at = data.draw(st.integers(some.index(epoch) + 1, len(some)))
                    some.insert(at, epoch)
    return lists


def written(rng: np.random.Generator, markers: list[list[int]]) -> list[tuple[int, bytes]]:
    """(partition, record) in the order of writing: any interleaving of the partitions."""
    queues = []
    for number, epochs in enumerate(markers):
        queue: list[bytes] = []
        for epoch in [*epochs, 0]:
            queue += [random_record(rng, number, len(markers)) for _ in range(rng.integers(0, 4))]
            queue += [encode_marker(epoch)] if epoch else []
        queues.append(queue)
    order = rng.permutation(np.repeat(np.arange(len(queues)), [len(q) for q in queues]))
    return [(number, queues[number].pop(0)) for number in order.tolist()]


@pytest.mark.soak
@given(st.data())
@settings(max_examples=soak(60, 3000))
def test_a_closed_epoch_is_what_lay_before_its_markers(data: st.DataObject) -> None:
    """Markers at any places, missing, twice, in any order; small polls; stops without a last word;
    and, where they rise, every epoch that is whole is closed."""
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    partitions = data.draw(st.integers(1, 3))
    how = data.draw(MARKS)
    markers = drawn_markers(data, partitions, how)
    with tempfile.TemporaryDirectory(dir=QUICK) as name, pytest.MonkeyPatch.context() as patch:
        hurried = how != "rising" and data.draw(st.booleans())
        patch.setattr(epochs_module, "ALIGN_S", 0.0 if hurried else 3600.0)
        patch.setattr(epochs_module, "LOOK_S", 0.0)
        run = Run(Path(name), partitions, data.draw(st.sampled_from([SqliteLog, Together])))
        queries = 0
        for number, record in written(rng, markers):
            run.write(number, record)
            match data.draw(st.integers(0, 9)):
                case 0 | 1 | 2:
                    run.step()
                case 3:
                    run.log.produce("queries", ingest.encode_query(f"q{queries}", Kind.DEGREE, 1))
                    queries += 1
                case 4:
                    if data.draw(st.booleans()):
                        run.pipeline.checkpoint_now()
                    run.stop(checkpoint=data.draw(st.booleans()))
                    run.start(
                        batch_size=data.draw(st.integers(1, 9)),
                        poll_records=data.draw(st.integers(1, 5)),
                    )
        patch.setattr(epochs_module, "ALIGN_S", 0.0)  # for those that stay behind at the end
        run.end()
        run.check()
        assert {reply.id for reply in run.replies} == {f"q{i}" for i in range(queries)}
        closed = {epoch for epoch, _ in run.noting.closed}
        if how != "any" and not hurried:
            assert closed == set(in_all(run.stream))
        run.stop()


# What ends the wait --------------------------------------------------------------------------


def row(src: int, dst: int) -> bytes:
    return ingest.encode_row(src, dst)


@pytest.fixture(params=[SqliteLog, Together])
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Run]:
    """Two partitions."""
    run = Run(tmp_path, 2, request.param)
    yield run
    run.stop()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that epochs go by, in seconds."""
    now = [100.0]
    monkeypatch.setattr(epochs_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_a_partition_that_stands_is_left_unread(run: Run, clock: list[float]) -> None:
    """Until the other one comes to its marker; that one is read, and so are queries."""
    run.write(0, encode_marker(5))
    run.write(0, row(0, 1))
    run.write(1, row(1, 1))
    run.log.produce("queries", ingest.encode_query("q", Kind.DEGREE, 1))
    for _ in range(3):
        run.step()
    assert weighted(run.pipeline.graph) == {(1, 1): 1.0}
    assert [reply.id for reply in run.replies] == ["q"]
    assert sum(run.pipeline.stats.lag().values()) == 1
    run.write(1, encode_marker(5))
    for _ in range(3):
        run.step()
    run.check()
    assert run.noting.closed == [(5, {(1, 1): 1.0})]


def test_a_partition_at_its_end_lets_the_epoch_go(run: Run, clock: list[float]) -> None:
    run.write(0, encode_marker(5))
    run.write(0, row(0, 1))
    run.step()
    clock[0] += epochs_module.ALIGN_S - 0.01
    run.step()
    assert weighted(run.pipeline.graph) == {}
    clock[0] += 0.02
    run.step()
    assert weighted(run.pipeline.graph) == {(0, 1): 1.0}
    assert run.noting.floors == [0, 5]
    run.write(1, encode_marker(5))  # too late
    run.write(1, row(1, 1))
    run.end()
    run.check()
    assert run.noting.closed == []


def test_a_partition_that_flows_lets_it_go_too(run: Run, clock: list[float]) -> None:
    """It is read to where it ended when the time was over, and no further."""
    run.write(0, encode_marker(5))
    run.write(0, row(0, 1))
    for number in range(6):
        run.write(1, row(1, number))
    run.stop()
    run.start(poll_records=2)
    run.step()
    clock[0] += epochs_module.ALIGN_S + 0.01
    for number in range(6, 12):
        run.step()
        run.write(1, row(1, number))
        run.write(1, row(1, number))
    assert (0, 1) in weighted(run.pipeline.graph)
    assert run.noting.floors[-1] == 5
    run.end()
    run.check()


def test_a_marker_far_behind_is_waited_for(run: Run, clock: list[float]) -> None:
    """However long it takes to read what lies before it."""
    run.write(0, encode_marker(5))
    for number in range(20):
        run.write(1, row(1, number))
    run.write(1, encode_marker(5))
    run.stop()
    run.start(poll_records=2)
    for _ in range(30):
        run.step()
        clock[0] += epochs_module.ALIGN_S
    assert [epoch for epoch, _ in run.noting.closed] == [5]
    run.check()


def test_a_wait_does_not_outlast_the_epoch(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll that may wait for long looks at the time while an epoch is tried."""
    monkeypatch.setattr(epochs_module, "ALIGN_S", 0.1)
    run.write(0, encode_marker(5))
    run.write(0, row(0, 1))
    run.step()
    began = time.monotonic()
    while not run.source.poll(10, HANGS_S):
        pass
    assert time.monotonic() - began < HANGS_S / 2


# How it closes -------------------------------------------------------------------------------


def test_nothing_is_read_before_it_is_closed(run: Run) -> None:
    """Invariant 4: although a batch takes a part of what was read, and another thread's question
    was just answered, so that the next has to wait for its turn."""
    for number in range(9):
        run.write(0, row(0, number))
    for partition in range(2):
        run.write(partition, encode_marker(5))
        run.write(partition, row(partition, 77))
    run.pipeline.requests._due = math.inf
    for _ in range(10):  # what holds no operation may take a step of its own
        if not run.noting.closed:
            run.pipeline.step(3)
    assert run.noting.closed == [(5, {(0, number): 1.0 for number in range(9)})]
    assert len(run.source._kept) == 2
    run.end()
    run.check()


def test_no_query_is_read_ahead_of_it(run: Run) -> None:
    for partition in range(2):
        run.write(partition, encode_marker(5))
    for _ in range(2):  # each ends at a marker
        run.source.poll(10, 0.0)
    assert run.source.alignment.is_whole
    run.log.produce("wide", bytes(2 << 20), 1)  # so that queries go first
    run.log.produce("queries", ingest.encode_query("q", Kind.DEGREE, 1))
    assert run.source.queries_ahead(10) == []
    assert not run.source.at_end()
    run.pipeline.run("end")
    assert [reply.id for reply in run.replies] == ["q"]
    assert len(run.noting.closed) == 1


def test_an_epoch_that_ended_is_on_the_disk_first(run: Run, tmp_path: Path) -> None:
    """Invariant 5: before anything behind it is handed out."""
    for partition in range(2):
        run.write(partition, encode_marker(5))
    run.end()
    assert NotedEpoch(tmp_path / "epoch").value == 0  # a start finds both at the marker
    run.write(0, row(0, 1))
    noted: list[int] = []
    passed = run.source._passed

    def spied(*args: Any) -> Any:
        found = passed(*args)
        noted.append(NotedEpoch(tmp_path / "epoch").value)
        return found

    run.source._passed = spied  # type: ignore[method-assign, assignment]
    polled = run.source.poll(10, 0.0)
    assert len(polled) == 1
    assert noted[-1] == 0
    assert NotedEpoch(tmp_path / "epoch").value == 5
    (tmp_path / "epoch").write_bytes(b"\0" * 21)  # a disk that lost power
    assert NotedEpoch(tmp_path / "epoch").value == 0


def test_its_stream_may_end_before(run: Run) -> None:
    for partition in range(2):
        run.write(partition, encode_marker(5))
    for _ in range(2):
        assert run.source.poll(10, 0.0)
    run.log.produce("queries", ingest.encode_query("q", Kind.DEGREE, 1))
    for _ in range(2):
        assert run.source.poll(10, 0.0) == []  # it is asked now
    run.noting.ended = lambda floor, closed: run.noting.floors.append(  # type: ignore[method-assign]
        -1 if closed is not None and closed.exception() is not None else floor
    )
    run.pipeline.close(checkpoint=False)
    assert run.noting.floors[-1] == -1
