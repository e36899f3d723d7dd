"""Ctrl-C: while a command runs, and before and after, among the imports, say, which take longest.
Imports nothing of ours."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130  # the exit status after SIGINT, as shells have it


def end(number: int, frame: FrameType | None) -> None:
    """A handler of SIGINT that ends the process with one line. An exception would not do: whatever
    it hits may catch it, and say that a library is missing."""
    os.write(2, b"lpma: interrupted\n")
    os._exit(INTERRUPTED)


def end_on_interrupt() -> None:
    """Let SIGINT call `end`, unless whoever started this process has it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)


@contextmanager
def noting_interrupts() -> Iterator[list[int]]:
    """Within, SIGINT is noted in a list, and raises KeyboardInterrupt as usual. The exception alone
    is not enough: Python called from C cannot raise, and if a callback of the compiler is
    interrupted, the compiler fails later with another error."""
    noted: list[int] = []
    here = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    if not here or before not in (signal.default_int_handler, end):
        yield noted
        return

    def note(number: int, frame: FrameType | None) -> None:
        noted.append(number)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)
