"""Graphs whose ids have gaps: what counts is vertices, not rows, as in NetworkX's graph of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import algorithms
import lpma
from algorithms import Tracker
from lpma import Snapshot
from lpma.arrays import on_device
from lpma.snapshot import capture
from tests.conftest import real_graph
from tests.support.oracles import host

Array = npt.NDArray[Any]

ids = st.sampled_from([0, 1, 2, 3, 4, 5, 100, 5000])
pairs = st.lists(st.tuples(ids, ids), max_size=16)
some = st.lists(ids, max_size=4)


def columns(edges: list[tuple[int, int]]) -> tuple[Array, Array]:
    table = np.array(edges, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def made(
    device: str, directed: bool, edges: list[tuple[int, int]], added: list[int], gone: list[int]
) -> tuple[lpma.Graph, Any]:
    """A graph and NetworkX's, with edges, vertices added by themselves and then some removed."""
    g = lpma.Graph(directed=directed, device=device)
    g.insert(*columns(edges))
    g.add_vertices(np.array(added, np.int64))
    g.remove_vertices(np.array(gone, np.int64))
    model = (nx.DiGraph if directed else nx.Graph)(edges)
    model.add_nodes_from(added)
    model.remove_nodes_from(set(gone) & set(model))
    if gone:  # what had edges with them alone was a vertex by these
        kept = {v for v in model if model.degree(v) or v in added}
        model.remove_nodes_from(set(model) - kept)
    return g, model


def by_vertex(values: Any, model: Any) -> dict[int, Any]:
    """The values of vertices; of the rows that are none, there are no others."""
    values = host(values)
    return {v: values[v].item() for v in sorted(model)}


def others(values: Any, model: Any) -> set[Any]:
    """The values of rows that are no vertices."""
    return set(np.delete(host(values), sorted(model)).tolist())


@given(directed=st.booleans(), edges=pairs, added=some, gone=some)
def test_what_counts_is_vertices(
    device: str, directed: bool, edges: list[tuple[int, int]], added: list[int], gone: list[int]
) -> None:
    g, model = made(device, directed, edges, added, gone)
    s = g.snapshot()
    assert on_device(s.present) == (device == "cuda")
    assert np.flatnonzero(host(s.present)).tolist() == sorted(model)
    assert s.present is s.present  # kept
    assert s.num_vertices == g.num_vertices == len(model)
    assert s.num_rows == g.num_rows == max(model, default=-1) + 1
    compact = g.snapshot(compact=True)
    assert compact.num_rows == compact.num_vertices == len(model)
    assert host(compact.ids).tolist() == sorted(model)
    assert set(s.to_networkx()) == set(compact.to_networkx()) == set(model)

    ranks = algorithms.pagerank(s, tol=1e-11, max_iter=1000)
    expected = nx.pagerank(model, tol=1e-12, max_iter=1000)
    assert by_vertex(ranks, model) == pytest.approx(expected, rel=1e-8, abs=1e-10)
    assert others(ranks, model) <= {0.0}

    labels = algorithms.connected_components(s)
    undirected = model.to_undirected()
    wanted = {v: min(part) for part in nx.connected_components(undirected) for v in part}
    assert by_vertex(labels, model) == wanted
    assert others(labels, model) <= {-1}
    assert host(Tracker(g, "components").components).tolist() == host(labels).tolist()

    for source in (0, 3, 100):
        if source in model:
            hops = nx.single_source_shortest_path_length(model, source)
            found = by_vertex(algorithms.bfs(s, source), model)
            assert found == {v: hops.get(v, -1) for v in sorted(model)}
        else:
            with pytest.raises(lpma.BatchError, match="source: "):
                algorithms.bfs(s, source)

    best = algorithms.top_diversity(s, "component", 1, 100)
    assert sorted(one.vertex for one in best) == sorted(model)


@given(directed=st.booleans(), data=st.data())
def test_a_tracker_follows_vertices_that_come_and_go(
    device: str, directed: bool, data: st.DataObject
) -> None:
    g = lpma.Graph(directed=directed, device=device)
    tracker = Tracker(g, ["components", "core"])
    for _ in range(data.draw(st.integers(1, 8))):
        by_edges = data.draw(st.sampled_from([g.insert, g.delete, None]))
        if by_edges is not None:
            by_edges(*columns(data.draw(pairs)))
        else:
            by_vertices = data.draw(st.sampled_from([g.add_vertices, g.remove_vertices]))
            by_vertices(np.array(data.draw(some), np.int64))
        if data.draw(st.booleans()):
            continue
        tracker.update()
        s = g.snapshot()
        assert tracker.version == s.version
        expected = host(algorithms.connected_components(s)).tolist()
        assert host(tracker.components).tolist() == expected
        assert [v >= 0 for v in expected] == host(s.present).tolist()
        assert tracker.update()["components"].how == "unchanged"


def test_every_row_of_a_matrix_is_a_vertex(device: str) -> None:
    """As in other libraries; and of a snapshot that nobody said more of."""
    g = lpma.Graph(device=device)
    g.insert([0, 5], [5, 0])
    s = g.snapshot()
    for form in (s.to_scipy(), (host(s.indptr), host(s.indices)), replace(s, added=None)):
        assert host(algorithms.connected_components(form)).tolist() == [0, 1, 2, 3, 4, 0]
        assert float(host(algorithms.pagerank(form)).min()) > 0
        assert host(algorithms.bfs(form, 3)).tolist() == [-1, -1, -1, 0, -1, -1]
    assert replace(s, added=None).num_vertices == 6
    assert s.num_vertices == 2


def test_cores_and_trusses_have_their_own_vertices(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([10, 11, 12, 12], [11, 12, 10, 40])
    g.add_vertices(50)
    s = g.snapshot()
    for k, members in ((0, [10, 11, 12, 40, 50]), (1, [10, 11, 12, 40]), (2, [10, 11, 12])):
        assert np.flatnonzero(host(algorithms.k_core(s, k).present)).tolist() == members
    assert np.flatnonzero(host(algorithms.k_truss(s, 3).present)).tolist() == [10, 11, 12]
    everything = algorithms.k_core((host(s.indptr), host(s.indices)), 0)
    assert everything.num_vertices == everything.num_rows == 51


def test_an_archive_keeps_which_rows_are_vertices(device: str, tmp_path: Path) -> None:
    g = lpma.Graph(device=device)
    g.insert([3], [9])
    g.add_vertices([5, 20])
    g.snapshot().write_npz(tmp_path / "s.npz")
    read = Snapshot.read_npz(tmp_path / "s.npz")
    assert np.flatnonzero(read.present).tolist() == [3, 5, 9, 20]
    with np.load(tmp_path / "s.npz") as archive:
        arrays = dict(archive)
    for bad in (np.array([21], np.uint32), np.array([5, 5], np.uint32), np.array([5], np.int64)):
        np.savez(tmp_path / "bad.npz", **{**arrays, "added": bad})
        with pytest.raises(lpma.FormatError):
            Snapshot.read_npz(tmp_path / "bad.npz")
    del arrays["added"]  # as an earlier version wrote it
    np.savez(tmp_path / "old.npz", **arrays)
    assert Snapshot.read_npz(tmp_path / "old.npz").num_vertices == 21


def test_vertices_are_counted_once_a_version(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Mock(wraps=capture.vertices)
    monkeypatch.setattr(capture, "vertices", counts)
    g = lpma.Graph(device=device)
    g.insert(5, 9)
    assert (g.num_vertices, len(g), g.num_rows) == (2, 2, 10)
    assert counts.call_count == 1
    g.insert(9, 7)
    assert (len(g), g.num_vertices, g.snapshot().num_vertices) == (3, 3, 3)
    assert counts.call_count == 2


@pytest.mark.parametrize("directed", [True, False])
def test_ids_far_apart_are_counted_by_sorting(device: str, directed: bool) -> None:
    g = lpma.Graph(directed=directed, device=device)
    g.insert([0, 2**31, 2**32 - 2], [2**32 - 2, 0, 7])
    g.add_vertices([9, 2**31])
    assert g.num_vertices == 5
    assert host(g.snapshot(compact=True).ids).tolist() == [0, 7, 9, 2**31, 2**32 - 2]
    g.remove_vertices([2**31, 2**32 - 2])
    assert g.num_vertices == 1


@pytest.mark.parametrize("directed", [True, False])
def test_in_pieces(device: str, directed: bool) -> None:
    """Enough entries for several threads, half of the ids never seen."""
    rng = np.random.default_rng(5)
    src, dst = 2 * rng.integers(0, 300_000, (2, 700_000))
    g = lpma.Graph(directed=directed, device=device, times=False)
    g.insert(src, dst)
    s = g.snapshot()
    expected = np.unique(np.concatenate((src, dst)))
    assert np.array_equal(np.flatnonzero(host(s.present)), expected)
    assert g.num_vertices == s.num_vertices == len(expected)
    assert float(host(algorithms.pagerank(s)).sum()) == pytest.approx(1)
    labels = host(algorithms.connected_components(s))
    assert np.array_equal(labels >= 0, host(s.present))


def test_a_real_graph_as_networkx_has_it(device: str) -> None:
    """Whose ids go to 8,297, of which 7,115 are seen."""
    data = real_graph("wiki-Vote")
    g = lpma.Graph(device=device)
    g.insert(data["src"], data["dst"])
    model = nx.DiGraph(list(zip(data["src"].tolist(), data["dst"].tolist(), strict=True)))
    s = g.snapshot()
    ranks = algorithms.pagerank(s, tol=1e-11, max_iter=500)
    expected = nx.pagerank(model, tol=1e-12, max_iter=500)
    assert by_vertex(ranks, model) == pytest.approx(expected, rel=1e-6)
    parts = np.unique(host(algorithms.connected_components(s)))
    assert len(parts[parts >= 0]) == nx.number_weakly_connected_components(model)


@pytest.mark.parametrize("directed", [True, False])
def test_a_tracker_begins_with_what_the_graph_has(device: str, directed: bool) -> None:
    """A loop and an addition from before it began keep vertices that lose all other edges."""
    g = lpma.Graph(directed=directed, device=device)
    g.insert([7, 7, 9, 11], [7, 8, 8, 8])
    g.add_vertices(9)
    tracker = Tracker(g, "components")
    g.delete([7, 9, 11], [8, 8, 8])
    tracker.update()
    expected = [-1] * 7 + [7, -1, 9]
    assert host(tracker.components).tolist() == expected
    assert host(algorithms.connected_components(g.snapshot())).tolist() == expected
    g.insert(20, 20)
    tracker.update()
    assert host(tracker.components).tolist() == [*expected, *[-1] * 10, 20]
