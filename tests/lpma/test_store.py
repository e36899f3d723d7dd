"""The store from inside: the paper's running example, expansion, shrinking, fences, the counters
against what a reading of every segment before and after shows, and Lemma 1."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma.pma import density
from lpma.pma.layout import Size
from lpma.store import growth
from lpma.store.lpma import LPMA
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


@pytest.fixture(autouse=True)
def expands_within_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the paper's store does, not before it (lpma/store/growth.py)."""
    monkeypatch.setattr(growth, "EARLY", 1 << 40)


@pytest.fixture
def paper_bounds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """[0, 100 %] for every window, as in the paper's examples "for simplicity"."""
    monkeypatch.setattr(density, "UPPER_ROOT", 1.0)
    monkeypatch.setattr(density, "LOWER_ROOT", 0.0)
    known = density.bounds, density.root_bounds, density.window_bounds
    for function in known:
        function.cache_clear()
    yield
    for function in known:
        function.cache_clear()


# The running example: Figures 2, 4 and 5 ------------------------------------------------------


def running_example(device: str, strategy: str) -> tuple[lpma.Graph, LPMA]:
    """Four segments s0 s2 s1 s3 in key order, of 3, 3, 3 and 4 edges: 10 20 30 | 40 50 60 | …"""
    return make(device, np.arange(10, 140, 10), strategy=strategy)


FIRST_BATCH = (20, 80, 11, 12, 13, 41, 71, 72, 101, 102)  # two writes, then eight insertions


@pytest.mark.usefixtures("paper_bounds")
@pytest.mark.parametrize("strategy", ["bottom-up", "top-down"])
def test_expansion_rebalances_locally(device: str, strategy: str) -> None:
    """Section III-B: three insertions into s0, one into s2, two each into s1 and s3 need an
    expansion. Then {s0, s4}, {s1, s6} and {s3, s7} are rebalanced; s2 takes its edge alone, and
    s5 nothing."""
    g, store = running_example(device, strategy)
    assert sizes_by_rank(store.segments) == [3, 3, 3, 4]
    before = store.stats.as_dict()
    insert(g, *FIRST_BATCH)
    numbers = breadth_first(3)
    order = [f"s{numbers[segment]}" for segment in in_order(g.levels)]
    assert " ".join(order) == "s0 s4 s2 s5 s1 s6 s3 s7"
    held = [keys.tolist() for keys in columns_by_rank(store.segments)]
    assert dict(zip(order, held, strict=True)) == {
        "s0": [10, 11, 12], "s4": [13, 20, 30], "s2": [40, 41, 50, 60], "s5": [],
        "s1": [70, 71], "s6": [72, 80, 90], "s3": [100, 101, 102], "s7": [110, 120, 130],
    }  # fmt: skip
    counted = since(store, before)
    assert counted["expansions"] == 1
    assert counted["rebalances_by_layer"] == [1, 3]
    assert counted["segments_by_layer"] == [1, 6]
    assert counted["slots_by_layer"] == [4, 6 + 5 + 6]
    assert counted["redundant_rebalances"] == 0
    assert counted["rounds"] == (2 if strategy == "bottom-up" else 1)
    weights = g.edges([0, 0, 0], [20, 80, 90]).weights
    assert weights is not None
    assert weights.tolist() == [2.0, 2.0, 1.0]
    g.check()


@pytest.mark.usefixtures("paper_bounds")
@pytest.mark.parametrize("strategy", ["bottom-up", "top-down"])
def test_redundant_rounds_and_a_single_one(device: str, strategy: str) -> None:
    """Section IV-A and B: three edges into s0 and two into s2, which have no room, one into s5.
    Bottom-up: {s5}, {s2, s5}, {s0, s4, s2, s5}, in three rounds. Top-down: the last at once."""
    g, store = running_example(device, strategy)
    insert(g, *FIRST_BATCH)
    insert(g, 45)  # so that s5 gets edges, and with them keys to locate
    insert(g, 42)
    delete(g, 50, 60)
    assert sizes_by_rank(store.segments) == [3, 3, 3, 1, 2, 3, 3, 3]
    before = store.stats.as_dict()
    insert(g, 7, 8, 9, 43, 44, 46)
    assert sizes_by_rank(store.segments)[:4] == [4, 4, 4, 4]
    counted = since(store, before)
    assert counted["expansions"] == 0
    if strategy == "bottom-up":
        assert counted["rounds"] == 3
        assert counted["rebalances_by_layer"] == [1, 1, 1]
        assert counted["segments_by_layer"] == [1, 2, 4]
        assert counted["redundant_rebalances"] == 1 + 2
    else:
        assert counted["rounds"] == 1
        assert counted["rebalances_by_layer"] == [0, 0, 1]
        assert counted["segments_by_layer"] == [0, 0, 4]
        assert counted["slots_by_layer"] == [0, 0, 16]
        assert counted["redundant_rebalances"] == 0
    g.check()


# Expansion ------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_expansion_moves_no_edge(device: str, strategy: str) -> None:
    """Four segments as full as they may be; one gets an edge. The old levels are the same arrays,
    and but for that segment and its new neighbour hold the same bytes."""
    g, store = make(device, np.arange(0, 140, 10), strategy=strategy)
    old = store.segments
    assert (g.levels, sizes_by_rank(old)) == (2, [3, 4, 3, 4])
    keys = columns_by_rank(old)
    bytes_before = [host(level).copy() for level in old.keys]
    insert(g, 31)
    assert g.levels == 3
    for column in ("keys", "weights", "times"):
        assert all(shares_levels(store.segments, old, column))
        assert len(getattr(store.segments, column)[3]) == 4 * 4
    now = columns_by_rank(store.segments)
    assert now[2].tolist() + now[3].tolist() == [30, 31, 40, 50, 60]
    assert same_columns(now[0:1] + now[4::2], keys[0:1] + keys[2:]) == [True] * 3
    assert [len(now[rank]) for rank in (1, 5, 7)] == [0, 0, 0]
    for level in (0, 1):  # s0 and s1; s2, which got the edge, is the first half of level 2
        assert np.array_equal(host(store.segments.keys[level]), bytes_before[level])
    assert np.array_equal(host(store.segments.keys[2])[4:], bytes_before[2][4:])


def test_a_new_shape_shares_the_old_ones_memory(device: str) -> None:
    """Expanding is not yet publishing: the old shape stays whole, number and count of every
    window stay, and nothing can be located into a new segment (invariant 3)."""
    g, store = make(device, np.arange(0, 280, 10))
    old = store.segments
    counts, fences = host(old.counts).copy(), host(old.fences).copy()
    new = store.backend.expand(old, Size(old.m + 1))
    assert (old.m, new.m, store.segments is old) == (3, 4, True)
    assert shares_levels(new, old) == [True] * 4
    assert np.array_equal(host(old.counts), counts)
    assert np.array_equal(host(new.counts)[:16], counts)
    assert host(new.counts)[16:].tolist() == [n for c in counts[8:] for n in (c, 0)]
    assert np.array_equal(host(new.fences)[:8], fences)
    sizes = sizes_by_rank(new)
    assert sizes[1::2] == [0] * 8
    number = {segment: heap for segment, heap in breadth_first(4).items() if heap}
    in_key_order = [host(new.fences)[number[segment]] for segment in in_order(4)[1:]]
    assert in_key_order[0:-1:2] == in_key_order[1::2]  # each new one has its successor's fence
    assert in_key_order[-1] == 2**64 - 1
    g.check()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_several_levels_in_one_batch(device: str, strategy: str) -> None:
    g, store = make(device, [], segment_size=2, strategy=strategy)
    before = store.segments
    insert(g, *range(100))
    assert g.levels == store.stats.expansions == 6  # 128 slots, of which 115 may be filled
    assert shares_levels(store.segments, before) == [True]
    assert store.stats.rebalances_by_layer.tolist()[:8] == [0] * 6 + [1, 0]
    assert store.stats.rounds == (1 if strategy == "top-down" else 7)
    g.check()
    insert(g, *range(1000, 1400))
    assert (g.levels, g.num_edges) == (9, 500)
    g.check()


# Counters -------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["bottom-up", "top-down"])
@given(seed=st.integers(0, 2**32), size=st.sampled_from([2, 4, 8]), deletes=st.booleans())
def test_counters_against_every_segment(
    device: str, strategy: str, seed: int, size: int, deletes: bool
) -> None:
    """Segments outside the plan's windows hold what they held, weights and times too; the
    counters are those of the windows in which a segment's keys changed, or that are larger than
    one. Every window is within its bounds (invariant 4)."""
    rng = np.random.default_rng(seed)
    g, store = make(device, np.sort(rng.permutation(400)[: rng.integers(300)]), size,
                    strategy=strategy)  # fmt: skip
    spy = PlanSpy(store)
    for _ in range(4):
        keys = rng.permutation(500)[: rng.integers(1, 40)]
        before, stats = columns_by_rank(store.segments), store.stats.as_dict()
        (delete if deletes and rng.random() < 0.5 else insert)(g, *keys.tolist())
        counted = since(store, stats)
        if counted["shrinks"]:
            continue
        spread = 1 << counted["expansions"]
        none = np.empty(0, np.uint64)
        before = [keys for held in before for keys in (held, *[none] * (spread - 1))]
        after = columns_by_rank(store.segments)
        changed = {rank for rank, same in enumerate(same_columns(after, before)) if not same}
        covered: set[int] = set()
        most, _ = density.bounds(g.levels, size)
        for w, layer in spy.windows():
            first = (w << layer) - g.segments
            ranks = set(range(first, first + (1 << layer)))
            if layer or ranks & changed:
                covered |= ranks
                grew = sum(len(after[r]) - len(before[r]) for r in ranks)
                superseded = strategy == "bottom-up" and counted["redundant_rebalances"]
                if grew > 0 and not superseded:
                    assert sum(len(after[rank]) for rank in ranks) <= most[layer]
        assert changed <= covered
        total = sum(counted["segments_by_layer"])
        assert total - counted["redundant_rebalances"] == len(covered)
        by_layer = np.array(counted["rebalances_by_layer"], int)
        assert counted["segments_by_layer"] == (by_layer << np.arange(len(by_layer))).tolist()
        if strategy == "top-down":
            held = sum(len(after[rank]) for rank in covered)
            assert sum(counted["slots_by_layer"]) == held
            assert counted["bytes_moved"] == 2 * store.slot_bytes * held == 40 * held
            assert counted["redundant_rebalances"] == 0
    g.check()


def test_lemma_1_of_full_segments(device: str, paper_bounds: None) -> None:
    """The paper's setting: s full segments, x uniform insertions. Every associated segment
    shares its edges with its new neighbour, s - s (1 - 1/s)^x of them are expected."""
    s, x = 2**12, 400
    g, store = make(device, np.arange(32 * s) * 1000, segment_size=32)
    assert g.density == 1.0
    fresh = np.random.default_rng(5).integers(0, 32 * s, x) * 1000 + 1
    insert(g, *fresh.tolist())
    associated = len(np.unique(fresh // 32_000))
    assert store.stats.rebalances_by_layer.tolist()[:3] == [0, associated, 0]
    assert int(store.stats.segments_by_layer.sum()) == 2 * associated
    assert abs(associated / (s - s * (1 - 1 / s) ** x) - 1) < 0.05
    assert g.levels == 13


def test_lemma_1_after_a_uniform_load(device: str) -> None:
    """The default bounds, segments filled by chance: most of the associated segments have room
    for an edge more and move alone, the others with their neighbours. Far fewer than the 2 s of
    a global rebalance."""
    s, x = 2**12, 400
    rng = np.random.default_rng(6)
    g, store = make(device, [], segment_size=32)
    before = store.stats.as_dict()
    while g.segments < 2 * s:
        before = store.stats.as_dict()
        batch = x if g.segments == s and g.density > 0.86 else 4000
        src, dst = rng.integers(0, 2**32 - 1, (2, batch))
        g.insert(src, dst, time=1)
    counted = since(store, before)
    associated = s - s * (1 - 1 / s) ** x
    assert (counted["operations"], counted["expansions"]) == (x, 1)
    assert 0.9 * associated <= sum(counted["segments_by_layer"]) <= 1.1 * 2 * associated
    assert sum(counted["segments_by_layer"]) < 2 * s / 10
