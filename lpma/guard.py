"""One at a time, on the right device: what stands around every use of a graph's stores."""

from __future__ import annotations

import threading

from .backend import Place
from .errors import LpmaError, OutOfMemory


class Guard:
    """A graph's lock. Whoever holds it has the graph's device as the current one, and memory that
    runs out meanwhile comes out as OutOfMemory."""

    def __init__(self, place: Place) -> None:
        self._lock = threading.Lock()
        self._place = place

    def __enter__(self) -> None:
        self._lock.acquire()
        try:
            self._place.__enter__()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        try:
            self._place.__exit__()
        finally:
            self._lock.release()
        if isinstance(error, MemoryError) and not isinstance(error, LpmaError):
            raise OutOfMemory(
                f"{error}: the graph is as it was; ask for less at once, or free memory on its "
                "device"
            ) from error
