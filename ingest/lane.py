"""A thread beside the stream that does one thing at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress


class Lane:
    """Calls, each in its turn, in one thread of their own. For one thread at a time."""

    def __init__(self, name: str) -> None:
        self._worker = ThreadPoolExecutor(1, name)
        self._call: Future[None] | None = None

    def begin(self, call: Callable[[], None]) -> None:
        """Begin a call, once the one before has ended. Raises what that raised, and begins none."""
        self.wait()
        self._call = self._worker.submit(call)

    def look(self) -> None:
        """Raise what the last call raised, if it has ended."""
        if self._call is not None and self._call.done():
            self.wait()

    def wait(self) -> None:
        """Wait until the last call has ended. Raises what it raised, once."""
        if self._call is not None:
            self._call.exception()  # if waiting is interrupted, it can be waited for again
            call, self._call = self._call, None
            call.result()

    def close(self) -> None:
        """End the thread, after the last call. What that raised is dropped."""
        with suppress(BaseException):
            self.wait()
        self._worker.shutdown()
