"""SIGINT and SIGTERM are deferred until a batch is applied: Ctrl-C never leaves half of one. So are
they until a kernel is read from the cache (cpu/jit.py), where what a handler raises would be lost.

Python runs signal handlers in the main thread, between any two of its instructions. While that
thread applies a batch, a handler of ours stands in for the program's own, notes what arrives, and
calls the program's after the batch. Handlers that are not Python's, such as SIGTERM's default, are
left alone.

Trick: our handler finds out from the stack whether it has to wait, so it keeps no state that could
be wrong. If an exception at the wrong moment leaves it in place, it passes signals on until the
next batch replaces it.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` wraps, which takes ten times as long
import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any]

DEFERRED = (int(signal.SIGINT), int(signal.SIGTERM))

_main = threading.main_thread().ident


def _note_main_thread() -> None:
    """A forked child has another one, if not the main thread has forked."""
    global _main
    _main = threading.main_thread().ident


os.register_at_fork(after_in_child=_note_main_thread)


class DeferredSignals:
    """Stands in for the program's handlers of the signals in DEFERRED while the function with the
    code `critical` runs. On any thread but the main one, where signals arrive, it does nothing."""

    __slots__ = ("_critical", "_handlers", "arrived")

    def __init__(self, critical: CodeType) -> None:
        self._critical = critical
        self.arrived: list[int] = []  # which wait
        self._handlers: dict[int, Handler] = {}
        if _thread.get_ident() != _main:
            return
        for number in DEFERRED:
            handler = _signal.getsignal(number)
            while isinstance(handler, DeferredSignals) and not handler.waits(sys._getframe()):
                handler = handler._handlers[number]
            if callable(handler):
                self._handlers[number] = handler
                _signal.signal(number, self)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.waits(frame):
            self.arrived.append(number)
            return
        try:
            self._handlers[number](number, frame)
        except BaseException:
            self.put_back()  # `critical` will not run, or is over
            raise

    def waits(self, frame: FrameType | None) -> bool:
        """Whether `critical` is running in that frame or in one that it was called from."""
        while frame is not None and frame.f_code is not self._critical:
            frame = frame.f_back
        return frame is not None

    def put_back(self) -> None:
        """Put the program's handlers back. Whoever does calls `deliver` if signals have arrived."""
        for number, handler in self._handlers.items():
            if _signal.getsignal(number) is self:
                _signal.signal(number, handler)

    def deliver(self) -> None:
        """Call the program's handlers for the signals that arrived."""
        for number in self.arrived:
            self._handlers[number](number, sys._getframe())

    def deliver_after(self, last: FrameType) -> None:
        """As `deliver`, but the signals come again when the function in that frame has returned:
        for finalizers, where Python ignores what a handler raises."""
        threading.Thread(target=_again, args=(self.arrived, last), daemon=True).start()


def _again(signals: list[int], last: FrameType) -> None:
    while True:
        try:
            last.clear()
            break
        except RuntimeError:  # it is still running
            time.sleep(0.001)
    for number in signals:
        _thread.interrupt_main(signal.Signals(number))
