"""The CPU backend: the operations of protocol.py, each a few compiled kernels.

Every operation cuts its work for the threads, runs a kernel on each piece and joins the results.
This file stages, sorts, locates and commits a batch, and holds the state: the buffers, the batch
beside the store, the flag `written`. Functions without state lie in files by subject: commit.py
plans and moves, beside.py folds a mixed batch, shapes.py makes whole stores, reads.py answers
queries, export.py copies stores, one.py does single operations.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ...arrays import address
from ...batch.columns import MAX_OPERATIONS, WEIGHTED, Columns, Kind
from ...cpu.sort import sort_pairs
from ...cpu.threads import cuts, run_all
from ...pma.counters import REASONS, Stats
from ...pma.strategy import TOP_DOWN
from ..defaults import Defaults
from ..values import (
    BOTH,
    KEYS_A_ROW,
    ON_CPU,
    REFUSED,
    Array,
    Changed,
    Committed,
    Implied,
    Single,
)
from . import beside, commit, export, fused, keys, locate, one, reads, segments, shapes, views
from .beside import Beside
from .fold import TALLIED, TOUCHED, UNCHANGED
from .fused import addresses
from .located import KeyRows, Located, StagedBatch, Touched, reported_plan, tally_of
from .rebalance import MAX_M, WindowPlan, count_work
from .segments import Segments
from .workspace import Workspace

KINDS = [np.full(1, kind, np.uint8) for kind in Kind]
ONE = np.ones(1, np.float32)
NO_COUNTS = np.empty(0, np.int64)
FEW_IDS = 256  # neighbours that are copied at the first try

KEPT_BYTES = 96 << 20  # buffers for batches of about a million


class NumbaBackend(Defaults):
    """See lpma.backend.protocol. One instance per store; not thread-safe."""

    name = "cpu"
    validates = False
    merges_rows = True
    costs = ON_CPU
    copies_in_pieces = True
    way_out = "make the graph with a larger segment_size"

    empty, expand = staticmethod(segments.empty_segments), staticmethod(segments.expanded)
    build, rebuild = staticmethod(shapes.build), staticmethod(commit.rebuild)
    place_on, plan = staticmethod(commit.place_on), staticmethod(commit.plan)
    reserve = staticmethod(commit.reserve)
    neighbors_from = staticmethod(reads.neighbors_from)
    has_in_edges, scan_targets = staticmethod(reads.has_in_edges), staticmethod(reads.scan_targets)
    largest_vertex, older = staticmethod(reads.largest_vertex), staticmethod(reads.older)
    csr_rows, rows_with = staticmethod(export.csr_rows), staticmethod(export.rows_with)
    csr_view = staticmethod(views.csr_view)
    csr_columns, slots = staticmethod(export.csr_columns), staticmethod(export.slots)
    column_pieces = staticmethod(export.column_pieces)
    copy_slots, host_memory = staticmethod(export.copy_columns), staticmethod(export.host_memory)

    def __init__(self) -> None:
        self.workspace = Workspace()
        self.unchanged = np.zeros(2 * REASONS, np.int64)  # see located.StagedBatch
        self.written = False
        self.beside: Beside | None = None  # the batch that lies beside the store
        self._operation, self._ids = np.zeros(3, np.int64), np.empty(FEW_IDS, np.uint32)
        self._at_operation, self._at_ids = address(self._operation), address(self._ids)

    @property
    def buffer_bytes(self) -> int:
        return self.workspace.nbytes

    def most_levels(self, segment_size: int) -> int:
        """Windows are numbered in int32."""
        return MAX_M

    def shrink(self, segments: Segments, most: Array) -> tuple[Segments, Array]:
        return shapes.shrink(self.workspace, segments, most)

    # -- one batch ----------------------------------------------------------------------------

    def stage(
        self, columns: Columns, time: Array, weight_dtype: np.dtype[Any] | None
    ) -> StagedBatch:
        """Columns are read where they lie, if they are contiguous."""
        weight, one_kind = columns.weight, columns.one_kind
        # Most batches insert, set or delete throughout, and most of those with positive weights.
        kind = np.ascontiguousarray(columns.kind) if one_kind is None else KINDS[one_kind]
        weights = ONE if weight is None else np.ascontiguousarray(weight)
        plain = one_kind in WEIGHTED and (weight is None or _are_positive(weights, weight_dtype))
        counts = self.unchanged if plain else NO_COUNTS
        return StagedBatch(kind, weights, np.ascontiguousarray(time), counts)

    def _own(self, staged: StagedBatch) -> StagedBatch:
        """The batch, whose mover counts for this store from now on."""
        if len(staged.plain):
            self.unchanged[:] = 0
            if staged.plain is not self.unchanged:
                staged = staged._replace(plain=self.unchanged)
        return staged

    def key_rows(
        self, staged: StagedBatch, columns: Columns, direction: int, implied: Implied | None = None
    ) -> KeyRows:
        n = len(columns)
        room = KEYS_A_ROW[direction] * n + (0 if implied is None else len(implied[0]))
        if room > MAX_OPERATIONS:
            raise MemoryError(f"{room:,} key operations")
        self.workspace.rows.reserve(room)
        out, places = (column[:room] for column in self.workspace.rows.columns[:2])
        kind, step = staged.view[:2]
        of = kind, step, address(columns.src), address(columns.dst)
        known = columns.edges_only and direction != BOTH  # how many keys a row gives: one
        pieces = cuts(n, 1 << 15) if known else [(0, n)]
        n = run_all(keys.write_keys, [(*of, *cut, direction, out, places) for cut in pieces])[-1]
        if implied is not None:  # after the batch's own of the same place
            key, place = (
                np.concatenate([own[:n], more])
                for own, more in zip((out, places), implied, strict=True)
            )
            order, n = np.argsort(place, kind="stable"), len(place)
            out[:n], places[:n] = key[order], place[order]
        return KeyRows(out[:n], places[:n])

    def sort_beside(self, segments: Segments, staged: StagedBatch, rows: KeyRows) -> None:
        self._sort(rows)
        self.beside = beside.folded(self.workspace, segments, staged, rows)

    def _sort(self, rows: KeyRows) -> None:
        """Sort key operations, if they are not sorted yet."""
        if not rows.is_sorted:
            columns = [column[: len(rows)] for column in self.workspace.rows.columns[:4]]
            rows.key, rows.place = sort_pairs(*columns)
            rows.in_spare, rows.is_sorted = rows.key is columns[2], True

    def locate(
        self, segments: Segments, staged: StagedBatch, rows: KeyRows, strategy: str
    ) -> Located:
        n, staged = len(rows), self._own(staged)
        self.beside = None
        if n <= fused.SMALL_ROWS:
            return self._locate_small(segments, staged, rows.key, strategy)
        self._sort(rows)
        key, in_spare = rows.key, rows.in_spare
        store, columns = segments.view, staged.view
        sorted_rows = self.workspace.row_view(n, in_spare)
        edges = locate.run_edges(key, cuts(n, locate.ROWS_PER_TASK))
        # Each task lists its touched leaves apart: no more than its rows, or than the store has.
        room = min(1 << segments.m, max((hi - lo for lo, hi in pairwise(edges)), default=0))
        self.workspace.leaves.reserve(room * (len(edges) - 1))
        space = self.workspace.leaves.grid
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
            count = locate.join_leaves(leaves, np.array(starts), lengths)
        return Located.of(
            staged, key, Touched(space, count), locate.joined(tallies).tolist(),
            self.workspace, segments.m, in_spare,
        )  # fmt: skip

    def _locate_small(
        self, segments: Segments, staged: StagedBatch, key: Array, strategy: str
    ) -> Located:
        """See fused.py."""
        n, work = len(key), self.workspace
        record, table, entries = staged.record, work.small_table(segments, n), addresses()
        fused.prepare(
            segments.at, address(record), address(table), address(entries), n, strategy == TOP_DOWN
        )
        return self._reported(segments, staged, key, work.report.tolist(), strategy)

    def _reported(
        self, segments: Segments, staged: StagedBatch, key: Array, report: list[int],
        strategy: str,
    ) -> Located:  # fmt: skip
        """What fused.prepare found and planned."""
        work = self.workspace
        touched = Touched(work.leaves.grid, report[TOUCHED])
        located = Located.of(staged, key, touched, report, work, segments.m)
        located.at_once = True
        made = reported_plan(work, report)
        if made is not None:
            located.planned = segments, strategy, made
        return located

    def apply_at_once(
        self, segments: Segments, columns: Columns, time: Array,
        weight_dtype: np.dtype[Any] | None, direction: int, strategy: str, most_cost: float,
        stats: Stats,
    ) -> Committed | Located | None:  # fmt: skip
        """One call of one kernel (fused.py). Nothing is done for a large batch; one for which
        buffers are too small is only located."""
        n, work = len(columns.src), self.workspace
        room = KEYS_A_ROW[direction] * n
        if n > fused.SMALL_ROWS or not n or most_cost < 0:
            return None
        keys, inserted = np.empty(room, np.uint64), np.empty(room, np.bool_)
        table, staged = work.small_table(segments, room), self.stage(columns, time, weight_dtype)
        # Held until the call is over: two threads may make them at once.
        record, kernels = staged.record, addresses()
        self.written = True
        changed = fused.apply(
            segments.at, id(record), id(table), id(kernels), n, id(columns.src), id(columns.dst),
            direction, strategy == TOP_DOWN, *map(id, stats.by_layer), id(keys), id(inserted),
        )  # fmt: skip
        report = work.report.tolist()
        if not report[fused.APPLIED]:
            self.written = False
            key = work.rows.columns[0][: report[fused.KEYS]]
            return self._reported(segments, self._own(staged), key, report, strategy)
        changes: Changed = (keys[:changed], inserted[:changed])
        if 2 * changed < room:  # what is kept of them keeps their memory
            try:
                changes = keys[:changed].copy(), inserted[:changed].copy()
            except MemoryError:  # the batch is applied; the history may forget
                changes = None
        return Committed(
            tally=tally_of(report), unchanged=report[UNCHANGED:TALLIED], changes=changes,
            redundant=report[fused.REDUNDANT], num_rounds=report[fused.ROUNDS],
            held=report[fused.WORK],
        )  # fmt: skip

    def rollback(self, located: Located) -> None:
        """Locating and planning write nothing to the store: there is nothing to undo."""

    def commit(
        self, segments: Segments, located: Located, plan: WindowPlan | None, stats: Stats,
        most_changes: int,
    ) -> Committed:  # fmt: skip
        redundant, num_rounds, held = 0, 0, 0
        if plan is not None:
            self.written = True
            commit.carry_out(segments, located, plan)
            redundant, num_rounds = plan.redundant, plan.num_rounds
            held = count_work(
                plan.columns, plan.num_windows, located.touched.rank, located.touched.flags,
                segments.counts, *stats.by_layer,
            )  # fmt: skip
        changes = commit.changes_of(located, most_changes)
        return Committed(
            tally=located.tally, unchanged=located.unchanged, changes=changes,
            redundant=redundant, num_rounds=num_rounds, held=held,
        )  # fmt: skip

    def trim(self, segments: Segments, staged: StagedBatch) -> None:
        """Keeps most buffers: clearing the pages of fresh buffers for each batch would cost more
        than sorting it."""
        self.beside = None
        self.workspace.drop("large", segments.nbytes // 64)  # few batches need it
        kept = self.workspace.nbytes
        if kept > KEPT_BYTES and kept > segments.nbytes // 4:
            self.workspace.release()

    # -- queries ------------------------------------------------------------------------------

    def find_edges(
        self, segments: Segments, staged: StagedBatch | None, src: Array, dst: Array | None,
        limits: Array | None, unseen: bool = False,
    ) -> tuple[Array, Array | None, Array | None]:  # fmt: skip
        return reads.find_edges(segments, self.batch_of(staged), src, dst, limits)

    def find_keys(
        self, segments: Segments, keys: Array
    ) -> tuple[Array, Array | None, Array | None]:
        return reads.find_keys(segments, keys)

    def count_neighbors(
        self, segments: Segments, staged: StagedBatch | None, vertices: Array,
        limits: Array | None, unseen: bool = False,
    ) -> Array:  # fmt: skip
        return reads.count_neighbors(segments, self.batch_of(staged), vertices, limits)

    def neighbors(
        self, segments: Segments, staged: StagedBatch | None, vertices: Array,
        limits: Array | None, values: bool,
    ) -> tuple[Array, Array, Array | None, Array | None]:  # fmt: skip
        return reads.neighbors(segments, self.batch_of(staged), vertices, limits, values)

    def reach(
        self, segments: Segments, staged: StagedBatch | None, vertices: Array, steps: Array,
        limits: Array | None, largest_vertex: Callable[[], int],
    ) -> tuple[Array, Array]:  # fmt: skip
        return reads.reach(segments, self.batch_of(staged), vertices, steps, limits)

    # -- one operation at a time --------------------------------------------------------------

    def find_edge(self, segments: Segments, src: int, dst: int) -> tuple[bool, float, int]:
        found: tuple[bool, float, int] = one.find_edge(segments.at, src, dst)
        return found

    def find_neighbors(self, segments: Segments, src: int) -> Array:
        n = one.find_neighbors(segments.at, src, self._at_ids, FEW_IDS)
        if n <= FEW_IDS:
            return self._ids[:n].copy()
        ids = np.empty(n, np.uint32)
        one.find_neighbors(segments.at, src, address(ids), n)
        return ids

    def count_neighbors_of(self, segments: Segments, src: int) -> Array:
        return np.array([one.find_neighbors(segments.at, src, 0, 0)])

    def update_one(
        self, segments: Segments, back: Segments | None, src: int, dst: int, kind: int,
        weight: float, time: int, from_top: bool, back_from_top: bool, least_held: int,
    ) -> Single:  # fmt: skip
        self.written = True
        done: Single = one.update(
            segments.at, back.at if back else 0, src, dst, kind, weight, time, from_top,
            back_from_top, least_held, self._at_operation,
        )  # fmt: skip
        self.written = done[0] != REFUSED
        return done


def _are_positive(weights: Array, dtype: np.dtype[Any] | None) -> bool:
    """Whether all weights are above 0 in the store's dtype; of none, False."""
    return len(weights) > 0 and bool(weights.min().astype(dtype or np.float64) > 0)
