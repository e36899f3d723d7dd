"""Run one compiled kernel over several argument tuples, on this thread and a few helpers.

Kernels release the GIL, so plain Python threads suffice. Numba's own parallel loops are not
used: their default threading layer aborts the process when two threads call it at once, and
snapshots may be read from any thread. Handing a job over costs some 30 µs, which decides from what
size a job is worth cutting.

A kernel need not be compiled yet: Numba compiles, and reads its cache, under a lock of its own
(numba.core.compiler_lock), and threads that waited for the lock find the kernel compiled. A test
makes sure of that.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from ..host import processors


def _threads() -> int:
    asked = os.environ.get("LPMA_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return processors()


THREADS = _threads()
_pool: ThreadPoolExecutor | None = None


def _forget_pool() -> None:
    """A forked child has none of its parent's threads."""
    global _pool
    _pool = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


class _Checked(threading.local):
    """What this thread calls before each piece of its work."""

    check: Callable[[], None] | None = None


_checked = _Checked()


@contextmanager
def stopped_by(check: Callable[[], None]) -> Iterator[None]:
    """Within, this thread's jobs call `check` before each of their pieces, from any of the threads
    that carry them out. What it raises ends the job, and is raised by `run_all`: so work of many
    pieces ends soon after nobody wants it any more.

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
    global _pool
    check = _checked.check
    if check is not None:
        kernel = _after(check, kernel)
    if len(calls) <= 1 or THREADS == 1:
        return [kernel(*arguments) for arguments in calls]
    if _pool is None:
        _pool = ThreadPoolExecutor(THREADS - 1, thread_name_prefix="lpma")
    results: list[Any] = [None] * len(calls)
    pending = deque(enumerate(calls))

    def drain() -> None:
        while True:
            try:
                number, arguments = pending.popleft()
            except IndexError:
                return
            results[number] = kernel(*arguments)

    helpers: list[Future[None]] = []
    try:
        helpers.extend(_pool.submit(drain) for _ in range(min(THREADS, len(calls)) - 1))
        drain()
    except BaseException:
        pending.clear()
        raise
    finally:
        try:
            _await(helpers)
        except BaseException:
            _await(helpers)
            raise
    for helper in helpers:
        if not helper.cancelled():
            helper.result()
    return results


def _after(check: Callable[[], None], kernel: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*arguments: Any) -> Any:
        check()
        return kernel(*arguments)

    return checked


def _await(helpers: Sequence[Future[None]]) -> None:
    """Wait until no helper is at work. An interrupt meanwhile is raised after that, when the memory
    that kernels read and write may be freed."""
    try:
        for helper in helpers:
            # One that has not begun has nothing left to do: waiting until a busy machine lets it
            # begin took milliseconds.
            if not helper.cancel():
                helper.exception()
    except BaseException:
        _await(helpers)
        raise


def cuts(n: int, smallest: int, per_thread: int = 1) -> list[tuple[int, int]]:
    """0 … n in near-equal ranges: one where n is under twice `smallest`, else up to
    `per_thread` for every thread. More ranges than threads even out uneven work."""
    pieces = max(1, min(THREADS * per_thread, n // max(1, smallest)))
    edges = [n * i // pieces for i in range(pieces + 1)]
    return list(pairwise(edges))
