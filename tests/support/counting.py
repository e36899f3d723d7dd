"""A thread that counts whenever it may run: how far it comes while a call is under way tells
whether that lets go of the interpreter's lock."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Counting(threading.Thread):
    """See `counting`."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.count, self.ends = 0, False

    def run(self) -> None:
        while not self.ends:
            self.count += 1


@contextmanager
def counting() -> Iterator[Counting]:
    """Such a thread, until the end of the block."""
    thread = Counting()
    thread.start()
    try:
        yield thread
    finally:
        thread.ends = True
        thread.join()


def counted(other: Counting, call: Callable[[], Any], interval_s: float) -> int:
    """How far a thread comes while `call` runs, at the least of three times, with that switch
    interval: in a long one nobody has to pass the lock on."""
    least, usual = 1 << 62, sys.getswitchinterval()
    sys.setswitchinterval(interval_s)
    try:
        for _ in range(3):
            before = other.count
            call()
            least = min(least, other.count - before)
    finally:
        sys.setswitchinterval(usual)
    return least
