"""Mixed batches on the CPU: sorted and folded beside the store (beside.py) while their queries are
answered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ...batch.columns import Columns
from ...cpu.threads import cuts, run_all
from ..degrees import Degrees, degrees_of
from ..values import Array
from . import beside
from .beside import BesideView
from .chunks import run_edges
from .located import KeyRows, StagedBatch
from .memory import HALF
from .moves import Moves
from .segments import Segments
from .sort import sort_pairs

ROWS_PER_TASK = 1024


@dataclass(frozen=True)
class Beside:
    """A sorted batch, in the workspace."""

    rows: KeyRows
    view: BesideView
    change: Array  # int8[n]: what each row does to the number of its vertex's edges

    @cached_property
    def degrees(self) -> Degrees:
        return degrees_of(self.rows.key >> HALF, self.rows.place, self.change)


class Mixed(Moves):
    """See lpma.backend.protocol."""

    beside: Beside | None = None

    def sort_rows(self, rows: KeyRows) -> None:
        """Have key operations in order, if they are not yet."""
        if not rows.is_sorted:
            columns = self.workspace.row_columns(len(rows))
            rows.key, rows.place = sort_pairs(*columns)
            rows.in_spare, rows.is_sorted = rows.key is columns[2], True

    def sort_beside(self, segments: Segments, staged: StagedBatch, rows: KeyRows) -> None:
        """Sort the rows, and fold them onto what is stored."""
        n = len(rows)
        self.sort_rows(rows)
        self.workspace.states.reserve(n)
        present, weights, times, change = self.workspace.states.columns
        of_batch = segments.view, staged.view, self.workspace.row_view(n, rows.in_spare)
        edges = run_edges(rows.key, cuts(n, ROWS_PER_TASK))
        run_all(
            beside.fold_rows,
            [(*of_batch, lo, hi, present, weights, times, change) for lo, hi in pairwise(edges)],
        )
        sorted_rows = of_batch[2]
        at = self.workspace.states.addresses[:3]
        view = BesideView(n, sorted_rows.key, sorted_rows.place, *at)
        self.beside = Beside(rows, view, change[:n])

    def asked(
        self, segments: Segments, staged: StagedBatch, columns: Columns, places: Array
    ) -> tuple[Array, Array, Array]:
        return columns.src[places], columns.dst[places], places.astype(np.int64, copy=False)
