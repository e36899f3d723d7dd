"""Slow planners, written from the paper's prose, and what a plan does, carried out on counts.

A case is a tree of 2^m leaves with counts, the operations' net effect on some of them, and bounds
by layer. A window is (layer, j): the leaves [j 2^layer, (j + 1) 2^layer). Everything is a sum over
leaves; nothing here knows of heap numbers, prefix sums or a strategy's tricks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from lpma.backend.numba.rebalance import DELETED, MOVED, ROLLED, WindowPlan

Array = npt.NDArray[Any]
Window = tuple[int, int]
Planned = tuple[int, int, tuple[int, ...]]  # layer, j, the ranks of the members


@dataclass(frozen=True)
class Change:
    """What a batch does to one leaf. Without moving, it only writes weights."""

    delta: int
    deleted: bool
    moved: bool


@dataclass(frozen=True)
class Case:
    """REQUIRES: the root has room for what the batch brings."""

    segment_size: int
    counts: tuple[int, ...]
    changes: dict[int, Change]  # by rank
    most: tuple[int, ...]
    least: tuple[int, ...]
    missing: frozenset[int] = frozenset()  # ranks of segments that are not there

    @property
    def m(self) -> int:
        return len(self.most) - 1

    def under(self, window: Window) -> list[int]:
        """The touched leaves of a window."""
        layer, j = window
        return [rank for rank in sorted(self.changes) if rank >> layer == j]

    def total(self, window: Window) -> int:
        """The edges that a window holds after the batch."""
        layer, j = window
        before = sum(self.counts[j << layer : (j + 1) << layer])
        return before + sum(self.changes[rank].delta for rank in self.under(window))

    def fits(self, window: Window) -> bool:
        """The upper bound binds where the count grows, the lower where something is deleted."""
        changes = [self.changes[rank] for rank in self.under(window)]
        total = self.total(window)
        most, least = self.bounds(window)
        too_full = sum(c.delta for c in changes) > 0 and total > most
        too_empty = any(c.deleted for c in changes) and total < least
        return not too_full and not too_empty

    def there(self, window: Window) -> list[int]:
        """The leaves of a window that are there."""
        layer, j = window
        return [rank for rank in range(j << layer, (j + 1) << layer) if rank not in self.missing]

    def bounds(self, window: Window) -> tuple[int, int]:
        """The share of the slots that are there which a window of its layer may and must fill."""
        layer, _ = window
        if not self.missing:
            return self.most[layer], self.least[layer]
        slots, share = self.segment_size * len(self.there(window)), layer / self.m
        return int((1 - 0.1 * share) * slots + 1e-9), ceil(0.3 * share * slots - 1e-9)

    def arguments(self) -> tuple[Array, Any, Array, Array]:
        """The same as a planner of the CPU takes it. REQUIRES: nothing is missing."""
        counts = np.zeros(2 << self.m, np.int64)
        counts[1 << self.m :] = self.counts
        for w in range((1 << self.m) - 1, 0, -1):
            counts[w] = counts[2 * w] + counts[2 * w + 1]
        ranks = sorted(self.changes)
        changes = [self.changes[rank] for rank in ranks]
        flags = [MOVED * c.moved | DELETED * c.deleted for c in changes]
        columns = (ranks, range(len(ranks)), range(1, len(ranks) + 1), [c.delta for c in changes])
        names = ("rank", "lo", "hi", "delta", "flags")
        touched = SimpleNamespace(
            **{n: np.array(c, np.int32) for n, c in zip(names, (*columns, flags), strict=True)}
        )
        return counts, touched, np.array(self.most), np.array(self.least)


def bottom_up(case: Case) -> list[list[Planned]]:
    """Section III-B: "In the first round" every leaf tries its operations; where there are
    "insufficient spaces" they are rolled up, and the next round probes windows twice as large.
    The root takes what comes to it, for it was checked before."""
    rounds = []
    pending = set(case.changes)
    for layer in range(case.m + 1):
        this_round: list[Planned] = []
        for j in sorted({rank >> layer for rank in pending}):
            if layer == case.m or case.fits((layer, j)):
                members = tuple(rank for rank in case.under((layer, j)) if rank in pending)
                this_round.append((layer, j, members))
        for _, _, members in this_round:
            pending -= set(members)
        rounds.append(this_round)
        if not pending:
            break
    return rounds


def top_down(case: Case) -> list[list[Planned]]:
    """Section IV-B: from the root, drill down into both halves while both can hold what falls
    into them (a half into which nothing falls always can); rebalance where one cannot."""

    def drill(window: Window) -> list[Planned]:
        layer, j = window
        touched = case.under(window)
        halves = [(layer - 1, 2 * j), (layer - 1, 2 * j + 1)]
        concerned = [half for half in halves if layer and case.under(half)]
        if concerned and all(case.fits(half) for half in concerned):
            return [planned for half in concerned for planned in drill(half)]
        return [(layer, j, tuple(touched))]

    return [drill((case.m, 0))]


def read_plan(plan: WindowPlan, touched: Any, m: int) -> list[list[Planned]]:
    """A plan in the words of the oracles. Leaves that no larger window takes in are not listed:
    each is a window of the first round."""
    rounds: list[list[Planned]] = []
    for first, last in zip(plan.rounds[:-1], plan.rounds[1:], strict=True):
        alone = touched.rank[touched.flags & ROLLED == 0].tolist() if not rounds else []
        this_round: list[Planned] = [(0, rank, (rank,)) for rank in alone]
        for i in range(first, last):
            layer = int(plan.layer[i])
            j = int(plan.window[i]) - (1 << (m - layer))
            members = plan.members[plan.lo[i] : plan.hi[i]]
            this_round.append((layer, j, tuple(touched.rank[members].tolist())))
        rounds.append(this_round)
    return rounds


def carry_out(case: Case, rounds: list[list[Planned]]) -> tuple[list[int], list[int]]:
    """(leaf counts after the plan, how often each leaf's slots moved). A window larger than a
    leaf is spread evenly; every window must take what it is given."""
    counts, moves = list(case.counts), [0] * len(case.counts)
    for this_round in rounds:
        for layer, j, members in this_round:
            leaves = case.there((layer, j))
            total = sum(counts[leaf] for leaf in leaves)
            total += sum(case.changes[rank].delta for rank in members)
            n = len(leaves)
            for k, leaf in enumerate(leaves):
                counts[leaf] = total * (k + 1) // n - total * k // n
                assert 0 <= counts[leaf] <= case.segment_size
                if layer or case.changes[leaf].moved:
                    moves[leaf] += 1
            if layer:
                for leaf in case.missing.intersection(range(j << layer, (j + 1) << layer)):
                    moves[leaf] += 1  # a window's segments count, there or not
    return counts, moves


def redundant(moves: list[int]) -> int:
    """Segments rebalanced again, each time counted that was not its first."""
    return sum(times - 1 for times in moves if times > 1)


@st.composite
def cases(draw: st.DrawFn, insertions_only: bool = False) -> Case:
    """Trees of up to 64 leaves, from empty to full, hit here and there or all over."""
    m = draw(st.integers(0, 6))
    size = draw(st.sampled_from([2, 4, 8, 32]))
    upper = draw(st.sampled_from([(1.0, 0.9), (1.0, 1.0), (0.75, 0.75), (1.0, 0.6)]))
    lower = draw(st.sampled_from([(0.0, 0.3), (0.0, 0.0), (0.25, 0.5)]))
    most = [int(np.interp(x, (0, max(m, 1)), upper) * (size << x)) for x in range(m + 1)]
    least = [int(np.ceil(np.interp(x, (0, max(m, 1)), lower) * (size << x))) for x in range(m + 1)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    filled = draw(st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]))
    counts = np.minimum(rng.binomial(2 * size, filled / 2 + 0.1, 2**m), size)
    while counts.sum() > most[m]:
        counts[rng.choice(np.flatnonzero(counts))] -= 1
    hit = np.flatnonzero(rng.random(2**m) < draw(st.sampled_from([0.05, 0.3, 1.0])))
    if not len(hit):
        hit = np.zeros(1, np.int64)
    room = most[m] - int(counts.sum())
    largest = draw(st.sampled_from([1, 2, size, 4 * size]))
    deleting = 0.0 if insertions_only else draw(st.sampled_from([0.0, 0.3, 1.0]))
    changes = {}
    for rank in rng.permutation(hit).tolist():
        added = min(int(rng.integers(0, largest, endpoint=True)), room)
        taken = 0
        if rng.random() < deleting:
            taken = int(rng.integers(0, counts[rank], endpoint=True))
        room -= added - min(taken, added)
        changes[rank] = Change(added - taken, taken > 0, added + taken > 0)
    return Case(size, tuple(counts.tolist()), changes, tuple(most), tuple(least))
