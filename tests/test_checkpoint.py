"""Checkpoints and journals: whole, or found out."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingest import CheckpointError, Identity, LockedError, Partition
from ingest import checkpoint as module
from ingest.batcher import Position
from ingest.checkpoint import CheckpointDirectory, State, checkpoint_numbers
from ingest.journal import MAGIC, Chunk, Cut, Entry, Journal, chunks, read_journal
from lpma.errors import FormatError

A, B = Partition("updates", 0), Partition("queries", 3)
STATE = State(
    Identity("cluster", {"updates": "1"}),
    {A: Position(7, 3), B: Position(2)},
    {(A, "producer"): 9},
    version=4,
    stamp=10**12,
    operations=99,
    epoch=2,
)
ENTRIES: list[Entry] = [
    Chunk(10**12, A, 7, 9), Cut(5), Chunk(10**12 + 1, B, 2, 2, shed=True), Cut(1)
]  # fmt: skip


def saver(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def two_checkpoints(path: Path) -> None:
    """Number 0 with content "old" and a journal, number 1 with content "new" and a journal."""
    directory = CheckpointDirectory(path)
    directory.commit(STATE, saver(b"old"), [])
    assert directory.journal is not None
    directory.journal.append(ENTRIES[:2])
    directory.commit(State(STATE.identity, {}, version=5), saver(b"new"), [Chunk(1, A, 9, 9)])
    directory.journal.append(ENTRIES[2:])
    directory.close()


def newest(path: Path) -> tuple[int, bytes, State]:
    directory = CheckpointDirectory(path)
    try:
        found, content = directory.newest(Path.read_bytes)
        return found.number, content, found.state
    finally:
        directory.close()


def history(path: Path, number: int) -> list[Entry]:
    directory = CheckpointDirectory(path)
    try:
        return directory.history_since(number)
    finally:
        directory.close()


def test_what_was_committed_comes_back(tmp_path: Path) -> None:
    directory = CheckpointDirectory(tmp_path / "deep" / "er")
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        directory.newest(Path.read_bytes)
    directory.commit(STATE, saver(b"graph"), [])
    directory.close()
    assert newest(directory.path) == (0, b"graph", STATE)
    assert checkpoint_numbers(directory.path) == [0]
    assert checkpoint_numbers(tmp_path / "missing") == []


def test_two_are_kept_and_journals_run_on(tmp_path: Path) -> None:
    directory = CheckpointDirectory(tmp_path)
    for number in range(5):
        directory.commit(STATE, saver(b"%d" % number), [])
        assert directory.journal is not None
        directory.journal.append([Cut(number + 1)])
        assert directory.numbers() == [n for n in (number - 1, number) if n >= 0]
    directory.close()
    assert newest(tmp_path)[:2] == (4, b"4")
    assert history(tmp_path, 4) == [Cut(5)]
    assert history(tmp_path, 3) == [Cut(4), Cut(5)]


def test_what_was_carried_over_is_read_once(tmp_path: Path) -> None:
    two_checkpoints(tmp_path)
    carried = Chunk(1, A, 9, 9, carried=True)
    assert history(tmp_path, 1) == [carried, *ENTRIES[2:]]
    assert history(tmp_path, 0) == ENTRIES


@pytest.mark.parametrize("name", [module.GRAPH, module.MANIFEST])
def test_any_changed_byte_or_length_means_the_previous_one(tmp_path: Path, name: str) -> None:
    path = tmp_path / "checkpoints"
    two_checkpoints(path)
    file = path / "checkpoint-0000000001" / name
    good = file.read_bytes()
    damaged = [good[:n] for n in range(len(good))] + [good + b"\n", good + b"\0"]
    for at in range(len(good)):
        for bit in (0x01, 0x20):
            damaged.append(good[:at] + bytes([good[at] ^ bit]) + good[at + 1 :])
    directory = CheckpointDirectory(path)
    for data in damaged:
        file.write_bytes(data)
        found, content = directory.newest(Path.read_bytes)
        assert (found.number, content, found.state) == (0, b"old", STATE)
    directory.close()
    assert history(path, 0) == ENTRIES, "the newer journal is good still"
    file.unlink()
    assert newest(path) == (0, b"old", STATE)
    file.write_bytes(good)
    assert newest(path)[:2] == (1, b"new")


def test_no_good_checkpoint_is_refused_by_name(tmp_path: Path) -> None:
    two_checkpoints(tmp_path)
    for number, name in ((0, module.GRAPH), (1, module.MANIFEST)):
        (tmp_path / f"checkpoint-000000000{number}" / name).write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"checkpoint 1: checkpoint.json is damaged; "
                                              r"checkpoint 0: graph.lpma is damaged"):  # fmt: skip
        newest(tmp_path)


def test_a_copy_under_another_number_is_refused(tmp_path: Path) -> None:
    two_checkpoints(tmp_path)
    shutil.copytree(tmp_path / "checkpoint-0000000000", tmp_path / "checkpoint-0000000002")
    assert newest(tmp_path)[:2] == (1, b"new")


def test_a_graph_that_does_not_load_means_the_previous_one(tmp_path: Path) -> None:
    two_checkpoints(tmp_path)

    def load(path: Path) -> bytes:
        if path.read_bytes() == b"new":
            raise FormatError("made by a later version")
        return path.read_bytes()

    directory = CheckpointDirectory(tmp_path)
    found, content = directory.newest(load)
    assert (found.number, content) == (0, b"old")
    # The next one is numbered behind the bad one, which goes when two good ones are newer.
    directory.history_since(found.number)
    directory.commit(STATE, saver(b"newer"), [])
    assert directory.numbers() == [0, 1, 2]
    directory.commit(STATE, saver(b"newest"), [])
    assert directory.numbers() == [2, 3]
    directory.close()


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    first = CheckpointDirectory(tmp_path)
    first.commit(STATE, saver(b"1"), [])
    with pytest.raises(LockedError, match="another pipeline writes here"):
        CheckpointDirectory(tmp_path)
    # Where the lock does not hold (a network file system), the fence stops the first writer.
    (tmp_path / "lock").unlink()
    second = CheckpointDirectory(tmp_path)
    with pytest.raises(LockedError, match="taken over"):
        first.commit(STATE, saver(b"2"), [])
    second.newest(Path.read_bytes)
    second.commit(STATE, saver(b"3"), [])
    assert newest_number(second) == 1
    first.close()
    second.close()


def newest_number(directory: CheckpointDirectory) -> int:
    return directory.newest(Path.read_bytes)[0].number


def test_a_directory_that_cannot_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot hold checkpoints"):
        CheckpointDirectory(tmp_path / "file")


def test_strays_of_a_crash_are_removed(tmp_path: Path) -> None:
    two_checkpoints(tmp_path)
    (tmp_path / ".tmp-0000000002").mkdir()
    (tmp_path / ".tmp-0000000002" / "graph.lpma").write_bytes(b"half")
    assert newest(tmp_path)[0] == 1
    assert not (tmp_path / ".tmp-0000000002").exists()


CALLS = ["os.fsync", "os.rename", "os.mkdir", "os.open", "os.write", "os.unlink", "os.rmdir",
         "pathlib.Path.write_bytes"]  # fmt: skip


class Failing:
    """Counts the calls of some functions, and makes the n-th of them fail as a full disk does."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int) -> None:
        self.calls = 0
        for name in CALLS:
            target, _, attribute = name.rpartition(".")
            owner = {"os": os, "pathlib.Path": Path}[target]
            patch.setattr(owner, attribute, self.wrapped(getattr(owner, attribute), at))

    def wrapped(self, function: Callable[..., Any], at: int) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            self.calls += 1
            if self.calls - 1 == at:
                raise OSError(errno.ENOSPC, "No space left on device")
            return function(*args, **options)

        return call


def test_a_disk_that_fails_at_any_call_leaves_a_good_checkpoint(tmp_path: Path) -> None:
    calls = 0
    at = 0
    while at <= calls:
        path = tmp_path / f"at-{at}"
        two_checkpoints(path)
        directory = CheckpointDirectory(path)
        directory.newest(Path.read_bytes)
        directory.history_since(1)
        failed = False
        with pytest.MonkeyPatch.context() as patch:
            disk = Failing(patch, at)
            try:
                directory.commit(STATE, saver(b"third"), [Chunk(1, A, 9, 9)])
            except CheckpointError:
                failed = True
            calls = max(calls, disk.calls)
        directory.close()
        number, content, _ = newest(path)
        assert (number, content) in ((1, b"new"), (2, b"third"))
        assert failed or number == 2
        assert history(path, 1)[:3] == [Chunk(1, A, 9, 9, carried=True), *ENTRIES[2:]]
        shutil.rmtree(path)
        at += 1
    assert calls > 12


# The journal ---------------------------------------------------------------------------------


def test_entries_come_back(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.append(ENTRIES[:1])
    journal.append(ENTRIES[1:])
    journal.sync()
    journal.close()
    assert read_journal(path)[0] == ENTRIES
    again = Journal(path)
    assert again.size == path.stat().st_size
    again.append([Cut(3)])
    again.close()
    assert read_journal(path)[0] == [*ENTRIES, Cut(3)]


def test_neighbours_become_one_chunk() -> None:
    records = [Chunk(1, A, 0, 0), Chunk(1, A, 1, 4), Chunk(1, B, 0, 0), Chunk(1, A, 5, 5),
               Chunk(2, A, 6, 6), Chunk(2, A, 7, 7, shed=True)]  # fmt: skip
    assert chunks(records) == [Chunk(1, A, 0, 4), *records[2:]]


def test_a_torn_or_damaged_end_is_dropped_and_written_over(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    ends = [len(MAGIC)]
    for entry in ENTRIES:
        journal.append([entry])
        ends.append(journal.size)
    journal.close()
    good = path.read_bytes()
    damaged = [(n, good[:n]) for n in range(len(good))]
    damaged += [(n, good[:n] + bytes([good[n] ^ 0x10]) + good[n + 1 :]) for n in range(len(good))]
    damaged += [(len(good), good + bytes(100)), (len(good), good + b"\xff" * 100)]
    for at, data in damaged:
        path.write_bytes(data)
        whole = [e for e, end in zip(ENTRIES, ends[1:], strict=True) if end <= at]
        assert read_journal(path)[0] == whole
        journal = Journal(path)
        journal.append([Cut(77)])
        journal.close()
        assert read_journal(path)[0] == [*whole, Cut(77)]


def test_a_damaged_journal_between_checkpoints_is_refused(tmp_path: Path) -> None:
    two_checkpoints(tmp_path)
    path = tmp_path / "checkpoint-0000000000" / module.JOURNAL
    path.write_bytes(path.read_bytes()[:-1])
    assert history(tmp_path, 1), "not needed from checkpoint 1 on"
    with pytest.raises(CheckpointError, match="damaged at byte"):
        history(tmp_path, 0)


@pytest.mark.parametrize("short", [False, True])
def test_a_write_that_fails_leaves_no_half_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: bool
) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.append(ENTRIES[:2])
    real = os.write

    def full(file: int, data: bytes) -> int:
        if short and len(data) > 5:
            return real(file, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(CheckpointError, match="No space left"):
            journal.append(ENTRIES[2:])
    assert read_journal(path)[0] == ENTRIES[:2]
    journal.append(ENTRIES[2:])
    journal.close()
    assert read_journal(path)[0] == ENTRIES


def test_after_a_failed_sync_nothing_more_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "journal")

    def failing(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        with pytest.raises(CheckpointError, match="cannot be synced"):
            journal.sync()
    with pytest.raises(CheckpointError, match="earlier write failed"):
        journal.append(ENTRIES)
    journal.close()
