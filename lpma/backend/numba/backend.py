"""The CPU backend: the coarse operations of `lpma.backend.Backend`, each a few compiled kernels.

Every method cuts its work for the threads, runs a kernel on each piece and joins the results. Here
a batch is sorted, located and planned; moves.py carries plans out, shapes.py makes stores whole,
mixed.py ends mixed batches, reads.py answers queries and exports.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ...batch import MAX_OPERATIONS, Columns, Kind
from ...cpu.threads import cuts, run_all
from ...density import bounds
from ...hybrid import TOP_DOWN
from ...stats import Stats
from ...unchanged import REASONS
from ..protocol import BOTH, REVERSE, Costs
from . import chunks, keys, locate, small
from .chunks import joined, run_edges
from .first_use import announce
from .located import BatchColumns, Located, Merged, Touched, reported_plan
from .mixed import Mixed
from .moves import FIRST, LARGE_LAYER, Moves
from .reads import Reads
from .rebalance import MAX_M, WindowPlan, bottom_up, top_down
from .segments import Segments, address
from .settle import DELETIONS, SLOTS, TOUCHED
from .shapes import Shapes
from .sort import sort_pairs
from .workspace import Workspace

Array = npt.NDArray[Any]

KINDS = [np.full(1, kind, np.uint8) for kind in Kind]
ONE = np.ones(1, np.float32)
NO_COUNTS = np.empty(0, np.int64)

ROWS_PER_TASK = 1024
KEPT_BYTES = 96 << 20  # buffers for batches of about a million


class NumbaBackend(Moves, Shapes, Mixed, Reads):
    """See lpma.backend.Backend. One instance a store; not for two threads at once."""

    name = "cpu"
    validates = False
    # Measured on two cores. A merge's slot costs more than its copy: the levels it writes are
    # fresh memory, whose pages must be cleared first.
    way_out = "make the graph with a larger segment_size"
    costs = Costs(small.LEAF_COST, small.WINDOW_COST, merge=2.0)

    def __init__(self) -> None:
        announce(locate.locate)
        self.workspace = Workspace()
        self.unchanged = np.zeros(2 * REASONS, np.int64)  # see located.BatchColumns
        self.written = False

    def most_levels(self, segment_size: int) -> int:
        """Windows are numbered in int32."""
        return MAX_M

    @property
    def buffer_bytes(self) -> int:
        """Bytes of the buffers kept from batch to batch."""
        return self.workspace.nbytes

    def columns(
        self, columns: Columns, time: Array, weight_dtype: np.dtype[Any] | None
    ) -> BatchColumns:
        """A batch as kernels read it, by place. time: int64[n or 1]."""
        weight, one_kind = columns.weight, columns.one_kind
        # Most batches append or delete throughout, and most of those one weight.
        kind = np.ascontiguousarray(columns.kind) if one_kind is None else KINDS[one_kind]
        weights = ONE if weight is None else np.ascontiguousarray(weight)
        plain = one_kind == Kind.APPEND and (weight is None or _is_positive(weights, weight_dtype))
        counts = self.unchanged if plain else NO_COUNTS
        return BatchColumns(kind, weights, np.ascontiguousarray(time), counts)

    def _own(self, batch: BatchColumns) -> BatchColumns:
        """The batch, counting for this store what its mover finds from now on."""
        if len(batch.plain):
            self.unchanged[:] = 0
            if batch.plain is not self.unchanged:
                batch = batch._replace(plain=self.unchanged)
        return batch

    def keys(
        self,
        batch: BatchColumns,
        rows: Columns,
        lo: int,
        hi: int,
        direction: int,
        more: tuple[Array, Array] | None = None,
    ) -> tuple[Array, Array]:
        """(keys, places) of the key operations of rows lo … hi - 1, see keys.py, and of `more`,
        both by rising place. They lie in the workspace: the next batch overwrites them."""
        n = hi - lo
        extra = 0 if more is None else len(more[0])
        room = extra + (2 * n if direction == BOTH else n)
        if room > MAX_OPERATIONS:
            raise MemoryError(f"{room:,} key operations")
        self.workspace.rows.reserve(room)
        columns = self.workspace.rows.columns
        out, places = columns[0][:room], columns[1][:room]
        src, dst = address(rows.src), address(rows.dst)
        if rows.edges_only and direction != BOTH and not extra:
            reverse = direction == REVERSE
            if n <= small.SMALL_ROWS:
                keys.edge_keys(src, dst, lo, lo, hi, reverse, out, places)
                return out, places
            run_all(
                keys.edge_keys,
                [
                    (src, dst, lo, lo + first, lo + last, reverse, out, places)
                    for first, last in cuts(n, 1 << 15)
                ],
            )
            return out, places
        by_row = keys.RowColumns(address(rows.kind), src, dst)
        n = keys.all_keys(by_row, lo, hi, direction, out, places)
        if more is not None:
            keys.merge_by_place(out, places, n, *more)
        return out[: n + extra], places[: n + extra]

    def locate(
        self,
        segments: Segments,
        batch: BatchColumns,
        key: Array,
        place: Array,
        versions: bool,
        strategy: str,
    ) -> Located:
        """Sort the key operations and find what each does; plan a small batch too."""
        n, batch = len(key), self._own(batch)
        rows_block = self.workspace.rows
        rows_block.reserve(n)
        if key.base is not rows_block.columns[0].base:
            rows_block.columns[0][:n], rows_block.columns[1][:n] = key, place
        if n <= small.SMALL_ROWS:
            own_key = rows_block.columns[0][:n]
            return self._locate_small(segments, batch, own_key, versions, strategy)
        own_key, own_place, spare_key, spare_place = self.workspace.row_columns(n)
        key, _ = sort_pairs(own_key, own_place, spare_key, spare_place)
        rows = self.workspace.row_view(n, key is spare_key)
        edges = run_edges(key, cuts(n, ROWS_PER_TASK))
        # Each task lists its touched leaves apart: no more than its rows, or than there are.
        room = min(1 << segments.m, max((hi - lo for lo, hi in pairwise(edges)), default=0))
        space = self.workspace.leaf_space(room * (len(edges) - 1))
        leaves = Touched(space, space.shape[1]).view
        starts = [room * task for task in range(len(edges) - 1)]
        view, columns = segments.view, batch.view
        tallies = run_all(
            locate.locate,
            [
                (view, columns, rows, lo, hi, leaves.from_index(start), versions)
                for start, (lo, hi) in zip(starts, pairwise(edges), strict=True)
            ],
        )
        count = int(tallies[0][TOUCHED])
        if len(tallies) > 1:
            lengths = np.array([tally[TOUCHED] for tally in tallies])
            count = chunks.join_leaves(leaves, np.array(starts), lengths)
        tally, touched = joined(tallies), Touched(space, count)
        return Located(batch, key, touched, tally, int(tally[SLOTS]), versions, self.workspace,
                       key is spare_key)  # fmt: skip

    def _locate_small(
        self, segments: Segments, batch: BatchColumns, key: Array, versions: bool, strategy: str
    ) -> Located:
        """See small.py."""
        n, work = len(key), self.workspace
        work.reserve_small(n)
        small.prepare(
            segments.record, batch.record, n, *work.rows.columns, work.leaves.grid, versions,
            strategy == TOP_DOWN, work.plan.grid, work.rounds, work.report,
        )  # fmt: skip
        return self._reported(segments, batch, key, work.report.tolist(), strategy, versions)

    def _reported(
        self, segments: Segments, batch: BatchColumns, key: Array, report: list[int],
        strategy: str, versions: bool,
    ) -> Located:  # fmt: skip
        """What small.prepare found and planned."""
        work = self.workspace
        found = Touched(work.leaves.grid, report[TOUCHED])
        made = reported_plan(work, report)
        planned = None if made is None else (segments, strategy, made)
        return Located(batch, key, found, report, report[SLOTS], versions, work, planned=planned)

    def merge_small(
        self, segments: Segments, batch: BatchColumns, rows: Columns, direction: int,
        strategy: str, most_cost: float, stats: Stats,
    ) -> tuple[Merged | None, Located | None]:  # fmt: skip
        """Make keys, locate, plan and move in one call, for a small batch of edge updates; nothing
        for another. Where an expansion or a shrink is due, buffers are short or it would cost
        more than `most_cost`, it is located only."""
        n, work = len(rows.src), self.workspace
        if n > small.SMALL_ROWS or direction == BOTH or not n or most_cost < 0:
            return None, None
        batch = self._own(batch)
        keys, inserted = np.empty(n, np.uint64), np.empty(n, np.bool_)
        store, columns = segments.record, batch.record
        table = work.small_table(segments, n, FIRST, LARGE_LAYER)
        self.written = True
        changed = small.merge(
            store, columns, table, n,
            address(rows.src), address(rows.dst), direction == REVERSE, strategy == TOP_DOWN,
            most_cost, stats.rebalances_by_layer, stats.segments_by_layer, stats.slots_by_layer,
            keys, inserted,
        )  # fmt: skip
        report = work.report.tolist()
        if not report[small.MERGED]:
            self.written = False
            key = work.rows.columns[0][:n]
            return None, self._reported(segments, batch, key, report, strategy, False)
        changes: tuple[Array, Array] | None = (keys[:changed], inserted[:changed])
        if 2 * changed < n:  # what is kept of them keeps their memory
            try:
                changes = keys[:changed].copy(), inserted[:changed].copy()
            except MemoryError:  # the batch is applied; the history may forget
                changes = None
        redundant, rounds = report[small.REDUNDANT], report[small.ROUNDS]
        held = report[small.WORK]
        return Merged(report, batch, redundant, rounds, held, changes, work), None

    def plan(self, strategy: str, segments: Segments, located: Located) -> WindowPlan:
        """The strategy's plan for a located batch that the root has room for."""
        if located.planned is not None:
            planned_on, planned_by, made = located.planned
            if planned_on is segments and planned_by == strategy:
                return made
        chosen = top_down if strategy == TOP_DOWN else bottom_up
        most, least = bounds(segments.m, segments.segment_size)
        # Room for all that such a batch can touch: the next touches others, and clearing fresh
        # pages takes longer than planning.
        most_leaves = min(len(located.key), 1 << segments.m)
        space = self.workspace.plan_space(max(located.touched.n, most_leaves))
        return chosen.plan(segments.counts, located.touched, most, least, space)

    def withdraw(self, located: Located) -> None:
        """Locating and planning write nothing of the store: there is nothing to take back."""

    def held_above_leaves(self, plan: WindowPlan, segments: Segments) -> int:
        """The edges that the plan's windows of layer 1 and more hold."""
        return plan.held

    def wait(self) -> None:
        """Until all that was asked of the store is done: it is."""

    def changes(self, located: Located, most: int) -> tuple[Array, Array] | None:
        """(keys, inserted) of what a batch inserts or deletes, markers too; None where there is
        more than `most`."""
        if located.is_small:
            key, _, _, _, action, _ = self.workspace.rows.addresses
        else:
            key, action = located.rows.key, located.rows.action
        changed = located.delta + 2 * int(located.tally[DELETIONS])
        if changed > most:
            return None
        return chunks.changes(len(located.key), key, action, changed)

    def trim(self, segments: Segments, batch: BatchColumns) -> None:
        """Give back buffers that are large, and large beside the store. Clearing the pages of
        fresh ones for each batch would cost more than sorting it."""
        self.workspace.drop("large", segments.nbytes // 64)  # few batches need it
        kept = self.workspace.nbytes
        if kept > KEPT_BYTES and kept > segments.nbytes // 4:
            self.workspace.release()


def _is_positive(weights: Array, dtype: np.dtype[Any] | None) -> bool:
    """Whether there is one weight, and in the store's dtype it is above 0."""
    return len(weights) == 1 and bool(weights.astype(dtype or np.float64)[0] > 0)
