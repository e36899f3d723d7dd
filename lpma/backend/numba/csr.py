"""Snapshots of a store on the CPU: `csr` of lpma/backend/reading.py, and the two parts that it is
made of. export.py has the kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...cpu import merged, pieces
from ...cpu.threads import cuts, run_all
from . import export, recycled
from .segments import Segments

Array = npt.NDArray[Any]

SEGMENTS_PER_TASK = 1024


class CsrReads:
    """What gives rows and columns; it has no state."""

    def csr_rows(
        self, segments: Segments, num_rows: int, num_edges: int, markers: bool
    ) -> tuple[Array, Array]:
        """(indptr, indices) of `csr`."""
        parts = _parts(segments, markers)
        # With an entry more each, for what a thread need not write.
        indptr, indices = recycled.arrays((num_rows + 2, np.int64), (num_edges + 1, np.uint32))
        indptr[:] = 0
        calls, before = [], -1
        for i, (*part, source) in enumerate(parts):
            open_row = -1 if i == len(parts) - 1 else source
            calls.append((segments.view, *part, before, open_row, markers, indptr, indices))
            before = source
        run_all(export.write_rows, calls)
        indptr = indptr[: num_rows + 1]
        export.fill_gaps(indptr)
        return indptr, indices[:num_edges]

    def rows_with(
        self, indptr: Array, indices: Array, keys: Array, there: Array, num_rows: int
    ) -> tuple[Array, Array, Array]:
        """Earlier rows with the changes to them merged in, and the memory of their entries, which
        has room for as many again."""
        memory: list[Array] = []

        def room(starts: int, entries: int) -> merged.Memory:
            memory[:] = recycled.arrays((starts, np.int64), (2 * entries, np.uint32))
            return memory[0], memory[1]

        made = merged.with_changes(indptr, indices, keys, there, num_rows, room)
        return *made, memory[1]

    def taker(self) -> None:
        """Nobody needs to be waited for."""

    def csr_columns(
        self, segments: Segments, num_edges: int, markers: bool, taker: None = None
    ) -> tuple[Array | None, Array | None]:
        """(weights, times) of `csr`."""
        weights, times = recycled.arrays(
            (
                num_edges if segments.weights else 0,
                segments.weights[0].dtype if segments.weights else np.float32,
            ),
            (num_edges if segments.times else 0, np.int64),
        )
        to = values_at(segments, weights, times)
        parts = _parts(segments, markers)
        run_all(export.write_columns, [(segments.view, *part, markers, *to) for *part, _ in parts])
        return weights if segments.weights else None, times if segments.times else None


def _parts(segments: Segments, markers: bool) -> list[tuple[int, int, int, int]]:
    """The segments as ranges (first, last, edges before them, source of the last slot in them or
    before them): one where a pass over all of them is short (`pieces.FEW`)."""
    leaves = 1 << segments.m
    if segments.num_slots < pieces.FEW:
        return [(0, leaves, 0, -1)]
    ranges = cuts(leaves, SEGMENTS_PER_TASK, 4)
    surveys = run_all(export.survey, [(segments.view, *part, markers) for part in ranges])
    parts, out, last = [], 0, -1
    for part, (edges, source) in zip(ranges, surveys, strict=True):
        last = max(last, source)
        parts.append((*part, out, last))
        out += edges
    return parts


def values_at(segments: Segments, weights: Array, times: Array) -> tuple[int, int]:
    """The id() of each of these columns, 0 where the store has none."""
    return id(weights) if segments.weights else 0, id(times) if segments.times else 0
