"""The NumPy backend beside the Numba backend, bit for bit; and that it needs no Numba.

That each does what the seam asks is tested in test_conformance.py, and what a graph does on either
in every test that takes the fixture `device`. Here weights are any floats, whose sums depend on the
order in which they are added and rounded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma import Columns, Kind
from lpma.backend import use_kernels
from lpma.backend.numba.backend import NumbaBackend
from lpma.backend.numpy.backend import NumpyBackend
from tests.support.oracles import agree, assert_same
from tests.support.strategies import Burst, Config, configs


@pytest.fixture
def on_numpy() -> Iterator[None]:
    """Within, the NumPy backend keeps the stores of graphs that are made."""
    use_kernels(False)
    yield
    use_kernels(True)


def both(config: Config) -> list[lpma.Graph]:
    """A graph on each backend."""
    graphs = []
    for kernels in (False, True):
        use_kernels(kernels)
        graphs.append(config.graph("cpu"))
    assert [g._stores.out.backend.name for g in graphs] == [NumpyBackend.name, NumbaBackend.name]
    return graphs


def bits(values: Any) -> Any:
    """Arrays as bytes, so that no two bit patterns are equal."""
    if isinstance(values, np.ndarray):
        return values.dtype, values.tobytes()
    if isinstance(values, list | tuple):
        return [bits(value) for value in values]
    if hasattr(values, "__dataclass_fields__"):
        return [
            bits(getattr(values, name)) for name in values.__dataclass_fields__ if name != "views"
        ]
    return values


def contents(g: lpma.Graph) -> list[Any]:
    """All that a graph holds and tells, but for what its segments are and what moved them."""
    stats = g.stats()
    stores = [
        [bits(store.backend.slots(store.segments)), store.unchanged.tolist()]
        for store, _ in g._stores.all
    ]
    counted = stats.batches, stats.operations, g.num_rows, g.num_edges
    return [counted, stores, bits(g.snapshot()), bits(g.changes(0))]


def weights(rng: np.random.Generator, n: int) -> Any:
    """Of all kinds: sums that round, that fall below 0, that are lost, that overflow float32."""
    extremes = [0.0, -0.0, 1e-46, -1e-46, 1e-30, 1e30, -1e30, 2.0**25, 1.0, -1.0]
    return [
        rng.normal(0.5, 1, n), rng.normal(-0.2, 1, n).astype(np.float32), rng.choice(extremes, n),
        np.abs(rng.normal(0, 1, n)), None,
    ][rng.integers(5)]  # fmt: skip


@given(
    config=configs(), seed=st.integers(0, 2**32), size=st.sampled_from([1, 30, 400]),
    span=st.sampled_from([3, 20, 60]), hot=st.sampled_from([0.0, 0.1, 0.9]),
)  # fmt: skip
def test_bit_for_bit(config: Config, seed: int, size: int, span: int, hot: float) -> None:
    """Answers, slots and changes, after each of a few batches."""
    rng = np.random.default_rng(seed)
    graphs = both(config)
    for number in range(4):
        queries = config.queries if number % 2 else ()
        drawn = Burst(seed + number, size, span, rng.choice([0.0, 0.2, 0.8]), hub=False)
        rows = drawn.columns(queries)
        src, dst = rows.src.copy(), rows.dst.copy()
        on_one_key = (rng.random(size) < hot) & (rows.kind != Kind.HOPS)
        src[on_one_key], dst[on_one_key] = 1, 2
        given = weights(rng, size)
        batch = Columns.validated(rows.kind, src, dst, given, rows.time)
        ours, theirs = (g.apply(batch) for g in graphs)
        assert len(ours) == len(theirs)
        assert [bits(ours[i]) for i in range(len(ours))] == [
            bits(theirs[i]) for i in range(len(theirs))
        ]
        assert_same(contents(graphs[0]), contents(graphs[1]))
    graphs[0].check()


@pytest.mark.parametrize("weight", ["float32", "float64", None])
@pytest.mark.parametrize("operations", ["appends", "falling", "deletions"])
def test_a_key_with_very_many_operations(weight: str | None, operations: str) -> None:
    """One after the other, rounded as kernels do."""
    rng, n = np.random.default_rng(7), 3_000
    kind = rng.integers(0, 2, n) if operations == "deletions" else np.zeros(n, int)
    given = rng.normal(0.1, 1, n)
    given = np.abs(given) if operations == "appends" else given
    batch = Columns.validated(kind.astype(np.uint8), np.full(n, 1), np.full(n, 2), given, 3)
    graphs = both(Config(weight_dtype=weight))
    for g in graphs:
        g.apply(batch)
        g.apply(batch)
    assert_same(contents(graphs[0]), contents(graphs[1]))


AFTER = {"commit", "num_slots", "m"}


@contextmanager
def failing(n: int) -> Iterator[list[int]]:
    """Within, the n-th call of a built-in function by the NumPy backend raises MemoryError, but for
    those that follow the first write. Gives the number of calls so far."""
    calls = [0]

    def note(frame: FrameType, event: str, _: Any) -> None:
        ours = "lpma/backend/numpy" in frame.f_code.co_filename
        if event == "c_call" and ours and frame.f_code.co_name not in AFTER:
            calls[0] += 1
            if calls[0] == n:
                raise MemoryError(f"call {n} fails")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize("global_merge", ["auto", "never"])
@pytest.mark.parametrize("strategy", ["bottom-up", "top-down"])
def test_what_fails_changes_nothing(strategy: str, global_merge: str, on_numpy: None) -> None:
    """A2: wherever memory runs out, the graph is as it was, and the batch may come again."""
    config = Config(strategy=strategy, segment_size=2, global_merge=global_merge,
                    predecessors=True)  # fmt: skip
    first, second = (Burst(seed, 60, 12, 0.2, hub=True).columns() for seed in (1, 2))
    model = config.model()
    model.apply(first)
    model.apply(second)
    g = config.graph("cpu")
    g.apply(first)
    before = contents(g)
    n, done = 0, False
    while not done:
        n += 1
        with failing(n) as calls:
            try:
                g.apply(second)
                done = True
            except lpma.OutOfMemory:
                pass
        if not done:
            assert_same(contents(g), before)
    assert n - 1 == calls[0] > 50
    agree(g, model)
    g.check()


EXAMPLE = """
import sys
import lpma
import lpma.backend
assert "numba" not in sys.modules, "importing lpma"
lpma.backend.use_kernels(False)
for options in ({}, {"predecessors": True}, {"directed": False}):
    g = lpma.Graph(device="cpu", **options)
    g.insert([0, 0, 1], [1, 2, 2])
    g.delete(0, 2)
    assert g.successors([0, 1]).ids.tolist()[:2] == ([1, 2] if g.directed else [1, 0])
    b = lpma.Batch()
    b.insert(2, 3)
    q = b.hops(0, 3)
    b.remove_vertex(2)
    assert set(g.apply(b)[q].ids.tolist()) >= {1, 2, 3}
    s = g.snapshot()
    assert s.num_vertices == g.num_vertices == 2
    g.snapshot(compact=True)
    g.has_vertices([0, 9]), g.edges(0, 1), g.degree(0), g.changes(0), g.stats(), repr(g)
    g.save(sys.argv[1])
    lpma.Graph.load(sys.argv[1], device="cpu").check()
assert "numba" not in sys.modules, "the store's own path"
"""


def test_it_needs_no_numba(tmp_path: Any) -> None:
    """Nor does importing lpma. The first example of the README, on every kind of graph."""
    subprocess.run([sys.executable, "-c", EXAMPLE, str(tmp_path / "g.lpma")], check=True)
