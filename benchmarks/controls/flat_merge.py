"""Control: every edge in one flat sorted array; a batch is sorted and merged into a second one.

The kernels and how they go about it are in flat_merge.cu. A batch costs a copy to the
device, a sort, and four launches; no word goes back to the host, which knows only an upper bound on
the number of edges until it asks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..device import blocks_for, module
from .packed import Packed, Staging
from .radix_sort import Sorter

COUNTED = 1024  # sorted_batch.cuh
THREADS = 256  # flat_merge.cu
ITEMS = {False: 16, True: 8}  # about 140 bytes in flight per thread
NULL = np.uint64(0)  # a kernel's pointer to a column that is not kept


class FlatMerge:
    """A set of keys, each with a float32 weight and an int64 time if `columns` is True."""

    def __init__(self, columns: bool, vertices: int = 1 << 32) -> None:
        import cupy

        self.columns = columns
        self.tile = THREADS * ITEMS[columns]
        kernels = module("controls/flat_merge", COLUMNS=int(columns), ITEMS=ITEMS[columns])
        names = ("locate", "sum_counts", "merge")
        self._locate, self._sum, self._merge = map(kernels.get_function, names)
        self._staging, self._sorter = Staging(columns), Sorter(columns, vertices)
        self._sizes = cupy.zeros(2, cupy.uint64)  # edges in either buffer
        self._now = 0  # the buffer that holds the edges
        self._most = 0  # at least as many edges as there are
        self._buffers = [self._room(0), self._room(0)]
        self._scratch_rows = self._scratch_tiles = -1

    def load(self, keys: Any, room: int) -> None:
        """Start from these sorted keys, weights 1 and times 0, with room for `room` edges."""
        import cupy

        self._buffers = [self._room(max(room, len(keys))) for _ in range(2)]
        self._now, self._most = 0, len(keys)
        self._sizes[0] = len(keys)
        stored, weights, times = self._buffers[0]
        stored[: len(keys)] = keys
        if self.columns:
            weights[: len(keys)] = cupy.float32(1)
            times[: len(keys)] = 0

    def insert(self, batch: Packed) -> None:
        self._apply(batch, deleting=False)

    def delete(self, batch: Packed) -> None:
        self._apply(batch, deleting=True)

    def _apply(self, batch: Packed, deleting: bool) -> None:
        keys, weights, times = self._staging.receive(batch)
        keys, order = self._sorter.sort(keys)
        if not self.columns:
            order = weights = times = NULL
        self.merge_sorted(keys, order, weights, times, deleting)

    def merge_sorted(
        self, keys: Any, order: Any, weights: Any, times: Any, deleting: bool = False
    ) -> None:
        """Merge (or remove) sorted `keys`; row j has weights[order[j]] and times[order[j]]."""
        k = len(keys)
        if not k:
            return
        tiles = blocks_for(self._most, self.tile)
        self._reserve(k, tiles, 0 if deleting else k)
        here, there = self._now, 1 - self._now
        size, new_size = self._sizes[here:], self._sizes[there:]
        place, counted, blocks, row_weight, row_time, tile_row = self._scratch
        stored, target = self._buffers[here], self._buffers[there]
        k_, deleting_, tiles_ = np.uint32(k), np.int32(deleting), np.uint32(tiles)
        row_blocks = blocks_for(k + 1, COUNTED)
        self._locate(
            (row_blocks + blocks_for(tiles + 1, COUNTED),), (COUNTED,),
            (stored[0], size, keys, order, weights, times, k_, deleting_, np.uint32(row_blocks),
             tiles_, place, counted, blocks, row_weight, row_time, tile_row),
        )  # fmt: skip
        self._sum((1,), (COUNTED,), (blocks, np.uint32(row_blocks), size, new_size, k_, deleting_))
        self._merge(
            (tiles + (0 if deleting else blocks_for(k, THREADS)) or 1,), (THREADS,),
            (*stored, size, keys, row_weight, row_time, place, counted, blocks, tile_row, k_,
             deleting_, tiles_, *target),
        )  # fmt: skip
        self._now = there
        self._most += 0 if deleting else k

    def _room(self, edges: int) -> tuple[Any, Any, Any]:
        """Columns for this many edges, in whole tiles."""
        import cupy

        edges = blocks_for(edges, self.tile) * self.tile
        keys = cupy.empty(edges, cupy.uint64)
        if not self.columns:
            return keys, NULL, NULL
        return keys, cupy.empty(edges, cupy.float32), cupy.empty(edges, cupy.int64)

    def _reserve(self, k: int, tiles: int, added: int) -> None:
        """Scratch for a batch, and room in the buffer to be written."""
        import cupy

        there = 1 - self._now
        if len(self._buffers[there][0]) < self._most + added:
            self._buffers[there] = self._room(5 * (self._most + added) // 4)
        if self._scratch_rows >= k and self._scratch_tiles >= tiles:
            return
        self._scratch_rows, self._scratch_tiles = k, 5 * tiles // 4
        rows = k + 1
        columns = (
            (cupy.empty(rows, cupy.float32), cupy.empty(rows, cupy.int64))
            if self.columns
            else (NULL, NULL)
        )
        self._scratch = (
            cupy.empty(rows, cupy.uint32),
            cupy.empty(rows, cupy.uint32),
            cupy.empty(blocks_for(rows, COUNTED), cupy.uint32),
            *columns,
            cupy.empty(self._scratch_tiles + 1, cupy.uint32),
        )

    def __len__(self) -> int:
        """The number of edges. Waits for the device."""
        self._most = int(self._sizes[self._now])
        return self._most

    def contents(self) -> tuple[Any, Any, Any]:
        """(keys, weights, times), sorted by key; views of the buffer in use."""
        n = len(self)
        keys, weights, times = self._buffers[self._now]
        return keys[:n], weights[:n] if self.columns else None, times[:n] if self.columns else None
