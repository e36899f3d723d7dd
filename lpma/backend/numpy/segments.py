"""A leveled store as one sorted array, cut into segments by numbers.

Idea: read in rank order, the segments are one sorted array. So the filled slots are kept as that,
spread evenly: which of them each segment holds follows from their number. To insert and delete,
the array is merged with the batch and written anew. That is linear in the store, but one pass of
NumPy's.

Segments, their fences and the gaps between them exist only where a property is asked for them.

Invariant: columns are never written once they are in a store, so shapes may share them.
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


@dataclass(frozen=True)
class Segments:
    """See values.py."""

    segment_size: int
    size: Size
    slots: Slots

    @property
    def m(self) -> int:
        return self.size.m

    @property
    def room(self) -> int:
        return self.segment_size << self.m

    @property
    def starts(self) -> Array:
        """int64[2^m + 1]: the first slot of each rank, and the number of slots."""
        starts: Array = np.arange(self.size.segments + 1) * self.num_slots >> self.m
        return starts

    @property
    def num_slots(self) -> int:
        return len(self.slots.keys)

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in self.slots if c is not None)

    @cached_property
    def counts(self) -> Array:
        """int64[2^(m+1)] by window. There is no window 0."""
        layers = [np.diff(self.starts)]
        while len(layers[-1]) > 1:
            layers.append(layers[-1][::2] + layers[-1][1::2])
        return np.concatenate([np.zeros(1, np.int64), *layers[::-1]])

    @property
    def fences(self) -> Array:
        keys, ranks = self.slots.keys, self.size.segments
        fence = keys[self.starts[:-1]] if len(keys) else np.full(ranks, LAST_FENCE)
        fence[0] = 0
        return np.concatenate([fence[ranks] for ranks in self._ranks_by_level()])

    @property
    def keys(self) -> list[Array]:
        return self._levels(self.slots.keys)

    @property
    def weights(self) -> list[Array] | None:
        return None if self.slots.weights is None else self._levels(self.slots.weights)

    @property
    def times(self) -> list[Array] | None:
        return None if self.slots.times is None else self._levels(self.slots.times)

    def _ranks_by_level(self) -> list[slice]:
        """See layout.py: level x holds the odd multiples of 2^(m - x)."""
        steps = [1 << (self.m - x) for x in range(1, self.m + 1)]
        return [slice(0, 1), *(slice(step, None, 2 * step) for step in steps)]

    def _levels(self, column: Array) -> list[Array]:
        """A column with its gaps, by level."""
        by_rank = np.zeros((self.size.segments, self.segment_size), column.dtype)
        by_rank[np.arange(self.segment_size) < np.diff(self.starts)[:, np.newaxis]] = column
        return [by_place(by_rank[ranks]).ravel() for ranks in self._ranks_by_level()]
