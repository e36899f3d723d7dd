"""Work beside the stream, one call at a time: in a thread, or later in the stream's own.

A device works without a thread of the host. There, a second thread would only compete for the
interpreter, which each gives up at every launch: the same work then takes half as long again. So
what has to follow the device's work is deferred, and called by the stream's own thread.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress


class BackgroundTask:
    """Calls, one after another, in a thread of their own. After a failure no other call begins, and
    every method but `close` raises its error: what follows may depend on the call. Calls are begun
    by one thread at a time; any thread may look and wait."""

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


class DeferredTask(BackgroundTask):
    """The same in the caller's thread: a call takes place when it is waited for, or when the caller
    is idle."""

    _deferred: Callable[[], None] | None = None
    _error: BaseException | None = None

    def begin(self, call: Callable[[], None]) -> None:
        self.wait()
        self._deferred = call

    def look(self, idle: bool) -> None:
        if idle or self._error is not None:
            self.wait()

    def wait(self) -> None:
        if self._error is not None:
            raise self._error
        call, self._deferred = self._deferred, None
        if call is not None:
            try:
                call()
            except BaseException as error:
                self._error = error
                raise

    def close(self) -> None:
        self._deferred = None
        super().close()
