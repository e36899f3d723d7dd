"""Sorting a batch for the controls: one cooperative launch (radix_sort.cu)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..device import blocks_for, module

THREADS = 256  # radix_sort.cu
DIGIT_BITS = 8
ROWS_PER_BLOCK = 512


class Sorter:
    """A stable sort over the bits in use by ids below `vertices`; its results are valid until the
    next call."""

    def __init__(self, order: bool, vertices: int = 1 << 32) -> None:
        import cupy

        self.order = order
        self._kernel = module(
            "controls/radix_sort", cooperative=True, ORDER=int(order)
        ).get_function("radix_sort")
        self._most_blocks = 2 * cupy.cuda.Device().attributes["MultiProcessorCount"]
        self._histogram = cupy.empty((1 + self._most_blocks) << DIGIT_BITS, cupy.uint32)
        self._id_bits = max(1, (vertices - 1).bit_length())
        self._reserve(0)

    def _reserve(self, rows: int) -> None:
        import cupy

        self._words = [cupy.empty(rows, cupy.uint64) for _ in range(2)]
        self._orders = [cupy.empty(rows if self.order else 0, cupy.int64) for _ in range(2)]

    def sort(self, keys: Any) -> tuple[Any, Any]:
        """(the sorted keys, the place each came from: int64, None without `order`)."""
        n = len(keys)
        if len(self._words[0]) < n:
            self._reserve(n)
        grid = max(1, min(blocks_for(n, ROWS_PER_BLOCK), self._most_blocks))
        bits = 2 * self._id_bits
        self._kernel(
            (grid,), (THREADS,),
            (keys, np.uint32(n), np.uint32(self._id_bits), np.uint32(bits), *self._words,
             *self._orders, self._histogram),
        )  # fmt: skip
        last = blocks_for(bits, DIGIT_BITS) % 2
        return self._words[last][:n], self._orders[last][:n] if self.order else None
