"""Buffers that live for one batch, kept for the next, because fresh memory costs page faults.

Each is one block of memory cut into columns, whose addresses follow from the block's; so a
kernel's record of a batch costs a few additions. Every use overwrites the last.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...rebalance import PLAN_COLUMNS
from . import allocate
from .rows import Leaves, Rows
from .segments import Segments, address

Array = npt.NDArray[Any]
SlotAddress = tuple[int, int, int, int]


class Block:
    """`columns` of the given widths (bytes an entry), with room for as many entries as were
    ever asked for. Columns begin at multiples of 64 bytes."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        self.widths = widths
        self.capacity = 0
        self.addresses = [0] * len(widths)
        self._memory = np.empty(0, np.uint8)
        self._starts = [0] * len(widths)

    @property
    def nbytes(self) -> int:
        return self._memory.nbytes

    def reserve(self, n: int) -> None:
        """Make room for n entries. What was there is lost. Raises MemoryError."""
        if n <= self.capacity:
            return
        capacity = (n + n // 16 + 63) // 64 * 64
        ends = np.cumsum([width * capacity for width in self.widths]).tolist()
        memory = allocate.empty(ends[-1], np.uint8)
        base = address(memory)
        self._memory, self.capacity = memory, capacity
        self._starts = [0, *ends[:-1]]
        self.addresses = [base + start for start in self._starts]

    def column(self, i: int, n: int, dtype: npt.DTypeLike) -> Array:
        """The first n entries of column i."""
        start = self._starts[i]
        return self._memory[start : start + n * self.widths[i]].view(dtype)


class Workspace:
    """The buffers of one store."""

    KEYS, PLACES, SPARE_KEYS, SPARE_PLACES, ACTION, POSITION, WEIGHT, TIME = range(8)

    def __init__(self) -> None:
        self.release()

    def release(self) -> None:
        """Give all memory back."""
        self.rows = Block((8, 4, 8, 4, 1, 2, 8, 8))
        self.leaves = Block((8, 8, 8, 8, 8))
        self.runs = Block((8, 8))
        self.around = Block((8,))
        self.plan = Block((8,) * PLAN_COLUMNS)
        self.slots: dict[str, Block] = {}

    @property
    def nbytes(self) -> int:
        blocks = [self.rows, self.leaves, self.runs, self.around, self.plan, *self.slots.values()]
        return sum(block.nbytes for block in blocks)

    def row_columns(self, n: int) -> tuple[Array, Array, Array, Array]:
        """(keys, places, spare keys, spare places) of n rows, not written yet."""
        self.rows.reserve(n)
        column = self.rows.column
        return (
            column(self.KEYS, n, np.uint64),
            column(self.PLACES, n, np.uint32),
            column(self.SPARE_KEYS, n, np.uint64),
            column(self.SPARE_PLACES, n, np.uint32),
        )

    def row_view(self, n: int, in_spare: bool) -> Rows:
        """n rows by address; `in_spare` says which of the two pairs holds the sorted keys."""
        a = self.rows.addresses
        first = self.SPARE_KEYS if in_spare else self.KEYS
        return Rows(n, a[first], a[first + 1], *a[self.ACTION :])

    def leaf_view(self, n: int) -> Leaves:
        """Room for n touched leaves, by address."""
        self.leaves.reserve(n)
        return Leaves(n, *self.leaves.addresses)

    def leaf_columns(self, n: int) -> list[Array]:
        """The first n touched leaves: rank, lo, hi, delta, flags."""
        return [self.leaves.column(i, n, np.int64) for i in range(5)]

    def plan_space(self, n: int) -> list[Array]:
        """Columns for planning n touched leaves: see rebalance.PLAN_COLUMNS."""
        self.plan.reserve(n + 1)
        return [self.plan.column(i, n + 1, np.int64) for i in range(PLAN_COLUMNS)]

    def slot_buffer(self, segments: Segments, name: str, slots: int) -> SlotAddress:
        """A buffer of `slots` slots with the store's columns, as a slot address."""
        view = segments.view
        block = self.slots.get(name)
        if block is None:
            block = self.slots[name] = Block((8, view.weight_bytes, view.time_bytes, 4))
        block.reserve(slots)
        a, b, c, d = block.addresses
        return a, b, c, d
