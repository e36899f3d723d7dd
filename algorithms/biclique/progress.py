"""Progress callbacks and Ctrl-C while kernels count.

Kernels take work from a counter in host memory, which another thread reads now and then. The
callback is a context variable, so that code which counts need not know it, and two threads may
count with one each. Callers say which `part` of the whole a count is. Parts may be nested; progress
rises from 0 to ALL over the whole count.

*Contract.* `progress(done, ALL)` is called about every EVERY_S seconds from another thread, or
between two kernels from the caller's. `done` never falls. At the end it is called once with ALL,
from the caller's thread. If the callback raises, the count ends as soon as the work in hand is
done and raises the same error, and the callback is not called again.

*Interrupts.* Only the main thread receives them, and only while it runs Python code: a kernel that
it ran itself could delay one for hours. So the main thread waits while other threads count, and
tells them to stop (`stoppable`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy.typing as npt

from lpma.cpu.threads import run_all

Progress = Callable[[int, int], None]  # how much is done, and ALL

ALL = 10_000
EVERY_S = 0.2


class _Listener:
    """A callback, the last progress reported to it, and what it raised."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.done = 0
        self.error: BaseException | None = None

    def report(self, share: float) -> bool:
        """Report a share of the whole. False if the callback raised: the count should end."""
        self.done = max(self.done, min(ALL, int(share * ALL)))
        try:
            self.progress(self.done, ALL)
        except BaseException as error:  # noqa: BLE001  # raised again by `check`
            self.error = error
        return self.error is None

    def check(self) -> None:
        """Raise what the callback raised, if it did."""
        if self.error is not None:
            raise self.error


_listener: ContextVar[_Listener | None] = ContextVar("listener", default=None)
_part: ContextVar[tuple[float, float]] = ContextVar("part", default=(0.0, 1.0))


@contextmanager
def listening(progress: Progress | None) -> Iterator[None]:
    """Within this context, counts report to `progress`; at its end, ALL is reported."""
    listener = None if progress is None else _Listener(progress)
    listener_token, part_token = _listener.set(listener), _part.set((0.0, 1.0))
    try:
        yield
    finally:
        _listener.reset(listener_token)
        _part.reset(part_token)
    if listener is not None:
        listener.report(1.0)
        listener.check()


@contextmanager
def part(first: float, last: float, of: float = 1.0) -> Iterator[None]:
    """Within this context, counts are the share from `first` to `last`, of `of` in all, of the
    enclosing part."""
    begin, end = _part.get()
    size = (end - begin) / of
    token = _part.set((begin + first * size, begin + last * size))
    try:
        yield
    finally:
        _part.reset(token)


@contextmanager
def watched(
    counter: npt.NDArray[Any], total: int, stop: Callable[[], None] | None = None
) -> Iterator[None]:
    """Within this context, another thread reports counter[0] of `total`. If the callback raises,
    the counter is set to `total`, so that no more work is taken, and stop() is called to end what
    was taken."""
    listener = _listener.get()
    if listener is None:
        yield
        return
    begin, end = _part.get()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(EVERY_S):
            share = min(int(counter[0]), total) / max(1, total)
            if not listener.report(begin + share * (end - begin)):
                counter[0] = total
                if stop is not None:
                    stop()
                return

    watcher = threading.Thread(target=look, name="lpma-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
    listener.check()


def report(done: int, total: int) -> None:
    """Report that so much is done, between two kernels."""
    listener = _listener.get()
    if listener is not None:
        begin, end = _part.get()
        listener.report(begin + done / max(1, total) * (end - begin))
        listener.check()


def stoppable(
    kernel: Callable[..., Any], calls: Sequence[tuple[Any, ...]], stop: Callable[[], None]
) -> list[Any]:
    """As `run_all`, but an interrupt calls `stop`, which REQUIRES to end the kernels soon, and is
    then raised again."""
    if threading.current_thread() is not threading.main_thread():
        return run_all(kernel, calls)
    with ThreadPoolExecutor(1, thread_name_prefix="lpma-count") as counting:
        counted = counting.submit(run_all, kernel, calls)
        try:
            return counted.result()
        except BaseException:
            stop()
            raise
