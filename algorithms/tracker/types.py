"""The interface between the tracker and its figures.

A figure is a class in a module of its own, listed in `FIGURES`. It holds its value for one state of
the graph, and receives each next state as a Change: the simple rows before and after, and the edges
in which they differ. It may read both during an update, but not keep them: on the CPU the next
update but one writes to the same memory. It must not change a value that it has returned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from lpma.arrays import array_module

from ..arrays import Array, by_device
from ..views.simple import View

Memory = tuple[Array, Array]  # of which an indptr and indices are the beginnings


@dataclass(frozen=True)
class TrackedRows(View):
    """Simple undirected rows, and which of them are vertices: rows with an entry, or of which the
    graph has a loop, or that were added by themselves."""

    alone: Array  # bool[2, n]: whether the graph has a loop at each; whether it was added by itself
    present: Array  # bool[n]: whether each is a vertex
    memory: Memory | None = None  # which later rows may take over; only on the CPU


@dataclass(frozen=True)
class Change:
    """Two states of the simple undirected graph, and how they differ.

    Edges are entries of rows: source << 32 | target, rising, each edge in both directions, on the
    graph's device. There may be more or fewer rows after than before; rows that went have no edges
    after. Vertices may have changed even if no edge did."""

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


def extended(array: Array, n: int) -> Array:
    """A copy with n entries along the last axis: some cut off, or zeros appended."""
    if array.shape[-1] == n:
        return array.copy()
    kept = min(array.shape[-1], n)
    copy: Array = array_module(array).zeros((*array.shape[:-1], n), array.dtype)
    copy[..., :kept] = array[..., :kept]
    return copy


class Figure(ABC):
    """One figure. Its methods are called with the rows' device as the current one."""

    value: Any  # for the rows last given: an int, or an array that is never changed again

    @abstractmethod
    def recompute(self, rows: TrackedRows) -> None:
        """Compute the value from the rows alone. REQUIRES nothing of earlier calls, which may have
        failed."""

    def begin(self, change: Change) -> None:  # noqa: B027  most have nothing to start
        """Launch what a device can do of `update`, which follows with the same change, while the
        host does something else. REQUIRES: the value is that for `change.before`."""

    @abstractmethod
    def update(self, change: Change) -> bool:
        """Bring the value from `change.before` to `change.after`. False if recomputing is cheaper,
        by the rule in the figure's module; `recompute` then follows. REQUIRES: it was begun."""


class CountAtEdges(Figure):
    """A figure that counts what has a changed edge: in the rows before for the deleted ones, in
    those after for the inserted ones. `value` is an int. `package` has a program for each device,
    with a function count_touching(rows, edges): how much in the rows has an edge of the list.

    Rule: recompute if changed edges × PER_EDGE > edges. PER_EDGE is the cost of a changed edge in
    edges recounted (docs/development/notes/algorithms.md)."""

    package: str
    PER_EDGE: ClassVar[dict[str, int]]  # by device

    def __init__(self) -> None:
        self.value = 0
        self._won_and_lost: tuple[Any, Any] | None = None  # on a device, not waited for

    def begin(self, change: Change) -> None:
        self._won_and_lost = None
        per_edge = self.PER_EDGE["cuda" if change.after.on_device else "cpu"]
        if change.num_changed * per_edge <= len(change.after.indices) // 2:
            count = by_device(change.after.indptr, self.package).count_touching
            self._won_and_lost = (
                count(change.after, change.inserted), count(change.before, change.deleted)
            )  # fmt: skip

    def update(self, change: Change) -> bool:
        if self._won_and_lost is None:
            return False
        won, lost = self._won_and_lost
        self.value += int(won) - int(lost)
        return True
