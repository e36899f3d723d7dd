"""How long a call keeps Python's other threads waiting.

A second thread does nothing but count. What it counts less than it would alone, divided by the
number of calls, is the time for which it could not run: the time that calls hold the interpreter's
lock, and the moments that it takes to pass from one thread to the other. Where the interpreter has
no such lock, nothing is left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..stopwatch import Figure, median, synchronize

ALONE_S = 0.1
ROUNDS = 3


class _Counting(threading.Thread):
    """Counts until it is told to end."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.count = 0
        self.ends = False

    def run(self) -> None:
        while not self.ends:
            self.count += 1


def lock_us(call: Callable[[Any], None], arguments: Sequence[Any]) -> Figure:
    """Microseconds for which each call(argument) holds up another thread; the median of ROUNDS."""
    other, found = _Counting(), []
    other.start()
    try:
        for _ in range(ROUNDS):
            synchronize()
            began, counted = time.perf_counter(), other.count
            time.sleep(ALONE_S)
            rate = (other.count - counted) / (time.perf_counter() - began)
            began, counted = time.perf_counter(), other.count
            for argument in arguments:
                call(argument)
            took = time.perf_counter() - began - (other.count - counted) / rate
            found.append(1e6 * took / len(arguments))
    finally:
        other.ends = True
        other.join()
    return median(found)
