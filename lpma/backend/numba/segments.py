"""The arrays of one store, and the view of them that kernels get.

A `Segments` is one shape of the store: its levels, its fences, its window counts. Expanding
makes a new one that shares every level of the old and adds fresh ones, so that the store can
plan a batch on the larger shape and publish it with a single assignment, or drop it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...arrays import Array, address
from ...pma.density import bounds
from ...pma.layout import NOTHING, Size, level_slots
from .addressing import View
from .allocate import empty, zeros

ALONE_SLOTS = 1 << 17
LAST_FENCE = np.uint64(0xFFFFFFFFFFFFFFFF)  # above every key: ids stop at 2^32 - 2


@dataclass(frozen=True)
class Segments:
    """See values.py. Level x holds `keys[x]`, `weights[x]` … of 1 segment (x = 0) or 2^(x-1)."""

    segment_size: int
    keys: list[Array]  # uint64
    weights: list[Array] | None  # float32 or float64
    times: list[Array] | None  # int64
    fences: Array  # uint64[2^m]
    counts: Array  # int64[2^(m+1)]

    # For kernels, which get addresses only: keep this object alive while one runs. Made at once,
    # since threads that made them at the same time would each free the tables of another's view.
    tables: tuple[Array, ...] = field(init=False, repr=False)  # see View
    view: View = field(init=False, repr=False)
    # The view as an array, which costs less to hand to a kernel, and after it the window bounds of
    # layers 0 … m (density.py), first the upper ones: int64[9 + 2 (m + 1)].
    record: Array = field(init=False, repr=False)
    at: int = field(init=False, repr=False)  # the address of the record

    def __post_init__(self) -> None:
        columns = (self.keys, self.weights, self.times)
        off = [0] * len(self.keys)
        tables = tuple(
            np.array([address(level) for level in levels] if levels else off, np.int64)
            for levels in columns
        )
        keys, weights, times = map(address, tables)
        weight_bytes, time_bytes = (levels[0].itemsize if levels else 0 for levels in columns[1:])
        view = View(
            self.m, self.segment_size.bit_length() - 1, weight_bytes, time_bytes, keys, weights,
            times, address(self.fences), address(self.counts),
        )  # fmt: skip
        most, least = bounds(self.m, self.segment_size)
        record = np.array([*view, *most, *least], np.int64)
        self.__dict__.update(tables=tables, view=view, record=record, at=address(record))

    @cached_property
    def m(self) -> int:
        return len(self.keys) - 1

    @cached_property
    def size(self) -> Size:
        return Size(self.m)

    @cached_property
    def room(self) -> int:
        return self.segment_size * self.size.segments

    @property
    def num_slots(self) -> int:
        return int(self.counts[1])

    @property
    def columns(self) -> dict[str, Any]:
        """The columns that the store keeps, each with its levels."""
        columns = {"keys": self.keys, "weights": self.weights, "times": self.times}
        return {name: levels for name, levels in columns.items() if levels is not None}

    @cached_property
    def nbytes(self) -> int:
        levels = sum(array.nbytes for column in self.columns.values() for array in column)
        return int(levels + self.fences.nbytes + self.counts.nbytes)

    @cached_property
    def alone_layer(self) -> int:
        """The highest layer whose windows a small batch moves on its own thread. To hand one over
        takes as long as moving tens of thousands of slots, and far longer while other programs keep
        the processors busy; in a stream whose new vertices have the largest ids, every second batch
        of 10^4 moves a window of a thousand segments."""
        return (ALONE_SLOTS // self.segment_size).bit_length() - 1


def empty_segments(
    segment_size: int, weight_dtype: np.dtype[Any] | None, times: bool, size: Size = NOTHING
) -> Segments:
    """Segments with nothing in them; fences yet to be written where m > 0. Raises MemoryError."""
    m = size.m
    slots = [level_slots(level, segment_size) for level in range(m + 1)]
    return Segments(
        segment_size,
        [empty(n, np.uint64) for n in slots],
        None if weight_dtype is None else [empty(n, weight_dtype) for n in slots],
        [empty(n, np.int64) for n in slots] if times else None,
        zeros(1 << m, np.uint64),
        zeros(2 << m, np.int64),
    )


def empty_like(segments: Segments, size: Size) -> Segments:
    """The same for another store with these columns."""
    dtype = segments.weights[0].dtype if segments.weights else None
    return empty_segments(segments.segment_size, dtype, segments.times is not None, size)


def _grow_tree(segments: Segments) -> tuple[Array, Array]:
    """(fences, counts) of a level more: old windows keep number and count; each old leaf's left
    half is its segment, its right half is new, empty and fenced by its successor."""
    old_fences, old_counts, leaves = segments.fences, segments.counts, len(segments.fences)
    fences, counts = empty(2 * leaves, np.uint64), empty(4 * leaves, np.int64)
    counts[: 2 * leaves] = old_counts
    counts[2 * leaves :: 2], counts[2 * leaves + 1 :: 2] = old_counts[leaves:], 0
    fences[:leaves], fences[-1] = old_fences, LAST_FENCE
    for z in range(segments.m):  # the odd multiples of 2^z succeed these ranks (layout.py)
        step = 1 << z
        ranks = slice(leaves + step - 1, 2 * leaves - 1, 2 * step)
        fences[ranks] = old_fences[leaves >> (z + 1) : leaves >> z]
    return fences, counts


def expanded(segments: Segments, size: Size) -> Segments:
    """The next larger size, given; no edge moves. Shares the old levels, where rank i becomes 2i
    (layout.py)."""
    slots = level_slots(size.m, segments.segment_size)
    grown: dict[str, Any] = {
        name: [*levels, empty(slots, levels[0].dtype, huge=False)]
        for name, levels in segments.columns.items()
    }
    fences, counts = _grow_tree(segments)
    return replace(segments, **grown, fences=fences, counts=counts)


def shrunk(segments: Segments) -> Segments:
    """The shape without the last level, which `shapes.shrink` empties into it. It shares the tree
    too, so that nothing is allocated: the old shape must not be used afterwards."""
    n = 1 << (segments.m - 1)
    left: dict[str, Any] = {name: levels[:-1] for name, levels in segments.columns.items()}
    return replace(segments, **left, fences=segments.fences[:n], counts=segments.counts[: 2 * n])
