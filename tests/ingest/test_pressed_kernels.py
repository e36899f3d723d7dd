"""Ctrl-C while compiled code runs is KeyboardInterrupt, whatever the code was called for, and what
is done next comes to the same as before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pressed_kernels import GROUPS

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("group", GROUPS)
def test_every_call_of_a_kernel_delivers_it(group: str, threads: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.pressed_kernels", group],
        cwd=ROOT, env={**os.environ, "LPMA_THREADS": str(threads)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Exception ignored" not in done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) >= 3
    for name, presses, raised, is_same in found:
        assert (raised, is_same) == ({"KeyboardInterrupt": presses}, True), name
        assert presses > 0, name
