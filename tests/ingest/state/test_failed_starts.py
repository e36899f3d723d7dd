"""Starts that fail leave no more and more segments of the journal; no segment in which something
stands is ever touched, whatever happens at any moment. Starts that are refused stop nobody, and
hold nothing."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lpma
from ingest import (
    CheckpointError,
    Pipeline,
    PipelineError,
    SourceError,
    SqliteLog,
    encode_updates,
    has_checkpoint,
)
from ingest.errors import IdentityError
from ingest.state.directory import checkpoint_path
from ingest.state.journal import (
    SYNCED_NAME,
    Cut,
    Entry,
    Journal,
    segment_numbers,
    segment_path,
)
from ingest.state.journal_reader import go_on_behind, read_journal
from tests.ingest.state.test_journal import ENTRIES, read, written

CALLS = ("open", "write", "fsync", "rename", "unlink", "ftruncate")


def full(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    more(tmp_path / "log")
    return tmp_path / "log"


def more(path: Path) -> None:
    with SqliteLog(path) as log:
        at = log.produce("updates", encode_updates([0, 1], [1, 2]))
        log.produce("updates", encode_updates([at], [at + 1]))


def starts(state: Path, log: Path, count: int, **options: Any) -> list[list[int]]:
    """Start so often while no checkpoint can be written; the segments after each."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ingest.state.directory.write_checkpoint", full)
        for _ in range(count):
            with pytest.raises(CheckpointError, match="free the disk"):
                start(state, log, **options)
            found.append(segment_numbers(state))
    return found


def start(state: Path, log: Path, **options: Any) -> None:
    pipeline = resumed(state, log, checkpoint_operations=1, **options)
    try:
        pipeline.run("end")
        pipeline.checkpoint_now()
    finally:
        pipeline.close(checkpoint=False)


def resumed(state: Path, log: Path, **options: Any) -> Pipeline:
    """Another process would have a log of its own, too."""
    if has_checkpoint(state):
        return Pipeline.resume(state, SqliteLog(log), **options)
    return Pipeline(SqliteLog(log), lpma.Graph(device="cpu"), state)


def check(state: Path, log: Path) -> None:
    """The disk is well again: all of the log is in the graph, once."""
    expected = lpma.Graph(device="cpu")
    Pipeline(SqliteLog(log), expected).run("end")
    for _ in range(2):
        pipeline = resumed(state, log)
        pipeline.run("end")
        assert rows(pipeline.graph) == rows(expected)
        pipeline.close()


def rows(graph: Any) -> list[list[float]]:
    found = graph.snapshot()
    return [found.indptr.tolist(), found.indices.tolist(), found.weights.tolist()]


def test_starts_on_a_full_disk(tmp_path: Path, log: Path) -> None:
    """What the first one reads stands in its segment; those that follow leave one more in all."""
    state = tmp_path / "state"
    resumed(state, log).close()
    first, *others = starts(state, log, 6)
    entries = read_journal(state, first[0]).entries
    assert entries, "the first start has read something"
    assert all(len(found) <= len(first) + 1 for found in others), others
    assert read_journal(state, first[0]).entries == entries
    more(log)
    assert len(starts(state, log, 6)[-1]) <= len(first) + 2, "one more holds the new records"
    assert read_journal(state, first[0]).entries[: len(entries)] == entries
    check(state, log)


def test_a_first_start_is_not_asked_for_what_was_synced_before(tmp_path: Path, log: Path) -> None:
    """Whoever empties a directory by hand may leave the file that says how far its journal went."""
    state = tmp_path / "state"
    written = Journal(tmp_path, 5)
    written.append([Cut(1)])
    written.sync()
    written.close()
    state.mkdir()
    shutil.copy(tmp_path / SYNCED_NAME, state)
    resumed(state, log).close(checkpoint=False)  # nothing was synced yet
    check(state, log)


def test_first_starts_on_a_full_disk(tmp_path: Path, log: Path) -> None:
    state = tmp_path / "state"
    assert {len(found) for found in starts(state, log, 6)} == {2}
    check(state, log)


def test_starts_that_accept_a_loss_on_a_full_disk(tmp_path: Path, log: Path) -> None:
    state = tmp_path / "state"
    resumed(state, log).close()
    for number in segment_numbers(state):
        segment_path(state, number).unlink()
    found = starts(state, log, 6, accept_journal_loss=True)
    assert {len(numbers) for numbers in found} == {2}
    resumed(state, log, accept_journal_loss=True).close()
    check(state, log)


def test_segments_that_a_checkpoint_may_need_stay(tmp_path: Path, log: Path) -> None:
    """One that is newer than the one resumed from, and damaged, or unreadable for the moment."""
    state = tmp_path / "state"
    with resumed(state, log) as pipeline:
        pipeline.run(1)
    newest = checkpoint_path(state, 1) / "checkpoint.json"
    before, data = segment_numbers(state), newest.read_bytes()
    newest.write_bytes(data[:-1])
    resumed(state, log).close(checkpoint=False)
    assert segment_numbers(state) == [*before, before[-1] + 1]
    newest.write_bytes(data)
    check(state, log)


@pytest.mark.parametrize("blank", [1, 2, 4])
@pytest.mark.parametrize("entries", [[], ENTRIES])
def test_a_reader_and_a_crash_at_any_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blank: int, entries: list[Entry]
) -> None:
    """Before each call that reaches the disk the journal is whole, for whoever reads it then."""
    segments: list[list[Entry]] = [entries, *([] for _ in range(blank))]
    written(tmp_path, *segments).close()
    seen = 0

    def looked(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            nonlocal seen
            seen += 1
            assert read(tmp_path) == entries
            return real(*args, **options)

        return call

    for name in CALLS:
        monkeypatch.setattr(os, name, looked(getattr(os, name)))
    journal = go_on_behind(read_journal(tmp_path, 0), over_blank=True)
    assert seen > 5
    journal.append([Cut(7)])
    journal.close()
    assert read(tmp_path) == [*entries, Cut(7)]
    assert segment_numbers(tmp_path) == ([0, 1] if entries else [0])


def test_a_reader_that_has_seen_a_segment_which_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, ENTRIES, [], []).close()
    before = segment_numbers(tmp_path)
    journal = go_on_behind(read_journal(tmp_path, 0), over_blank=True)
    assert segment_numbers(tmp_path) == before[:2]
    monkeypatch.setattr("ingest.state.journal_reader.segment_numbers", lambda _: before)
    assert read(tmp_path) == ENTRIES
    journal.rotate()
    segment_path(tmp_path, 2).unlink()
    history = read_journal(tmp_path, 0)
    assert history.damage is not None
    assert history.damage.problem == "journal-0000000002 is missing", "its seal tells them apart"
    journal.close()


def test_a_torn_end_is_left_as_it_is(tmp_path: Path) -> None:
    """It may have been a record, and somebody may want to look."""
    journal = written(tmp_path, ENTRIES, [])
    journal.close()
    with journal.path.open("ab") as file:
        file.write(b"torn")
    go_on_behind(read_journal(tmp_path, 0), over_blank=True).close()
    assert segment_numbers(tmp_path) == [0, 1, 2]
    assert read(tmp_path) == ENTRIES


@pytest.mark.parametrize("how", ["afresh", "resumed", "another log"])
def test_a_refused_start_stops_nobody(tmp_path: Path, log: Path, how: str) -> None:
    """Where locks do not work, the fence of a writer that takes over stops the one before."""
    state, other = tmp_path / "state", tmp_path / "other"
    more(other)
    first = resumed(state, log)
    first.run(1)
    fence = (state / "fence").read_bytes()
    (state / "lock").unlink()
    (state / ".tmp-0000000001").mkdir()  # what the first one has under way
    graph = lpma.Graph(device="cpu")
    refused: dict[str, tuple[type[Exception], Callable[[], Pipeline]]] = {
        "afresh": (CheckpointError, lambda: Pipeline(SqliteLog(log), graph, state, names=True)),
        "resumed": (PipelineError, lambda: Pipeline.resume(state, SqliteLog(log), names=True)),
        "another log": (IdentityError, lambda: Pipeline.resume(state, SqliteLog(other))),
    }
    error, start_another = refused[how]
    with pytest.raises(error):
        start_another()
    assert (state / "fence").read_bytes() == fence
    (state / ".tmp-0000000001").rmdir()
    first.checkpoint_now()
    first.close()
    assert graph.names is None, "it has not been given a dictionary either"
    check(state, log)


def test_a_start_without_a_checkpoint_that_fails_holds_nothing(tmp_path: Path, log: Path) -> None:
    """The file of the results stays locked while a pipeline writes there. `failed` holds on to the
    pipeline's frames."""
    options: dict[str, Any] = {"track": ["triangles"], "results": tmp_path / "results"}
    graph = lpma.Graph(device="cpu")
    graph.insert([0, 1, 2], [1, 2, 0])  # there is something to tell
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fdatasync", full)
        with pytest.raises(SourceError, match="cannot be written") as failed:
            Pipeline(SqliteLog(log), graph, **options)
    with Pipeline(SqliteLog(log), graph, **options) as pipeline:
        assert pipeline.results is not None
    assert failed.value is not None


def test_a_refused_graph_is_as_it_was(log: Path) -> None:
    graph = lpma.Graph(device="cpu")
    with pytest.raises(PipelineError, match="give the window"):
        Pipeline(SqliteLog(log), graph, names=True, window_time="arrival")
    assert graph.names is None
