"""The seconds that `lpma run` reports: an algorithm's own, and apart from them what a first call
waits for its kernels."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numba
import pytest

from ingest import analyses
from lpma.cpu import ready
from lpma.cpu.jit import telling
from tests.support.command_line import document


class Clock:
    """A clock that goes when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    return clock


def work(clock: Clock) -> str:
    """8 seconds of work, and 7 of waiting for a kernel, of which another one takes 2."""
    clock.now += 8
    with telling.waiting():
        clock.now += 5
        with telling.waiting():
            clock.now += 2
    return "done"


def test_waiting_for_kernels_is_no_work(clock: Clock) -> None:
    before = telling.seconds
    assert analyses.timed(lambda: work(clock)) == ("done", 8.0)
    assert telling.seconds - before == 7.0


def test_the_thread_that_compiles_behind_lets_nobody_wait(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ready, "is_behind", lambda: True)
    assert analyses.timed(lambda: work(clock)) == ("done", 15.0)


def test_what_numba_compiles_counts() -> None:
    before = telling.seconds
    assert numba.njit(lambda x: x + 1)(1) == 2
    assert telling.seconds > before


def test_both_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, core = tmp_path / "e.txt", analyses.ANALYSES["core"]
    path.write_text("0 1\n1 2\n2 0\n")

    def slow(*given: Any, **options: Any) -> Any:
        telling.seconds += 1000  # as if a kernel had been compiled
        return core(*given, **options)

    monkeypatch.setitem(analyses.ANALYSES, "core", slow)
    found = document("run", "core", path)
    assert found["compile_seconds"] >= 1000
    assert found["seconds"] < 0  # for those 1000 are not of this clock
