"""Whether the CPU's kernels can be called without waiting for a compiler; if not, they are compiled
in the background.

Until then stores are kept by backend/numpy, and nobody waits. The first store of a process that
finds kernels missing starts worker processes of low priority, and a thread that waits for them and
then reads the kernels into this process. From then on `are_ready` is true, and each graph moves to
the compiled backend before its next batch or query (`Stores.move_on`).

With LPMA_COMPILE=ahead the first store waits for the kernels instead, so that measurements and
tests run on the compiled backend only.

This module must not import Numba, but for the thread.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Collection
from contextlib import suppress

from ..host import tell
from . import compiling
from .manifest import PACKAGES, entries

STORE = "lpma"  # the package whose kernels keep stores

_ready = False
_thread: threading.Thread | None = None
_ending = threading.Event()
_beginning = threading.Lock()
reading = threading.RLock()  # held while kernels are read: no process forks meanwhile


def are_ready() -> bool:
    """Whether kernels can be called now. Cheap."""
    return _ready


def get_ready() -> bool:
    """Whether kernels can be called now; if not, they are being compiled when this returns."""
    global _ready
    if not _ready:
        with _beginning:
            if _thread is None and compiling.is_compiled([STORE]):
                _ready = True
        if not _ready and os.environ.get("LPMA_COMPILE") == "ahead":
            tell("compiling for this machine, once")
            compiling.compile_all([STORE])
            _ready = True
        if not _ready:
            compile_behind()
    return _ready


def is_behind() -> bool:
    """Whether this is the thread that compiles while the program goes on."""
    return threading.current_thread() is _thread


def note_compiled() -> None:
    """Kernels were compiled by this process or another: they can be called."""
    global _ready
    _ready = True


def compile_behind() -> None:
    """Compile all kernels in the background, those of stores first."""
    global _thread
    with _beginning:
        if _thread is None and not compiling.is_compiled():
            _thread = threading.Thread(target=_behind, daemon=True, name="lpma-ready")
            _thread.start()
            atexit.register(_end)


def _behind() -> None:
    """Compile the store's kernels, read them, and compile all others."""
    global _ready
    try:
        compiling.compile_all([STORE], niceness=compiling.BEHIND, ending=_ending)
    except (compiling.CompileError, OSError) as error:
        if not _ending.is_set():
            tell(f"kernels are compiled by this process: {error}")
    if not _ready:
        _read()
    _ready = not _ending.is_set()
    with suppress(compiling.CompileError, OSError):  # told where they are called
        compiling.compile_all(PACKAGES, niceness=compiling.BEHIND, ending=_ending)


def _read() -> None:
    """Read the store's kernels from the cache, or compile them here, so that no batch has to. No
    kernel is half read when the process forks: a child would wait forever for Numba's locks."""
    for entry in entries(STORE):
        if _ending.is_set():
            return
        with reading, suppress(Exception):  # what fails is raised where it is called
            entry.read()


def _end() -> None:
    """At exit: stop the workers, and wait for the thread, so that it is in no library that is being
    unloaded."""
    _ending.set()
    compiling.end_workers()
    if _thread is not None:
        _thread.join()


def _forget_thread() -> None:
    """A forked child has none of its parent's threads, and starts its own."""
    global _thread, _beginning, _ending
    reading.release()
    _thread, _beginning, _ending = None, threading.Lock(), threading.Event()


os.register_at_fork(
    before=reading.acquire,
    after_in_parent=reading.release,
    after_in_child=_forget_thread,
)


class Behind:
    """Compiled functions that a thread loads, or compiles, while the program goes on without them:
    importing Numba and reading its cache takes half a second, compiling several. A caller that has
    another way asks `is_ready`, and goes that way until it is. With LPMA_COMPILE=ahead it waits."""

    def __init__(self, modules: Collection[str], take: Callable[[], None]) -> None:
        """modules: those of the functions, which are in the store's list of kernels; take: called
        once these can be called."""
        self._modules, self._take = modules, take
        self.ready = False  # whether the functions can be called
        self._reader: threading.Thread | None = None
        self._turn = threading.Lock()
        os.register_at_fork(after_in_child=self.forget_thread)

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
        for entry in entries(STORE):
            if entry.module in self._modules:
                with reading:  # compiled here, if it is not on disk
                    entry.read()
        with reading:
            self._take()
            self.ready = True

    def forget_thread(self) -> None:
        """A forked child has none of its parent's threads."""
        self._reader, self._turn = None, threading.Lock()
