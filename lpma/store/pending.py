"""Small batches that overlap: each is begun before the host knows what the one before came to.

Idea: a device needs the host to begin a batch, and not to end it. So `Graph.apply` returns once the
batch is on its way and its rows are known to be good, and what it came to (counts, changes) is
read when the next batch has been launched, or when anybody asks. While the device moves one batch,
the host prepares the next.

Nobody sees the difference, for two reasons. The guard takes in what is behind before every other
call. And a batch follows only where nothing can go wrong any more: where the store keeps its levels
whatever the batches under way come to, and where the time of no batch decides anything. What
remains is that the device declines a batch because merging the whole store would be cheaper, or its
windows larger than foreseen; it is then applied in steps, and if memory runs out for that, the
graph is broken, with the batch's number in the error.

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

SHARE = 32  # a batch follows where the store holds that many slots for each of its key operations


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
class Behind:
    """A batch on its way. `version` and `history` are set once it is noted."""

    launched: Any
    staged: StagedBatch
    operations: int
    rows: int  # key operations at most
    strategy: str
    density: float
    seconds: float
    version: int = 0
    history: History | None = None

    def tell(self, changes: Changed) -> None:
        """Add the batch's changes to the history."""
        assert self.history is not None
        if changes is None:
            self.history.forget(self.version)
        else:
            self.history.add(self.version, changes)


class Overlap:
    """Lets the batches of one store follow each other."""

    def __init__(self, store: Store, backend: Overlapping) -> None:
        # Weakly: in a circle the two would keep a device's memory until the garbage collector runs.
        self._of, self._backend = weakref.ref(store), backend
        self.behind: Behind | None = None  # the batch whose outcome is not known yet

    def expect(self, columns: Columns) -> None:
        """Of a large batch that may be the next: see `Overlapping.expect`."""
        self._backend.expect(columns)

    def apply(self, columns: Columns, time: Any, direction: int) -> Behind | None:
        """Begin a batch of edge updates; time: as for `LPMA.apply`. None: it has to be applied in
        the usual way, and what was behind is taken in. Raises BatchError."""
        store, backend = self._of(), self._backend
        assert store is not None, "a store outlives what belongs to it"
        started, segments = store.clock(), store.segments
        operations = len(columns.kind)
        rows = 2 * operations if direction == BOTH else operations
        if not (
            self._is_safe(store, segments, rows)
            and backend.may_overlap(segments, columns, rows, self.behind is None)
        ):
            self.take_in()
            return None
        density = segments.num_slots / segments.room
        strategy = store.strategy_at(density)
        staged = backend.stage(columns, time, store.weight_dtype)
        how = staged, rows, direction, strategy, store.sizing.most_cost(segments, rows)
        launched = backend.launch(segments, *how)
        if self.behind is not None and not self.take_in():  # the device has let this one pass
            launched = backend.launch(store.segments, *how)
        backend.written = True
        backend.await_good(launched)
        seconds = store.clock() - started
        self.behind = Behind(launched, staged, operations, rows, strategy, density, seconds)
        return self.behind

    def _is_safe(self, store: Store, segments: Segments, rows: int) -> bool:
        """Whether, with what is behind, the store keeps its levels and its strategy."""
        slots = segments.num_slots
        if slots < SHARE * rows:
            return False
        change = rows + (self.behind.rows if self.behind else 0)
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

    def take_in(self) -> bool:
        """Learn what the batch behind came to, and note it. Returns False if the device declined
        it, so that it was applied here. If this fails, the store is `written`."""
        behind, store, backend = self.behind, self._of(), self._backend
        if behind is None:
            return True
        assert store is not None
        self.behind, started = None, store.clock()
        try:
            done = backend.outcome(behind.launched)
            if isinstance(done, Committed):
                store.note_applied(done, behind.operations, behind.seconds)
                behind.tell(done.changes)
            else:
                strategy, density = behind.strategy, behind.density
                prepared = store.prepared(done, behind.rows, strategy, density, started)
                behind.tell(store.commit(prepared, behind.operations).changes)
                store.end_batch(behind.staged)
        except BaseException as error:
            store.written = True  # an accepted batch is missing
            if isinstance(error, MemoryError):
                raise OutOfMemory(
                    f"for the batch that led to version {behind.version} ({error})"
                ) from error
            raise
        store.written = backend.written = False
        return isinstance(done, Committed)
