"""Compiling and launching kernels.

A kernel is named by its file, as sources.py has it, and its function; a template's instance by its
C++ name, such as "loop<2, true>"; `options` are the compiler's, such as "-DWIDTH=8". Each is
compiled once a device and kept; CuPy keeps the binary on disk too.

Kernels run on the current device and on CuPy's current stream, so that results are ordered with
whatever the caller does there. Arguments are CuPy arrays, Python integers (int64 in the kernel) and
NumPy scalars of the kernel's own types.

Everything goes through `start`, where tests count what was launched.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy

from .sources import Options, given

BLOCK = 256  # threads


def run(
    file: str, name: str, items: int, *args: Any, block: int = BLOCK, options: Options = ()
) -> None:
    """A thread for each item, and nothing for none."""
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
    """A cooperative launch: a thread for each item, but no more blocks than the device holds at
    once (one at least), so that the kernel may wait for all of them. `shared`: dynamic bytes."""
    most = resident_blocks(file, name, block, shared, options)
    kernel = compiled(file, name, options, cooperative=True)
    start(name, kernel, min(most, blocks_for(items, block)), block, args, shared)


def start(
    name: str, kernel: Any, blocks: int, block: int, args: tuple[Any, ...], shared: int = 0
) -> None:
    """Launch `kernel`, which is the one called `name`."""
    kernel((blocks,), (block,), args, shared_mem=shared)


def compiled(file: str, name: str, options: Options = (), cooperative: bool = False) -> Any:
    """The kernel `name` of a file for the current device: a cupy.RawKernel."""
    return _compiled(cupy.cuda.runtime.getDevice(), file, name, options, cooperative)


@lru_cache(maxsize=256)
def _compiled(device: int, file: str, name: str, options: Options, cooperative: bool) -> Any:
    code, all_options = given(file, options)
    module = cupy.RawModule(
        code=code,
        options=all_options,
        name_expressions=(name,) if "<" in name else None,
        enable_cooperative_groups=cooperative,
    )
    return module.get_function(name)


def blocks_for(items: int, block: int = BLOCK) -> int:
    """Blocks of so many threads that give every item one."""
    return max(1, -(-items // block))


def resident_blocks(
    file: str, name: str, block: int = BLOCK, shared: int = 0, options: Options = ()
) -> int:
    """How many blocks of a cooperative kernel the current device holds at once."""
    device = cupy.cuda.runtime.getDevice()
    return _resident_blocks(device, file, name, block, shared, options)


@lru_cache(maxsize=256)
def _resident_blocks(
    device: int, file: str, name: str, block: int, shared: int, options: Options
) -> int:
    kernel = _compiled(device, file, name, options, True)
    if shared > 48 << 10:
        kernel.max_dynamic_shared_size_bytes = shared
    per_sm = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
        kernel.kernel.ptr, block, shared
    )
    return int(per_sm) * int(cupy.cuda.Device(device).attributes["MultiProcessorCount"])
