"""The slow backend: lists of slots, one operation at a time, no kernel, no buffer.

It carries out lpma/backend/protocol.py with the paper's words and nothing else. A store is a list
of segments in key order, each a list of slots; a query folds every slot there is. Plans come from
the slow planners of plan_oracles.py. What the others do faster, they must do to the same end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lpma.backend.defaults import Defaults
from lpma.backend.values import (
    BOTH,
    REVERSE,
    Array,
    Committed,
    Costs,
    Implied,
    Tally,
)
from lpma.batch.columns import MAX_VERTEX, Columns, Kind
from lpma.errors import BatchError
from lpma.pma.counters import REASONS, Stats
from lpma.pma.density import bounds
from lpma.pma.layout import Size
from tests.support.plan_oracles import (
    Case,
    Change,
    Planned,
    bottom_up,
    carry_out,
    redundant,
    top_down,
)
from tests.support.slow_reads import SlowReads
from tests.support.slow_shapes import SlowShapes
from tests.support.slow_store import (
    LOW,
    Operation,
    Slot,
    SlowBatch,
    SlowRows,
    SlowSegments,
    applied,
    changes_of,
    fold,
    tally_of,
)


@dataclass
class SlowLocated:
    """`slots` says, for each rank that is touched, what becomes of keys there: the slot that there
    is to be, or none where it goes."""

    staged: SlowBatch
    segments: SlowSegments
    rows: list[tuple[int, int]]  # sorted
    slots: dict[int, dict[int, list[Slot]]]
    inserted: dict[int, bool]  # the keys that come or go
    tally: Tally
    unchanged: list[int]


@dataclass(frozen=True)
class SlowPlan:
    case: Case
    rounds: list[list[Planned]]

    @property
    def held_above_leaves(self) -> int:
        windows = [(layer, j) for r in self.rounds for layer, j, _ in r if layer]
        return sum(self.case.total(window) for window in windows)

    @property
    def redundant(self) -> int:
        return redundant(carry_out(self.case, self.rounds)[1])

    @property
    def num_rounds(self) -> int:
        return len(self.rounds)


class SlowBackend(SlowShapes, SlowReads, Defaults):
    """See lpma.backend.protocol. It does nothing better than it must."""

    name = "slow"
    validates = False
    costs = Costs(leaf=12.0, window=1.5, rebuild=2.0)
    buffer_bytes = 0

    def __init__(self) -> None:
        self.written = False

    def stages_unvalidated(self, rows: int) -> bool:
        return False

    # One batch ---------------------------------------------------------------------------------

    def stage(self, columns: Columns, time: Array, weight_dtype: np.dtype[Any] | None) -> SlowBatch:
        n = len(columns)
        weight = np.ones(n) if columns.weight is None else columns.weight
        times = np.broadcast_to(time, n)
        rows = zip(columns.kind.tolist(), weight.tolist(), times.tolist(), strict=True)
        return SlowBatch([Operation(*row) for row in rows], columns)

    def key_rows(
        self, staged: SlowBatch, columns: Columns, direction: int, implied: Implied | None = None
    ) -> SlowRows:
        keys = []
        for place in range(len(columns)):
            kind, u, v = (int(c[place]) for c in (columns.kind, columns.src, columns.dst))
            if kind in (Kind.INSERT, Kind.SET, Kind.DELETE, Kind.EXPIRE):
                ahead, back = u << 32 | v, v << 32 | u
                keys.append((back if direction == REVERSE else ahead, place))
                if direction == BOTH and u != v:
                    keys.append((back, place))
            elif kind in (Kind.ADD_VERTEX, Kind.REMOVE_VERTEX) and direction != REVERSE:
                keys.append((u << 32 | LOW, place))
        if implied is not None:
            keys += zip(implied[0].tolist(), implied[1].tolist(), strict=True)
        return SlowRows(sorted(keys, key=lambda row: row[1]))

    def sort_beside(self, segments: SlowSegments, staged: SlowBatch, rows: SlowRows) -> None:
        self.beside = tuple(rows.keys)

    def asked(
        self, segments: SlowSegments, staged: SlowBatch, columns: Columns, places: Array
    ) -> tuple[Array, Array, Array]:
        return columns.src[places], columns.dst[places], places

    def locate(
        self, segments: SlowSegments, staged: SlowBatch, rows: SlowRows, strategy: str
    ) -> SlowLocated:
        self.beside = ()
        stored = {slot.key: slot for slot in segments.slots}
        by_key: dict[int, list[int]] = {}
        for key, place in sorted(rows.keys):
            by_key.setdefault(key, []).append(place)
        slots: dict[int, dict[int, list[Slot]]] = {}
        unchanged, inserted, delta = [0] * (2 * REASONS), {}, 0
        for key, places in by_key.items():
            before = stored.get(key)
            found = None if before is None else (before.weight, before.time)
            state = fold(segments, staged, key, found, places, unchanged)
            after = [] if state is None else [Slot(key, *state)]
            if before is None and not after:
                continue
            delta += len(after) - (before is not None)
            slots.setdefault(segments.rank_of(key), {})[key] = after
            if (before is None) == bool(after):
                inserted[key] = bool(after)
        tally = tally_of(inserted)
        tally.touched, tally.delta = len(slots), delta
        return SlowLocated(staged, segments, sorted(rows.keys), slots, inserted, tally, unchanged)

    def place_on(self, segments: SlowSegments, located: SlowLocated) -> None:
        levels = segments.m - located.segments.m
        located.slots = {rank << levels: slots for rank, slots in located.slots.items()}
        located.segments = segments

    def plan(
        self, strategy: str, segments: SlowSegments, located: SlowLocated
    ) -> SlowPlan:  # fmt: skip
        assert located.segments is segments
        changes = {}
        for rank, slots in located.slots.items():
            before = {slot.key for slot in segments.filled[rank]}
            came = sum(len(after) - (key in before) for key, after in slots.items())
            gone = any(not after for after in slots.values())
            moved = any(len(after) != (key in before) for key, after in slots.items())
            changes[rank] = Change(came, gone, moved)
        return self._planned(strategy, segments, changes)

    def _planned(
        self, strategy: str, segments: SlowSegments, changes: dict[int, Change]
    ) -> SlowPlan:
        most, least = (tuple(b.tolist()) for b in bounds(segments.m, segments.segment_size))
        leaves = tuple(segments.counts[1 << segments.m :].tolist())
        missing = frozenset(r for r in range(1 << segments.m) if not segments.is_there(r))
        case = Case(segments.segment_size, leaves, changes, most, least, missing)
        return SlowPlan(case, (top_down if strategy == "top-down" else bottom_up)(case))

    def rollback(self, located: SlowLocated) -> None:
        pass

    def reserve(
        self, segments: SlowSegments, located: SlowLocated, plan: SlowPlan, shrinking: int
    ) -> None:
        pass

    def rebuild(self, segments: SlowSegments, located: SlowLocated, size: Size) -> SlowSegments:
        assert located.segments is segments
        after = [
            slot
            for rank, slots in enumerate(segments.filled)
            for slot in applied(slots, located.slots.get(rank, {}))
        ]
        return self._spread_over(segments, after, size)

    def commit(
        self, segments: SlowSegments, located: SlowLocated, plan: SlowPlan | None, stats: Stats,
        most_changes: int,
    ) -> Committed:  # fmt: skip
        changes = changes_of(located.inserted, most_changes)
        if plan is None:
            return Committed(tally=located.tally, unchanged=located.unchanged, changes=changes)
        held = self._moved(segments, plan, located.slots, stats)
        return Committed(
            tally=located.tally, unchanged=located.unchanged, changes=changes,
            redundant=plan.redundant, num_rounds=plan.num_rounds, held=held,
        )  # fmt: skip

    def _moved(
        self, segments: SlowSegments, plan: SlowPlan, slots: dict[int, dict[int, list[Slot]]],
        stats: Stats,
    ) -> int:  # fmt: skip
        """Carry out a plan, and note its windows. Returns the edges that they hold."""
        self.written = True
        moved = []
        for layer, j, members in (window for r in plan.rounds for window in r):
            first, n = j << layer, 1 << layer
            for rank in members:
                segments.filled[rank][:] = applied(segments.filled[rank], slots.get(rank, {}))
            if layer:
                held = [slot for slots in segments.filled[first : first + n] for slot in slots]
                segments.spread(held, first, n)
            if layer or plan.case.changes[j].moved:
                moved.append((layer, (1 << (segments.m - layer)) + j))
        segments.recount()
        for layer, window in moved:
            stats.rebalances_by_layer[layer] += 1
            stats.segments_by_layer[layer] += 1 << layer
            stats.slots_by_layer[layer] += segments.counts[window]
        return sum(int(segments.counts[window]) for _, window in moved)

    def wait(self) -> None:
        pass

    def trim(self, segments: SlowSegments, staged: SlowBatch) -> None:
        pass


class CountsAhead(SlowBackend):
    """The same with the liberties that a backend may take: planning writes the counts as they will
    be, and rows are checked while they are located."""

    validates = True

    def locate(
        self, segments: SlowSegments, staged: SlowBatch, rows: SlowRows, strategy: str
    ) -> SlowLocated:
        columns = staged.columns
        if not columns.checked and max(columns.src.max(), columns.dst.max()) > MAX_VERTEX:
            raise BatchError(f"vertex ids go from 0 to {MAX_VERTEX}")
        return super().locate(segments, staged, rows, strategy)

    def plan(
        self, strategy: str, segments: SlowSegments, located: SlowLocated
    ) -> SlowPlan:  # fmt: skip
        self.rollback(located)
        plan = super().plan(strategy, segments, located)
        located.__dict__["before"] = segments, segments.counts.copy(), self.written
        self.written = True
        for rank, change in plan.case.changes.items():
            window = (1 << segments.m) + rank
            while window:
                segments.counts[window] += change.delta
                window >>= 1
        return plan

    def rollback(self, located: SlowLocated) -> None:
        before = located.__dict__.pop("before", None)
        if before is not None:
            segments, counts, self.written = before
            segments.counts[:] = counts
