"""A process beside this one, for as long as it is measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..stopwatch import WrongAnswer

PATIENCE_S = 600.0


@contextmanager
def running(process: Any, stop: Any) -> Iterator[None]:
    """stop: the event upon which the process ends."""
    process.start()
    try:
        yield
    finally:
        stop.set()
        process.join(PATIENCE_S)
        process.kill()


def wait_for(condition: Callable[[], bool], process: Any, applied: Any) -> None:
    """applied: the shared number of what the process has applied."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline or process.exitcode is not None:
            raise WrongAnswer(f"{applied.value} applied, and no more")
        time.sleep(0.002)
