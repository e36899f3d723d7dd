"""The kernels of a store: those of updates with the grid that each gets, and launching what reads.

When the first store of a shape is made, all of them begin to load side by side. The first launch of
an update waits for the update kernels and finds out their grids: from then on no batch waits for a
compiler, or fails halfway because the device has no room for code.

Updates are launched cooperatively, with no more blocks than the device holds at once: all of them
walk their work in strides, and most have barriers over the grid.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy

from ....cuda import driver, launch, modules
from ....cuda.modules import Kernel
from ....cuda.sources import Options
from ..store.segments import Segments
from .options import ANY_SHAPE, THREADS, options_for, source

WARPS = THREADS // 32
FILES = {  # those first that take long to compile
    "apply_batch": "apply",
    "move_windows": "windows",
    "even_out": "windows",
    "locate": "locate",
    "sort_batch": "sort",
    "decide": "plan",
    "plan_batch": "plan",
    "shift_ranks": "plan",
    "rebuild": "rebuild",
    "spread": "rebuild",
    "grow_tree": "rebuild",
    "move_leaves": "leaves",
    "shrink": "shrink",
}
# Files of kernels that read, or that update one edge.
BESIDE = ["query", "one", "neighbors", "beside", "hops", "export", "scan", "ages", "views"]
MERGING_BYTES = 12 * 2 * THREADS  # rank.cuh: Merging

# Blocks that sort are large, because blocks read each other's counts: a few rows per thread cost
# less than more blocks (sort.cu).
SORT_THREADS = 1024
# (threads per block, rows worth a block), if they are not both THREADS
BLOCKS = {"sort_batch": (SORT_THREADS, 2 * SORT_THREADS)}
SORT_BYTES = 8 * SORT_THREADS * 12  # sort.cu: Pool


def block_slots(segment_size: int) -> int:
    """windows.cuh: the largest window that a block moves by itself, staged in shared memory."""
    return 2 * segment_size if segment_size > 512 else 1024


def shared_bytes(segment_size: int, weight_bytes: int, times: bool) -> dict[str, int]:
    """The dynamic shared memory of a block, of each kernel that has some."""
    slots = block_slots(segment_size)
    stage = slots * (8 + 8 * times + weight_bytes) + slots // segment_size * 8
    leaves = 8 if segment_size <= 32 else max(1, 256 // segment_size)
    at_once = 16 if segment_size <= 32 else leaves

    def marks(leaves: int) -> int:  # leaves.cuh: Leaves
        return 4 * WARPS * (leaves + 1 + leaves * (segment_size + 1))

    stretch = 32 if segment_size <= 32 else max(2, 1024 // segment_size)  # rebuild.cu
    return {
        "apply_batch": max(stage, marks(at_once), MERGING_BYTES),  # one step after the other
        "move_leaves": marks(leaves),
        "move_windows": stage,
        "even_out": stage,
        "rebuild": WARPS * stretch * (16 + 4 * segment_size),
        "sort_batch": SORT_BYTES,
    }


class Kernels:
    """The kernels for stores of one segment size, weight type and choice of times; on one
    device."""

    def __init__(self, segment_size: int, weight_bytes: int, times: bool) -> None:
        self._shape = (segment_size, weight_bytes, times)
        # Each kernel with the most blocks it may have, and its dynamic shared bytes.
        self._loaded: dict[str, tuple[Any, int, int]] = {}
        self.block_slots = block_slots(segment_size)
        self._shared_bytes = shared_bytes(*self._shape)
        stems = dict.fromkeys((*FILES.values(), *BESIDE))
        modules.begin(self._module(stem) for stem in stems)

    def _module(self, stem: str) -> tuple[str, Options]:
        """The file and the options of its kernels."""
        return source(stem), options_for(*(ANY_SHAPE if stem.startswith("sort") else self._shape))

    def _load(self, name: str) -> tuple[Any, int, int]:
        """Wait for a kernel to be loaded, and see how it fits the device."""
        shared, (block, _) = self._shared_bytes.get(name, 0), BLOCKS.get(name, (THREADS, THREADS))
        file, options = self._module(FILES[name])
        most = launch.resident_blocks(file, name, block, shared, options)
        return launch.compiled(file, name, options, cooperative=True), most, shared

    def launch(self, name: str, threads: int, args: tuple[Any, ...] | launch.Packed) -> None:
        """Run a kernel with about `threads` threads, on the current stream; `Packed` arguments have
        one of their own."""
        if not self._loaded:
            driver.compiled.is_ready()  # by the time that batches follow each other
            self._loaded = {known: self._load(known) for known in FILES}
        kernel, most, shared = self._loaded[name]
        block, items = BLOCKS.get(name, (THREADS, THREADS))
        blocks = min(most, max(1, -(-threads // items)))
        launch.start(name, kernel, blocks, block, args, shared)


@lru_cache(maxsize=64)
def kernels_of(device: int, segment_size: int, weight_bytes: int, times: bool) -> Kernels:
    """The kernels for a device, the current one, and a shape; made once."""
    return Kernels(segment_size, weight_bytes, times)


def launch_on(
    segments: Segments, stem: str, name: str, threads: int, *args: Any, block: int = THREADS
) -> None:
    """Launch about `threads` threads of a kernel; nothing if there are none."""
    if threads > 0:
        kernel = _loaded(cupy.cuda.runtime.getDevice(), stem, name, segments.options)
        launch.start(name, kernel, -(-threads // block), block, args)


@lru_cache(maxsize=1024)
def _loaded(device: int, stem: str, name: str, options: Options) -> Kernel:
    """A kernel for the current device, which is given."""
    return launch.compiled(source(stem), name, options)
