"""Graphs that are not written an edge a line: read as NetworkX reads them, or refused by name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
from ingest.sources.files import metis, opening
from tests.support.edge_files import read

networkx = pytest.importorskip("networkx")

GRAPHS = {
    "named": networkx.Graph([("a", "b", {"weight": 2.5}), ("b", "c d", {"weight": 1.0})]),
    "numbered": networkx.Graph([(1, 2, {"weight": 2.0}), (2, 30, {"weight": 3.0})]),
    "directed": networkx.DiGraph([("a", "b", {"weight": 2.0}), ("b", "a", {"weight": 3.0})]),
    "karate": networkx.karate_club_graph(),
}


def expected(graph: Any) -> set[tuple[str, str, float]]:
    found = {(str(u), str(v), float(data["weight"])) for u, v, data in graph.edges(data=True)}
    return found if graph.is_directed() else found | {(v, u, w) for u, v, w in found}


@pytest.mark.parametrize("name", ["a.{}", "a.txt", "a"])
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("form", ["graphml", "gexf", "gml", "pajek"])
def test_what_networkx_wrote(tmp_path: Path, form: str, graph: str, name: str) -> None:
    path = tmp_path / name.format("net" if form == "pajek" else form)
    made = GRAPHS[graph]
    if form in ("gml", "gexf"):
        made = networkx.relabel_nodes(made, str)
    getattr(networkx, f"write_{form}")(made, path)
    file = ingest.read_edges(path)
    assert file.reading.format == form
    assert file.reading.directed is made.is_directed()
    assert {(str(u), str(v), w) for u, v, w, _ in read(path)} == expected(made)
    assert sorted(map(str, file.vertices().tolist())) == sorted(map(str, made))


@pytest.mark.parametrize(
    "text",
    ["graph [\n node [ id 1 ]\n node [ id 2 ]\n edge [ source 1 target 2 ]\n]\n",
     'Creator "Mark Newman"\ngraph\n[\n  directed 0\n  node\n  [\n    id 1\n  ]\n  node\n  [\n'
     "    id 2\n  ]\n  edge\n  [\n    source 1\n    target 2\n  ]\n]\n"],
)  # fmt: skip
def test_gml_without_labels(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert read(path, mirror=False) == [(1, 2, 1.0, None)]


def test_what_networkx_cannot_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.gml"
    path.write_text("graph [\n node [ id 1\n")
    with pytest.raises(ingest.SourceError, match="not read as GML"):
        ingest.read_edges(path)
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ingest.SourceError, match=r"not installed: pip install .*\[networkx\]"):
        ingest.read_edges(path)


# -- METIS and DIMACS -----------------------------------------------------------------------------


def metis_text(graph: Any, weighted: bool) -> str:
    lines = [f"{len(graph)} {graph.number_of_edges()}" + (" 001" if weighted else "")]
    for u in range(len(graph)):
        each = sorted(graph[u])
        lines.append(" ".join(f"{v + 1} {u + v + 1}" if weighted else f"{v + 1}" for v in each))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("block", [40, 1 << 22])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "graph",
    [networkx.cycle_graph(4), networkx.complete_graph(3), networkx.path_graph(7),
     networkx.gnm_random_graph(300, 900, seed=1), networkx.grid_2d_graph(9, 9)],
)  # fmt: skip
def test_metis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, graph: Any, weighted: bool, block: int
) -> None:
    monkeypatch.setattr(opening, "BLOCK_BYTES", block)
    monkeypatch.setattr(metis, "PIECE_LINES", 3 if block == 40 else 1 << 16)
    graph = networkx.convert_node_labels_to_integers(graph)
    graph.add_node(len(graph))  # an empty line
    path = tmp_path / "a.graph"
    path.write_text("% made\n" + metis_text(graph, weighted))
    file = ingest.read_edges(path)
    assert file.reading.format == "metis"
    assert "ids from 1, as 0 and on" in str(file.reading)
    found = {(u, v): w for u, v, w, _ in read(path)}
    assert found == {
        pair: float(sum(pair) + 1 if weighted else 1)
        for u, v in graph.edges for pair in ((u, v), (v, u))
    }  # fmt: skip
    assert len(read(path, mirror=False)) == graph.number_of_edges()
    assert file.vertices().tolist() == list(range(len(graph)))


def test_metis_with_weights_of_vertices_and_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.graph"
    path.write_text("3 2 11 2\n9 9 2 5\n9 9 1 5 3 7\n9 9 2 7\n")
    assert read(path, mirror=False) == [(0, 1, 5.0, None), (1, 2, 7.0, None)]
    path.write_text("3 2\n2\n1 3\n2 x\n")
    with pytest.raises(ingest.SourceError, match=r"line 4: expected neighbours from 1 to 3"):
        read(path, format="metis")
    path.write_text("3 2\n2\n1 3\n")
    with pytest.raises(ingest.SourceError, match="cut short"):
        read(path, format="metis")


@pytest.mark.parametrize("text", ["4 4\n2 4\n1 3\n2 4\n1 4\n", "1 2\n2 3\n", "3 1\n1 2\n2 1\n"])
def test_edges_that_are_not_metis(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(text)
    assert [row[:2] for row in read(path)] == [
        tuple(map(int, r.split())) for r in text.splitlines()
    ]


DIMACS = {
    "p edge": ("c made\np edge 4 2\ne 1 2\ne 2 3\n", False, [(0, 1, 1.0), (1, 2, 1.0)]),
    "p col": ("p col 4 2\ne 1 2\ne 2 3\n", False, [(0, 1, 1.0), (1, 2, 1.0)]),
    "p sp": ("c x\n\np sp 4 2\nc y\na 1 2 7\na 3 2 9\n", True, [(0, 1, 7.0), (2, 1, 9.0)]),
}


@pytest.mark.parametrize("block", [10, 1 << 22])
@pytest.mark.parametrize("problem", DIMACS)
def test_dimacs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str, block: int) -> None:
    monkeypatch.setattr(opening, "BLOCK_BYTES", block)
    text, directed, edges = DIMACS[problem]
    path = tmp_path / "a.txt"
    path.write_text(text)
    file = ingest.read_edges(path)
    assert (file.reading.format, file.reading.directed) == ("dimacs", directed)
    assert [row[:3] for row in read(path, mirror=False)] == edges
    assert len(read(path)) == (2 if directed else 4)
    assert file.vertices().tolist() == [0, 1, 2, 3]
    path.write_text(text.rpartition("\n")[0].rpartition("\n")[0] + "\n")
    with pytest.raises(ingest.SourceError, match="1 edges, but 2 promised"):
        read(path)


# -- NetworkX's lists of edges ---------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [" ", "\t", ","])
def test_edges_with_dictionaries(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "a.edgelist"
    for graph in (GRAPHS["karate"], GRAPHS["directed"]):
        networkx.write_edgelist(graph, path, delimiter=delimiter)
        found = {(str(u), str(v), w) for u, v, w, _ in read(path)}
        assert found == {(str(u), str(v), d["weight"]) for u, v, d in graph.edges(data=True)}
    path.write_text("1 2 {'weight': 2, 'label': 'a {b}'}\n# x\n2 3 {}\n3 4 {'weight': 0.5}\n4\n")
    file = ingest.read_edges(path)
    assert [c.weight.tolist() for c in file] == [[2.0, 1.0, 0.5]]  # type: ignore[union-attr]
    assert file.left_out.count == 1
    path.write_text("a b {'capacity': 3}\n")
    assert read(path) == [("a", "b", 1.0, None)]
    assert read(path, weight="capacity", source="source", target="target")[0][2] == 3.0


# -- what is refused by name -----------------------------------------------------------------------

OTHERS = {
    "DOT": ("digraph G {\n  a -> b;\n}\n", "DOT"),
    "DOT, strict": ('// x\nstrict graph "G" {\n a -- b\n}\n', "DOT"),
    "DOT without a name": ("graph{a--b}\n", "DOT"),
    "DGS": ('DGS004\n"x" 0 0\nan "a"\n', "DGS"),
    "DL": ("dl n=3 format=edgelist1\nlabels:\na,b,c\ndata:\n1 2\n", "DL file of UCINET"),
    "DL, apart": ("DL\nN = 3\nFORMAT = FULLMATRIX\nDATA:\n0 1 0\n", "DL file of UCINET"),
    "GDF": ("nodedef>name VARCHAR\na\nedgedef>node1 VARCHAR,node2 VARCHAR\na,b\n", "GDF"),
    "VNA": ("*Node data\nID age\na 5\n*Tie data\nfrom to\na b\n", "VNA"),
    "LEDA": ("LEDA.GRAPH\nstring\nint\n-1\n2\n|{a}|\n|{b}|\n1\n1 2 0 |{4}|\n", "LEDA"),
    "graph6": (">>graph6<<D?{\n", "graph6"),
    "TLP": ('(tlp "2.3"\n(nodes 0..2)\n', "Tulip"),
    "N-Triples": ('<http://a> <http://p> <http://b> .\n<http://a> <x:p> "x" .\n', "N-Triples"),
    "Turtle": ("@prefix x: <http://x/> .\nx:a x:p x:b .\n", "Turtle"),
    "TGF": ("1 ann\n2 bob\n#\n1 2 likes\n", "Trivial Graph Format"),
    "LGL": ("# a\nb 1.5\nc 2.5\n# b\nd\n", "LGL"),
    "LGL with whole weights": ("# a\nb 2.5\nc 4\n# b\nd 1\n", "LGL"),
    "LGL of names": ("# a\nb 2\n# b\nd 1\n", "LGL"),
    "Markdown": ("| src | dst |\n|---|---|\n| 1 | 2 |\n", "Markdown"),
    "SQL": ("INSERT INTO edges VALUES (1,2);\nINSERT INTO edges VALUES (2,3);\n", "SQL"),
    "adjacency": ("# x\n0 1 2 3\n1 2\n2\n3 4 5\n", "adjacency list"),
    "adjacency of names": ("a b c d\nb c\nc\nd e f\n", "adjacency list"),
    "multiline adjacency": ("1 2\n2 {}\n3 {'weight': 2}\n2 0\n", "multiline adjacency"),
    "DIMACS of flow": ("p max 4 2\nn 1 s\nn 4 t\na 1 4 3\n", "'max'"),
    "node-link": ('{"directed": false, "nodes": [{"id": 1}], "links": []}\n', "node_link_graph"),
    "indented node-link": ('{\n "nodes": [\n  {"id": 1}\n ],\n "links": []\n}\n', "whole graph"),
    "an array of JSON": ('[{"src": 1, "dst": 2}]\n', "array of JSON"),
    "RDF": ('<?xml version="1.0"?>\n<rdf:RDF xmlns:rdf="x">\n', "XML"),
}  # fmt: skip


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.json"])
@pytest.mark.parametrize("form", OTHERS)
def test_what_is_refused_by_name(tmp_path: Path, form: str, name: str) -> None:
    text, message = OTHERS[form]
    path = tmp_path / name
    path.write_text(text)
    if name == "a.json" and not text.startswith(("{", "[")):
        message = "nothing was loaded|" + message
    if name == "a.csv" and "adjacency" in form:
        message += "|which columns|nothing|one column"
    with pytest.raises(ingest.SourceError, match=message):
        list(ingest.read_edges(path))


def test_numbers_of_vertices_and_edges_above_the_edges_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("5 4\n1 2\n2 3\n3 4\n4 5\n")
    (note,) = ingest.read_edges(path).reading.notes(True)
    assert "--header leaves it out" in note
    assert len(read(path, header=True)) == 4
    assert len(read(path, header=False)) == 5
    assert ingest.read_edges(path, header=False).reading.notes(True) == []


def test_real_graphs(tmp_path: Path) -> None:
    """What SciPy writes is read as SciPy reads it."""
    sparse = pytest.importorskip("scipy.sparse")
    mmio = pytest.importorskip("scipy.io")
    rng = np.random.default_rng(5)
    for shape in ((30, 30), (20, 40)):
        matrix = sparse.random_array(shape, density=0.1, rng=rng).tocoo()
        path = tmp_path / "a.mtx"
        mmio.mmwrite(path, matrix)
        expected = mmio.mmread(path).tocoo()
        left = shape[0] if shape[0] != shape[1] else 0
        pairs = zip(expected.row.tolist(), (expected.col + left).tolist(), strict=True)
        assert sorted(row[:2] for row in read(path)) == sorted(pairs)
