"""How Numba compiles the kernels of this project.

All are kept on disk (cache.py), and all but those of a few microseconds release the GIL. None has a
wrapper for C, and the small functions that kernels are made of have none for Python either: a third
of a compilation would go into these.

What is compiled while a program runs is told on stderr, with the time it took: else a user takes it
for a hang. `lpma.compile` (compiling.py) compiles everything beforehand.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _Cache, _CacheLocator
from numba.core.runtime import rtsys

from ..host import tell
from ..signals import DeferredSignals
from . import cache, ready
from .boxing import KernelCompiler
from .linked_functions import part, plainly_typed


class _Folder(_CacheLocator):
    """Tells Numba where one function is kept. The folder's name says which source it was made
    from, so that there is no other stamp."""

    def __init__(self, kernel: Any) -> None:
        self._folder = cache.folder(kernel.__module__)
        self._line = kernel.__code__.co_firstlineno

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> _Folder:
        return cls(py_func)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def ensure_cache_path(self) -> None:
        if not self._folder.is_dir():
            cache.make(self._folder)

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return str(self._line)


class _InFolder(CompileResultCacheImpl):
    _locator_classes = (_Folder,)


class _Kept(FunctionCache):
    _impl_class = _InFolder

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is read is compiled and needs the runtime alone: Numba's registries, half a second
        of imports, wait until something is compiled. Signals wait, too: LLVM calls back into Python
        meanwhile, through ctypes, which drops what a handler raises there."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


class _KeptLazily(_Cache):
    """A kernel's cache, which is looked for when the kernel is first called: by then all modules
    are imported, and most programs call few kernels."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    @cached_property
    def _kept(self) -> Any:
        return _Kept(self._kernel)

    @property
    def cache_path(self) -> str:
        return str(self._kept.cache_path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        held = DeferredSignals(_Kept.load_overload.__code__)
        try:
            with telling.waiting():
                return self._kept.load_overload(sig, target_context)
        except Exception as error:  # noqa: BLE001 - a damaged file may raise anything
            name = f"{self._kernel.__module__}.{self._kernel.__name__}"
            tell(f"{name} cannot be read from the cache, and is compiled again: {error!r}")
            cache.discard(self._kept.cache_path, self._kernel)
            return None
        finally:
            held.put_back()
            if held.arrived:
                held.deliver()

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a kernel; one that cannot be kept serves this process all the same."""
        try:
            self._kept.save_overload(sig, data)
        except Exception as error:  # noqa: BLE001 - such as a full disk, or what lies there
            tell(f"compiled kernels cannot be kept in {cache.directory()}: {error!r}")
            cache.discard(self._kept.cache_path, self._kernel)

    def enable(self) -> None:
        self._kept.enable()

    def disable(self) -> None:
        self._kept.disable()

    def flush(self) -> None:
        self._kept.flush()


# A function that Python calls, or compiled code, or both.
def compiled(function: Callable[..., Any], releases: bool = True) -> Any:
    kernel = njit(nogil=releases, no_cfunc_wrapper=True, pipeline_class=KernelCompiler)(function)
    if cache.is_ours(function.__module__):
        kernel._cache = _KeptLazily(function)
    else:
        kernel.enable_caching()
    return plainly_typed(kernel)


def keeping_lock(function: Callable[..., Any]) -> Any:
    """As `compiled`, for a function that does not let go of the GIL: to have it back beside a busy
    thread takes 5 ms."""
    return compiled(function, releases=False)


# A part of compiled functions, inlined into each. Calling one from Python ends the process: there
# is no wrapper to call.
inlined: Any = part

# A function that compiled code calls with a literal is compiled for that literal, and again for
# other values. With these it is compiled once.
ZERO: Any = np.int64(0)
ONE: Any = np.int64(1)


class _Begun(threading.local):
    """When a thread began the kernel under way and those that it is made of."""

    def __init__(self) -> None:
        self.begun: list[float] = []


class _Tell(event.Listener):
    """Tells on stderr what is compiled: once that it begins, and each time what took how long."""

    def __init__(self) -> None:
        self.silent = False
        self.seconds = 0.0  # that calls have waited for compiling and reading kernels until now
        self._own = _Begun()
        self._told = False

    def on_start(self, event: Any) -> None:
        self._own.begun.append(time.perf_counter())
        if len(self._own.begun) == 1 and not self._told and not self.silent and _is_ours(event):
            self._told = True
            tell("compiling for this machine, once; `lpma compile` does it beforehand")

    def on_end(self, event: Any) -> None:
        seconds = self._ended()
        if not self._own.begun and not self.silent and _is_ours(event):
            kernel = event.data["dispatcher"].py_func
            tell(f"compiled {kernel.__module__}.{kernel.__name__} in {seconds:.1f} s")

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Within, a kernel is read from the cache."""
        self._own.begun.append(time.perf_counter())
        try:
            yield
        finally:
            self._ended()

    def _ended(self) -> float:
        """How many seconds the last that was begun took. Those of a kernel that is compiled or read
        for another one count once."""
        seconds = time.perf_counter() - self._own.begun.pop()
        if not self._own.begun and not ready.is_behind():
            self.seconds += seconds
        return seconds


def _is_ours(event: Any) -> bool:
    code = event.data["dispatcher"].py_func.__code__
    return str(code.co_filename).startswith(f"{cache.ROOT}{os.sep}")


telling = _Tell()
event.register("numba:compile", telling)
