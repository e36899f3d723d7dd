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
from typing import Any, NamedTuple

import numpy as np

from ...pma.layout import Size, by_place
from ..values import Array

LAST_FENCE = np.uint64(0xFFFFFFFFFFFFFFFF)  # above every key


class Slots(NamedTuple):
    """Slots by rising key. Absent columns are None."""

    keys: Array  # uint64
    weights: Array | None  # float32 or float64
    times: Array | None  # int64

    @staticmethod
    def empty(n: int, weight_dtype: np.dtype[Any] | None, times: bool) -> Slots:
        """Room for n."""
        weights = None if weight_dtype is None else np.empty(n, weight_dtype)
        return Slots(np.empty(n, np.uint64), weights, np.empty(n, np.int64) if times else None)

    def where(self, rows: Any) -> Slots:
        """Those of `rows`: indices, a mask or a slice."""
        return Slots._make(None if column is None else column[rows] for column in self)

    def find(self, keys: Array) -> tuple[Array, Array]:
        """(int64: where each key is, or would be, bool: whether it is there)."""
        at = np.searchsorted(self.keys, keys)
        inside = at < len(self.keys)
        there = np.zeros(len(keys), np.bool_)
        there[inside] = self.keys[at[inside]] == keys[inside]
        return at, there


@dataclass
class Segments:
    """See values.py."""

    segment_size: int
    slots: Slots
    starts: Array  # int64[2^m + 1]: the first slot of each rank, and the number of slots
    fence: Array  # uint64[2^m] by rank

    @staticmethod
    def spread(segment_size: int, size: Size, slots: Slots) -> Segments:
        """All segments of a size, with these slots spread evenly over them."""
        starts = np.arange(size.segments + 1) * len(slots.keys) >> size.m
        fence = slots.keys[starts[:-1]] if len(slots.keys) else np.full(size.segments, LAST_FENCE)
        fence[0] = 0
        return Segments(segment_size, slots, starts, fence)

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
        return len(self.slots.keys)

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in (*self.slots, self.starts, self.fence) if c is not None)

    @cached_property
    def counts(self) -> Array:
        """int64[2^(m+1)] by window. There is no window 0."""
        return np.concatenate([np.zeros(1, np.int64), *by_layer(np.diff(self.starts))[::-1]])

    @property
    def fences(self) -> Array:
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
        steps = [1 << (self.m - x) for x in range(1, self.m + 1)]
        return [slice(0, 1), *(slice(step, None, 2 * step) for step in steps)]

    def _levels(self, column: Array) -> list[Array]:
        """A column with its gaps, by level."""
        by_rank = np.zeros((len(self.fence), self.segment_size), column.dtype)
        by_rank[np.arange(self.segment_size) < np.diff(self.starts)[:, np.newaxis]] = column
        return [by_place(by_rank[ranks]).ravel() for ranks in self._ranks_by_level()]


def by_layer(leaves: Array) -> list[Array]:
    """The sums over the windows of each layer, from the leaves, given by rank, up to the root."""
    layers = [leaves]
    while len(layers[-1]) > 1:
        layers.append(layers[-1][::2] + layers[-1][1::2])
    return layers
