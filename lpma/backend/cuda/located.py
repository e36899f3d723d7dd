"""What the device backend hands back about a batch: key operations, what they do, a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...unchanged import REASONS
from .segments import LEVELS, Segments
from .work import Report

Array = Any  # cupy.ndarray


@dataclass(frozen=True)
class KeyRows:
    """The key operations of rows lo … hi - 1 of a batch, which the device makes itself, or
    `made` ones: (keys uint64[n], places uint32[n]) by rising place, on the host."""

    lo: int
    hi: int
    direction: int
    sides: int  # keys a row may give: 2 for an undirected graph
    made: tuple[Any, Any] | None = None

    def __len__(self) -> int:
        return len(self.made[0]) if self.made is not None else self.sides * (self.hi - self.lo)


@dataclass(frozen=True)
class DevicePlan:
    """A plan's figures; its windows stay on the device."""

    top_down: bool
    num_touched: int
    num_windows: int  # above the leaves
    large_slots: int  # scratch that its large windows need
    held_above_leaves: int
    redundant: int
    num_rounds: int
    windows_by_layer: list[int]  # layers 0 … the highest with a window
    held_by_layer: list[int]

    @staticmethod
    def of(report: list[int], top_down: bool) -> DevicePlan:
        windows = report[Report.WINDOWS_BY_LAYER : Report.WINDOWS_BY_LAYER + LEVELS]
        layers = LEVELS
        while layers > 1 and not windows[layers - 1]:
            layers -= 1
        return DevicePlan(
            top_down,
            report[Report.TOUCHED],
            report[Report.WINDOWS],
            report[Report.LARGE_SLOTS],
            report[Report.HELD_ABOVE],
            report[Report.REDUNDANT],
            1 if top_down else layers,
            windows[:layers],
            report[Report.HELD_BY_LAYER : Report.HELD_BY_LAYER + layers],
        )


@dataclass
class Located:
    """A sorted, located batch in the work buffers: the next batch overwrites it."""

    batch: Any
    rows: int  # key operations at the most
    report: list[int]  # by Report
    versions: bool
    changed: tuple[Array, Array] | None = None  # room for what `changes` hands out
    settled: bool = False  # what its leaves do is done: see compact.cu
    plan: DevicePlan | None = None
    planned_on: Segments | None = None  # whose counts already say what will be
    shift: int = 0  # levels that the store has grown since

    @property
    def num_touched(self) -> int:
        return self.report[Report.TOUCHED]

    @property
    def delta(self) -> int:
        """Net change of the number of filled slots."""
        return self.report[Report.INSERTED] - self.report[Report.DELETED]

    @property
    def num_changes(self) -> int:
        """Keys inserted or removed."""
        return self.report[Report.INSERTED] + self.report[Report.DELETED]

    @property
    def tally(self) -> tuple[int, int, int, int, int, int]:
        """(touched, slots, markers, loops, largest, deletions), as lpma.store reads it."""
        report = self.report
        return (
            self.num_touched,
            self.delta,
            report[Report.MARKERS],
            report[Report.LOOPS],
            report[Report.LARGEST] - 1,
            report[Report.DELETED],
        )

    @property
    def unchanged(self) -> list[int]:
        """See lpma.backend.Located."""
        first = Report.UNCHANGED
        return self.report[first : first + 2 * REASONS]

    def on_expanded(self, levels: int) -> Located:
        """The same on a store of `levels` levels more: rank i is then i * 2^levels. Back again
        there is nothing to do: a rebuild reads the store that the batch was planned on."""
        if levels > 0:
            self.shift += levels
        return self
