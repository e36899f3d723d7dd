"""The embedded log is made whole or not at all, by whoever writes first, and by no reader."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingest import Client, Partition, Pipeline, SourceError, SqliteLog
from ingest.sources.sqlite import file as log_file_module
from lpma import Graph
from tests.support.kills import Place, run
from tests.support.waiting import HANGS_S

UPDATES = Partition("updates", 0)
PROCESSES, ROUNDS = 6, 25


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "stream.log"


def _make(path: Path, barrier: Any, results: Any) -> None:
    for number in range(ROUNDS):
        log = SqliteLog(path.with_name(f"{number}.log"))
        barrier.wait(HANGS_S)
        try:
            log.produce("updates", b"%d" % os.getpid())
            results.put((number, log.identity().cluster))
        except BaseException as error:
            results.put((number, repr(error)))
            raise


@pytest.mark.system
def test_processes_that_make_one_log_at_the_same_moment_get_one_log(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(PROCESSES), context.Queue()
    children = [
        context.Process(target=_make, args=(path, barrier, results)) for _ in range(PROCESSES)
    ]
    for child in children:
        child.start()
    found = [results.get(timeout=HANGS_S) for _ in range(PROCESSES * ROUNDS)]
    for child in children:
        child.join(HANGS_S)
        assert child.exitcode == 0
    for number in range(ROUNDS):
        assert len({cluster for n, cluster in found if n == number}) == 1
        with SqliteLog(path.with_name(f"{number}.log")) as log:
            assert log.end_offsets()[UPDATES] == PROCESSES
    assert not list(path.parent.glob(".*")), "something temporary was left"


def between(monkeypatch: pytest.MonkeyPatch, place: str, step: Callable[[], object]) -> None:
    """Take `step` once, right before `place` of log_file is called."""
    real = getattr(log_file_module, place)

    def stepping(*args: Any) -> Any:
        monkeypatch.setattr(log_file_module, place, real)
        step()
        return real(*args)

    monkeypatch.setattr(log_file_module, place, stepping)


def test_the_name_is_never_taken_from_a_log_that_has_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process makes its log after the last look."""
    link = os.link
    steps = []

    def late(*args: Any) -> None:
        monkeypatch.setattr(os, "link", link)
        with SqliteLog(path) as other:
            steps.append(other.produce("updates", b"theirs"))
        link(*args)

    monkeypatch.setattr(os, "link", late)
    with SqliteLog(path) as log:
        assert log.produce("updates", b"ours") == 1
        assert [r.value for r in log.poll()] == [b"theirs", b"ours"]
    assert steps == [0]


@pytest.mark.parametrize(
    ("place", "empty"),
    [("_lay_out", False), ("_transaction", False), ("_is_there", False), ("fsync_directory", False),
     ("_lay_out", True), ("_transaction", True)],
)  # fmt: skip
def test_another_process_may_come_between_any_two_steps(
    path: Path, monkeypatch: pytest.MonkeyPatch, place: str, empty: bool
) -> None:
    if empty:
        path.touch()
    other = SqliteLog(path)
    between(monkeypatch, place, lambda: other.produce("updates", b"theirs"))
    with SqliteLog(path) as log, other:
        log.produce("updates", b"ours")
        assert [r.value for r in other.poll()] == [b"theirs", b"ours"]
        assert [r.value for r in log.poll()] == [b"theirs", b"ours"]
        assert log.identity() == other.identity()


def write_first(path: Path) -> None:
    SqliteLog(path).produce("updates", b"never")


@pytest.mark.system
@pytest.mark.parametrize("place", ["_lay_out", "_transaction", "_is_there", "fsync_directory"])
def test_a_kill_while_a_log_is_made_leaves_all_or_nothing(path: Path, place: str) -> None:
    point = f"ingest.sources.sqlite.file:{place}"
    assert run(write_first, path, points=[point], place=Place(point, 0)).killed
    with SqliteLog(path) as log:
        if place == "fsync_directory":
            assert log.end_offsets()[UPDATES] == 0
        else:
            assert not path.exists()
        assert log.produce("updates", b"first") == 0
    with SqliteLog(path) as log:
        assert [r.value for r in log.poll()] == [b"first"]


def test_a_reader_makes_no_log_and_is_told_who_does(path: Path) -> None:
    with SqliteLog(path) as log:
        reads: list[Callable[[], object]] = [
            log.poll, log.positions, log.end_offsets, log.at_end, log.identity,
            lambda: log.seek({UPDATES: 0}), lambda: log.trim("updates", 0, 1),
            lambda: log.delete_topic("updates"), lambda: Pipeline(log, Graph(device="cpu")),
            lambda: Pipeline(log, Graph(device="cpu"), path.parent / "state"),
        ]  # fmt: skip
        for read in reads:
            with pytest.raises(SourceError, match="there is no log: a writer makes it"):
                read()
        with pytest.raises(Exception, match="log"):
            Client(log)
        assert not list(path.parent.iterdir())
        with SqliteLog(path) as writer:
            writer.produce("updates", b"x")
        assert [r.value for r in log.poll()] == [b"x"], "the reader finds what came meanwhile"
    closed = SqliteLog(path.with_name("other.log"))
    closed.close()
    with pytest.raises(SourceError, match="failed"):
        closed.produce("updates", b"x")
    assert not path.with_name("other.log").exists()


def test_an_empty_file_is_no_log_until_someone_writes(path: Path) -> None:
    """As an earlier release left it, killed between the file's creation and its mark."""
    header = path.with_name("header.log")
    with sqlite3.connect(header) as database:
        database.execute("PRAGMA journal_mode = WAL")
    database.close()
    path.touch()
    assert header.stat().st_size > path.stat().st_size == 0
    for file in (path, header):
        with SqliteLog(file) as log:
            with pytest.raises(SourceError, match="there is no log"):
                log.poll()
            log.produce("updates", b"x")
        with SqliteLog(file) as log:
            assert [r.value for r in log.poll()] == [b"x"]


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_what_a_log_that_is_gone_left_is_not_applied_to_the_next(path: Path, suffix: str) -> None:
    left = Path(f"{path}{suffix}")
    left.write_bytes(b"frames of another log")
    with SqliteLog(path) as log, pytest.raises(SourceError, match=f"{left}: was left by a log"):
        log.produce("updates", b"x")
    assert [*path.parent.iterdir()] == [left]


def test_a_log_of_format_1_is_read_and_gets_times(path: Path) -> None:
    with SqliteLog(path) as log:
        log.produce("updates", b"old")
    with sqlite3.connect(path) as database:
        database.execute("ALTER TABLE records DROP COLUMN time")
        database.execute("PRAGMA user_version = 1")
    database.close()
    with SqliteLog(path) as log, SqliteLog(path) as beside:
        log.produce("updates", b"new")
        assert [(r.value, r.time > 0) for r in beside.poll()] == [(b"old", False), (b"new", True)]
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 4")
    database.close()
    with pytest.raises(SourceError, match="but this release reads 2 and 3"):
        SqliteLog(path)


def test_a_commit_is_synced_as_far_as_the_system_can(tmp_path: Path) -> None:
    """On macOS that is further than SQLite's usual; SQLite elsewhere takes the words as well."""
    with SqliteLog(tmp_path / "log") as log:
        log.produce("updates", b"x")
        file = log._made()
        for pragma, value in (("synchronous", 2), ("fullfsync", 1), ("checkpoint_fullfsync", 1)):
            assert file.one(f"PRAGMA {pragma}") == (value,)
