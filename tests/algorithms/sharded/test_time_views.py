"""Views in time of a graph over shards: those of the whole graph, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import algorithms
import lpma
from algorithms import ShardedSnapshot
from algorithms.sharded import LocalWorkers, Part, read_parquet, split
from lpma.sharding import owners_of
from tests.support.oracles import assert_same

VIEWS: list[dict[str, Any]] = [
    {"since": 500}, {"until": 300}, {"since": 200, "until": 700, "half_life": 90},
    {"half_life": 10}, {"half_life": 400, "now": 2000}, {"since": 10**6, "half_life": 5},
]  # fmt: skip


def a_graph(seed: int, directed: bool, weight: str | None = "float32", n: int = 300) -> lpma.Graph:
    rng = np.random.default_rng(seed)
    g = lpma.Graph(directed, weight_dtype=weight, device="cpu")
    src, dst = rng.integers(0, 60, (2, n))
    g.insert(src, dst, 1.0 if weight is None else rng.random(n), rng.integers(0, 1000, n))
    g.add_vertices([2, 70])
    return g


def arrays(s: lpma.Snapshot) -> list[Any]:
    return [s.indptr, s.indices, s.weights, s.times, s.num_edges, np.flatnonzero(s.present)]


def devices_of(device: str) -> list[int] | None:
    return None if device == "cpu" else [0]


@given(
    st.integers(0, 2**32), st.booleans(), st.sampled_from(["float32", "float64", None]),
    st.integers(1, 4), st.sampled_from(VIEWS),
)  # fmt: skip
def test_the_view_of_the_whole(
    device: str, seed: int, directed: bool, weight: str | None, shards: int, asked: dict[str, Any]
) -> None:
    g = a_graph(seed, directed, weight)
    workers = split(g.snapshot(), shards, devices_of(device))
    s, part = ShardedSnapshot.of(workers, **asked), g.snapshot(**asked)
    assert (s.num_edges, s.num_rows, s.num_vertices) == (
        part.num_edges, part.num_rows, part.num_vertices
    )  # fmt: skip
    assert_same(arrays(s.gather()), arrays(part))


def test_algorithms_read_the_view(device: str) -> None:
    g = a_graph(7, True)
    asked: dict[str, Any] = {"since": 300, "half_life": 100}
    s = ShardedSnapshot.of(split(g.snapshot(), 3, devices_of(device)), **asked)
    part = g.snapshot(**asked)
    for weighted in (False, True):
        np.testing.assert_allclose(
            algorithms.pagerank(s, weighted=weighted, tol=1e-9),
            algorithms.pagerank(part, weighted=weighted, tol=1e-9), atol=1e-8,
        )  # fmt: skip
    assert_same(algorithms.core_numbers(s), algorithms.core_numbers(part))
    assert_same(algorithms.connected_components(s), algorithms.connected_components(part))
    source = int(np.flatnonzero(part.present)[0])
    assert_same(algorithms.bfs(s, source), algorithms.bfs(part, source))
    assert algorithms.triangle_count(s) == algorithms.triangle_count(part)
    assert_same(s.degrees(), np.diff(part.indptr))


def test_the_whole_and_several_views_in_turn(device: str) -> None:
    """Over the same workers: none changes what another sees."""
    g = a_graph(8, False)
    workers = split(g.snapshot(), 2, devices_of(device))
    pairs = [(ShardedSnapshot.of(workers), g.snapshot())]
    pairs += [(ShardedSnapshot.of(workers, **asked), g.snapshot(**asked)) for asked in VIEWS]
    for s, part in pairs + pairs[::-1]:
        assert_same(arrays(s.gather()), arrays(part))
        assert algorithms.triangle_count(s) == algorithms.triangle_count(part)


def named_parts(shards: int) -> tuple[list[Part], lpma.Graph]:
    """Of a graph with names, each shard having ids of its own; and the whole graph."""
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 30, (2, 200))
    times = rng.integers(0, 1000, 200)
    whole = lpma.Graph(names=True, device="cpu")
    whole.insert([f"v{u}" for u in src], [f"v{v}" for v in dst], time=times)
    parts = []
    for shard in range(shards):
        mine = owners_of(src.astype(np.uint32), shards) == shard
        g = lpma.Graph(names=True, device="cpu")
        begins, ends = ([f"v{x}" for x in column[mine]] for column in (src, dst))
        g.insert(begins, ends, time=times[mine])
        parts.append(Part.of(g.snapshot(), shard, shards))
    return parts, whole


def test_names(tmp_path: Path) -> None:
    parts, whole = named_parts(2)
    asked: dict[str, Any] = {"since": 400, "half_life": 100}
    s = ShardedSnapshot.of(LocalWorkers(parts), **asked)
    s.write_parquet(tmp_path / "edges")
    table = read_parquet(tmp_path / "edges").to_pylist()
    edges = whole.snapshot(**asked).edges()
    assert edges.weights is not None
    expected = zip(edges.src.tolist(), edges.dst.tolist(), edges.weights.tolist(), strict=True)
    assert {(row["src"], row["dst"], row["weight"]) for row in table} == set(expected)
    assert s.num_edges == len(table)


def test_refused() -> None:
    g = lpma.from_edges([1, 2], [2, 3], times=False, device="cpu")
    with pytest.raises(lpma.BatchError, match="the edges of the shards have no times"):
        ShardedSnapshot.of(split(g.snapshot(), 2), since=5)
    with pytest.raises(lpma.BatchError, match="since, until: 5 is after 4"):
        ShardedSnapshot.of(split(a_graph(1, True).snapshot(), 2), since=5, until=4)
