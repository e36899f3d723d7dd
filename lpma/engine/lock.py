"""The lock around a graph's stores: one call at a time, on the right device, never half a batch.

A batch that fails before its first write has changed nothing. Signals by which a user ends a
program wait until the batch is applied (signals.py). Anything else that ends a batch after its
first write (a device error, another signal's handler, a clock that raises) leaves the graph broken,
and every later call raises BrokenStore.

Trick: the lock is implemented in C, and acquired and released on one line around a call. Python
raises nothing between the two, whatever a signal, another thread or a tracer wants raised. An
`__exit__` written in Python could be left before its first line, and the lock would be held
forever. The lock itself knows which thread holds it, from the moment it does: were that noted here,
a signal's handler could come in between and wait for its own thread.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from ..backend.protocol import Place
from ..errors import BrokenStore, ConcurrentWrite, LpmaError, OutOfMemory
from ..signals import DeferredSignals
from .stores import Stores

Result = TypeVar("Result")

_BROKEN = (
    "this graph was interrupted in the middle of a batch and is unusable: reload it from a save, "
    "or resume the pipeline from its checkpoint"
)
_WITHIN = (
    "this thread is within a call of this graph already, as a signal's handler or a clock is: note "
    "what is to be done, and do it when that call has returned"
)
_OUT_OF_MEMORY = "{}: the graph is as it was; ask for less at once, or free memory on its device"

_locks: weakref.WeakSet[GraphLock] = weakref.WeakSet()


def _renew_all() -> None:
    """Make new locks in a forked child, whose only thread holds none. If another thread of the
    parent was applying a batch, the child has a part of it, and its graph is broken."""
    for lock in list(_locks):
        lock._lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_all)


def _end(stores: Stores) -> None:
    """Copy what snapshots have not copied yet, since their graph is gone."""
    held = DeferredSignals(_end.__code__)
    try:
        stores.materialize_deferred()
    finally:
        held.put_back()
        if held.arrived:  # `finalize`, in the next frame, reports what is raised and goes on
            held.deliver_after(sys._getframe(1))


class GraphLock:
    """A graph's lock. While it is held, the graph's device, if it has one, is the current one, and
    a MemoryError is raised as OutOfMemory.

    Invariant: while the lock is free, `_whole` is False only if a batch was cut off."""

    def __init__(self, place: Place, stores: Stores, graph: object) -> None:
        self._lock = threading.RLock()
        self._place, self._stores = place, stores
        self._whole = True
        _locks.add(self)
        weakref.finalize(graph, _end, stores).atexit = False  # nobody reads snapshots any more then

    def is_held(self) -> bool:
        """Whether a call uses the graph now, of this thread or another. An RLock can be asked from
        Python 3.14 on; before that, what it prints of itself says so."""
        return not repr(self._lock).startswith("<unlocked")

    def read(self, call: Callable[..., Result], *args: Any) -> Result:
        """call(*args), while no other call uses the graph. Raises ConcurrentWrite if this thread is
        inside one already, as a signal's handler and the graph's clock are."""
        if self._lock._is_owned():  # type: ignore[attr-defined]
            raise ConcurrentWrite(_WITHIN)
        if self._stores.out.pending is not None:
            self._catch_up()
        with self._lock: return self._look(call, args)  # fmt: skip  # noqa: E701

    def write(self, call: Callable[..., Result], *args: Any, overlaps: bool = False) -> Result:
        """call(*args), which applies one batch. overlaps: it finishes a pending batch itself.
        Raises ConcurrentWrite as `read` does, and while another thread applies one. REQUIRES: if
        `call` raises an Exception and the stores are not `written`, nothing has changed."""
        if self._lock._is_owned():  # type: ignore[attr-defined]
            raise ConcurrentWrite(_WITHIN)
        if not self._whole and self.is_held():
            raise ConcurrentWrite("another thread is applying a batch: a graph has one writer")
        held = DeferredSignals(GraphLock._change.__code__)
        try:
            with self._lock: return self._change(call, args, overlaps)  # fmt: skip  # noqa: E701
        finally:
            held.put_back()
            if held.arrived:
                held.deliver()

    def refuse_broken(self) -> None:
        """Raise BrokenStore if the graph is broken, for what is read without the lock."""
        if self._stores.out.pending is not None and not self.is_held():
            self._catch_up()
        if not self._whole and not self.is_held():
            raise BrokenStore(_BROKEN)

    def _look(self, call: Callable[..., Result], args: tuple[Any, ...]) -> Result:
        if not self._whole:
            raise BrokenStore(_BROKEN)
        if self._stores.is_provisional:
            self._stores.move_on()
        if self._stores.out.pending is not None:  # another thread's, of this very moment
            self._finish_pending()
        try:
            return self._place.run(call, args)
        except MemoryError as error:
            if isinstance(error, LpmaError):
                raise
            raise OutOfMemory(_OUT_OF_MEMORY.format(error)) from error

    def _catch_up(self) -> None:
        """Finish the pending batch. Signals wait while this is done."""
        held = DeferredSignals(GraphLock._finish_pending.__code__)
        try:
            with self._lock:
                self._finish_pending()
        finally:
            held.put_back()
            if held.arrived:
                held.deliver()

    def _finish_pending(self) -> None:
        if not self._whole:
            return  # whoever reads next is told
        try:
            self._place.run(self._stores.finish_pending, ())
        except BaseException as error:
            self._whole = False
            raise BrokenStore(_BROKEN) from error

    def _change(self, call: Callable[..., Result], args: tuple[Any, ...], overlaps: bool) -> Result:
        """Apply a batch. Signals wait while this runs."""
        if not self._whole:
            raise BrokenStore(_BROKEN)
        stores, run = self._stores, self._place.run
        if stores.is_provisional:
            stores.move_on()
        self._whole = False
        try:
            if not overlaps and stores.out.pending is not None:
                run(stores.finish_pending, ())
            if stores.deferred is not None:
                run(stores.materialize_deferred, ())
            result = run(call, args)
        except Exception as error:
            if stores.written:
                raise BrokenStore(_BROKEN) from error
            self._whole = True
            if isinstance(error, MemoryError) and not isinstance(error, LpmaError):
                raise OutOfMemory(_OUT_OF_MEMORY.format(error)) from error
            raise
        stores.settle()
        self._whole = True
        return result
