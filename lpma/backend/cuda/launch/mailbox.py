"""Words in the host's memory that kernels write and the host watches: to copy an answer back would
cost more than a small kernel does.

A kernel's last word is the ticket that it was given, which no kernel before it had. So an answer
that nobody waited for is not mistaken for another.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....cuda import driver
from ..streams import Context


class Mailbox:
    """For kernels on a context's stream. The memory is kept until they are done, even if this is
    gone."""

    def __init__(self, context: Context, size: int) -> None:
        """size: bytes, a multiple of 8."""
        memory = context.pinned(size)
        self.memory = np.frombuffer(memory, np.uint8, size)
        self.memory.fill(0)
        self.words = self.memory.view(np.int64).data
        self.at = int(memory.ptr)
        self.ticket = 0  # the last one

    def next_ticket(self) -> int:
        self.ticket += 1
        return self.ticket

    def wait(self, stream: Any, ticket: int, word: int = 0, or_word: int = 0) -> Any:
        """The words, once the kernel in the stream that has this ticket has written it to one of
        two. Raises CuPy's CUDARuntimeError if the device fails."""
        at, or_at = self.at + 8 * word, self.at + 8 * or_word
        if not driver.thread.calls.look(at, or_at, ticket, stream.ptr, driver.KEPT_NS):
            driver.await_word(at, ticket, stream, or_at)
        return self.words
