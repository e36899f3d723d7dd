"""A thread that counts whenever it may run: how far it comes while a call is under way tells
whether that lets go of the interpreter's lock."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Counting(threading.Thread):
    """See `counting`."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.count, self.ends = 0, False

    def run(self) -> None:
        while not self.ends:
            self.count += 1


@contextmanager
def counting() -> Iterator[Counting]:
    """Such a thread, until the end of the block."""
    thread = Counting()
    thread.start()
    try:
        yield thread
    finally:
        thread.ends = True
        thread.join()
