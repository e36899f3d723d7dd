"""Whole stores on the CPU: filled in one pass, shrunk by a level."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import Array, address
from ...cpu.jit import compiled
from ...cpu.threads import cuts, run_all
from ...pma.layout import Size
from ..values import SlotColumns, SlotSource, num_pieces
from .addressing import Slot, View, advance, count_of, move_slots, segment_at
from .commit import SEGMENTS_PER_TASK
from .export import write_slots
from .move import following_fence, spread, sum_window
from .segments import LAST_FENCE, Segments, empty_segments, shrunk
from .workspace import Workspace


def build(
    segment_size: int, weight_dtype: np.dtype[Any] | None, times: bool, size: Size,
    slots: SlotSource,
) -> Segments:  # fmt: skip
    """A piece after the other, each by all threads. A piece ends where a segment begins."""
    fresh = empty_segments(segment_size, weight_dtype, times, size)
    total, m, n = slots.total, fresh.m, num_pieces(slots.total)
    lo = first = 0
    for piece in range(1, n + 1):
        last = (piece << m) // n * total >> m
        hi = 1 << m if last == total else -(-(last << m) // total)  # begins with that slot
        _fill(fresh, lo, hi, total, first, slots.read(first, last))
        lo, first = hi, last
    sum_window(fresh.view, 1, m)
    return fresh


def _fill(
    fresh: Segments, lo: int, hi: int, total: int, first: int, columns: SlotColumns
) -> None:  # fmt: skip
    """Give segments lo … hi - 1 their share of `total` slots, of which these are those from `first`
    on."""
    held = [None if column is None else np.ascontiguousarray(column) for column in columns]
    # Where slot 0 would be.
    key, weight, time = (0 if c is None else address(c) - first * c.itemsize for c in held)
    source, m = (key, weight, time), fresh.m
    run_all(
        spread,
        [
            (fresh.view, source, total, 0, m, lo + begin, lo + end, LAST_FENCE)
            for begin, end in cuts(hi - lo, SEGMENTS_PER_TASK, 4)
        ],
    )


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
