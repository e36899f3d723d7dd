"""Graphs from NetworkX, igraph, sparse matrices and edge indices, against those libraries."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import igraph
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st

import lpma
from tests.support.networkx_graphs import Drawn, graphs
from tests.support.oracles import host

TYPES = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph]
EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9)), max_size=30)


def simple(G: Any) -> Any:
    """The same without parallel edges, whose weights are added; the order of nodes is kept."""
    plain = nx.DiGraph() if G.is_directed() else nx.Graph()
    plain.add_nodes_from(G)
    for u, v, weight in G.edges(data="weight", default=1):
        before = plain.edges[u, v]["weight"] if plain.has_edge(u, v) else 0.0
        plain.add_edge(u, v, weight=before + weight)
    return plain


@given(st.sampled_from(TYPES), EDGES)
def test_networkx_round_trip(make: Any, edges: list[tuple[int, int, int]]) -> None:
    G = make()
    G.add_nodes_from(range(10))
    G.add_weighted_edges_from(edges)
    g = lpma.from_networkx(G, device="cpu", times=False)
    back = g.snapshot().to_networkx()
    assert nx.utils.graphs_equal(back, simple(G))
    assert g.directed == G.is_directed()
    assert g.num_vertices == 10


def test_attributes_of_networkx(device: str) -> None:
    G = nx.DiGraph()
    moment = datetime(1970, 1, 2, tzinfo=UTC)
    G.add_edge(0, 1, cost=0.5, seen=moment)
    G.add_edge(1, 2, seen=7)
    with pytest.raises(lpma.BatchError, match="7 is no time"):
        lpma.from_networkx(G, time="seen", device=device)
    G.edges[1, 2]["seen"] = moment
    g = lpma.from_networkx(G, weight="cost", time="seen", device=device)
    assert (g.edge(0, 1), g.edge(1, 2)) == ((0.5, 86_400_000), (1.0, 86_400_000))
    assert lpma.from_networkx(G, weight=None, device=device).edge(0, 1).weight == 1.0  # type: ignore[union-attr]
    with pytest.raises(lpma.BatchError, match="the edge from 0 to 1 has no 'when'"):
        lpma.from_networkx(G, time="when", device=device)
    for bad in (0, -1.0, np.nan):
        G.edges[1, 2]["cost"] = bad
        with pytest.raises(lpma.BatchError, match=r"the edge from 1 to 2 has the weight .*above 0"):
            lpma.from_networkx(G, weight="cost", device=device)
    several: tuple[Any, ...] = ("heavy", (1, 2), {})
    for wrong in several:
        G.edges[1, 2]["cost"] = wrong
        with pytest.raises(lpma.BatchError, match="not all of the edges' weights are numbers"):
            lpma.from_networkx(G, weight="cost", device=device)
    with pytest.raises(TypeError, match="directed"):
        lpma.from_networkx(G, directed=True, device=device)
    with pytest.raises(lpma.BatchError, match="a Graph is not a NetworkX graph"):
        lpma.from_networkx(igraph.Graph(2))
    with pytest.raises(lpma.BatchError, match="a Graph is no graph of igraph"):
        lpma.from_igraph(nx.Graph())


@given(drawn=graphs())
def test_any_graph_of_networkx_is_its_edges_or_refused(drawn: Drawn) -> None:
    """Of every class, and views: refused is only what is another graph in another reading."""
    G = drawn.graph
    if not all(isinstance(v, int | str) for v in G):
        return
    for number, (_, _, data) in enumerate(drawn.parent.edges(data=True)):
        data["cost"] = 1 + number % 4
    try:
        g = lpma.from_networkx(G, weight="cost", device="cpu")
    except lpma.BatchError:
        if drawn.has_one_reading:
            raise
        return
    wanted: Counter[Any] = Counter()
    for u, v, cost in G.edges(data="cost"):
        wanted[(u, v) if G.is_directed() or (v, u) not in wanted else (v, u)] += cost
    assert {(u, v): g.edge(u, v).weight for u, v in wanted} == wanted  # type: ignore[union-attr]
    assert g.num_edges == len(wanted)
    assert set(g) == set(G)


@pytest.mark.parametrize("passes", [lambda u, v: u < v, lambda u, v: u > v])
@pytest.mark.parametrize("edges", [[(0, 1)], [(0, 1), (1, 2), (3, 3)]])
def test_edges_that_are_seen_from_one_end_only(passes: Any, edges: list[tuple[int, int]]) -> None:
    view = nx.subgraph_view(nx.Graph(edges), filter_edge=passes)
    with pytest.raises(lpma.BatchError, match=r"from one end only: give nx\.Graph\(G\)"):
        lpma.from_networkx(view, device="cpu")
    assert lpma.from_networkx(nx.Graph(view), device="cpu").has_edge(1, 0)


def test_a_subclass_of_two_readings() -> None:
    class Hiding(nx.Graph):
        def __getitem__(self, u: Any) -> Any:
            return {}

    G = nx.path_graph(3)
    G.__class__ = Hiding
    with pytest.raises(lpma.BatchError, match=r"this Hiding has no one reading: .*G\.adj"):
        lpma.from_networkx(G)
    with pytest.raises(lpma.BatchError, match="a type is not a NetworkX graph"):
        lpma.from_networkx(nx.Graph)


def test_labels_that_nothing_could_name() -> None:
    for label in ((0, 1), 1.5, True, frozenset([1])):
        G = nx.Graph([(label, 7)])
        with pytest.raises(
            lpma.BatchError, match=r"node 0 has the label .* go by integers or text: networkx.rel"
        ):
            lpma.from_networkx(G, device="cpu")


@given(EDGES, st.booleans())
def test_igraph_round_trip(edges: list[tuple[int, int, int]], directed: bool) -> None:
    G = igraph.Graph(10, [(u, v) for u, v, _ in edges], directed=directed)
    g = lpma.from_igraph(G, device="cpu")
    expected = np.array(G.get_adjacency().data)
    if not directed:
        np.fill_diagonal(expected, expected.diagonal() // 2)  # igraph counts a loop twice
    assert np.array_equal(g.snapshot().to_scipy().toarray(), expected)
    assert g.num_vertices == 10
    G.es["w"] = [weight for _, _, weight in edges]
    g = lpma.from_igraph(G, weight="w", device="cpu")
    assert g.snapshot().to_scipy().sum() == sum(
        w if directed or u == v else 2 * w for u, v, w in edges
    )


@pytest.mark.parametrize("bad", [None, 1.5, True, [1], b"x"])
def test_vertices_of_igraph_that_have_no_name(bad: Any) -> None:
    """One of them, or all: the advice is igraph's own."""
    for names in (["a", "b", bad], [bad, bad, bad]):
        G = igraph.Graph(3, [(0, 1)])
        G.vs["name"] = names
        with pytest.raises(lpma.BatchError, match=r"vertex [02] has .* del G\.vs") as error:
            lpma.from_igraph(G, device="cpu")
        assert "networkx" not in str(error.value)
        del G.vs["name"]
        assert lpma.from_igraph(G, device="cpu").has_edge(0, 1)


def test_attributes_of_igraph() -> None:
    G = igraph.Graph(3, [(0, 1), (1, 2)])
    G.es["seen"] = [5, 6]
    assert lpma.from_igraph(G, time="seen", device="cpu").edge(2, 1) == (1.0, 6)
    with pytest.raises(lpma.BatchError, match=r"time='when': no such edge attribute.*seen"):
        lpma.from_igraph(G, time="when")
    G.es["weight"] = [1.0, None]
    assert lpma.from_igraph(G, device="cpu").edge(1, 2).weight == 1.0  # type: ignore[union-attr]
    G.es["weight"] = [1.0, -2.0]
    with pytest.raises(lpma.BatchError, match=r"from 1 to 2 has the weight -2.0"):
        lpma.from_igraph(G, device="cpu")
    G.vs["name"] = ["a", "b", "a"]
    with pytest.raises(lpma.BatchError, match='two vertices have the same "name"'):
        lpma.from_igraph(G, device="cpu")


def matrix(dtype: Any = np.float64) -> Any:
    dense = sparse.random_array((12, 12), density=0.2, rng=4).toarray()
    dense[7], dense[:, 7] = 0, 0  # a vertex without edges
    return sparse.csr_array(np.ceil(dense * 9).astype(dtype))


FORMS = ["csr", "csc", "coo", "lil", "dok", "bsr"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "u1"])
def test_scipy_round_trip(device: str, form: str, dtype: str) -> None:
    A = matrix(dtype)
    for given_matrix in (A.asformat(form), sparse.csr_matrix(A).asformat(form)):
        g = lpma.from_scipy(given_matrix, device=device)
        assert np.array_equal(g.snapshot().to_scipy().toarray(), A.toarray())
        assert g.num_vertices == 12
        assert g.weight_dtype == (np.float32 if dtype in ("f4", "u1") else np.float64)


def test_symmetric_matrices(device: str) -> None:
    A = matrix()
    S = sparse.csr_array(A + A.T)
    g = lpma.from_scipy(S, directed=False, device=device)
    assert np.array_equal(g.snapshot().to_scipy().toarray(), S.toarray())
    assert g.num_edges == sparse.triu(S).nnz
    lopsided = S.tolil()
    lopsided[0, 1], lopsided[1, 0] = 1, 2
    for wrong in (A, lopsided):
        with pytest.raises(lpma.BatchError, match="in both directions, with the same weight"):
            lpma.from_scipy(wrong, directed=False, device=device)


def test_entries_that_add_up_and_booleans(device: str) -> None:
    twice = sparse.coo_array(([1.5, 2.0], ([0, 0], [1, 1])), shape=(2, 2))
    assert lpma.from_scipy(twice, device=device).edge(0, 1).weight == 3.5  # type: ignore[union-attr]
    flags = matrix() > 0
    g = lpma.from_scipy(flags, device=device, weight_dtype=None)
    assert np.array_equal(g.snapshot().to_scipy().toarray(), flags.toarray())
    assert lpma.from_scipy(flags, device=device).weight_dtype == np.float32


def test_matrices_that_are_no_graph() -> None:
    zero = sparse.coo_array(([0.0], ([0], [1])), shape=(2, 2))
    for wrong, message in [
        (zero, r"from 0 to 1 has the weight 0.0.*eliminate_zeros"),
        (-matrix(), "has the weight -"),
        (matrix()[:3], r"square, and this one has shape \(3, 12\)"),
        (matrix().toarray(), "a ndarray is no sparse matrix"),
        (matrix(complex), "weights are numbers, not complex128"),
    ]:
        with pytest.raises(lpma.BatchError, match=message):
            lpma.from_scipy(wrong, device="cpu")


@pytest.mark.gpu
def test_cupy_round_trip(cupy: Any) -> None:
    from cupyx.scipy import sparse as cupy_sparse

    A = matrix()
    S = sparse.csr_array(A + A.T)
    forms: list[tuple[Any, dict[str, Any]]] = [(A, {}), (S, {"directed": False})]
    for held, options in forms:
        on_device = cupy_sparse.csr_matrix(sparse.csr_matrix(held))
        for device in ("cuda", "cpu"):
            g = lpma.from_scipy(on_device, device=device, **options)
            assert np.array_equal(g.snapshot().to_scipy().toarray(), held.toarray())
            assert g.num_vertices == 12
    with pytest.raises(lpma.BatchError, match="has the weight -"):
        lpma.from_scipy(-cupy_sparse.csr_matrix(sparse.csr_matrix(A)))
    pairs = cupy.array([[0, 1], [1, 2]])
    g = lpma.from_edge_index(pairs, cupy.array([0.5, 2.0]))
    assert host(g.edges([0, 1], [1, 2]).weights).tolist() == [0.5, 2.0]


class OnlyDlpack:
    """An array of a library that NumPy knows by DLPack alone."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def test_edge_index(device: str) -> None:
    pairs = np.array([[0, 0, 1, 2, 2], [1, 1, 2, 0, 2]])
    weight = np.array([0.5, 1, 2, 3, 4])
    expected = sparse.coo_array((weight, tuple(pairs)), shape=(3, 3)).toarray()
    for given_pairs in (pairs, pairs.tolist(), np.asfortranarray(pairs), OnlyDlpack(pairs)):
        g = lpma.from_edge_index(given_pairs, weight, device=device)
        assert np.array_equal(g.snapshot().to_scipy().toarray(), expected)
    assert lpma.from_edge_index(pairs, device=device).edge(0, 1).weight == 2.0  # type: ignore[union-attr]
    assert lpma.from_edge_index(np.empty((2, 0)), device=device).num_edges == 0
    back = g.snapshot().to_edge_index()
    assert lpma.from_edge_index(back, device=device).num_edges == g.num_edges
    for wrong, message in [
        (pairs.T, r"expected shape \[2, m\], got \[5, 2\]: give its transpose"),
        (pairs[0], r"got \[5\]"),
        (pairs + 0.5, "whole numbers"),
        ([[1, 2], [3]], "cannot be read as an array"),
    ]:
        with pytest.raises(lpma.BatchError, match=message):
            lpma.from_edge_index(wrong, device=device)


def test_edge_index_of_an_undirected_graph(device: str) -> None:
    pairs = np.array([[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]])
    g = lpma.from_edge_index(pairs, [1, 1, 3, 3, 5], directed=False, device=device)
    assert (g.num_edges, g.edge(0, 1).weight, g.edge(2, 1).weight, g.edge(2, 2).weight) == (  # type: ignore[union-attr]
        3, 1.0, 3.0, 5.0
    )  # fmt: skip
    assert np.array_equal(host(g.snapshot().to_edge_index()), pairs)
    for wrong, weight in ((pairs[:, :3], None), (pairs, [1, 2, 3, 3, 5])):
        with pytest.raises(lpma.BatchError, match="in both directions"):
            lpma.from_edge_index(wrong, weight, directed=False, device=device)


def test_edge_index_of_pytorch(device: str) -> None:
    torch = pytest.importorskip("torch")
    pairs = torch.tensor([[0, 1, 5], [1, 2, 6]])
    weight = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
    g = lpma.from_edge_index(pairs, weight, device=device)
    assert (g.num_edges, g.edge(5, 6).weight) == (3, 2.0)  # type: ignore[union-attr]
    assert g.weight_dtype == np.float32
