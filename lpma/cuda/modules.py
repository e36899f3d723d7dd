"""The kernels of a file, loaded on a device: from the archive, or from the compiler.

Loading looks into the archive (archive.py), and else asks CuPy, which keeps what the compiler made
on disk. Compiling takes a tenth of a second to more than one for a file, on one processor, so
`begin` has files compiled beforehand and side by side. Whoever needs one that is not there yet
waits for it, and a line says for what and how long.

Requires: what is said here of "the device" is the current one. Threads may call.
"""

from __future__ import annotations

import struct
import threading
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from ..arrays import address
from ..host import processors, tell
from . import driver
from .archive import Archive
from .sources import Options, given

NOTICE_S = 0.2
MOST_ARGUMENTS = 40  # of a kernel
ALL_BITS = (1 << 64) - 1
_allowing = threading.Lock()  # two threads must not set a kernel's attribute back
FAILURES = (cupy.cuda.compiler.CompileException, RuntimeError, OSError, MemoryError)


class Packed:
    """A kernel's arguments in memory that is kept, each from one of `offsets` bytes on, and the
    stream that it is launched on, whichever is the current one. The driver copies the arguments
    when the kernel is launched."""

    __slots__ = ("_addresses", "_memory", "at", "stream")

    def __init__(self, memory: Any, offsets: Iterable[int], stream: Any) -> None:
        self._memory = memory  # uint8[n], kept alive
        self._addresses = np.array([memory.ctypes.data + at for at in offsets], np.uintp)
        self.at = self._addresses.ctypes.data
        self.stream = int(stream.ptr)


class _Arguments(threading.local):
    """Memory of each thread for the arguments of one launch, and for their addresses."""

    def __init__(self) -> None:
        self._memory = np.zeros(2 * MOST_ARGUMENTS, np.uint64)
        self._bytes = self._memory.data.cast("B")
        self._words = [self._memory.ctypes.data + 8 * i for i in range(MOST_ARGUMENTS)]
        self.at = self._words[-1] + 8

    def pack(self, args: tuple[Any, ...]) -> int:
        """Where the driver finds the addresses of these arguments, until the next call. REQUIRES:
        they are kept until the kernel is launched."""
        values, places = [], self._words[: len(args)]
        for i, arg in enumerate(args):
            kind = type(arg)
            if kind is int:
                value = arg & ALL_BITS
            elif kind is cupy.ndarray:
                value = arg.data.ptr
            elif kind is np.ndarray:  # a structure, which lies in memory already
                value, places[i] = 0, address(arg)
            else:
                value = int.from_bytes(np.asarray(arg).tobytes(), "little")
            values.append(value)
        pack = _packing(len(args)).pack_into
        pack(self._bytes, 0, *values)
        pack(self._bytes, 8 * MOST_ARGUMENTS, *places)
        return self.at


_arguments = _Arguments()


@lru_cache(maxsize=MOST_ARGUMENTS + 1)
def _packing(words: int) -> struct.Struct:
    return struct.Struct(f"<{words}Q")


class Kernel:
    """A kernel that can be launched, on the device that it was loaded on; cooperatively, if asked
    for. `ptr` is the driver's name of it."""

    __slots__ = ("_cooperative", "_function", "ptr")

    def __init__(self, function: Any, cooperative: bool) -> None:
        self._function = function  # kept alive
        self._cooperative = cooperative
        self.ptr = function.ptr

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], args: Any, shared_mem: int = 0
    ) -> None:
        if type(args) is Packed:
            stream, at = args.stream, args.at
        else:
            stream, at = int(cupy.cuda.get_current_stream().ptr), _arguments.pack(args)
        driver.launch(self.ptr, self._cooperative, grid[0], block[0], shared_mem, stream, at)

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
