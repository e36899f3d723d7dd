"""What a backend hands back about a batch: its columns, and what each key operation does."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .rebalance import WindowPlan
from .rows import BatchView, Leaves, Rows, describe
from .segments import Segments, address
from .settle import TALLIED, TOUCHED, UNCHANGED
from .small import HIGHEST, PLANNED, SMALL_ROWS, WINDOWS
from .workspace import Workspace

Array = npt.NDArray[Any]


class BatchColumns(NamedTuple):
    """A batch's columns, by place, in the store's dtypes; a column has one row where every
    operation has the same."""

    kind: Array  # uint8
    weight: Array  # float32 or float64
    time: Array  # int64
    plain: Array  # see rows.BatchView: int64[0], or the counts of the store at work

    @property
    def view(self) -> BatchView:
        """For kernels. Holds addresses only."""
        return BatchView(*self.record.tolist())

    @property
    def record(self) -> Array:
        """The view as an array, which costs less to hand to a kernel: int64[8]."""
        record = np.empty(8, np.int64)
        describe(*self, record)
        return record

    def unchanged(self, tally: Any) -> Any:
        """The operations that changed nothing, see lpma.backend.Located: as locating found, or as
        the mover of a plain batch did."""
        return self.plain if len(self.plain) else tally[UNCHANGED:TALLIED]


class Touched(NamedTuple):
    """The n leaves that a batch changes, by rising rank; int32 each. See rows.Leaves."""

    columns: Array  # int32[5, >= n]
    n: int

    @property
    def rank(self) -> Array:
        return self.columns[0, : self.n]

    @property
    def lo(self) -> Array:
        return self.columns[1, : self.n]

    @property
    def hi(self) -> Array:
        return self.columns[2, : self.n]

    @property
    def delta(self) -> Array:
        return self.columns[3, : self.n]

    @property
    def flags(self) -> Array:
        return self.columns[4, : self.n]

    @property
    def view(self) -> Leaves:
        """For kernels. Holds addresses only."""
        first, step = address(self.columns), self.columns.strides[0]
        return Leaves(self.n, *(first + step * column for column in range(5)))


def reported_plan(workspace: Workspace, report: list[int]) -> WindowPlan | None:
    """The plan that small.py's report tells of, until the next batch; None where there is none."""
    if not report[PLANNED]:
        return None
    windows, ended, *figures = report[WINDOWS : HIGHEST + 1]
    touched = Touched(workspace.leaves.grid, report[TOUCHED])
    rounds = workspace.rounds[: ended + 1]
    return WindowPlan(touched, workspace.plan.grid, windows, rounds, *figures)


class Merged(NamedTuple):
    """What a batch that was located, planned and moved in one call came to."""

    tally: list[int]  # see settle.py; there may be more
    batch: BatchColumns
    redundant: int
    num_rounds: int
    held: int  # edges that the windows in which slots moved hold after
    changes: tuple[Array, Array] | None  # (keys, inserted), as NumbaBackend.changes gives them
    workspace: Workspace

    @property
    def unchanged(self) -> Any:
        """See lpma.backend.Located."""
        return self.batch.unchanged(self.tally)

    def plan(self) -> WindowPlan | None:
        """What was carried out; only tests ask."""
        return reported_plan(self.workspace, self.tally)


@dataclass
class Located:
    """A sorted batch with what each operation does, and the leaves it touches. Its arrays lie in
    the backend's workspace: locating another batch overwrites them."""

    batch: BatchColumns
    key: Array  # uint64[n], rising
    touched: Touched
    tally: Any  # see settle.py; there may be more
    delta: int  # net change of the number of filled slots
    versions: bool
    workspace: Workspace
    in_spare: bool = False  # where the sorted rows lie in the workspace
    planned: tuple[Segments, str, WindowPlan] | None = None  # where locating planned too
    expands: bool = False

    @cached_property
    def rows(self) -> Rows:
        """The operations and what was found, for kernels."""
        return self.workspace.row_view(len(self.key), self.in_spare)

    @property
    def num_touched(self) -> int:
        return self.touched.n

    @property
    def unchanged(self) -> Any:
        """See lpma.backend.Located."""
        return self.batch.unchanged(self.tally)

    @property
    def is_small(self) -> bool:
        """Whether it was located in one call."""
        return len(self.key) <= SMALL_ROWS

    @property
    def is_moved_at_once(self) -> bool:
        """Whether it is moved in one call, on this thread. One that expands is not, however small:
        most of its time goes into the pages of the new level, which all threads clear."""
        return self.is_small and not self.expands

    def on_expanded(self, levels: int) -> Located:
        """The same on a store of `levels` levels more: rank i is then i * 2^levels."""
        if levels > 0:
            self.touched.rank[:] <<= levels
        elif levels < 0:
            self.touched.rank[:] >>= -levels
        self.expands = levels > 0
        return self
