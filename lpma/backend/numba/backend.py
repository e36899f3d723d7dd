"""The CPU backend: the operations of protocol.py, each a few compiled kernels.

Every method cuts its work for the threads, runs a kernel on each piece and joins the results. Here
a batch is staged, sorted and located; moves.py plans and commits it, mixed.py holds a mixed one
beside the store, shapes.py makes whole stores, reads.py answers queries and exports.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ...arrays import address
from ...batch.columns import MAX_OPERATIONS, Columns, Kind
from ...cpu.threads import cuts, run_all
from ...pma.counters import REASONS, Stats
from ...pma.strategy import TOP_DOWN
from ..defaults import Defaults
from ..values import BOTH, ON_CPU, REVERSE, Array, Changed, Committed, Implied
from . import chunks, keys, locate, small
from .chunks import joined, run_edges
from .entries import addresses
from .located import KeyRows, Located, StagedBatch, Touched, reported_plan, tally_of
from .mixed import Mixed
from .moves import FIRST
from .one import OneByOne
from .reads import Reads
from .segments import Segments
from .settle import TALLIED, TOUCHED, UNCHANGED
from .shapes import Shapes
from .workspace import Workspace

KINDS = [np.full(1, kind, np.uint8) for kind in Kind]
ONE = np.ones(1, np.float32)
NO_COUNTS = np.empty(0, np.int64)

ROWS_PER_TASK = 1024
KEPT_BYTES = 96 << 20  # buffers for batches of about a million


class NumbaBackend(Mixed, Shapes, Reads, OneByOne, Defaults):
    """See lpma.backend.protocol. One instance per store; not thread-safe."""

    name = "cpu"
    validates = False
    merges_rows = True
    costs = ON_CPU

    def __init__(self) -> None:
        self.workspace = Workspace()
        self.unchanged = np.zeros(2 * REASONS, np.int64)  # see located.StagedBatch
        self.written = False

    @property
    def buffer_bytes(self) -> int:
        """Bytes of the buffers kept from batch to batch."""
        return self.workspace.nbytes

    def stages_unvalidated(self, rows: int) -> bool:
        return False

    def stage(
        self, columns: Columns, time: Array, weight_dtype: np.dtype[Any] | None
    ) -> StagedBatch:
        """Columns are read where they lie, if they are contiguous."""
        weight, one_kind = columns.weight, columns.one_kind
        # Most batches append or delete throughout, and most of those with positive weights.
        kind = np.ascontiguousarray(columns.kind) if one_kind is None else KINDS[one_kind]
        weights = ONE if weight is None else np.ascontiguousarray(weight)
        plain = one_kind == Kind.INSERT and (weight is None or _are_positive(weights, weight_dtype))
        counts = self.unchanged if plain else NO_COUNTS
        return StagedBatch(kind, weights, np.ascontiguousarray(time), counts)

    def _own(self, staged: StagedBatch) -> StagedBatch:
        """The batch, counting for this store what its mover finds from now on."""
        if len(staged.plain):
            self.unchanged[:] = 0
            if staged.plain is not self.unchanged:
                staged = staged._replace(plain=self.unchanged)
        return staged

    def key_rows(
        self, staged: StagedBatch, columns: Columns, lo: int, hi: int, direction: int,
        implied: Implied | None = None,
    ) -> KeyRows:  # fmt: skip
        """See keys.py. They lie in the workspace."""
        n = hi - lo
        extra = 0 if implied is None else len(implied[0])
        room = extra + (2 * n if direction == BOTH else n)
        if room > MAX_OPERATIONS:
            raise MemoryError(f"{room:,} key operations")
        self.workspace.rows.reserve(room)
        out, places = (column[:room] for column in self.workspace.rows.columns[:2])
        src, dst = address(columns.src), address(columns.dst)
        if columns.edges_only and direction != BOTH and not extra:
            reverse = direction == REVERSE
            if n <= small.SMALL_ROWS:
                keys.edge_keys(src, dst, lo, lo, hi, reverse, out, places)
                return KeyRows(out, places)
            run_all(
                keys.edge_keys,
                [
                    (src, dst, lo, lo + first, lo + last, reverse, out, places)
                    for first, last in cuts(n, 1 << 15)
                ],
            )
            return KeyRows(out, places)
        by_row = keys.RowColumns(address(columns.kind), src, dst)
        n = keys.all_keys(by_row, lo, hi, direction, out, places)
        if implied is not None:
            keys.put_in_by_place(out, places, n, *implied)
        return KeyRows(out[: n + extra], places[: n + extra])

    def locate(
        self, segments: Segments, staged: StagedBatch, rows: KeyRows, strategy: str
    ) -> Located:
        """Sort the key operations and find what each does; plan a small batch too."""
        n, staged = len(rows), self._own(staged)
        self.beside = None
        if n <= small.SMALL_ROWS:
            return self._locate_small(segments, staged, rows.key, strategy)
        self.sort_rows(rows)
        key, in_spare = rows.key, rows.in_spare
        store, columns = segments.view, staged.view
        sorted_rows = self.workspace.row_view(n, in_spare)
        edges = run_edges(key, cuts(n, ROWS_PER_TASK))
        # Each task lists its touched leaves apart: no more than its rows, or than the store has.
        room = min(1 << segments.m, max((hi - lo for lo, hi in pairwise(edges)), default=0))
        space = self.workspace.leaf_space(room * (len(edges) - 1))
        leaves = Touched(space, space.shape[1]).view
        starts = [room * task for task in range(len(edges) - 1)]
        tallies = run_all(
            locate.locate,
            [
                (store, columns, sorted_rows, lo, hi, leaves.from_index(start))
                for start, (lo, hi) in zip(starts, pairwise(edges), strict=True)
            ],
        )
        count = int(tallies[0][TOUCHED])
        if len(tallies) > 1:
            lengths = np.array([tally[TOUCHED] for tally in tallies])
            count = chunks.join_leaves(leaves, np.array(starts), lengths)
        return Located.of(
            staged, key, Touched(space, count), joined(tallies).tolist(),
            self.workspace, segments.m, in_spare,
        )  # fmt: skip

    def _locate_small(
        self, segments: Segments, staged: StagedBatch, key: Array, strategy: str
    ) -> Located:
        """See small.py."""
        n, work = len(key), self.workspace
        work.reserve_small(n)
        small.prepare(
            segments.record, staged.record, n, *work.rows.columns, work.leaves.grid,
            strategy == TOP_DOWN, work.plan.grid, work.rounds, work.report, addresses(),
        )  # fmt: skip
        return self._reported(segments, staged, key, work.report.tolist(), strategy)

    def _reported(
        self, segments: Segments, staged: StagedBatch, key: Array, report: list[int],
        strategy: str,
    ) -> Located:  # fmt: skip
        """What small.prepare found and planned."""
        work = self.workspace
        touched = Touched(work.leaves.grid, report[TOUCHED])
        located = Located.of(staged, key, touched, report, work, segments.m)
        located.at_once = True
        made = reported_plan(work, report)
        if made is not None:
            located.planned = segments, strategy, made
        return located

    def apply_at_once(
        self, segments: Segments, staged: StagedBatch, columns: Columns, direction: int,
        strategy: str, most_cost: float, stats: Stats,
    ) -> Committed | Located | None:  # fmt: skip
        """One call of one kernel (small.py). Nothing is done for a large batch; one for which
        buffers are too small is only located."""
        n, work = len(columns.src), self.workspace
        room = 2 * n if direction == BOTH else n
        if n > small.SMALL_ROWS or not n or most_cost < 0:
            return None
        keys, inserted = np.empty(room, np.uint64), np.empty(room, np.bool_)
        table = work.small_table(segments, room, FIRST, segments.alone_layer)
        kind, weight, time, plain = staged
        kernels = addresses()  # held until the call is over: two threads may make it at once
        self.written = True
        changed = small.apply(
            id(segments.record), id(kind), len(kind), id(weight), len(weight), weight.itemsize,
            id(time), len(time), id(self.unchanged), len(plain), id(table), id(kernels), n,
            id(columns.src), id(columns.dst), direction, strategy == TOP_DOWN,
            *map(id, stats.by_layer),
            id(keys), id(inserted),
        )  # fmt: skip
        report = work.report.tolist()
        if not report[small.APPLIED]:
            self.written = False
            key = work.rows.columns[0][: report[small.KEYS]]
            return self._reported(segments, self._own(staged), key, report, strategy)
        changes: Changed = (keys[:changed], inserted[:changed])
        if 2 * changed < room:  # what is kept of them keeps their memory
            try:
                changes = keys[:changed].copy(), inserted[:changed].copy()
            except MemoryError:  # the batch is applied; the history may forget
                changes = None
        return Committed(
            tally_of(report), report[UNCHANGED:TALLIED], changes, report[small.REDUNDANT],
            report[small.ROUNDS], report[small.WORK],
        )  # fmt: skip

    def wait(self) -> None:
        """Every method returns when its work is done."""

    def trim(self, segments: Segments, staged: StagedBatch) -> None:
        """Keeps most buffers: clearing the pages of fresh buffers for each batch would cost more
        than sorting it."""
        self.beside = None
        self.workspace.drop("large", segments.nbytes // 64)  # few batches need it
        kept = self.workspace.nbytes
        if kept > KEPT_BYTES and kept > segments.nbytes // 4:
            self.workspace.release()


def _are_positive(weights: Array, dtype: np.dtype[Any] | None) -> bool:
    """Whether all weights are above 0 in the store's dtype; of none, False."""
    return len(weights) > 0 and bool(weights.min().astype(dtype or np.float64) > 0)
