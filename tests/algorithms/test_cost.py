"""What scoring an owner costs: the weights that a sample gives, and which owners are sampled."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from algorithms.diversity.schedule import cost
from tests.algorithms.test_schedule import Fake
from tests.support.oracles import assert_same

Array = npt.NDArray[Any]


@pytest.mark.parametrize("model", ["component", "core", "truss"])
def test_weights_are_found_again(model: str) -> None:
    rng = np.random.default_rng(3)
    vertices, edges = rng.integers(1, 1000, 16) * 1.0, 10 ** rng.uniform(0, 6, 16)
    of_group = cost.of_ego(model, vertices, edges)
    true = np.array([3e-6, 2e-9])[-of_group.shape[1] :]
    seconds = of_group @ true + 1e-4
    assert np.allclose(cost.fit(of_group, seconds), true, rtol=1e-6)


def test_no_weight_is_negative() -> None:
    """Where more edges took less time, the cost is that of the vertices."""
    vertices, edges = np.array([1.0, 2, 3, 4]), np.array([40.0, 30, 20, 10])
    weights = cost.fit(cost.of_ego("core", vertices, edges), vertices)
    assert np.allclose(weights, [1, 0])


class Sized(Fake):
    """Has egos of these sizes."""

    def __init__(self, model: str, vertices: Array, edges: Array):
        super().__init__(np.zeros(len(vertices)))
        self.model, self.vertices, self.edges = model, vertices, edges

    def terms(self, owners: Array) -> Array:
        return cost.of_ego(self.model, self.vertices[owners], self.edges[owners])


def sized(model: str, n: int) -> tuple[Sized, Array]:
    rng = np.random.default_rng(4)
    vertices = rng.integers(0, 50, n)
    edges = (vertices * rng.uniform(0, 30, n)).astype(np.int64)
    return Sized(model, vertices, edges), np.arange(n, dtype=np.uint32)


def test_a_sample_is_a_hundredth_of_all_sizes() -> None:
    scorer, owners = sized("truss", 4000)
    groups = cost.sample(scorer.terms(owners))
    sizes = [scorer.edges[group] for group in groups]
    assert len(groups) == cost.GROUPS
    assert sum(map(len, groups)) == np.count_nonzero(scorer.edges) // 100
    assert all(a.max() <= b.min() for a, b in pairwise(sizes))
    assert sizes[0].min() < 100 < 1000 < sizes[-1].max()
    found = cost.estimate(scorer, owners, 2)
    assert sorted(set(scorer.all_asked)) == sorted(np.concatenate(groups).tolist())
    assert found.shape == (4000,)
    assert (found > 0).all()


def test_nobody_to_share_with() -> None:
    scorer, owners = sized("truss", 4000)
    assert_same(cost.estimate(scorer, owners, 1), np.ones(4000))
    assert scorer.asked == []


@pytest.mark.parametrize("model, n", [("component", 4000), ("truss", 50)])
def test_nothing_is_sampled_where_it_tells_nothing(model: str, n: int) -> None:
    """One term, few owners."""
    scorer, owners = sized(model, n)
    found = cost.estimate(scorer, owners, 2)
    assert scorer.asked == []
    by_terms = scorer.terms(owners).sum(axis=1)
    assert (found > 0).all()
    assert np.allclose(found, by_terms, rtol=1e-6, atol=1e-3)


def test_the_weights_are_the_times(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer, owners = sized("core", 4000)
    clock = [0.0]

    def scores(owners: Array) -> Array:
        clock[0] += 0.5 + float((scorer.terms(owners) @ np.array([3.0, 0.25])).sum())
        return owners

    monkeypatch.setattr(scorer, "scores", scores)
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    found = cost.estimate(scorer, owners, 2)
    assert np.allclose(found, scorer.terms(owners) @ np.array([3.0, 0.25]), rtol=1e-6, atol=1e-3)
