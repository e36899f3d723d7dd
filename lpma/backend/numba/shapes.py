"""Whole stores on the CPU: filled in one pass, shrunk by a level."""

from __future__ import annotations

import numpy as np

from ...arrays import Array, address
from ...cpu.jit import compiled
from ...pma.layout import Size
from .addressing import Slot, View, advance, count_of, move_slots, segment_at
from .commit import spread_evenly
from .export import write_slots
from .move import following_fence, spread, sum_window
from .segments import Segments, empty_segments, shrunk
from .workspace import Workspace


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
    return smaller, merge_pairs(segments.view, smaller.view, most, buffer)


@compiled
def merge_pairs(v: View, to: View, most: Array, scratch: Slot) -> Array:
    """Empty the last level of `v` into the others, which `to` shares. Returns the windows
    rebalanced by layer of `to`, pairs being layer 0.

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
        n, total = 1 << layer, count_of(v, w)
        write_slots(v, 2 * rank, 2 * (rank + n), scratch)
        spread(to, scratch, total, rank, layer, 0, n, following_fence(to, rank + n))
        sum_window(to, w, layer)
        rebalanced[layer] += 1
    return rebalanced
