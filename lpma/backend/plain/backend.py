"""The plain backend: the operations of protocol.py, each a few calls of NumPy.

A batch becomes an edit of the sorted array (located.py), its plan new bounds of segments (plan.py).
`reserve` makes both, and `commit` puts them in place of the old ones. What is done without a copy
elsewhere takes time linear in the store here.

W6 and W12 hold for columns, but not for the few numbers a segment that counting and shrinking take.
And a mixed batch cannot be prepared as a whole, since NumPy allocates as it goes: in its stead
`reserve_mixed` sets aside as much memory as the batch may take, and `locate` gives that back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...batch import Columns
from ...stats import Stats
from ..protocol import AnyBackend
from ..values import ON_CPU, Array, Changed, Committed, Implied
from . import located as locating
from .located import KeyRows, Leaves, Located, StagedBatch, tally_of
from .plan import Plan, carried_out, count_windows, planned
from .reads import Reads
from .segments import Segments
from .shapes import Shapes
from .slots import edited

ONE = np.ones(1, np.float32)
ROW_BYTES = 192  # of a key operation while it is sorted, folded and located
SLOT_BYTES = 2 * 28  # of a slot, before and after


class PlainBackend(Shapes, Reads):
    """See lpma.backend.protocol. One instance per store; not thread-safe."""

    name = "plain"
    validates = False
    # Those of the Numba backend, so that stores look alike whichever of the two keeps them.
    costs = ON_CPU

    def __init__(self, successor: Callable[[], AnyBackend | None] = lambda: None) -> None:
        self.successor = successor  # see protocol.Provisional
        self.written = False
        self._set_aside = np.empty(0, np.uint8)

    @property
    def buffer_bytes(self) -> int:
        """0: nothing is kept from batch to batch."""
        return 0

    def stages_given(self, rows: int) -> bool:
        return False

    def stage(
        self, columns: Columns, time: Array, weight_dtype: np.dtype[Any] | None
    ) -> StagedBatch:  # fmt: skip
        given = ONE if columns.weight is None else columns.weight
        weight = given if weight_dtype is None else given.astype(weight_dtype, copy=False)
        return StagedBatch(columns.kind, given, weight, time)

    def key_rows(
        self, staged: StagedBatch, columns: Columns, lo: int, hi: int, direction: int,
        implied: Implied | None = None,
    ) -> KeyRows:  # fmt: skip
        return locating.key_rows(columns, lo, hi, direction, implied)

    def locate(
        self, segments: Segments, staged: StagedBatch, rows: KeyRows, versions: bool, strategy: str
    ) -> Located:
        if versions:
            self._set_aside = self._set_aside[:0].copy()
        return locating.locate(segments, staged, rows, versions)

    def place_on(self, segments: Segments, located: Located) -> None:
        """Segments of 2^m ranks more, of which every 2^m-th was there before."""
        wider = len(segments.fence) // located.ranks
        located.leaves = located.leaves._replace(rank=located.leaves.rank * wider)
        located.ranks = len(segments.fence)

    def plan(self, strategy: str, segments: Segments, located: Located) -> Plan:
        return planned(strategy, segments, located.leaves)

    def rollback(self, located: Located) -> None:
        """Planning writes nothing."""

    def reserve(self, segments: Segments, located: Located, plan: Plan, shrinking: int) -> None:
        slots = edited(segments.slots, located.edit)
        plan.after = (slots, *carried_out(segments, plan, slots.keys))

    def commit(
        self, segments: Segments, located: Located, plan: Plan | None, stats: Stats,
        most_changes: int,
    ) -> Committed:  # fmt: skip
        done = Committed(located.tally, located.unchanged.tolist(), _changes(located, most_changes))
        if plan is None:
            return done
        self.written = True
        assert plan.after is not None, "REQUIRES: reserve"
        segments.publish(*plan.after)
        held = count_windows(plan, segments.starts, stats)
        return done._replace(redundant=plan.redundant, num_rounds=plan.num_rounds, held=held)

    def reserve_mixed(self, segments: Segments, rows: int, room: int) -> None:
        slots = segments.num_slots + rows
        self._set_aside = np.empty(SLOT_BYTES * slots + ROW_BYTES * room, np.uint8)

    def compact(
        self, segments: Segments, located: Located, strategy: str, stats: Stats, most_changes: int
    ) -> Committed:  # fmt: skip
        """The last slot of each key that has versions stays, where it is, unless it says that the
        key is absent."""
        self.written = True
        slots, starts = segments.slots, segments.starts
        assert slots.marks is not None
        first = np.append(True, slots.keys[1:] != slots.keys[:-1])[: len(slots.keys)]
        key_number = np.cumsum(first) - 1
        has_versions = np.bincount(key_number, slots.marks != 0) > 0
        stays = np.append(first[1:], True)[: len(first)] & (slots.marks >= 0)
        touched = np.flatnonzero(has_versions[key_number])
        ranks = np.unique(np.searchsorted(starts, touched, "right") - 1)
        kept = slots.where(stays)._replace(marks=None)
        segments.publish(kept, np.append(0, np.cumsum(stays))[starts], segments.fence)
        tally = tally_of(located.keys, located.inserted)._replace(touched=len(ranks))
        changes = _changes(located, most_changes)
        done = Committed(tally, located.unchanged.tolist(), changes)
        if not len(ranks):
            return done
        none = np.zeros(len(ranks), np.bool_)
        plan = planned(strategy, segments, Leaves(ranks, none.astype(np.int64), ~none, none))
        segments.publish(kept, *carried_out(segments, plan, kept.keys))
        held = count_windows(plan, segments.starts, stats)
        return done._replace(redundant=plan.redundant, num_rounds=plan.num_rounds, held=held)

    def wait(self) -> None:
        """Every method returns when its work is done."""

    def trim(self, segments: Segments, staged: StagedBatch) -> None:
        """Nothing is kept."""


def _changes(located: Located, most: int) -> Changed:
    return (located.keys, located.inserted) if len(located.keys) <= most else None
