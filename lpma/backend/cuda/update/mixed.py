"""Mixed batches, which lie sorted beside the store while their queries are answered: beside.cu.

Nothing is written to the store until all queries are answered. Then the batch is applied step by
step (stepwise.py), which goes on with the rows as they are sorted.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ....batch.columns import Columns
from ..read.kernels import launch_on
from ..read.reader import Reader, SortedBatch
from ..store.segments import Segments
from ..store.shapes import Shapes
from ..store.work import Work
from ..upload.blocks import ALL
from ..upload.staged_batch import StagedBatch
from ..upload.uploader import Uploader
from .located import KeyRows

Array = Any  # cupy.ndarray


class MixedBatches:
    """Sorts the batches of one store, mixed ones for its reader. See
    lpma.backend.protocol.Writing.sort_beside."""

    def __init__(self, shapes: Shapes, work: Work, upload: Uploader, reader: Reader) -> None:
        self._shapes, self._work, self._upload = shapes, work, upload
        self._reader, self._context = reader, reader.context

    def sort(self, segments: Segments, staged: StagedBatch, rows: KeyRows) -> None:
        """Have the key operations of a batch in order, and the report say what was seen of them.
        REQUIRES: the store's stream is the current one."""
        n, work = len(rows), self._work
        work.reserve(n)
        work.reserve_tree(segments.m)
        work.clear_report(self._context.stream)
        made = np.int64(0)
        if rows.made is not None:
            work.put_rows(*rows.made)
            made = np.int64(n)
        self._shapes.kernels.launch(
            "sort_batch", n,
            (staged.record, work.argument, np.int32(rows.direction),
             np.int32(bool(staged.columns.checked)), made),
        )  # fmt: skip

    def sort_beside(self, segments: Segments, staged: StagedBatch, rows: KeyRows) -> None:
        with self._context:
            self.sort(segments, staged, rows)
            ranks = cupy.empty(max(len(rows), 1), np.int64)
            launch_on(
                segments, "beside", "rank_rows", len(rows),
                segments.record, self._work.argument, ranks,
            )  # fmt: skip
            self._upload.await_part(staged, ALL)
        self._reader.beside = SortedBatch(staged, rows, self._work.argument, ranks)

    def sort_to_apply(self, segments: Segments, staged: StagedBatch, rows: KeyRows) -> None:
        """No batch lies beside the store any more: these rows, which may be those that did, are
        sorted to be applied. REQUIRES: the store's stream is the current one."""
        beside = self._reader.beside
        if beside is None or beside.staged is not staged or beside.rows is not rows:
            self.sort(segments, staged, rows)
        self._reader.beside = None

    def asked(
        self, segments: Segments, staged: StagedBatch, columns: Columns, places: Array
    ) -> tuple[Array, Array, Array]:
        n = len(places)
        with self._reader as reader:
            src, dst, limits = reader.new((n, np.uint32), (n, np.uint32), (n, np.int64))
            launch_on(
                segments, "beside", "list_asked", n,
                staged.record, reader.given(places, np.int64), n, src, dst, limits,
            )  # fmt: skip
        return src, dst, limits
