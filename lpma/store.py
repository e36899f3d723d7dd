"""LPMA, the leveled packed-memory array: a sorted set of keys in segments with gaps.

Source: Zou, Zhang, Lin, Yu, "An Efficient Data Structure for Dynamic Graph on GPUs", TKDE 2023,
Sections III to V. Segments are spread over levels, each its own allocation; read in rank order
(layout.py) they are one sorted array. A batch is located, then planned by a strategy
(rebalance/), then moved. Growing appends a level: every segment gets an empty neighbour and no
edge moves. Shrinking merges the last level into the others, pair by pair.

A batch is applied in two steps. `prepare` sorts, locates, plans and allocates, and writes to
nothing that is published; `commit` moves, and cannot fail. A global merge is prepared whole.

This module is the host's part and knows no device; arrays belong to the backend.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .backend.protocol import Backend
from .density import bounds
from .errors import StoreTooLarge
from .history import MAX_KEYS
from .hybrid import Hybrid
from .stats import Stats
from .unchanged import REASONS

Array = npt.NDArray[Any]
Changed = tuple[Array, Array] | None  # (keys, inserted) of edges; None: not known

STRATEGIES = ("hybrid", "bottom-up", "top-down")


@dataclass(frozen=True)
class Prepared:
    """A batch ready to be committed. `plan` is None where nothing is left to move."""

    segments: Any
    located: Any
    plan: Any
    strategy: str
    density: float
    expansions: int
    merged: bool  # a global merge, already in `segments`
    seconds: float


class LPMA:
    """A sorted store of (key, weight, time), changed by one batch at a time.

    Invariants, which `lpma.check` verifies and tests cite by number:
    1. Keys strictly rise in rank order over the filled slots; inside a mixed batch (key, seq)
       does.
    2. Each segment is packed left; its count is right, and every window's count equals the sum
       of its halves'.
    3. Fences never fall in rank order, and every filled slot's key lies in its segment's range:
       from its fence up to, not including, the next segment's.
    4. After a batch every rebalanced window is within the bounds that bind it (density.py; the
       upper where its count grew, the lower where something was deleted), and the root within
       both; under top-down every window on its path too.
    5. `num_slots`, `num_markers`, `num_loops` and the columns agree.
    6. (kept by Graph) The version rises by one a batch; a snapshot's never changes.
    7. A batch that cannot be prepared leaves all of this as it was.

    Not for two threads at once; Graph sees to that.
    """

    def __init__(
        self,
        backend: Backend,
        segment_size: int,
        weight_dtype: np.dtype[Any] | None,
        times: bool,
        strategy: str,
        global_merge: str,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        # Immutable after construction.
        self.backend = backend
        self.segment_size = segment_size
        self.strategy = strategy
        self.global_merge = global_merge
        self.slot_bytes = 8 + (weight_dtype.itemsize if weight_dtype else 0) + (8 if times else 0)
        self._clock = clock
        # Changed only by commit, the version phase, and load.
        self.segments = backend.empty(segment_size, weight_dtype, times)
        self.num_markers = 0
        self.num_loops = 0
        self.largest: int | None = -1  # largest vertex id; None: to be scanned for
        self.stats = Stats()
        self.unchanged = np.zeros(2 * REASONS, np.int64)  # totals, see unchanged.py
        self.last_plan: Callable[[], Any] = lambda: None  # until the next batch is located
        self.hybrid = Hybrid()
        self.written = False  # what is here is of no whole batch, until `Stores.settle`

    @property
    def num_slots(self) -> int:
        return int(self.segments.num_slots)

    @property
    def density(self) -> float:
        """Filled slots over slots."""
        return self.num_slots / (self.segment_size << self.segments.m)

    @property
    def nbytes(self) -> int:
        """Bytes of the levels, the tree and the buffers."""
        return int(self.segments.nbytes) + self.backend.buffer_bytes

    # -- updates ------------------------------------------------------------------------------

    def merge(self, columns: Any, batch: Any, direction: int) -> Changed:
        """Apply a batch of edge updates and end it, where no other store has to be prepared before
        this one is written. Returns its `changes`."""
        started = self._clock()
        operations, held = len(columns.src), self.segments.num_slots
        density = held / (self.segment_size << self.segments.m)
        strategy = self.strategy_at(density)
        merged, located = self.backend.merge_small(
            self.segments, batch, columns, direction, strategy,
            self._merge_cost(held, operations), self.stats,
        )  # fmt: skip
        if merged is not None:
            self._merged(merged, operations, strategy, density, started)
            return merged.changes
        rows = operations
        if located is None:
            keys, places = self.backend.keys(batch, columns, 0, operations, direction)
            rows = len(keys)
            located = self.backend.locate(self.segments, batch, keys, places, False, strategy)
        prepared = self._planned(located, rows, strategy, density, started)
        self.commit(prepared, operations)
        changes = self.changes(prepared.located)
        self.end_batch(batch)
        return changes

    def _merged(
        self, merged: Any, operations: int, strategy: str, density: float, started: float
    ) -> None:
        """Account for a small batch that the backend has located, planned and moved at once."""
        stats, self.last_plan = self.stats, merged.plan
        stats.count_plan(merged, merged.held, self.slot_bytes)
        self._account(merged)
        seconds = self._clock() - started
        stats.operations += operations
        stats.seconds += seconds
        if self.strategy == "hybrid":
            self.hybrid.record(strategy, density, seconds / operations)

    def prepare(
        self,
        batch: Any,
        keys: Any,
        places: Any,
        versions: bool = False,
    ) -> Prepared:
        """Everything of a batch that can fail. `batch` is the backend's view of the batch's
        columns; keys and places are its `keys`, and may be overwritten. Inside a mixed batch
        nothing is rebuilt: `make_room` has allocated all that it needs. What is prepared must be
        committed or given up (`abandon`) before another batch."""
        started, density = self._clock(), self.density
        strategy = self.strategy_at(density)
        located = self.backend.locate(self.segments, batch, keys, places, versions, strategy)
        return self._planned(located, len(keys), strategy, density, started)

    def _planned(
        self, located: Any, rows: int, strategy: str, density: float, started: float
    ) -> Prepared:
        """A located batch of `rows` key operations, prepared by that strategy or by a merge."""
        segments = self.segments
        if located.num_touched == 0:
            spent = self._clock() - started
            return Prepared(segments, located, None, strategy, density, 0, False, spent)
        total = segments.num_slots + located.delta
        most_cost = self._merge_cost(self.num_slots, rows)
        leaves = self.backend.costs.leaf * located.num_touched
        if leaves > most_cost:
            return self._prepare_merge(located, total, strategy, density, started)
        m = self._levels_for(total, segments.m) if located.delta > 0 else segments.m
        while segments.m < m:
            segments = self.backend.expand(segments)
        expansions = segments.m - self.segments.m
        located = located.on_expanded(expansions)
        plan = self.backend.plan(strategy, segments, located)
        windows = self.backend.costs.window * self.backend.held_above_leaves(plan, segments)
        if leaves + windows > most_cost:
            located = located.on_expanded(-expansions)
            return self._prepare_merge(located, total, strategy, density, started)
        shrinking = total if self._will_shrink(segments.m, total) else 0
        self.backend.reserve(segments, located, plan, shrinking)
        spent = self._clock() - started
        return Prepared(segments, located, plan, strategy, density, expansions, False, spent)

    def _most(self, m: int) -> int:
        return int(bounds(m, self.segment_size)[0][m])

    def _levels_for(self, total: int, m: int) -> int:
        """The least number of levels, from m on, whose root has room for `total` slots. Raises
        StoreTooLarge where the backend cannot number so many segments."""
        while total > self._most(m):
            m += 1
        most = self.backend.most_levels(self.segment_size)
        if m > most:
            raise StoreTooLarge(
                f"{total:,} filled slots need 2^{m} segments of {self.segment_size}, and a store "
                f"on this device has up to 2^{most}: nothing is changed; {self.backend.way_out}"
            )
        return m

    def _will_shrink(self, m: int, total: int) -> bool:
        return m > 0 and total < int(bounds(m, self.segment_size)[1][m])

    def _merge_cost(self, held: int, rows: int) -> float:
        """What moving windows may cost before global_merge="auto" merges the whole store, which
        holds `held` edges. A batch larger than that is merged globally in any case: it is a load.
        Inside a mixed batch nothing is."""
        if self.global_merge != "auto" or self.segments.seqs is not None:
            return math.inf
        return -1.0 if rows > held else self.backend.costs.merge * (held + rows)

    def abandon(self, prepared: Prepared) -> None:
        """Give up a prepared batch: the store is as it was."""
        self.backend.withdraw(prepared.located)

    def _prepare_merge(
        self, located: Any, total: int, strategy: str, density: float, started: float
    ) -> Prepared:
        m = self._levels_for(total, self.segments.m)
        while m and total < bounds(m, self.segment_size)[1][m]:
            m -= 1
        merged = self.backend.rebuild(self.segments, located, m)
        spent = self._clock() - started
        grown = max(0, m - self.segments.m)
        return Prepared(merged, located, None, strategy, density, grown, True, spent)

    def commit(self, prepared: Prepared, operations: int, may_shrink: bool = True) -> None:
        """Publish a prepared batch of `operations` rows. Cannot fail."""
        started = self._clock()
        self.written = True
        located, plan = prepared.located, prepared.plan
        shrinks = max(0, self.segments.m - prepared.segments.m)
        self.segments = prepared.segments
        self.last_plan = lambda: plan
        stats = self.stats
        if plan is not None:
            self.backend.move(self.segments, located, plan)
            self._count(plan, located)
        if prepared.merged:
            stats.global_merges += 1
            stats.bytes_moved += 2 * self.slot_bytes * self.num_slots
        if not located.versions:
            self._account(located)
        if may_shrink and not located.versions:
            shrinks += self._shrink()
        stats.expansions += prepared.expansions
        stats.shrinks += shrinks
        stats.operations += operations
        seconds = prepared.seconds + self._clock() - started
        stats.seconds += seconds
        if prepared.expansions or shrinks:
            self.hybrid.start_cycle()
        elif operations and plan is not None and self.strategy == "hybrid":
            self.hybrid.record(prepared.strategy, prepared.density, seconds / operations)

    def _account(self, moved: Any) -> None:
        """Invariant 5, from what locating found; and the operations that changed nothing."""
        if any(moved.unchanged):
            self.unchanged += moved.unchanged
        _, _, markers, loops, largest, deletions = map(int, moved.tally[:6])
        self.num_markers += markers
        self.num_loops += loops
        if deletions:
            self.largest = None
        elif self.largest is not None:
            self.largest = max(self.largest, largest)

    def _count(self, plan: Any, located: Any) -> None:
        held = self.backend.count_work(plan, located, self.segments, self.stats)
        self.stats.count_plan(plan, held, self.slot_bytes)

    def _shrink(self) -> int:
        """Drop last levels while the root is under its lower bound."""
        dropped = 0
        while True:
            m = self.segments.m
            if not self._will_shrink(m, self.num_slots):
                return dropped
            most, _ = bounds(m - 1, self.segment_size)
            self.segments, rebalanced = self.backend.shrink(self.segments, most)
            layers = np.arange(len(rebalanced))
            self.stats.rebalances_by_layer[: len(rebalanced)] += rebalanced
            self.stats.segments_by_layer[: len(rebalanced)] += rebalanced << layers
            dropped += 1

    # -- a mixed batch (opera.py) ---------------------------------------------------------------

    def make_room(self, rows: int, room: int) -> None:
        """Allocate for a mixed batch of `rows` key operations, as if all were inserts: levels,
        the column that marks versions, buffers (for the keys, of `room` rows). Until `compact`,
        (key, seq) is what rises."""
        segments = self.segments
        m = self._levels_for(segments.num_slots + rows, segments.m)
        while segments.m < m:
            segments = self.backend.expand(segments)
        segments = segments.with_seqs()
        self.backend.reserve_mixed(segments, rows, room)
        self.written = True
        self.segments = segments

    def make_no_room(self, before: Any) -> None:
        """Take back what `make_room` did: expanding moved nothing, so this is what was."""
        self.segments = before
        self.written = False

    def made_room(self, before: Any) -> None:
        """Note the levels that `make_room` added to the segments of before the batch."""
        if self.segments.m > before.m:
            self.stats.expansions += self.segments.m - before.m
            self.hybrid.start_cycle()

    def compact(self, located: Any) -> Any:
        """End a mixed batch: fold the versions that `located` put in. Returns what remained of
        them, located."""
        started = self._clock()
        strategy = self.strategy_at(self.density)
        final = self.backend.compact(self.segments, located, strategy)
        if final.num_touched:
            plan = self.backend.plan(strategy, self.segments, final)
            self.backend.move(self.segments, final, plan)
            self._count(plan, final)
        self.segments = self.segments.without_seqs()
        self._account(final)
        shrinks = self._shrink()
        self.stats.shrinks += shrinks
        self.stats.seconds += self._clock() - started
        if shrinks:
            self.hybrid.start_cycle()
        return final

    def end_batch(self, batch: Any) -> None:
        """Give back buffers out of proportion to the store. What was located is gone then."""
        self.backend.trim(self.segments, batch)

    def changes(self, located: Any) -> Changed:
        """See Backend.changes. The history may forget; the batch is applied and may not fail."""
        try:
            changed: Changed = self.backend.changes(located, MAX_KEYS)
        except MemoryError:
            return None
        return changed

    def strategy_at(self, density: float) -> str:
        """What rebalances a batch that finds the store so dense."""
        return self.strategy if self.strategy != "hybrid" else self.hybrid.choose(density)

    # -- whole contents -------------------------------------------------------------------------

    def build(self, keys: Array, weights: Array | None, times: Array | None) -> Any:
        """Segments that hold whole columns, keys strictly rising, for `load`."""
        m = self._levels_for(len(keys), 0)
        return self.backend.build(self.segment_size, m, keys, weights, times)

    def load(self, segments: Any, keys: Array) -> None:
        """Replace the contents by what `build` made of these keys."""
        self.written = True
        low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
        self.segments = segments
        self.num_markers = int(np.count_nonzero(keys & low == low))
        self.num_loops = int(np.count_nonzero(keys & low == keys >> half))
        self.largest = None

    def largest_vertex(self) -> int:
        """The largest id that an edge or a marker has, -1 for none."""
        if self.largest is None:
            self.largest = self.backend.largest_vertex(self.segments)
        return self.largest
