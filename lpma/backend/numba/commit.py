"""From a located batch to a committed one on the CPU: plans, the buffers they need, the moves; and
the global merge, for which the whole store is one window that is spread over fresh levels.

Planning writes nothing of the store. Everything is allocated before the first write, by `reserve`,
so that nothing can fail half-way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ...arrays import Array, address
from ...cpu.threads import THREADS, cuts, run_all
from ...pma.density import bounds
from ...pma.layout import Size
from ...pma.strategy import TOP_DOWN
from ..values import INSERT, Changed
from . import fused, keys, locate, move, rebalance
from .addressing import Slot, View, further
from .located import Located
from .rebalance import SPARE, WindowPlan, bottom_up, top_down
from .segments import LAST_FENCE, Segments, empty_like
from .workspace import FIRST

_PIECES = (1024, 4)  # least segments in a piece of a round, most pieces per thread
SEGMENTS_PER_TASK = 1024
LARGE_LAYER = 9  # windows of more segments than 2^9 are cut for all threads


def place_on(segments: Segments, located: Located) -> None:
    """On a store with that many more levels: rank i is then i * 2^levels."""
    located.touched.rank[:] <<= segments.m - located.m
    located.m, located.expands = segments.m, True


def plan(strategy: str, segments: Segments, located: Located) -> WindowPlan:
    """The plan that locating made, if it was for this shape and strategy; else a new one."""
    if located.planned is not None:
        planned_on, planned_by, made = located.planned
        if planned_on is segments and planned_by == strategy:
            return made
        located.planned = None  # the new plan overwrites it
    most, least = bounds(segments.m, segments.segment_size)
    # Room for all that such a batch can touch: the next touches others, and clearing fresh pages
    # takes longer than planning.
    most_leaves = min(len(located.key), 1 << segments.m)
    work = located.workspace
    work.plan.reserve(1 + max(located.touched.n, most_leaves))
    into = (top_down if strategy == TOP_DOWN else bottom_up).plan_into
    return rebalance.plan(
        into, segments.counts, located.touched, most, least, work.plan.grid, work.rounds
    )


def reserve(segments: Segments, located: Located, plan: WindowPlan, shrinking: int) -> None:
    """Slot buffers for the plan's windows, and for `shrink` of `shrinking` slots."""
    workspace, size = located.workspace, segments.segment_size
    if located.is_moved_at_once and plan.highest <= segments.alone_layer:
        workspace.slot_buffer(segments, FIRST, size << plan.highest)
    else:
        _scratch(segments, located, min(plan.highest, LARGE_LAYER))
        if plan.highest > LARGE_LAYER:
            workspace.slot_buffer(segments, "large", size << plan.highest)
    if shrinking:
        workspace.slot_buffer(segments, "large", shrinking)


def _scratch(segments: Segments, located: Located, layer: int) -> list[Slot]:
    """A buffer for each thread, of 2^layer segments."""
    slots = segments.segment_size << layer
    workspace = located.workspace
    return [workspace.slot_buffer(segments, f"thread {i}", slots) for i in range(THREADS)]


def changes_of(located: Located, most: int) -> Changed:
    """The keys inserted and deleted; None if there are more than `most`."""
    changed = located.tally.num_changes
    if changed > most:
        return None
    try:
        return keys.changes(located.rows, changed)
    except MemoryError:  # the batch is applied; the history may forget
        return None


def carry_out(segments: Segments, located: Located, plan: WindowPlan) -> None:
    """Move what a plan says, in its windows."""
    work, touched = located.workspace, located.touched
    if located.is_moved_at_once and plan.highest <= segments.alone_layer:
        n = len(located.key)
        record, table, entries = (
            located.staged.record, work.small_table(segments, n), fused.addresses()
        )  # fmt: skip
        fused.commit(
            segments.at, address(record), address(table), address(entries), n, touched.n,
            plan.num_rounds, plan.highest,
        )  # fmt: skip
        return
    layer = min(plan.highest, LARGE_LAYER)
    batch = (segments.view, located.staged.view, located.rows, touched.view)
    free = deque(_scratch(segments, located, layer))
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
                _move_large(segments, located, plan, int(i))
    move.sum_upward(segments.view, touched.rank, touched.n, plan.columns[SPARE])


def _move_large(segments: Segments, located: Located, plan: WindowPlan, i: int) -> None:
    """Gather and spread one window in pieces on all threads."""
    view, layer, w = segments.view, int(plan.layer[i]), int(plan.window[i])
    rank = (w << layer) - (1 << view.m)
    members = plan.members, int(plan.lo[i]), int(plan.hi[i])
    buffer, total = _gathered(segments, located, rank, layer, *members)
    following = np.uint64(move.following_fence(view, rank + (1 << layer)))
    spread_evenly(view, buffer, total, w, layer, following)


def _gathered(
    segments: Segments, located: Located, rank: int, layer: int, members: Array, lo: int, hi: int
) -> tuple[Slot, int]:
    """The slots of a window, merged with its members' operations, in a buffer; and how many."""
    view, leaves, batch = segments.view, located.touched.view, located.staged.view
    edges = np.array([0] + [hi for _, hi in cuts(1 << layer, SEGMENTS_PER_TASK, 4)], np.int64)
    # Compiled, since NumPy would need memory, of which there may be none now (invariant 7).
    starts, member = move.piece_offsets(view, rank, edges, leaves, members, lo, hi)
    total = int(starts[-1])
    buffer = located.workspace.slot_buffer(segments, "large", total)
    run_all(
        move.gather,
        [
            (view, batch, rank + edges[k], rank + edges[k + 1], located.rows, leaves, members,
             member[k], member[k + 1], further(view, buffer, int(starts[k])))
            for k in range(len(edges) - 1)
        ],
    )  # fmt: skip
    return buffer, total


def spread_evenly(
    view: View, source: Slot, total: int, w: int, layer: int, following: np.uint64 = LAST_FENCE
) -> None:
    """Spread `total` slots evenly over window w. following: the fence of the segment after it."""
    rank = (w << layer) - (1 << view.m)
    pieces = cuts(1 << layer, SEGMENTS_PER_TASK, 4)
    run_all(
        move.spread, [(view, source, total, rank, layer, *piece, following) for piece in pieces]
    )
    move.sum_window(view, w, layer)


def rebuild(segments: Segments, located: Located, size: Size) -> Segments:
    """A load into an empty store is cut at rows, any other merge at segments."""
    fresh = empty_like(segments, size)
    if segments.num_slots:
        members = np.arange(located.touched.n, dtype=np.int32)
        buffer, total = _gathered(segments, located, 0, segments.m, members, 0, len(members))
    else:
        buffer, total = _gathered_rows(segments, located)
    spread_evenly(fresh.view, buffer, total, 1, fresh.m)
    return fresh


def _gathered_rows(segments: Segments, located: Located) -> tuple[Slot, int]:
    """What a batch puts into an empty store, in a buffer; and how many slots."""
    view, batch, rows, total = segments.view, located.staged.view, located.rows, located.tally.delta
    n = len(located.key)
    pieces = list(pairwise(locate.run_edges(located.key, cuts(n, locate.ROWS_PER_TASK))))
    action = located.workspace.actions(n)
    starts = np.cumsum([0] + [np.count_nonzero(action[lo:hi] == INSERT) for lo, hi in pieces])
    buffer = located.workspace.slot_buffer(segments, "large", total)
    run_all(
        move.gather_rows,
        [
            (view, batch, rows, lo, hi, further(view, buffer, int(start)))
            for (lo, hi), start in zip(pieces, starts, strict=False)
        ],
    )
    return buffer, total


def _with_buffer(
    free: deque[Slot], kernel: Callable[..., None], arguments: tuple[Any, ...], *last: Any
) -> None:
    """One task of a round, with a buffer to itself."""
    buffer = free.popleft()
    kernel(*arguments, buffer, *last)
    free.append(buffer)
