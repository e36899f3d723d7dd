"""A snapshot that a caller makes of arrays: checked, and apart from these."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import algorithms
import lpma
from lpma.arrays import on_device
from tests.support.oracles import host


def placed(device: str, values: Any, dtype: Any) -> Any:
    if device != "cuda":
        return np.array(values, dtype)
    import cupy

    return cupy.array(values, dtype)


def arguments(device: str, **changed: Any) -> dict[str, Any]:
    """0 → 1, 0 → 3, 1 → 1, 3 → 0 and a vertex 4 without edges; one of these is changed."""
    good = {
        "indptr": placed(device, [0, 2, 3, 3, 4, 4], np.int64),
        "indices": placed(device, [1, 3, 1, 0], np.uint32),
        "weights": placed(device, [0.5, 2, 0, 4], np.float32),
        "times": placed(device, [1, 2, 3, 4], np.int64),
        "num_edges": 4, "version": 2, "time": 4, "directed": True,
        "ids": placed(device, [2, 3, 5, 7, 11], np.uint32),
        "added": placed(device, [4], np.uint32),
    }  # fmt: skip
    for name, value in changed.items():
        is_array = isinstance(value, tuple)
        good[name] = placed(device, *value) if is_array else value
    return good


def read_all(s: lpma.Snapshot) -> None:
    """Whatever follows the arrays of a snapshot."""
    for call in (
        algorithms.core_numbers, algorithms.connected_components, algorithms.pagerank,
        algorithms.triangles, algorithms.truss_numbers, algorithms.strongly_connected_components,
        algorithms.clustering_coefficients, lambda s: algorithms.k_core(s, 1),
        lambda s: algorithms.diversity(s, "component", 1),
        lambda s: s.num_vertices, lambda s: s.to_scipy(), lambda s: s.to_edge_index(),
    ):  # fmt: skip
        call(s)


U32, I64, F32 = np.uint32, np.int64, np.float32
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no array": ({"indices": [1, 3, 1, 0]}, "indices: give an array .* uint32, not a list"),
    "no rows": ({"indptr": ([], I64)}, "indptr: is empty"),
    "another dtype": ({"indices": ([1, 3, 1, 0], np.int32)}, r"give indices.astype\(numpy.uint32"),
    "another order of bytes": ({"indptr": ([0, 2, 3, 3, 4, 4], ">i8")}, "expected int64"),
    "two dimensions": ({"weights": ([[1, 2], [3, 4]], F32)}, r"weights: .* shape \(2, 2\)"),
    "no dimension": ({"times": (3, I64)}, r"times: .* shape \(\)"),
    "begins late": ({"indptr": ([1, 2, 3, 3, 4, 4], I64)}, "indptr: goes from 1 to 4; .* 0 to"),
    "ends early": ({"indptr": ([0, 2, 3, 3, 3, 3], I64)}, r"len\(indices\), 4"),
    "ends late": ({"indptr": ([0, 2, 3, 3, 4, 1 << 40], I64)}, "goes from 0 to 1099511627776"),
    "falls": ({"indptr": ([0, 3, 2, 3, 4, 4], I64)}, "indptr: falls after row 1"),
    "goes below 0": ({"indptr": ([0, -(1 << 40), 3, 3, 4, 4], I64)}, "indptr: falls after row 0"),
    "goes too far": ({"indptr": ([0, 1 << 40, 3, 3, 4, 4], I64)}, "indptr: falls after row 1"),
    "no such row": ({"indices": ([1, 5, 1, 0], U32)}, "indices: entry 1 is 5; .* from 0 to 4"),
    "far row": ({"indices": ([1, 3, 1, 2**32 - 1], U32)}, "entry 3 is 4294967295"),
    "unsorted": ({"indices": ([3, 1, 1, 0], U32)}, "row 0 is not sorted, 1 comes after 3.*sort_"),
    "repeated": ({"indices": ([3, 3, 1, 0], U32)}, "indices: row 0 has 3 twice"),
    "one way": ({"directed": False, "num_edges": 3}, "0 and 3|0 and 1"),
    "few weights": ({"weights": ([1, 2, 3], F32)}, "weights: 3, .* for each entry of indices, 4"),
    "whole weights": ({"weights": ([1, 2, 3, 4], I64)}, "weights: expected float32 or float64"),
    "many times": ({"times": ([1, 2, 3, 4, 5], I64)}, "times: 5, .* for each entry of indices, 4"),
    "few ids": ({"ids": ([1, 2], U32)}, "ids: 2, .* for each row, 5"),
    "few names": ({"names": lpma.from_edges(["a"], ["b"]).snapshot().names}, "names: 2, .* row, 5"),
    "added beyond": ({"added": ([5], U32)}, "added: rows go from 0 to 4"),
    "added twice": ({"added": ([2, 2], U32)}, "added: must rise, each row once"),
    "other edges": ({"num_edges": 5}, "num_edges: 5, but the rows have 4"),
    "no number": ({"num_edges": "4"}, "num_edges: an integer, not '4'"),
    "a fraction": ({"time": 0.5}, "time: an integer, not 0.5"),
    "no truth": ({"directed": "no"}, "directed: True or False, not 'no'"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_arrays_are_refused(device: str, what: str) -> None:
    changed, message = BAD[what]
    if device == "cuda" and what == "another order of bytes":
        pytest.skip("CuPy's arrays have that of the machine")
    with pytest.raises(lpma.BatchError, match=message):
        lpma.Snapshot(**arguments(device, **changed))


def test_good_arrays_are_taken(device: str) -> None:
    s = lpma.Snapshot(**arguments(device))
    read_all(s)
    assert (s.num_rows, s.num_edges, s.version) == (5, 4, 2)
    assert s.present.tolist() == [True, True, False, True, True]
    bare = lpma.Snapshot(*list(arguments(device).values())[:7])
    assert (bare.directed, bare.ids, bare.added, bare.names) == (True, None, None, None)
    assert [field.name for field in fields(bare)][:3] == ["indptr", "indices", "weights"]


def test_an_undirected_graph_may_have_loops(device: str) -> None:
    rows = {"indptr": ([0, 2, 4], I64), "indices": ([0, 1, 0, 1], U32), "ids": None, "added": None}
    s = lpma.Snapshot(**arguments(device, **rows, directed=False, num_edges=3))
    assert s.num_edges == 3
    read_all(s)


def test_what_was_given_may_be_changed_afterwards(device: str) -> None:
    given = arguments(device)
    s: Any = lpma.Snapshot(**given)
    before = host(algorithms.core_numbers(s)).tolist()
    for array in given.values():
        if on_device(array) or isinstance(array, np.ndarray):
            array[:] = 1
    assert s.indices.tolist() == [1, 3, 1, 0]
    assert s.times.tolist() == [1, 2, 3, 4]
    assert host(algorithms.pagerank(s)).sum() == pytest.approx(1)
    assert host(algorithms.core_numbers(s)).tolist() == before


def test_strided_and_read_only_arrays_are_taken() -> None:
    given = arguments("cpu")
    wide = {n: np.repeat(a, 2)[::2] for n, a in given.items() if isinstance(a, np.ndarray)}
    for array in wide.values():
        array.flags.writeable = False
    s: Any = lpma.Snapshot(**given | wide)
    read_all(s)
    assert s.weights.tolist() == given["weights"].tolist()


def test_a_snapshot_made_of_anothers_attributes_shares_them() -> None:
    """What has been checked is neither checked nor copied again, unless it is to be another graph:
    then views and checks are its own."""
    g = lpma.Graph(device="cpu")
    g.insert([0, 1, 1, 2], [1, 0, 2, 1], weight=[1, 1, 2, 2])
    s = g.snapshot()
    other = replace(s, version=9, times=None)
    assert other._indices is s._indices
    assert other._weights is s._weights
    assert other.times is None
    undirected = replace(s, directed=False, num_edges=2)
    assert undirected.num_edges == 2
    algorithms.core_numbers(undirected)
    with pytest.raises(lpma.BatchError, match="num_edges: 4, but the rows have 2"):
        replace(s, directed=False)
    with pytest.raises(lpma.BatchError, match="len"):
        replace(s, indices=s.indices[:3])
    g.insert(5, 0)
    with pytest.raises(lpma.BatchError, match="indptr"):
        replace(s, indptr=g.snapshot().indptr)


def test_replaced_columns_are_seen_by_algorithms(device: str) -> None:
    """No view of the snapshot before is kept for another that has other weights, or vertices."""
    g = lpma.Graph(device=device)
    g.insert([0, 0, 1, 2, 5], [1, 2, 2, 0, 1], weight=[1, 9, 1, 1, 1])
    s: Any = g.snapshot()
    algorithms.pagerank(s, weighted=True)
    turned = replace(s, weights=s.weights[::-1])
    made = lpma.Snapshot(*(getattr(turned, field.name) for field in fields(s) if field.init))
    found = host(algorithms.pagerank(turned, weighted=True))
    assert found.tolist() == host(algorithms.pagerank(made, weighted=True)).tolist()
    everyone = replace(s, added=None)
    assert everyone.num_vertices == 6 > s.num_vertices
    assert (host(algorithms.pagerank(everyone)) > 0).all()


numbers = st.integers(-2, 6) | st.sampled_from([2**31, 2**32 - 1, 2**40, -(2**40)])


@given(
    indptr=st.lists(numbers, max_size=6), indices=st.lists(numbers, max_size=8),
    rises=st.booleans(), directed=st.booleans(), edges=st.integers(0, 8),
    added=st.lists(numbers, max_size=3),
)  # fmt: skip
def test_whatever_is_given_is_refused_or_can_be_read(
    device: str, indptr: Any, indices: Any, rises: bool, directed: bool, edges: int, added: Any
) -> None:
    if rises:
        indptr = [0, *sorted(min(max(i, 0), len(indices)) for i in indptr), len(indices)]
    wide = np.array(indices, np.int64).astype(np.uint32)
    try:
        s = lpma.Snapshot(
            placed(device, indptr, np.int64), placed(device, wide, np.uint32), None, None, edges,
            0, 0, directed, None, placed(device, np.array(added, np.int64).astype(np.uint32), U32),
        )  # fmt: skip
    except lpma.BatchError:
        return
    assert is_graph(indptr, wide.tolist(), directed, edges)
    read_all(s)


def is_graph(indptr: list[int], indices: list[int], directed: bool, edges: int) -> bool:
    """The same by Python's lists."""
    rows = [indices[a:b] for a, b in pairwise(indptr)]
    there = {(u, v) for u, row in enumerate(rows) for v in row}
    pairs = there if directed else {tuple(sorted(edge)) for edge in there}
    return (
        [v for row in rows for v in row] == indices
        and all(row == sorted(set(row)) for row in rows)
        and all(0 <= v < len(rows) for v in indices)
        and (directed or all((v, u) in there for u, v in there))
        and edges == len(pairs)
    )


@given(edges=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))), directed=st.booleans())
def test_every_graph_is_taken(device: str, edges: Any, directed: bool) -> None:
    g = lpma.Graph(directed, device=device)
    if edges:
        g.insert(*np.array(sorted(edges)).T)
    s = g.snapshot()
    indptr, indices = (placed(device, host(a), a.dtype) for a in (s.indptr, s.indices))
    made = lpma.Snapshot(
        indptr, indices, None, None, s.num_edges, 0, 0, directed,
    )  # fmt: skip
    assert made.to_edge_index().tolist() == s.to_edge_index().tolist()
    assert (host(algorithms.core_numbers(made)) == host(algorithms.core_numbers(s))).all()
