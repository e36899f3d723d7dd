"""How far a count has come, told to a callback while kernels run.

Kernels take work from a counter that lies where the host can read it; a thread of its own looks at
it now and then. Who counts does not know who listens: the callback is a context's variable, so that
two threads may count, each with its own. Nor does it know what else is to be counted: who calls it
says which `part` of the whole it is, parts in turn and within one another, so that what is told
rises from 0 to ALL over the whole count.

*Contract.* `progress(done, ALL)` is called every EVERY_S or so from another thread, or between two
kernels from the caller's; `done` never falls; and once, by the caller's, with ALL when all is
counted, however short that was. What the callback raises ends the count as soon as the work in hand
is done, and is raised by the call that counts. It is not called again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy.typing as npt

Progress = Callable[[int, int], None]  # how much is done, and ALL

ALL = 10_000
EVERY_S = 0.2


class _Listener:
    """A callback, and what it raised."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.done = 0
        self.error: BaseException | None = None

    def tell(self, share: float) -> bool:
        """Whether to count on."""
        self.done = max(self.done, min(ALL, int(share * ALL)))
        try:
            self.progress(self.done, ALL)
        except BaseException as error:  # noqa: BLE001  # raised again by `ask`
            self.error = error
        return self.error is None

    def ask(self) -> None:
        """Raise what the callback raised."""
        if self.error is not None:
            raise self.error


_listener: ContextVar[_Listener | None] = ContextVar("listener", default=None)
_part: ContextVar[tuple[float, float]] = ContextVar("part", default=(0.0, 1.0))


@contextmanager
def listening(progress: Progress | None) -> Iterator[None]:
    """Within, what is counted reports to `progress`; at the end, that all is done."""
    listener = None if progress is None else _Listener(progress)
    heard, whole = _listener.set(listener), _part.set((0.0, 1.0))
    try:
        yield
    finally:
        _listener.reset(heard)
        _part.reset(whole)
    if listener is not None:
        listener.tell(1.0)
        listener.ask()


@contextmanager
def part(first: float, last: float, of: float = 1.0) -> Iterator[None]:
    """Within, what is counted is that much of the part that it is in: from `first` to `last`."""
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
    """Within, counter[0] is told, of `total`, by another thread. Where the callback raises, the
    counter is set to `total`, so that no more work is taken; stop() is to end what was."""
    listener = _listener.get()
    if listener is None:
        yield
        return
    begin, end = _part.get()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(EVERY_S):
            share = min(int(counter[0]), total) / max(1, total)
            if not listener.tell(begin + share * (end - begin)):
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
    listener.ask()


def report(done: int, total: int) -> None:
    """Say how much is done, from between two kernels."""
    listener = _listener.get()
    if listener is not None:
        begin, end = _part.get()
        listener.tell(begin + done / max(1, total) * (end - begin))
        listener.ask()
