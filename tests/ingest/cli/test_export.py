"""`lpma export`: each ending, with ids and with names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import polars as pl
import pytest
import scipy.sparse

import ingest
import lpma
from ingest.cli.export import write_snapshot
from tests.support.command_line import document, run

EDGES = "ann,bob\nbob,cem\ncem,ann\ncem,dan\n"


def stores(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "named.csv").write_text(EDGES)
    (tmp_path / "plain.txt").write_text("0 1\n1 2\n2 0\n2 3\n")
    run("load", tmp_path / "named.csv", tmp_path / "named.lpma", "--names")
    run("load", tmp_path / "plain.txt", tmp_path / "plain.lpma")
    return {
        "named": [tuple(line.split(",")) for line in EDGES.split()],
        "plain": [("0", "1"), ("1", "2"), ("2", "0"), ("2", "3")],
    }


@pytest.mark.parametrize("compact", [[], ["--compact"]])
def test_every_ending_holds_the_edges(tmp_path: Path, compact: list[str]) -> None:
    for name, edges in stores(tmp_path).items():
        for ending in ("csv", "parquet", "graphml", "gexf", "npz", "mtx"):
            path = tmp_path / f"{name}.out.{ending}"
            told = document("export", tmp_path / f"{name}.lpma", path, *compact)
            assert (told["format"], told["edges"], told["vertices"]) == (ending, 4, 4)
            assert told["bytes"] == path.stat().st_size
            table = tmp_path / f"{name}.out.{ending}.names.csv"
            assert table.exists() == (name == "named" and ending == "mtx")
        for frame in (
            pl.read_csv(tmp_path / f"{name}.out.csv", infer_schema=False),
            pl.read_parquet(tmp_path / f"{name}.out.parquet").cast(pl.String),
        ):
            assert sorted(frame.select("src", "dst").rows()) == sorted(edges)
        for G in (
            nx.read_graphml(tmp_path / f"{name}.out.graphml"),
            nx.read_gexf(tmp_path / f"{name}.out.gexf"),
        ):
            assert sorted(G.edges) == sorted(edges)


def test_an_ending_that_is_unknown(tmp_path: Path) -> None:
    stores(tmp_path)
    store = tmp_path / "plain.lpma"
    finished = run("export", store, tmp_path / "e.xlsx", status=2)
    assert all(f".{ending}" in finished.stderr for ending in ("csv", "parquet", "gexf"))
    run("export", store, tmp_path / "e.csv", "--format", "gexf", status=2)
    assert not (tmp_path / "e.csv").exists()


@pytest.mark.parametrize("ending", ["npz", "mtx"])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("compact", [[], ["--compact"]])
def test_a_matrix_is_loaded_again(
    tmp_path: Path, ending: str, directed: bool, compact: list[str]
) -> None:
    """With its vertices that have no edge."""
    g = lpma.Graph(device="cpu", directed=directed)
    g.insert([0, 1, 2, 5], [1, 2, 2, 0], [1.5, 2, 3, 4], [7, 8, 9, 10])
    g.add_vertices([3, 4, 7] if ending == "npz" else [3, 4, 6])
    g.save(tmp_path / "g.lpma")
    path = tmp_path / f"e.{ending}"
    run("export", tmp_path / "g.lpma", path, *compact)
    option = [] if directed else ["--undirected"]
    found = document("load", path, tmp_path / "h.lpma", *option)
    back = lpma.Graph.load(tmp_path / "h.lpma", "cpu")
    if ending == "mtx":
        assert found["vertices"] == found["rows"] == 7
        A, B = (graph.snapshot(compact=True).to_scipy() for graph in (g, back))
        assert (A != B).nnz == 0
        return
    assert (back.num_rows, back.num_edges) == (g.num_rows, g.num_edges)
    assert back.snapshot().to_pandas().equals(g.snapshot().to_pandas())


@pytest.mark.parametrize("vertices", [[1, 2, 3], ["a", "b", "c"], ["5", 5, -5]], ids=repr)
@pytest.mark.parametrize("option", [[], ["--undirected"], ["--directed"]], ids=str)
@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_an_undirected_export_is_loaded_again(
    tmp_path: Path, vertices: list[Any], ending: str, option: list[str]
) -> None:
    """As what it is, unless the caller wants directions: an edge is then both its entries, each
    with weight and time, and a loop is one."""
    named = vertices != [1, 2, 3]
    one = lpma.Graph(device="cpu", directed=False, names=named)
    src, dst = vertices, [*vertices[1:], vertices[-1]]
    one.insert(src, dst, [1.5, 2, 3], [7, 8, 9])
    write_snapshot(one.snapshot(), tmp_path / f"e.{ending}", ending)
    document("load", tmp_path / f"e.{ending}", tmp_path / "h.lpma", *option)
    back = lpma.Graph.load(tmp_path / "h.lpma", "cpu")
    directed = option == ["--directed"]
    assert (back.num_edges, back.directed) == ((5, True) if directed else (3, False))
    for u, v, weight, time in zip(src, dst, [1.5, 2, 3], [7, 8, 9], strict=True):
        for a, b in ((u, v), (v, u)):
            found = back.edges([a], [b])
            assert found.found.tolist() == [True]
            assert (found.weights.tolist(), found.times.tolist()) == ([weight], [time])  # type: ignore[union-attr]


@pytest.mark.parametrize("ending", ["npz", "parquet", "mtx"])
@pytest.mark.parametrize("directed", [True, False])
def test_an_undirected_export_is_streamed(tmp_path: Path, ending: str, directed: bool) -> None:
    """Into an undirected graph each edge once, or its weight would be twice what it was."""
    one = lpma.Graph(device="cpu", directed=False)
    one.insert([1, 2, 3], [2, 3, 3], [1.5, 2, 3])
    path = tmp_path / f"e.{ending}"
    write_snapshot(one.snapshot(), path, ending)
    option = "--directed" if directed else "--undirected"
    run("ingest", path, "--save", tmp_path / "h.lpma", option, "--device", "cpu")
    back = lpma.Graph.load(tmp_path / "h.lpma", "cpu")
    edges = back.edges([1, 2, 2, 3, 3], [2, 1, 3, 2, 3])
    assert edges.weights is not None
    assert edges.weights.tolist() == [1.5, 1.5, 2, 2, 3]
    assert back.num_edges == (5 if directed else 3)


@pytest.mark.parametrize("ending", ["npz", "parquet", "csv", "mtx"])
@pytest.mark.parametrize("command", ["load", "ingest"])
def test_a_directed_export_into_an_undirected_graph(
    tmp_path: Path, ending: str, command: str
) -> None:
    """By every way, from every format: each row is an operation, and directions are added up."""
    one = lpma.Graph(device="cpu")
    one.insert([1, 2, 2, 3], [2, 1, 3, 3], [1.5, 2, 4, 8])
    path, store = tmp_path / f"e.{ending}", tmp_path / "h.lpma"
    write_snapshot(one.snapshot(), path, ending)
    arguments = [path, store] if command == "load" else [path, "--save", store, "--device", "cpu"]
    said = run(command, *arguments, "--undirected").stderr
    assert ("holds a directed graph" in said) == (ending in ("npz", "parquet")), "those say it"
    back = lpma.Graph.load(store, "cpu")
    assert (back.directed, back.num_edges) == (False, 3)
    weights = back.edges([1, 2, 2, 3], [2, 1, 3, 3]).weights
    assert weights is not None
    assert weights.tolist() == [3.5, 3.5, 4, 8]


@pytest.mark.parametrize("ending", ["npz", "parquet", "mtx"])
def test_both_directions_are_not_added_up(tmp_path: Path, ending: str) -> None:
    one = lpma.Graph(device="cpu", directed=False)
    one.insert([1, 2], [2, 3])
    path = tmp_path / f"e.{ending}"
    write_snapshot(one.snapshot(), path, ending)
    said = r"read with each edge in both directions.*mirror=False"
    graph = lpma.Graph(device="cpu", directed=False)
    with pytest.raises(ingest.PipelineError, match=said):
        ingest.Pipeline(ingest.FileSource(path), graph, checkpoint=tmp_path / "state")
    assert not (tmp_path / "state").exists()
    with ingest.SqliteLog(tmp_path / "log") as log, pytest.raises(ingest.PipelineError, match=said):
        ingest.Repartition(
            ingest.FileSource(path), log, "updates", tmp_path / "more", partitions=2, directed=False
        )


def test_an_archive_of_names_is_loaded_again(tmp_path: Path) -> None:
    g = lpma.Graph(names=True, device="cpu")
    g.insert(["ann", 5, -7], ["5", "ann", " b "])
    g.add_vertices(["alone", 9])
    g.save(tmp_path / "g.lpma")
    run("export", tmp_path / "g.lpma", tmp_path / "e.npz")
    found = document("load", tmp_path / "e.npz", tmp_path / "h.lpma")
    assert (found["edges"], found["vertices"], found["unused_columns"]) == (3, 7, [])
    back = lpma.Graph.load(tmp_path / "h.lpma", "cpu")
    assert back.names is not None
    assert {back.names.find(name) is None for name in ("ann", 5, "5", -7, " b ", 9)} == {False}
    assert back.edge("ann", "5") is not None
    g = lpma.Graph(names=True, device="cpu")
    g.insert([1, 2], [3, 4])
    g.snapshot().write_npz(tmp_path / "e.npz")
    assert ingest.read_edges(tmp_path / "e.npz").reading.named


def test_an_archive_of_scipy_says_what_to_do(tmp_path: Path) -> None:
    scipy.sparse.save_npz(tmp_path / "e.npz", scipy.sparse.csr_array(np.eye(3)))
    said = run("load", tmp_path / "e.npz", tmp_path / "h.lpma", status=1).stderr
    assert "lpma.from_scipy" in said


@pytest.mark.parametrize("ending", ["npz", "parquet"])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("names", [True, False])
def test_what_is_stored_comes_back(
    tmp_path: Path, ending: str, directed: bool, names: bool
) -> None:
    """Edges of weight 0, and sums above what one operation may bring."""
    g = lpma.Graph(device="cpu", directed=directed, names=names)
    g.insert([0, 1, 2, 3], [1, 2, 5, 3], weight=[5.0, 1.0, 1e30, 2.0], time=[1, 2, 3, 4])
    g.insert([0, 2, 3], [1, 5, 3], weight=[-5.0, 1e30, -2.0], time=[5, 6, 7])
    g.save(tmp_path / "g.lpma")
    path = tmp_path / f"e.{ending}"
    assert run("export", tmp_path / "g.lpma", path).stderr == ""
    for option in ([], [] if directed else ["--directed"]):
        run("load", path, tmp_path / "h.lpma", "--strict", *option)
        back = lpma.Graph.load(tmp_path / "h.lpma", "cpu")
        back.check()
        for u, v, weight, time in ((0, 1, 0, 5), (1, 2, 1, 2), (2, 5, 2e30, 6), (3, 3, 0, 7)):
            edge = back.edge(u, v)
            assert edge is not None
            assert edge.weight == pytest.approx(weight)
            assert edge.time == time
        assert back.num_edges == (7 if option else 4)
        assert len(back) == len(g)
    run("load", path, tmp_path / "h.lpma", "--weight-dtype", "none")
    assert lpma.Graph.load(tmp_path / "h.lpma", "cpu").num_edges == 4


@pytest.mark.parametrize("ending", ["csv", "mtx"])
def test_what_a_format_cannot_say_is_told(tmp_path: Path, ending: str) -> None:
    """By the export and by the load, with counts."""
    g = lpma.Graph(device="cpu", directed=False)
    g.insert([0, 1, 2, 3, 3], [1, 2, 5, 3, 4], weight=[5.0, 1.0, 1e30, 2.0, 1.0])
    g.insert([0, 2, 3], [1, 5, 3], weight=[-5.0, 1e30, -2.0])
    g.add_vertices(6)
    g.save(tmp_path / "g.lpma")
    path = tmp_path / f"e.{ending}"
    told = run("export", tmp_path / "g.lpma", path).stderr
    assert "2 edges of weight 0" in told
    assert "1 edge of a weight above 1e+30" in told
    assert ("1 vertex without an edge" in told) == (ending == "csv")
    assert ("`lpma load --undirected`" in told) == (ending == "csv")
    option = ["--undirected"] if ending == "csv" else []
    loaded = run("load", path, tmp_path / "h.lpma", *option)
    assert "2 rows of weights of 0 or less made no edge" in loaded.stderr
    assert "left out 1 bad line (weight: " in loaded.stderr
    back = lpma.Graph.load(tmp_path / "h.lpma", "cpu")
    assert (back.directed, back.num_edges) == (False, 2)
    assert len(back) == (7 if ending == "mtx" else 4)


def test_a_row_of_a_matrix_that_holds_nothing_above_0_is_a_vertex(tmp_path: Path) -> None:
    head = "%%MatrixMarket matrix coordinate real general\n"
    (tmp_path / "x.mtx").write_text(f"{head}5 5 2\n2 1 1\n5 5 0\n")
    assert document("load", tmp_path / "x.mtx", tmp_path / "g.lpma")["vertices"] == 5


@pytest.mark.parametrize("rows", ["1,20\n2,20\n2,21\n", "ann,tea\nbob,tea\nbob,jam\n"])
@pytest.mark.parametrize("compact", [[], ["--compact"]])
@pytest.mark.parametrize("direction", ["--directed", "--undirected"])
def test_the_sides_of_a_bipartite_graph(
    tmp_path: Path, rows: str, compact: list[str], direction: str
) -> None:
    path, store, again = (tmp_path / name for name in ("e.csv", "g.lpma", "again.lpma"))
    path.write_text("user,item\n" + rows)
    told = run("load", path, store, "--bipartite", "--header", direction).stdout
    assert "names, the others" in told or "item 20 of the right side is vertex 23" in told
    assert "right side" in run("info", store).stdout
    g = lpma.Graph.load(store, "cpu")
    for ending in ("npz", "parquet"):
        out = tmp_path / f"out.{ending}"
        assert "left side" not in run("export", store, out, *compact).stderr
        run("load", out, again)
        h = lpma.Graph.load(again, "cpu")
        assert (h.left, h.directed) == (g.left, g.directed)
        edges = [f.snapshot().edges() for f in (g, h)]
        assert (
            len({tuple(sorted(zip(e.src.tolist(), e.dst.tolist(), strict=True))) for e in edges})
            == 1
        )
        assert ingest.read_edges(out, bipartite=False).left is None
    for ending in ("csv", "graphml", "gexf", "mtx"):
        assert "left side" in run("export", store, tmp_path / f"out.{ending}").stderr


def test_a_stream_of_a_bipartite_file_keeps_its_sides(tmp_path: Path) -> None:
    path, state, store = (tmp_path / name for name in ("e.csv", "state", "g.lpma"))
    path.write_text("user,item\n1,20\n2,20\n2,21\n")
    bipartite = ["--set", "file.bipartite=true"]
    run("ingest", path, "-c", state, "--save", store, *bipartite)
    for saved in (state, store):
        assert document("info", saved)["left"] == 3
        assert document("run", "bicliques", saved, "--p", 2, "--q", 1)["left"] == 3
    assert ingest.FileSource(path, bipartite=True).left == 3
    assert ingest.FileSource(path).left is None
    begun = ["ingest", path, "-c", tmp_path / "other", "--set", f"graph.from_store={store}"]
    document(*begun, *bipartite)
    lpma.Graph(device="cpu", left=7).save(store)
    for dry_run in ([], ["--dry-run"]):
        told = run(*begun[:3], tmp_path / "third", *begun[4:], *bipartite, *dry_run, status=1)
        assert "its left side has 7 of its ids, and that of the file 3" in told.stderr
    path.write_text("user,item\nann,tea\nbob,tea\n")
    told = run("ingest", path, "-c", tmp_path / "names", *bipartite).stderr
    assert "left side is not kept where they go by names" in told
    assert document("info", tmp_path / "names").get("left") is None


def test_topics_that_may_have_two_kinds_of_vertices_are_told(tmp_path: Path) -> None:
    log, fields = tmp_path / "s.log", ["--source", "user", "--target", "item_id"]
    with ingest.SqliteLog(log) as source:
        source.produce("updates", b'{"user": 1, "item_id": 1}')
    told = run("ingest", log, "-c", tmp_path / "state", *fields).stderr
    assert "user and item_id may be two kinds of vertices" in told
    assert "two kinds" not in run("ingest", log, "-c", tmp_path / "state").stderr


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_names_on_both_sides_of_an_export_stay(tmp_path: Path, ending: str) -> None:
    store, out = tmp_path / "g.lpma", tmp_path / f"out.{ending}"
    g = lpma.Graph(names=True, left=1, device="cpu")
    g.insert(["ann", "tea"], ["tea", "ann"])
    g.save(store)
    run("export", store, out)
    run("load", out, tmp_path / "again.lpma")
    h = lpma.Graph.load(tmp_path / "again.lpma", "cpu")
    assert (h.left, set(h), h.num_edges) == (None, {"ann", "tea"}, 2)
