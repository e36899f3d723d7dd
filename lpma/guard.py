"""One at a time, on the right device: what stands around every use of a graph's stores."""

from __future__ import annotations

import threading

from .backend import Host, Place
from .errors import ConcurrentWrite, LpmaError, OutOfMemory


class Guard:
    """A graph's lock. Whoever holds it has the graph's device as the current one, if it is on one,
    and memory that runs out meanwhile comes out as OutOfMemory."""

    def __init__(self, place: Place) -> None:
        self._lock = threading.Lock()
        self._device = None if isinstance(place, Host) else place

    def __enter__(self) -> None:
        self._lock.acquire()
        if self._device is None:
            return
        try:
            self._device.__enter__()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        try:
            if self._device is not None:
                self._device.__exit__()
        finally:
            self._lock.release()
        if error is None:
            return
        if isinstance(error, MemoryError) and not isinstance(error, LpmaError):
            raise OutOfMemory(
                f"{error}: the graph is as it was; ask for less at once, or free memory on its "
                "device"
            ) from error


class Writer:
    """The guard for whoever changes the graph: while one does, a second is refused."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._writing = threading.Lock()

    def __enter__(self) -> None:
        if not self._writing.acquire(blocking=False):
            raise ConcurrentWrite("another thread is applying a batch: a graph has one writer")
        try:
            self._guard.__enter__()
        except BaseException:
            self._writing.release()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        try:
            self._guard.__exit__(kind, error, trace)
        finally:
            self._writing.release()
