"""The slow backend: lists of slots, one operation at a time, no kernel, no buffer.

It carries out lpma/backend/protocol.py with the paper's words and nothing else. A store is a list
of segments in key order, each a list of slots; a query folds every slot there is. Plans come from
the slow planners of plan_oracles.py. What the others do faster, they must do to the same end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lpma.backend.layout import Size
from lpma.backend.values import (
    BOTH,
    REVERSE,
    Array,
    Committed,
    Costs,
    Implied,
    Tally,
)
from lpma.batch import MAX_VERTEX, Columns, Kind
from lpma.density import bounds
from lpma.errors import BatchError
from lpma.stats import Stats
from lpma.unchanged import REASONS
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
    is to be, or None where it goes. With versions a key has a slot for each operation."""

    staged: SlowBatch
    segments: SlowSegments
    rows: list[tuple[int, int]]  # sorted
    versions: bool
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


class SlowBackend(SlowShapes, SlowReads):
    """See lpma.backend.protocol. It offers no `apply_at_once`."""

    name = "slow"
    validates = False
    costs = Costs(leaf=12.0, window=1.5, rebuild=2.0)
    buffer_bytes = 0

    def __init__(self) -> None:
        self.written = False

    def stages_given(self, rows: int) -> bool:
        return False

    # One batch ---------------------------------------------------------------------------------

    def stage(self, columns: Columns, time: Array, weight_dtype: np.dtype[Any] | None) -> SlowBatch:
        n = len(columns)
        weight = np.ones(n) if columns.weight is None else columns.weight
        times = np.broadcast_to(time, n)
        rows = zip(columns.kind.tolist(), weight.tolist(), times.tolist(), strict=True)
        return SlowBatch([Operation(*row) for row in rows], columns)

    def key_rows(
        self, staged: SlowBatch, columns: Columns, lo: int, hi: int, direction: int,
        implied: Implied | None = None,
    ) -> SlowRows:  # fmt: skip
        keys = []
        for place in range(lo, hi):
            kind, u, v = (int(c[place]) for c in (columns.kind, columns.src, columns.dst))
            if kind <= Kind.DELETE or kind == Kind.EXPIRE:
                ahead, back = u << 32 | v, v << 32 | u
                keys.append((back if direction == REVERSE else ahead, place))
                if direction == BOTH and u != v:
                    keys.append((back, place))
            elif kind < Kind.EDGE and direction != REVERSE:
                keys.append((u << 32 | LOW, place))
        if implied is not None:
            keys += zip(implied[0].tolist(), implied[1].tolist(), strict=True)
        return SlowRows(sorted(keys, key=lambda row: row[1]))

    def locate(
        self, segments: SlowSegments, staged: SlowBatch, rows: SlowRows, versions: bool,
        strategy: str,
    ) -> SlowLocated:  # fmt: skip
        stored = {slot.key: slot for slot in segments.slots if not slot.version}
        by_key: dict[int, list[int]] = {}
        for key, place in sorted(rows.keys):
            by_key.setdefault(key, []).append(place)
        slots: dict[int, dict[int, list[Slot]]] = {}
        unchanged, inserted, delta = [0] * (2 * REASONS), {}, 0
        for key, places in by_key.items():
            before = stored.get(key)
            if versions:
                after = [] if before is None else [before]
                after += [Slot(key, version=1 + place) for place in places]
            else:
                found = None if before is None else (before.weight, before.time)
                state = fold(segments, staged, key, found, places, unchanged)
                after = [] if state is None else [Slot(key, *state)]
            if before is None and not after:
                continue
            delta += len(after) - (before is not None)
            slots.setdefault(segments.rank_of(key), {})[key] = after
            if not versions and (before is None) == bool(after):
                inserted[key] = bool(after)
        tally = tally_of(inserted)._replace(touched=len(slots), delta=delta)
        return SlowLocated(
            staged, segments, sorted(rows.keys), versions, slots, inserted, tally, unchanged
        )

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
            return Committed(located.tally, located.unchanged, changes)
        held = self._moved(segments, plan, located.slots, stats)
        return Committed(
            located.tally, located.unchanged, changes, plan.redundant, plan.num_rounds, held
        )

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

    def reserve_mixed(self, segments: SlowSegments, rows: int, room: int) -> None:
        pass

    def compact(
        self, segments: SlowSegments, located: SlowLocated, strategy: str, stats: Stats,
        most_changes: int,
    ) -> Committed:  # fmt: skip
        unchanged, inserted = [0] * (2 * REASONS), {}
        last: dict[int, int] = {}  # the segment of each key's last slot
        touched = set()
        versioned = {slot.key for slot in segments.slots if slot.version}
        stored = {slot.key: slot for slot in segments.slots if not slot.version}
        for rank, slots in enumerate(segments.filled):
            here = {slot.key for slot in slots} & versioned
            last |= dict.fromkeys(here, rank)
            if here:
                touched.add(rank)
        after: dict[int, list[Slot]] = {}
        for key in versioned:
            places = [
                slot.version - 1 for slot in segments.slots if slot.key == key and slot.version
            ]
            before = stored.get(key)
            found = None if before is None else (before.weight, before.time)
            state = fold(segments, located.staged, key, found, sorted(places), unchanged)
            after[key] = [] if state is None else [Slot(key, *state)]
            if (before is None) == bool(state):
                inserted[key] = bool(state)
        for rank, slots in enumerate(segments.filled):
            kept = [slot for slot in slots if slot.key not in versioned]
            kept += [slot for key, here in last.items() if here == rank for slot in after[key]]
            slots[:] = sorted(kept, key=lambda slot: slot.key)
        segments.recount()
        tally = tally_of(inserted)._replace(touched=len(touched))
        done = Committed(tally, unchanged, changes_of(inserted, most_changes))
        if not touched:
            return done
        changes = dict.fromkeys(sorted(touched), Change(0, True, False))
        plan = self._planned(strategy, segments, changes)
        held = self._moved(segments, plan, {}, stats)
        return done._replace(redundant=plan.redundant, num_rounds=plan.num_rounds, held=held)

    def wait(self) -> None:
        pass

    def trim(self, segments: SlowSegments, staged: SlowBatch) -> None:
        pass


class CountsAhead(SlowBackend):
    """The same with the liberties that a backend may take: planning writes the counts as they will
    be, rows are checked while they are located, and queries inside a batch are answered before it
    is."""

    validates = True

    def sort_beside(self, segments: SlowSegments, staged: SlowBatch, rows: SlowRows) -> None:
        self.beside = tuple(rows.keys)

    def asked(
        self, segments: SlowSegments, staged: SlowBatch, places: Array
    ) -> tuple[Array, Array, Array]:
        return staged.columns.src[places], staged.columns.dst[places], places

    def locate(
        self, segments: SlowSegments, staged: SlowBatch, rows: SlowRows, versions: bool,
        strategy: str,
    ) -> SlowLocated:  # fmt: skip
        columns, self.beside = staged.columns, ()
        if not columns.checked and max(columns.src.max(), columns.dst.max()) > MAX_VERTEX:
            raise BatchError(f"vertex ids go from 0 to {MAX_VERTEX}")
        return super().locate(segments, staged, rows, versions, strategy)

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
