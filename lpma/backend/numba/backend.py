"""The CPU backend: the coarse operations of `lpma.backend.Backend`, each a few compiled kernels.

Every method cuts its work for the threads, runs a kernel on each piece and joins the results.
Reading (queries, exports) is in reads.py; this is what changes a store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ...batch import MAX_OPERATIONS, Columns, Kind
from ...density import bounds
from ...rebalance import DELETED, SPARE, WindowPlan, bottom_up, count_work, top_down
from ...rebalance.hybrid import TOP_DOWN
from ...stats import Stats
from .. import BOTH, REVERSE, Costs
from . import chunks, compact, counts, keys, locate, move, rebuild, shrink, small
from .first_use import announce
from .locate import DELETIONS, LARGEST, SLOTS, TOUCHED
from .located import BatchColumns, Located, Merged, Touched, reported_plan
from .memory import View
from .reads import NO_BATCH, Reads
from .rows import Leaves, Rows
from .segments import Segments, address, empty_segments, expanded, shrunk
from .sort import sort_pairs
from .threads import THREADS, cuts, run_all
from .workspace import SlotAddress, Workspace

Array = npt.NDArray[Any]

NO_ROWS = Rows(0, 0, 0, 0, 0)
NO_LEAVES = Leaves(0, 0, 0, 0, 0, 0)
_FLOAT64 = np.dtype(np.float64)
KINDS = [np.full(1, kind, np.uint8) for kind in Kind]
ONE = {np.dtype(dtype): np.ones(1, dtype) for dtype in (np.float32, np.float64)}
NO_MEMBERS = np.empty(0, np.int64)

ROWS_PER_TASK = 1024
_PIECES = (1024, 4)  # least segments in a piece of a round, most pieces a thread
SEGMENTS_PER_TASK = 1024
KEPT_BYTES = 96 << 20  # buffers for batches of about a million
FIRST = "thread 0"  # the buffer that a small batch is moved with
LARGE_LAYER = 9  # windows of more segments than 2^9 are cut for all threads


class NumbaBackend(Reads):
    """See lpma.backend.Backend. One instance a store; not for two threads at once."""

    name = "cpu"
    validates = False
    # Measured on two cores. A merge's slot costs more than its copy: the levels it writes are
    # fresh memory, whose pages must be cleared first.
    costs = Costs(small.LEAF_COST, small.WINDOW_COST, merge=2.0)

    def __init__(self) -> None:
        announce(locate.locate)
        self.workspace = Workspace()

    @property
    def buffer_bytes(self) -> int:
        """Bytes of the buffers kept from batch to batch."""
        return self.workspace.nbytes

    def empty(self, segment_size: int, weight_dtype: np.dtype[Any] | None, times: bool) -> Segments:
        return empty_segments(segment_size, weight_dtype, times)

    def expand(self, segments: Segments) -> Segments:
        return expanded(segments)

    def columns(
        self, columns: Columns, time: Array, weight_dtype: np.dtype[Any] | None
    ) -> BatchColumns:
        """A batch as kernels read it, by place. time: int64[n or 1]."""
        weight, one_kind = columns.weight, columns.one_kind
        dtype = _FLOAT64 if weight_dtype is None else weight_dtype
        if weight is None:
            weights = ONE[dtype]
        else:
            with np.errstate(over="ignore", under="ignore"):  # a deletion's weight is unused
                weights = np.ascontiguousarray(weight, dtype)
        # Most batches append or delete throughout.
        kind = np.ascontiguousarray(columns.kind) if one_kind is None else KINDS[one_kind]
        return BatchColumns(kind, weights, np.ascontiguousarray(time))

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
        n = len(key)
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
        edges = _run_edges(key, cuts(n, ROWS_PER_TASK))
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
        tally, touched = _joined(tallies), Touched(space, count)
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
        keys, inserted = np.empty(n, np.uint64), np.empty(n, np.bool_)
        changed = small.merge(
            segments.record, batch.record, work.small_table(segments, n, FIRST, LARGE_LAYER), n,
            address(rows.src), address(rows.dst), direction == REVERSE, strategy == TOP_DOWN,
            most_cost, stats.rebalances_by_layer, stats.segments_by_layer, stats.slots_by_layer,
            keys, inserted,
        )  # fmt: skip
        report = work.report.tolist()
        if not report[small.MERGED]:
            key = work.rows.columns[0][:n]
            return None, self._reported(segments, batch, key, report, strategy, False)
        if 2 * changed < n:  # what is kept of them keeps their memory
            keys, inserted = keys[:changed].copy(), inserted[:changed].copy()
        elif changed < n:
            keys, inserted = keys[:changed], inserted[:changed]
        redundant, rounds = report[small.REDUNDANT], report[small.ROUNDS]
        return Merged(report, redundant, rounds, report[small.WORK], (keys, inserted), work), None

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

    def count_work(
        self, plan: WindowPlan, located: Located, segments: Segments, stats: Stats
    ) -> int:
        """Add the windows in which slots moved, and the edges they hold; their sum."""
        return count_work(
            plan.columns, plan.num_windows, located.touched.rank, located.touched.flags,
            segments.counts, stats.rebalances_by_layer, stats.segments_by_layer,
            stats.slots_by_layer,
        )  # fmt: skip

    def reserve(
        self, segments: Segments, located: Located, plan: WindowPlan, shrinking: int
    ) -> None:
        """Allocate all that `move` will need, and `shrink` of `shrinking` slots, so that they
        cannot fail half-way."""
        if located.is_small and plan.highest <= LARGE_LAYER:
            self.workspace.slot_buffer(segments, FIRST, segments.segment_size << plan.highest)
        else:
            self._reserve_slots(segments, plan.highest)
        if shrinking:
            self.workspace.slot_buffer(segments, "large", shrinking)

    def reserve_mixed(self, segments: Segments, rows: int, room: int) -> None:
        """Allocate what a mixed batch of `rows` key operations may need at the most; `room` is
        what `keys` asks for."""
        self.workspace.rows.reserve(room)
        self.workspace.leaf_space(max(2 * rows, THREADS * min(1 << segments.m, rows)))
        self.workspace.plan_space(2 * rows)
        self.workspace.runs.reserve(rows)
        self._reserve_slots(segments, segments.m)
        # Shrinking afterwards takes as many slots as there can be.
        self.workspace.slot_buffer(segments, "large", segments.num_slots + rows)

    def _reserve_slots(self, segments: Segments, layer: int) -> None:
        self._scratch(segments, min(layer, LARGE_LAYER))
        if layer > LARGE_LAYER:
            self.workspace.slot_buffer(segments, "large", segments.segment_size << layer)

    def _scratch(self, segments: Segments, layer: int) -> list[SlotAddress]:
        """A buffer for each thread, of 2^layer segments."""
        slots = segments.segment_size << layer
        return [self.workspace.slot_buffer(segments, f"thread {i}", slots) for i in range(THREADS)]

    def move(self, segments: Segments, located: Located, plan: WindowPlan) -> None:
        """Carry out a plan. Allocates nothing that `reserve` has not."""
        layer = min(plan.highest, LARGE_LAYER)
        work, touched = self.workspace, located.touched
        if located.is_small and plan.highest <= LARGE_LAYER:
            key, place, _, _, action, position = work.rows.columns
            small.commit(
                segments.record, located.batch.record, len(located.key), key, place, action,
                position, touched.columns, touched.n, located.versions, plan.columns,
                plan.rounds, layer, work.slots[FIRST].table,
            )  # fmt: skip
            return
        batch = (segments.view, located.batch.view, located.rows, touched.view)
        versions, free = located.versions, deque(self._scratch(segments, layer))
        run_all(
            _with_buffer,
            [
                (free, move.move_leaves, (*batch, lo, hi, versions))
                for lo, hi in cuts(touched.n, *_PIECES)
            ],
        )
        for first, last in pairwise(plan.rounds.tolist()):
            if first == last:
                continue
            layers = plan.layer[first:last]
            edges = move.even_pieces(layers, layer, _PIECES[0], _PIECES[1] * THREADS).tolist()
            run_all(
                _with_buffer,
                [
                    (free, move.move_windows, (*batch, plan.columns, first + lo, first + hi,
                                               versions), layer)
                    for lo, hi in pairwise(edges)
                ],
            )  # fmt: skip
            if layer == LARGE_LAYER:
                for i in np.flatnonzero(layers > layer) + first:
                    self._move_large(segments, located, plan, int(i))
        counts.sum_upward(segments.view, touched.rank, touched.n, plan.columns[SPARE])

    def _move_large(self, segments: Segments, located: Located, plan: WindowPlan, i: int) -> None:
        """Gather and spread one window in pieces on all threads."""
        view, rows, leaves = segments.view, located.rows, located.touched.view
        batch = located.batch.view
        layer, w = int(plan.layer[i]), int(plan.window[i])
        n = 1 << layer
        rank = (w << layer) - (1 << view.m)
        edges = np.array([0] + [hi for _, hi in cuts(n, SEGMENTS_PER_TASK, 4)], np.int64)
        starts, member = move.piece_offsets(
            view, rank, edges, leaves, plan.members, int(plan.lo[i]), int(plan.hi[i])
        )
        total = int(starts[-1])
        buffer = self.workspace.slot_buffer(segments, "large", total)
        following = np.uint64(move.following_fence(view, rank + n))
        pieces = range(len(edges) - 1)
        run_all(
            move.gather,
            [
                (view, batch, rank + edges[k], rank + edges[k + 1], rows, leaves, plan.members,
                 member[k], member[k + 1], located.versions, _at(view, buffer, int(starts[k])))
                for k in pieces
            ],
        )  # fmt: skip
        run_all(
            move.spread,
            [(view, buffer, total, rank, layer, edges[k], edges[k + 1], following) for k in pieces],
        )
        counts.sum_window(view, w, layer)

    def rebuild(self, segments: Segments, located: Located, m: int) -> Segments:
        """The store with the batch merged in, in fresh levels: a global merge."""
        fresh = empty_segments(
            segments.segment_size,
            segments.weights[0].dtype if segments.weights else None,
            segments.times is not None,
            m,
        )
        total = segments.num_slots + located.delta
        source, to = segments.view, fresh.view
        if total:
            work = max(1 << segments.m, len(located.key) // segments.segment_size)
            pieces = len(cuts(work, SEGMENTS_PER_TASK, 4))
            rows, leaves = located.rows, located.touched.view
            places = rebuild.cut(source, rows, leaves, pieces)
            run_all(
                rebuild.merge_piece,
                [
                    (source, to, located.batch.view, rows, leaves, places, piece, total)
                    for piece in range(pieces)
                ],
            )
        rebuild.finish_tree(to, total)
        return fresh

    def build(
        self, segment_size: int, m: int, stored: Array, weights: Array | None, times: Array | None
    ) -> Segments:
        """A store from whole columns, sorted by key."""
        fresh = empty_segments(
            segment_size, None if weights is None else weights.dtype, times is not None, m
        )
        none = np.zeros(0, np.int64)
        columns = (stored, none.astype(np.float32) if weights is None else weights,
                   none if times is None else times)  # fmt: skip
        total = len(stored)
        if total:
            run_all(
                rebuild.fill_piece,
                [(fresh.view, *columns, lo, hi, total) for lo, hi in cuts(total, 1 << 16)],
            )
        rebuild.finish_tree(fresh.view, total)
        return fresh

    def shrink(self, segments: Segments, most: Array) -> tuple[Segments, Array]:
        """One level less: pairs of segments merge, what exceeds a segment rolls up. Returns the
        smaller store and the windows rebalanced by layer. most: bounds of the smaller store."""
        smaller = shrunk(segments)
        buffer = self.workspace.slot_buffer(segments, "large", segments.num_slots)
        moved = shrink.shrink(
            segments.view, smaller.view, NO_BATCH, NO_ROWS, NO_LEAVES, NO_MEMBERS, most, buffer
        )
        return smaller, moved

    def _survivors(self, segments: Segments, located: Located) -> tuple[Located, Any]:
        """What remains of the versions `located` put in: their keys' final actions."""
        n = len(located.key)
        self.workspace.runs.reserve(n)
        runs = self.workspace.runs.columns
        edges = _run_edges(located.key, cuts(n, ROWS_PER_TASK))
        view, batch, rows = segments.view, located.batch.view, located.rows
        tallies = run_all(
            compact.survivors,
            [(view, batch, rows, lo, hi, *runs) for lo, hi in pairwise(edges)],
        )
        ranks, first_row, none, delta, flags = self.workspace.leaf_space(2 * n)
        count = compact.versioned_ranks(view, rows, runs[0], runs[1], ranks, first_row)
        none[:count], delta[:count], flags[:count] = 0, 0, DELETED
        tally, found = _joined(tallies), Touched(self.workspace.leaves.grid, count)
        final = Located(located.batch, located.key, found, tally, int(tally[SLOTS]), False,
                        self.workspace, located.in_spare)  # fmt: skip
        return final, (first_row[:count], *runs[1:])

    def compact(self, segments: Segments, located: Located, strategy: str) -> Located:
        """Fold the versions that `located` put in onto the stored edges, in place. Returns what
        remained of them."""
        final, (first_row, last, weights, times) = self._survivors(segments, located)
        ranks = final.touched.rank
        view, rows = segments.view, final.rows
        run_all(
            compact.compact_segments,
            [
                (view, rows, ranks, first_row, last, weights, times, lo, hi)
                for lo, hi in cuts(len(ranks), ROWS_PER_TASK)
            ],
        )
        space = self.workspace.plan_space(len(ranks))
        counts.sum_upward(view, ranks, len(ranks), space[SPARE])
        final.touched.lo[:] = final.touched.hi  # no rows are left to move
        return final

    def wait(self) -> None:
        """Until all that was asked of the store is done: it is."""

    def changes(self, located: Located, most: int) -> tuple[Array, Array] | None:
        """(keys, inserted) of the edges that a batch inserts or deletes, markers left out; None
        where there are more than `most`."""
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


def _run_edges(key: Array, ranges: list[tuple[int, int]]) -> list[int]:
    """The edges of these ranges of rows, moved on so that no run of equal keys is cut."""
    edges = [0, *(hi for _, hi in ranges)]
    if len(edges) == 2:
        return edges
    moved = np.array(edges)
    chunks.run_starts(key, moved)
    return moved.tolist()


def _with_buffer(
    free: deque[SlotAddress], kernel: Callable[..., None], arguments: tuple[Any, ...], *last: Any
) -> None:
    """One task of a round, with a buffer that no other task has meanwhile."""
    buffer = free.popleft()
    kernel(*arguments, buffer, *last)
    free.append(buffer)


def _joined(tallies: list[Array]) -> Array:
    if len(tallies) == 1:
        return tallies[0]
    joined: Array = np.sum(tallies, axis=0)
    joined[LARGEST] = max(tally[LARGEST] for tally in tallies)
    return joined


def _at(view: View, buffer: SlotAddress, n: int) -> SlotAddress:
    return (
        buffer[0] + n * 8,
        buffer[1] + n * view.weight_bytes,
        buffer[2] + n * view.time_bytes,
        buffer[3] + n * view.seq_bytes,
    )
