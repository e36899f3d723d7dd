"""The store from inside, the other way: shrinking pair by pair, segments emptied by deletion, and
what a global merge counts as."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpma.backend.values import Costs
from lpma.pma import density
from tests.support.layout_oracles import (
    breadth_first,
    columns_by_rank,
    delete,
    in_order,
    insert,
    make,
    same_columns,
    shares_levels,
    since,
    sizes_by_rank,
)
from tests.support.oracles import host
from tests.support.plan_spy import PlanSpy
from tests.support.strategies import STRATEGIES


def test_pairs_merge_and_an_overfull_one_rolls_up(device: str) -> None:
    """Eight segments of four slots, nine edges left, fewer than 0.3 of 32. The first pair holds
    five, so it shares them with the pair beside it, which is empty; the third has its edges
    where they stay; the last pair merges. The remaining levels are the same arrays."""
    g, store = make(device, range(28))
    assert sizes_by_rank(store.segments) == [3, 4] * 4
    delete(g, *range(5, 14), 16, 17, 18, 19, 20, 22, 23, 24)
    assert (g.levels, sizes_by_rank(store.segments)) == (3, [3, 2, 0, 0, 2, 0, 1, 3])
    assert store.stats.shrinks == 0
    old, before = store.segments, store.stats.as_dict()
    fences = host(old.fences).copy()
    delete(g, 26, 27)
    assert (g.levels, g.num_edges) == (2, 9)
    held = [keys.tolist() for keys in columns_by_rank(store.segments)]
    assert held == [[0, 1], [2, 3, 4], [14, 15], [21, 25]]
    assert shares_levels(store.segments, old) == [True] * 3
    counted = since(store, before)
    assert counted["shrinks"] == 1
    # One leaf for the deletion; then one pair into a segment, and one window of two segments.
    assert counted["rebalances_by_layer"] == [1 + 1, 1]
    assert counted["segments_by_layer"] == [1 + 1, 2]
    now = host(store.segments.fences)
    assert now[[1, 3]].tolist() == fences[[1, 3]].tolist()  # of s1 and s3, which no window moved
    assert now[2] == 2  # of s2, which begins with the edge 2 now
    g.check()


def test_a_store_that_no_window_fits_spreads_as_a_whole(device: str) -> None:
    """One overfull pair beside a full one: the root is the first window to fit them."""
    g, store = make(device, range(57), segment_size=8)
    assert (g.levels, sizes_by_rank(store.segments)[:4]) == (3, [7, 7, 7, 7])
    delete(g, *range(16, 57))
    assert (g.levels, g.num_edges) == (2, 16)
    # Pairs of 14 and 2 edges: the first does not fit a segment of 8, both together fit 15 no more.
    assert sizes_by_rank(store.segments) == [4, 4, 4, 4]
    assert store.stats.rebalances_by_layer.tolist()[2] == 1
    g.check()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_down_to_the_head(device: str, strategy: str) -> None:
    g, store = make(device, range(500), segment_size=2, strategy=strategy)
    before = store.segments
    assert g.levels == 9
    delete(g, *range(1, 500))
    assert (g.levels, store.stats.shrinks, sizes_by_rank(store.segments)) == (0, 9, [1])
    assert shares_levels(store.segments, before) == [True]
    delete(g, 0)
    assert (g.levels, store.stats.shrinks, g.num_edges) == (0, 9, 0)
    insert(g, 7)
    assert columns_by_rank(store.segments)[0].tolist() == [7]
    g.check()


@given(seed=st.integers(0, 2**32), size=st.sampled_from([2, 4, 8]))
def test_shrinking_keeps_every_edge(device: str, seed: int, size: int) -> None:
    """Whatever is left of it, in whichever segments: invariants 1 to 5, and the root's bounds."""
    rng = np.random.default_rng(seed)
    g, store = make(device, range(300), size)
    before = store.segments
    start = int(rng.integers(300))
    kept = np.arange(300)
    while len(kept) > 5:
        # Holes of many sizes, so that pairs are full here and empty there.
        gone = rng.random(300) < rng.choice([0.05, 0.3, 0.8])
        gone[start : start + rng.integers(5, 60)] = False
        delete(g, *kept[gone[kept]].tolist())
        kept = kept[~gone[kept]]
        g.check()
        assert np.concatenate(columns_by_rank(store.segments)).tolist() == kept.tolist()
        most, least = (int(bound[g.levels]) for bound in density.bounds(g.levels, size))
        assert len(kept) <= most
        assert len(kept) >= least or g.levels == 0
        if rng.random() < 0.5:
            start = int(rng.integers(300))
    assert all(shares_levels(store.segments, before))
    assert store.stats.global_merges == 0


# Empty segments -------------------------------------------------------------------------------


def test_an_emptied_segment_keeps_its_fence_and_can_be_refilled(device: str) -> None:
    """Invariant 3: what was located into it before is located into it again."""
    g, store = make(device, range(0, 280, 10))
    numbers, order = breadth_first(3), in_order(3)
    before, fences = columns_by_rank(store.segments), host(store.segments.fences).copy()
    for rank in range(1, 8):
        held = before[rank].tolist()
        delete(g, *held)
        assert sizes_by_rank(store.segments)[rank] == 0
        assert np.array_equal(host(store.segments.fences), fences)
        assert fences[numbers[order[rank]]] == held[0]
        g.check()
        assert not g.edges(np.zeros(len(held), int), held).found.any()
        insert(g, held[0] + 5, held[0])
        assert columns_by_rank(store.segments)[rank].tolist() == [held[0], held[0] + 5]
        delete(g, held[0] + 5)
        insert(g, *held[1:])
        assert same_columns(columns_by_rank(store.segments), before) == [True] * 8
    assert (store.stats.expansions, store.stats.shrinks) == (0, 0)


def test_an_emptied_head_takes_smaller_keys(device: str) -> None:
    g, store = make(device, range(100, 380, 10))
    delete(g, 100, 110, 120)
    assert sizes_by_rank(store.segments)[0] == 0
    insert(g, 3, 1, 2)
    assert columns_by_rank(store.segments)[0].tolist() == [1, 2, 3]
    assert int(store.stats.segments_by_layer.sum()) == 2  # the head, twice
    g.check()


# Global merges --------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_global_merges_are_counted_and_can_be_forbidden(
    device: str, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches that touch nearly every segment: doubling the store twice, then thinning it out. Each
    counts as a load."""
    graphs = {
        rule: make(device, range(0, 8000, 4), strategy=strategy, global_merge=rule)
        for rule in ("auto", "never")
    }
    monkeypatch.setattr(type(graphs["auto"][1].backend), "costs", Costs(load=0))
    spy = PlanSpy(graphs["auto"][1])
    for g, _ in graphs.values():
        insert(g, *range(2, 8000, 4))
        insert(g, *range(1, 8000, 2))
        delete(g, *(key for key in range(8000) if key % 4))
        g.check()
    auto, never = (store.stats for _, store in graphs.values())
    assert (auto.global_merges, never.global_merges) == (3, 0)
    assert spy.plan is None
    assert auto.segments_by_layer.sum() == auto.rounds == auto.redundant_rebalances == 0
    assert auto.bytes_moved == 2 * 20 * (4000 + 8000 + 2000)
    assert never.segments_by_layer.sum() > 1000
    assert (auto.expansions, auto.shrinks) == (never.expansions, never.shrinks) == (2, 2)
    for _, store in graphs.values():
        keys = np.concatenate(columns_by_rank(store.segments))
        assert keys.tolist() == list(range(0, 8000, 4))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_small_batch_is_not_worth_a_global_merge(device: str, strategy: str) -> None:
    g, store = make(device, range(0, 8000, 2), 32, strategy=strategy, global_merge="auto")
    spy = PlanSpy(store)
    insert(g, *range(1, 8000, 500))
    assert store.stats.global_merges == 0
    assert store.stats.segments_by_layer.sum() >= 16
    assert spy.plan is not None
    g.check()
