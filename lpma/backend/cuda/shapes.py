"""Whole stores on a CUDA device: made empty, filled or rebuilt in one launch, grown by a level or
a part of one, shrunk by a level."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cupy
import numpy as np

from ...cuda import driver
from ...pma.density import window_bounds
from ...pma.layout import Size, level_slots, parted_from
from . import reserved
from .blocks import ALL
from .context import Context
from .even import Evening
from .foreseen import Foreseen, tree_shapes
from .kernels import Kernels, kernels_of
from .limits import most_levels
from .located import Located
from .options import shape_of
from .segments import Segments, as_argument, empty_segments
from .work import COLUMNS, Work

Array = Any

KEPT_BYTES = 1 << 30  # buffers for batches of some millions
NO_SCRATCH = as_argument(np.zeros((), COLUMNS))


def addresses(changed: tuple[Array, Array] | None) -> tuple[Any, Any]:
    if changed is None:
        return np.uint64(0), np.uint64(0)
    return changed


class Shapes:
    """See lpma.backend.protocol."""

    way_out = (
        "share the graph out over several, or use device='cpu'; a device with more memory does not "
        "help"
    )

    def __init__(self, context: Context) -> None:
        self.context = context
        self._kernels: Kernels | None = None
        self._bounds: dict[Size, tuple[Array, ...]] = {}  # on the host, on the device
        self._foreseen = Foreseen()
        self._evening = Evening(context.stream)
        with context:
            self.work = Work()

    def kernels(self, segments: Segments) -> Kernels:
        """The kernels for this store, whose shape never changes. REQUIRES: its context."""
        if self._kernels is None:
            self._kernels = kernels_of(self.context.number, *shape_of(segments))
        return self._kernels

    def device_bounds(self, size: Size, segment_size: int) -> tuple[Array, Array]:
        """(most, least) of lpma.pma.density.window_bounds on the device."""
        most, least = window_bounds(size, segment_size)
        if size not in self._bounds or self._bounds[size][0] is not most:
            self.work.revision += 1  # what is kept of the addresses of these is no good
            here = np.stack((most, least))
            there, landing = (
                cupy.empty(here.shape, cupy.int64), cupy.cuda.alloc_pinned_memory(here.nbytes)
            )  # fmt: skip
            memoryview(landing).cast("B")[: here.nbytes] = here.data.cast("B")
            driver.copy(there.data.ptr, landing.ptr, here.nbytes, self.context.stream)
            self._bounds[size] = most, there[0], there[1], landing  # which is kept
        return self._bounds[size][1:3]

    def _reserve_shrinking(self, segments: Segments) -> None:
        """All that shrinking needs besides scratch, however far it goes."""
        self.work.reserve_shrinking(segments.m)
        for m in range(segments.m + 1):
            self.device_bounds(Size(m), segments.segment_size)

    def most_levels(self, segment_size: int) -> int:
        return most_levels(segment_size)

    def parted_from(self, segment_size: int) -> int:
        """See reserved.py."""
        in_parts = reserved.is_supported(self.context.number)
        return parted_from(segment_size) if in_parts else most_levels(segment_size) + 1

    @property
    def buffer_bytes(self) -> int:
        """Bytes of the buffers kept from batch to batch."""
        return self.work.nbytes + self.context.upload.nbytes + self._foreseen.nbytes

    def _give_back(self, segments: Segments) -> None:
        """Keep no buffers that are much for this store."""
        held = self.buffer_bytes
        if held > KEPT_BYTES and held > segments.nbytes // 4:
            self.work.release()

    def empty(self, segment_size: int, weight_dtype: np.dtype[Any] | None, times: bool) -> Segments:
        with self.context:
            segments = empty_segments(segment_size, weight_dtype, times)
            self.kernels(segments)  # begin to be loaded
        return segments

    def expand(self, segments: Segments, size: Size) -> Segments:
        """Shares the old levels, and the tree if there is a part more. Windows become small, so the
        scratch for large ones, which are of the time just before, makes room for the level."""
        m = size.m
        self.work.release_scratch()
        slots = level_slots(m, segments.segment_size)
        if m == segments.m:
            with self.context:
                for column in segments.columns.values():
                    reserved.back(column[-1], size.parts)
            return replace(segments, parts=size.parts)

        held = self._foreseen.taken(size)

        def grown(name: str) -> Any:
            levels = getattr(segments, name)
            if levels is None:
                return None
            if name not in held:
                held[name] = reserved.addresses(slots, levels[0].dtype, size.parts)
            reserved.back(held[name], size.parts)
            return [*levels, held[name]]

        with self.context:
            fences, counts = (
                held[name] if name in held else cupy.empty(*shape)
                for name, shape in tree_shapes(m).items()
            )
            fresh = Segments(
                segments.segment_size,
                grown("keys"),
                grown("weights"),
                grown("times"),
                fences,
                counts,
                segments.num_slots,
                size.parts,
            )
            self.kernels(segments).launch(
                "grow_tree", 1 << (m - 1),
                (segments.fences, segments.counts, fresh.fences, fresh.counts, np.int32(m)),
            )  # fmt: skip
        return fresh

    def build(
        self,
        segment_size: int,
        size: Size,
        stored: Array,
        weights: Array | None,
        times: Array | None,
    ) -> Segments:
        """Filled in one launch."""
        self._foreseen.give_back()
        with self.context:
            dtype = None if weights is None else weights.dtype
            fresh = empty_segments(segment_size, dtype, times is not None, size)
            fresh.num_slots = len(stored)
            held = [None if a is None else cupy.asarray(a) for a in (stored, weights, times)]
            columns = np.zeros((), COLUMNS)
            for name, array in zip(("keys", "weights", "times"), held, strict=True):
                columns[name] = 0 if array is None else array.data.ptr
            slots = max(len(stored), 2 << size.m)
            self.kernels(fresh).launch(
                "spread", slots, (fresh.record, as_argument(columns), np.int64(len(stored)))
            )
            self.context.stream.synchronize()  # before the columns are freed
        return fresh

    def _merged(self, source: Segments, located: Located, size: Size) -> Segments:
        """The store that a batch is planned on with the batch merged in, in fresh levels."""
        self._foreseen.give_back()
        with self.context:
            dtype = source.weights[0].dtype if source.weights else None
            fresh = empty_segments(source.segment_size, dtype, source.times is not None, size)
            fresh.num_slots = source.num_slots + located.tally.delta
            self.context.upload.await_part(located.staged, ALL)
            self.kernels(source).launch(
                "rebuild", max(32 << source.m, 2 << fresh.m),
                (source.record, fresh.record, located.staged.record, self.work.argument,
                 np.int64(fresh.num_slots), *addresses(located.changed)),
            )  # fmt: skip
        return fresh

    def foresee(self, segments: Segments, size: Size, batches: int, steps: int) -> None:
        """See foreseen.py."""
        with self.context:
            self._foreseen.look(
                segments, size, batches, steps, self.device_bounds,
                lambda: segments.nbytes + self.buffer_bytes,
            )  # fmt: skip

    def even_out(self, segments: Segments, layer: int, first: int, last: int) -> None:
        """See even.py."""
        self._evening.launch(self.kernels(segments), segments.record, layer, first, last)

    def shrink(self, segments: Segments, most: Array) -> tuple[Segments, Array]:
        """See shrink.cu."""
        m = segments.m - 1
        self._foreseen.give_back()
        smaller = Segments(
            segments.segment_size,
            segments.keys[:-1],
            segments.weights[:-1] if segments.weights else None,
            segments.times[:-1] if segments.times else None,
            segments.fences[: 1 << m],
            segments.counts[: 2 << m],
            segments.num_slots,
        )
        with self.context:
            kernels = self.kernels(segments)
            limits, _ = self.device_bounds(Size(m), segments.segment_size)
            shrinking, moved = self.work.shrinking(limits)
            kernels.launch(
                "shrink", 32 << m,
                (segments.record, smaller.record, shrinking,
                 self._scratch(segments, segments.num_slots)),
            )  # fmt: skip
            return smaller, moved.get()[2 : 2 + m + 1]

    def _scratch(self, segments: Segments, slots: int) -> Any:
        """Columns for that many slots, as kernels get them; the reserved ones, if there are any."""
        if slots == 0:
            return NO_SCRATCH
        _, weight_bytes, times = shape_of(segments)
        return self.work.scratch(slots, weight_bytes, times)

    def _scratch_slots(self, segments: Segments) -> int:
        """For how many slots there are columns already, at the least."""
        _, weight_bytes, times = shape_of(segments)
        return self.work.scratch_slots(weight_bytes, times)
