"""Run one compiled kernel over several argument tuples, on this thread and a few helpers.

Kernels release the GIL, so plain Python threads suffice. Numba's own parallel loops are not used:
their default threading layer aborts the process when two threads call it at once. Handing a job
over costs some 30 µs, which decides from what size a job is worth cutting.

Nor are the executors of Python: a signal's handler that raises while one of their locks is taken,
as Ctrl-C does, leaves it locked, and every later job waits for ever. What passes between threads
here is a deque, a list or a SimpleQueue, within whose methods, of C, Python runs no handler.

A kernel need not be compiled yet: Numba compiles, and reads its cache, under a lock of its own
(numba.core.compiler_lock), and threads that waited for it find the kernel compiled.
"""

from __future__ import annotations

import os
import sys
import threading
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from queue import SimpleQueue
from typing import Any

from ..host import processors


def _threads() -> int:
    asked = os.environ.get("LPMA_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return processors()


THREADS = _threads()
_jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
_helpers: list[int] = []  # the threads that serve it


def _forget_helpers() -> None:
    """A forked child has none of its parent's threads."""
    global _jobs, _helpers
    _jobs, _helpers = SimpleQueue(), []


os.register_at_fork(after_in_child=_forget_helpers)


def _serve(jobs: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        jobs.get()()


class _Checked(threading.local):
    """What this thread calls before each piece of its work."""

    check: Callable[[], None] | None = None


_checked = _Checked()


@contextmanager
def stopped_by(check: Callable[[], None]) -> Iterator[None]:
    """Within, this thread's jobs call `check` before each of their pieces, on any thread. What it
    raises ends the job, and is raised by `run_all`: so work that nobody wants any more ends soon.

    >>> def stop():
    ...     raise TimeoutError("nobody waits")
    >>> with stopped_by(stop):
    ...     run_all(print, [("never printed",)])
    Traceback (most recent call last):
    TimeoutError: nobody waits
    """
    before, _checked.check = _checked.check, check
    try:
        yield
    finally:
        _checked.check = before


def run_all(kernel: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """[kernel(*arguments) for arguments in calls], spread over the threads."""
    check = _checked.check
    if check is not None:
        kernel = _after(check, kernel)
    if len(calls) <= 1 or THREADS == 1 or sys.is_finalizing():
        return [kernel(*arguments) for arguments in calls]
    results: list[Any] = [None] * len(calls)
    pending = deque(enumerate(calls))
    # A helper is noted here before it takes a call, and no longer when it has returned and told so.
    # So when nothing is pending and nobody is noted, no call is under way, nor will one be.
    at_work: list[None] = []
    told: SimpleQueue[None] = SimpleQueue()
    errors: list[BaseException] = []

    def drain() -> None:
        while True:
            try:
                number, arguments = pending.popleft()
            except IndexError:
                return
            results[number] = kernel(*arguments)

    def help() -> None:
        at_work.append(None)
        try:
            drain()
        except BaseException as error:  # noqa: BLE001  # raised by the thread whose job it is
            errors.append(error)
        at_work.pop()
        told.put(None)

    try:
        with suppress(RuntimeError):  # the system gives no more
            while len(_helpers) < THREADS - 1:
                _helpers.append(start_new_thread(_serve, (_jobs,)))
        for _ in range(min(THREADS, len(_helpers) + 1, len(calls)) - 1):
            _jobs.put(help)
        drain()
    except BaseException:
        pending.clear()
        raise
    finally:
        try:
            _await(at_work, told)
        except BaseException:
            _await(at_work, told)
            raise
    if errors:
        raise errors.pop(0)
    return results


def _after(check: Callable[[], None], kernel: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*arguments: Any) -> Any:
        check()
        return kernel(*arguments)

    return checked


def _await(at_work: list[None], told: SimpleQueue[None]) -> None:
    """Wait until no helper is at work. An interrupt meanwhile is raised after that, when the memory
    that kernels read and write may be freed."""
    try:
        while at_work:
            told.get()
    except BaseException:
        _await(at_work, told)
        raise


def cuts(n: int, smallest: int, per_thread: int = 1) -> list[tuple[int, int]]:
    """0 … n in near-equal ranges: one where n is under twice `smallest`, else up to
    `per_thread` for every thread. More ranges than threads even out uneven work."""
    pieces = max(1, min(THREADS * per_thread, n // max(1, smallest)))
    edges = [n * i // pieces for i in range(pieces + 1)]
    return list(pairwise(edges))
