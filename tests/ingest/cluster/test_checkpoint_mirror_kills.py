"""Keepers and restores, killed by the system: a whole copy is left, and no record is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest import Pipeline, SqliteLog
from ingest.cluster.checkpoint_mirror import CheckpointMirror, restore
from tests.ingest.cluster.keeping import gone_on, resumed, unbroken
from tests.support.kills import Ended, Place, run

POINTS = (
    "ingest.cluster.checkpoint_mirror:CheckpointMirror._copy",
    "ingest.cluster.storage:Storage.remove",
    "ingest.cluster.storage:Storage.write",
    "ingest.cluster.checkpoint_mirror:_fetch_file",
    "os:fsync",
    "os:mkdir",
    "os:rename",
    "os:replace",
    "os:rmdir",
    "os:unlink",
)


def keep(folder: Path) -> None:
    """Copy the newest checkpoint, once it is the third."""
    CheckpointMirror(str(folder / "kept"), 0, folder / "state").look()


def bring_back(folder: Path) -> None:
    restore(str(folder / "kept"), 0, folder / "restored")


class Kept:
    """A stream of which two checkpoints are kept, and a third is to be."""

    def __init__(self, stream: Pipeline, log: SqliteLog, directory: Path) -> None:
        self._log, self._begun = log, directory / "begun"
        for _ in range(2):
            CheckpointMirror(str(self._begun / "kept"), 0, gone_on(stream, directory)).look()
        gone_on(stream, directory)
        stream.close(checkpoint=False)
        shutil.copytree(directory / "state", self._begun / "state")
        self._expected = unbroken(log)
        self._directory = directory
        self._tries = 0

    def run(self, work: Callable[[Path], None], place: Place | None = None) -> Ended:
        """`work` from the beginning, and what is left of it is well."""
        self._tries += 1
        folder = self._directory / f"{self._tries}"
        shutil.copytree(self._begun, folder)
        ended = run(work, folder, points=POINTS, place=place)
        assert restore(str(folder / "kept"), 0, folder / "restored")
        assert resumed(self._log, folder / "restored", True) == self._expected
        return ended


@pytest.fixture
def kept(stream: Pipeline, log: SqliteLog, tmp_path: Path) -> Kept:
    return Kept(stream, log, tmp_path)


@pytest.mark.parametrize("work", [keep, bring_back])
def test_killed_at_every_place(kept: Kept, work: Callable[[Path], None]) -> None:
    calls = kept.run(work).calls
    assert len(calls) > 1
    for point, number in calls.items():
        for call in range(number):
            for after in (False, True):
                assert kept.run(work, Place(point, call, after)).killed
