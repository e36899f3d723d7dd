"""What is compiled beforehand for a GPU: every call that is made for it can be made."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.gpu
def test_every_call_can_be_made(cupy: Any) -> None:
    warm = importlib.import_module("lpma.backend.cuda.warm")
    for name in warm.LISTS:
        for call in importlib.import_module(name).calls():
            call()
    cupy.cuda.get_current_stream().synchronize()


@pytest.mark.gpu
def test_algorithms_need_no_other_kernel(cupy: Any) -> None:
    """In a new process, since what was called before is not seen again."""
    command = [sys.executable, "-m", "tests.support.first_kernels"]
    root = Path(__file__).parents[2]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert found.stdout == ""
