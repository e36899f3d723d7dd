"""The kernels of a file, loaded on a device: from the archive, or from the compiler.

CuPy keeps what the compiler made on disk. Compiling takes a tenth of a second to more than one for
a file, so `begin` has files compiled beforehand and side by side. Whoever needs one that is not
there yet waits for it, and a line says for what and how long.

Requires: what is said here of "the device" is the current one. Threads may call.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any

import cupy

from ..host import processors, tell
from .archive import Archive
from .sources import Options, given

NOTICE_S = 0.2
_allowing = threading.Lock()  # two threads must not set a kernel's attribute back
FAILURES = (cupy.cuda.compiler.CompileException, RuntimeError, OSError, MemoryError)


class Kernel:
    """A kernel, for the device that it was loaded on, and whether it launches cooperatively. `ptr`
    is the driver's name of it."""

    __slots__ = ("_function", "cooperative", "ptr")

    def __init__(self, function: Any, cooperative: bool) -> None:
        self._function = function  # kept alive
        self.cooperative = cooperative
        self.ptr = function.ptr

    @lru_cache(maxsize=1024)  # noqa: B019 - kernels are kept
    def resident_blocks(self, block: int, shared: int) -> int:
        """How many blocks of so many threads and bytes of shared memory its device holds at once.
        REQUIRES: this is the current device."""
        known = cupy.cuda.driver
        per_sm = known.occupancyMaxActiveBlocksPerMultiprocessor(self.ptr, block, shared)
        return int(per_sm) * int(cupy.cuda.Device().attributes["MultiProcessorCount"])

    def allow_shared(self, size: int) -> None:
        """Let its blocks have `size` bytes of dynamic shared memory. What was allowed before stays
        allowed: a later launch may ask for more than this one."""
        known = cupy.cuda.driver
        attribute = known.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        with _allowing:
            if size > known.funcGetAttribute(attribute, self.ptr):
                known.funcSetAttribute(self.ptr, attribute, size)


class _Module:
    """The kernels of a file for one device, loaded by the first thread that needs them. instance:
    the only one to compile, of a file's templates; "": none."""

    def __init__(self, file: str, options: Options, instance: str) -> None:
        self._of = file, options, instance
        self._turn = threading.Lock()
        self._loaded: tuple[Any, dict[str, str]] | None = None  # with the names of instances in it

    def load(self, wait: bool = True) -> tuple[Any, dict[str, str]] | None:
        """The loaded module; None if another thread is loading it and this one does not wait."""
        if self._loaded is None and self._turn.acquire(blocking=wait):
            try:
                if self._loaded is None:
                    self._loaded = _from_archive(*self._of) or _from_compiler(*self._of)
            finally:
                self._turn.release()
        return self._loaded


def function(file: str, name: str, options: Options, cooperative: bool) -> Kernel:
    """The kernel `name` of a file, which may be an instance such as "loop<2, true>". Raises CuPy's
    CompileException if the source is wrong."""
    instance = name if "<" in name else ""
    module = _module(cupy.cuda.runtime.getDevice(), file, options, instance)
    began = time.perf_counter()
    loaded = module.load()
    waited = time.perf_counter() - began
    if waited > NOTICE_S:
        tell(f"waited {waited:.1f} s for {file}, compiled for this GPU")
    assert loaded is not None
    binary, symbols = loaded
    return Kernel(binary.get_function(symbols.get(name, name)), cooperative)


def load(file: str, options: Options, instance: str) -> None:
    """Load a file, or one instance of its templates, and wait for it. Raises one of FAILURES."""
    _module(cupy.cuda.runtime.getDevice(), file, options, instance).load()


def begin(files: Iterable[tuple[str, Options]]) -> None:
    """Have files without templates loaded while the caller goes on, in this order and on all
    processors. An error is raised when a kernel of the file is asked for."""
    device = cupy.cuda.runtime.getDevice()
    shipped()  # read by this thread, not by each of the others
    waiting = deque(_module(device, file, options, "") for file, options in files)
    for _ in range(min(len(waiting), processors())):
        threading.Thread(target=_load, args=(device, waiting), name="lpma-compile").start()


def _load(device: int, waiting: deque[_Module]) -> None:
    """Load the modules that are waiting, until none is or the program ends."""
    with cupy.cuda.Device(device):
        while threading.main_thread().is_alive():
            try:
                module = waiting.popleft()
            except IndexError:
                return
            with suppress(*FAILURES):
                module.load(wait=False)


@lru_cache(maxsize=4096)
def _module(device: int, file: str, options: Options, instance: str) -> _Module:
    return _Module(file, options, instance)


@lru_cache(maxsize=1)
def shipped() -> Archive:
    """The archive of this installation."""
    return Archive()


def _from_archive(file: str, options: Options, instance: str) -> tuple[Any, dict[str, str]] | None:
    """A module with all of a file's instances. None if the archive has none for the device, or one
    that its driver does not take."""
    binary = shipped().find(file, options, int(cupy.cuda.Device().compute_capability))
    if binary is None or (instance and instance not in binary.symbols):
        return None
    module = cupy.cuda.function.Module()
    try:
        module.load(binary.image)
    except cupy.cuda.driver.CUDADriverError:
        return None
    return module, dict(binary.symbols)


def _from_compiler(file: str, options: Options, instance: str) -> tuple[Any, dict[str, str]]:
    code, all_options = given(file, options)
    expressions = (instance,) if instance else None
    raw = cupy.RawModule(code=code, options=all_options, name_expressions=expressions)
    module = raw.module
    return module, dict(module.mapping or {})
