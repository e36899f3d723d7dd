"""A vertex that is not there: what starts from it says so, what reads it finds nothing."""

from __future__ import annotations

from typing import Any

import pytest

import algorithms
import lpma
from algorithms.sharded import split

CALLS: dict[str, list[Any]] = {
    "source": [algorithms.bfs, algorithms.shortest_paths, algorithms.shortest_path_tree],
    "vertex": [lambda s, vertex: algorithms.similar(s, vertex, 3)],
    "u": [lambda s, vertex: algorithms.jaccard(s, [vertex], [vertex])],
    "personalization": [lambda s, vertex: algorithms.pagerank(s, personalization={vertex: 1})],
}


def graph(device: str, named: bool) -> tuple[lpma.Graph, list[Any]]:
    """A path, and what is not among its vertices: a row without a vertex, and what has no row."""
    ends = (["a", "b"], ["b", "c"]) if named else ([0, 1], [1, 3])
    g = lpma.Graph(names=named, device=device)
    g.insert(*ends)
    return g, ["d", 7] if named else [2, 4, 2**31]


@pytest.mark.parametrize("named", [False, True])
def test_an_algorithm_that_starts_from_it_raises(device: str, named: bool) -> None:
    g, absent = graph(device, named)
    s, first = g.snapshot(), "a" if named else 0
    for name, calls in CALLS.items():
        for call in calls:
            for vertex in absent:
                with pytest.raises(lpma.VertexError, match=f"^{name}"):
                    call(s, vertex)
    for vertex in absent:
        with pytest.raises(lpma.VertexError, match=r"^v: "):
            algorithms.common_neighbors(s, [first], [vertex])
    with pytest.raises(lpma.BatchError) as wrong:
        algorithms.bfs(s, [])  # type: ignore[arg-type]
    assert not isinstance(wrong.value, lpma.VertexError), "that is no vertex of any graph"


def test_over_shards_too() -> None:
    g, absent = graph("cpu", False)
    s = algorithms.ShardedSnapshot.of(split(g.snapshot(), 2))
    for vertex in absent:
        with pytest.raises(lpma.VertexError, match="source"):
            algorithms.bfs(s, vertex)


@pytest.mark.parametrize("named", [False, True])
def test_a_read_finds_nothing(device: str, named: bool) -> None:
    g, absent = graph(device, named)
    for vertex in absent:
        assert int(g.degree([vertex])[0]) == 0
        assert len(g.neighbors(vertex)) == 0
        assert g.edge(vertex, vertex) is None
        assert len(g.hops([vertex], 2).ids) == 0
