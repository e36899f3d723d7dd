"""The exit status of a command that a supervisor starts again: 1 where that may help, 3 where
somebody has to act first."""

from __future__ import annotations

import errno
import sqlite3
import ssl
from pathlib import Path

import pytest

import ingest
import lpma
from ingest import errors
from ingest.cli import _status
from ingest.cli._console import supervised, telling_in_json
from ingest.cli._status import FAILED, NEEDS_A_PERSON, status_of
from ingest.cli._targets import TargetError
from ingest.sources.base import TopicsDiffer
from lpma.dependencies import MissingPackage
from lpma.errors import OutOfMemory, SnapshotTooLarge
from tests.support.command_line import run


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


REFUSED = PermissionError(errno.EACCES, "permission denied")
FULL = OSError(errno.ENOSPC, "no space left on device")
LASTING = [
    TargetError("x"), errors.AllRecordsBad("x"), errors.OffsetError("x"), errors.IdentityError("x"),
    errors.RewrittenError("x"), TopicsDiffer("x"), errors.JournalError("x"),
    errors.CheckpointError("x"), errors.SourceError("x"), errors.PipelineError("x"),
    errors.UnknownSetting("x"), errors.VertexLimitError("x"), errors.EpochsUsedUp("x"),
    MissingPackage("x"), lpma.FormatError("x"), SnapshotTooLarge("x"),
    caused(errors.SourceError("x"), REFUSED), caused(errors.PipelineError("x"), ssl.SSLError("x")),
]  # fmt: skip
PASSING = [
    errors.AwayError("x"), errors.LockedError("x"), FULL, OutOfMemory("x"), MemoryError(),
    caused(errors.CheckpointError("x"), FULL), errors.ClusterError("x"), errors.EngineLost("x"),
    caused(errors.SourceError("x"), sqlite3.OperationalError("database or disk is full")),
    lpma.LpmaError("x"),
]  # fmt: skip


@pytest.mark.parametrize("error", LASTING, ids=repr)
def test_what_a_restart_does_not_help(error: Exception) -> None:
    assert status_of(error) == NEEDS_A_PERSON == 3


@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_what_a_restart_may_help(error: Exception) -> None:
    assert status_of(error) == FAILED == 1


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    ("error", "status"), [(errors.OffsetError("gone"), 3), (errors.AwayError("away"), 1)]
)
def test_both_ways_of_telling_give_it(
    error: Exception, status: int, as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    import typer

    @supervised
    def command() -> None:
        with telling_in_json(as_json):
            raise error

    with pytest.raises(typer.Exit) as ended:
        command()
    assert ended.value.exit_code == status
    assert str(error) in capsys.readouterr().err


def test_commands_that_end_by_themselves_have_one_for_all(tmp_path: Path) -> None:
    run("query", "degree", tmp_path / "absent", 1, status=1)


def test_a_stream_says_it(tmp_path: Path) -> None:
    log, state = tmp_path / "s.log", tmp_path / "c"
    with ingest.SqliteLog(log) as source:
        source.produce("updates", b"no record")
    for more in ([], ["--dry-run"]):
        run("ingest", log, "-c", state, *more, status=NEEDS_A_PERSON)
    with ingest.SqliteLog(log) as source:
        source.produce("updates", ingest.encode_row(1, 2))
    run("ingest", log, "-c", state)
    with ingest.SqliteLog(log) as source, ingest.Pipeline.resume(state, source):
        said = run("ingest", log, "-c", state, status=FAILED).stderr
        assert "another pipeline" in said or "holds" in said
    run("ingest", log, "-c", state, "--weight", "nonsense", "--nonsense", status=2)


def test_it_is_declared_once() -> None:
    root = Path(_status.__file__).parents[2]
    page = (root / "docs/reference/commands.md").read_text()
    assert f"| {NEEDS_A_PERSON} |" in page
    assert f"RestartPreventExitStatus=2 {NEEDS_A_PERSON}" in (
        root / "docs/howto/serve.md"
    ).read_text()  # fmt: skip
