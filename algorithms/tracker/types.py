"""The seam between the tracker and its figures.

A figure is a small class in a module of its own, listed in `FIGURES`. It holds its value for one
state of the graph, and is given each next state as a Change: the simple rows before and after, and
the edges in which they differ. Rows do not change while an update lasts, so a figure may read both
states. It must not keep them: on the CPU the next update but one writes to the same memory. A
figure must not change a value that it has returned, either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from ..arrays import Array
from ..views.simple import View

Memory = tuple[Array, Array]  # of which an indptr and indices are the beginnings


@dataclass(frozen=True)
class TrackedRows(View):
    """Simple undirected rows, and which of them are vertices: rows with an entry, and also rows of
    which the graph has a loop, or that were added by themselves."""

    alone: Array  # bool[2, n]: whether the graph has a loop at each; whether it was added by itself
    present: Array  # bool[n]: whether each is a vertex
    memory: Memory | None = None  # which later rows may take over; only on the CPU


@dataclass(frozen=True)
class Change:
    """Two states of the simple undirected graph, and how they differ.

    Edges are given as entries of rows: source << 32 | target, rising, each edge in both directions.
    All arrays lie where the graph does. There may be more or fewer rows after than before; rows
    that went have no edges after. Vertices may have come or gone even if no edge did."""

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
    """One figure. Its methods are called with the rows' device as the current one."""

    @property
    def value(self) -> Any:
        """The value for the rows last given: an int, or an array that is never changed again."""

    def recompute(self, rows: TrackedRows) -> None:
        """Compute the value from the rows alone. REQUIRES nothing of earlier calls, which may have
        failed."""

    def begin(self, change: Change) -> None:
        """Start on `update`, which follows with the same change, as far as a device can go on
        with it while the host does something else. REQUIRES: the value is that for
        `change.before`."""

    def update(self, change: Change) -> bool:
        """Bring the value from `change.before` to `change.after`. False if recomputing is cheaper,
        by the rule in the figure's module; `recompute` then follows at once. REQUIRES: it was
        begun."""
