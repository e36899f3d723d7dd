"""Levels that come in parts: what is there, what a load takes, and that nothing else differs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma.backend import cpu_backend
from lpma.backend.numba import addressing
from lpma.pma import layout
from lpma.pma.density import UPPER_ROOT, bounds, root_bounds, window_bounds
from lpma.pma.layout import PARTS, Size, is_there, parted_from, place_in_level
from lpma.store.sizing import Sizing
from tests.lpma.conftest import every_backend
from tests.support.oracles import ModelGraph, agree, host
from tests.support.parts import levels_in_parts
from tests.support.seam import appends, apply, slots, slow, store_of

SIZES = [Size(m, parts) for m in (3, 4, 6) for parts in (1, 2, 3, 4)] + [Size(m) for m in range(3)]


@pytest.fixture
def small_parts() -> Iterator[None]:
    """Stores of 32 slots grow as those of millions do."""
    with levels_in_parts():
        yield


# What is there --------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_what_is_there(size: Size) -> None:
    there = [rank for rank in range(1 << size.m) if is_there(rank, size)]
    assert len(there) == size.segments == sum(size.by_level)
    # Every eight ranks have the same share, and the levels above the last are whole.
    assert {len([r for r in there if r >> 3 == j]) for j in range(1 << size.m >> 3)} <= {
        PARTS + size.parts
    }
    assert all(is_there(rank, size) for rank in range(0, 1 << size.m, 2))


@pytest.mark.parametrize("level", range(1, 8))
def test_a_level_lies_part_by_part(level: int) -> None:
    """What is there of a level is where its allocation begins, and each segment has a place."""
    offsets = range(1 << (level - 1))
    places = [place_in_level(level, offset) for offset in offsets]
    assert sorted(places) == list(offsets)
    assert [addressing.place_in_level.py_func(level, offset) for offset in offsets] == places
    for parts in range(1, PARTS) if level > 2 else ():
        size = Size(level, parts)
        held = [places[offset] for offset in offsets if is_there(2 * offset + 1, size)]
        assert sorted(held) == list(range(size.by_level[-1]))


def test_sizes_in_turn() -> None:
    sizes = [Size(0)]
    while sizes[-1] < Size(5):
        sizes.append(sizes[-1].larger(4))
    levels = [Size(m) for m in range(4)]
    assert sizes == [*levels, *(Size(m, parts) for m in (4, 5) for parts in (1, 2, 3, 4))]
    assert [size.segments for size in sizes] == sorted({size.segments for size in sizes})
    with patch.object(layout, "PARTED_SLOTS", 4 << 3):
        sizing = Sizing(slow(), 4, "auto")
        assert [sizing.steps(sizes[0], size) for size in sizes] == list(range(len(sizes)))
        assert sizing.steps(sizes[5], sizes[2]) == 0
        assert Sizing(slow(), 4, "never").larger(Size(3)) == Size(4)  # as in the paper
        whole = Sizing(cpu_backend(True)(), 4, "auto")
        assert whole.larger(Size(20)) == Size(21)
        assert not whole.comes_in_parts(Size(21))
    assert [parted_from(size) for size in (2, 32, 1024)] == [27, 23, 18]


@pytest.mark.parametrize("size", SIZES)
def test_bounds_are_shares_of_what_is_there(size: Size) -> None:
    slots, m = 32, size.m
    most, least = window_bounds(size, slots)
    for layer in range(m + 1):
        for j in range(1 << (m - layer)):
            there = sum(is_there(r, size) for r in range(j << layer, (j + 1) << layer)) * slots
            share = layer / max(m, 1)
            w = (1 << (m - layer)) + j
            assert most[layer, w % 8] == int((1 - 0.1 * share) * there + 1e-9)
            assert least[layer, w % 8] == -int(-(0.3 * share * there - 1e-9) // 1)
    assert root_bounds(size, slots) == (most[m, 1], least[m, 1])
    if size.parts == PARTS:
        whole = bounds(m, slots)
        assert (most == whole[0][:, np.newaxis]).all()
        assert (least == whole[1][:, np.newaxis]).all()


def test_an_expansion_by_a_part_leaves_a_store_rather_full() -> None:
    """0.72: what the bound on memory follows from."""
    size = Size(3)
    for _ in range(12):
        larger = size.larger(3)
        assert root_bounds(size, 32)[0] >= 0.72 * 32 * larger.segments - 1
        size = larger
    assert UPPER_ROOT == 0.9


# Stores ---------------------------------------------------------------------------------------


def _skip_whole(g: lpma.Graph) -> None:
    """Skip a test where the backend keeps whole levels alone."""
    backend = g._stores.out.backend
    if backend.parted_from(g.segment_size) > backend.most_levels(g.segment_size):
        pytest.skip("levels come whole")


@every_backend
@given(
    seed=st.integers(0, 2**32),
    strategy=st.sampled_from(["bottom-up", "top-down", "hybrid"]),
    merges=st.sampled_from(["auto", "never"]),
    kind=st.sampled_from(["directed", "predecessors", "undirected"]),
    size=st.sampled_from([2, 4, 32]),
)
def test_random_batches(
    device: str, seed: int, strategy: str, merges: str, kind: str, size: int
) -> None:
    """Against the model, with every invariant, while the store grows and shrinks."""
    rng = np.random.default_rng(seed)
    directed, predecessors = kind != "undirected", kind == "predecessors"
    g = lpma.Graph(
        directed, device=device, strategy=strategy, global_merge=merges, segment_size=size,
        predecessors=predecessors,
    )  # fmt: skip
    model = ModelGraph(directed, predecessors)
    vertices = 4 * size + 20
    with levels_in_parts():
        for number in range(10):
            u, v = rng.integers(0, vertices, (2, int(rng.integers(1, 12 * size))))
            inserts = rng.random() < (0.9 if number < 7 else 0.2)
            for graph in (g, model):
                (graph.insert if inserts else graph.delete)(u, v, time=number)
            g.check()
        agree(g, model)


@pytest.mark.parametrize("strategy", ["bottom-up", "top-down"])
def test_mixed_batches(device: str, strategy: str, small_parts: None) -> None:
    """A batch with queries may expand by parts too."""
    rng = np.random.default_rng(5)
    g = lpma.Graph(device=device, strategy=strategy, segment_size=4)
    model = ModelGraph()
    for number in range(12):
        batch, edges = lpma.Batch(), rng.integers(0, 60, (2, 40))
        for u, v in edges.T.tolist():
            batch.insert(u, v, time=number)
            batch.edge(v, u)
        g.apply(batch)
        model.insert(edges[0], edges[1], time=number)
        g.check()
    agree(g, model)
    assert g._stores.out.segments.m > 3


def test_expanding_by_a_part(device: str, small_parts: None) -> None:
    """The tree and the slots are shared until the batch is published; each expansion counts, and
    afterwards every window of eight ranks has its share."""
    g = lpma.Graph(device=device, segment_size=4, strategy="bottom-up")
    _skip_whole(g)
    store, seen = g._stores.out, []
    for first in range(0, 3000, 10):
        before, merges = store.segments, store.stats.global_merges
        g.insert(0, range(first, first + 10))
        g.check()
        seen.append(store.segments.size)
        if store.segments.size > before.size:
            larger = store.backend.expand(before, before.size.larger(3))
            assert (larger.fences is before.fences) == (larger.m == before.m)
            if store.segments.m == before.m and store.stats.global_merges == merges:
                assert store.segments.keys[-1] is before.keys[-1]
    sizes = sorted(set(seen))
    assert seen == sorted(seen)
    assert store.stats.expansions == store.sizing.steps(Size(0), sizes[-1])
    assert [size for size in sizes if size.m == 6] == [Size(6, parts) for parts in (1, 2, 3, 4)]
    counts = host(store.segments.counts)
    assert store.stats.rebalances_by_layer[layout.even_layer(sizes[-1], 4)] > 0
    assert counts[1] == 3000


def test_windows_are_spread_by_the_batches_after_an_expansion(small_parts: None) -> None:
    """The host's share of it, on the slow backend: each window once, unless the store grows again
    meanwhile."""
    store = store_of(slow(), merges="auto", size=4)
    keys, spread = np.random.default_rng(1).permutation(600), 0
    for part in np.split(keys, 60):
        before, layers = store.segments.size, store.stats.rebalances_by_layer.copy()
        if store.growth.due:
            store.growth.before(store, len(part))
            layer = layout.even_layer(before, 4)
            spread += int(store.stats.rebalances_by_layer[layer] - layers[layer])
        apply(store, appends(*part.tolist()))
    assert list(slots(store)) == sorted(keys.tolist())
    assert store.segments.size > Size(6)
    windows = 1 << (store.segments.m - layout.even_layer(store.segments.size, 4))
    assert spread >= 4 * windows // 2  # the level before came in four parts, and had half as many
    while store.growth.due:
        store.growth.before(store, 1)
    assert list(slots(store)) == sorted(keys.tolist())


def test_saved_and_loaded(device: str, small_parts: None, tmp_path: Path) -> None:
    """A file knows nothing of levels: it loads whether they come in parts or not."""
    g = lpma.Graph(device=device, segment_size=4)
    _skip_whole(g)
    g.insert(0, range(330), time=1)
    assert g._stores.out.segments.size.parts < PARTS
    g.save(tmp_path / "g.lpma")
    for least in (1, 1 << 40):
        with patch.object(layout, "PARTED_SLOTS", least):
            again = lpma.Graph.load(tmp_path / "g.lpma", device=device)
            again.check()
            assert (again._stores.out.segments.size.parts < PARTS) == (least == 1)
            assert again.neighbors(0).tolist() == list(range(330))


def test_deleting_drops_whole_levels(device: str, small_parts: None) -> None:
    g = lpma.Graph(device=device, segment_size=4)
    g.insert(0, range(330), time=1)
    before = g._stores.out.segments.size
    g.delete(0, range(5, 330), time=2)
    g.check()
    after = g._stores.out.segments.size
    assert before.m > after.m
    assert after.parts == PARTS
    assert g.neighbors(0).tolist() == list(range(5))


# Memory ---------------------------------------------------------------------------------------


def test_bytes_an_edge_of_a_random_load(device: str) -> None:
    """The stated bounds, without buffers. In parts, for stores past the first level that comes so:
    a slot's 20 bytes and its share of a tree of at most 1.2, over the least density, 0.72. Else
    20.75 over 0.45."""
    rng = np.random.default_rng(0)
    with levels_in_parts(1 << 21):
        _look_at_bytes(lpma.Graph(device=device), rng)


def _look_at_bytes(g: lpma.Graph, rng: np.random.Generator) -> None:
    backend = g._stores.out.backend
    whole = backend.parted_from(g.segment_size) > backend.most_levels(g.segment_size)
    g.insert(*rng.integers(0, 1 << 24, (2, 1_900_000), dtype=np.uint32))
    most, sizes = 0.0, set()
    for _ in range(30):
        g.insert(*rng.integers(0, 1 << 24, (2, 100_000), dtype=np.uint32))
        segments = g._stores.out.segments
        held = g.num_edges  # the store knows then what the last batch came to
        sizes.add(segments.size)
        if segments.size > Size(17):
            most = max(most, segments.nbytes / held)
    assert len(sizes) > (1 if whole else 3)
    assert (45 < most < 46.2) if whole else (25 < most < 29.5)
