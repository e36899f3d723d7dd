"""`lpma checkpoint`: what it says of a directory, and what it removes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ingest.cli import app
from ingest.errors import JournalError
from ingest.state import inspection
from ingest.state.checkpoint import GRAPH, MANIFEST
from ingest.state.directory import checkpoint_numbers, checkpoint_path
from ingest.state.journal import Cut, segment_numbers, segment_path
from ingest.state.journal_reader import read_journal
from tests.ingest.state.test_checkpoint import (
    ENTRIES,
    append,
    commit,
    history,
    newest,
    opened,
    two_checkpoints,
)


def run(*arguments: object, status: int = 0) -> Any:
    """What a command prints with --json, None where that is nothing; and the line it ends with."""
    result = CliRunner().invoke(app, ["checkpoint", *map(str, arguments), "--json"])
    assert result.exit_code == status, (result.stdout, result.stderr, result.exception)
    assert (result.stderr.count("\n"), result.stderr[:6]) == ((1, "lpma: ") if status else (0, ""))
    return json.loads(result.stdout) if result.stdout else None, result.stderr


def spoil(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    two_checkpoints(tmp_path / "c")
    return tmp_path / "c"


def test_ls(directory: Path) -> None:
    found, _ = run("ls", directory)
    old, new = found["checkpoints"]
    assert (old["number"], new["number"]) == (0, 1)
    assert (old["operations"], old["version"], old["bytes"]) == (99, 4, 6)
    assert old["time"] == 10**12 + 5
    assert old["age_seconds"] > 1e8
    assert old["positions"] == [
        {"topic": "updates", "partition": 0, "offset": 7, "rows_done": 3},
        {"topic": "queries", "partition": 3, "offset": 2, "rows_done": 0},
    ]
    assert [segment["segment"] for segment in found["journal"]] == [1, 2]
    (checkpoint_path(directory, 1) / GRAPH).write_bytes(b"longer")
    (checkpoint_path(directory, 0) / MANIFEST).write_bytes(b"")
    found, _ = run("ls", directory)
    assert [row["good"] for row in found["checkpoints"]] == [False, False]
    assert "should have 3 bytes" in found["checkpoints"][1]["problem"]
    assert found["checkpoints"][0].keys() == {"number", "good", "problem"}


def test_people_get_tables(directory: Path) -> None:
    for command in ("ls", "verify", "prune"):
        result = CliRunner().invoke(app, ["checkpoint", command, str(directory)])
        assert result.exit_code == 0
        assert result.stdout.count("\n") > 1


@pytest.mark.parametrize("command", ["ls", "verify", "prune"])
def test_where_there_is_no_checkpoint(tmp_path: Path, command: str) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        document, line = run(command, path, status=1)
        assert document is None
        assert "holds no checkpoint" in line
    assert not list(tmp_path.iterdir()), "looking leaves nothing behind"


def test_verify(directory: Path) -> None:
    found, _ = run("verify", directory)
    assert (found["good"], found["used"], found["refusal"]) == (True, 1, None)
    assert (found["used_segments"], found["replayed_operations"]) == ([2], 4)
    last = segment_path(directory, 2)
    with open(last, "ab") as file:
        file.write(b"torn")
    found, _ = run("verify", directory)
    assert found["good"]
    assert [segment["torn_bytes"] for segment in found["journal"]] == [0, 4]
    spoil(checkpoint_path(directory, 1) / "second")
    found, line = run("verify", directory, status=1)
    assert (found["good"], found["used"]) == (False, 0)
    assert (found["used_segments"], found["replayed_operations"]) == ([1, 2], 6)
    assert "checkpoint 1: second is damaged" in line
    assert "a resume uses checkpoint 0" in line
    os.truncate(segment_path(directory, 1), segment_path(directory, 1).stat().st_size // 2)
    found, line = run("verify", directory, status=1)
    assert (found["used"], found["used_segments"], found["replayed_operations"]) == (None,) * 3
    assert "damaged at byte" in found["refusal"]
    assert "checkpoints.accept_journal_loss=true" in line
    assert [segment["good"] for segment in found["journal"]] == [False, True]
    segment_path(directory, 1).unlink()
    assert "journal-0000000001 is missing" in run("verify", directory, status=1)[0]["refusal"]
    for number in (0, 1):
        spoil(checkpoint_path(directory, number) / MANIFEST)
    found, _ = run("verify", directory, status=1)
    assert (found["used"], found["refusal"]) == (None, "no checkpoint is good")
    told = CliRunner().invoke(app, ["checkpoint", "verify", str(directory)]).stdout
    assert "1 segments, unread for want of a checkpoint" in " ".join(told.split())


@pytest.mark.parametrize("missing", [1, 2, 3, 4])
def test_verify_says_what_a_resume_does_without_a_segment(directory: Path, missing: int) -> None:
    """The first, one in the middle, the last."""
    for _ in range(2):
        writer = opened(directory)
        append(writer, [Cut(0)])
        writer.close()
    assert segment_numbers(directory) == [1, 2, 3, 4]
    segment_path(directory, missing).unlink()
    found, line = run("verify", directory, status=1)
    name = f"journal-{missing:010d} is missing"
    assert name in line
    assert [s["problem"] for s in found["journal"] if not s["good"]] == [name]
    try:
        opened(directory).close()
        refused = None
    except JournalError as error:
        refused = str(error)
    assert found["refusal"] == refused
    assert (refused is None) == (missing == 1), "checkpoint 1 does not need it"
    assert found["used"] == (1 if missing == 1 else None)


def test_verify_looks_again_where_a_writer_has_cleared_up(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = opened(directory)
    times = []

    def slow(directory: Path, first: int) -> Any:
        times.append(first)
        if len(times) == 1:
            commit(writer, b"newer")
            commit(writer, b"newest")
        return read_journal(directory, first)

    monkeypatch.setattr(inspection, "read_journal", slow)
    found, _ = run("verify", directory)
    assert (found["good"], found["used"]) == (True, 3)
    writer.close()


def test_prune_keeps_the_newest_good_one(directory: Path) -> None:
    found, _ = run("prune", directory)
    assert (found["removed"], found["kept"]) == ([0], [1])
    assert newest(directory)[:2] == (1, b"new")
    assert segment_numbers(directory) == [2]
    assert history(directory, 1)[-2:] == ENTRIES[2:]
    assert run("prune", directory)[0]["removed"] == []


def test_prune_says_numbers_and_no_counts(directory: Path) -> None:
    said = CliRunner().invoke(app, ["checkpoint", "prune", str(directory)]).stdout.split()
    assert said[-6:] == ["removed", "checkpoint", "0", "kept", "checkpoint", "1"]


def test_prune_removes_bad_ones(directory: Path) -> None:
    spoil(checkpoint_path(directory, 1) / GRAPH)
    found, _ = run("prune", directory)
    assert (found["removed"], found["kept"], found["refusal"]) == ([1], [0], None)
    assert newest(directory)[:2] == (0, b"old")
    assert history(directory, 0) == ENTRIES


def test_prune_keeps_as_many_as_it_is_told(directory: Path) -> None:
    writer = opened(directory)
    commit(writer, b"newer")
    append(writer, ENTRIES)
    writer.close()
    assert checkpoint_numbers(directory) == [1, 2]
    assert run("prune", directory, "--keep", 2)[0]["removed"] == []
    assert run("prune", directory, "--keep", 5)[0]["removed"] == []
    assert run("prune", directory, "--keep", 1)[0]["kept"] == [2]


def test_prune_keeps_what_the_oldest_it_keeps_needs(tmp_path: Path) -> None:
    """Should the newest turn out bad, the one before it is a way back: with all that happened
    since."""
    directory = tmp_path / "c"
    two_checkpoints(directory)
    assert run("prune", directory, "--keep", 2)[0]["kept"] == [0, 1]
    assert segment_numbers(directory) == [1, 2]
    spoil(checkpoint_path(directory, 1) / GRAPH)
    assert newest(directory)[:2] == (0, b"old")
    assert history(directory, 0) == ENTRIES


def test_prune_refuses_where_that_could_lose_something(directory: Path) -> None:
    writer = opened(directory)
    assert "another pipeline writes here" in run("prune", directory, status=1)[1]
    writer.close()
    kept = sorted(path.name for path in directory.rglob("*"))
    spoil(checkpoint_path(directory, 1) / GRAPH)
    os.truncate(segment_path(directory, 1), 30)
    assert "nothing was removed" in run("prune", directory, status=1)[1]
    for number in (0, 1):
        spoil(checkpoint_path(directory, number) / MANIFEST)
    assert "checkpoint.json is damaged: nothing was" in run("prune", directory, status=1)[1]
    assert sorted(path.name for path in directory.rglob("*")) == kept


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_prune_goes_on_where_only_the_journal_is_damaged(directory: Path, missing: int) -> None:
    """Older checkpoints need the same of it, and more."""
    opened(directory).close()
    segment_path(directory, missing).unlink()
    found, _ = run("prune", directory)
    assert (found["removed"], found["kept"]) == ([0], [1])
    assert (found["refusal"] is None) == (missing == 1)
    assert newest(directory)[:2] == (1, b"new")
    assert segment_numbers(directory) == [n for n in (2, 3) if n != missing]


def test_looking_does_not_disturb_a_writer(directory: Path) -> None:
    writer = opened(directory)
    for command in ("ls", "verify"):
        run(command, directory)
    commit(writer, b"newer")
    writer.close()
    assert newest(directory)[:2] == (2, b"newer")
