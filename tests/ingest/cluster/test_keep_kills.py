"""Keepers and restores, killed by the system: a whole copy is left, and no record is lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ingest import Pipeline, SqliteLog
from ingest.cluster.keep import Keeper, restore
from tests.conftest import soak
from tests.ingest.cluster.keeping import gone_on, resumed, unbroken

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
from ingest.cluster.keep import Keeper, KeptStatus, restore
print("ready", flush=True)
while True:
    keeper = Keeper("kept", 0, "state")
    keeper.look()
"""
RESTORING = """
import os, shutil
from ingest.cluster.keep import restore
print("ready", flush=True)
while True:
    restore("kept", 0, "restored")
    shutil.rmtree("gone", ignore_errors=True)
    os.rename("restored", "gone")  # at once: half a removal is not what is tested
"""


def killed(program: str, folder: Path, after_s: float) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", program], cwd=folder, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(after_s)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.soak
def test_kill_9_in_the_middle_of_either(stream: Pipeline, log: SqliteLog, tmp_path: Path) -> None:
    """Both loop without a pause, so that a kill is in the middle of one."""
    gone_on(stream, tmp_path, 3)
    stream.close(checkpoint=False)
    expected = unbroken(log)
    Keeper(str(tmp_path / "kept"), 0, tmp_path / "state").look()
    rng = np.random.default_rng(5)
    for number in range(soak(2, 20)):
        killed(PROGRAM, tmp_path, rng.uniform(0, 0.05))
        directory = tmp_path / f"{number}"
        assert restore(str(tmp_path / "kept"), 0, directory)
        assert resumed(log, directory, True) == expected
        killed(RESTORING, tmp_path, rng.uniform(0, 0.05))
        assert restore(str(tmp_path / "kept"), 0, tmp_path / "restored")
        assert resumed(log, tmp_path / "restored", True) == expected
        shutil.rmtree(tmp_path / "restored")
