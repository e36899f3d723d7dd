"""Whole stores on the CPU: made empty, filled or rebuilt in one pass, grown by a level, shrunk by
a level."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...arrays import address
from ...cpu.threads import cuts, run_all
from ..layout import Size
from . import rebuild, shrink
from .located import Located
from .move import gather_at
from .rebalance import MAX_M
from .rows import BatchView, Leaves, Rows
from .segments import Segments, empty_segments, expanded, shrunk
from .workspace import Workspace

Array = npt.NDArray[Any]

NO_BATCH = BatchView(0, 0, 0, 0, 0, 0, 0, 0)
NO_ROWS = Rows(0, 0, 0, 0, 0)
NO_LEAVES = Leaves(0, 0, 0, 0, 0, 0)
NO_MEMBERS = np.zeros(0, np.int32)

SEGMENTS_PER_TASK = 1024


class Shapes:
    """See lpma.backend.protocol."""

    workspace: Workspace

    way_out = "make the graph with a larger segment_size"

    def most_levels(self, segment_size: int) -> int:
        """Windows are numbered in int32."""
        return MAX_M

    def empty(self, segment_size: int, weight_dtype: np.dtype[Any] | None, times: bool) -> Segments:
        return empty_segments(segment_size, weight_dtype, times)

    def expand(self, segments: Segments, size: Size) -> Segments:
        return expanded(segments, size)

    def rebuild(self, segments: Segments, located: Located, size: Size) -> Segments:
        """Each thread merges a piece of the store with a piece of the batch."""
        fresh = empty_segments(
            segments.segment_size,
            segments.weights[0].dtype if segments.weights else None,
            segments.times is not None,
            size,
        )
        total = segments.num_slots + located.tally.delta
        source, to = segments.view, fresh.view
        if total:
            work = max(1 << segments.m, len(located.key) // segments.segment_size)
            pieces = len(cuts(work, SEGMENTS_PER_TASK, 4))
            rows, leaves = located.rows, located.touched.view
            places = rebuild.cut(source, rows, leaves, pieces)
            run_all(
                rebuild.merge_piece,
                [
                    (source, to, located.staged.view, rows, leaves, places, piece, total)
                    for piece in range(pieces)
                ],
            )
        rebuild.finish_tree(to, total)
        return fresh

    def build(
        self,
        segment_size: int,
        size: Size,
        stored: Array,
        weights: Array | None,
        times: Array | None,
    ) -> Segments:
        """Filled in one pass, by all threads."""
        fresh = empty_segments(
            segment_size, None if weights is None else weights.dtype, times is not None, size
        )
        columns = [None if c is None else np.ascontiguousarray(c) for c in (stored, weights, times)]
        source = (*(0 if column is None else address(column) for column in columns), 0)
        total = len(stored)
        if total:
            run_all(
                rebuild.fill_piece,
                [(fresh.view, source, lo, hi, total) for lo, hi in cuts(total, 1 << 16)],
            )
        rebuild.finish_tree(fresh.view, total)
        return fresh

    def shrink(self, segments: Segments, most: Array) -> tuple[Segments, Array]:
        """See shrink.py. In one thread: most stores shrink seldom, and by few levels."""
        smaller = shrunk(segments)
        buffer = self.workspace.slot_buffer(segments, "large", segments.num_slots)
        moved = shrink.shrink(
            segments.view, smaller.view, NO_BATCH, NO_ROWS, NO_LEAVES, NO_MEMBERS, most, buffer,
            gather_at.address,
        )  # fmt: skip
        return smaller, moved
