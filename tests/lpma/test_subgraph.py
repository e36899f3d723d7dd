"""`Snapshot.subgraph`, `edges`, `to_graph` and `to_igraph`, beside NetworkX's graphs."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma.arrays import to_host
from tests.support.oracles import assert_same

LABELS = {False: range(12), True: ["ann", "bob", "cem", "dia", "eva", "flo", "gus", "hal", "ida"]}


def drawn(data: st.DataObject, device: str, named: bool, directed: bool) -> lpma.Graph:
    """A graph of a few edges, loops and vertices without edges among them."""
    labels = st.sampled_from(list(LABELS[named]))
    edges = data.draw(st.lists(st.tuples(labels, labels, st.integers(1, 9)), max_size=20))
    g = lpma.Graph(directed, names=named, device=device)
    for u, v, weight in edges:
        g.insert(u, v, weight, time=7)
    for v in data.draw(st.lists(labels, max_size=3)):
        g.add_vertices(v)
    return g


def shape(graph: Any) -> tuple[set[Any], set[Any]]:
    """The vertices and the edges of a NetworkX graph, with their attributes."""
    order = (lambda u, v: (u, v)) if graph.is_directed() else (lambda u, v: tuple(sorted((u, v))))
    edges = {(*order(u, v), a["weight"], a["time"]) for u, v, a in graph.edges(data=True)}
    return set(graph), edges


@given(st.data(), st.booleans(), st.booleans(), st.booleans())
def test_a_subgraph_is_networkx_s(
    device: str, data: st.DataObject, named: bool, directed: bool, compact: bool
) -> None:
    g = drawn(data, device, named, directed)
    s = g.snapshot(compact)
    whole, present = s.to_networkx(), list(g)
    chosen = data.draw(st.lists(st.sampled_from(present), unique=True)) if present else []
    part = s.subgraph(chosen)
    assert shape(part.to_networkx()) == shape(whole.subgraph(chosen))
    assert (part.num_edges, part.version) == (whole.subgraph(chosen).number_of_edges(), g.version)
    made = part.to_graph()
    made.check()
    assert shape(made.snapshot().to_networkx()) == shape(whole.subgraph(chosen))
    assert (made.device, made.version, made.directed) == (g.device, g.version, directed)
    columns = (np.asarray(to_host(column)).tolist() for column in part.edges())
    listed = type(whole)()
    for u, v, weight, time in zip(*columns, strict=True):
        listed.add_edge(u, v, weight=weight, time=time)
    assert shape(listed)[1] == shape(whole.subgraph(chosen))[1]


@pytest.mark.parametrize("compact", [False, True])
def test_a_vertex_that_is_not_there_is_named(device: str, compact: bool) -> None:
    g = lpma.from_edges([1, 5], [5, 7], device=device)
    for absent in (2, 9, [1, 6]):
        with pytest.raises(lpma.BatchError, match=r"there is no vertex [269] in the snapshot"):
            g.snapshot(compact).subgraph(absent)
    with pytest.raises(lpma.BatchError, match="there is no vertex 'bob'"):
        lpma.from_edges(["ann"], ["eva"], device=device).snapshot(compact).subgraph(["ann", "bob"])


def test_options_of_the_graph_are_taken(device: str) -> None:
    g = lpma.from_edges([1, 5], [5, 7], weight_dtype=None, times=False, device=device)
    made = g.snapshot().to_graph(predecessors=True)
    assert_same(made.predecessors(7).ids, g.snapshot().edges().src[-1:])
    assert (made.weight_dtype, made.has_times) == (None, False)


def test_an_igraph_has_the_same_edges() -> None:
    g = lpma.from_edges([3, 5, 5], [5, 9, 5], [1.0, 2.0, 4.0], time=7, device="cpu")
    g.add_vertices(20)
    made = g.snapshot().to_igraph()
    back = lpma.from_igraph(made, time="time", device="cpu")
    assert list(back) == list(g) == [3, 5, 9, 20]
    assert shape(back.snapshot().to_networkx()) == shape(g.snapshot().to_networkx())
    assert isinstance(g.snapshot().to_networkx(), networkx.DiGraph)


@pytest.mark.parametrize(
    ("use", "now"),
    [
        (lambda: lpma.Kind.APPEND, "INSERT"),  # type: ignore[attr-defined]
        (lambda: lpma.Batch().append(1, 2), "insert"),  # type: ignore[attr-defined]
        (lambda: lpma.Graph(weight="float64", device="cpu"), "weight_dtype"),  # type: ignore[call-arg]
        (lambda: lpma.Graph(device="cpu").edges(1, 2).weight, "weights"),  # type: ignore[attr-defined]
        (lambda: lpma.Graph(device="cpu").successors(1).time, "times"),  # type: ignore[attr-defined]
    ],
)
def test_an_old_name_says_the_new_one(use: Any, now: str) -> None:
    with pytest.raises((AttributeError, lpma.BatchError), match=f"called '{now}' now"):
        use()


@pytest.mark.parametrize(("name", "reader"), [("g.csv", "lpma load"), ("s.npz", "read_npz")])
def test_a_file_of_another_kind_is_told_its_reader(tmp_path: Any, name: str, reader: str) -> None:
    (tmp_path / name).write_text("src,dst\n1,2\n")
    with pytest.raises(lpma.FormatError, match=f"{name}: not a saved graph: .*{reader}"):
        lpma.Graph.load(tmp_path / name)


def test_what_the_snapshot_says_is_no_option(device: str) -> None:
    s = lpma.from_edges([1], [2], device=device).snapshot()
    for name in ("directed", "names", "times", "weight_dtype"):
        with pytest.raises(lpma.BatchError, match=f"{name}: the snapshot says that"):
            s.to_graph(**{name: None})
