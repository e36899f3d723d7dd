"""Snapshots in which every row is a vertex, of either copy: of rows and of keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma.cpu import id_table
from lpma.cpu.threads import stopped_by
from lpma.snapshot import compact
from tests.support.compiled import compile_kernels
from tests.support.oracles import host

ids = st.sampled_from([0, 1, 2, 3, 7, 100, 3000])
edges = st.lists(
    st.tuples(ids, ids, st.integers(1, 9)), max_size=20, unique_by=lambda edge: frozenset(edge[:2])
)
OF_ROWS, OF_KEYS = 1 << 40, 0  # rows per slot up to which the copy is of rows


def expected(
    edges: list[tuple[int, int, int]], added: list[int], directed: bool
) -> tuple[list[int], dict[tuple[int, int], int]]:
    """The vertices, rising, and the weight of each entry (row, row)."""
    there = {(u, v): w for u, v, w in edges}
    if not directed:
        there = {}
        for u, v, w in edges:
            there |= {(u, v): w, (v, u): w}
    vertices = sorted({v for pair in there for v in pair} | set(added))
    row = {v: i for i, v in enumerate(vertices)}
    return vertices, {(row[u], row[v]): w for (u, v), w in there.items()}


def entries(s: Any) -> dict[tuple[int, int], int]:
    sources = np.repeat(np.arange(s.num_rows), np.diff(host(s.indptr)))
    pairs = zip(sources.tolist(), host(s.indices).tolist(), strict=True)
    return dict(zip(pairs, host(s.weights).tolist(), strict=True))


@pytest.mark.parametrize("rows_per_slot", [OF_ROWS, OF_KEYS])
@given(edges=edges, added=st.lists(ids, max_size=3), directed=st.booleans())
def test_each_row_is_a_vertex_and_each_entry_an_edge(
    rows_per_slot: int, device: str, edges: Any, added: list[int], directed: bool
) -> None:
    """Though the graph goes on before the copy is looked at."""
    g = lpma.Graph(device=device, directed=directed)
    g.insert(*([edge[i] for edge in edges] for i in (0, 1, 2)))
    g.add_vertices(added)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compact, "ROWS_PER_SLOT", rows_per_slot)
        patch.setattr(compact, "PIECE", 3)
        patch.setattr(id_table, "PIECE", 3)
        finish = g.begin_snapshot(compact=True)
        facts = g.num_edges, g.version, g.time, g.directed
        g.insert([5, 0], [0, 5], 100)
        g.delete([edge[0] for edge in edges], [edge[1] for edge in edges])
        s = finish()
    vertices, there = expected(edges, added, directed)
    assert s.ids is not None
    assert host(s.ids).tolist() == vertices
    assert entries(s) == there
    assert (s.num_edges, s.version, s.time, s.directed) == facts
    kinds = [array.dtype.name for array in (s.ids, s.indptr, s.indices)]
    assert kinds == ["uint32", "int64", "uint32"]
    assert len(s.indptr) == s.num_rows + 1


@pytest.mark.parametrize("rows_per_slot", [OF_ROWS, OF_KEYS])
def test_names_and_absent_columns_come_along(
    rows_per_slot: int, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compact, "ROWS_PER_SLOT", rows_per_slot)
    g = lpma.Graph(device=device, names=True, weight_dtype=None, times=False)
    g.insert(["ann", "bob", "cem"], ["bob", "cem", "ann"])
    g.remove_vertices(["ann"])
    s = g.snapshot(compact=True)
    assert s.names is not None
    assert s.names.of(range(s.num_rows)).tolist() == ["bob", "cem"]
    assert (s.weights, s.times) == (None, None)


@pytest.mark.parametrize("rows_per_slot", [OF_ROWS, OF_KEYS])
def test_work_that_nobody_wants_ends_between_two_pieces(
    rows_per_slot: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compact, "ROWS_PER_SLOT", rows_per_slot)
    monkeypatch.setattr(compact, "PIECE", 3)
    monkeypatch.setattr(id_table, "PIECE", 3)
    compile_kernels()
    g = lpma.Graph(device="cpu")
    g.insert(range(0, 40, 2), range(2, 42, 2))
    finish, pieces = g.begin_snapshot(compact=True), []

    def check() -> None:
        pieces.append(1)
        if len(pieces) == 3:
            raise TimeoutError("nobody waits")

    with stopped_by(check), pytest.raises(TimeoutError, match="nobody waits"):
        finish()
    assert len(finish().indices) == 20, "the copy can be finished all the same"
