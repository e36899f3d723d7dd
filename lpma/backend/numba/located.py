"""A batch on its way through the CPU backend (values.py): staged, made into key rows, located."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...arrays import address
from ..values import Array, Tally
from .batch_view import BatchView, Leaves, Rows
from .fold import TALLIED, TOUCHED, UNCHANGED
from .fused import HIGHEST, PLANNED, WINDOWS
from .rebalance import WindowPlan
from .segments import Segments
from .workspace import Workspace


class StagedBatch(NamedTuple):
    """A batch's columns, by place, in the store's dtypes; a column has one row if all operations
    have the same value."""

    kind: Array  # uint8
    weight: Array  # float32 or float64
    time: Array  # int64
    plain: Array  # see batch_view.BatchView: int64[0], or the counts of the store at work

    @property
    def view(self) -> BatchView:
        """For kernels. Holds addresses only."""
        kind, weight, time, plain = self
        width, counts = weight.itemsize, address(plain) if len(plain) else 0
        return BatchView(
            address(kind), int(len(kind) > 1), address(weight), width * (len(weight) > 1),
            int(width == 8), address(time), 8 * (len(time) > 1), counts,
        )  # fmt: skip

    @property
    def record(self) -> Array:
        """The view as an array, which costs less to hand to a kernel: int64[8]."""
        return np.array(self.view, np.int64)


@dataclass(eq=False)
class KeyRows:
    """Key operations by rising place or, once they are sorted, by key; in the workspace."""

    key: npt.NDArray[np.uint64]
    place: npt.NDArray[np.uint32]
    is_sorted: bool = False
    in_spare: bool = False  # where they lie in the workspace

    def __len__(self) -> int:
        return len(self.key)


class Touched(NamedTuple):
    """The n leaves that a batch changes, by rising rank; int32 each. See batch_view.Leaves."""

    columns: Array  # int32[5, >= n]
    n: int

    @property
    def rank(self) -> Array:
        return self.columns[0, : self.n]

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


def tally_of(report: list[int]) -> Tally:
    """The tally at the beginning of what a kernel reports."""
    touched, delta, markers, loops, largest, deletions = report[:UNCHANGED]
    return Tally(
        touched=touched, delta=delta, markers=markers, loops=loops, largest=largest,
        deletions=deletions,
    )  # fmt: skip


def reported_plan(workspace: Workspace, report: list[int]) -> WindowPlan | None:
    """The plan that a report of fused.py contains; None if it contains none."""
    if not report[PLANNED]:
        return None
    windows, ended, *figures = report[WINDOWS : HIGHEST + 1]
    touched = Touched(workspace.leaves.grid, report[TOUCHED])
    rounds = workspace.rounds[: ended + 1]
    return WindowPlan(touched, workspace.plan.grid, windows, rounds, *figures)


@dataclass
class Located:
    """A sorted batch with what each operation does, and the leaves it touches. Its arrays lie in
    the backend's workspace."""

    staged: StagedBatch
    key: Array  # uint64[n], rising
    touched: Touched
    tally: Tally
    found_unchanged: list[int]  # by locating
    workspace: Workspace
    m: int  # of the segments that it is on
    in_spare: bool = False  # where the sorted rows lie in the workspace
    planned: tuple[Segments, str, WindowPlan] | None = None  # if locating planned too
    expands: bool = False  # it is on segments made since it was located
    at_once: bool = False  # it was located in one call, see fused.py

    @staticmethod
    def of(
        staged: StagedBatch, key: Array, touched: Touched, report: list[int],
        workspace: Workspace, m: int, in_spare: bool = False,
    ) -> Located:  # fmt: skip
        """From a report that begins with the entries of a tally (fold.py)."""
        unchanged, tally = report[UNCHANGED:TALLIED], tally_of(report)
        tally.touched = touched.n
        return Located(staged, key, touched, tally, unchanged, workspace, m, in_spare)

    @cached_property
    def rows(self) -> Rows:
        """The operations and what was found, for kernels."""
        return self.workspace.row_view(len(self.key), self.in_spare)

    @property
    def unchanged(self) -> list[int]:
        """[2 * REASONS], once the batch is moved: as the mover of a plain batch counted them."""
        plain = self.staged.plain
        return plain.tolist() if len(plain) else self.found_unchanged

    @property
    def is_moved_at_once(self) -> bool:
        """Whether it is moved in one call, on this thread. One that expands is not, however small:
        most of its time goes into the pages of the new level, which all threads clear."""
        return self.at_once and not self.expands
