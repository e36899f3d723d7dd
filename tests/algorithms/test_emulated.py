"""Kernels of the algorithms where there is no device: see tests/support/emulated."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import missing
from tests.support.emulated import build

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("seed", [0, 1])
def test_kernels_that_take_steps(seed: int) -> None:
    try:
        build.compiler()
    except build.Unavailable as error:
        missing("c++", str(error))
    command = [sys.executable, "-m", "tests.support.emulated.algorithms", str(seed)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert told.stdout == "all agree\n", told.stderr
