"""Compiling and launching CUDA kernels: the one way in which the store and the algorithms do it.

A kernel is named by its file, as sources.py has it, and its function; a template instance by its
C++ name, such as "loop<2, true>". `options` are the compiler's, such as "-DWIDTH=8". A kernel is
loaded once for each device and set of options (modules.py), and kept in memory.

Kernels run on the current device and on CuPy's current stream, so that results are ordered with
whatever the caller does there. Arguments are CuPy arrays, None for an array that is not there,
NumPy structures (passed by value), Python integers (int64 in the kernel) and NumPy scalars of the
kernel's own types.

A *cooperative* kernel may wait for its whole grid (grid.cuh): it is launched with no more blocks
than the device holds at once, and walks its items in strides.

`Packed` arguments lie in a block of the caller's own, which it writes into from launch to launch.
Every launch goes through `start`, where tests count what was launched.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterable
from ctypes import c_int64
from functools import lru_cache
from typing import Any

import cupy
import numpy as np

from ..arrays import DATA
from . import driver, modules
from .modules import Kernel
from .sources import Options

BLOCK = 256  # threads
# A kernel must ask for more than 48 KiB of shared memory. This much of it may be dynamic without
# being asked for, since no kernel declares more than the rest.
OPT_IN_BYTES = 16 << 10
MOST_ARGUMENTS = 40  # of a kernel
ALL_BITS = (1 << 64) - 1


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
                value, places[i] = 0, c_int64.from_address(id(arg) + DATA).value  # its address
            elif arg is None:
                value = 0
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


def run(
    file: str, name: str, items: int, *args: Any, block: int = BLOCK, options: Options = ()
) -> None:
    """Launch one thread per item, in blocks of `block`; nothing if there are no items."""
    if items > 0:
        kernel = _compiled(cupy.cuda.runtime.getDevice(), file, name, options, False)
        start(name, kernel, -(-items // block), block, args)


def run_together(
    file: str,
    name: str,
    items: int,
    *args: Any,
    block: int = BLOCK,
    shared: int = 0,
    options: Options = (),
) -> None:
    """A cooperative launch: one thread per item, but no more blocks than the device holds at once,
    and at least one. `shared`: bytes of dynamic shared memory per block."""
    most = resident_blocks(file, name, block, shared, options)
    kernel = compiled(file, name, options, cooperative=True)
    start(name, kernel, min(most, blocks_for(items, block)), block, args, shared)


def start(
    name: str,
    kernel: Kernel,
    blocks: int,
    block: int,
    args: tuple[Any, ...] | Packed,
    shared: int = 0,
) -> None:
    """Launch `kernel`, which is the one called `name`, as `blocks` blocks of `block` threads."""
    if isinstance(args, Packed):
        stream, at = args.stream, args.at
    else:
        stream, at = int(cupy.cuda.get_current_stream().ptr), _arguments.pack(args)
    calls = driver.thread.calls
    how = calls.launch_together if kernel.cooperative else calls.launch
    if failed := how(kernel.ptr, blocks, block, shared, stream, at):
        driver.fail(failed)


def compiled(file: str, name: str, options: Options = (), cooperative: bool = False) -> Kernel:
    """The kernel `name` of a file for the current device, which launches cooperatively if
    `cooperative`. Raises CuPy's CompileException if the source is wrong."""
    return _compiled(cupy.cuda.runtime.getDevice(), file, name, options, cooperative)


@lru_cache(maxsize=1024)
def _compiled(device: int, file: str, name: str, options: Options, cooperative: bool) -> Kernel:
    return modules.function(file, name, options, cooperative)


def blocks_for(items: int, block: int = BLOCK) -> int:
    """How many blocks of `block` threads give each item a thread; at least one."""
    return max(1, -(-items // block))


def resident_blocks(
    file: str, name: str, block: int = BLOCK, shared: int = 0, options: Options = (),
    cooperative: bool = True,
) -> int:  # fmt: skip
    """How many blocks of a kernel the current device holds at once, each of `block` threads and
    with `shared` bytes of dynamic shared memory, for which the kernel is prepared."""
    kernel = compiled(file, name, options, cooperative)
    if shared > OPT_IN_BYTES:
        kernel.allow_shared(shared)
    return kernel.resident_blocks(block, shared)
