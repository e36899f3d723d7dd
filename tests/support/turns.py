"""Tests that load all cores, and tests of time-outs, at different times.

The processes that share a run of the tests lock one file: a test that bears the marker all_cores
for itself, and those that start Ray together.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def turn(temporary: Path, alone: bool) -> Iterator[None]:
    """Wait for one's turn, and keep it. temporary: pytest's folder of this process."""
    shared = temporary.parent if "PYTEST_XDIST_WORKER" in os.environ else temporary
    with open(shared / "turns.lock", "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
