"""Top-down rebalancing, LPMA-T (paper, Section IV-B and its Algorithm 2).

Idea: drill down from the root while both halves of a window fit the operations that fall into
them, and rebalance where one does not. Each segment is rebalanced at most once: nothing is
redundant, and one round does.

Trick: the touched leaves of a window are consecutive, so its net change and whether it saw a
deletion are differences of prefix sums, and splitting it is one binary search.

There are 2^m segments for m levels beside the head; Section IV's 2^(h+1) is a slip.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from . import WindowPlan, fits, plan_space, running_sums

Array = npt.NDArray[Any]


@njit(cache=True, nogil=True)
def _plan(
    counts: Array, rank: Array, delta: Array, flags: Array, most: Array, least: Array, m: int,
    change: Array, gone: Array, window: Array, layers: Array, lo: Array, hi: Array,
    members: Array,
) -> int:  # fmt: skip
    """Writes the windows; returns how many."""
    n = len(rank)
    running_sums(delta, flags, change, gone)
    for i in range(n):
        members[i] = i
    planned = 0
    # A stack of windows (number, touched leaves a:b), right halves under left ones.
    stack_w = np.empty(m + 2, np.int64)
    stack_a, stack_b = np.empty(m + 2, np.int64), np.empty(m + 2, np.int64)
    stack_layer = np.empty(m + 2, np.int64)
    stack_w[0], stack_a[0], stack_b[0], stack_layer[0] = 1, 0, n, m
    depth = 1
    while depth:
        depth -= 1
        w, a, b, layer = stack_w[depth], stack_a[depth], stack_b[depth], stack_layer[depth]
        if layer > 0:
            split = _first_from(rank, a, b, ((2 * w + 1) << (layer - 1)) - (1 << m))
            below = layer - 1
            if _half_fits(counts, change, gone, 2 * w, a, split, most[below], least[below]) and (
                _half_fits(counts, change, gone, 2 * w + 1, split, b, most[below], least[below])
            ):
                if split < b:
                    stack_w[depth], stack_layer[depth] = 2 * w + 1, below
                    stack_a[depth], stack_b[depth] = split, b
                    depth += 1
                if a < split:
                    stack_w[depth], stack_layer[depth] = 2 * w, below
                    stack_a[depth], stack_b[depth] = a, split
                    depth += 1
                continue
        window[planned], layers[planned] = w, layer
        lo[planned], hi[planned] = a, b
        planned += 1
    return planned


@njit(cache=True, nogil=True)
def _first_from(rank: Array, low: int, high: int, wanted: int) -> int:
    """The first of touched leaves low … high - 1 whose rank is not under `wanted`, else high."""
    while low < high:
        middle = (low + high) >> 1
        if rank[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _half_fits(
    counts: Array, change: Array, gone: Array, w: int, a: int, b: int, most: int, least: int
) -> bool:
    if a == b:
        return True
    delta = change[b] - change[a]
    return fits(counts[w] + delta, delta, gone[b] > gone[a], most, least)


def plan(
    counts: Array, touched: Any, most: Array, least: Array, space: list[Array] | None = None
) -> WindowPlan:
    """counts: int64[2^(m+1)]; touched: rank, delta, flags of L >= 1 leaves; bounds int64[m+1].
    The plan lies in `space`, where given: see PLAN_COLUMNS."""
    m, n = len(most) - 1, len(touched.rank)
    columns = (touched.rank, touched.delta, touched.flags)
    space = plan_space(n) if space is None else space
    _, _, window, layer, lo, hi, members = space[:7]
    planned = _plan(counts, *columns, most, least, m, *space[:7])
    window, layer, lo, hi = (column[:planned] for column in (window, layer, lo, hi))
    return WindowPlan(window, layer, lo, hi, members[:n], np.array([0, planned]), 0)
