"""Control: a packed-memory array in one piece, in GPMA+'s manner; inserts only.

The kernels and how they go about it are in cuda/contiguous_pma.cu. Segments, density bounds and
hence the moments of expansion are those of lpma's store; what differs is that the array is doubled,
and everything spread anew, whereas lpma appends a level.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.pma.density import bounds

from .device import blocks_for, module
from .flat_merge import COUNTED, THREADS
from .packed import Packed, Staging
from .sort import Sorter

SEGMENT = 32
WARPS = THREADS // 32
WINDOW_BYTES = 24  # contiguous_pma.cu
_NAMES = ("settle", "sum_counts", "keep_new", "choose_windows", "list_windows", "gather",
          "spread", "rebalance_all", "count_all")  # fmt: skip


class ContiguousPma:
    """A set of keys, each with a float32 weight and an int64 time."""

    def __init__(self, vertices: int = 1 << 32) -> None:
        import cupy

        kernels = module("contiguous_pma")
        self._run = {name: kernels.get_function(name) for name in _NAMES}
        self._staging, self._sorter = Staging(True), Sorter(True, vertices)
        self._added = cupy.zeros(1, cupy.uint64)
        self._persistent = 8 * cupy.cuda.Device().attributes["MultiProcessorCount"]
        self.num_edges = 0
        self._become(self._columns(SEGMENT), 0)

    @property
    def segments(self) -> int:
        return 1 << self.m

    def load(self, keys: Any) -> None:
        """Start from these sorted keys, weights 1 and times 0, in the fewest segments."""
        import cupy

        m = 0
        while len(keys) > self._most(m):
            m += 1
        rank, segments = cupy.arange(len(keys), dtype=cupy.int64), 1 << m
        each, longer = divmod(len(keys), segments)
        short = rank - longer * (each + 1)
        slot = cupy.where(
            short < 0,
            rank // (each + 1) * SEGMENT + rank % (each + 1),
            (longer + short // max(each, 1)) * SEGMENT + short % max(each, 1),
        )
        columns = self._columns(SEGMENT << m)
        columns[0][slot] = keys
        columns[1][slot] = cupy.float32(1)
        columns[2][slot] = 0
        self._become(columns, len(keys))

    def insert(self, batch: Packed) -> None:
        import cupy

        keys, weights, times = self._staging.receive(batch)
        keys, order = self._sorter.sort(keys)
        k = len(keys)
        if not k:
            return
        rows = self._settle(keys, order, weights, times)
        added = len(rows[0])
        if not added:
            return
        cupy.cumsum(self._counts, dtype=cupy.uint32, out=self._prefix[1:])
        if self.num_edges + added <= self._most(self.m):
            self._rebalance(rows)
            self.num_edges += added
        else:
            self._double(rows)

    @staticmethod
    def _most(m: int) -> int:
        return int(bounds(m, SEGMENT)[0][m])

    def _columns(self, slots: int) -> tuple[Any, Any, Any]:
        import cupy

        return (
            cupy.empty(slots, cupy.uint64),
            cupy.empty(slots, cupy.float32),
            cupy.empty(slots, cupy.int64),
        )

    def _become(self, columns: tuple[Any, Any, Any], edges: int) -> None:
        """Make these slots, over which `edges` edges are spread evenly, the array from now on."""
        import cupy

        segments = len(columns[0]) // SEGMENT
        self.slots, self.num_edges = columns, edges
        self.m = segments.bit_length() - 1
        self._counts = cupy.empty(segments, cupy.uint32)
        self._fences = cupy.empty(segments, cupy.uint64)
        self._prefix = cupy.zeros(segments + 1, cupy.uint32)
        self._run["count_all"](
            (blocks_for(segments, THREADS),), (THREADS,),
            (columns[0], np.uint64(edges), np.uint32(segments), self._counts, self._fences),
        )  # fmt: skip
        self._bounds = cupy.asarray(bounds(self.m, SEGMENT)[0])
        self._marks, self._stamp = cupy.zeros(2 * segments, cupy.uint32), 0
        self._work = cupy.empty(segments, cupy.uint32)
        self._scratch = self._columns(0)

    def _settle(self, keys: Any, order: Any, weights: Any, times: Any) -> tuple[Any, ...]:
        """Update known keys in place. Returns the (keys, weights, times, segments) of the new
        ones."""
        import cupy

        k = len(keys)
        k_ = np.uint32(k)
        leaf, old = (cupy.empty(k + 1, cupy.uint32) for _ in range(2))
        row_weight, row_time = cupy.empty(k, cupy.float32), cupy.empty(k, cupy.int64)
        row_blocks = blocks_for(k + 1, COUNTED)
        blocks = cupy.empty(row_blocks, cupy.uint32)
        self._run["settle"](
            (row_blocks,), (COUNTED,),
            (*self.slots, self._fences, self._counts, np.uint32(self.segments), keys, order,
             weights, times, k_, leaf, old, blocks, row_weight, row_time),
        )  # fmt: skip
        self._run["sum_counts"]((1,), (COUNTED,), (blocks, np.uint32(row_blocks), k_, self._added))
        rows = (*self._columns(k), cupy.empty(k, cupy.uint32))
        self._run["keep_new"](
            (blocks_for(k, THREADS),), (THREADS,),
            (keys, row_weight, row_time, leaf, old, blocks, k_, *rows),
        )  # fmt: skip
        added = int(self._added[0])  # the one word that goes back to the host
        return tuple(column[:added] for column in rows)

    def _rebalance(self, rows: tuple[Any, ...]) -> None:
        """Merge the new rows into the lowest windows that have room for them."""
        import cupy

        leaf, n = rows[3], len(rows[0])
        self._stamp += 1
        stamp, m, n_ = np.uint32(self._stamp), np.int32(self.m), np.uint32(n)
        layer, listed = cupy.empty(n, cupy.uint8), cupy.zeros(1, cupy.uint64)
        windows = cupy.empty(n * WINDOW_BYTES, cupy.uint8)
        grid = (blocks_for(n, THREADS),)
        self._run["choose_windows"](
            grid, (THREADS,),
            (leaf, n_, self._prefix, self._bounds, m, self._marks, stamp, layer),
        )  # fmt: skip
        self._run["list_windows"](
            grid, (THREADS,),
            (leaf, n_, self._prefix, m, self._marks, stamp, layer, listed, windows, self._work),
        )  # fmt: skip
        if len(self._scratch[0]) < self.num_edges + n:
            self._scratch = self._columns(SEGMENT * self.segments)
        persistent = (self._persistent,)
        self._run["gather"](
            persistent, (THREADS,),
            (*self.slots, self._counts, self._prefix, *rows, listed, windows, self._work,
             *self._scratch),
        )  # fmt: skip
        self._run["spread"](
            persistent, (THREADS,),
            (*self._scratch, self._prefix, listed, windows, self._work,
             np.uint32(self.segments), *self.slots, self._counts, self._fences),
        )  # fmt: skip

    def _double(self, rows: tuple[Any, ...]) -> None:
        """The global rebalance: a new array of twice the size (or more), everything spread."""
        n, edges = len(rows[0]), self.num_edges + len(rows[0])
        m = self.m + 1
        while edges > self._most(m):
            m += 1
        columns = self._columns(SEGMENT << m)
        self._run["rebalance_all"](
            (blocks_for(self.segments, 32 * WARPS),), (THREADS,),
            (*self.slots, self._counts, self._prefix, np.uint32(self.segments), *rows,
             np.uint32(n), np.uint64(edges), np.uint64(1 << m), *columns),
        )  # fmt: skip
        self._become(columns, edges)

    def contents(self) -> tuple[Any, Any, Any]:
        """(keys, weights, times), sorted by key, copied out."""
        import cupy

        filled = cupy.arange(SEGMENT)[None, :] < self._counts[:, None]
        keys, weights, times = (c.reshape(-1, SEGMENT)[filled] for c in self.slots)
        return keys, weights, times
