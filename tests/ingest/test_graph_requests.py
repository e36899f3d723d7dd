"""Requests of other threads: their place in the stream, their answers, their end."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import ingest
import lpma
from ingest import Partition
from ingest.errors import PipelineError
from ingest.pipeline import graph_requests, intake
from ingest.pipeline.graph_requests import GraphRequests, GraphView
from ingest.sources import Identity, Polled
from tests.support.oracles import host
from tests.support.waiting import HANGS_S, wait_for

PATIENCE_S = HANGS_S
UPDATES = Partition("updates", 0)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ingest.SqliteLog]:
    with ingest.SqliteLog(tmp_path / "log") as log:
        log.create_topic("updates")
        log.create_topic("queries")
        yield log


@contextmanager
def running(pipeline: ingest.Pipeline) -> Iterator[None]:
    thread = threading.Thread(target=pipeline.run)
    thread.start()
    try:
        yield
    finally:
        pipeline.stop()
        pipeline.requests.ask(lambda view: None)  # wakes it
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        pipeline.close()


def path_of(first: int, count: int) -> bytes:
    """A record of `count` edges that no other one has, beginning at vertex `first`."""
    src = list(range(first, first + count))
    return ingest.encode_updates(src, [v + 1 for v in src])


def seen(view: GraphView) -> tuple[int, int, int]:
    return view.graph.num_edges, view.version, view.time


def test_every_answer_holds_for_its_version(log: ingest.SqliteLog, tmp_path: Path) -> None:
    """Invariants 1 and 2: beside a stream of edges, each counted once, an answer counts what the
    batches up to its version hold, and all that was buffered before it was asked."""
    pipeline = ingest.Pipeline(log, lpma.Graph(device="cpu"), tmp_path / "state")
    answers: list[tuple[int, tuple[int, int, int]]] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            before = pipeline.requests.buffered
            answers.append((before, pipeline.requests.ask(seen).result(PATIENCE_S)))

    with running(pipeline):
        askers = [threading.Thread(target=ask) for _ in range(4)]
        for asker in askers:
            asker.start()
        for first in range(0, 60_000, 300):
            offset = log.produce("updates", path_of(first, 300))
            if offset % 20 == 19:  # so there are ten versions at least of which somebody is told
                least = pipeline.requests.when_applied(UPDATES, offset).result(PATIENCE_S)
                wait_for(lambda: answers and answers[-1][1][1] >= least, "an answer")  # noqa: B023
        end = pipeline.requests.when_applied(UPDATES, 199).result(PATIENCE_S)
        stop.set()
        for asker in askers:
            asker.join()
        assert pipeline.requests.ask(seen).result(PATIENCE_S)[:2] == (60_000, end)
    at = {batch.version: batch for batch in pipeline.stats.history}
    totals = {version: batch.total_operations for version, batch in at.items()} | {0: 0}
    assert len({version for _, (_, version, _) in answers}) >= 10
    for before, (edges, version, time) in answers:
        assert before <= edges == totals[version]
        assert version == 0 or time >= at[version].time
        assert version + 1 not in at or time <= at[version + 1].time


def test_a_question_sees_what_was_buffered(log: ingest.SqliteLog) -> None:
    """Invariant 1, where steps are limited: ten rows are buffered, one a step is applied."""
    pipeline = ingest.Pipeline(log, lpma.Graph(device="cpu"))
    log.produce("updates", path_of(0, 10))
    pipeline.step(1)
    assert pipeline.requests.buffered == 10
    answer = pipeline.requests.ask(seen)
    for _ in range(8):
        pipeline.step(1)
        assert not answer.done()
    pipeline.step(1)
    assert answer.result(0)[0] == 10
    pipeline.close()


def test_time_is_not_after_what_waits(log: ingest.SqliteLog) -> None:
    """Invariant 2: a question is answered when the clock stands at 500, but rows that it does not
    see were stamped at 150."""
    now = [100]
    pipeline = ingest.Pipeline(log, lpma.Graph(device="cpu"), clock=lambda: now[0])
    log.produce("updates", path_of(0, 10))
    pipeline.step(1)
    answer = pipeline.requests.ask(seen)
    pipeline.requests._due = math.inf  # so the next step polls before it cuts
    now[0] = 150
    log.produce("updates", path_of(20, 10))
    take = pipeline.intake._cut

    def later(limit: int) -> Any:
        now[0] = 500
        return take(limit)

    pipeline.intake._cut = later  # type: ignore[method-assign]
    pipeline.step(12)
    assert answer.result(0) == (13, 2, 150)
    pipeline.close()


def test_an_idle_stream_answers_at_once(log: ingest.SqliteLog) -> None:
    pipeline = ingest.Pipeline(log, lpma.Graph(device="cpu"), batch_interval=3600.0)
    with running(pipeline):
        for _ in range(3):
            assert pipeline.requests.ask(seen).result(PATIENCE_S)[0] == 0


def test_batches_are_small_while_questions_come(
    log: ingest.SqliteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next question waits behind the batch at hand."""
    monkeypatch.setattr(intake, "ASKED_ROWS", 30)
    pipeline = ingest.Pipeline(log, lpma.Graph(device="cpu"))
    for first in range(0, 4000, 100):
        log.produce("updates", path_of(first, 100))
    pipeline.requests.ask(seen)
    assert pipeline.step() <= 30
    pipeline.requests.asked_at -= intake.ASKED_S
    assert pipeline.step() > 30
    pipeline.close()


def test_what_is_awaited_is_read_first(log: ingest.SqliteLog) -> None:
    """Records of many rows, of which a poll asks for one at a time, lie before the one awaited:
    nothing is cut before that is buffered."""
    pipeline = ingest.Pipeline(log, lpma.Graph(device="cpu"))
    log.produce("updates", path_of(0, 20_000))
    pipeline.run("end")  # now it knows how many rows a record has
    for first in range(20_000, 200_000, 20_000):
        log.produce("updates", path_of(first, 20_000))
    log.produce("updates", path_of(0, 1))
    applied = pipeline.requests.when_applied(UPDATES, 10)
    steps = 0
    while not applied.done():
        assert pipeline.step()
        steps += 1
    assert applied.result() == pipeline.graph.version
    assert steps <= 10
    pipeline.close()


def test_who_gave_up_waiting_is_forgotten(log: ingest.SqliteLog) -> None:
    pipeline = ingest.Pipeline(log, lpma.Graph(device="cpu"))
    assert pipeline.requests.when_applied(UPDATES, 10_000).cancel()
    pipeline.step(drain=True)
    assert not pipeline.requests._awaited
    pipeline.close()


def test_questions_without_end_do_not_stop_the_stream(log: ingest.SqliteLog) -> None:
    """Each answer asks the next question, so that one waits at any time."""
    pipeline = ingest.Pipeline(log, lpma.Graph(device="cpu"))
    stop = threading.Event()

    def ask(view: GraphView) -> None:
        if not stop.is_set():
            pipeline.requests.ask(ask)

    with running(pipeline):
        pipeline.requests.ask(ask)
        for first in range(0, 100, 10):
            offset = log.produce("updates", path_of(first, 10))
            pipeline.requests.when_applied(UPDATES, offset).result(PATIENCE_S)
        stop.set()


class Sleeper(ingest.Source):
    """A log that cannot be woken."""

    def __init__(self, log: ingest.SqliteLog) -> None:
        self._log = log

    def poll(self, max_records: int, timeout: float) -> list[Polled]:
        return self._log.poll(max_records, timeout)

    def seek(self, positions: Mapping[Partition, int]) -> None:
        self._log.seek(positions)

    def positions(self) -> dict[Partition, int]:
        return self._log.positions()

    def at_end(self) -> bool:
        return self._log.at_end()

    def identity(self) -> Identity:
        return self._log.identity()

    def sink(self) -> Any:
        return self._log.sink()


def test_a_source_that_cannot_be_woken(log: ingest.SqliteLog) -> None:
    """It is polled in short turns while questions come, so a batch still waits for its age."""
    pipeline = ingest.Pipeline(Sleeper(log), lpma.Graph(device="cpu"), batch_interval=0.5)
    with running(pipeline):
        pipeline.requests.ask(seen).result(PATIENCE_S)
        for first in (0, 10, 20):
            log.produce("updates", path_of(first, 10))
        assert pipeline.requests.when_applied(UPDATES, 2).result(PATIENCE_S) >= 1
        assert pipeline.requests.ask(seen).result(PATIENCE_S)[0] == 30


def test_when_applied(log: ingest.SqliteLog) -> None:
    """Also of what is applied already, what is refused, and what closes the batch at hand."""
    pipeline = ingest.Pipeline(log, lpma.Graph(device="cpu"), batch_interval=3600.0)
    with running(pipeline):
        log.produce_many("updates", [path_of(0, 3), b"no record", path_of(9, 1)])
        future = pipeline.requests.when_applied(UPDATES, 2)
        version = future.result(PATIENCE_S)
        assert pipeline.requests.ask(seen).result(PATIENCE_S)[:2] == (4, version)
        assert pipeline.requests.when_applied(UPDATES, 1).result(PATIENCE_S) == version
        later = pipeline.requests.when_applied(UPDATES, 3)
        assert not later.done()
        log.produce("updates", path_of(20, 1))
        assert later.result(PATIENCE_S) > version


def test_errors_reach_whoever_asked(log: ingest.SqliteLog) -> None:
    pipeline = ingest.Pipeline(log, lpma.Graph(device="cpu"))
    with running(pipeline):
        with pytest.raises(lpma.BatchError, match="vertex ids go from"):
            pipeline.requests.ask(lambda view: view.graph.degree(-1)).result(PATIENCE_S)
        assert pipeline.requests.ask(seen).result(PATIENCE_S)[0] == 0


def test_the_journal_is_synced_first(
    log: ingest.SqliteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 3."""
    pipeline = ingest.Pipeline(log, lpma.Graph(device="cpu"), tmp_path / "state")
    journal = pipeline.intake.journal
    assert journal is not None
    told: list[str] = []
    sync = journal.sync

    def spied() -> None:
        sync()
        told.append("synced")

    monkeypatch.setattr(journal, "sync", spied)
    log.produce("updates", path_of(0, 3))
    pipeline.step()
    answer = pipeline.requests.ask(seen)
    answer.add_done_callback(lambda future: told.append("answered"))
    pipeline.step(drain=True)
    assert told == ["synced", "answered"]
    log.produce("updates", path_of(9, 3))
    applied = pipeline.requests.when_applied(UPDATES, 1)
    applied.add_done_callback(lambda future: told.append("applied"))
    pipeline.step(drain=True)
    assert applied.result(0) == pipeline.graph.version
    assert told == ["synced", "answered", "synced", "applied"]

    def failing() -> None:
        raise ingest.CheckpointError("the disk is full: free it and resume")

    monkeypatch.setattr(journal, "sync", failing)
    log.produce("updates", path_of(20, 3))
    waiting = pipeline.requests.when_applied(UPDATES, 2)
    lost = pipeline.requests.ask(seen)
    with pytest.raises(ingest.CheckpointError):
        pipeline.step(drain=True)
    for future in (waiting, lost):
        with pytest.raises(PipelineError, match="the disk is full"):
            future.result(0)
    with pytest.raises(PipelineError, match="stopped this pipeline"):
        pipeline.requests.ask(seen).result(0)
    pipeline.close()


def closing(pipeline: ingest.Pipeline) -> None:
    pipeline.close()


def failing(pipeline: ingest.Pipeline) -> None:
    def apply(*_: object) -> None:
        raise lpma.BrokenStore("the graph is broken")

    pipeline.graph.apply = apply  # type: ignore[assignment, method-assign]
    with pytest.raises(lpma.BrokenStore):
        pipeline.step()


@pytest.mark.parametrize("end", [closing, failing])
def test_the_end_is_told(log: ingest.SqliteLog, end: Callable[[ingest.Pipeline], None]) -> None:
    """Invariant 4: to whoever waits, and whoever asks later."""
    pipeline = ingest.Pipeline(log, lpma.Graph(device="cpu"))
    requests = pipeline.requests
    log.produce("updates", path_of(0, 10))
    pipeline.step(1)
    futures: list[Any] = [requests.ask(seen), requests.when_applied(UPDATES, 99)]
    end(pipeline)
    futures += [requests.ask(seen), requests.when_applied(UPDATES, 0)]
    for future in futures:
        with pytest.raises(PipelineError, match="pipeline"):
            future.result(0)
    pipeline.close()


def test_a_cancelled_question_is_left_out() -> None:
    requests = GraphRequests()
    called: list[GraphView] = []
    cancelled, other = requests.ask(called.append), requests.ask(seen)
    assert cancelled.cancel()
    graph = lpma.Graph(device="cpu")
    requests.answer(GraphView(graph, None, 0, 7), 0, lambda: None)
    assert other.result(0) == (0, 0, 7)
    assert called == []


def test_what_flows_waits_less_than_what_rests(
    log: ingest.SqliteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The share of a view: short after a batch, long again when there was none for a while."""
    pipeline = ingest.Pipeline(log, lpma.Graph(device="cpu"))
    log.produce("updates", path_of(0, 3))
    assert pipeline.step(drain=True) == 3
    flowing = pipeline.requests.ask(lambda view: view.share_s)
    pipeline.step(drain=True)
    assert flowing.result(0) == graph_requests.FLOWING_SHARE_S
    monkeypatch.setattr("ingest.pipeline.pipeline.FLOWED_S", -1.0)
    resting = pipeline.requests.ask(lambda view: view.share_s)
    pipeline.step(drain=True)
    assert resting.result(0) == graph_requests.IDLE_SHARE_S
    pipeline.close()


def test_an_end_between_asking_and_being_told() -> None:
    """`close`, in another thread, settles what has just been put in the list."""
    requests = GraphRequests()
    lock = requests._lock

    class Interrupted:
        def __enter__(self) -> None:
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()
            requests._lock = lock
            requests.close("this pipeline was closed: ask again when it runs")

    for ask in (lambda: requests.ask(seen), lambda: requests.when_applied(UPDATES, 0)):
        requests._closed = None
        requests._lock = Interrupted()  # type: ignore[assignment]
        with pytest.raises(PipelineError, match="was closed"):
            ask().result(0)


def test_the_owner_does_not_wait_for_its_turn(log: ingest.SqliteLog) -> None:
    """Beside a stream that flows others do; and what it asks makes no batch small."""
    pipeline = ingest.Pipeline(log, lpma.Graph(device="cpu"))
    log.produce("updates", path_of(0, 10))
    pipeline.step(1)
    requests = pipeline.requests
    requests._due = math.inf
    other = requests.ask(seen)
    assert requests.due(True) == math.inf
    asked_at = requests.asked_at
    own = requests.ask_here(seen)
    assert requests.due(True) == 0.0
    assert requests.asked_at == asked_at
    pipeline.step()
    assert own.result(0)[0] == other.result(0)[0] == 10
    assert requests.due(True) is None
    pipeline.close()
    with pytest.raises(PipelineError, match="closed"):
        requests.ask_here(seen).result(0)


def test_a_view_by_ids_has_the_names_of_a_graph_beside_it(device: str) -> None:
    """It is the same graph, also as that changes."""
    graph = lpma.Graph(device=device, names=True)
    graph.insert(["ann", "ann"], ["bob", 7])
    view = GraphView(graph, None, 1, 1).by_id()
    assert view.names is not None
    assert view.names is graph.names
    assert view.graph.names is None
    ann = view.names.find("ann")
    graph.insert("ann", "eve")
    found = view.graph.successors([ann])
    assert view.names.of(host(found.ids)).tolist() == ["bob", 7, "eve"]
    assert graph.has_edge("ann", "eve")
    assert view.by_id() is view
