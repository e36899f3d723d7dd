"""Ctrl-C while no command runs: among the imports, which take longest, and when all is done.
Imports nothing of ours."""

from __future__ import annotations

import os
import signal
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
