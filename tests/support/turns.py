"""What the processes that share a run of the tests do in turns, by locking files in a folder that
they have in common.

A test that loads all cores, and bears the marker all_cores, has its turn for itself; those that
start Ray have theirs together: Ray's time-outs are not for such a load. What takes long to make and
is only read is made once (`made_once`).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def turn(factory: pytest.TempPathFactory, alone: bool) -> Iterator[None]:
    """Wait for one's turn, and keep it."""
    with _locked(_in_common(factory) / "turns.lock", fcntl.LOCK_EX if alone else fcntl.LOCK_SH):
        yield


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that `make` has filled, in the process that asks first; others wait for it. What
    `make` raises is raised to each that asks."""
    folder = _in_common(factory) / name
    with _locked(folder.with_suffix(".lock"), fcntl.LOCK_EX):
        made = folder.with_suffix(".made")
        if not made.exists():
            folder.mkdir(exist_ok=True)
            make(folder)
            made.touch()
    return folder


def _in_common(factory: pytest.TempPathFactory) -> Path:
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    with open(path, "a") as file:
        fcntl.flock(file, how)
        yield
