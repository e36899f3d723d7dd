"""Nothing is no vertex: None, NaN, NaT and the nulls of pandas and Arrow are refused wherever a
vertex is given, alone and within columns, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import algorithms
import ingest
import lpma
from lpma import Batch, BatchError, Graph, Kind, LpmaError

NOTHING: dict[str, Any] = {
    "None": None,
    "nan": float("nan"),
    "numpy's nan": np.float64("nan"),
    "NaT": np.datetime64("NaT"),
    "pandas' NA": pd.NA,
    "pandas' NaT": pd.NaT,
    "Arrow's null": pa.scalar(None),
    "Arrow's null integer": pa.scalar(None, pa.int64()),
    "a list": [None],
    "a tuple": (None,),
    "a list with others": ["a", None],
    "an array of one object": np.array(None),
    "an array of objects": np.array([None]),
    "a masked array": np.ma.array([1], mask=[True]),
    "a series": pd.Series([None]),
    "a series of integers": pd.Series([pd.NA], dtype="Int64"),
    "a series of text": pd.Series([None], dtype="string"),
    "a series of categories": pd.Series(pd.Categorical([None])),
    "a series of floats": pd.Series([np.nan]),
    "an Arrow array": pa.array([None]),
    "an Arrow array of integers": pa.array([None], pa.int64()),
    "an Arrow array of text": pa.array([None], pa.string()),
    "an Arrow dictionary": pa.array([None], pa.string()).dictionary_encode(),
    "an Arrow column": pa.chunked_array([pa.array([None], pa.string())]),
}

Door = Callable[[Graph, Any, Any], Any]  # takes a graph, a vertex of it, and what is none


def in_a_batch(add: Callable[[Batch, Any, Any], Any]) -> Door:
    def door(g: Graph, a: Any, none: Any) -> Any:
        batch = Batch()
        add(batch, a, none)
        return g.apply(batch)

    return door


def in_columns(kind: Kind, is_src: bool) -> Door:
    def door(g: Graph, a: Any, none: Any) -> Any:
        ends = (none, [a]) if is_src else ([a], none)
        return g.apply(Batch.from_columns(kind, *ends, names=g.names is not None))

    return door


DOORS: dict[str, Door] = {
    "insert to": lambda g, a, none: g.insert(a, none),
    "insert from": lambda g, a, none: g.insert(none, a),
    "insert both": lambda g, a, none: g.insert(none, none),
    "insert many to": lambda g, a, none: g.insert([a], none),
    "insert at a time": lambda g, a, none: g.insert(a, none, 2.0, 7),
    "delete to": lambda g, a, none: g.delete(a, none),
    "delete from": lambda g, a, none: g.delete(none, a),
    "add_vertices": lambda g, a, none: g.add_vertices(none),
    "remove_vertices": lambda g, a, none: g.remove_vertices(none),
    "edges": lambda g, a, none: g.edges(a, none),
    "edge": lambda g, a, none: g.edge(a, none),
    "has_edge to": lambda g, a, none: g.has_edge(a, none),
    "has_edge from": lambda g, a, none: g.has_edge(none, a),
    "neighbors": lambda g, a, none: g.neighbors(none),
    "successors": lambda g, a, none: g.successors(none),
    "predecessors": lambda g, a, none: g.predecessors(none),
    "hops": lambda g, a, none: g.hops(none, 1),
    "degree": lambda g, a, none: g.degree(none),
    "in_degree": lambda g, a, none: g.in_degree(none),
    "has_vertices": lambda g, a, none: g.has_vertices(none),
    "from_edges": lambda g, a, none: lpma.from_edges([a], none, device="cpu"),
    "from_edges, both": lambda g, a, none: lpma.from_edges(none, none, device="cpu"),
    "from_edges, named": lambda g, a, none: lpma.from_edges(none, a, device="cpu", names=True),
    "Batch.append": in_a_batch(lambda b, a, none: b.insert(a, none)),
    "Batch.append from": in_a_batch(lambda b, a, none: b.insert(none, a)),
    "Batch.delete": in_a_batch(lambda b, a, none: b.delete(a, none)),
    "Batch.add_vertex": in_a_batch(lambda b, a, none: b.add_vertex(none)),
    "Batch.remove_vertex": in_a_batch(lambda b, a, none: b.remove_vertex(none)),
    "Batch.edge": in_a_batch(lambda b, a, none: b.edge(a, none)),
    "Batch.successors": in_a_batch(lambda b, a, none: b.successors(none)),
    "Batch.hops": in_a_batch(lambda b, a, none: b.hops(none, 1)),
    "Batch.degree": in_a_batch(lambda b, a, none: b.degree(none)),
    "Batch.vertex": in_a_batch(lambda b, a, none: b.vertex(none)),
    "columns to": in_columns(Kind.INSERT, is_src=False),
    "columns from": in_columns(Kind.INSERT, is_src=True),
    "columns of additions": in_columns(Kind.ADD_VERTEX, is_src=True),
    "columns of queries": in_columns(Kind.DEGREE, is_src=True),
    "bfs": lambda g, a, none: algorithms.bfs(g.snapshot(), none),
    "shortest_paths": lambda g, a, none: algorithms.shortest_paths(g.snapshot(), none),
    "similar": lambda g, a, none: algorithms.similar(g.snapshot(), none, 3),
    "jaccard": lambda g, a, none: algorithms.jaccard(g.snapshot(), [a], none),
    "encode_row": lambda g, a, none: ingest.encode_row(a, none, names=g.names is not None),
    "encode_row from": lambda g, a, none: ingest.encode_row(none, a, names=g.names is not None),
    "encode_updates": lambda g, a, none: ingest.encode_updates(
        [a], none, names=g.names is not None
    ),
    "encode_query": lambda g, a, none: ingest.encode_query(
        "q", Kind.EDGE, a, none, names=g.names is not None
    ),
}


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("door", DOORS)
def test_nothing_is_no_vertex(door: str, named: bool) -> None:
    g = Graph(names=named, predecessors=True, device="cpu")
    a, b = ("a", "b") if named else (1, 2)
    g.insert(a, b)
    for what, none in NOTHING.items():
        with pytest.raises(LpmaError):
            pytest.fail(f"{what} was taken: {DOORS[door](g, a, none)!r}")
        assert (g.version, list(g), g.num_edges) == (1, [a, b], 1), what
    assert not named or len(g.names or ()) == 2


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("none", NOTHING.values(), ids=NOTHING)
def test_nothing_is_in_no_graph(none: Any, named: bool) -> None:
    g = Graph(names=named, device="cpu")
    g.insert(*("a", "b") if named else (1, 2))
    assert none not in g


def test_a_name_alone_is_no_edge() -> None:
    """It once made a loop, by the mark of vertices that were added."""
    g = Graph(names=True, device="cpu")
    with pytest.raises(BatchError, match="dst is missing"):
        g.insert("a", None)
    with pytest.raises(BatchError, match="dst is missing"):
        g.delete("a", None)
    assert (len(g), g.num_edges, g.version) == (0, 0, 0)


@pytest.mark.parametrize("frame", [
    pd.DataFrame({"src": ["a"], "dst": [None]}),
    pd.DataFrame({"src": [1.0], "dst": [np.nan]}),
    pd.DataFrame({"src": pd.Series([1], dtype="Int64"), "dst": pd.Series([pd.NA], dtype="Int64")}),
    pd.DataFrame({"src": ["a"], "dst": pd.Categorical([None], ["b"])}),
    pa.table({"src": ["a"], "dst": pa.array([None], pa.string())}),
    pa.table({"src": [1], "dst": pa.array([None], pa.int64())}),
])  # fmt: skip
@pytest.mark.parametrize("is_src", [False, True])
def test_no_frame_has_nothing_for_a_vertex(frame: Any, is_src: bool) -> None:
    source, target = ("dst", "src") if is_src else ("src", "dst")
    with pytest.raises(BatchError, match="'dst' has no value in row 0"):
        lpma.from_dataframe(frame, source, target, device="cpu")
