"""Invariant 7 where memory runs out: every allocation of the CPU backend fails in turn, and the
graph is as it was, to the last counter; then the same batch applies.

What a store needs for a batch comes from `allocate.empty` and `allocate.zeros`; here they fail
at any size, though small arrays come in truth from memory that the interpreter holds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lpma
from lpma import Columns, Kind
from lpma.backend.numba import allocate
from tests.support.layout_oracles import columns_by_rank
from tests.support.oracles import agree, assert_same, host
from tests.support.strategies import QUERIES, STRATEGIES, Burst, Config

pytestmark = pytest.mark.soak  # long enough as it is: every allocation there is

ALLOCATING = ("empty", "zeros")


class Failing:
    """While it is entered, the n-th allocation from then on raises MemoryError."""

    def __init__(self, n: int) -> None:
        self.n, self.calls = n, 0
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> Failing:
        replaced = {getattr(allocate, name): self._counted(name) for name in ALLOCATING}
        for module_name, module in list(sys.modules.items()):
            if module_name.startswith("lpma.backend.numba"):
                for name in ALLOCATING:
                    if getattr(module, name, None) in replaced:
                        self._patch.setattr(module, name, replaced[getattr(module, name)])
        return self

    def __exit__(self, *error: object) -> None:
        self._patch.undo()

    def _counted(self, name: str) -> Callable[..., Any]:
        function = getattr(allocate, name)

        def call(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            if self.calls == self.n:
                raise MemoryError(f"allocation {self.n} fails")
            return function(*arguments, **options)

        return call


def state(g: lpma.Graph) -> list[Any]:
    """Everything that a batch may change and a refused one may not."""
    stats = g.stats().as_dict()
    del stats["seconds"]
    figures = (g.version, g.time, g.num_edges, g.num_rows, g.levels, g.density)
    columns = [
        columns_by_rank(store.segments, name)
        for store, _ in g._stores.all
        for name in ("keys", "weights", "times")
        if getattr(store.segments, name) is not None
    ]
    fences = [np.array(host(store.segments.fences)) for store, _ in g._stores.all]
    hybrid = [(store.hybrid.pi, store.hybrid.settled) for store, _ in g._stores.all]
    return [figures, stats, columns, fences, hybrid, g.changes(0), g.snapshot()]


def fail_everywhere(config: Config, before: list[Columns], batch: Columns) -> int:
    """Apply `batch` with its first allocation failing, its second … until none is left to fail.
    Returns the allocations it takes."""
    model = config.model()
    for earlier in before:
        model.apply(earlier)
    expected = model.apply(batch)
    n, done = 0, False
    while not done:
        n += 1
        g = config.graph("cpu")
        for earlier in before:
            g.apply(earlier)
        old = state(g)
        with Failing(n) as failing:
            try:
                answers = g.apply(batch)
                done = True
            except lpma.OutOfMemory:
                pass
        if not done:
            g.check()
            assert_same(state(g), old)
            answers = g.apply(batch)
        assert done == (failing.calls < n)
        assert_same([answers[i] for i in range(len(answers))], expected)
        agree(g, model)
        assert_same(g.changes(len(before)), model.changes(len(before)))
    return n - 1


def burst(seed: int, size: int, deletes: float = 0.0, span: int = 60, mixed: bool = False) -> Any:
    return Burst(seed, size, span, deletes, hub=False).columns(QUERIES if mixed else ())


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("global_merge", ["auto", "never"])
def test_insertions(strategy: str, global_merge: str) -> None:
    """A batch that expands the store by several levels."""
    config = Config(strategy=strategy, segment_size=2, global_merge=global_merge)
    assert fail_everywhere(config, [burst(1, 60)], burst(2, 250)) > 4


@pytest.mark.parametrize("global_merge", ["auto", "never"])
@pytest.mark.parametrize("directed", [True, False])
def test_both_directions(directed: bool, global_merge: str) -> None:
    """All stores are prepared before any is written: the second one's failure undoes nothing,
    for nothing has been done."""
    config = Config(directed=directed, predecessors=True, segment_size=4, weight_dtype="float64",
                    global_merge=global_merge)  # fmt: skip
    assert fail_everywhere(config, [burst(3, 100)], burst(4, 200, deletes=0.2)) > 4


@pytest.mark.parametrize("strategy", ["bottom-up", "top-down"])
@pytest.mark.parametrize("global_merge", ["auto", "never"])
def test_deletions_that_shrink(strategy: str, global_merge: str) -> None:
    config = Config(predecessors=True, segment_size=2, strategy=strategy,
                    global_merge=global_merge)  # fmt: skip
    u, v = np.divmod(np.arange(150), 20)
    full = Columns.edges(Kind.INSERT, u, v, 1.0, np.arange(len(u)))
    rest = np.random.default_rng(5).permutation(150)[:140]
    few = Columns.edges(Kind.DELETE, u[rest], v[rest], None, rest)
    assert fail_everywhere(config, [full], few) >= 2


@pytest.mark.parametrize("weight", ["float32", None])
@pytest.mark.parametrize("directed", [True, False])
def test_mixed_batches(directed: bool, weight: str | None) -> None:
    """Levels and all buffers come before the first write."""
    for seed, deletes in ((6, 0.1), (7, 0.9)):
        config = Config(directed=directed, predecessors=True, weight_dtype=weight, segment_size=2,
                        global_merge="never")  # fmt: skip
        batch = burst(seed, 150, deletes, mixed=True)
        assert batch.num_queries > 0
        assert fail_everywhere(config, [burst(9, 150)], batch) >= 1


@pytest.mark.parametrize("first", [0, 1, 40])
def test_a_mixed_batch_that_shrinks(first: int) -> None:
    """The first query comes after `first` updates."""
    config = Config(segment_size=2, strategy="top-down", times=False, global_merge="never")
    u, v = np.divmod(np.arange(150), 20)
    full = Columns.edges(Kind.INSERT, u, v, 1.0, np.arange(150))
    batch = lpma.Batch()
    for i in range(145):
        if i >= first and i % 40 == first % 40:
            batch.degree(int(u[i]))
        batch.delete(int(u[i]), int(v[i]), time=2)
    assert fail_everywhere(config, [full], batch.columns()) >= 1


def test_a_mixed_batch_of_many_deletions() -> None:
    """Of absent edges, so that the store grows by fewer than there are rows."""
    config = Config(segment_size=2, global_merge="never")
    full = Columns.edges(Kind.INSERT, np.arange(80), 1, 1.0, np.arange(80))
    batch = lpma.Batch()
    batch.insert(7, 1, 2.0, time=1)
    batch.edge(7, 1)
    for i in range(150):
        batch.insert(i, 2, 1.0, time=i)
    for i in range(900):
        batch.delete(i, 3, time=i)
    assert fail_everywhere(config, [full], batch.columns()) >= 1
