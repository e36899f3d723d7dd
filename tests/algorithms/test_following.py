"""Views that follow a graph from snapshot to snapshot are those made anew."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import algorithms
import lpma
from algorithms.views.directed import scattered_rows, scattered_transpose, transposed
from algorithms.views.following import follows, is_followed
from algorithms.views.simple import simple
from lpma.cpu import pieces
from lpma.snapshot import row_versions as forms
from lpma.snapshot.row_versions import ScatteredRows
from tests.support.compiled import compile_kernels

VIEWS = {"simple": simple, "transposed": transposed}
LOOSE = {"loose rows": scattered_rows, "loose transpose": scattered_transpose}
edges = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=10)
steps = st.lists(
    st.tuples(
        st.sampled_from(["insert", "set", "delete", "add"]),
        edges,
        st.sets(st.sampled_from([*VIEWS, *LOOSE])),
    ),
    max_size=10,
)


@pytest.fixture(autouse=True)
def compiled() -> None:
    """Rows are kept where compiled kernels keep the store."""
    compile_kernels()


def entries(rows: ScatteredRows) -> list[list[int]]:
    """The entries of each row."""
    return [
        rows.entries[start:end].tolist() for start, end in zip(rows.starts, rows.ends, strict=True)
    ]


@given(steps=steps, directed=st.booleans(), few=st.sampled_from([0, pieces.FEW]))
def test_views_are_those_made_anew(steps: Any, directed: bool, few: int) -> None:
    graph = lpma.Graph(directed, device="cpu")
    with patch.object(pieces, "FEW", few), patch.object(forms, "SHARE", 0):
        for kind, given_edges, asked in steps:
            src, dst = np.array(given_edges).T
            if kind == "add":
                graph.add_vertices(src)
            else:
                getattr(graph, kind)(src, dst)
            s = graph.snapshot()
            for name in sorted(asked & LOOSE.keys()):
                found_loose = entries(LOOSE[name](s))  # before what it is compared with packs rows
                assert found_loose == entries(LOOSE[name](s._with()))
            for name in sorted(asked & VIEWS.keys()):
                found, right = VIEWS[name](s), VIEWS[name](s._with())
                np.testing.assert_array_equal(found.indptr, right.indptr)
                np.testing.assert_array_equal(found.indices, right.indices)
                assert VIEWS[name](graph.snapshot()).indices is found.indices


def test_a_view_follows_that_of_the_snapshot_before() -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert(np.arange(100) % 10, np.arange(100) // 10)
    first = graph.snapshot()
    assert not is_followed(first)
    simple(first)
    graph.insert(3, 20)
    second = graph.snapshot()
    assert is_followed(second)
    assert follows(second, "simple")
    assert not follows(second, "transposed")
    with patch("algorithms.views.simple_cpu.of_sorted", side_effect=AssertionError("made anew")):
        assert simple(second).indices[-1] == 3


@given(steps=steps, directed=st.booleans())
def test_components_of_a_stream(steps: Any, directed: bool) -> None:
    """Of edges and of vertices alone, that come or go, one at a time or many."""
    graph = lpma.Graph(directed, device="cpu")
    graph.insert(0, 1)
    with patch.object(forms, "SHARE", 0):
        for kind, given_edges, asked in steps:
            src, dst = np.array(given_edges).T
            if kind == "add" and len(asked) > 1:
                graph.remove_vertices(src)
            elif kind == "add":
                graph.add_vertices(src)
            else:
                getattr(graph, kind)(src, dst)
            if "simple" in asked:  # else the next one has two batches to follow
                continue
            s = graph.snapshot()
            labels = algorithms.connected_components(s)
            np.testing.assert_array_equal(labels, algorithms.connected_components(s))
            alone = algorithms.connected_components(s._with())
            np.testing.assert_array_equal(labels, alone)
            labels[:] = -7  # the caller's own


def test_components_follow_while_nothing_goes() -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([0, 2, 5], [1, 3, 6])
    algorithms.connected_components(graph.snapshot())
    graph.insert([9, 3], [3, 0])
    graph.add_vertices([12])
    anew = patch("algorithms.components.cpu.components", side_effect=AssertionError("made anew"))
    with patch.object(forms, "SHARE", 0), anew:
        labels = algorithms.connected_components(graph.snapshot())
        assert labels.tolist() == [0, 0, 0, 0, -1, 5, 5, -1, -1, 0, -1, -1, 12]
        graph.delete(3, 0)
        with pytest.raises(AssertionError, match="made anew"):
            algorithms.connected_components(graph.snapshot())


@given(steps=steps)
def test_core_numbers_and_hops_of_a_stream(steps: Any) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert(0, 1)
    with patch.object(forms, "SHARE", 0):
        for kind, given_edges, _ in steps:
            src, dst = np.array(given_edges).T
            if kind != "add":
                getattr(graph, kind)(src, dst)
            s = graph.snapshot()
            # First what reads loose rows; the rest packs them.
            labels = algorithms.connected_components(s)
            hops = algorithms.bfs(s, 0) if len(labels) and labels[0] == 0 else None
            alone = s._with()
            np.testing.assert_array_equal(labels, algorithms.connected_components(alone))
            np.testing.assert_array_equal(labels >= 0, alone.present)
            np.testing.assert_array_equal(
                algorithms.core_numbers(s), algorithms.core_numbers(alone)
            )
            if hops is not None:
                np.testing.assert_array_equal(hops, algorithms.bfs(alone, 0))
