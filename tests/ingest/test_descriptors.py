"""A process without a file descriptor left: an error as of a full disk, and a resume is exact."""

from __future__ import annotations

import builtins
import errno
import io
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import soak
from tests.ingest.state.test_checkpoint_faults import check, run, stream
from tests.support.stream_model import SavedModel

pytestmark = pytest.mark.system

__all__ = ["stream"]  # a fixture

TAKING = [(os, "open"), (os, "listdir"), (os, "scandir"), (io, "open"), (builtins, "open")]


class Descriptors:
    """Counts the calls that take a descriptor, from whichever thread; from the n-th on none is
    left, for so many calls."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int, calls: int) -> None:
        self.calls = self.failed = 0
        self._none_left = range(at, at + calls)
        self._lock = threading.Lock()
        for module, name in TAKING:
            patch.setattr(module, name, self._wrapped(getattr(module, name)))

    def _wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            with self._lock:
                place = self.calls
                self.calls += 1
                self.failed += place in self._none_left
            if place in self._none_left:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return function(*args, **options)

        return call


@pytest.mark.soak
@pytest.mark.parametrize("lasting", [False, True])
def test_running_out_of_descriptors_loses_nothing(
    stream: tuple[Path, SavedModel, int], tmp_path: Path, lasting: bool
) -> None:
    """At any call, in the stream's thread or beside it: CheckpointError, or no harm done."""
    original, expected, _ = stream
    at, failed = 0, True
    while failed:
        directory = tmp_path / str(at)
        directory.mkdir()
        shutil.copy(original, directory / "log")
        with pytest.MonkeyPatch.context() as patch:
            descriptors = Descriptors(patch, at, 10**6 if lasting else 1)
            stopped = run(directory / "log", directory / "c")
        failed = bool(descriptors.failed)
        check(directory / "log", directory / "c", expected, stopped=stopped)
        shutil.rmtree(directory)
        at += soak(3, 1)
    assert at > 50


def test_so_does_a_resume(stream: tuple[Path, SavedModel, int], tmp_path: Path) -> None:
    original, expected, _ = stream
    shutil.copy(original, tmp_path / "log")
    with pytest.MonkeyPatch.context() as patch:
        descriptors = Descriptors(patch, 40, 10**6)
        assert run(tmp_path / "log", tmp_path / "c")
    at, failed = 0, True
    while failed:
        again = tmp_path / str(at)
        again.mkdir()
        shutil.copy(tmp_path / "log", again / "log")
        shutil.copytree(tmp_path / "c", again / "c")
        with pytest.MonkeyPatch.context() as patch:
            descriptors = Descriptors(patch, at, 10**6)
            stopped = run(again / "log", again / "c")
        failed = bool(descriptors.failed)
        check(again / "log", again / "c", expected, stopped=stopped)
        shutil.rmtree(again)
        at += soak(5, 1)
