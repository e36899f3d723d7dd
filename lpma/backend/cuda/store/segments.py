"""The arrays of one store on a CUDA device, and the record of them that kernels get.

As on the CPU (backend/numba/segments.py) a `Segments` is one shape of the store; expanding makes
a new one that shares every level. Levels are separate allocations of CuPy's pool: nothing already
there is copied when one is added. A large level is an address range that gets its memory part by
part (virtual_memory.py).

Requires: at most MAX_SLOTS slots a store (2^31), since kernels count in 32 bits: with segments of
32 slots m <= 26, and up to 1.93 billion keys (0.9 of the slots; an undirected edge has two). The
host asks `most_levels` before it makes a store larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cupy
import numpy as np

from ....cuda.driver import Array
from ....cuda.sources import Options
from ....pma.layout import NOTHING, PARTS, Size, level_slots
from ..launch.options import options_for
from .virtual_memory import held_bytes, level_column

LEVELS = 34  # store.cuh
GROUP_SLOTS = 512  # tiles.cuh

STORE = np.dtype(
    [
        ("m", "<i4"),
        ("parts", "<i4"),
        ("keys", "<u8", LEVELS),
        ("weights", "<u8", LEVELS),
        ("times", "<u8", LEVELS),
        ("fences", "<u8"),
        ("counts", "<u8"),
    ]
)


@dataclass
class Segments:
    """Level x holds `keys[x]`, `weights[x]` … of 1 segment (x = 0) or 2^(x-1) segments."""

    segment_size: int
    keys: list[Array]  # uint64
    weights: list[Array] | None  # float32 or float64
    times: list[Array] | None  # int64
    fences: Array  # uint64[2^m] by heap number
    counts: Array  # uint32[2^(m+1)] by window
    num_slots: int  # filled; the host's copy of counts[1]
    parts: int = PARTS  # of the last level, which are there

    @property
    def m(self) -> int:
        return len(self.keys) - 1

    @cached_property
    def size(self) -> Size:
        return Size(self.m, self.parts)

    @cached_property
    def room(self) -> int:
        return self.segment_size * self.size.segments

    @cached_property
    def shape(self) -> tuple[int, int, bool]:
        """(segment size, bytes a weight, times?): what kernels are compiled for."""
        weight_bytes = self.weights[0].dtype.itemsize if self.weights else 0
        return self.segment_size, int(weight_bytes), self.times is not None

    @cached_property
    def value_dtypes(self) -> tuple[Any, Any]:
        """The dtypes of weights and times; None where the store keeps none."""
        weight = self.weights[0].dtype if self.weights else None
        return weight, None if self.times is None else np.dtype(np.int64)

    @cached_property
    def groups(self) -> int:
        """Of segments, one per warp: see tiles.cuh."""
        each = min(32, max(1, GROUP_SLOTS // self.segment_size))
        return -(-(1 << self.m) // each)

    @cached_property
    def options(self) -> Options:
        """The compiler's, for that."""
        return options_for(*self.shape)

    @property
    def columns(self) -> dict[str, list[Array]]:
        """The columns that there are, each with its levels."""
        columns = {"keys": self.keys, "weights": self.weights, "times": self.times}
        return {name: levels for name, levels in columns.items() if levels is not None}

    @property
    def nbytes(self) -> int:
        levels = 0
        for *whole, last in self.columns.values():
            levels += held_bytes(last) + sum([array.nbytes for array in whole])
        return int(levels + self.fences.nbytes + self.counts.nbytes)

    @cached_property
    def record(self) -> Any:
        """The Store of store.cuh, passed to kernels by value. Holds addresses only."""
        record = np.zeros((), STORE)
        record["m"], record["parts"] = self.m, self.parts
        for name in ("keys", "weights", "times"):
            levels = getattr(self, name) or []
            record[name][: len(levels)] = [array.data.ptr for array in levels]
        record["fences"] = self.fences.data.ptr
        record["counts"] = self.counts.data.ptr
        return as_argument(record)


def as_argument(record: Any) -> Any:
    """A record as one opaque value, sharing memory: CuPy describes a structure's fields anew at
    every launch, which costs more than the launch."""
    return record.reshape(1).view(f"V{record.nbytes}")


def empty_segments(
    segment_size: int, weight_dtype: np.dtype[Any] | None, times: bool, size: Size = NOTHING
) -> Segments:
    """Segments with nothing in them; fences yet to be written where m > 0. Raises MemoryError."""
    m, slots = size.m, [level_slots(level, segment_size) for level in range(size.m + 1)]

    def column(dtype: Any) -> list[Array]:
        last = level_column(slots[m], dtype, size.parts)
        return [*(cupy.empty(n, dtype) for n in slots[:m]), last]

    return Segments(
        segment_size,
        column(np.uint64),
        None if weight_dtype is None else column(weight_dtype),
        column(np.int64) if times else None,
        cupy.zeros(1 << m, cupy.uint64),
        cupy.zeros(2 << m, cupy.uint32),
        0,
        size.parts,
    )
