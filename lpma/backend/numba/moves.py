"""From a located batch to a committed one on the CPU: plans, the buffers they need, the moves.

Planning writes nothing of the store. Everything is allocated before the first write, by `reserve`,
so that nothing can fail half-way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ...cpu.threads import THREADS, cuts, run_all
from ...pma.counters import Stats
from ...pma.density import bounds
from ...pma.strategy import TOP_DOWN
from ..values import Changed, Committed
from . import chunks, counts, entries, move, small
from .located import Located
from .memory import View
from .rebalance import SPARE, WindowPlan, bottom_up, count_work, top_down
from .segments import Segments
from .workspace import SlotAddress, Workspace

_PIECES = (1024, 4)  # least segments in a piece of a round, most pieces per thread
SEGMENTS_PER_TASK = 1024
FIRST = "thread 0"  # the buffer that a small batch is moved with
LARGE_LAYER = 9  # windows of more segments than 2^9 are cut for all threads


class Moves:
    """See lpma.backend.protocol."""

    workspace: Workspace
    written: bool

    def place_on(self, segments: Segments, located: Located) -> None:
        """On a store with that many more levels: rank i is then i * 2^levels."""
        located.touched.rank[:] <<= segments.m - located.m
        located.m, located.expands = segments.m, True

    def plan(self, strategy: str, segments: Segments, located: Located) -> WindowPlan:
        """Already made by locating, if that was for this shape and strategy."""
        if located.planned is not None:
            planned_on, planned_by, made = located.planned
            if planned_on is segments and planned_by == strategy:
                return made
            located.planned = None  # the new plan overwrites it
        chosen = top_down if strategy == TOP_DOWN else bottom_up
        most, least = bounds(segments.m, segments.segment_size)
        # Room for all that such a batch can touch: the next touches others, and clearing fresh
        # pages takes longer than planning.
        most_leaves = min(len(located.key), 1 << segments.m)
        space = self.workspace.plan_space(max(located.touched.n, most_leaves))
        return chosen.plan(segments.counts, located.touched, most, least, space)

    def rollback(self, located: Located) -> None:
        """Locating and planning write nothing of the store: there is nothing to take back."""

    def reserve(
        self, segments: Segments, located: Located, plan: WindowPlan, shrinking: int
    ) -> None:
        """Slot buffers for the plan's windows, and for `shrink` of `shrinking` slots."""
        if located.is_moved_at_once and plan.highest <= segments.alone_layer:
            self.workspace.slot_buffer(segments, FIRST, segments.segment_size << plan.highest)
        else:
            self._reserve_slots(segments, plan.highest)
        if shrinking:
            self.workspace.slot_buffer(segments, "large", shrinking)

    def _reserve_slots(self, segments: Segments, layer: int) -> None:
        self._scratch(segments, min(layer, LARGE_LAYER))
        if layer > LARGE_LAYER:
            self.workspace.slot_buffer(segments, "large", segments.segment_size << layer)

    def _scratch(self, segments: Segments, layer: int) -> list[SlotAddress]:
        """A buffer for each thread, of 2^layer segments."""
        slots = segments.segment_size << layer
        return [self.workspace.slot_buffer(segments, f"thread {i}", slots) for i in range(THREADS)]

    def commit(
        self, segments: Segments, located: Located, plan: WindowPlan | None, stats: Stats,
        most_changes: int,
    ) -> Committed:  # fmt: skip
        """Carry out a plan, if one is left to carry out, and say what the batch amounted to."""
        redundant, num_rounds, held = 0, 0, 0
        if plan is not None:
            self.written = True
            self._move(segments, located, plan)
            redundant, num_rounds = plan.redundant, plan.num_rounds
            held = count_work(
                plan.columns, plan.num_windows, located.touched.rank, located.touched.flags,
                segments.counts, *stats.by_layer,
            )  # fmt: skip
        changes = self._changes(located, most_changes)
        return Committed(located.tally, located.unchanged, changes, redundant, num_rounds, held)

    def _changes(self, located: Located, most: int) -> Changed:
        changed = located.tally.num_changes
        if changed > most:
            return None
        if located.is_small:
            key, _, _, _, action, _ = self.workspace.rows.addresses
        else:
            key, action = located.rows.key, located.rows.action
        try:
            return chunks.changes(len(located.key), key, action, changed)
        except MemoryError:  # the batch is applied; the history may forget
            return None

    def _move(self, segments: Segments, located: Located, plan: WindowPlan) -> None:
        work, touched = self.workspace, located.touched
        if located.is_moved_at_once and plan.highest <= segments.alone_layer:
            key, place, _, _, action, position = work.rows.columns
            small.commit(
                segments.record, located.staged.record, len(located.key), key, place, action,
                position, touched.columns, touched.n, plan.columns,
                plan.rounds, plan.highest, work.slots[FIRST].table, entries.addresses(),
            )  # fmt: skip
            return
        layer = min(plan.highest, LARGE_LAYER)
        batch = (segments.view, located.staged.view, located.rows, touched.view)
        free = deque(self._scratch(segments, layer))
        run_all(
            _with_buffer,
            [(free, move.move_leaves, (*batch, lo, hi)) for lo, hi in cuts(touched.n, *_PIECES)],
        )
        gather_at = move.gather_at.address
        for first, last in pairwise(plan.rounds.tolist()):
            if first == last:
                continue
            layers = plan.layer[first:last]
            edges = move.even_pieces(layers, layer, _PIECES[0], _PIECES[1] * THREADS).tolist()
            run_all(
                _with_buffer,
                [
                    (free, move.move_windows, (*batch, plan.columns, first + lo, first + hi),
                     layer, gather_at)
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
        batch = located.staged.view
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
                 member[k], member[k + 1], _at(view, buffer, int(starts[k])))
                for k in pieces
            ],
        )  # fmt: skip
        run_all(
            move.spread,
            [(view, buffer, total, rank, layer, edges[k], edges[k + 1], following) for k in pieces],
        )
        counts.sum_window(view, w, layer)


def _with_buffer(
    free: deque[SlotAddress], kernel: Callable[..., None], arguments: tuple[Any, ...], *last: Any
) -> None:
    """One task of a round, with a buffer that no other task has meanwhile."""
    buffer = free.popleft()
    kernel(*arguments, buffer, *last)
    free.append(buffer)


def _at(view: View, buffer: SlotAddress, n: int) -> SlotAddress:
    return (
        buffer[0] + n * 8,
        buffer[1] + n * view.weight_bytes,
        buffer[2] + n * view.time_bytes,
    )
