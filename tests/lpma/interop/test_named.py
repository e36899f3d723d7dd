"""Graphs of vertices that have names: text in any library's columns, and labels of other graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import igraph
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma.interop import frames

SRC = ["alice", "bob", "alice", "çelik", "bob"]
DST = ["bob", "çelik", "bob", "alice", "dan"]
EDGES = {("alice", "bob"): 2.0, ("bob", "çelik"): 1.0, ("çelik", "alice"): 1.0, ("bob", "dan"): 1.0}
COLUMNS = {"src": SRC, "dst": DST}
PANDAS, POLARS, TABLE = pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS), pa.table(COLUMNS)


def duck(table: Any) -> Any:
    connection = duckdb.connect()
    connection.register("held", table)
    return connection.sql("SELECT * FROM held")


def encoded(table: Any) -> Any:
    """Dictionary-encoded, with a dictionary of its own for each chunk."""
    parts = [table.slice(i, 2) for i in range(0, len(table), 2)]
    return pa.concat_tables(
        pa.table({name: part[name].dictionary_encode() for name in part.column_names})
        for part in parts
    )


FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": lambda: PANDAS,
    "pandas, objects": lambda: PANDAS.astype(object),
    "pandas, categorical": lambda: PANDAS.astype("category"),
    "pandas, one categorical": lambda: PANDAS.astype({"dst": "category"}),
    "pandas, Arrow": lambda: PANDAS.convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda: POLARS,
    "polars, categorical": lambda: POLARS.with_columns(pl.all().cast(pl.Categorical)),
    "polars, chunks": lambda: pl.concat([POLARS[:2], POLARS[2:]], rechunk=False),
    "pyarrow": lambda: TABLE,
    "pyarrow, large": lambda: TABLE.cast(pa.schema([(n, pa.large_string()) for n in COLUMNS])),
    "pyarrow, dictionaries": lambda: encoded(TABLE),
    "DuckDB": lambda: duck(TABLE),
}


def edges_of(g: lpma.Graph) -> dict[Any, float]:
    """Every edge by name, through queries."""
    found = {}
    for u in g:
        answer = g.successors(u)
        weights = np.ones(len(answer.ids)) if answer.weights is None else answer.weights
        found.update({(u, v): float(w) for v, w in zip(answer.ids.tolist(), weights, strict=True)})
    return found


@pytest.mark.parametrize("group", [1, frames.GROUP_ROWS])
@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_text_makes_names(
    device: str, make: Callable[[], Any], group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "GROUP_ROWS", group)
    g = lpma.from_dataframe(make(), device=device)
    assert edges_of(g) == EDGES
    assert list(g) == ["alice", "bob", "çelik", "dan"]  # in order of first appearance
    with pytest.raises(lpma.BatchError, match="named by text here: leave out names=False"):
        lpma.from_dataframe(make(), device=device, names=False)


@pytest.mark.parametrize("column", [list, tuple, np.array, pd.Series, pl.Series, pa.array])
def test_columns_of_text(device: str, column: Any) -> None:
    g = lpma.from_edges(column(SRC), column(DST), device=device)
    assert edges_of(g) == EDGES


def test_integers_beside_text_and_by_wish(device: str) -> None:
    mixed = pd.DataFrame({"src": [5, "5", -7], "dst": ["5", 2**63, 5]})
    g = lpma.from_dataframe(mixed, device=device)
    assert edges_of(g) == {(5, "5"): 1.0, ("5", 2**63): 1.0, (-7, 5): 1.0}
    g = lpma.from_edges([5, "5"], ["5", -7], device=device)
    assert edges_of(g) == {(5, "5"): 1.0, ("5", -7): 1.0}
    large: dict[str, Any] = {"src": np.array([2**40, -1]), "dst": np.array([-1, 2**62])}
    for g in (
        lpma.from_dataframe(pl.DataFrame(large), names=True, device=device),
        lpma.from_dataframe(pd.DataFrame(large), names=True, device=device),
        lpma.from_edges(**large, names=True, device=device),
    ):
        assert edges_of(g) == {(2**40, -1): 1.0, (-1, 2**62): 1.0}


def test_missing_names_are_told_by_row() -> None:
    holes: dict[str, Any] = {"src": ["a", None, "b", None], "dst": ["b"] * 4}
    named = pa.array(holes["dst"])
    null_entry = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 1]), pa.array(["a", None]))
    for frame in (
        pd.DataFrame(holes), pd.DataFrame(holes, dtype=object), pl.DataFrame(holes),
        pd.DataFrame(holes).astype("category"), encoded(pa.table(holes)), pa.table(holes),
        pa.table({"src": null_entry, "dst": named}),
        pd.DataFrame({**holes, "src": ["a", None, 5, None]}),
    ):  # fmt: skip
        with pytest.raises(
            lpma.BatchError, match="'src' has no value in row 1, nor in 1 more: drop"
        ):
            lpma.from_dataframe(frame, device="cpu")


LABELS = st.one_of(st.integers(-(2**63), 2**64 - 1), st.text("ab5", min_size=1, max_size=3))


@given(st.lists(st.tuples(LABELS, LABELS), max_size=12), st.lists(LABELS), st.booleans())
def test_networkx_by_name(edges: Any, alone: Any, directed: bool) -> None:
    G = nx.DiGraph() if directed else nx.Graph()
    G.add_nodes_from(alone)
    G.add_edges_from(edges, weight=0.5)
    g = lpma.from_networkx(G, names=True, device="cpu", times=False)
    assert set(g) == set(G)
    assert nx.utils.graphs_equal(g.snapshot().to_networkx(), G)


def test_labels_that_are_no_rows_become_names() -> None:
    g = lpma.from_networkx(nx.Graph([(5, 9)]), device="cpu")
    assert (list(g), g.num_rows) == ([5, 9], 2)
    g = lpma.from_networkx(nx.Graph([(5, 9)]), names=False, device="cpu")
    assert (list(g), g.num_rows, g.names) == ([5, 9], 10, None)
    G = nx.relabel_nodes(nx.karate_club_graph(), str)
    g = lpma.from_networkx(G, device="cpu", times=False)
    assert set(g) == set(G)
    assert g.edge("0", "1").weight == G.edges["0", "1"]["weight"]  # type: ignore[union-attr]


def test_igraph_by_name() -> None:
    G = igraph.Graph.TupleList(zip(SRC, DST, strict=True), directed=True)
    G.add_vertex("eve")
    g = lpma.from_igraph(G, device="cpu")
    assert edges_of(g) == EDGES
    assert set(g) == {*SRC, *DST, "eve"}
    del G.vs["name"]
    assert lpma.from_igraph(G, device="cpu").names is None


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table, pl.DataFrame])
@pytest.mark.parametrize(
    "value, message",
    [(2.0**53 + 2, r"row 1 has 9007199254740994\.0, beyond 2\^53, .*: give integers"),
     (-(2.0**60), r"beyond 2\^53, .*: give integers"), (1.5, "only where they are whole numbers"),
     (np.inf, "beyond")],
)  # fmt: skip
def test_floats_that_are_no_names(make: Any, value: float, message: str) -> None:
    frame = make({"src": [1.0, value], "dst": [2.0, 3.0]})
    with pytest.raises(lpma.BatchError, match=message):
        lpma.from_dataframe(frame, names=True, device="cpu")
    with pytest.raises(lpma.BatchError, match="integer"):
        lpma.Graph(names=True, device="cpu").insert([1, value], [2, 3])


@pytest.mark.parametrize("form", ["to_pandas", "to_arrow", "to_polars"])
def test_integers_among_text_come_back(form: str) -> None:
    """By the columns that say which names are integers. A column called so that is not of booleans
    says nothing."""
    g = lpma.Graph(names=True, device="cpu")
    g.insert([5, "5", "ann"], ["a", 6, -7])
    table = getattr(g.snapshot(), form)()
    back = lpma.from_dataframe(table, device="cpu")
    assert back.num_edges == 3
    for u, v in ((5, "a"), ("5", 6), ("ann", -7)):
        assert back.edge(u, v) is not None
    assert len(back) == len(g)
    other = pd.DataFrame({"src": ["a", "5"], "dst": ["5", "b"], "src_number": [0, 1]})
    assert lpma.from_dataframe(other, device="cpu").edge("5", "b") is not None
    wrong = pd.DataFrame({"src": ["5", "x"], "dst": ["a", "b"], "src_number": [True, True]})
    with pytest.raises(lpma.BatchError, match="'x' in row 1, an integer by column 'src_number'"):
        lpma.from_dataframe(wrong, device="cpu")
