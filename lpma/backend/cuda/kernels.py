"""The update kernels of one shape of store, and how large a grid each gets.

They are launched cooperatively, with no more blocks than the device holds at once: all of them
walk their work in strides, and most have barriers over the grid.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy

from .module import THREADS, module

WARPS = THREADS // 32
FILES = {
    "sort_batch": "sort",
    "locate": "locate",
    "plan_batch": "plan",
    "withdraw_batch": "plan",
    "shift_ranks": "plan",
    "move_batch": "move",
    "merge": "rebuild",
    "fill": "rebuild",
    "grow_tree": "rebuild",
    "shrink": "shrink",
    "compact": "compact",
}
PLAN_BYTES = 8 << 13  # plan.cu: a heap of 2^(SUBTREE + 1) sums
MOST_A_SM = {"sort_batch": 3}  # blocks: fewer have more rows each, and fewer counts to scan


class Kernels:
    """For stores of one segment size, weight type and choice of times, on one device."""

    def __init__(self, segment_size: int, weight_bytes: int, times: bool) -> None:
        self._shape = (segment_size, weight_bytes, times)
        # Each kernel with the most blocks it may have, and its dynamic shared bytes.
        self._loaded: dict[str, tuple[Any, int, int]] = {}
        # move.cu: the largest window that a block moves by itself, staged in shared memory.
        self.block_slots = 2 * segment_size if segment_size > 512 else 1024
        slot_bytes = 8 + 8 * times + weight_bytes + 4
        stage = self.block_slots * slot_bytes + self.block_slots // segment_size * 8
        leaves = 8 if segment_size <= 32 else max(1, 256 // segment_size)
        marks = 4 * WARPS * (leaves + 1 + leaves * (segment_size + 1))
        self._shared_bytes = {
            "move_batch": max(stage, marks),
            "plan_batch": PLAN_BYTES,
            "withdraw_batch": PLAN_BYTES,
        }
        for name in FILES:  # now, so that no batch waits for a compiler
            self._load(name)

    def _load(self, name: str) -> None:
        """Compile a kernel, or read it from CuPy's cache, and see how it fits the device."""
        kernel = module(FILES[name], *self._shape, cooperative=True).get_function(name)
        shared = self._shared_bytes.get(name, 0)
        if shared > 48 << 10:
            kernel.max_dynamic_shared_size_bytes = shared
        per_sm = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
            kernel.kernel.ptr, THREADS, shared
        )
        most = min(int(per_sm), MOST_A_SM.get(name, 32)) * int(
            cupy.cuda.Device().attributes["MultiProcessorCount"]
        )
        self._loaded[name] = (kernel, most, shared)

    def launch(self, name: str, threads: int, args: tuple[Any, ...]) -> None:
        """Run a kernel on the current stream, with about so many threads."""
        kernel, most, shared = self._loaded[name]
        blocks = min(most, max(1, -(-threads // THREADS)))
        kernel((blocks,), (THREADS,), args, shared_mem=shared)


@lru_cache(maxsize=64)
def kernels_of(device: int, segment_size: int, weight_bytes: int, times: bool) -> Kernels:
    """Kernels are compiled and loaded once a device and shape."""
    return Kernels(segment_size, weight_bytes, times)
