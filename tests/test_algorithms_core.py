"""Core numbers against NetworkX, igraph and what is known of real graphs; and the simple view."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sparse
from conftest import real_graph
from hypothesis import given
from oracles import assert_same, core_numbers_igraph, core_numbers_networkx, simple_edges
from strategies import Config, edge_lists

import lpma
from algorithms import core_numbers
from algorithms._views import SMALL, simple

Array = npt.NDArray[Any]


def inputs(device: str, n: int, src: Array, dst: Array) -> list[Any]:
    """The same graph in every form that an algorithm takes, with n vertices."""
    forms: list[Any] = []
    for config in (Config(), Config(directed=False, weight=None)):
        g = config.graph(device)
        g.insert(src, dst, 1.0, 0)
        if n:
            g.add_vertices(n - 1, 0)
        forms.append(g.snapshot())
    order = np.argsort(src, kind="stable")  # targets unsorted within a row, repeats kept
    indptr = np.searchsorted(src[order], np.arange(n + 1))
    forms += [(indptr, dst[order]), [indptr.astype(np.int32), dst[order].astype(np.uint64)]]
    if n:
        matrix = sparse.csr_matrix((np.zeros(len(src)), (src, dst)), shape=(n, n))
        forms += [matrix, sparse.csr_array(matrix)]
    return forms


@given(graph=edge_lists())
def test_core_numbers(device: str, graph: tuple[int, Array, Array]) -> None:
    n, src, dst = graph
    expected = core_numbers_networkx(n, src, dst)
    assert_same(core_numbers_igraph(n, src, dst), expected)
    for form in inputs(device, n, src, dst):
        for method in ("auto", "bz"):
            assert_same(core_numbers(form, method=method), expected)


@given(graph=edge_lists())
def test_simple_view(device: str, graph: tuple[int, Array, Array]) -> None:
    n, src, dst = graph
    edges = simple_edges(src, dst)
    both = sorted(edges | {(v, u) for u, v in edges})
    for form in inputs(device, n, src, dst):
        view = simple(form)
        assert view.indptr.dtype == np.int64
        assert view.indices.dtype == np.uint32
        rows = np.repeat(np.arange(n), np.diff(view.indptr)).tolist()
        assert list(zip(rows, view.indices.tolist(), strict=True)) == both


def test_views_are_cached_on_a_snapshot(device: str) -> None:
    g = lpma.Graph(device=device)
    g.insert([1, 2, 3, 3], [2, 3, 1, 3])
    first, second = g.snapshot(), g.snapshot()
    assert simple(first) is simple(first)
    assert simple(first) is not simple(second)
    indptr, indices = first.indptr.copy(), first.indices.copy()
    core_numbers(first)
    assert_same((first.indptr, first.indices), (indptr, indices))


def test_a_compact_snapshot_has_its_own_numbering(device: str) -> None:
    g = lpma.Graph(device=device)
    triangle = np.array([0, 2**31, 2**32 - 2])
    g.insert(triangle, np.roll(triangle, 1))
    g.insert(5, 0)
    g.add_vertices(7)
    snapshot = g.snapshot(compact=True)
    assert snapshot.ids is not None
    assert snapshot.ids.tolist() == [0, 5, 7, 2**31, 2**32 - 2]
    assert core_numbers(snapshot).tolist() == [2, 1, 0, 2, 2]


def test_a_method_unknown_names_those_known() -> None:
    with pytest.raises(ValueError, match="auto, bz"):
        core_numbers((np.zeros(1, int), np.zeros(0, int)), method="guess")


BAD_GRAPHS: dict[str, Any] = {
    "text": "graph",
    "none": None,
    "three arrays": (np.zeros(1, int), np.zeros(0, int), np.zeros(0)),
    "no start": (np.zeros(0, int), np.zeros(0, int)),
    "start past 0": (np.array([1, 1]), np.array([0])),
    "end too early": (np.array([0, 1]), np.array([0, 0])),
    "falling": (np.array([0, 2, 1, 2]), np.array([0, 1])),
    "target too large": (np.array([0, 1]), np.array([1])),
    "negative target": (np.array([0, 1]), np.array([-1])),
    "fractions": (np.array([0, 1]), np.array([0.5])),
    "two dimensions": (np.array([0, 1]), np.array([[0]])),
    "not square": sparse.csr_matrix((3, 4)),
    "columns first": sparse.csc_matrix((3, 3)),
}


@pytest.mark.parametrize("name", BAD_GRAPHS)
def test_what_is_no_graph_is_refused(name: str) -> None:
    with pytest.raises(lpma.BatchError):
        core_numbers(BAD_GRAPHS[name])


@pytest.mark.parametrize("name, core, members", [
    ("wiki-Vote", 53, 336), ("email-Enron", 43, 275), ("facebook-combined", 115, 158),
    ("CollegeMsg", 20, 201), ("ca-HepTh", 31, 32), ("soc-sign-bitcoinotc", 21, 153),
    ("p2p-Gnutella31", 6, 1004), ("road-NY", 3, 58), ("sx-mathoverflow", 78, 263),
    ("uk-2007-05-100k", 131, 132),
])  # fmt: skip
def test_known_cores(device: str, name: str, core: int, members: int) -> None:
    columns = real_graph(name)
    g = lpma.Graph(device=device, weight=None, times=False)
    g.insert(columns["src"], columns["dst"])
    snapshot = g.snapshot()
    numbers = core_numbers(snapshot)
    assert numbers.dtype == np.int32
    assert (int(numbers.max()), int((numbers == numbers.max()).sum())) == (core, members)
    if len(snapshot.indices) < 10 * SMALL:
        n = snapshot.num_vertices
        assert_same(numbers, core_numbers_igraph(n, columns["src"], columns["dst"]))
