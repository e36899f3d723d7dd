"""Compiling and launching CUDA kernels: the one way in which the store and the algorithms do it.

A kernel is named by its file, as sources.py has it, and its function; a template instance by its
C++ name, such as "loop<2, true>". `options` are the compiler's, such as "-DWIDTH=8". A kernel is
loaded once for each device and set of options (modules.py), and kept in memory.

Kernels run on the current device and on CuPy's current stream, so that results are ordered with
whatever the caller does there. Arguments are CuPy arrays, NumPy structures (passed by value),
Python integers (int64 in the kernel) and NumPy scalars of the kernel's own types.

A *cooperative* kernel may wait for its whole grid (grid.cuh): it is launched with no more blocks
than the device holds at once, and walks its items in strides.

To look at each argument and to describe it anew at every launch costs CuPy more than the launch.
`Packed` arguments lie in a block of the caller's own, which it writes into from launch to launch.

Every launch goes through `start`, where tests count what was launched.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy

from . import modules
from .modules import Kernel
from .modules import Packed as Packed
from .sources import Options

BLOCK = 256  # threads
# A kernel must ask for more than 48 KiB of shared memory. This much of it may be dynamic without
# being asked for, since no kernel declares more than the rest.
OPT_IN_BYTES = 16 << 10


def run(
    file: str, name: str, items: int, *args: Any, block: int = BLOCK, options: Options = ()
) -> None:
    """Launch one thread per item, in blocks of `block`; nothing if there are no items."""
    if items > 0:
        kernel = compiled(file, name, options)
        start(name, kernel, blocks_for(items, block), block, args)


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
    kernel: Any,
    blocks: int,
    block: int,
    args: tuple[Any, ...] | Packed,
    shared: int = 0,
) -> None:
    """Launch `kernel`, which is the one called `name`, as `blocks` blocks of `block` threads."""
    kernel((blocks,), (block,), args, shared_mem=shared)


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
    file: str,
    name: str,
    block: int = BLOCK,
    shared: int = 0,
    options: Options = (),
    cooperative: bool = True,
) -> int:
    """How many blocks of a kernel the current device holds at once, each of `block` threads and
    with `shared` bytes of dynamic shared memory, for which the kernel is prepared."""
    device = cupy.cuda.runtime.getDevice()
    return _resident_blocks(device, file, name, block, shared, options, cooperative)


@lru_cache(maxsize=1024)
def _resident_blocks(
    device: int,
    file: str,
    name: str,
    block: int,
    shared: int,
    options: Options,
    cooperative: bool,
) -> int:
    kernel = _compiled(device, file, name, options, cooperative)
    if shared > OPT_IN_BYTES:
        kernel.allow_shared(shared)
    per_sm = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.ptr, block, shared)
    return int(per_sm) * int(cupy.cuda.Device(device).attributes["MultiProcessorCount"])
