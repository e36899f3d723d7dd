"""Compiled functions that a thread loads, or compiles, while the program goes on without them.

Importing Numba and reading its cache takes half a second, compiling takes several. A caller that
has another way asks `is_ready`, and goes that way until it is. With LPMA_COMPILE=ahead the first
caller waits instead.

This module must not import Numba, but for the thread.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Collection

from . import ready
from .manifest import entries

_all: weakref.WeakSet[Behind] = weakref.WeakSet()


class Behind:
    """One set of functions, each made ready once in a process."""

    def __init__(self, modules: Collection[str], take: Callable[[], None]) -> None:
        """modules: those of the functions, which are in the store's list of kernels; take: called
        once these can be called."""
        self._modules, self._take = modules, take
        self.ready = False  # whether the functions can be called
        self._reader: threading.Thread | None = None
        self._turn = threading.Lock()
        _all.add(self)

    def is_ready(self) -> bool:
        """Whether the functions can be called; if not, they are being read when this returns."""
        if not self.ready and self._reader is None:
            if os.environ.get("LPMA_COMPILE") == "ahead":
                self.get_ready()
            else:
                self._begin()
        return self.ready

    def get_ready(self) -> None:
        """Wait until the functions can be called."""
        reader = self._reader
        if reader is not None:
            reader.join()
        if not self.ready:
            self._work()

    def _begin(self) -> None:
        with self._turn:
            if self._reader is None:
                # No daemon: the interpreter must not end while a library is being loaded.
                self._reader = threading.Thread(target=self._work, name="lpma-ready")
                self._reader.start()

    def _work(self) -> None:
        for entry in entries(ready.STORE):
            if entry.module in self._modules:
                with ready.reading:  # compiled here, if it is not on disk
                    entry.read()
        with ready.reading:
            self._take()
            self.ready = True

    def forget_thread(self) -> None:
        """A forked child has none of its parent's threads."""
        self._reader, self._turn = None, threading.Lock()


def _forget_threads() -> None:
    for each in list(_all):
        each.forget_thread()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
