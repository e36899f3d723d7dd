"""What `lpma ingest` says of a log's records that could not be applied, and its status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ingest
from tests.support.command_line import document, run

NAMED = ingest.encode_updates(["a", "b"], ["c", "d"], names=True)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log whose vertices go by names."""
    with ingest.SqliteLog(tmp_path / "stream.log") as log:
        log.produce_many(ingest.UPDATES, [NAMED] * 7)
    return tmp_path / "stream.log"


def letters_of(log: Path) -> int:
    with ingest.SqliteLog(log, topics=["dead-letters"]) as written:
        return len(written.poll())


def produce(log: Path, *records: bytes) -> None:
    with ingest.SqliteLog(log) as opened:
        opened.produce_many(ingest.UPDATES, records)


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["table", "json"])
def test_a_log_of_which_nothing_is_applied_fails(log: Path, tmp_path: Path, more: Any) -> None:
    said = run("ingest", log, "--checkpoint", tmp_path / "c", *more, status=1).stderr
    assert said.count("\n") == 1
    assert "nothing was applied: rejected 7 records (invalid 7), the first at updates/0 0" in said
    assert "text and negative integers name vertices only with --names; see topic dead" in said
    assert "give --names, and begin a new checkpoint" in said
    assert letters_of(log) == 7
    right = run("ingest", log, "--checkpoint", tmp_path / "d", "--names")
    assert right.stderr == ""


def test_what_was_rejected_is_not_rejected_again(log: Path, tmp_path: Path) -> None:
    """The failure keeps its place in the log. No store is saved over an older one."""
    old = tmp_path / "old.lpma"
    old.write_bytes(b"as it was")
    command = ["ingest", log, "--checkpoint", tmp_path / "c"]
    run(*command, "--save", old, status=1)
    assert old.read_bytes() == b"as it was"
    assert document(*command)["rejected"] == 0
    assert letters_of(log) == 7


def test_some_bad_records_are_told(log: Path, tmp_path: Path) -> None:
    """With --json, too, on stderr; the hint at --names is not for who gave it."""
    produce(log, b"no record")
    command = ["ingest", log, "--checkpoint", tmp_path / "c", "--names", "--json"]
    result = run(*command)
    assert result.stdout.count("\n") == 1
    assert "rejected 1 record (malformed 1), the first at updates/0 7: not a" in result.stderr
    assert result.stderr.endswith("; see topic dead-letters\n")
    assert "--names" not in result.stderr
    assert run(*command).stderr.splitlines() == ["resumed at 14 operations"]
    produce(log, b"no record")
    assert "rejected 1 record" in run(*command).stderr, "some were applied, in a run before"


def test_a_limit_or_late_rows_are_no_failure(tmp_path: Path) -> None:
    path = tmp_path / "stream.log"
    with ingest.SqliteLog(path) as log:
        for time in (100, 1):
            log.produce(ingest.UPDATES, ingest.encode_row(1, 2, time=time))
    late = run("ingest", path, "--checkpoint", tmp_path / "c", "--late", "reject")
    assert late.stderr == ""
    produce(path, NAMED, ingest.encode_row(3, 4))
    assert "rejected 1 record" in run("ingest", path, "-c", tmp_path / "d", "--limit", 3).stderr


def test_useless_lateness_is_refused(tmp_path: Path) -> None:
    produce(tmp_path / "s.log", ingest.encode_row(1, 2))
    for more in ([], ["--dry-run"]):
        command = ["ingest", tmp_path / "s.log", "-c", tmp_path / "c", "--max-lateness", 5]
        assert "late='dead-letter'" in run(*command, *more, status=1).stderr
