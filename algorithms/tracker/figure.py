"""What a tracked figure is: the seam between the Tracker and its figures.

A figure is a small class in a module of its own, listed in `tracker.FIGURES`. It holds its value
for one state of the graph and is told of every next one, as a Change: the simple rows before and
after, and the edges in which they differ. Rows never change in place, so that a figure may count in
both, and what a figure has handed out it must not change either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..views.simple import View

Array = npt.NDArray[Any]  # or cupy.ndarray

HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class TrackedRows(View):
    """Simple undirected rows, and which of them are vertices: those with an entry, and those that
    are *alone* in having none, for they have but a loop, or were added by themselves."""

    alone: Array  # bool[2, n]: whether each has a loop; whether it was added by itself
    present: Array  # bool[n]


@dataclass(frozen=True)
class Change:
    """Two states of the simple undirected graph, and how they differ.

    The edges are entries of the rows: source << 32 | target, rising, each edge in both directions.
    All arrays lie where the graph does. Rows may be more or fewer after than before; those that
    went had no edges left. Vertices may have come or gone though no edge did."""

    before: TrackedRows
    after: TrackedRows
    inserted: Array  # uint64[2 edges]: in `after` and not in `before`
    deleted: Array  # uint64[2 edges]: in `before` and not in `after`

    @property
    def num_inserted(self) -> int:
        return len(self.inserted) // 2

    @property
    def num_deleted(self) -> int:
        return len(self.deleted) // 2

    @property
    def num_changed(self) -> int:
        return self.num_inserted + self.num_deleted


class Figure(Protocol):
    """Both methods run with the rows' device as the current one."""

    @property
    def value(self) -> Any:
        """For the rows last given: an int, or a fresh array that nothing changes any more."""

    def recompute(self, rows: TrackedRows) -> None:
        """From simple rows alone. It may look at nothing that an earlier call left."""

    def update(self, change: Change) -> bool:
        """From the value for `change.before` to that for `change.after`. False where recomputing
        is cheaper, by the rule in the figure's module: then `recompute` follows at once."""
