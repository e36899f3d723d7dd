"""Whole stores on the CPU: filled in one pass, shrunk by a level."""

from __future__ import annotations

import numpy as np

from ...arrays import Array, address
from ...cpu.jit import compiled
from ...pma.layout import Size
from .addressing import Slot, View, advance, count_of, move_slots, segment_at
from .batch_view import BatchView, Leaves, Rows
from .commit import spread_evenly
from .move import call_gather, following_fence, gather_at, spread, sum_window
from .segments import Segments, empty_segments, shrunk
from .workspace import Workspace

NO_BATCH = BatchView(0, 0, 0, 0, 0, 0, 0, 0)
NO_ROWS = Rows(0, 0, 0, 0, 0)
NO_LEAVES = Leaves(0, 0, 0, 0, 0, 0)
NO_MEMBERS = np.zeros(0, np.int32)


def build(
    segment_size: int, size: Size, keys: Array, weights: Array | None, times: Array | None
) -> Segments:
    """Filled in one pass, by all threads."""
    fresh = empty_segments(
        segment_size, None if weights is None else weights.dtype, times is not None, size
    )
    columns = [None if c is None else np.ascontiguousarray(c) for c in (keys, weights, times)]
    key, weight, time = (0 if column is None else address(column) for column in columns)
    spread_evenly(fresh.view, (key, weight, time), len(keys), 1, fresh.m)
    return fresh


def shrink(workspace: Workspace, segments: Segments, most: Array) -> tuple[Segments, Array]:
    """On one thread: stores shrink rarely, and by few levels."""
    smaller = shrunk(segments)
    buffer = workspace.slot_buffer(segments, "large", segments.num_slots)
    moved = merge_pairs(
        segments.view, smaller.view, NO_BATCH, NO_ROWS, NO_LEAVES, NO_MEMBERS, most, buffer,
        gather_at.address,
    )  # fmt: skip
    return smaller, moved


@compiled
def merge_pairs(
    v: View, to: View, batch: BatchView, rows: Rows, leaves: Leaves, members: Array, most: Array,
    scratch: Slot, gather_at: int,
) -> Array:  # fmt: skip
    """Empty the last level of `v` into the others, which `to` shares. The batch is empty. Returns
    the windows rebalanced by layer of `to`, pairs being layer 0.

    A window of `to` is the same window of `v` one layer lower, so its count is known before. From
    the root down: where both halves of a window fit, each is settled by itself; where one does
    not, the whole window is spread evenly."""
    first_leaf = 1 << to.m
    rebalanced = np.zeros(to.m + 1, np.int64)
    windows, layers = np.empty(to.m + 2, np.int64), np.empty(to.m + 2, np.int64)  # a stack
    windows[0], layers[0] = 1, to.m
    depth = 1
    while depth:
        depth -= 1
        w, layer = windows[depth], layers[depth]
        if layer > 0 and count_of(v, 2 * w) <= most[layer - 1] >= count_of(v, 2 * w + 1):
            for half in (2 * w + 1, 2 * w):
                windows[depth], layers[depth] = half, layer - 1
                depth += 1
            continue
        rank = (w << layer) - first_leaf
        if layer == 0:
            left, right = count_of(v, 2 * w), count_of(v, 2 * w + 1)
            if right:
                at = advance(v, segment_at(v, 2 * rank), left)
                move_slots(v, at, segment_at(v, 2 * rank + 1), right)
                rebalanced[0] += 1
            continue
        n = 1 << layer
        total = call_gather(
            gather_at, v, batch, 2 * rank, 2 * (rank + n), rows, leaves, members, 0, 0, scratch
        )
        spread(to, scratch, total, rank, layer, 0, n, following_fence(to, rank + n))
        sum_window(to, w, layer)
        rebalanced[layer] += 1
    return rebalanced
