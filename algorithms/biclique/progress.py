"""How far a count has come, told to a callback while kernels run.

Kernels take work from a counter that lies where the host can read it; a thread of its own looks at
it now and then. Who counts does not know who listens: the callback is a context's variable, so that
two threads may count, each with its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy.typing as npt

Progress = Callable[[int, int], None]  # work done, and all of it, in units of the method's own

EVERY_S = 0.2

_listener: ContextVar[Progress | None] = ContextVar("listener", default=None)


@contextmanager
def listening(progress: Progress | None) -> Iterator[None]:
    """Within, what is counted reports to `progress`."""
    token = _listener.set(progress)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def watched(counter: npt.NDArray[Any], total: int) -> Iterator[None]:
    """Within, counter[0] is reported, of `total`, by another thread, and at the end that all is
    done. What the callback raises there is lost."""
    progress = _listener.get()
    if progress is None:
        yield
        return
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(EVERY_S):
            progress(min(int(counter[0]), total), total)

    watcher = threading.Thread(target=look, name="lpma-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
    progress(total, total)


def report(done: int, total: int) -> None:
    """Say how much is done, from between two kernels."""
    progress = _listener.get()
    if progress is not None:
        progress(done, total)
