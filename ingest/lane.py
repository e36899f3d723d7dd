"""What goes on beside the stream, one call at a time: in a thread, or in the stream's own, later.

A device needs no thread of the host's to go on. There a second thread would only compete for the
interpreter, which both give back at each launch: the same work then takes half as long again. So
what is to follow the device's work is called later, by the stream's own thread.
"""

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

    def look(self, idle: bool) -> None:
        """Raise what the last call raised, if it has ended. idle: the caller has nothing to do."""
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


class Later(Lane):
    """The same in the caller's thread: a call takes place when it is waited for, or the caller has
    nothing else to do."""

    _later: Callable[[], None] | None = None

    def begin(self, call: Callable[[], None]) -> None:
        self.wait()
        self._later = call

    def look(self, idle: bool) -> None:
        if idle:
            self.wait()

    def wait(self) -> None:
        call, self._later = self._later, None
        if call is not None:
            call()

    def close(self) -> None:
        self._later = None
        super().close()
