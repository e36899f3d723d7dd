"""A batch on its way through the CUDA backend (values.py): key operations, what they do, a plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ....batch.columns import FIRST_QUERY, Columns, Kind
from ....pma.counters import REASONS
from ....pma.strategy import TOP_DOWN
from ...values import BOTH, REVERSE, Changed, Implied, Tally
from ..store.segments import LEVELS, Segments
from ..store.work import Report
from ..upload.staged_batch import StagedBatch
from .changes import Room

Array = Any  # cupy.ndarray

TALLY = slice(int(Report.TOUCHED), int(Report.LARGEST) + 1)  # words of a report


@dataclass(frozen=True)
class KeyRows:
    """The key operations of a batch of `rows` rows, which the device makes itself, or `made` ones:
    (keys uint64[n], places uint32[n]) by rising place, on the host."""

    rows: int
    direction: int
    made: tuple[Any, Any] | None = None

    def __len__(self) -> int:
        """At most: a row of an undirected graph may give two."""
        if self.made is not None:
            return len(self.made[0])
        return 2 * self.rows if self.direction == BOTH else self.rows


@dataclass(frozen=True)
class DevicePlan:
    """A plan's figures; its windows stay on the device."""

    strategy: str
    num_touched: int
    num_windows: int  # above the leaves
    large_slots: int  # scratch that its large windows need
    held_above_leaves: int  # after the batch, as are those by layer
    redundant: int
    num_rounds: int
    windows_by_layer: list[int]  # layers 0 … the highest with a window
    held_by_layer: list[int]

    @staticmethod
    def of(report: list[int], strategy: str) -> DevicePlan:
        windows = report[Report.WINDOWS_BY_LAYER : Report.WINDOWS_BY_LAYER + LEVELS]
        layers = LEVELS
        while layers > 1 and not windows[layers - 1]:
            layers -= 1
        return DevicePlan(
            strategy,
            report[Report.TOUCHED],
            report[Report.WINDOWS],
            report[Report.LARGE_SLOTS],
            report[Report.HELD_ABOVE],
            report[Report.REDUNDANT],
            1 if strategy == TOP_DOWN else layers,
            windows[:layers],
            report[Report.HELD_BY_LAYER : Report.HELD_BY_LAYER + layers],
        )


@dataclass
class Located:
    """A sorted, located batch in the work buffers: the next batch overwrites it."""

    staged: StagedBatch
    rows: int  # key operations at most
    report: list[int]  # by Report
    m: int  # of the segments that it is on
    written_before: bool  # what the backend's `written` was before it was located
    room: Room  # for the keys inserted and deleted
    plan: DevicePlan | None = None
    planned_on: Segments | None = None  # whose counts already include the batch
    shift: int = 0  # levels that the store has grown since its ranks were written

    @cached_property
    def tally(self) -> Tally:
        """The figures of the report that the host goes by."""
        touched, inserted, deleted, markers, loops, largest = self.report[TALLY]
        return Tally(
            touched=touched, delta=inserted - deleted, markers=markers, loops=loops,
            largest=largest - 1, deletions=deleted,
        )  # fmt: skip

    @property
    def unchanged(self) -> list[int]:
        """[2 * REASONS]: see values.Committed."""
        first = Report.UNCHANGED
        return self.report[first : first + 2 * REASONS]


def keys_on_host(columns: Columns, direction: int, implied: Implied) -> tuple[Array, Array]:
    """What the device does for plain rows, for a batch that removes vertices."""
    kind, u, v = columns.kind, columns.src.astype(np.uint64), columns.dst.astype(np.uint64)
    half, place = np.uint64(32), np.arange(len(kind), dtype=np.uint32)
    edge = (kind <= Kind.DELETE) | (kind == Kind.EXPIRE)
    vertex = ~edge & (kind < FIRST_QUERY)
    ahead, back = (u << half) | v, (v << half) | u
    parts = [(back if direction == REVERSE else ahead, edge)]
    if direction == BOTH:
        parts.append((back, edge & (u != v)))
    if direction != REVERSE:
        parts.append(((u << half) | np.uint64(0xFFFFFFFF), vertex))
    keys = np.concatenate([*(key[chosen] for key, chosen in parts), implied[0]])
    places = np.concatenate([*(place[chosen] for _, chosen in parts), implied[1]])
    order = np.argsort(places, kind="stable")
    return keys[order], places[order].astype(np.uint32)


def changes_of(located: Located, most: int) -> Changed:
    """The keys inserted and deleted, which the mover or the merge writes."""
    n = located.tally.num_changes
    return None if n > most or n > located.room.rows else located.room.arrays(n)
