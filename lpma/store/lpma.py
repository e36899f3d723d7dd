"""LPMA, the leveled packed-memory array: a sorted set of keys in segments with gaps.

Source: Zou, Zhang, Lin, Yu, "An Efficient Data Structure for Dynamic Graph on GPUs", TKDE 2023,
Sections III to V. Segments are spread over levels, each its own allocation; read in rank order
(layout.py) they are one sorted array. A batch is located, then planned by a strategy
(numba/rebalance/, cuda/kernels/choose.cuh), then moved. Growing appends a level, or a part of one
(sizing.py), and no edge moves; later batches spread them (growth.py). Shrinking merges the last
level into the others, pair by pair.

A batch is applied in two steps, by `apply` in both. `prepare` sorts, locates, plans and allocates,
and publishes nothing; `commit` moves, and cannot fail. A global merge is done in `prepare`.

This module is the host's part and knows nothing of devices; arrays belong to the backend, and what
crosses the seam between the two is in backend/protocol.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from ..backend import overlapping
from ..backend.protocol import AnyBackend
from ..backend.values import (
    KEYS_A_ROW,
    MAX_CHANGES,
    Array,
    Changed,
    Committed,
    KeyRows,
    Located,
    Plan,
    Segments,
    SlotSource,
    StagedBatch,
)
from ..batch.columns import Columns
from ..errors import BatchError, OutOfMemory
from ..pma.counters import REASONS, Stats
from ..pma.density import bounds, root_bounds
from ..pma.layout import NOTHING, Size
from ..pma.strategy import Hybrid
from . import pending as overlap
from .growth import Growth
from .pending import PendingBatch
from .sizing import Sizing


@dataclass(frozen=True)
class Prepared:
    """A batch ready to be committed. `plan` is None where nothing is left to move."""

    segments: Segments  # to be published
    located: Located
    plan: Plan | None
    strategy: str
    density: float  # of the store before the batch
    expansions: int
    rebuilt: bool  # by a global merge: `segments` already holds the batch
    seconds: float


class LPMA:
    """A sorted store of (key, weight, time), changed by one batch at a time.

    Invariants, which `lpma.engine.check` verifies and tests cite by number:
    1. Keys strictly rise in rank order over the filled slots.
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

    Not thread-safe: Graph lets in one thread at a time.
    """

    def __init__(
        self, backend: AnyBackend, segment_size: int, weight_dtype: np.dtype[Any] | None,
        times: bool, strategy: str, global_merge: str,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:  # fmt: skip
        # Immutable after construction.
        self.segment_size, self.weight_dtype, self.has_times = segment_size, weight_dtype, times
        self.strategy, self.global_merge, self.clock = strategy, global_merge, clock
        self.slot_bytes = 8 + (weight_dtype.itemsize if weight_dtype else 0) + (8 if times else 0)
        self.use(backend)
        # Changed by apply, commit and load, and by Stores, which counts batches.
        self.segments = backend.empty(segment_size, weight_dtype, times)
        self.num_markers = self.num_loops = 0
        self.largest: int | None = -1  # largest vertex id; None: found by a scan when needed
        self.counters = Stats()  # to be read as `stats`
        self.unchanged = np.zeros(2 * REASONS, np.int64)  # totals, see counters.py
        self.hybrid = self.new_hybrid()
        self.pending: PendingBatch | None = None  # see pending.py
        self.written = False  # True: a batch may be half applied, until `Stores.settle`

    def use(self, backend: AnyBackend) -> None:
        """Have a backend keep the store. The segments must be its own: see Stores.move_on."""
        self.backend = backend
        self.sizing = Sizing(backend, self.segment_size, self.global_merge)
        self.growth = Growth(backend)

    def new_hybrid(self) -> Hybrid:
        """What chooses the strategies, with nothing learnt yet."""
        return Hybrid(None if self.strategy == "hybrid" else self.strategy)

    @property
    def num_slots(self) -> int:
        return self.segments.num_slots

    @property
    def density(self) -> float:
        """The share of slots that are filled."""
        segments = self.segments
        return segments.num_slots / segments.room

    @property
    def stats(self) -> Stats:
        """The counters, as a copy where a device counts, too: to read them changes nothing."""
        if not self.backend.overlaps:
            return self.counters
        stats, backend = self.counters.added(Stats()), self.backend
        cast(overlapping.Overlapping, backend).count(stats)
        return stats

    @property
    def nbytes(self) -> int:
        """Bytes of the levels, the tree and the buffers."""
        return self.segments.nbytes + self.backend.buffer_bytes

    # -- updates ------------------------------------------------------------------------------

    def apply(self, columns: Columns, time: Array, direction: int) -> Changed | PendingBatch:
        """Apply a batch of edge updates to the only store. time: int64[n], or one for all rows.
        Returns its changes, or the batch if it is on its way: see pending.py. Raises BatchError."""
        backend: Any = self.backend  # an overlapping.Overlapping, where it `overlaps`
        operations = len(columns.kind)
        rows = operations * KEYS_A_ROW[direction]  # key operations, loops apart
        if not backend.overlaps:
            return self._apply_alone(columns, time, direction, rows)
        if self.growth.due:
            self.growth.before(self, rows)
        segments, pending, hybrid = self.segments, self.pending, self.hybrid
        slots, change = segments.num_slots, rows + (pending.rows if pending else 0)
        most, least = root_bounds(segments.size, segments.segment_size)
        launched = None
        if (  # the store keeps its levels and its strategy, whatever is pending
            0 < rows <= overlapping.ONE_LAUNCH_ROWS
            and slots >= overlap.SHARE * rows
            and slots + change <= most
            and (slots - change >= least or not segments.size.m)
            and (hybrid.settled or (slots + change) / segments.room <= hybrid.pi)
            and not columns.on_device
        ):
            started, strategy = self.clock(), hybrid.steady
            how = rows, direction, strategy, self.sizing.most_cost(segments, rows)
            launched = backend.launch(segments, columns, time, *how, is_behind=pending is not None)
        if launched is None:
            self.finish_pending()
            return self._apply_alone(columns, time, direction, rows)
        if pending is not None and not self.finish_pending():  # the device skipped this batch
            launched = backend.launch(self.segments, columns, time, *how, again=launched)
        self.written = True  # in time: whoever is cut off from here on leaves a batch on its way
        try:
            backend.await_good(launched)
        except BatchError:  # the device refused it
            self.written = False
            raise
        density, seconds = slots / segments.room, self.clock() - started
        self.pending = PendingBatch(
            launched=launched, operations=operations, rows=rows, strategy=strategy,
            density=density, seconds=seconds,
        )  # fmt: skip
        return self.pending

    def _apply_alone(self, columns: Columns, time: Array, direction: int, rows: int) -> Changed:
        """Apply a batch whose outcome is waited for."""
        backend, dtype = self.backend, self.weight_dtype
        started, operations, density = self.clock(), len(columns.kind), self.density
        strategy = self.hybrid.choose(density)
        located: Any = backend.apply_at_once(
            self.segments, columns, time, dtype, direction, strategy,
            self.sizing.most_cost(self.segments, rows), self.counters,
        )  # fmt: skip
        if isinstance(located, Committed):
            moved = located.num_rounds > 0
            if moved and backend.overlaps and self.hybrid.compares(density):
                backend.wait()  # what is compared is all of a batch's time
            seconds = self.clock() - started
            self.account(located, operations, seconds)
            if moved:
                self.hybrid.record(strategy, density, seconds / operations)
            return located.changes
        if located is not None:
            staged = located.staged
        else:
            staged = backend.stage(columns, time, dtype)
            keys = backend.key_rows(staged, columns, direction)
            rows = len(keys)
            located = backend.locate(self.segments, staged, keys, strategy)
        prepared = self.prepared(located, rows, strategy, density, started)
        changes = self.commit(prepared, operations).changes
        self.end_batch(staged)
        return changes

    def finish_pending(self) -> bool:
        """Learn what the batch on its way came to, if there is one, and count it. Returns False if
        the device declined it, and it was applied here. If this fails, the store is `written`."""
        pending = self.pending
        if pending is None:
            return True
        backend: Any = self.backend
        started = self.clock()
        try:
            self.pending = None
            done: Any = backend.outcome(pending.launched)
            is_applied = isinstance(done, Committed)
            if is_applied:
                self.account(done, pending.operations, pending.seconds)
            else:
                strategy, density = pending.strategy, pending.density
                prepared = self.prepared(done, pending.rows, strategy, density, started)
                done = self.commit(prepared, pending.operations)
                self.end_batch(pending.launched.staged)
                self.written = backend.written = False
            assert pending.history is not None
            pending.history.add(pending.version, done.changes)
        except BaseException as error:
            self.written = True  # an accepted batch is missing
            if isinstance(error, MemoryError):
                raise OutOfMemory(
                    f"for the batch that led to version {pending.version} ({error})"
                ) from error
            raise
        return is_applied

    def prepare(self, staged: StagedBatch, rows: KeyRows) -> Prepared:
        """Do all of a batch that can fail; commit it or roll it back before another one."""
        started, density = self.clock(), self.density
        strategy = self.hybrid.choose(density)
        located = self.backend.locate(self.segments, staged, rows, strategy)
        return self.prepared(located, len(rows), strategy, density, started)

    def prepared(
        self, located: Located, rows: int, strategy: str, density: float, started: float
    ) -> Prepared:
        """Prepare a located batch of `rows` key operations: planned by that strategy, or
        rebuilt."""
        try:
            segments, plan, rebuilt = self._plan(located, rows, strategy)
        except BaseException:
            self.backend.rollback(located)
            raise
        expansions = self.sizing.steps(self.segments.size, segments.size)
        spent = self.clock() - started
        return Prepared(segments, located, plan, strategy, density, expansions, rebuilt, spent)

    def _plan(
        self, located: Located, rows: int, strategy: str
    ) -> tuple[Segments, Plan | None, bool]:
        """(the segments to publish, the plan to carry out on them, whether they are rebuilt)."""
        segments, tally, sizing = self.segments, located.tally, self.sizing
        if tally.touched == 0:
            return segments, None, False
        total, most_cost = segments.num_slots + tally.delta, sizing.most_cost(segments, rows)
        rebuilt = sizing.cost(tally, 0) > most_cost
        if not rebuilt:
            if tally.delta > 0 and (size := sizing.size_for(total, segments.size)) > segments.size:
                segments = self.expanded(size)
                self.backend.place_on(segments, located)
            plan = self.backend.plan(strategy, segments, located)
            rebuilt = sizing.cost(tally, plan.held_above_leaves) > most_cost
        if rebuilt:
            size = sizing.size_rebuilt(total, self.segments.size)
            return self.backend.rebuild(segments, located, size), None, True
        shrinking = total if sizing.is_too_empty(total, segments.size) else 0
        self.backend.reserve(segments, located, plan, shrinking)
        return segments, plan, False

    def expanded(self, size: Size) -> Segments:
        """The segments, grown to that size, not published."""
        segments = self.segments
        while (held := segments.size) < size:
            segments = self.backend.expand(segments, self.sizing.larger(held))
        return segments

    def commit(
        self, prepared: Prepared, operations: int, most_changes: int = MAX_CHANGES
    ) -> Committed:
        """Publish a prepared batch of `operations` rows. Cannot fail."""
        started = self.clock()
        self.written = True
        located, stats = prepared.located, self.counters
        shrinks = max(0, self.segments.m - prepared.segments.m)
        stats.note_levels(prepared.expansions, shrinks)
        self.segments = prepared.segments
        committed = self.backend.commit(self.segments, located, prepared.plan, stats, most_changes)
        if prepared.rebuilt:
            stats.note_merge(2 * self.slot_bytes * self.num_slots)
        if prepared.expansions and prepared.plan is not None:
            self.growth.expanded(self)
        shrinks += self.shrink()
        seconds = prepared.seconds + self.clock() - started
        self.account(committed, operations, seconds)
        if prepared.expansions or shrinks:
            self.hybrid.start_cycle()
        elif operations and prepared.plan is not None:
            self.hybrid.record(prepared.strategy, prepared.density, seconds / operations)
        return committed

    def account(self, committed: Committed, operations: int, seconds: float) -> None:
        """Count a batch: what it moved, what changed nothing, what expired, and invariant 5's
        figures."""
        self.counters.note_applied(
            operations, seconds, 2 * self.slot_bytes * committed.held, committed.num_rounds,
            committed.redundant,
        )  # fmt: skip
        if any(committed.unchanged):
            self.unchanged += committed.unchanged
        tally = committed.tally
        self.growth.gained = tally.delta
        self.num_markers += tally.markers
        self.num_loops += tally.loops
        if tally.deletions:
            self.largest = None
        elif self.largest is not None:
            self.largest = max(self.largest, tally.largest)

    def shrink(self) -> int:
        """Drop the last level while the root is below its lower bound. Returns how many."""
        dropped = 0
        while self.sizing.is_too_empty(self.num_slots, self.segments.size):
            most, _ = bounds(self.segments.m - 1, self.segment_size)
            self.segments, rebalanced = self.backend.shrink(self.segments, most)
            self.counters.note_windows(rebalanced)
            dropped += 1
        self.counters.note_levels(shrinks=dropped)
        return dropped

    def end_batch(self, staged: StagedBatch) -> None:
        """Give back buffers out of proportion to the store. What was located is lost."""
        self.backend.trim(self.segments, staged)

    def build(self, slots: SlotSource, size: Size | None = None) -> Segments:
        """Segments that hold these slots, for `load`; of that size, or of the least that does."""
        size = self.sizing.size_for(slots.total, NOTHING) if size is None else size
        shape = self.segment_size, self.weight_dtype, self.has_times
        return self.backend.build(*shape, size, slots)

    def load(self, segments: Segments, markers: int, loops: int) -> None:
        """Replace the contents by what `build` made of keys with so many markers and loops."""
        self.written = True
        self.segments = segments
        self.num_markers, self.num_loops, self.largest = markers, loops, None

    def largest_vertex(self) -> int:
        """The largest id in an edge or a marker, -1 if there is none."""
        if self.largest is None:
            self.largest = self.backend.largest_vertex(self.segments)
        return self.largest
