"""The strategies' plans against slow planners written from the paper's prose, what the plans
promise (invariant 4), and the hybrid's choices by a clock that the tests set."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma.backend.numba import rebalance
from lpma.backend.values import Costs
from lpma.pma.strategy import BATCHES_COMPARED, BOTTOM_UP, FIRST_PI, TOP_DOWN, Hybrid
from lpma.store import pending
from tests.support.layout_oracles import fill
from tests.support.plan_oracles import Case, Change, carry_out, cases, read_plan, redundant
from tests.support.plan_oracles import bottom_up as slow_bottom_up
from tests.support.plan_oracles import top_down as slow_top_down


def plan_by(into: Any, counts: Any, touched: Any, most: Any, least: Any) -> Any:
    space = np.empty((rebalance.PLAN_COLUMNS, len(touched.rank) + 1), np.int32)
    rounds = np.empty(rebalance.MAX_ROUNDS, np.int64)
    return rebalance.plan(into, counts, touched, most, least, space, rounds)


plan_bottom_up = partial(plan_by, rebalance.bottom_up.plan_into)
plan_top_down = partial(plan_by, rebalance.top_down.plan_into)
PLANNERS = {BOTTOM_UP: (plan_bottom_up, slow_bottom_up), TOP_DOWN: (plan_top_down, slow_top_down)}


# Bottom-up and top-down ----------------------------------------------------------------------


@pytest.mark.parametrize("strategy", PLANNERS)
@given(case=cases())
def test_against_the_slow_planner(strategy: str, case: Case) -> None:
    planner, slow = PLANNERS[strategy]
    counts, touched, most, least = case.arguments()
    plan = planner(counts, touched, most, least)
    rounds = read_plan(plan, touched, case.m)
    # The windows of a round are disjoint: their order is the planner's own affair.
    assert [sorted(r) for r in rounds] == [sorted(r) for r in slow(case)]
    assert plan.num_rounds == len(rounds)
    assert plan.redundant == redundant(carry_out(case, rounds)[1])
    # What global_merge="auto" weighs against rebuilding the store.
    larger = [(layer, j) for this_round in rounds for layer, j, _ in this_round if layer]
    assert plan.held_above_leaves == sum(map(case.total, larger))


@pytest.mark.parametrize("strategy", PLANNERS)
@given(case=cases())
def test_what_every_plan_promises(strategy: str, case: Case) -> None:
    """Windows of a round are disjoint, every touched leaf is a member once, of a window around
    it, and every window is within the bounds that bind it (invariant 4)."""
    counts, touched, most, least = case.arguments()
    rounds = read_plan(PLANNERS[strategy][0](counts, touched, most, least), touched, case.m)
    for this_round in rounds:
        leaves = [leaf for layer, j, _ in this_round for leaf in range(j << layer, j + 1 << layer)]
        assert len(leaves) == len(set(leaves))
    members = [(rank, layer, j) for r in rounds for layer, j, ranks in r for rank in ranks]
    assert sorted(rank for rank, _, _ in members) == sorted(case.changes)
    assert all(rank >> layer == j for rank, layer, j in members)
    for layer, j, _ in (window for this_round in rounds for window in this_round):
        assert layer == case.m or case.fits((layer, j))
    after, _ = carry_out(case, rounds)
    assert sum(after) == case.total((case.m, 0))


@pytest.mark.parametrize("strategy", PLANNERS)
@given(case=cases(insertions_only=True))
def test_insertions_never_fill_a_window_beyond_its_bound(strategy: str, case: Case) -> None:
    """Invariant 4, whatever binds: leaf counts after the plan, added up over every window that no
    later round has taken in."""
    counts, touched, most, least = case.arguments()
    rounds = read_plan(PLANNERS[strategy][0](counts, touched, most, least), touched, case.m)
    after, _ = carry_out(case, rounds)
    taken: set[int] = set()
    for layer, j, _ in (window for this_round in reversed(rounds) for window in this_round):
        leaves = range(j << layer, j + 1 << layer)
        grown = any(case.changes[rank].delta for rank in case.under((layer, j)))
        if grown and not taken.intersection(leaves):
            assert sum(after[leaf] for leaf in leaves) <= case.bounds((layer, j))[0]
        taken.update(leaves)


@given(case=cases())
def test_top_down_moves_nothing_twice(case: Case) -> None:
    """One round, nothing redundant, and every window on its path within bounds (invariant 4)."""
    counts, touched, most, least = case.arguments()
    plan = plan_top_down(counts, touched, most, least)
    assert (plan.num_rounds, plan.redundant) == (1, 0)
    [windows] = read_plan(plan, touched, case.m)
    _, moves = carry_out(case, [windows])
    assert max(moves) <= 1
    for layer, j, _ in windows:
        for up in range(layer, case.m):
            assert case.fits((up, j >> (up - layer)))


@given(case=cases())
def test_windows_of_bottom_up_lie_within_those_of_top_down(case: Case) -> None:
    """Bottom-up stops at the smallest window that fits; top-down where a larger one must move
    anyway. So each of bottom-up's windows lies within one of top-down's, or is one."""
    counts, touched, most, least = case.arguments()
    [larger] = read_plan(plan_top_down(counts, touched, most, least), touched, case.m)
    rounds = read_plan(plan_bottom_up(counts, touched, most, least), touched, case.m)
    top = {(layer, j) for layer, j, _ in larger}
    for layer, j, _ in (window for this_round in rounds for window in this_round):
        assert any((up, j >> (up - layer)) in top for up in range(layer, case.m + 1))


def test_the_papers_second_batch() -> None:
    """Section IV-A: s0 and s2 have no room, s5 has; [s2, s5] fits in the second round, and
    [s0, s4, s2, s5] takes it in again in the third. Bounds are [0, 100 %], as in the paper."""
    case = Case(
        segment_size=4,
        counts=(3, 3, 3, 1, 2, 3, 3, 3),
        changes={0: Change(3, False, True), 2: Change(2, False, True), 3: Change(1, False, True)},
        most=(4, 8, 16, 32),
        least=(0, 0, 0, 0),
    )
    counts, touched, most, least = case.arguments()
    plan = plan_bottom_up(counts, touched, most, least)
    assert read_plan(plan, touched, 3) == [[(0, 3, (3,))], [(1, 1, (2,))], [(2, 0, (0,))]]
    assert plan.redundant == 1 + 2  # s5 in the second round; s2 and s5 in the third
    plan = plan_top_down(counts, touched, most, least)
    assert read_plan(plan, touched, 3) == [[(2, 0, (0, 2, 3))]]
    assert plan.redundant == 0


def test_a_weight_written_at_a_leaf_is_no_rebalance() -> None:
    """Writing moves no slot; what a later round then moves is moved for the first time."""
    changes = {0: Change(2, False, True), 1: Change(0, False, False)}
    case = Case(4, (4, 1), changes, most=(4, 8), least=(0, 0))
    counts, touched, most, least = case.arguments()
    plan = plan_bottom_up(counts, touched, most, least)
    assert read_plan(plan, touched, 1) == [[(0, 1, (1,))], [(1, 0, (0,))]]
    assert plan.redundant == 0


# Hybrid --------------------------------------------------------------------------------------


def run(hybrid: Hybrid, densities: Any, cost: dict[str, float]) -> list[str]:
    chosen = []
    for density in densities:
        strategy = hybrid.choose(density)
        hybrid.record(strategy, density, cost[strategy])
        chosen.append(strategy)
    return chosen


@given(st.lists(st.floats(0, FIRST_PI), max_size=30), st.floats(0.001, 1), st.floats(0.001, 1))
def test_bottom_up_until_pi(densities: list[float], below: float, above: float) -> None:
    hybrid = Hybrid()
    assert hybrid.pi == FIRST_PI == 0.6
    assert set(run(hybrid, densities, {BOTTOM_UP: below, TOP_DOWN: above})) <= {BOTTOM_UP}
    assert not hybrid.settled


def test_above_pi_they_take_turns_and_settle_on_the_faster_top_down() -> None:
    hybrid = Hybrid()
    cost = {BOTTOM_UP: 2.0, TOP_DOWN: 1.0}
    assert run(hybrid, [0.5, 0.6], cost) == [BOTTOM_UP] * 2
    assert run(Hybrid(), [0.61, 0.6, 0.61], cost) == [BOTTOM_UP, BOTTOM_UP, TOP_DOWN]
    densities = [0.61 + i / 100 for i in range(2 * BATCHES_COMPARED)]
    assert run(hybrid, densities, cost) == [BOTTOM_UP, TOP_DOWN] * BATCHES_COMPARED
    assert hybrid.settled
    assert hybrid.pi == densities[-1]  # the density of that moment
    assert run(hybrid, [0.7, 0.3, 0.9, 0.1], cost) == [TOP_DOWN] * 4


def test_while_top_down_is_no_faster_they_alternate() -> None:
    for cost in ({BOTTOM_UP: 1.0, TOP_DOWN: 2.0}, {BOTTOM_UP: 1.0, TOP_DOWN: 1.0}):
        hybrid = Hybrid()
        chosen = run(hybrid, [0.8] * 50, cost)
        assert chosen[0] == BOTTOM_UP
        assert all(a != b for a, b in pairwise(chosen))
        assert not hybrid.settled
        assert hybrid.pi == FIRST_PI


@pytest.mark.parametrize(
    "below, above, settles",
    [
        ((1.0, 1.0, 1.0), (0.9, 0.9, 99.0), True),  # one slow batch does not count
        ((1.0, 1.0, 99.0), (1.1, 1.1, 0.1), False),
        ((1.0, 1.0, 1.0), (0.9, 0.9), False),  # three of each, not fewer
        ((5.0, 1.0, 1.0, 1.0), (2.0, 2.0, 2.0), False),  # the last three
        ((1.0, 5.0, 5.0, 5.0), (2.0, 2.0, 2.0), True),
    ],
)
def test_medians_of_the_last_three(
    below: tuple[float, ...], above: tuple[float, ...], settles: bool
) -> None:
    hybrid = Hybrid()
    for seconds in below:
        hybrid.record(BOTTOM_UP, 0.7, seconds)
    for seconds in above:
        hybrid.record(TOP_DOWN, 0.7, seconds)
    assert hybrid.settled == settles


def test_what_was_measured_up_to_pi_does_not_count() -> None:
    hybrid = Hybrid()
    for _ in range(BATCHES_COMPARED):
        hybrid.record(BOTTOM_UP, 0.6, 9.0)
        hybrid.record(TOP_DOWN, 0.7, 1.0)
    assert not hybrid.settled


def test_a_cycle_begins_afresh() -> None:
    hybrid = Hybrid()
    run(hybrid, [0.8] * 6, {BOTTOM_UP: 2.0, TOP_DOWN: 1.0})
    assert hybrid.settled
    hybrid.start_cycle()
    assert (hybrid.settled, hybrid.pi) == (False, FIRST_PI)
    assert run(hybrid, [0.45, 0.8, 0.8], {BOTTOM_UP: 1.0, TOP_DOWN: 1.0}) == [
        BOTTOM_UP, BOTTOM_UP, TOP_DOWN
    ]  # fmt: skip


class StrategyClock:
    """Seconds that pass faster while the store works by one strategy than by the other."""

    def __init__(self) -> None:
        self.seconds, self.step = 0.0, 1.0
        self.chosen: list[str] = []

    def __call__(self) -> float:
        self.seconds += self.step
        return self.seconds

    def watch(self, g: lpma.Graph, monkeypatch: pytest.MonkeyPatch, cost: dict[str, float]) -> None:
        store = g._stores.out
        choose = store.hybrid.choose

        def watched(density: float) -> str:
            self.chosen.append(choose(density))
            self.step = cost[self.chosen[-1]]
            return self.chosen[-1]

        monkeypatch.setattr(store.hybrid, "choose", watched)
        monkeypatch.setattr(pending, "SHARE", 1 << 30)  # a batch behind another need not choose


def test_cycles_of_a_store(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bottom-up to 0.6, turns, top-down once it was faster; an expansion and a shrink each
    start again."""
    clock = StrategyClock()
    g = lpma.Graph(device=device, global_merge="never", clock=clock)
    keys = np.random.default_rng(1).permutation(900).astype(np.uint64)
    fill(g, np.sort(keys[:300]), np.ones(300, np.float32), np.zeros(300, np.int64))
    assert (g.levels, g.density) == (4, 300 / 512)
    clock.watch(g, monkeypatch, {BOTTOM_UP: 2.0, TOP_DOWN: 1.0})
    hybrid = g._stores.out.hybrid
    for lo in range(300, 460, 10):
        g.insert(np.zeros(10, np.int64), keys[lo : lo + 10])
    assert clock.chosen == [BOTTOM_UP] + [BOTTOM_UP, TOP_DOWN] * BATCHES_COMPARED + [TOP_DOWN] * 9
    assert (g.levels, hybrid.settled, hybrid.pi) == (4, True, 360 / 512)
    g.insert(np.zeros(10, np.int64), keys[460:470])
    assert (g.levels, clock.chosen[-1]) == (5, TOP_DOWN)
    assert (hybrid.settled, hybrid.pi) == (False, FIRST_PI)
    g.insert(np.zeros(10, np.int64), keys[470:480])
    assert clock.chosen[-1] == BOTTOM_UP
    hybrid.settled, hybrid.steady = True, TOP_DOWN
    g.delete(np.zeros(340, np.int64), keys[:340])
    assert (g.levels, g.num_edges, clock.chosen[-1]) == (3, 140, TOP_DOWN)
    assert (hybrid.settled, hybrid.pi) == (False, FIRST_PI)
    g.check()


def test_a_global_merge_is_no_measure_of_a_strategy(monkeypatch: pytest.MonkeyPatch) -> None:
    """It planned by neither: what it took says nothing of them, however dense the store."""
    g = lpma.Graph(device="cpu", segment_size=4)
    keys = np.arange(160, dtype=np.uint64)
    fill(g, keys, np.ones(160, np.float32), np.zeros(160, np.int64))
    store = g._stores.out
    levels, density = g.levels, g.density
    assert density > FIRST_PI
    monkeypatch.setattr(type(store.backend), "costs", Costs(load=0))  # all are loads
    g.insert(np.zeros(80, np.int64), keys[::2])
    assert (store.stats.global_merges, g.levels, g.density) == (1, levels, density)
    assert not any(store.hybrid._times.values())
    assert store.hybrid.choose(density) == BOTTOM_UP
