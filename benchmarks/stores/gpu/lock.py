"""How long a call keeps Python's other threads waiting.

A second thread is always ready to run. The time for which it does not get a processor, by the
system's clock of what each thread has used, is the time for which it could not run: that calls hold
the interpreter's lock, and the moments that it takes to pass from one thread to the other. Both
clocks are exact, so that no rate has to be known. What it misses while this thread sleeps is taken
off: a busy machine takes that much from it in any case. Where the interpreter has no such lock,
nothing is left.

The thread that calls gets the lock back once it has asked for it as long as the switch interval
says. A short one leaves the figure as it is, and the measurement takes less time.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...stopwatch import Figure, median, synchronize

ALONE_S = 0.02
ROUNDS = 11
SWITCH_S = 2e-4


class _Ready(threading.Thread):
    """Runs whenever it may, until it is told to end."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ends = False

    def run(self) -> None:
        while not self.ends:
            pass

    def missed(self, action: Callable[[], object]) -> tuple[float, float]:
        """(seconds that the action takes, and for how many of them this thread does not run)."""
        assert self.ident is not None
        clock = time.pthread_getcpuclockid(self.ident)
        began, used = time.perf_counter(), time.clock_gettime(clock)
        action()
        took = time.perf_counter() - began
        return took, took - (time.clock_gettime(clock) - used)


@contextmanager
def _ready() -> Iterator[_Ready]:
    """One such thread, and quick switches."""
    interval, other = sys.getswitchinterval(), _Ready()
    sys.setswitchinterval(SWITCH_S)
    other.start()
    try:
        yield other
    finally:
        other.ends = True
        other.join()
        sys.setswitchinterval(interval)


def lock_us(
    call: Callable[[Any], object],
    arguments: Sequence[Any],
    wait: Callable[[], object] = synchronize,
) -> Figure:
    """Microseconds for which each call(argument) holds up another thread; the median of ROUNDS.
    wait: returns when nothing is left to do of the calls before."""

    def calls() -> None:
        for argument in arguments:
            call(argument)

    found = []
    with _ready() as other:
        for _ in range(ROUNDS):
            wait()
            slept, idle = other.missed(lambda: time.sleep(ALONE_S))
            took, missed = other.missed(calls)
            found.append(1e6 * (missed - took * idle / slept) / len(arguments))
    return median(found)
