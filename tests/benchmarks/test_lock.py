"""How long a call keeps other threads waiting, by two clocks that are not the machine's."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import pytest

from benchmarks.stores.gpu import lock


def test_what_the_other_thread_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten calls hold it up for 300 us in all, and the machine takes a tenth of its time anyway; one
    round of eleven is far off. Afterwards the thread has ended and switches are as before."""
    rounds = iter(range(2 * lock.ROUNDS))
    made: list[int] = []

    def missed(self: object, action: Callable[[], object]) -> tuple[float, float]:
        number = next(rounds)
        if number % 2 == 0:
            return 0.02, 0.002
        action()
        return 0.005, 0.0005 + (0.0003 if number != 7 else 0.2)

    monkeypatch.setattr(lock._Ready, "missed", missed)
    interval, threads = sys.getswitchinterval(), set(threading.enumerate())
    held = lock.lock_us(made.append, range(10), lambda: None)
    assert held == pytest.approx(30.0)
    assert len(held.samples) == lock.ROUNDS
    assert made == [*range(10)] * lock.ROUNDS
    assert sys.getswitchinterval() == interval
    assert set(threading.enumerate()) <= threads
