"""Figures and results beside the stream: what `run` does not wait for, and what it does."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest import Pipeline, SqliteLog
from ingest.errors import PipelineError, SourceError
from ingest.results.publisher import Publisher
from ingest.results.worker import BackgroundTask, DeferredTask
from ingest.state.checkpointer import Checkpointer
from ingest.state.journal import Journal
from tests.support.waiting import HANGS_S, wait_for

TRACK = ("core", "triangles", "components")
SIZE = 10


def stream(log: SqliteLog, records: int = 30) -> None:
    rng = np.random.default_rng(5)
    for _ in range(records):
        kind = rng.choice([0, 1, 11], SIZE, p=[0.5, 0.3, 0.2]).astype(np.uint8)
        src, dst = rng.integers(0, 14, (2, SIZE))
        log.produce("updates", ingest.encode_updates(src, dst, kind=kind))


def published(log: SqliteLog) -> list[tuple[Any, ...]]:
    """All but the run's name and the stamp, which are a start's own."""
    with SqliteLog(log.path, ["results"]) as reader:
        results = [ingest.decode_result(bytes(p.value)) for p in reader.poll(10**6)]  # type: ignore[arg-type]
    columns = [[np.asarray(c).tolist() for c in (r.vertex, r.old, r.new)] for r in results]
    heads = [(*r.place, r.parts, r.figure, r.alert) for r in results]
    return list(zip(heads, columns, strict=True))


def test_results_are_those_of_a_pipeline_that_waits(device: str, tmp_path: Path) -> None:
    told = []
    for waits in (True, False):
        with SqliteLog(tmp_path / f"log{waits}") as log:
            stream(log)
            with Pipeline(
                log, lpma.Graph(device=device), tmp_path / f"state{waits}", batch_size=SIZE,
                track=TRACK, results=log, alerts=["core >= 2"], checkpoint_operations=40,
            ) as pipeline:  # fmt: skip
                while waits and pipeline.step():
                    assert pipeline.tracked is not None
                    assert pipeline.tracked.version == pipeline.graph.version
                pipeline.run("end")
                assert pipeline.tracked is not None
                assert pipeline.tracked.version == pipeline.graph.version
            told.append(published(log))
    assert told[0] == told[1]
    assert len(told[0]) > 30


def test_results_leave_when_the_stream_stands_still(device: str, tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log") as log:
        stream(log, records=3)
        graph = lpma.Graph(device=device)
        with Pipeline(
            log, graph, batch_size=SIZE, batch_interval=0.05, track=TRACK, results=log
        ) as pipeline:
            thread = threading.Thread(target=pipeline.run)
            thread.start()
            try:
                wait_for(lambda: any(head[0] >= 3 for head, _ in published(log)), "results")
                assert graph.version >= 3
            finally:
                pipeline.stop()
                thread.join(HANGS_S)


class Gate:
    """Holds a function up, the first time that it is called, until it is let through."""

    def __init__(self, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        function = getattr(owner, name)

        def held(*given: Any) -> Any:
            if not self.reached.is_set():
                self.reached.set()
                assert self.open.wait(HANGS_S)
            return function(*given)

        monkeypatch.setattr(owner, name, held)


def test_the_stream_goes_on_while_results_are_sent_and_no_further_than_three_batches(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = lpma.Graph(device=device)
    waits: list[int] = []  # at which versions the stream did
    wait = BackgroundTask.wait

    def noted(task: BackgroundTask) -> None:
        if threading.current_thread() is thread:
            waits.append(graph.version)
        wait(task)

    monkeypatch.setattr(BackgroundTask, "wait", noted)
    with SqliteLog(tmp_path / "log") as log:
        stream(log)
        with Pipeline(log, graph, batch_size=SIZE, track=TRACK, results=log) as pipeline:
            gate = Gate(Publisher, "send", monkeypatch)
            thread = threading.Thread(target=pipeline.run, args=("end",))
            thread.start()
            try:
                assert gate.reached.wait(HANGS_S)
                wait_for(lambda: 3 in waits, "the stream waits")
                assert graph.version == 3  # 1 is sent, 2 is followed, 3 waits for that
                assert not published(log)
            finally:
                gate.open.set()
                thread.join(HANGS_S)
        assert max(head[0] for head, _ in published(log)) > 20


def test_no_checkpoint_is_taken_and_no_step_returns_before_results_have_left(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened: list[str] = []

    def note(owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def noted(*given: Any) -> Any:
            happened.append(f"{name} begins")
            found = function(*given)
            happened.append(f"{name} ends")
            return found

        monkeypatch.setattr(owner, name, noted)

    note(SqliteLog, "produce_parts")
    note(Journal, "sync")
    note(Publisher, "make")
    note(Checkpointer, "begin")
    with SqliteLog(tmp_path / "log") as log:
        stream(log)
        with Pipeline(
            log, lpma.Graph(device=device), tmp_path / "state", batch_size=SIZE, track=TRACK,
            results=log, checkpoint_operations=30,
        ) as pipeline:  # fmt: skip
            del happened[:]
            pipeline.step()
            assert happened.count("produce_parts ends") == 1
            pipeline.run(70)
            assert happened.count("produce_parts ends") == happened.count("make begins")
            pipeline.run("end")
    assert happened.count("begin begins") > 2
    sent = [step for step in happened if step.split()[0] in ("make", "produce_parts", "begin")]
    for before, after in itertools.pairwise(sent):  # each of the three ends before another begins
        assert before.split()[1] == "begins" or after.split()[1] == "begins"
        assert before.split()[1] == "ends" or before.split()[0] == after.split()[0]
    written = [step for step in happened if step.split()[0] in ("sync", "produce_parts")]
    for before, after in itertools.pairwise(written):
        assert after != "produce_parts begins" or before == "sync ends"


@pytest.mark.parametrize("where", ["make", "send"])
def test_an_error_beside_the_stream_stops_it_and_nothing_is_missing_after_it(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    options: dict[str, Any] = {"track": TRACK, "batch_size": SIZE}
    told = []
    for fails in (False, True):
        with SqliteLog(tmp_path / f"log{fails}") as log:
            stream(log)
            pipeline = Pipeline(
                log, lpma.Graph(device=device), tmp_path / f"s{fails}", results=log, **options
            )
            if not fails:
                with pipeline:
                    pipeline.run("end")
            else:
                _fail_once(pipeline, where, log, options, tmp_path / f"s{fails}", monkeypatch)
            told.append(published(log))
    assert told[0] == told[1]


def _fail_once(
    pipeline: Pipeline,
    where: str,
    log: SqliteLog,
    options: dict[str, Any],
    state: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passes = itertools.count()
    function = getattr(Publisher, where)

    def failing(*given: Any) -> Any:
        if next(passes) == 5:
            raise SourceError("full")
        return function(*given)

    monkeypatch.setattr(Publisher, where, failing)
    with pytest.raises(SourceError, match="full"):
        pipeline.run("end")
    assert pipeline.graph.version < 10
    with pytest.raises(PipelineError, match="resume"):
        pipeline.step()
    pipeline.close()
    device = pipeline.graph.device  # type: ignore[attr-defined]
    with Pipeline.resume(state, log, device=device, results=log, **options) as resumed:
        resumed.run("end")


@pytest.mark.parametrize("kind", [BackgroundTask, DeferredTask])
def test_a_task_takes_one_call_at_a_time_none_after_an_error(
    kind: type[BackgroundTask],
) -> None:
    task, done = kind("test"), list[int]()
    for number in range(50):
        task.begin(lambda number=number: done.append(number))  # type: ignore[misc]
    task.wait()
    assert done == list(range(50))

    def fail() -> None:
        raise SourceError("full")

    task.begin(fail)
    for asked in (task.wait, task.wait, lambda: task.look(idle=False)):
        with pytest.raises(SourceError):
            asked()
    with pytest.raises(SourceError):
        task.begin(lambda: done.append(50))
    task.close()
    assert done == list(range(50))


def test_a_journal_is_synced_while_another_thread_appends(tmp_path: Path) -> None:
    """Every proof is of what was written before its sync began, and all entries come back."""
    from ingest.state.journal import Cut
    from ingest.state.journal_reader import read_journal

    journal = Journal(tmp_path, 0)
    entries: Sequence[Cut] = [Cut(n) for n in range(1, 3000)]

    def sync() -> None:
        for _ in range(300):
            journal.sync()

    syncing = threading.Thread(target=sync)
    syncing.start()
    for entry in entries:
        journal.append([entry])
    syncing.join()
    journal.sync()
    size = journal.size
    journal.sync()
    assert journal.size == size, "nothing new, nothing to say"
    journal.close()
    (found,) = read_journal(tmp_path, 0).segments
    assert found.entries == entries
    assert found.problem is None
