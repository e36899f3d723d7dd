"""Strategies: which windows to rebalance so that a batch fits. They plan; the mover moves.

A strategy is a function of the window counts, the touched leaves and the density bounds. It
returns a `WindowPlan`: windows in rounds, disjoint within a round, every touched leaf a member
of exactly one window. All strategies lead to the same graph; they differ in what they move.

A window *fits* when its count after the batch is within its bounds. The upper bound binds where
the count grows, the lower where something was deleted; the root is checked (and expanded)
before, and shrunk after, so a plan always exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Array = npt.NDArray[Any]

PLAN_COLUMNS = 13  # int64 columns of L + 1 entries that planning L touched leaves takes
MOVED, DELETED = 1, 2  # flags of a touched leaf: slots move in it; something was deleted from it


@dataclass(frozen=True)
class WindowPlan:
    """k windows over L touched leaves."""

    window: Array  # int64[k]: heap numbers
    layer: Array  # int64[k]
    lo: Array  # int64[k]: its members are members[lo:hi], touched leaves by rising rank
    hi: Array  # int64[k]
    members: Array  # int64[L]: indices of touched leaves
    rounds: Array  # int64[r+1]: round i is windows rounds[i] … rounds[i+1] - 1
    redundant: int  # segments rebalanced again in a later round

    @property
    def num_rounds(self) -> int:
        return len(self.rounds) - 1


@njit(cache=True, nogil=True)
def fits(total: int, delta: int, deleted: bool, most: int, least: int) -> bool:
    """Whether a window that will hold `total` edges, `delta` more than before, is in bounds."""
    if delta > 0 and total > most:
        return False
    return not (deleted and total < least)


@njit(cache=True, nogil=True)
def running_sums(delta: Array, flags: Array, change: Array, gone: Array) -> None:
    """Write the net change of the first i touched leaves, and how many of them saw deletions,
    for i = 0 … L."""
    change[0], gone[0] = 0, 0
    for i in range(len(delta)):
        change[i + 1] = change[i] + delta[i]
        gone[i + 1] = gone[i] + ((flags[i] & DELETED) != 0)


def plan_space(touched: int) -> list[Array]:
    """Fresh columns to plan `touched` leaves in."""
    return [np.empty(touched + 1, np.int64) for _ in range(PLAN_COLUMNS)]


@njit(cache=True, nogil=True)
def held_above_leaves(window: Array, layer: Array, counts: Array) -> int:
    """The edges that the planned windows of layer 1 and more hold, by `counts`."""
    held = 0
    for i in range(len(window)):
        if layer[i] > 0:
            held += counts[window[i]]
    return held


@njit(cache=True, nogil=True)
def highest_layer(layer: Array) -> int:
    """The largest of the planned windows' layers, 0 where there are none."""
    highest = 0
    for i in range(len(layer)):
        highest = max(highest, layer[i])
    return highest


@njit(cache=True, nogil=True)
def count_work(
    window: Array, layer: Array, lo: Array, members: Array, flags: Array, counts: Array,
    windows: Array, segments: Array, slots: Array,
) -> int:  # fmt: skip
    """Add to `windows` those in which slots move, by layer, to `segments` theirs, to `slots` the
    edges they hold, `counts` being those after. Returns the edges held."""
    total = 0
    for i in range(len(window)):
        if layer[i] > 0 or (flags[members[lo[i]]] & MOVED) != 0:
            held = counts[window[i]]
            windows[layer[i]] += 1
            segments[layer[i]] += 1 << layer[i]
            slots[layer[i]] += held
            total += held
    return total
