"""Common neighbours, Jaccard and the most similar vertices against NetworkX and sets."""

from __future__ import annotations

import importlib
import math
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from algorithms import common_neighbors, jaccard, similar
from algorithms.similarity import of_pairs
from algorithms.views.simple import View, simple
from ingest.datasets import generators
from lpma.arrays import on_device, to_host
from tests.algorithms.test_components import snapshots
from tests.conftest import real_graph
from tests.support.graph_forms import BAD_GRAPHS, clustered, inputs
from tests.support.oracles import assert_same
from tests.support.strategies import edge_lists

Array = npt.NDArray[Any]
Sets = list[set[int]]


def neighbor_sets(n: int, src: Array, dst: Array) -> Sets:
    found: Sets = [set() for _ in range(n)]
    for u, v in zip(src.tolist(), dst.tolist(), strict=True):
        if u != v:
            found[u].add(v)
            found[v].add(u)
    return found


def score(sets: Sets, u: int, v: int) -> float:
    either = sets[u] | sets[v]
    return len(sets[u] & sets[v]) / len(either) if either else 0.0


def moved(array: Array) -> Any:
    """A copy on the device."""
    return importlib.import_module("cupy").asarray(array)


def ranking(sets: Sets, u: int, k: int, unlinked: bool) -> list[tuple[int, float]]:
    others = [v for v in range(len(sets)) if v != u and sets[u] & sets[v]]
    others = [v for v in others if not unlinked or v not in sets[u]]
    found = [(v, score(sets, u, v)) for v in others]
    return sorted(found, key=lambda one: (-one[1], one[0]))[:k]


@given(graph=edge_lists(), data=st.data())
def test_in_every_form(device: str, graph: tuple[int, Array, Array], data: st.DataObject) -> None:
    n, src, dst = graph
    sets = neighbor_sets(n, src, dst)
    u, v = np.divmod(np.arange(n * n), max(n, 1))
    pairs = list(zip(u.tolist(), v.tolist(), strict=True))
    counts = np.array([len(sets[a] & sets[b]) for a, b in pairs], np.int64)
    shares = np.array([score(sets, a, b) for a, b in pairs], np.float64)
    k, unlinked = data.draw(st.integers(0, 26)), data.draw(st.booleans())
    for form in inputs(device, n, src, dst):
        assert_same(common_neighbors(form, u, v), counts)
        assert_same(jaccard(form, u.tolist(), v.tolist()), shares)
        for vertex in range(min(n, 4)):
            found = similar(form, vertex, k, unlinked)
            assert found.vertex.dtype == np.uint32
            assert found.jaccard.dtype == np.float64
            columns = (to_host(found.vertex).tolist(), to_host(found.jaccard).tolist())
            assert list(zip(*columns, strict=True)) == ranking(sets, vertex, k, unlinked)


def test_networkx(device: str) -> None:
    """Rows of all lengths, merged and looked up, in threads; the results where the graph lies."""
    _, src, dst = clustered(9)
    s = snapshots(device, src, dst)[0]
    graph = nx.Graph(list(zip(src.tolist(), dst.tolist(), strict=True)))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    u, v = np.random.default_rng(1).integers(0, s.num_rows, (2, 3000))
    u[:100], v[100:200] = 77, 77  # the hub
    pairs = list(zip(u.tolist(), v.tolist(), strict=True))
    found = jaccard(s, u, v)
    assert on_device(found) == (device == "cuda")
    assert_same(found, np.array([score for *_, score in nx.jaccard_coefficient(graph, pairs)]))
    counts = [len(set(graph[a]) & set(graph[b])) for a, b in pairs]
    assert_same(common_neighbors(s, u, v), np.array(counts, np.int64))


def test_scipy(device: str) -> None:
    """Enough pairs and entries for several threads."""
    src, dst = generators.rmat(13, 100_000, seed=3)
    s = snapshots(device, src, dst)[1]
    matrix = s.to_scipy().astype(np.int64)
    matrix.data[:] = 1
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    u, v = np.random.default_rng(2).choice(np.concatenate((src, dst)), (2, 20_000))
    product = np.asarray((matrix @ matrix)[u, v]).ravel()
    assert_same(common_neighbors(s, u, v), product)
    best = similar(s, int(src[0]), 50)
    row = np.asarray((matrix[[int(src[0])]] @ matrix).todense()).ravel()
    degree = np.diff(matrix.indptr)
    union = degree[int(src[0])] + degree - row
    shares = np.where(row > 0, row / np.maximum(union, 1), 0)
    shares[int(src[0])] = 0
    order = np.lexsort((np.arange(len(shares)), -shares))[:50]
    assert_same(best.vertex, order.astype(np.uint32))
    assert_same(best.jaccard, shares[order])


def test_sums_of_values(device: str) -> None:
    """To the bit, added in the order of the ids, over rows of all lengths."""
    rng = np.random.default_rng(4)
    n = 1500
    kept = rng.random((n, n)) < np.linspace(0, 0.9, n)
    src, dst = np.nonzero(kept & kept.T)
    s = snapshots(device, src, dst)[1]
    sets = neighbor_sets(n, src, dst)
    values = 1 / rng.random(n)
    u, v = rng.integers(0, n, (2, 400))
    u[:20] = v[:20]
    given_on = [array.astype(np.int64) for array in (u, v)] + [values]
    if device == "cuda":
        given_on = [moved(array) for array in given_on]
    view = simple(s)
    count, total, either = of_pairs(View(view.indptr, view.indices), *given_on)
    expected = [sorted(sets[a] & sets[b]) for a, b in zip(u.tolist(), v.tolist(), strict=True)]
    assert_same(count, np.array(list(map(len, expected)), np.int64))
    totals = [0.0] * len(u)
    for pair, common in enumerate(expected):
        for w in common:
            totals[pair] += values[w]
    assert_same(total, np.array(totals))
    assert_same(either, np.array([len(sets[a] | sets[b]) for a, b in zip(u, v, strict=True)]))
    assert max(map(len, expected)) > 512
    assert any(total != math.fsum(values[expected[i]]) for i, total in enumerate(totals))


@pytest.mark.gpu
def test_pairs_on_the_device(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """They do not leave it, of whatever integers; one that is no vertex is still told."""
    _, src, dst = clustered(7)
    s = snapshots("cuda", src, dst)[0]
    u, v = np.random.default_rng(1).choice(np.concatenate((src, dst)), (2, 2000))
    expected = common_neighbors(s, u, v), jaccard(s, u, v)
    host = snapshots("cpu", src, dst)[0]
    for dtype in (np.uint32, np.int32, np.int64, np.uint64):
        ends = moved(u.astype(dtype)), moved(v.astype(dtype))
        with monkeypatch.context() as patch:
            patch.setattr("algorithms.arguments.to_host", None)
            assert_same(common_neighbors(s, *ends), to_host(expected[0]))
            assert_same(jaccard(s, *ends), to_host(expected[1]))
        assert_same(common_neighbors(host, *ends), to_host(expected[0]))  # of a graph elsewhere
    last = s.num_rows - 1
    for wrong, dtype in ((last + 1, np.int64), (-1, np.int32), (2**64 - 1, np.uint64)):
        ends = moved(u), moved(np.array([*v[:-1], wrong], dtype))
        with pytest.raises(lpma.BatchError, match=f"v: a vertex that is there.*, not {wrong}$"):
            common_neighbors(s, *ends)
    for what in (cupy.zeros(1), cupy.zeros((1, 1), np.int64)):
        with pytest.raises(lpma.BatchError, match="u: a list or an array of integers"):
            jaccard(s, what, moved(v[:1]))
    with pytest.raises(lpma.BatchError, match="u, v: 2000 vertices and 1: give pairs"):
        jaccard(s, moved(u), moved(v[:1]))
    assert_same(jaccard(s, cupy.zeros(0, np.int64), cupy.zeros(0, np.int64)), np.empty(0))


def test_ties_by_the_smaller_id(device: str) -> None:
    """However many there are beyond k."""
    src, dst = np.zeros(99, int), np.arange(1, 100)
    s = snapshots(device, src, dst)[0]
    found = similar(s, 50, 5)
    assert to_host(found.vertex).tolist() == [1, 2, 3, 4, 5]
    assert to_host(found.jaccard).tolist() == [1.0] * 5
    assert len(similar(s, 0, 5).vertex) == 0
    assert len(similar(s, 50, 1000).vertex) == 98


def test_rows_that_are_no_vertices(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([0, 2, 4], [2, 5, 5])
    g.remove_vertices(4)
    g.add_vertices(7)
    s = g.snapshot()
    assert to_host(jaccard(s, [0, 0, 7, 7], [5, 0, 7, 0])).tolist() == [1, 1, 0, 0]
    for u, v, name, wrong in (
        ([0, 4], [0, 0], "u", 4), ([0, 0], [2, 8], "v", 8), ([0], [-1], "v", -1),
        (np.array([2**64 - 1], np.uint64), [0], "u", 2**64 - 1), ([1], [0], "u", 1),
    ):  # fmt: skip
        message = f"{name}: a vertex that is there, from 0 to 7, not {wrong}"
        with pytest.raises(lpma.BatchError, match=message):
            common_neighbors(s, u, v)
        with pytest.raises(lpma.BatchError, match=message):
            jaccard(s, u, v)
    for vertex in (4, 8, -1, "0", 0.0):
        with pytest.raises(lpma.BatchError, match="vertex: a vertex that is there"):
            similar(s, vertex, 3)  # type: ignore[arg-type]
    for k in (-1, 1.0, True, None):
        with pytest.raises(lpma.BatchError, match="k: an integer from 0 on"):
            similar(s, 0, k)  # type: ignore[arg-type]
    for what in ([0.5], [[0]], 0, ["a"]):
        with pytest.raises(lpma.BatchError, match="u: a list or an array of integers"):
            jaccard(s, what, [0])
    with pytest.raises(lpma.BatchError, match="u, v: 2 vertices and 1: give pairs"):
        jaccard(s, [0, 2], [0])
    assert_same(jaccard(s, [], []), np.empty(0))


def test_named_vertices(device: str) -> None:
    src, dst = ["ann", "ann", 7, "bob"], ["bob", 7, "cem", "cem"]
    s = lpma.from_edges(src, dst, device=device).snapshot()
    assert s.names is not None
    assert to_host(common_neighbors(s, ["ann", 7], ["cem", "bob"])).tolist() == [2, 2]
    assert s.names.of(similar(s, "ann", 9).vertex).tolist() == ["cem"]
    with pytest.raises(lpma.BatchError, match="v: the name of a vertex that is there, not 'dan'"):
        common_neighbors(s, ["ann", "ann"], ["bob", "dan"])
    with pytest.raises(lpma.BatchError, match="vertex: there is no vertex '7'; the integer is"):
        similar(s, "7", 1)


@pytest.mark.parametrize("name", BAD_GRAPHS)
def test_what_is_no_graph_is_refused(name: str) -> None:
    for call in (
        lambda s: jaccard(s, [0], [0]), lambda s: common_neighbors(s, [], []),
        lambda s: similar(s, 0, 1),
    ):  # fmt: skip
        with pytest.raises(lpma.BatchError):
            call(BAD_GRAPHS[name])


@pytest.mark.parametrize("name", ["wiki-Vote", "email-Enron"])
def test_real_graphs(device: str, name: str) -> None:
    columns = real_graph(name)
    s = snapshots(device, columns["src"], columns["dst"])[0]
    sets = neighbor_sets(s.num_rows, columns["src"], columns["dst"])
    u, v = np.stack([columns["src"], columns["dst"]])[:, ::50]
    shares = [score(sets, a, b) for a, b in zip(u.tolist(), v.tolist(), strict=True)]
    assert_same(jaccard(s, u, v), np.array(shares))
    for vertex in u[:3].tolist():
        found = similar(s, vertex, 20, unlinked=True)
        columns_of = (to_host(found.vertex).tolist(), to_host(found.jaccard).tolist())
        assert list(zip(*columns_of, strict=True)) == ranking(sets, vertex, 20, True)
