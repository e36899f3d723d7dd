"""Top-down rebalancing, LPMA-T (paper, Section IV-B and its Algorithm 2).

Idea: drill down from the root while both halves of a window fit the operations that fall into
them, and rebalance where one does not. Each segment is rebalanced at most once: nothing is
redundant, and one round does.

Tricks: the touched leaves of a window are consecutive, so its net change and whether it saw a
deletion are differences of prefix sums, and splitting it is one binary search. The drill goes a
layer at a time, not a path at a time, so that the cache misses of a layer's windows overlap.

There are 2^m segments for m levels beside the head; Section IV's 2^(h+1) is a slip.
"""

from __future__ import annotations

from ....arrays import Array
from ....cpu.jit import ONE, ZERO, compiled, inlined
from . import HI, LAYER, LO, MEMBERS, ROLLED, WINDOW, fits, running_sums


@compiled
def plan_into(
    counts: Array, rank: Array, delta: Array, flags: Array, most: Array, least: Array,
    columns: Array, rounds: Array,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Writes the plan into `columns`, `rounds` and the flags. Returns (windows, rounds, redundant
    segments, edges that the windows hold after, their highest layer).

    (w, a, b) are a layer's windows still to be drilled down from, with touched leaves a … b - 1
    under them; those that come to be leaves are not listed."""
    m, n = len(most) - 1, len(rank)
    window, layers, lo, hi = columns[WINDOW], columns[LAYER], columns[LO], columns[HI]
    members, change, gone = columns[MEMBERS], columns[5], columns[6]
    w, a, b = columns[7], columns[8], columns[9]
    next_w, next_a, next_b = columns[10], columns[11], columns[12]
    running_sums(delta, flags, change, gone)
    for i in range(n):
        flags[i] &= ~ROLLED
    planned, placed, held, highest = 0, 0, 0, 0
    w[0], a[0], b[0] = 1, 0, n
    here = 1
    for layer in range(m, 0, -1):
        below = layer - 1
        up_to, at_least = most[below], least[below]
        drilled = 0
        for i in range(here):
            first, last, left = a[i], b[i], 2 * w[i]
            split = _first_from(rank, first, last, ((left + 1) << below) - (1 << m))
            if not (
                _half_fits(counts, change, gone, left, first, split, up_to, at_least)
                and _half_fits(counts, change, gone, left + 1, split, last, up_to, at_least)
            ):
                window[planned], layers[planned], lo[planned] = w[i], layer, placed
                for leaf in range(first, last):
                    flags[leaf] |= ROLLED
                    members[placed] = leaf
                    placed += 1
                hi[planned] = placed
                planned += 1
                held += counts[w[i]] + change[last] - change[first]
                highest = max(highest, layer)
                continue
            if below == 0:
                continue
            if first < split:
                next_w[drilled], next_a[drilled], next_b[drilled] = left, first, split
                drilled += 1
            if split < last:
                next_w[drilled], next_a[drilled], next_b[drilled] = left + 1, split, last
                drilled += 1
        w, next_w = next_w, w
        a, next_a = next_a, a
        b, next_b = next_b, b
        here = drilled
    rounds[0], rounds[1] = 0, planned
    return planned, ONE, ZERO, held, highest


@inlined
def _first_from(rank: Array, low: int, high: int, wanted: int) -> int:
    """The first of touched leaves low … high - 1 whose rank is not under `wanted`, else high."""
    while low < high:
        middle = (low + high) >> 1
        if rank[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _half_fits(
    counts: Array, change: Array, gone: Array, w: int, a: int, b: int, most: int, least: int
) -> bool:
    if a == b:
        return True
    delta = change[b] - change[a]
    return fits(counts[w] + delta, delta, gone[b] > gone[a], most, least)
