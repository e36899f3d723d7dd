"""Strategies: which windows to rebalance so that a batch fits. They plan; the mover moves.

A strategy is a function of the window counts, the touched leaves and the density bounds. It
returns a `WindowPlan`: windows in rounds, disjoint within a round, every touched leaf a member
of exactly one window. All strategies lead to the same graph; they differ in what they move.

A window *fits* when its count after the batch is within its bounds. The upper bound binds where
the count grows, the lower where something was deleted; the root is checked (and expanded)
before, and shrunk after, so a plan always exists.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....arrays import Array
from ....cpu.jit import compiled, inlined

PLAN_COLUMNS = 13  # int32 columns of L + 1 entries that planning L touched leaves takes
MAX_M = 29  # levels beside the head at most: windows are numbered in int32
MAX_ROUNDS = 64  # more than there are layers
# Flags of a touched leaf: slots move in it; something was deleted from it; a larger window takes
# it in, which the plan decides.
MOVED, DELETED, ROLLED = 1, 2, 4


class WindowPlan(NamedTuple):
    """k windows larger than a leaf, over L touched leaves. A touched leaf that is not ROLLED is a
    window of its own, in the first round: most leaves, so they are not listed."""

    touched: Any  # the leaves it was made for
    columns: Array  # int32[PLAN_COLUMNS, >= L]: see the properties; the rest was for planning
    num_windows: int  # k
    rounds: Array  # int64[r+1]: round i is windows rounds[i] … rounds[i+1] - 1
    redundant: int  # segments rebalanced again in a later round
    held_above_leaves: int  # edges that the k windows hold after the batch
    highest: int  # the largest of their layers, 0 where there are none

    @property
    def num_rounds(self) -> int:
        return len(self.rounds) - 1

    @property
    def window(self) -> Array:
        """int32[k]: heap numbers."""
        return self.columns[WINDOW, : self.num_windows]

    @property
    def layer(self) -> Array:
        """int32[k]"""
        return self.columns[LAYER, : self.num_windows]

    @property
    def lo(self) -> Array:
        """int32[k]: the window's members are members[lo:hi], touched leaves by rising rank."""
        return self.columns[LO, : self.num_windows]

    @property
    def hi(self) -> Array:
        """See lo."""
        return self.columns[HI, : self.num_windows]

    @property
    def members(self) -> Array:
        """int32: indices of touched leaves."""
        return self.columns[MEMBERS]


WINDOW, LAYER, LO, HI, MEMBERS = range(5)  # rows of a plan's columns
SPARE = 5  # from here on they are of use while planning only


@inlined
def fits(total: int, delta: int, deleted: bool, most: int, least: int) -> bool:
    """Whether a window that will hold `total` edges, `delta` more than before, is in bounds."""
    if delta > 0 and total > most:
        return False
    return not (deleted and total < least)


@inlined
def running_sums(delta: Array, flags: Array, change: Array, gone: Array) -> None:
    """Write the net change of the first i touched leaves, and how many of them saw deletions,
    for i = 0 … L."""
    change[0], gone[0] = 0, 0
    for i in range(len(delta)):
        change[i + 1] = change[i] + delta[i]
        gone[i + 1] = gone[i] + ((flags[i] & DELETED) != 0)


def plan(
    into: Any, counts: Array, touched: Any, most: Array, least: Array, space: Array, rounds: Array
) -> WindowPlan:
    """The plan of a strategy. into: its `plan_into`; counts: int64[2^(m+1)]; touched: rank, delta,
    flags of L >= 1 leaves, whose ROLLED is written; bounds int64[m+1] (density.py). It lies in
    `space`, int32[PLAN_COLUMNS, > L], and `rounds`, int64[MAX_ROUNDS]."""
    leaves = (touched.rank, touched.delta, touched.flags)
    windows, ended, *figures = into(counts, *leaves, most, least, space, rounds)
    return WindowPlan(touched, space, windows, rounds[: ended + 1], *figures)


@compiled
def count_work(
    plan: Array, num_windows: int, rank: Array, flags: Array, counts: Array, windows: Array,
    segments: Array, slots: Array,
) -> int:  # fmt: skip
    """Add to `windows` those in which slots move, by layer, to `segments` theirs, to `slots` the
    edges they hold, `counts` being those after. Returns the edges held."""
    leaves = len(counts) >> 1
    alone, total = 0, 0
    for i in range(len(rank)):
        if (flags[i] & (MOVED | ROLLED)) == MOVED:
            alone += 1
            total += counts[leaves + rank[i]]
    windows[0] += alone
    segments[0] += alone
    slots[0] += total
    for i in range(num_windows):
        layer = plan[LAYER, i]
        held = counts[plan[WINDOW, i]]
        windows[layer] += 1
        segments[layer] += 1 << layer
        slots[layer] += held
        total += held
    return total
