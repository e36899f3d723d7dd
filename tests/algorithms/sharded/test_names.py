"""Shards whose vertices go by names, each with a dictionary of its own."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import algorithms
import lpma
from algorithms.sharded import LocalWorkers, number_names
from lpma.sharding import owners_of
from tests.algorithms.sharded.test_programs import networkx_of, undirected, vertices_of
from tests.support.sharding import Case, cases

NAMINGS: dict[str, Any] = {
    "text": lambda v: f"v{v}é",
    "integers": lambda v: 3 * v - 20,
    "both": lambda v: f"{v}" if v % 3 else v,
}
namings = st.sampled_from(sorted(NAMINGS))


def by_name(s: Any, values: Any) -> dict[Any, Any]:
    rows = np.flatnonzero(s.present)
    return dict(zip(s.names.of(rows).tolist(), np.asarray(values)[rows].tolist(), strict=True))


@given(case=cases(), naming=namings)
def test_rows_tell_their_owners_and_names(device: str, case: Case, naming: str) -> None:
    name = NAMINGS[naming]
    s = case.sharded(device, name)
    names = [name(v) for v in vertices_of(case)]
    assert s.names is not None
    rows = [s.names.row(one) for one in names]
    assert len(set(rows)) == len(names) == s.num_vertices
    assert s.present[rows].all()
    if names:
        assert s.bounds is not None
        owners = np.searchsorted(s.bounds, rows, side="right") - 1
        np.testing.assert_array_equal(owners, owners_of(names, case.shards))
        assert s.names.of(rows).tolist() == names
    assert s.names.find("nobody") is None
    # Without gaps: every row is a vertex, and no two go by the same name.
    assert len(s.names) == s.num_rows == len(names)
    assert sorted(map(repr, s.names.of(np.arange(s.num_rows)).tolist())) == sorted(map(repr, names))


@given(case=cases(), naming=namings)
def test_programs(device: str, case: Case, naming: str) -> None:
    name = NAMINGS[naming]
    s, graph = case.sharded(device, name), undirected(case)
    assert by_name(s, algorithms.core_numbers(s)) == {
        name(v): k for v, k in nx.core_number(graph).items()
    }
    labels = by_name(s, algorithms.connected_components(s))
    together = {label: {v for v in labels if labels[v] == label} for label in labels.values()}
    expected = [{name(v) for v in component} for component in nx.connected_components(graph)]
    assert sorted(map(repr, map(by_text, together.values()))) == sorted(
        map(repr, map(by_text, expected))
    )
    assert algorithms.triangle_count(s) == sum(nx.triangles(graph).values()) // 3


def by_text(names: set[Any]) -> list[str]:
    return sorted(map(repr, names))


@given(case=cases(), naming=namings, data=st.data())
def test_a_source_is_a_name(case: Case, naming: str, data: st.DataObject) -> None:
    if not vertices_of(case):
        return
    name, graph = NAMINGS[naming], networkx_of(case)
    s = case.sharded(name=name)
    source = data.draw(st.sampled_from(vertices_of(case)))
    hops = nx.single_source_shortest_path_length(graph, source)
    found = by_name(s, algorithms.bfs(s, name(source)))
    assert found == {name(v): hops.get(v, -1) for v in vertices_of(case)}
    (next_to,) = s.hops([name(source)], [1])
    assert s.names is not None
    assert set(s.names.of(next_to).tolist()) == {name(v) for v in graph[source]}


@given(case=cases(max_vertices=12))
def test_the_best_by_name(case: Case) -> None:
    name = NAMINGS["text"]
    s = case.sharded(name=name)
    found = algorithms.top_diversity(s, "component", 1, 30)
    graph = undirected(case)
    expected = {
        name(v): sorted(
            sorted(map(name, of)) for of in nx.connected_components(graph.subgraph(graph[v]))
        )
        for v in graph
    }
    assert {one.vertex: sorted(sorted(c.tolist()) for c in one.contexts) for one in found} == (
        expected
    )
    assert [one.score for one in found] == sorted(map(len, expected.values()), reverse=True)


@given(case=cases(), naming=namings)
def test_the_whole_by_name(case: Case, naming: str) -> None:
    name = NAMINGS[naming]
    s = case.sharded(name=name)
    whole = s.gather()
    assert edges_of(whole) == edges_of(case.one(name=name))
    for row in np.split(whole.indices.astype(np.int64), whole.indptr[1:-1]):
        assert (np.diff(row) > 0).all()
    with TemporaryDirectory() as directory:
        whole.write_npz(f"{directory}/whole.npz")
        assert edges_of(lpma.Snapshot.read_npz(f"{directory}/whole.npz")) == edges_of(whole)
    # Numbered once: another snapshot of the same workers has the same rows.
    again = number_names(s.workers)
    assert s.names is not None
    rows = np.flatnonzero(s.present)
    assert again.of(rows).tolist() == s.names.of(rows).tolist()


def edges_of(s: lpma.Snapshot) -> set[Any]:
    """Each edge both ways in an undirected graph, whose rows' order depends on their numbers."""
    edges = {tuple(edge.values()) for edge in s.to_arrow().to_pylist()}
    if not s.directed:
        names = s.names
        assert names is not None
        rows = np.repeat(np.arange(s.num_rows), np.diff(s.indptr))
        ends = zip(names.of(rows).tolist(), names.of(s.indices).tolist(), strict=True)
        assert s.weights is not None
        return {(*pair, w) for pair, w in zip(ends, s.weights.tolist(), strict=True)}
    return edges


def test_names_are_numbered_before_programs_run() -> None:
    case = Case(3, np.array([0, 1]), np.array([1, 2]), np.empty(0, np.int64), 2, True, False)
    workers = LocalWorkers(case.parts(name=str))
    facts: dict[str, Any] = {
        "epoch": 0,
        "time": 0,
        "versions": (1, 1),
        "num_edges": 2,
        "directed": True,
    }
    s = algorithms.ShardedSnapshot(workers, num_rows=3, **facts)
    with pytest.raises(lpma.BatchError, match="number_names"):
        algorithms.core_numbers(s)
    with pytest.raises(lpma.BatchError, match="go by ids"):
        number_names(LocalWorkers(case.parts()))
