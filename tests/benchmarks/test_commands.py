"""`commands`: each is run on small inputs, which are kept, and one that fails is found out."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from benchmarks.report import Setting
from benchmarks.stopwatch import WrongAnswer
from benchmarks.streams import commands


@pytest.mark.integration
def test_every_command_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = commands.commands(Setting(quick=True))
    assert [row["what"] for row in found.rows] == list(commands.COMMANDS)
    for row in found.rows:
        assert row["seconds"] > 0
        assert row["MiB"] > 1
    (kept,) = tmp_path.iterdir()
    names = {file.name for file in kept.iterdir()}
    assert names == {"big.parquet", "big.lpma", "named.parquet", "named.lpma"}


def test_a_command_that_fails_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(WrongAnswer, match="no such file"):
        commands._run("info {folder}/g.lpma", tmp_path)
