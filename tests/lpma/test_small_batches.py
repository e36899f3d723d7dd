"""Small batches of one kind, as real streams bring them: edges come again and again, a few of them
all the time, and every weight is positive. On the CPU those have a way of their own
(`append_plain` in backend/numba/fold.py, `sort_few` in sort.py, `apply` in fused.py)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.oracles import agree
from tests.support.strategies import Config, configs

Array = npt.NDArray[Any]

SIZES = (1, 2, 30, 96, 97, 400, 1500)  # around the thresholds of the sort
# One weight for all rows, 1 being the default; or one of these a row. Most do not add up exactly;
# float32 has no 1e-60, and -1 may delete.
WEIGHTS = ((1,), (0.1,), (2.0**24,), (1e-60,), (1.0, 0.1, 3.0), (1e-8, 2.0**24), (1e-60, 0.1),
           (1.0, -1.0, 0.1))  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One batch: `what` is done to edges between vertices 0 … span - 1, a share of them hot."""

    what: str  # also "again" (the last insertion) and "oldest" (deletes the first)
    size: int
    span: int
    hot: float
    weights: tuple[float, ...]
    timed: bool


steps = st.builds(
    Step,
    what=st.sampled_from(["insert", "insert", "set", "again", "delete", "oldest"]),
    size=st.sampled_from(SIZES),
    span=st.sampled_from([1, 3, 40, 5000, 2**32 - 1]),
    hot=st.sampled_from([0.0, 0.3, 0.95]),
    weights=st.sampled_from(WEIGHTS),
    timed=st.booleans(),
)


def _edges(rng: np.random.Generator, step: Step) -> tuple[Array, Array]:
    src, dst = rng.integers(0, step.span, (2, step.size), np.uint32)
    hot = rng.random(step.size) < step.hot
    src[hot], dst[hot] = step.span // 2, rng.integers(0, min(step.span, 3), int(hot.sum()))
    return src, dst


def _apply(
    graphs: tuple[Any, ...], step: Step, inserted: list[tuple[Array, Array]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    edges = _edges(rng, step)
    if step.what == "again" and inserted:
        edges = inserted[-1]
    if step.what == "oldest" and inserted:
        edges = inserted.pop(0)
    time = rng.integers(0, 1000, len(edges[0])) if step.timed else 7
    weight: Any = step.weights[0]
    if len(step.weights) > 1:
        weight = rng.choice(step.weights, len(edges[0]))
    for g in graphs:
        if step.what in ("delete", "oldest"):
            g.delete(*edges, time=time)
        else:
            (g.set if step.what == "set" else g.insert)(*edges, weight=weight, time=time)
    if step.what == "insert":
        inserted.append(edges)


@given(
    config=configs(),
    segment_size=st.sampled_from([2, 8, 16, 32, 64, 256, 1024]),
    loaded=st.sampled_from([0, 3000]),
    batches=st.lists(steps, min_size=1, max_size=6),
    seed=st.integers(0, 2**32),
)
def test_a_stream_of_small_batches(
    config: Config, segment_size: int, loaded: int, batches: list[Step], seed: int, device: str
) -> None:
    """Invariants, weights to the last bit, times, changes and counts are those of one operation at
    a time."""
    config = replace(config, segment_size=segment_size)
    graphs = config.graph(device), config.model()
    inserted: list[tuple[Array, Array]] = []
    if loaded:
        _apply(graphs, Step("insert", loaded, 5000, 0.0, (1,), False), inserted, seed)
    for number, step in enumerate(batches):
        _apply(graphs, step, inserted, seed + number)
        agree(*graphs)
    assert graphs[0].unchanged == graphs[1].unchanged


@pytest.mark.parametrize("weight", ["float32", "float64", None])
@pytest.mark.parametrize("size", [50, 500, 5000])
def test_appends_to_what_is_there(weight: str | None, size: int, device: str) -> None:
    """Nothing is inserted: weights and times alone change, each edge's by several operations."""
    config, rng = Config(weight_dtype=weight), np.random.default_rng(size)
    g, model = config.graph(device), config.model()
    src, dst = rng.integers(0, 60, (2, size))
    for graph in (g, model):
        graph.insert(src, dst, weight=2.0**24 if weight == "float32" else 1.0, time=1)
    edges = g.num_edges
    for number in range(3):
        order = rng.permutation(size)
        time = rng.integers(0, 1000, size)
        for graph in (g, model):
            graph.insert(src[order], dst[order], weight=[1.0, 0.1, 3.0][number], time=time)
    assert g.num_edges == edges
    agree(g, model)
    assert g.unchanged == model.unchanged
    assert (g.unchanged.rounded_off > 0) == (weight == "float32")


def test_a_sliding_window(device: str) -> None:
    """Every batch goes in, and comes out ten batches later: at the end nothing is left."""
    config, rng = Config(), np.random.default_rng(3)
    g, model = config.graph(device), config.model()
    batches = [rng.integers(0, 300, (2, 200)) for _ in range(40)]
    for number in range(len(batches) + 10):
        for graph in (g, model):
            if number < len(batches):
                src, dst = batches[number]
                graph.insert(src, dst, time=number)
            if number >= 10:
                src, dst = batches[number - 10]
                graph.delete(src, dst, time=number)
        if number % 8 == 0:
            agree(g, model)
    assert g.num_edges == 0
    agree(g, model)
