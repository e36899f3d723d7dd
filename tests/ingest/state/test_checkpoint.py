"""Checkpoints and their directory: whole, or found out."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ingest import CheckpointError, LockedError, Partition
from ingest.errors import JournalError
from ingest.pipeline.record_reader import MAX_PRODUCERS
from ingest.sources import Identity
from ingest.state.checkpoint import (
    GRAPH,
    MANIFEST,
    ROWS,
    Checkpoint,
    CheckpointSnapshot,
    State,
    read_checkpoint,
)
from ingest.state.directory import CheckpointDirectory, checkpoint_numbers, checkpoint_path
from ingest.state.inspection import find_checkpoints
from ingest.state.journal import Chunk, Cut, Entry, segment_numbers, segment_path
from ingest.types import MAX_TEXT_BYTES, Position
from lpma.errors import FormatError
from tests.support.stream_model import SavedImage

A, B = Partition("updates", 0), Partition("queries", 3)
STATE = State(
    Identity("cluster", {"updates": "1"}),
    {A: Position(7, 3), B: Position(2)},
    {(A, "producer"): 9},
    version=4,
    stamp=10**12,
    operations=99,
)
WAITING: list[Entry] = [Chunk(1, A, 9, 9), Cut(3)]
ENTRIES: list[Entry] = [
    Chunk(10**12, A, 7, 9), Cut(5), Chunk(10**12 + 1, B, 2, 2, shed=True), Cut(1)
]  # fmt: skip


def opened(path: Path) -> CheckpointDirectory:
    """A directory with a journal: a new one, or one that goes on from its newest checkpoint."""
    directory = CheckpointDirectory(path)
    if directory.numbers():
        directory.go_on_from(directory.newest(graph_of)[0])
    else:
        directory.begin_journal()
    return directory


def rotate(directory: CheckpointDirectory) -> int:
    assert directory.journal is not None
    return directory.journal.rotate()


def commit(
    directory: CheckpointDirectory,
    content: bytes,
    state: State = STATE,
    waiting: list[Entry] | None = None,
) -> int:
    """As the pipeline does; the number."""
    images = {GRAPH: SavedImage(content), "second": SavedImage(content[::-1])}
    taken = CheckpointSnapshot(state, images, rotate(directory), waiting or [], 10**12 + 5)
    return directory.commit(taken)[0]


def append(directory: CheckpointDirectory, entries: list[Entry]) -> None:
    assert directory.journal is not None
    directory.journal.append(entries)


def two_checkpoints(path: Path) -> None:
    """Number 0 with content "old" and number 1 with content "new", both with entries since."""
    directory = opened(path)
    commit(directory, b"old")
    append(directory, ENTRIES[:2])
    commit(directory, b"new", State(STATE.identity, {}, version=5), WAITING)
    append(directory, ENTRIES[2:])
    directory.close()


def graph_of(found: Checkpoint) -> bytes:
    return (found.path / GRAPH).read_bytes()


def newest(path: Path) -> tuple[int, bytes, State]:
    directory = CheckpointDirectory(path)
    try:
        found, content = directory.newest(graph_of)
        return found.number, content, found.state
    finally:
        directory.close()


def history(path: Path, number: int) -> list[Entry]:
    directory = CheckpointDirectory(path)
    try:
        found = read_checkpoint(checkpoint_path(path, number), number)
        return [*found.waiting, *directory.go_on_from(found).entries]
    finally:
        directory.close()


def test_what_was_committed_comes_back(tmp_path: Path) -> None:
    directory = CheckpointDirectory(tmp_path / "deep" / "er")
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        directory.newest(graph_of)
    directory.begin_journal()
    commit(directory, b"graph", waiting=WAITING)
    directory.close()
    assert newest(directory.path) == (0, b"graph", STATE)
    assert history(directory.path, 0) == WAITING
    assert checkpoint_numbers(directory.path) == [0]
    assert checkpoint_numbers(tmp_path / "missing") == []
    found = read_checkpoint(checkpoint_path(directory.path, 0), 0)
    assert (found.time, found.nbytes, found.waiting) == (10**12 + 5, 10, WAITING)


@pytest.mark.parametrize("sources", [ROWS - 1, ROWS, ROWS + 1, 3 * ROWS])
def test_many_sources_come_back(tmp_path: Path, sources: int) -> None:
    state = State(STATE.identity, {}, {(A, f"«{i}»"): i for i in range(sources)})
    directory = opened(tmp_path)
    commit(directory, b"graph", state)
    directory.close()
    assert newest(tmp_path)[2] == state


@pytest.mark.nightly
def test_the_sources_of_many_partitions_come_back(tmp_path: Path) -> None:
    """Each may have as many as are remembered, under names as long as names may be."""
    name = "n" * (MAX_TEXT_BYTES - 6)
    partitions = [Partition("t" * MAX_TEXT_BYTES, number) for number in range(5)]
    producers = {(p, f"{name}{i:06}"): i for p in partitions for i in range(MAX_PRODUCERS)}
    directory = opened(tmp_path / "c")
    commit(directory, b"graph", replace(STATE, producers=producers))
    directory.close()
    manifest = checkpoint_path(tmp_path / "c", 0) / MANIFEST
    assert manifest.stat().st_size > 64 << 20
    assert newest(tmp_path / "c")[2].producers == producers


def test_two_are_kept_with_the_segments_they_need(tmp_path: Path) -> None:
    directory = opened(tmp_path)
    for number in range(5):
        assert commit(directory, b"%d" % number) == number
        append(directory, [Cut(number + 1)])
        kept = [n for n in (number - 1, number) if n >= 0]
        assert directory.numbers() == kept
        # Checkpoint N begins at segment N + 1; the very first segment is of no use after it.
        assert segment_numbers(tmp_path) == [n + 1 for n in kept]
    directory.close()
    assert newest(tmp_path)[:2] == (4, b"4")
    assert history(tmp_path, 4) == [Cut(5)]
    assert history(tmp_path, 3) == [Cut(4), Cut(5)]


def test_what_was_waiting_is_read_once(tmp_path: Path) -> None:
    """From the older checkpoint on it stands in the journal already."""
    two_checkpoints(tmp_path)
    assert history(tmp_path, 1) == [*WAITING, *ENTRIES[2:]]
    assert history(tmp_path, 0) == ENTRIES


@pytest.mark.parametrize("name", [GRAPH, "second", MANIFEST])
def test_any_changed_byte_or_length_means_the_previous_one(tmp_path: Path, name: str) -> None:
    path = tmp_path / "checkpoints"
    two_checkpoints(path)
    file = checkpoint_path(path, 1) / name
    good = file.read_bytes()
    damaged = [good[:n] for n in range(len(good))] + [good + b"\n", good + b"\0"]
    for at in range(len(good)):
        for bit in (0x01, 0x20):
            damaged.append(good[:at] + bytes([good[at] ^ bit]) + good[at + 1 :])
    directory = CheckpointDirectory(path)
    for data in damaged:
        file.write_bytes(data)
        found, content = directory.newest(graph_of)
        assert (found.number, content, found.state) == (0, b"old", STATE)
    directory.close()
    assert history(path, 0) == ENTRIES, "the journal is good still"
    file.unlink()
    assert newest(path) == (0, b"old", STATE)
    file.write_bytes(good)
    assert newest(path)[:2] == (1, b"new")


def test_no_good_checkpoint_is_refused_by_name(tmp_path: Path) -> None:
    two_checkpoints(tmp_path)
    for number, name in ((0, GRAPH), (1, MANIFEST)):
        (checkpoint_path(tmp_path, number) / name).write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"checkpoint 1: checkpoint.json is damaged; "
                                              r"checkpoint 0: graph.lpma is damaged"):  # fmt: skip
        newest(tmp_path)


def test_a_copy_under_another_number_is_refused(tmp_path: Path) -> None:
    two_checkpoints(tmp_path)
    shutil.copytree(checkpoint_path(tmp_path, 0), checkpoint_path(tmp_path, 2))
    assert newest(tmp_path)[:2] == (1, b"new")


def test_another_format_is_refused_by_name(tmp_path: Path) -> None:
    two_checkpoints(tmp_path)
    for number in (0, 1):
        old: dict[str, object] = {"format": 1, "number": number, "state": {}, "files": {}}
        (checkpoint_path(tmp_path, number) / MANIFEST).write_text(f"{json.dumps(old)}\n{'0' * 128}")
    with pytest.raises(CheckpointError, match="of format 1, but this release reads 3: go on with"):
        newest(tmp_path)


def test_a_graph_that_does_not_load_means_the_previous_one(tmp_path: Path) -> None:
    two_checkpoints(tmp_path)

    def load(found: Checkpoint) -> bytes:
        if graph_of(found) == b"new":
            raise FormatError("made by a later version")
        return graph_of(found)

    directory = CheckpointDirectory(tmp_path)
    found, content = directory.newest(load)
    assert (found.number, content) == (0, b"old")
    assert directory.go_on_from(found).entries == ENTRIES
    # The next one is numbered behind the bad one, which goes when two good ones are newer.
    commit(directory, b"newer")
    assert directory.numbers() == [0, 1, 2]
    assert segment_numbers(tmp_path)[0] == found.segment
    commit(directory, b"newest")
    assert directory.numbers() == [2, 3]
    directory.close()


def test_a_second_writer_is_refused_or_the_first_is_stopped(tmp_path: Path) -> None:
    first = opened(tmp_path)
    commit(first, b"1")
    with pytest.raises(LockedError, match="another pipeline writes here"):
        CheckpointDirectory(tmp_path)
    segment = rotate(first)
    # Where the lock does not hold (a network file system), the fence stops the first writer:
    (tmp_path / "lock").unlink()
    second = opened(tmp_path)
    late = CheckpointSnapshot(STATE, {GRAPH: SavedImage(b"2")}, segment, [], 0)
    assert first.journal is not None
    for refused in (lambda: first.commit(late), first.journal.sync, first.journal.rotate):
        with pytest.raises(LockedError, match="taken over"):
            refused()
    assert not list(tmp_path.glob(".tmp-*"))
    append(first, [Cut(99)])  # nobody reads that
    append(second, [Cut(1)])
    assert commit(second, b"3", waiting=[Cut(2)]) == 1
    first.close()
    second.close()
    assert history(tmp_path, 0) == [Cut(1)]
    assert newest(tmp_path)[:2] == (1, b"3")


def test_the_fence_is_looked_at_after_all_is_written(tmp_path: Path) -> None:
    """A commit beside the stream takes long: another writer may come meanwhile."""
    first = opened(tmp_path)
    commit(first, b"1")

    class Overtaken(SavedImage):
        def write(self, file: object) -> None:
            (tmp_path / "fence").write_text("another")

    with pytest.raises(LockedError, match="taken over"):
        first.commit(CheckpointSnapshot(STATE, {GRAPH: Overtaken(b"")}, rotate(first), [], 0))
    first.close()
    assert newest(tmp_path)[:2] == (0, b"1")


def test_a_directory_that_cannot_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot hold checkpoints"):
        CheckpointDirectory(tmp_path / "file")


def test_what_a_crash_left_is_removed_or_never_read(tmp_path: Path) -> None:
    # Before the first checkpoint was committed:
    opened(tmp_path).close()
    two_checkpoints(tmp_path)
    (tmp_path / ".tmp-0000000002").mkdir()
    (tmp_path / ".tmp-0000000002" / "graph.lpma").write_bytes(b"half")
    (tmp_path / ".tmp-journal-0000000004").write_bytes(b"half")
    assert newest(tmp_path)[0] == 1
    assert history(tmp_path, 0) == ENTRIES
    assert not list(tmp_path.glob(".tmp-*"))


def test_a_directory_that_lost_its_checkpoints_is_not_begun_in(tmp_path: Path) -> None:
    """Its journal says that something has happened, which a new beginning would not hold."""
    two_checkpoints(tmp_path)
    for path in tmp_path.glob("checkpoint-*"):
        shutil.rmtree(path)
    with pytest.raises(CheckpointError, match="no checkpoint any more: restore"):
        opened(tmp_path)
    with pytest.raises(CheckpointError, match="no checkpoint any more: restore"):
        find_checkpoints(tmp_path, every_byte=False)
    assert segment_numbers(tmp_path), "what is left stays"


def test_a_damaged_journal_is_refused_where_it_is_needed(tmp_path: Path) -> None:
    two_checkpoints(tmp_path)
    path = segment_path(tmp_path, 1)
    os.truncate(path, path.stat().st_size // 2)
    assert history(tmp_path, 1), "not needed from checkpoint 1 on"
    with pytest.raises(JournalError, match=r"damaged at byte .*accept_journal_loss=true"):
        history(tmp_path, 0)
    path.unlink()
    with pytest.raises(JournalError, match=r"journal-0000000001 is missing.*accept_journal_loss"):
        history(tmp_path, 0)


def test_a_loss_that_is_accepted_is_no_part_of_what_follows(tmp_path: Path) -> None:
    """What is lost is not read again should its file come back, nor what came after as its end."""
    two_checkpoints(tmp_path)
    opened(tmp_path).close()
    last = segment_path(tmp_path, segment_numbers(tmp_path)[-1])
    kept = last.read_bytes()
    last.unlink()
    directory = CheckpointDirectory(tmp_path)
    found = directory.newest(graph_of)[0]
    lost = directory.go_on_from(found, accept_loss=True)
    assert lost.damage is not None
    assert lost.damage.problem == f"{last.name} is missing"
    assert lost.entries == ENTRIES[2:], "what stood before it"
    with pytest.raises(JournalError):
        CheckpointDirectory.go_on_from(directory, found)  # nothing was committed yet
    assert commit(directory, b"newer") == 2
    append(directory, ENTRIES[:1])
    directory.close()
    last.write_bytes(kept)
    assert history(tmp_path, 2) == ENTRIES[:1]
    with pytest.raises(JournalError, match="begins anew"):
        history(tmp_path, 1)
