"""Small batches that overlap: each is launched before the host knows the outcome of the last.

Idea: a device needs the host to launch a batch, and not to finish it. So `Graph.apply` returns once
the batch is launched and its rows are known to be good. Its outcome (counts, changes) is read when
the next batch has been launched, or when anybody asks: until then the batch is *pending*. While the
device moves one batch, the host prepares the next.

Nobody sees the difference, for two reasons. The graph's lock finishes the pending batch before
every other call. And batches overlap only where nothing can go wrong any more: where the store
keeps its levels whatever the batches under way come to, and where no decision depends on how long
one takes. What remains is that the device declines a batch because merging the whole store would be
cheaper, or its windows are larger than expected. It is then applied in steps; if memory runs out
for that, the graph is broken, and the error names the batch's version.

Requires: a graph with one store; batches of edge updates whose columns do not lie on the device, as
a caller may write to those once `apply` has returned.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..backend.overlapping import Overlapping
from ..backend.values import BOTH, Changed, Committed, Segments, StagedBatch
from ..batch.columns import Columns
from ..errors import OutOfMemory
from ..pma.counters import Stats
from ..pma.density import root_bounds
from ..pma.strategy import Hybrid
from .history import History
from .sizing import Sizing

SHARE = 32  # batches overlap where the store holds that many slots for each key operation


class Store(Protocol):
    """What is needed of the store, an LPMA."""

    segments: Segments
    strategy: str
    weight_dtype: np.dtype[Any] | None
    sizing: Sizing
    hybrid: Hybrid
    clock: Callable[[], float]
    written: bool

    def strategy_at(self, density: float) -> str: ...
    def note_applied(self, done: Committed, operations: int, seconds: float) -> None: ...
    def prepared(
        self, located: Any, rows: int, strategy: str, density: float, started: float
    ) -> Any: ...
    def commit(self, prepared: Any, operations: int) -> Committed: ...
    def end_batch(self, staged: StagedBatch) -> None: ...


@dataclass
class PendingBatch:
    """A batch that is launched. `version` and `history` are set once it is counted."""

    launched: Any
    staged: StagedBatch
    operations: int
    rows: int  # key operations at most
    strategy: str
    density: float
    seconds: float
    version: int = 0
    history: History | None = None

    def record_changes(self, changes: Changed) -> None:
        """Add the batch's changes to the history."""
        assert self.history is not None
        if changes is None:
            self.history.forget(self.version)
        else:
            self.history.add(self.version, changes)


class Overlap:
    """Overlaps the batches of one store."""

    def __init__(self, store: Store, backend: Overlapping) -> None:
        # Weakly: in a circle the two would keep a device's memory until the garbage collector runs.
        self._of, self._backend = weakref.ref(store), backend
        self.pending: PendingBatch | None = None

    def apply(self, columns: Columns, time: Any, direction: int) -> PendingBatch | None:
        """Begin a batch of edge updates; time: as for `LPMA.apply`. None: it has to be applied in
        the usual way, and none is pending. Raises BatchError."""
        store, backend = self._of(), self._backend
        assert store is not None, "the store is gone"
        started, segments = store.clock(), store.segments
        operations = len(columns.kind)
        rows = 2 * operations if direction == BOTH else operations
        if not (
            self._is_safe(store, segments, rows)
            and backend.may_overlap(segments, columns, rows, self.pending is None)
        ):
            self.finish_pending()
            return None
        density = segments.num_slots / segments.room
        strategy = store.strategy_at(density)
        staged = backend.stage(columns, time, store.weight_dtype)
        how = staged, rows, direction, strategy, store.sizing.most_cost(segments, rows)
        launched = backend.launch(segments, *how)
        if self.pending is not None and not self.finish_pending():  # the device skipped this batch
            launched = backend.launch(store.segments, *how)
        backend.written = True
        backend.await_good(launched)
        seconds = store.clock() - started
        self.pending = PendingBatch(launched, staged, operations, rows, strategy, density, seconds)
        return self.pending

    def _is_safe(self, store: Store, segments: Segments, rows: int) -> bool:
        """Whether the store keeps its levels and its strategy, whatever is pending."""
        slots = segments.num_slots
        if slots < SHARE * rows:
            return False
        change = rows + (self.pending.rows if self.pending else 0)
        most, least = root_bounds(segments.size, segments.segment_size)
        if slots + change > most or (slots - change < least and segments.m):
            return False
        densest = (slots + change) / segments.room
        return store.strategy != "hybrid" or not store.hybrid.compares(densest)

    def counted(self, counters: Stats) -> Stats:
        """A copy of a store's counters, with what the backend has counted by layer."""
        stats = counters.added(Stats())
        self._backend.count(stats)
        return stats

    def finish_pending(self) -> bool:
        """Read the pending batch's outcome, and count it. Returns False if the device declined it,
        so that it was applied here. If this fails, the store is `written`."""
        pending, store, backend = self.pending, self._of(), self._backend
        if pending is None:
            return True
        assert store is not None
        self.pending, started = None, store.clock()
        try:
            done = backend.outcome(pending.launched)
            if isinstance(done, Committed):
                store.note_applied(done, pending.operations, pending.seconds)
                pending.record_changes(done.changes)
            else:
                strategy, density = pending.strategy, pending.density
                prepared = store.prepared(done, pending.rows, strategy, density, started)
                pending.record_changes(store.commit(prepared, pending.operations).changes)
                store.end_batch(pending.staged)
        except BaseException as error:
            store.written = True  # an accepted batch is missing
            if isinstance(error, MemoryError):
                raise OutOfMemory(
                    f"for the batch that led to version {pending.version} ({error})"
                ) from error
            raise
        store.written = backend.written = False
        return isinstance(done, Committed)
