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
    """Calls, each in its turn, in one thread of their own. Once one has failed none is begun any
    more, and whatever is asked raises its error: what follows may rest on it. One thread at a time
    begins calls; any may look and wait."""

    def __init__(self, name: str) -> None:
        self._worker = ThreadPoolExecutor(1, name)
        self._call: Future[None] | None = None  # the last one

    def begin(self, call: Callable[[], None]) -> None:
        """Begin a call, once the one before has ended."""
        self.wait()
        self._call = self._worker.submit(call)

    def look(self, idle: bool) -> None:
        """Raise what the last call raised, if it has ended. idle: the caller has nothing to do."""
        call = self._call
        if call is not None and call.done():
            call.result()

    def wait(self) -> None:
        """Wait until the last call has ended."""
        call = self._call
        if call is not None:
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
    _error: BaseException | None = None

    def begin(self, call: Callable[[], None]) -> None:
        self.wait()
        self._later = call

    def look(self, idle: bool) -> None:
        if idle or self._error is not None:
            self.wait()

    def wait(self) -> None:
        if self._error is not None:
            raise self._error
        call, self._later = self._later, None
        if call is not None:
            try:
                call()
            except BaseException as error:
                self._error = error
                raise

    def close(self) -> None:
        self._later = None
        super().close()
