"""Every argument of the store's public functions, given all that it should not be: it is taken, or
refused by an error of ours, before anything is changed. What is taken for what, other tests say."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import igraph
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import lpma
from lpma import Batch, Graph, LpmaError
from lpma.file.atomic import PathError
from tests.support.wrong_values import WRONG

Call = Callable[..., Any]


def graph(named: bool) -> Graph:
    g = Graph(names=named, predecessors=True, device="cpu")
    src, dst = ("abc", "bca") if named else ([0, 1, 2], [1, 2, 0])
    g.insert(list(src), list(dst), time=5)
    return g


# The methods of Graph, with arguments that are right: v stands for a vertex, p for a path.
METHODS: dict[str, dict[str, Any]] = {
    "insert": {"src": "v", "dst": "v"}, "delete": {"src": "v", "dst": "v"},
    "add_vertices": {"v": "v"}, "remove_vertices": {"v": "v"}, "apply": {"batch": Batch()},
    "snapshot": {}, "save": {"path": "p"}, "image": {}, "edges": {"src": "v", "dst": "v"},
    "successors": {"u": "v"}, "predecessors": {"v": "v"}, "hops": {"u": "v", "k": 1},
    "degree": {"u": "v"}, "in_degree": {"v": "v"}, "has_vertices": {"v": "v"},
    "changes": {"since": 0}, "touched": {"since": 0}, "has_edge": {"u": "v", "v": "v"},
    "edge": {"u": "v", "v": "v"}, "neighbors": {"u": "v"}, "expire": {"before": 0},
    "take_names": {"names": None},
}  # fmt: skip
OF_A_BATCH: dict[str, dict[str, Any]] = {
    "insert": {"u": 0, "v": 1}, "delete": {"u": 0, "v": 1}, "add_vertex": {"v": 1},
    "remove_vertex": {"v": 0}, "expire": {"before": 1}, "edge": {"u": 0, "v": 1},
    "successors": {"u": 0}, "predecessors": {"v": 0}, "hops": {"u": 0, "k": 1},
    "degree": {"u": 0}, "vertex": {"v": 0}, "columns": {},
}  # fmt: skip
FUNCTIONS: dict[str, tuple[Call, dict[str, Any]]] = {
    "Graph": (Graph, {"device": "cpu"}),
    "Batch.from_columns": (Batch.from_columns, {"kind": 0, "src": [1], "dst": [2]}),
    "pinned_batch": (lpma.pinned_batch, {"n": 1}),
    "from_edges": (lpma.from_edges, {"src": [0], "dst": [1]}),
    "from_dataframe": (lpma.from_dataframe, {"df": pd.DataFrame({"src": [1], "dst": [2]})}),
    "from_networkx": (lpma.from_networkx, {"G": nx.path_graph(3)}),
    "from_igraph": (lpma.from_igraph, {"G": igraph.Graph.Ring(4)}),
    "from_scipy": (lpma.from_scipy, {"A": sp.eye(3, format="csr")}),
    "from_edge_index": (lpma.from_edge_index, {"edge_index": np.array([[0], [1]])}),
}


def parameters(call: Call) -> list[str]:
    """What can be given by name, but `self`, options that are handed on, and devices."""
    plain = inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL
    found = inspect.signature(call).parameters.values()
    return [one.name for one in found if one.kind not in plain and one.name != "self"]


def judged(call: Call, given: dict[str, Any], name: str, value: Any) -> None:
    """Raise what is no error of ours."""
    try:
        with suppress(LpmaError):
            call(**{**given, name: value})
    except Exception as error:
        raise AssertionError(f"{name} of type {type(value)}: {error!r}") from error


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_of_graphs(method: str, named: bool, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)  # "no" is a path
    places = {"v": "a" if named else 0, "p": tmp_path / "g.lpma"}
    usual = {
        key: places.get(value, value) if isinstance(value, str) else value
        for key, value in METHODS[method].items()
    }
    for name in parameters(getattr(Graph, method)):
        for value in WRONG:
            g = graph(named)
            judged(getattr(g, method), usual, name, value)
            g.check()


@pytest.mark.parametrize("method", OF_A_BATCH)
def test_of_batches(method: str) -> None:
    for name in parameters(getattr(Batch, method)):
        for value in WRONG:
            g = graph(False)

            def applied(g: Graph = g, **given: Any) -> None:
                batch = Batch()
                batch.insert(1, 2)
                getattr(batch, method)(**given)
                g.apply(batch)

            judged(applied, OF_A_BATCH[method], name, value)
            g.check()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_of_functions(function: str) -> None:
    call, usual = FUNCTIONS[function]
    if function.startswith("from_"):
        usual = {**usual, "device": "cpu"}
    for name in parameters(call):
        for value in WRONG:
            if function != "pinned_batch" or not isinstance(value, int) or value < 1000:
                judged(call, usual, name, value)


@pytest.mark.parametrize("method", [
    "write_csv", "write_gexf", "write_graphml", "write_matrix_market", "write_npz", "write_parquet",
])  # fmt: skip
def test_of_paths(method: str) -> None:
    s = graph(False).snapshot()
    for value in (None, 1, 1.5, [], {}, object(), np.array(["no"])):
        with pytest.raises(PathError, match="path: a path, not"):
            getattr(s, method)(value)


def test_names_of_rows_that_are_none() -> None:
    g = graph(True)
    for names in (g.names, g.snapshot().names):
        assert names is not None
        assert names.of([]).tolist() == []
        for wrong in ([-1], [3], 2**40):
            with pytest.raises(IndexError, match="go from 0 to 2"):
                names.of(wrong)
        for value in ([0.5], ["a"], None, object(), [[0]], [True]):
            with pytest.raises(lpma.BatchError):
                names.of(value)
