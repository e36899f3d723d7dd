"""Errors of the library advise what helps on the command line, not arguments of Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import ingest
from ingest.cli import app
from tests.support.command_line import run


@pytest.fixture
def huge(tmp_path: Path) -> Path:
    """A store with one huge id, and a log of it."""
    with ingest.SqliteLog(tmp_path / "huge.log") as log:
        log.produce(ingest.types.UPDATES, ingest.encode_row(1, 4_000_000_000))
    with ingest.SqliteLog(tmp_path / "more.log") as log:
        log.produce(ingest.types.UPDATES, ingest.encode_row(1, 2))
    run("ingest", tmp_path / "huge.log", "--save", tmp_path / "huge.lpma")
    return tmp_path / "huge.lpma"


@pytest.mark.parametrize("command", [
    ["export", "huge.lpma", "e.mtx"], ["plot", "degrees", "huge.lpma", "d.png"],
    ["ingest", "huge.log", "--track", "core", "-c", "state"],
    ["ingest", "more.log", "--track", "core", "-c", "kept", "--set", "graph.from_store=huge.lpma"],
])  # fmt: skip
def test_a_huge_id(huge: Path, command: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(huge.parent)
    said = run(*command, status=1).stderr
    helps = "`lpma export --compact` renumbers the vertices"
    assert ("without --track goes on" if "--track" in command else helps) in said
    assert "with --names" in said
    assert "=True" not in said
    assert "compact=True" not in said
    assert "max_bytes" not in said


def test_the_advice_works(huge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(huge.parent)
    run("export", huge, "e.mtx", "--compact")
    run("ingest", "huge.log", "--names", "--track", "core", "--save", "named.lpma")
    run("export", "named.lpma", "named.mtx")
    run("plot", "degrees", "named.lpma", "named.png")


def test_in_json_lines(huge: Path) -> None:
    command = ["ingest", huge.with_suffix(".log"), "--track", "core", "-c", huge.parent / "state"]
    result = CliRunner().invoke(app, [*map(str, command), "--set", "run.log_json=true"])
    failed = json.loads(result.stderr.splitlines()[-1])
    assert failed["event"] == "failed"
    assert "anew with --names" in failed["message"]


def test_no_predecessors(huge: Path) -> None:
    said = run("query", "predecessors", huge, 1, status=1).stderr
    assert "load or ingest the edges anew with --predecessors" in said
    assert "=True" not in said


def test_no_times(huge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(huge.parent)
    command = ["ingest", "huge.log", "-c", "state", "--window", "5", "--set", "graph.times=false"]
    assert "keeps none: leave out --no-times, or graph.times" in run(*command, status=1).stderr
