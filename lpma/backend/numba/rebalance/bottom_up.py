"""Bottom-up rebalancing, LPMA-B (paper, Section III-B and its Algorithm 1).

Idea: try each touched leaf; what does not fit rolls up, one layer a round, merging with the
window beside it. A window that a later round takes in is then rebalanced again: those segments
are counted as redundant, and they are really moved twice, as in the paper.

Trick: only pending windows are carried from round to round. The change of everything touched
under a window, done or pending, is a difference of prefix sums, since touched leaves are sorted.
"""

from __future__ import annotations

from ....arrays import Array
from ....cpu.jit import ZERO, compiled, inlined
from . import DELETED, HI, LAYER, LO, MEMBERS, MOVED, ROLLED, WINDOW, fits, running_sums

PENDING = -1


@compiled
def plan_into(
    counts: Array, rank: Array, delta: Array, flags: Array, most: Array, least: Array,
    columns: Array, rounds: Array,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Writes the plan into `columns`, `rounds` and the flags. Returns (windows, rounds, redundant
    segments, edges that the windows hold after, their highest layer).

    `done_at` is the layer each touched leaf was last rebalanced at. Pending windows are w, with
    touched leaves first … last - 1 under them."""
    m, n = len(most) - 1, len(rank)
    window, layers, lo, hi = columns[WINDOW], columns[LAYER], columns[LO], columns[HI]
    members, change, gone, done_at = columns[MEMBERS], columns[5], columns[6], columns[7]
    w, first, last = columns[8], columns[9], columns[10]
    pending = ZERO
    leaves = 1 << m
    for i in range(n):
        p = leaves + rank[i]
        if m == 0 or fits(counts[p] + delta[i], delta[i], (flags[i] & DELETED) != 0,
                          most[0], least[0]):  # fmt: skip
            flags[i] &= ~ROLLED
        else:
            flags[i] |= ROLLED
            w[pending], first[pending], last[pending] = p, i, i + 1
            pending += 1
    rounds[0], rounds[1] = 0, 0
    if pending:
        running_sums(delta, flags, change, gone)
        for i in range(n):
            done_at[i] = PENDING if flags[i] & ROLLED else 0
    planned, placed, redundant, held, layer = 0, 0, 0, 0, 0
    while pending:
        layer += 1
        pending = _roll_up(rank, w, first, last, pending, layer, leaves)
        left = 0
        for i in range(pending):
            a, b = first[i], last[i]
            moved, deleted = change[b] - change[a], gone[b] > gone[a]
            before = counts[w[i]]
            if w[i] > 1 and not fits(before + moved, moved, deleted,
                                     most[layer], least[layer]):  # fmt: skip
                w[left], first[left], last[left] = w[i], a, b
                left += 1
                continue
            window[planned], layers[planned], lo[planned] = w[i], layer, placed
            held += before + moved
            redundant += _rebalanced_before(rank, flags, done_at, a, b)
            for leaf in range(a, b):
                if done_at[leaf] == PENDING:
                    members[placed] = leaf
                    placed += 1
                done_at[leaf] = layer
            hi[planned] = placed
            planned += 1
        pending = left
        rounds[layer + 1] = planned
    return planned, layer + 1, redundant, held, layer


@inlined
def _roll_up(
    rank: Array, w: Array, first: Array, last: Array, pending: int, layer: int, leaves: int
) -> int:
    """Replace pending windows by those around them, two halves of one by that one."""
    up = 0
    for i in range(pending):
        around = w[i] >> 1
        if up and w[up - 1] == around:
            continue
        a, b = first[i], last[i]
        begin = (around << layer) - leaves
        while a > 0 and rank[a - 1] >= begin:
            a -= 1
        while b < len(rank) and rank[b] < begin + (1 << layer):
            b += 1
        w[up], first[up], last[up] = around, a, b
        up += 1
    return up


@inlined
def _rebalanced_before(rank: Array, flags: Array, done_at: Array, first: int, last: int) -> int:
    """Segments that earlier rounds rebalanced under touched leaves first … last - 1."""
    segments = 0
    window_before, layer_before = -1, -1
    for leaf in range(first, last):
        layer = done_at[leaf]
        if layer == PENDING or (layer == 0 and not flags[leaf] & MOVED):
            continue
        if layer == layer_before and rank[leaf] >> layer == window_before:
            continue
        window_before, layer_before = rank[leaf] >> layer, layer
        segments += 1 << layer
    return segments
