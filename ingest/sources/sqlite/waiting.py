"""Waiting for another process, or thread, to write to a log.

Idea: whoever has written touches the log's file (`os.utime`: its time of change, nothing else), and
a reader that waits has asked the kernel to be told: inotify, on Linux. A reply is then read some
tens of microseconds after it was written, and waiting costs next to nothing. Nothing rests on it: a
writer may die before it touches the file, or know nothing of this, so a reader looks every `LOOK_S`
all the same; and every `SLEEP_S` where the kernel tells nothing.

The file is named, not opened: closing a second handle would release SQLite's locks.
"""

from __future__ import annotations

import os
import select
import time
from contextlib import suppress

from lpma.host import open_watch, wake

LOOK_S = 0.01
SLEEP_S = 0.001
REST_S = 0.0005  # between two wakes, or a busy writer of another topic would keep a reader busy too
_EVENT_BYTES = 4096


class Watch:
    """Waits for the file `path` to be touched. One thread at a time, or others wake later."""

    def __init__(self, path: str) -> None:
        self._file, self._waker = open_watch(path) or (-1, -1)
        self._poll = select.poll() if self._file >= 0 else None
        if self._poll is not None:
            self._poll.register(self._file, select.POLLIN)
            self._poll.register(self._waker, select.POLLIN)
        self._woken = 0.0  # when last

    def wait(self, seconds: float) -> None:
        """Return when the file was touched or `wake` called since the last call, or after LOOK_S or
        `seconds`."""
        if self._poll is None:
            time.sleep(min(SLEEP_S, seconds))
        elif ready := self._poll.poll(1000 * min(LOOK_S, seconds)):
            if any(file == self._waker for file, _ in ready):
                with suppress(BlockingIOError):
                    os.read(self._waker, 8)
                return
            with suppress(BlockingIOError):
                os.read(self._file, _EVENT_BYTES)
            if time.monotonic() - self._woken < REST_S:
                time.sleep(REST_S)
            self._woken = time.monotonic()

    def wake(self) -> None:
        """Let a `wait`, or the next one, return. May be called from any thread."""
        if self._waker >= 0:
            wake(self._waker)

    def __del__(self) -> None:
        # Not before the last thread has stopped waiting: the number may be another file's then.
        if self._file >= 0:
            os.close(self._file)
        if self._waker >= 0:
            os.close(self._waker)
