"""The progress of a count, and what a callback that raises does to it."""

from __future__ import annotations

import threading
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from algorithms import count_all_bicliques, count_bicliques
from algorithms.biclique import counting, progress
from algorithms.biclique.gbc import search_cpu
from tests.support.bicliques import (
    snapshot,
)

Array = npt.NDArray[Any]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """A list for what progress reports, which it does as often as possible."""
    monkeypatch.setattr(progress, "EVERY_S", 0.001)
    return []


def test_progress_rises_over_the_whole_count(
    device: str, told: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every method and any number of parts. The caller's thread reports the end."""
    tellers: list[threading.Thread] = []

    def tell(done: int, total: int) -> None:
        told.append((done, total))
        tellers.append(threading.current_thread())

    def check(least: int) -> None:
        assert len(told) >= least
        assert told == sorted(told)
        assert {total for _, total in told} == {progress.ALL}
        assert told[-1][0] == progress.ALL
        assert tellers[-1] is threading.current_thread()
        told.clear()

    rng = np.random.default_rng(4)
    edges = np.argwhere(rng.random((150, 150)) < 0.3)
    s = snapshot(device, 300, {(u, 150 + v) for u, v in edges.tolist()})
    for size in ((1, 3), (2, 2), (2, 5), (3, 3), (100, 100)):
        count_bicliques(s, *size, left=150, progress=tell)
        check(1)
    if device == "cpu":
        parts = 0
        original = search_cpu.search

        def counting_parts(*given: Any) -> Any:
            nonlocal parts
            parts += 1
            return original(*given)

        monkeypatch.setattr(search_cpu, "search", counting_parts)
        groups = {(u + 20 * c, 800 + v + 20 * c) for c in range(40)
                  for u in range(20) for v in range(20)}  # fmt: skip
        grouped = snapshot(device, 1600, groups)
        count = count_bicliques(
            grouped, 4, 4, left=800, method="gbc", memory_limit=80_000, progress=tell
        )
        assert count == 40 * comb(20, 4) ** 2
        assert parts > 3
        check(1)
    monkeypatch.setattr(counting, "AT_ONCE", 0)  # pivots are tried, and given up at once
    monkeypatch.setattr(counting, "CANDIDATES_PER_S", 1e12)
    count_bicliques(s, 4, 4, left=150, progress=tell)
    check(2)
    monkeypatch.setattr(counting, "PATIENCE_S", 0.001)
    count_all_bicliques(s, 6, 5, left=150, progress=tell)
    check(2)


def test_what_progress_raises_ends_the_count(
    told: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call raises it after the first report, and the next call is not affected."""
    rng = np.random.default_rng(4)
    edges = np.argwhere(rng.random((150, 150)) < 0.3)
    s = snapshot("cpu", 300, {(u, 150 + v) for u, v in edges.tolist()})

    def fail(done: int, total: int) -> None:
        told.append((done, total))
        raise KeyError("from progress")

    for size, method in (((1, 1), "auto"), ((2, 2), "auto"), ((4, 4), "gbc"), ((5, 5), "pivot")):
        told.clear()
        with pytest.raises(KeyError, match="from progress"):
            count_bicliques(s, *size, left=150, method=method, progress=fail)
        assert len(told) == 1
    assert count_bicliques(s, 1, 1, left=150, progress=lambda *_: None) == len(edges)

    counter, stopped = np.zeros(1, np.int64), threading.Event()

    def work() -> None:
        with progress.listening(fail), progress.watched(counter, 10, stopped.set):
            assert stopped.wait(60)

    with pytest.raises(KeyError, match="from progress"):
        work()
    assert counter[0] == 10  # no thread takes more
