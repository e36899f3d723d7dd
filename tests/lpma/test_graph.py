"""The bulk face of Graph against the dictionary model: growth and shrinking through every level,
equal results of all strategies and cuts, input in many forms, and real streams."""

from __future__ import annotations

import threading
import time as clock
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma import Batch, Columns
from tests.conftest import real_graph
from tests.lpma.conftest import every_backend
from tests.support.oracles import ModelGraph, agree, assert_same
from tests.support.strategies import STRATEGIES, Burst, Config, batches, bursts, configs

Array = npt.NDArray[Any]


@every_backend
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("global_merge", ["auto", "never"])
def test_grow_and_shrink(device: str, strategy: str, global_merge: str) -> None:
    """Two slots a segment: thousands of segments come, level by level, and go again."""
    config = Config(strategy=strategy, segment_size=2, global_merge=global_merge)
    g, model = config.graph(device), config.model()
    rng = np.random.default_rng(1)
    keys = rng.permutation(6000)
    highest = 0
    for part in np.array_split(keys, 12):
        for graph in (g, model):
            graph.insert(part // 80, part % 80, 0.25 * (1 + part % 9), part)
        agree(g, model)
        assert g.levels >= highest
        highest = g.levels
    grown = g.stats()
    assert g.num_edges == 6000
    assert g.segments == 2**g.levels >= 3000
    assert grown.expansions == g.levels
    assert grown.operations == 6000
    assert grown.batches == 12
    assert grown.bytes_moved > 6000 * 8
    if global_merge == "never" and not g._stores.is_provisional:
        assert grown.global_merges == 0
        assert grown.slots_by_layer.sum() >= 6000
        assert grown.segments_by_layer.sum() >= grown.rebalances_by_layer.sum() > 0
    else:
        assert grown.global_merges > 0
    rng.shuffle(keys)
    for part in np.array_split(keys, 12):
        for graph in (g, model):
            graph.delete(part // 80, part % 80, 0)
        agree(g, model)
        assert g.levels <= highest
        highest = g.levels
    shrunk = g.stats()
    assert (g.num_edges, g.num_rows, g.levels) == (0, 0, 0)
    assert shrunk.shrinks == shrunk.expansions
    for graph in (g, model):
        graph.insert([3, 2**32 - 2], [2**32 - 2, 0], [1.0, 2.0], [5, 6])
    agree(g, model)


@every_backend
def test_one_batch_grows_by_many_levels_and_one_shrinks(device: str) -> None:
    for strategy in STRATEGIES:
        for global_merge in ("auto", "never"):
            config = Config(strategy=strategy, segment_size=4, global_merge=global_merge)
            g, model = config.graph(device), config.model()
            src, dst = np.divmod(np.arange(3000, dtype=np.uint32), 50)
            for graph in (g, model):
                graph.insert(src, dst, 1.0, 1)
            agree(g, model)
            assert g.levels >= 10
            for graph in (g, model):
                graph.delete(src[1:], dst[1:], 2)
            agree(g, model)
            assert g.levels <= 1


def test_rising_and_falling_keys(device: str) -> None:
    """Inserting always at one end is what hurts a packed memory array most."""
    for step in (1, -1):
        config = Config(segment_size=2, global_merge="never")
        g, model = config.graph(device), config.model()
        for part in np.array_split(np.arange(600)[::step], 60):
            for graph in (g, model):
                graph.insert(part // 7, part % 7, 1.0, part)
            agree(g, model)


@every_backend
@pytest.mark.parametrize("directed", [True, False])
def test_a_hub_comes_and_goes(device: str, directed: bool) -> None:
    config = Config(directed=directed, predecessors=directed, segment_size=4)
    g, model = config.graph(device), config.model()
    spokes = np.arange(500)
    for graph in (g, model):
        graph.insert(np.full(500, 250), spokes, 1.0, 1)
        graph.insert(spokes, np.full(500, 250), 0.5, 2)
        graph.insert(spokes, (spokes + 1) % 500, 2.0, 3)
    agree(g, model)
    assert_same(g.hops([250, 3], 2), model.hops([250, 3], 2))
    assert_same(g.predecessors(250), model.predecessors(250))
    for graph in (g, model):
        graph.remove_vertices(250, 4)
    agree(g, model)


@every_backend
@given(config=configs(), stream=st.lists(bursts(), min_size=1, max_size=4))
def test_strategies_give_the_same_graph(device: str, config: Config, stream: list[Burst]) -> None:
    model = config.model()
    graphs = [
        Config(**{**vars(config), "strategy": strategy, "global_merge": merge}).graph(device)
        for strategy in STRATEGIES
        for merge in ("auto", "never")
    ]
    for burst in stream:
        columns = burst.columns()
        model.apply(columns)
        for g in graphs:
            g.apply(columns)
    for g in graphs:
        agree(g, model, dense_below=100)


@every_backend
@given(config=configs(), columns=batches(max_size=60), cuts=st.lists(st.integers(0, 60)))
def test_cuts_do_not_matter(device: str, config: Config, columns: Columns, cuts: list[int]) -> None:
    whole, cut = config.graph(device), config.graph(device)
    whole.apply(columns)
    bounds = sorted({0, len(columns), *(c for c in cuts if c <= len(columns))})
    for lo, hi in pairwise(bounds):
        cut.apply(columns.rows(lo, hi))
    a, b = whole.snapshot(compact=True), cut.snapshot(compact=True)
    for name in ("indptr", "indices", "weights", "times", "ids", "num_edges"):
        assert_same(getattr(a, name), getattr(b, name), name)


def test_input_in_many_forms(device: str) -> None:
    g, model = lpma.Graph(device=device), ModelGraph()

    class OnlyDlpack:
        def __init__(self, array: Array) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    backwards = np.arange(10)[::-2]
    forms: list[tuple[Any, Any]] = [
        (1, 2),
        ([1, 2], [3, 4]),
        ((5,), np.array(6)),
        (np.array([1, 2], np.int8), np.array([3, 4], np.uint64)),
        (np.arange(3, dtype=np.uint32), np.arange(3, dtype=">i4")),
        (backwards, backwards[::-1]),
        (7, [1, 2, 3]),
        ([1, 2, 3], 7),
        ([], []),
        (OnlyDlpack(np.arange(4)), OnlyDlpack(np.arange(4)[::-1].copy())),
    ]
    for src, dst in forms:
        g.insert(src, dst, time=1)
        model.insert(getattr(src, "array", src), getattr(dst, "array", dst), time=1)
        agree(g, model)
    weights: list[Any] = [2, 0.5, [0.25], np.float64(1.5), np.array([3], np.int16)]
    for weight in weights:
        g.insert([1], [2], weight, time=2)
        model.insert([1], [2], float(np.ravel(weight)[0]), time=2)
        agree(g, model)


def test_arrays_given_are_not_kept_or_changed(device: str) -> None:
    g = lpma.Graph(device=device)
    src, dst = np.array([5, 1, 3], np.uint32), np.array([1, 2, 3], np.uint32)
    weight, time = np.array([1, 2, 3], np.float32), np.array([4, 5, 6])
    copies = [column.copy() for column in (src, dst, weight, time)]
    g.insert(src, dst, weight, time)
    assert_same([src, dst, weight, time], copies)
    before = g.snapshot()
    for column in (src, dst, weight, time):
        column[:] = 0
    after = g.snapshot()
    assert_same((after.indptr, after.indices), (before.indptr, before.indices))
    assert_same((after.weights, after.times), (before.weights, before.times))


def test_times_are_stamped_where_none_are_given(device: str) -> None:
    g = lpma.Graph(device=device)
    before = clock.time_ns() // 1_000_000
    g.insert([1, 2], [2, 3])
    after = clock.time_ns() // 1_000_000
    times = g.edges([1, 2], [2, 3]).times
    assert times is not None
    assert before <= times[0] == times[1] == g.time <= after


def test_figures_of_an_empty_graph(device: str) -> None:
    for config in (Config(), Config(directed=False, weight_dtype=None, times=False)):
        g, model = config.graph(device), config.model()
        agree(g, model)
        assert (g.num_edges, g.num_rows, g.version, g.levels) == (0, 0, 0, 0)
        assert (g.density, g.directed, g.segment_size) == (0.0, config.directed, 32)
        assert g.weight_dtype == model.weight_dtype
        assert (g.has_times, g.has_predecessors) == (model.has_times, model.has_predecessors)
        assert_same(g.successors([]), model.successors([]))
        assert_same(g.edges([], []), model.edges([], []))
        assert_same(g.hops([3], 5), model.hops([3], 5))
        g.apply(Batch())
        assert g.version == 1


def test_sorted_scan_of_a_large_batch(device: str) -> None:
    """Large enough for every kernel that works in several threads."""
    rng = np.random.default_rng(2)
    n = 300_000
    src, dst = rng.integers(0, 3000, n), rng.integers(0, 3000, n)
    quarters = rng.integers(1, 9, n)
    g = lpma.Graph(device=device, predecessors=True)
    for part in np.array_split(np.arange(n), 3):
        g.insert(src[part], dst[part], quarters[part] / 4, part)
    g.check()
    key = src * 3000 + dst
    order = np.argsort(key, kind="stable")
    distinct, first = np.unique(key[order], return_index=True)
    snapshot = g.snapshot()
    assert_same(snapshot.indices, (distinct % 3000).astype(np.uint32))
    assert_same(snapshot.indptr[1:], np.searchsorted(distinct // 3000, np.arange(3000), "right"))
    sums = np.add.reduceat(quarters[order], first) / 4
    assert_same(snapshot.weights, sums.astype(np.float32))
    assert_same(snapshot.times, np.append(order[first[1:] - 1], order[-1]))
    again = g.edges(src, dst)
    assert again.found.all()
    assert_same(again.weights, sums[np.searchsorted(distinct, key)].astype(np.float32))
    g.delete(distinct // 3000, distinct % 3000)
    g.check()
    assert (g.num_edges, g.levels) == (0, 0)


def test_readers_beside_the_writer(device: str) -> None:
    """Snapshots and queries of other threads see whole batches only."""
    g = lpma.Graph(device=device, segment_size=4, weight_dtype=None)
    rng = np.random.default_rng(6)
    keys = rng.permutation(20_000)
    seen: list[int] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            snapshot = g.snapshot()
            assert snapshot.num_edges == len(snapshot.indices) == 200 * snapshot.version
            assert int(g.degree(np.arange(200)).sum()) % 200 == 0
            seen.append(snapshot.version)

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for part in np.array_split(keys, 100):
            g.insert(part // 100, part % 100)
        stop.set()
        for reader in readers:
            reader.result()
    assert len(seen) > 2
    assert g.num_edges == 20_000
    g.check()


@pytest.mark.parametrize("name, batch", [
    ("CollegeMsg", 5_000), ("soc-sign-bitcoinotc", 3_000), ("email-Eu-core-temporal", 40_000),
])  # fmt: skip
def test_real_streams(device: str, name: str, batch: int) -> None:
    columns = real_graph(name)
    src, dst, time = columns["src"], columns["dst"], columns["t"]
    weight = columns.get("w", np.ones(len(src), np.int32))
    config = Config(segment_size=4, predecessors=True, weight_dtype="float64")
    g, model = config.graph(device), config.model()
    some = np.unique(src)[::97]
    for lo in range(0, len(src), batch):
        part = slice(lo, lo + batch)
        for graph in (g, model):
            graph.insert(src[part], dst[part], weight[part], time[part])
    agree(g, model)
    assert_same(g.successors(some), model.successors(some))
    assert_same(g.predecessors(some), model.predecessors(some))
    assert_same(g.hops(some[:5], 2), model.hops(some[:5], 2))
    half = slice(0, len(src), 2)
    for graph in (g, model):
        graph.delete(src[half], dst[half], 0)
        graph.remove_vertices(some, 0)
    agree(g, model)
