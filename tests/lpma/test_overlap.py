"""Batches that follow each other on a device: what the host learns late, nobody learns wrong.

Batches overlap where the store is large beside them (lpma/store/pending.py, SHARE), which no small
test's is: here every batch may that is safe. The CPU backend is the oracle."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma import BatchError, BrokenStore
from lpma.backend.cuda.upload import staging
from lpma.backend.values import Costs
from lpma.store import pending
from lpma.store.lpma import LPMA
from tests.support.oracles import assert_same
from tests.support.strategies import Config

pytestmark = pytest.mark.gpu

SPAN = 2000
CONFIGS = [
    Config(strategy="bottom-up", global_merge="never"),
    Config(strategy="top-down", directed=False),
    Config(strategy="hybrid", weight_dtype=None, times=False),
    Config(strategy="bottom-up", weight_dtype="float64", segment_size=4),
]


@pytest.fixture(autouse=True)
def every_batch_may_follow(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """For each batch that overlapped the one before, its number of operations."""
    followed: list[int] = []
    apply = LPMA.apply

    def counted(self: Any, columns: Any, *rest: Any) -> Any:
        changes = apply(self, columns, *rest)
        if isinstance(changes, pending.PendingBatch):
            followed.append(len(columns))
        return changes

    monkeypatch.setattr(pending, "SHARE", 0)
    monkeypatch.setattr(LPMA, "apply", counted)
    return followed


def filled(rng: np.random.Generator, n: int, flavour: str) -> lpma.Columns:
    """A pinned batch of that flavour."""
    batch = lpma.pinned_batch(n)
    batch.src[:], batch.dst[:] = rng.integers(0, SPAN, (2, n))
    if flavour == "hub":
        batch.src[rng.random(n) < 0.7] = SPAN // 3
    if flavour == "flood":
        batch.src[n // 5 :], batch.dst[n // 5 :] = 17, 18
    if flavour == "cluster":
        batch.src[:] = SPAN // 2 + rng.integers(0, 3, n)
    batch.kind[:] = rng.random(n) < {"deletions": 0.95, "plain": 0.0}.get(flavour, 0.2)
    assert batch.weight is not None
    assert batch.time is not None
    batch.weight[:] = rng.integers(-2, 20, n) / 4
    batch.time[:] = rng.integers(0, 1000, n)
    return batch


def graphs(config: Config, seed: int, loaded: int = 30_000) -> tuple[lpma.Graph, lpma.Graph]:
    """(on the device, on the CPU), with the same edges."""
    pair = config.graph("cuda"), config.graph("cpu")
    src, dst = np.random.default_rng(seed).integers(0, SPAN, (2, loaded))
    for graph in pair:
        graph.insert(src, dst, time=5)
    return pair


def agree(there: lpma.Graph, here: lpma.Graph) -> None:
    there.check()
    assert_same(there.snapshot(), here.snapshot())
    for name in ("num_edges", "version", "time", "unchanged", "num_rows"):
        assert_same(getattr(there, name), getattr(here, name), name)


@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
@given(
    seed=st.integers(0, 2**32),
    steps=st.lists(
        st.tuples(
            st.sampled_from(["uniform", "hub", "flood", "cluster", "deletions", "plain"]),
            st.sampled_from([1, 40, 257, 1000, 1500, 5000]),
        ),
        min_size=2, max_size=7,
    ),
)  # fmt: skip
def test_streams(config: Config, seed: int, steps: list[tuple[str, int]]) -> None:
    """Sizes on both sides of each way to sort, and stores that grow in between."""
    rng = np.random.default_rng(seed)
    there, here = graphs(config, seed, 6000)
    for flavour, n in steps:
        batch = filled(rng, n, flavour)
        there.apply(batch)
        here.apply(batch)
        batch.src[:], batch.kind[:] = 0, 0  # the caller's again
    for version in range(len(steps) + 1):
        assert_same(there.changes(version), here.changes(version), f"since {version}")
    agree(there, here)


@pytest.mark.parametrize("n", [900, 5000, 17_000, 40_000, 131_072])
def test_many_batches_follow(every_batch_may_follow: list[int], n: int) -> None:
    """Small ones and large ones; the answers asked in between are those of that moment. Once it is
    applied, a batch's memory is the caller's again."""
    config, rng = Config(strategy="bottom-up"), np.random.default_rng(n)
    there, here = graphs(config, 1, max(400_000, 12 * n))  # so that there is room for two
    for turn in range(12):
        batch = filled(rng, n, ("hub", "uniform", "uniform", "flood", "plain")[turn % 5])
        u, v = batch.src[:200].copy(), batch.dst[:200].copy()
        here.apply(batch)
        there.apply(batch)
        for column in (batch.kind, batch.src, batch.dst, batch.weight, batch.time):
            assert column is not None
            column[:] = 1
        if turn % 4 == 1:
            assert_same(there.edges(u, v), here.edges(u, v), f"batch {turn}")
            assert_same(there.successors(u), here.successors(u), f"batch {turn}")
    assert len(every_batch_may_follow) > (6 if n < 10**5 else 2)
    agree(there, here)


@pytest.mark.parametrize("weight", ["float32", "float64"])
def test_plain_columns_follow(every_batch_may_follow: list[int], weight: str) -> None:
    """They are copied to where the kernel reads them, in two places that take turns; after that
    they are the caller's again."""
    config, rng = Config(strategy="bottom-up", weight_dtype=weight), np.random.default_rng(11)
    there, here = graphs(config, 4, 100_000)
    for n in (5, 300, 3000, 1, 20_000, 700, 40_000, 2):
        for kind in (0, rng.integers(0, 2, n), 1):
            src, dst, time = rng.integers(0, SPAN, (3, n))
            columns = lpma.Batch.from_columns(kind, src, dst, rng.integers(-2, 20, n) / 4, time)
            here.apply(columns)
            there.apply(columns)
            columns.src[:], columns.dst[:] = 0, 0
            assert columns.time is not None
            columns.time[:] = 9
    assert len(every_batch_may_follow) > 12
    agree(there, here)


@pytest.mark.parametrize("why", ["merge", "scratch"])
def test_a_batch_that_the_device_declines(
    every_batch_may_follow: list[int], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is applied in steps, and so is the one that was launched behind it: which finds the gate
    closed."""
    config, rng = Config(strategy="bottom-up"), np.random.default_rng(7)
    there, here = graphs(config, 3, 100_000)
    outcomes = []
    backend: Any = there._stores.out.backend
    outcome = backend.outcome

    def watched(*launched: Any) -> Any:
        done = outcome(*launched)
        outcomes.append(type(done).__name__)
        return done

    monkeypatch.setattr(backend, "outcome", watched)
    if why == "merge":
        monkeypatch.setattr(type(backend), "costs", Costs(10.0, 2.0, 0.05))
    else:
        monkeypatch.setattr("lpma.backend.cuda.update.fused.SCRATCH_SLOTS", 0)
        backend.fused.block.store = None
    for turn in range(14):
        flavour = "cluster" if why == "scratch" and turn % 2 else "uniform"
        batch = filled(rng, 1500 if turn % 3 else 30, flavour)
        for graph in (there, here):
            graph.apply(batch)
    agree(there, here)
    assert {"Located", "Committed"} <= set(outcomes)
    assert every_batch_may_follow


@pytest.mark.parametrize("bad", ["vertex", "memory"])
def test_a_refused_batch_between_two_that_the_device_declines(
    every_batch_may_follow: list[int], bad: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the first one lies is not given to the third before the first is applied."""
    from lpma.backend.cuda.upload.blocks import Block

    config, rng, n = Config(strategy="bottom-up"), np.random.default_rng(13), 20_000
    there, here = graphs(config, 5, 200_000)
    staging.compiled.get_ready()
    monkeypatch.setattr(type(there._stores.out.backend), "costs", Costs(10.0, 2.0, 0.05))

    def fail(*_: Any) -> None:
        raise MemoryError("no room")

    for _ in range(6):
        src, dst, time = rng.integers(0, SPAN, (3, n))
        weight = rng.integers(1, 20, n) / 4
        for graph in (there, here):
            graph.insert(src, dst, weight, time)
        with monkeypatch.context() as broken:
            if bad == "memory":
                broken.setattr(Block, "send", fail)
            refused = np.append(src[1:], 2**32 - 1) if bad == "vertex" else src
            with pytest.raises((BatchError, lpma.OutOfMemory)):
                there.insert(refused, dst, 99.0, 7)
    assert every_batch_may_follow
    agree(there, here)


@pytest.mark.parametrize("n", [700, 70_000])
@pytest.mark.parametrize("bad", ["vertex", "weight", "kind"])
def test_bad_rows_in_the_middle(every_batch_may_follow: list[int], bad: str, n: int) -> None:
    """They are refused by the call that brings them, and nothing of them is left; the batches
    before and after are."""
    config, rng = Config(strategy="bottom-up"), np.random.default_rng(5)
    there, here = graphs(config, 2, max(100_000, 12 * n))
    for turn in range(9):
        batch = filled(rng, n, "uniform")
        if turn % 3 == 2:
            assert batch.weight is not None
            good = batch.src[3], batch.weight[3], batch.kind[3]
            batch.kind[3] = 0
            if bad == "vertex":
                batch.src[3] = 2**32 - 1
            elif bad == "weight":
                batch.weight[3] = np.nan
            else:
                batch.kind[3] = 99
            version = there.version
            with pytest.raises(BatchError, match=bad):
                there.apply(batch)
            assert there.version == version
            batch.src[3], batch.weight[3], batch.kind[3] = good
        for graph in (there, here):
            graph.apply(batch)
    assert every_batch_may_follow
    agree(there, here)


def test_a_batch_that_cannot_be_taken_in_breaks_the_graph(
    every_batch_may_follow: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names it."""
    there, _ = graphs(CONFIGS[0], 4, 100_000)
    batch = filled(np.random.default_rng(1), 500, "uniform")
    there.apply(batch)
    assert every_batch_may_follow == [500]

    def out_of_memory(*_: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(there._stores.out.backend, "outcome", out_of_memory)
    with pytest.raises(BrokenStore) as raised:
        _ = there.num_edges
    assert "version 2" in str(raised.value.__cause__)
    with pytest.raises(BrokenStore):
        there.apply(batch)


def test_two_graphs_take_turns(every_batch_may_follow: list[int]) -> None:
    """Each on streams of its own."""
    rng, pairs = np.random.default_rng(8), [graphs(config, 6, 100_000) for config in CONFIGS[:2]]
    for _ in range(8):
        batch = filled(rng, 800, "uniform")
        for there, here in pairs:
            there.apply(batch)
            here.apply(batch)
    assert len(every_batch_may_follow) > 8
    for pair in pairs:
        agree(*pair)


def test_other_calls_find_what_is_behind(every_batch_may_follow: list[int]) -> None:
    """One operation, a mixed batch, vertices, counters: whatever comes next."""
    config, rng = Config(strategy="bottom-up"), np.random.default_rng(9)
    there, here = graphs(config, 7, 100_000)
    batch = filled(rng, 600, "uniform")
    for graph in (there, here):
        graph.apply(batch)
        graph.insert(1, 2, weight=3.0, time=9)
        graph.apply(batch)
        graph.add_vertices([SPAN + 5], time=9)
        graph.apply(batch)
    assert there.unchanged == here.unchanged
    for graph in (there, here):
        graph.apply(batch)
    assert there.stats().operations == here.stats().operations
    mixed = lpma.Batch()
    mixed.insert(1, 2, 1.0, time=3)
    query = mixed.degree(1)
    for graph in (there, here):
        graph.apply(batch)
    asked = [graph.apply(mixed) for graph in (there, here)]
    assert_same(asked[0].on_host()[query], asked[1][query])
    for graph in (there, here):
        graph.apply(batch)
        graph.delete(batch.src.copy(), batch.dst.copy(), time=3)
    assert every_batch_may_follow
    agree(there, here)


def test_a_graph_is_dropped_with_a_batch_on_its_way() -> None:
    """What its kernels write to is kept until they have."""
    for seed in range(6):
        there, _ = graphs(CONFIGS[0], seed, 50_000)
        there.apply(filled(np.random.default_rng(seed), 1000, "uniform"))
        del there
        gc.collect()
    there, here = graphs(CONFIGS[0], 1, 1000)
    agree(there, here)
