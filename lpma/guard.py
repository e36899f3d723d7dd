"""One at a time, on the right device, and never half-way: what stands around a graph's stores.

Whoever reads sees whole batches. A batch that fails before its first write has changed nothing.
Signals by which a person ends a program wait (interrupts.py). What else ends a batch later (a
device's error, another signal's handler, a clock that raises) leaves the graph broken, and each
later call says so.

Trick: the lock is C's, and is taken and let go on one line around a call. Python raises nothing
between the two, whatever a signal, another thread or a tracer wants raised; a `__exit__` of our own
could be left before its first line, and the lock held for good.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from .backend import Host
from .backend.protocol import Place
from .errors import BrokenStore, ConcurrentWrite, LpmaError, OutOfMemory
from .interrupts import hold

Result = TypeVar("Result")

_BROKEN = (
    "a batch was cut off half-way, so this graph may hold a part of it and is of no use: load it "
    "again from what was saved, or resume the pipeline from its checkpoint"
)


_guards: weakref.WeakSet[Guard] = weakref.WeakSet()


def _renew_all() -> None:
    for guard in list(_guards):
        guard.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)


class Written(Protocol):
    """The stores of a graph. `written`: the batch under way has changed what they publish."""

    @property
    def written(self) -> bool: ...
    def settle(self) -> None: ...


class Guard:
    """A graph's lock. Whoever holds it has the graph's device as the current one, if it is on one,
    and memory that runs out meanwhile comes out as OutOfMemory.

    Invariant: while nobody holds the lock, `_whole` is False only where a batch was cut off."""

    def __init__(self, place: Place, stores: Written) -> None:
        self._lock = threading.Lock()
        self._device = None if isinstance(place, Host) else place
        self._stores = stores
        self._whole = True
        self._owner = 0  # the thread that holds the lock, or held it last
        _guards.add(self)

    def _refuse_reentry(self) -> None:
        """A signal's handler, or a clock, that uses the graph would wait for itself."""
        if self._owner == threading.get_ident() and self._lock.locked():
            raise ConcurrentWrite(
                "this thread is within a call of this graph already, as a signal's handler or a "
                "clock is: note what is to be done, and do it when that call has returned"
            )

    def renew(self) -> None:
        """In a forked child, whose one thread holds no lock. Where another thread of the parent was
        applying a batch, the copy is of a part of it, and says so."""
        self._lock = threading.Lock()

    def read(self, call: Callable[..., Result], *args: Any) -> Result:
        """call(*args), nobody else being at the graph."""
        self._refuse_reentry()
        with self._lock: return self._look(call, args)  # fmt: skip  # noqa: E701

    def write(self, call: Callable[..., Result], *args: Any) -> Result:
        """The same for one batch. REQUIRES: where `call` raises an Exception and the stores are not
        `written`, it has changed nothing. While one writes, a second is refused."""
        self._refuse_reentry()
        if not self._whole and self._lock.locked():
            raise ConcurrentWrite("another thread is applying a batch: a graph has one writer")
        held = hold(Guard._change.__code__)
        try:
            with self._lock: return self._change(call, args)  # fmt: skip  # noqa: E701
        finally:
            if held is not None:
                held.let_go()

    def refuse_broken(self) -> None:
        """For what is read without the lock."""
        if not self._whole and not self._lock.locked():
            raise BrokenStore(_BROKEN)

    def _look(self, call: Callable[..., Result], args: tuple[Any, ...]) -> Result:
        self._owner = threading.get_ident()
        if not self._whole:
            raise BrokenStore(_BROKEN)
        return self._on_device(call, args)

    def _change(self, call: Callable[..., Result], args: tuple[Any, ...]) -> Result:
        """Signals wait while this is under way."""
        self._owner = threading.get_ident()
        if not self._whole:
            raise BrokenStore(_BROKEN)
        self._whole = False
        try:
            result = self._on_device(call, args)
        except Exception as error:
            if self._stores.written:
                raise BrokenStore(_BROKEN) from error
            self._whole = True
            raise
        self._stores.settle()
        self._whole = True
        return result

    def _on_device(self, call: Callable[..., Result], args: tuple[Any, ...]) -> Result:
        try:
            if self._device is None:
                return call(*args)
            with self._device:
                return call(*args)
        except MemoryError as error:
            if isinstance(error, LpmaError):
                raise
            raise OutOfMemory(
                f"{error}: the graph is as it was; ask for less at once, or free memory on its "
                "device"
            ) from error
