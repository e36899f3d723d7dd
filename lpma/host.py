"""The host that this process runs on: the processors it may use, and a line to its user."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def tell(text: str) -> None:
    """Say `text` on stderr, in a line. That nobody can read it must not end what the program
    does."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(f"lpma: {text}", file=sys.stderr, flush=True)
