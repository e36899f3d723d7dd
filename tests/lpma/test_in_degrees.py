"""Vertices that only edges into them make, where no in-store says so: by scans, and by counts that
follow."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma.cpu.id_table import IdTable
from lpma.engine import in_degrees
from tests.lpma.conftest import every_backend
from tests.support.changes import change
from tests.support.compiled import compile_kernels
from tests.support.oracles import ModelGraph

IDS = [0, 1, 2, 3, 7, 2**31, 2**32 - 2]
ids = st.sampled_from(IDS)
steps = st.lists(
    st.tuples(
        st.sampled_from(["insert", "set", "delete", "add", "remove", "ask", "ask", "one"]),
        st.lists(st.tuples(ids, ids), min_size=1, max_size=6),
    ),
    max_size=30,
)


@every_backend
@given(steps=steps, max_keys=st.sampled_from([4, 1 << 19]))
def test_every_vertex_is_known(device: str, steps: list[Any], max_keys: int) -> None:
    """Whatever the history still knows, `has_vertices` and `in` say what the model says."""
    g, model = lpma.Graph(device=device, segment_size=4), ModelGraph()
    g._stores.history._max_keys = max_keys
    for step in steps:
        if step[0] == "ask":
            expected = model.has_vertices(IDS).tolist()
            assert g.has_vertices(IDS).tolist() == expected
            assert [id in g for id in IDS] == expected
            continue
        for graph in (g, model):
            change(graph, step)


class Scans:
    """Counts the scans of a graph on the host."""

    def __init__(self, g: lpma.Graph, patch: pytest.MonkeyPatch) -> None:
        self.made, backend = 0, g._stores.out.backend
        scan = backend.has_in_edges

        def counted(*args: Any) -> Any:
            self.made += 1
            return scan(*args)

        patch.setattr(backend, "has_in_edges", counted)


@pytest.fixture
def graph() -> lpma.Graph:
    compile_kernels()
    g = lpma.Graph(device="cpu")
    g.insert(0, range(1, 100))
    return g


def test_who_asks_again_needs_no_scan(graph: lpma.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    scans = Scans(graph, monkeypatch)
    before = graph.nbytes
    for target in range(1, 50):
        assert target in graph
        graph.delete(0, target)
        assert not graph.has_vertices([target])[0]
    assert scans.made == 1
    assert graph.nbytes > before


def test_after_what_the_history_forgot_it_scans_once(
    graph: lpma.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans = Scans(graph, monkeypatch)
    assert [5 in graph, 6 in graph, scans.made] == [True, True, 1]
    graph._stores.history.forget(graph.version + 1)
    graph.delete(0, 5)
    assert [5 in graph, scans.made] == [False, 2]
    assert [6 in graph, scans.made] == [True, 2]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_counts_that_were_cut_off_are_made_anew(graph: lpma.Graph, error: type[Exception]) -> None:
    assert 5 in graph
    assert 5 in graph
    graph.delete(0, 5)
    count = IdTable.count

    def cut_off(table: IdTable, keys: Any, inserted: Any = None) -> None:
        count(table, keys, inserted)
        raise error

    with patch.object(IdTable, "count", cut_off):
        if error is MemoryError:
            assert 5 not in graph  # by a scan
        else:
            with pytest.raises(error):
                graph.has_vertices(5)
    assert 5 not in graph
    graph.insert(1, 5)
    assert 5 in graph


@pytest.mark.parametrize("order", ["updates first", "queries first", "both"])
def test_within_a_batch(graph: lpma.Graph, order: str) -> None:
    """From the counts of the version before, and from what the batch does to edges."""
    assert graph.has_vertices([5, 500]).tolist() == [True, False]
    assert graph.has_vertices([5, 500]).tolist() == [True, False]
    batch, expected = lpma.Batch(), []

    def ask(found: list[bool]) -> None:
        batch.vertex(5)
        batch.vertex(500)
        expected.extend(found)

    if order != "updates first":
        ask([True, False])
    batch.delete(0, 5)
    batch.insert(0, 500)
    if order != "queries first":
        ask([False, True])
    answers: Any = graph.apply(batch)
    assert [bool(answers[i]) for i in range(len(expected))] == expected
    assert graph.has_vertices([5, 500]).tolist() == [False, True]


def test_contents_that_are_replaced(graph: lpma.Graph) -> None:
    assert 5 in graph
    assert 5 in graph
    fresh = lpma.Graph(device="cpu")
    graph._lock.write(graph._stores.fill, fresh.image().slots)
    assert 5 not in graph


def test_an_in_store_or_a_graph_without_directions_has_no_counts() -> None:
    for g in (
        lpma.Graph(device="cpu", predecessors=True), lpma.Graph(device="cpu", directed=False)
    ):  # fmt: skip
        g.insert(0, 5)
        with patch.object(in_degrees.InDegrees, "any_into", side_effect=AssertionError):
            assert g.has_vertices([0, 5, 6]).tolist() == [True, True, False]
            assert [id in g for id in (0, 5, 6)] == [True, True, False]
