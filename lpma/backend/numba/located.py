"""What a backend hands back about a batch: its columns, and what each key operation does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .locate import SLOTS
from .rows import BatchView, Leaves, Rows
from .segments import address

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class BatchColumns:
    """A batch's columns, by place, in the store's dtypes; a column has one row where every
    operation has the same."""

    kind: Array  # uint8
    weight: Array  # float32 or float64
    time: Array  # int64

    @cached_property
    def view(self) -> BatchView:
        """For kernels. Holds addresses only."""
        return BatchView(
            address(self.kind),
            1 if len(self.kind) > 1 else 0,
            address(self.weight),
            self.weight.itemsize if len(self.weight) > 1 else 0,
            int(self.weight.dtype == np.float64),
            address(self.time),
            8 if len(self.time) > 1 else 0,
        )


@dataclass(frozen=True)
class Touched:
    """The leaves that a batch changes, by rising rank; int64 each. See rows.Leaves."""

    rank: Array
    lo: Array
    hi: Array
    delta: Array
    flags: Array
    view: Leaves  # the same for kernels: addresses only


@dataclass(frozen=True)
class Located:
    """A sorted batch with what each operation does, and the leaves it touches. Its arrays lie in
    the backend's workspace: locating another batch overwrites them."""

    batch: BatchColumns
    key: Array  # uint64[n], rising
    rows: Rows  # the same and what was found, by address
    touched: Touched
    tally: Array  # int64[6], see locate.py
    versions: bool

    @property
    def num_touched(self) -> int:
        return len(self.touched.rank)

    @property
    def delta(self) -> int:
        """Net change of the number of filled slots."""
        return int(self.tally[SLOTS])

    def on_expanded(self, levels: int) -> Located:
        """The same on a store of `levels` levels more: rank i is then i * 2^levels."""
        if levels == 0:
            return self
        rank = self.touched.rank << levels if levels > 0 else self.touched.rank >> -levels
        view = self.touched.view._replace(rank=address(rank))
        return replace(self, touched=replace(self.touched, rank=rank, view=view))
