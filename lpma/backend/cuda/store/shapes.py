"""Whole stores on a CUDA device: made empty or filled, grown by a level or a part of
one, spread evenly after that, shrunk by a level."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import cupy
import numpy as np

from ....cuda import driver
from ....cuda.driver import Array
from ....pma.density import window_bounds
from ....pma.layout import PARTS, Size, level_slots, parted_from
from ...values import SlotColumns, SlotSource, num_pieces
from ..launch.kernels import Kernels, kernels_of
from ..launch.options import THREADS
from ..limits import most_levels
from ..streams import Context
from . import virtual_memory
from .segments import Segments, as_argument, empty_segments
from .work import COLUMNS, Work

NO_SCRATCH = as_argument(np.zeros((), COLUMNS))


class Shapes:
    """See lpma.backend.protocol."""

    kernels: Kernels  # for this store, whose shape never changes; there once it is made

    def __init__(self, context: Context, work: Work) -> None:
        self._context, self._work = context, work
        self._bounds: dict[Size, tuple[Array, ...]] = {}  # on the host, on the device, between

    # -- what a store's kernels need besides ----------------------------------------------------

    def bounds_at(self, segments: Segments, size: Size | None = None) -> tuple[int, int]:
        """Where (most, least) of lpma.pma.density.window_bounds are on the device, for the store
        or for one like it of another size."""
        size = size or segments.size
        bounds = window_bounds(size, segments.segment_size)
        if size not in self._bounds or self._bounds[size][0] is not bounds[0]:
            self._work.revision += 1  # what is kept of the addresses of these is no good
            here = np.stack(bounds)
            there = cupy.empty(here.shape, cupy.int64)
            landing = cupy.cuda.alloc_pinned_memory(here.nbytes)
            memoryview(landing).cast("B")[: here.nbytes] = here.data.cast("B")
            driver.copy(there.data.ptr, landing.ptr, here.nbytes, self._context.stream)
            self._bounds[size] = bounds[0], there, landing  # which is kept
        at = int(self._bounds[size][1].data.ptr)
        return at, at + bounds[0].nbytes

    def scratch(self, segments: Segments, slots: int) -> Any:
        """Columns for that many slots, as kernels get them; the reserved ones, if there are any."""
        if slots == 0:
            return NO_SCRATCH
        _, weight_bytes, times = segments.shape
        return self._work.scratch(slots, weight_bytes, times)

    # -- the store ------------------------------------------------------------------------------

    def most_levels(self, segment_size: int) -> int:
        return most_levels(segment_size)

    def parted_from(self, segment_size: int) -> int:
        in_parts = virtual_memory.is_supported(self._context.number)
        return parted_from(segment_size) if in_parts else most_levels(segment_size) + 1

    def empty(self, segment_size: int, weight_dtype: np.dtype[Any] | None, times: bool) -> Segments:
        with self._context:
            return self._made(empty_segments(segment_size, weight_dtype, times))

    def _made(self, segments: Segments) -> Segments:
        """Begin to load the kernels, with the first store."""
        self.kernels = kernels_of(self._context.number, *segments.shape)
        return segments

    def build(
        self, segment_size: int, weight_dtype: np.dtype[Any] | None, times: bool, size: Size,
        slots: SlotSource,
    ) -> Segments:  # fmt: skip
        """A piece after the other, each in a launch."""
        total, n = slots.total, num_pieces(slots.total)
        with self._context:
            fresh = self._made(empty_segments(segment_size, weight_dtype, times, size))
            fresh.num_slots = total
            for first, last in pairwise(total * piece // n for piece in range(n + 1)):
                self._fill(fresh, first, last, slots.read(first, last))
            self._context.stream.synchronize()  # before the columns are freed
        return fresh

    def _fill(self, fresh: Segments, first: int, last: int, given: SlotColumns) -> None:
        """Put slots first … last - 1 in their places; the counts are written with the last."""
        held = [None if column is None else cupy.asarray(column) for column in given]
        columns = np.zeros((), COLUMNS)
        for name, array in zip(("keys", "weights", "times"), held, strict=True):
            columns[name] = 0 if array is None else array.data.ptr
        total, counts = fresh.num_slots, 2 << fresh.m if last == fresh.num_slots else 0
        self.kernels.launch(
            "spread", max(last - first, counts),
            (fresh.record, as_argument(columns), *map(np.int64, (first, last, total))),
        )  # fmt: skip

    def empty_like(self, segments: Segments, size: Size) -> Segments:
        """Fresh levels for what is to be another store of its kind. REQUIRES: the context."""
        dtype = segments.weights[0].dtype if segments.weights else None
        return empty_segments(segments.segment_size, dtype, segments.times is not None, size)

    def expand(self, segments: Segments, size: Size) -> Segments:
        """Shares the old levels, and the tree if there is a part more. Windows become small, so the
        scratch for large ones, which are of the time just before, makes room for the level."""
        m = size.m
        self._work.release_scratch()
        slots = level_slots(m, segments.segment_size)
        if m == segments.m:
            with self._context:
                for column in segments.columns.values():
                    virtual_memory.back(column[-1], size.parts)
            return replace(segments, parts=size.parts)
        with self._context:
            grown: dict[str, Any] = {
                name: [*levels, virtual_memory.level_column(slots, levels[0].dtype, size.parts)]
                for name, levels in segments.columns.items()
            }
            tree = cupy.empty(1 << m, cupy.uint64), cupy.empty(2 << m, cupy.uint32)
            fresh = replace(segments, **grown, fences=tree[0], counts=tree[1], parts=size.parts)
            self.kernels.launch(
                "grow_tree", 1 << (m - 1),
                (segments.fences, segments.counts, fresh.fences, fresh.counts, np.int32(m)),
            )  # fmt: skip
        return fresh

    def even_out(self, segments: Segments, layer: int, first: int, last: int) -> None:
        with self._context:
            self.kernels.launch(
                "even_out", THREADS * (last - first),
                (segments.record, np.int32(layer), np.uint32(first), np.uint32(last)),
            )  # fmt: skip

    def reserve_shrinking(self, segments: Segments) -> None:
        """All that shrinking needs besides scratch, however far it goes."""
        self._work.reserve_shrinking(segments.m)
        for m in range(segments.m + 1):
            self.bounds_at(segments, Size(m))

    def shrink(self, segments: Segments, most: Array) -> tuple[Segments, Array]:
        m = segments.m - 1
        left: dict[str, Any] = {name: levels[:-1] for name, levels in segments.columns.items()}
        smaller = replace(
            segments, **left, fences=segments.fences[: 1 << m], counts=segments.counts[: 2 << m],
            parts=PARTS,
        )  # fmt: skip
        with self._context:
            shrinking, moved = self._work.shrinking(m, self.bounds_at(segments, Size(m))[0])
            self.kernels.launch(
                "shrink", 32 << m,
                (segments.record, smaller.record, shrinking,
                 self.scratch(segments, segments.num_slots)),
            )  # fmt: skip
            return smaller, moved.get()[2 : 2 + m + 1]
