"""One level less: its segments are emptied into those of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...cpu.jit import compiled
from .counts import sum_window
from .memory import View, advance, count_of, move_slots, segment_at
from .merge import Slot
from .move import call_gather, following_fence, spread
from .rows import BatchView, Leaves, Rows

Array = npt.NDArray[Any]


@compiled
def shrink(
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
            gather_at,
            v,
            batch,
            2 * rank,
            2 * (rank + n),
            rows,
            leaves,
            members,
            0,
            0,
            scratch,
        )
        spread(to, scratch, total, rank, layer, 0, n, following_fence(to, rank + n))
        sum_window(to, w, layer)
        rebalanced[layer] += 1
    return rebalanced
