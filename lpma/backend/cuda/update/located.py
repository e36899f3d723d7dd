"""A batch on its way through the CUDA backend (values.py): key operations, what they do, a plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ....arguments.convert import BAD_VERTEX, BAD_WEIGHT, refused_rows
from ....batch.columns import BAD_KIND, MAX_HOPS
from ....pma.strategy import TOP_DOWN
from ...values import BOTH, Array, Tally
from ..store.segments import LEVELS, Segments
from ..store.work import Report
from ..upload.staged_batch import StagedBatch
from .changes import Room

COMPLAINTS = (
    (Report.BAD_KIND, BAD_KIND),
    (Report.BAD_VERTEX, BAD_VERTEX),
    (Report.BAD_WEIGHT, BAD_WEIGHT),
    (Report.BAD_HOPS, f"hops: the number of steps goes from 1 to {MAX_HOPS}"),
)
TALLY = slice(int(Report.TOUCHED), int(Report.LARGEST) + 1)  # words of a report


def refuse_bad_rows(report: list[int]) -> None:
    """Raises BatchError if the device found any. REQUIRES: it has written nothing of the batch."""
    for word, complaint in COMPLAINTS:
        if report[word]:
            raise refused_rows(complaint, report[word])


@dataclass(frozen=True)
class KeyRows:
    """The key operations of a batch of `rows` rows, which the device makes itself, or `made` ones:
    (keys uint64[n], places uint32[n]) by rising place, on the host."""

    rows: int
    direction: int
    made: tuple[Array, Array] | None = None

    def __len__(self) -> int:
        """At most: a row of an undirected graph may give two."""
        if self.made is not None:
            return len(self.made[0])
        return 2 * self.rows if self.direction == BOTH else self.rows


class DevicePlan:
    """A plan's figures, from the device's report; its windows stay there."""

    def __init__(self, strategy: str, report: list[int]) -> None:
        windows = report[Report.WINDOWS_BY_LAYER : Report.WINDOWS_BY_LAYER + LEVELS]
        layers = max([layer for layer, n in enumerate(windows) if n], default=0) + 1
        self.strategy = strategy
        self.num_touched = report[Report.TOUCHED]
        self.num_windows = report[Report.WINDOWS]  # above the leaves
        self.large_slots = report[Report.LARGE_SLOTS]  # scratch that its large windows need
        self.held_above_leaves = report[Report.HELD_ABOVE]  # after the batch, as by layer
        self.redundant = report[Report.REDUNDANT]
        self.num_rounds = 1 if strategy == TOP_DOWN else layers
        self.windows_by_layer = windows[:layers]
        self.held_by_layer = report[Report.HELD_BY_LAYER : Report.HELD_BY_LAYER + layers]


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
        """The figures that the host goes by."""
        touched, inserted, deleted, markers, loops, largest = self.report[TALLY]
        return Tally(
            touched=touched, delta=inserted - deleted, markers=markers, loops=loops,
            largest=largest - 1, deletions=deleted,
        )  # fmt: skip
