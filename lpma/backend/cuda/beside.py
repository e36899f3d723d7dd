"""Mixed batches that lie sorted beside the store while their queries are answered: beside.cu.

Nothing is written to the store until all queries are answered. `locate` then goes on with the rows
as they are sorted.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ...batch.columns import Columns
from .at_once import AtOnce
from .blocks import ALL
from .described import StagedBatch
from .listing import Beside
from .located import KeyRows
from .read_launch import launch_on
from .segments import Segments

Array = Any  # cupy.ndarray


class BesideTheStore(AtOnce):
    """See lpma.backend.protocol.Writing.sort_beside."""

    def sort(self, segments: Segments, staged: StagedBatch, rows: KeyRows) -> None:
        """Have the key operations of a batch in order, and the report say what was seen of them.
        REQUIRES: the store's stream is the current one."""
        n, work = len(rows), self.work
        work.reserve(n, n)
        work.reserve_tree(segments.m)
        work.clear_report(self.stream)
        made = np.int64(0)
        if rows.made is not None:
            work.put_rows(*rows.made)
            made = np.int64(n)
        self.kernels(segments).launch(
            "sort_batch", n,
            (staged.record, work.argument, np.int64(rows.lo), np.int64(rows.hi),
             np.int32(rows.direction), np.int32(bool(staged.columns.checked)), made),
        )  # fmt: skip

    def is_sorted(self, staged: StagedBatch, rows: KeyRows) -> bool:
        """Whether these rows are what lies beside the store."""
        beside = self.beside
        return beside is not None and beside.staged is staged and beside.rows is rows

    def sort_beside(self, segments: Segments, staged: StagedBatch, rows: KeyRows) -> None:
        with self.context:
            self.sort(segments, staged, rows)
            ranks = cupy.empty(max(len(rows), 1), np.int64)
            launch_on(
                segments, "beside", "rank_rows", len(rows),
                segments.record, self.work.argument, ranks,
            )  # fmt: skip
            self.context.upload.await_part(staged, ALL)
        self.beside = Beside(staged, rows, self.work.argument, ranks)

    def asked(
        self, segments: Segments, staged: StagedBatch, columns: Columns, places: Array
    ) -> tuple[Array, Array, Array]:
        n = len(places)
        with self._reading() as reading:
            src, dst = (reading.new(n, np.uint32, last=False) for _ in range(2))
            limits = reading.new(n, np.int64)
            launch_on(
                segments, "beside", "list_asked", n,
                staged.record, reading.given(places, np.int64), n, src, dst, limits,
            )  # fmt: skip
        return src, dst, limits
