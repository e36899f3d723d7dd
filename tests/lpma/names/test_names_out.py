"""What leaves a graph with names: tables, files, other libraries' graphs, results of algorithms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import algorithms
import lpma

EDGES = [("a", "b", 2.0), ("b", 7, 1.0), (7, "a", 3.0), ("7", "a", 1.0)]


def graph(device: str, edges: list[Any] = EDGES, **options: Any) -> lpma.Graph:
    g = lpma.Graph(names=True, device=device, **options)
    g.insert("gone", "too")  # rows that are no vertices: an id is not a place in a table
    src, dst, weight = map(list, zip(*edges, strict=True))
    g.insert(src, dst, weight)
    g.remove_vertices(["gone", "too"])
    return g


def read(table: Any) -> list[Any]:
    """Rows of a table that `to_arrow` made, with names."""
    rows = []
    for row in table.to_pylist():
        ends = [int(row[e]) if row.get(f"{e}_number") else row[e] for e in ("src", "dst")]
        rows.append((*ends, row["weight"]))
    return rows


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_tables_and_networkx_have_names(
    device: str, tmp_path: Path, compact: bool, directed: bool
) -> None:
    networkx, parquet = pytest.importorskip("networkx"), pytest.importorskip("pyarrow.parquet")
    s = graph(device, directed=directed).snapshot(compact=compact)
    expected = {(u, v) if directed else frozenset((u, v)): w for u, v, w in EDGES}

    def edges(rows: list[Any]) -> dict[Any, float]:
        return {(u, v) if directed else frozenset((u, v)): w for u, v, w in rows}

    assert edges(read(s.to_arrow())) == expected
    s.write_parquet(tmp_path / "e.parquet")
    assert edges(read(parquet.read_table(tmp_path / "e.parquet"))) == expected
    g = s.to_networkx()
    assert set(g) == {"a", "b", 7, "7"}
    assert edges(list(networkx.DiGraph(g).edges(data="weight")) if directed else
                 list(g.edges(data="weight"))) == expected  # fmt: skip


def test_columns_have_the_type_of_their_names(device: str) -> None:
    pytest.importorskip("pyarrow")
    for edges, types in (
        ([("a", "b", 1.0)], ["string", "string"]),
        ([(5, 2**64 - 1, 1.0)], ["uint64", "uint64"]),
        ([(5, -1, 1.0)], ["int64", "int64"]),
        ([(5, "b", 1.0)], ["string", "bool", "string", "bool"]),
        ([(2**63, -1, 1.0)], ["string", "bool", "string", "bool"]),
    ):
        g = lpma.Graph(names=True, times=False, device=device)
        g.insert(*map(list, zip(*edges, strict=True)))
        table = g.snapshot().to_arrow()
        assert [str(field.type) for field in table.schema][:-1] == types
        assert read(table) == edges


@pytest.mark.parametrize("compact", [False, True])
def test_algorithms_take_and_give_names(device: str, compact: bool) -> None:
    triangle = [("hub", x, 1.0) for x in ("a", "b", 9)] + [("a", "b", 1.0)]
    s = graph(device, triangle, directed=False).snapshot(compact=compact)
    assert s.names is not None
    hops = lpma.arrays.to_host(algorithms.bfs(s, "a"))
    for name, distance in (("a", 0), ("b", 1), ("hub", 1), (9, 2)):
        assert hops[s.names.row(name)] == distance
    for unknown in ("nobody", "9", "gone"):
        with pytest.raises(lpma.VertexError, match="source: there is no vertex"):
            algorithms.bfs(s, unknown)
    (best,) = algorithms.top_diversity(s, "component", 1, 1)
    assert (best.vertex, best.score) == ("hub", 2)
    assert [context.tolist() for context in best.contexts] == [["a", "b"], [9]]
    core = algorithms.k_core(s, 2)
    assert core.names is not None
    present = np.flatnonzero(lpma.arrays.to_host(core.present))
    assert set(core.names.of(present).tolist()) == {"hub", "a", "b"}
    cliques = graph(device, [("u", 1, 1.0), ("v", 1, 1.0), ("v", "w", 1.0)])
    found = list(algorithms.list_bicliques(cliques.snapshot(compact=compact), 2, 1))
    assert found == [algorithms.Biclique(left=("u", "v"), right=(1,))]
