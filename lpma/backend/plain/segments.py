"""A leveled store as one sorted array, cut into segments by numbers.

Idea: read in rank order, the segments are one sorted array. So the filled slots are kept as that,
and a segment is the range between two entries of `starts`. Moving slots from segment to segment
then changes `starts` and the fences and copies nothing; to insert and delete, the array is merged
with the batch and written anew. That is linear in the store, but one pass of NumPy's.

The gaps between segments exist only in the levels that `keys`, `weights` and `times` return, which
are made when they are asked for.

Invariants: (1) Columns, `starts` and `fence` are never written once they are in a store: a batch
puts others in their place, so shapes may share them. (2) The first fence is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...pma.layout import Size, by_place
from ..values import Array
from .slots import Slots

LAST_FENCE = np.uint64(0xFFFFFFFFFFFFFFFF)  # above every key


@dataclass
class Segments:
    """See values.py."""

    segment_size: int
    slots: Slots
    starts: Array  # int64[2^m + 1]: the first slot of each rank, and the number of slots
    fence: Array  # uint64[2^m] by rank

    def publish(self, slots: Slots, starts: Array, fence: Array) -> None:
        """Hold these from now on."""
        self.slots, self.starts, self.fence = slots, starts, fence
        self.__dict__.pop("counts", None)

    @property
    def m(self) -> int:
        return len(self.fence).bit_length() - 1

    @property
    def size(self) -> Size:
        return Size(self.m)

    @property
    def room(self) -> int:
        return self.segment_size << self.m

    @property
    def num_slots(self) -> int:
        """Filled slots: edges and markers."""
        return len(self.slots.keys)

    @property
    def nbytes(self) -> int:
        columns = [column for column in self.slots if column is not None]
        return sum(column.nbytes for column in [*columns, self.starts, self.fence])

    @cached_property
    def counts(self) -> Array:
        """int64[2^(m+1)] by window. There is no window 0."""
        by_layer = [np.diff(self.starts[:: 1 << layer]) for layer in range(self.m, -1, -1)]
        return np.concatenate([np.zeros(1, np.int64), *by_layer])

    @property
    def fences(self) -> Array:
        """uint64[2^m] by heap number."""
        return np.concatenate([self.fence[ranks] for ranks in self._ranks_by_level()])

    @property
    def keys(self) -> list[Array]:
        return self._levels(self.slots.keys)

    @property
    def weights(self) -> list[Array] | None:
        return None if self.slots.weights is None else self._levels(self.slots.weights)

    @property
    def times(self) -> list[Array] | None:
        return None if self.slots.times is None else self._levels(self.slots.times)

    def ranks(self, keys: Array) -> Array:
        """int64[n]: the segment that each key belongs to, the last whose fence is not above it."""
        return np.searchsorted(self.fence[1:], keys, "right")

    def _ranks_by_level(self) -> list[slice]:
        """See layout.py: level x holds the odd multiples of 2^(m - x)."""
        m = self.m
        odd = [slice(1 << (m - x), None, 2 << (m - x)) for x in range(1, m + 1)]
        return [slice(0, 1), *odd]

    def _levels(self, column: Array) -> list[Array]:
        """A column with its gaps, by level."""
        size = self.segment_size
        by_rank = np.zeros((len(self.fence), size), column.dtype)
        filled = np.arange(size) < np.diff(self.starts)[:, np.newaxis]
        by_rank[filled] = column
        return [by_place(by_rank[ranks]).ravel() for ranks in self._ranks_by_level()]
