"""Buffers that live for one batch, kept for the next, because fresh memory costs page faults.

Each is one block of memory cut into columns, whose addresses follow from the block's; so a
kernel's record of a batch costs a few additions. Every use overwrites the last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import Array, address
from . import allocate
from .addressing import Slot
from .batch_view import LEAF_COLUMNS, Rows
from .fused import REPORTED
from .rebalance import MAX_ROUNDS, PLAN_COLUMNS
from .segments import Segments

FIRST = "thread 0"  # the buffer that a small batch is moved with


class Block:
    """Columns of the given dtypes, with room for the largest number of entries requested so far;
    each begins at a multiple of 64 bytes. A dtype of None is a column that is off."""

    def __init__(self, *dtypes: Any) -> None:
        self.dtypes = [None if dtype is None else np.dtype(dtype) for dtype in dtypes]
        self.capacity = 0
        self.addresses = [0] * len(dtypes)
        self.columns = [np.empty(0, dtype) for dtype in self.dtypes]
        self.nbytes = 0
        # The columns as one array, where they have one dtype: [columns, capacity].
        self.grid = np.empty((len(dtypes), 0), self.dtypes[0])

    def reserve(self, n: int) -> None:
        """Make room for n entries. What was there is lost. Raises MemoryError."""
        if n <= self.capacity:
            return
        capacity = (n + n // 32 + 63) // 64 * 64
        widths = [0 if dtype is None else dtype.itemsize for dtype in self.dtypes]
        ends = np.cumsum([width * capacity for width in widths]).tolist()
        memory = allocate.empty(ends[-1], np.uint8)
        base, starts, grid = address(memory), [0, *ends[:-1]], self.grid
        if len(set(self.dtypes)) == 1:
            grid = memory.view(self.dtypes[0]).reshape(len(widths), capacity)
        addresses = [base + start for start in starts]
        columns = [
            memory[start:end].view(np.uint8 if dtype is None else dtype)
            for start, end, dtype in zip(starts, ends, self.dtypes, strict=True)
        ]
        # All at once: if an exception came between two of these, addresses would outlive their
        # memory.
        self.__dict__.update(
            capacity=capacity, nbytes=memory.nbytes, grid=grid, addresses=addresses, columns=columns
        )


class Workspace:
    """The buffers of one store."""

    def __init__(self) -> None:
        self.release()

    def release(self) -> None:
        self._sizes = (-1, -1, -1, -1)  # first: the table holds addresses that become invalid
        # Keys and places, spares of both, actions, positions; see batch_view.Rows.
        self.rows = Block("u8", "u4", "u8", "u4", "u1", "u2")
        self.leaves = Block(*["i4"] * LEAF_COLUMNS)
        # Of a batch beside the store: present, weights, times, change (see beside.fold_rows).
        self.states = Block("u1", "f8", "i8", "i1")
        self.plan = Block(*["i4"] * PLAN_COLUMNS)
        self.rounds = np.empty(MAX_ROUNDS, np.int64)
        self.report = np.zeros(REPORTED, np.int64)  # see fused.py
        self.slots: dict[str, Block] = {}
        self._table = self.report  # see small_table

    @property
    def nbytes(self) -> int:
        held = self.rows.nbytes + self.leaves.nbytes + self.states.nbytes
        for block in self.slots.values():
            held += block.nbytes
        return held + self.plan.nbytes

    def small_table(self, segments: Segments, n: int) -> Array:
        """What fused.py works with on n rows: the addresses of the columns of `rows`; of the leaves
        and of the plan, each with its capacity; of `rounds` and `report`; of the three columns of
        slot buffer FIRST; and the highest layer, of those that one thread moves, whose windows that
        holds."""
        rows, leaves, plan, slots = self.rows, self.leaves, self.plan, self.slots.get(FIRST)
        if not (slots and n <= rows.capacity and n <= leaves.capacity and n < plan.capacity):
            rows.reserve(n)
            leaves.reserve(n)
            plan.reserve(n + 1)
            self.slot_buffer(segments, FIRST, segments.segment_size)
            slots = self.slots[FIRST]
        sizes = rows.capacity, leaves.capacity, plan.capacity, slots.capacity
        if sizes != self._sizes:  # growing has moved it
            highest = (slots.capacity // segments.segment_size).bit_length() - 1
            self._table = np.array(
                [*rows.addresses, leaves.addresses[0], leaves.capacity, plan.addresses[0],
                 plan.capacity, address(self.rounds), address(self.report), *slots.addresses,
                 min(highest, segments.alone_layer)],
                np.int64,
            )  # fmt: skip
            self._sizes = sizes
        return self._table

    def drop(self, name: str, most: int) -> None:
        """Give back a slot buffer of more than `most` bytes."""
        block = self.slots.get(name)
        if block is not None and block.nbytes > most:
            del self.slots[name]

    def actions(self, n: int) -> Array:
        """uint8[n]: what is done for each of n rows."""
        return self.rows.columns[4][:n]

    def row_view(self, n: int, in_spare: bool) -> Rows:
        """n rows by address; `in_spare` says which of the two pairs holds the sorted keys."""
        key, place, spare_key, spare_place, *found = self.rows.addresses
        return Rows(n, *((spare_key, spare_place) if in_spare else (key, place)), *found)

    def slot_buffer(self, segments: Segments, name: str, slots: int) -> Slot:
        """A buffer of `slots` slots with the store's columns, as a slot address."""
        block = self.slots.get(name)
        if block is None:
            view = segments.view
            weight = f"f{view.weight_bytes}" if view.weight_bytes else None
            time = "i8" if view.time_bytes else None
            block = self.slots[name] = Block("u8", weight, time)
        if slots > block.capacity:
            block.reserve(slots)
        a, b, c = block.addresses
        return a, b, c
