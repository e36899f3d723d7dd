"""`lpma run`: what it computes on stores, checkpoints, files and datasets, what it writes, and its
exit statuses."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from typer.testing import CliRunner

import algorithms
import ingest
import lpma
from ingest.cli import app
from ingest.cli.run._result_files import CHUNK_ROWS, write
from ingest.plots import distribution
from tests.conftest import real_graph
from tests.support.command_line import PNG, document, run

EDGES = [(10, 20), (20, 30), (30, 10), (30, 40), (50, 60), (60, 60), (10, 20)]
UNDIRECTED = nx.Graph(EDGES)
DIRECTED = nx.DiGraph(EDGES)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    g = lpma.Graph(device="cpu")
    g.insert(*np.array(EDGES).T)
    g.add_vertices(70)
    g.save(tmp_path / "graph.lpma")
    return tmp_path / "graph.lpma"


@pytest.fixture
def edge_file(tmp_path: Path) -> Path:
    path = tmp_path / "edges.txt"
    path.write_text("".join(f"{u} {v}\n" for u, v in EDGES))
    return path


def values(store: Path, algorithm: str, *options: object) -> dict[Any, Any]:
    """The value of every vertex, by --out."""
    path = store.with_name("out.npz")
    document("run", algorithm, store, "--out", path, *options)
    with np.load(path) as columns:
        *keys, value = columns.files
        assert keys[0] == "vertex"
        return dict(zip(columns["vertex"].tolist(), columns[value].tolist(), strict=True))


def test_core(store: Path) -> None:
    graph = UNDIRECTED.copy()
    graph.remove_edge(60, 60)
    graph.add_node(70)
    assert values(store, "core") == nx.core_number(graph)
    found = document("run", "core", store, "--top", 2)
    assert (found["max_core"], found["vertices_in_it"], found["vertices"]) == (2, 3, 7)
    assert found["top"] == [{"vertex": 10, "core": 2}, {"vertex": 20, "core": 2}]
    assert found["directed"]


def test_triangles(store: Path) -> None:
    assert values(store, "triangles") == {**nx.triangles(UNDIRECTED), 70: 0}
    found = document("run", "triangles", store)
    assert (found["triangles"], found["vertices_in_one"]) == (1, 3)


def test_clustering(store: Path) -> None:
    graph = UNDIRECTED.copy()
    graph.remove_edge(60, 60)
    graph.add_node(70)
    assert values(store, "clustering") == nx.clustering(graph)
    found = document("run", "clustering", store)
    assert found["average"] == pytest.approx(nx.average_clustering(graph))
    assert found["transitivity"] == nx.transitivity(graph)


def test_truss(store: Path, tmp_path: Path) -> None:
    found = document("run", "truss", store, "--out", tmp_path / "truss.csv", "--top", 1)
    assert (found["max_truss"], found["edges_in_it"]) == (3, 3)
    assert found["top"] == [{"src": 10, "dst": 20, "truss": 3}]
    rows = np.loadtxt(tmp_path / "truss.csv", delimiter=",", skiprows=1, dtype=int).tolist()
    assert rows == [[10, 20, 3], [10, 30, 3], [20, 30, 3], [30, 40, 2], [50, 60, 2]]


def test_components(store: Path) -> None:
    found = document("run", "components", store)
    assert (found["components"], found["largest"], found["of_one_vertex"]) == (3, 4, 1)
    assert found["top"] == [
        {"component": 10, "size": 4}, {"component": 50, "size": 2}, {"component": 70, "size": 1}
    ]  # fmt: skip
    assert values(store, "components") == {10: 4, 20: 4, 30: 4, 40: 4, 50: 2, 60: 2, 70: 1}


def test_strong_components(store: Path) -> None:
    graph = DIRECTED.copy()
    graph.add_node(70)
    sizes = {v: len(part) for part in nx.strongly_connected_components(graph) for v in part}
    assert values(store, "strong-components") == sizes
    found = document("run", "strong-components", store)
    assert found["components"] == nx.number_strongly_connected_components(graph)


def test_bfs_follows_directions(store: Path, edge_file: Path) -> None:
    assert values(store, "bfs", "--source", 20) == {
        10: 2, 20: 0, 30: 1, 40: 2, 50: -1, 60: -1, 70: -1
    }  # fmt: skip
    found = document("run", "bfs", edge_file, "--source", 40)
    assert (found["reached"], found["farthest"], found["source"]) == (1, 0, 40)
    found = document("run", "bfs", edge_file, "--source", 40, "--undirected")
    assert (found["reached"], found["farthest"]) == (4, 2)


def test_shortest_paths_follow_weights(store: Path, tmp_path: Path) -> None:
    g = lpma.Graph(device="cpu")
    g.insert([10, 10, 20, 40], [20, 30, 30, 10], [1.0, 5.0, 2.5, 1.0])
    g.save(tmp_path / "g.lpma")
    found = values(tmp_path / "g.lpma", "shortest-paths", "--source", 10)
    assert found == {10: 0, 20: 1, 30: 3.5, 40: math.inf}
    found = document("run", "shortest-paths", tmp_path / "g.lpma", "--source", 10)
    assert (found["reached"], found["farthest"]) == (3, 3.5)
    assert found["top"][0] == {"vertex": 30, "distance": 3.5}
    run("run", "shortest-paths", store, "--source", 11, status=1)


def test_similar(store: Path) -> None:
    """UNDIRECTED: 10, 20 and 30 are a triangle, 40 hangs from 30."""
    pairs = [(10, v) for v in UNDIRECTED if v != 10]
    shares = {v: share for _, v, share in nx.jaccard_coefficient(UNDIRECTED, pairs) if share > 0}
    assert values(store, "similar", "--vertex", 10) == shares
    found = document("run", "similar", store, "--vertex", 10, "--unlinked", "--top", 1)
    assert found["top"] == [{"vertex": 40, "jaccard": shares[40]}]
    assert (found["found"], found["highest"]) == (1, shares[40])
    run("run", "similar", store, "--vertex", 11, status=1)


def test_pagerank(store: Path) -> None:
    graph = DIRECTED.copy()
    graph.add_node(70)
    expected = nx.pagerank(graph, alpha=0.6, tol=1e-12)
    assert values(store, "pagerank", "--damping", 0.6, "--tol", 1e-10) == pytest.approx(expected)
    around = nx.pagerank(graph, personalization={10: 1, 70: 1}, tol=1e-12, max_iter=500)
    found = values(store, "pagerank", "--around", 10, "--around", 70, "--tol", 1e-10)
    assert found == pytest.approx(around, abs=1e-7)
    run("run", "pagerank", store, "--around", 12345, status=1)
    weighted = document("run", "pagerank", store, "--weighted")
    assert weighted["weighted"]
    assert weighted["sum"] == pytest.approx(1)
    short = run("run", "pagerank", store, "--max-iter", 1, "--json")
    assert "allow more" in short.stderr


def test_for_people(edge_file: Path) -> None:
    text = run("run", "components", edge_file).stdout
    assert "components" in text
    assert "largest" in text
    assert text.splitlines()[-1].split() == ["50", "2"]


def test_a_checkpoint(edge_file: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    run("ingest", edge_file, "--checkpoint", checkpoint)
    assert document("run", "components", checkpoint)["components"] == 2


def test_a_stream_under_way(tmp_path: Path) -> None:
    """A checkpoint is read beside the pipeline that writes it."""
    with ingest.SqliteLog(tmp_path / "log") as log:
        log.produce(ingest.types.UPDATES, ingest.encode_updates([0, 1], [1, 2]))
        graph = lpma.Graph(device="cpu")
        with ingest.Pipeline(log, graph, checkpoint=tmp_path / "c") as pipeline:
            pipeline.step()
            pipeline.checkpoint_now()
            assert document("run", "bfs", tmp_path / "c", "--source", 0)["reached"] == 3


def test_generators_and_datasets() -> None:
    assert document("run", "bfs", "grid:rows=3,columns=4", "--source", 0)["farthest"] == 5
    real_graph("wiki-Vote")
    found = document("run", "core", "wiki-Vote")
    assert (found["max_core"], found["vertices_in_it"]) == (53, 336)


def test_files(store: Path, tmp_path: Path) -> None:
    table, picture = tmp_path / "ranks.csv", tmp_path / "ranks.png"
    found = document("run", "pagerank", store, "--out", table, "--plot", picture)
    assert (found["out"], found["plot"]) == (str(table), str(picture))
    assert picture.read_bytes().startswith(PNG)
    with open(table, newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["vertex", "rank"]
    best = max(rows[1:], key=lambda row: float(row[1]))
    assert found["top"][0] == {"vertex": int(best[0]), "rank": float(best[1])}


def test_long_tables_are_whole(tmp_path: Path) -> None:
    column = np.arange(CHUNK_ROWS + 3)
    write(tmp_path / "a.csv", {"a": column, "b": column / 3})
    read = np.loadtxt(tmp_path / "a.csv", delimiter=",", skiprows=1)
    assert np.array_equal(read[:, 0], column)
    assert np.array_equal(read[:, 1], column / 3)


def test_distribution() -> None:
    x, y = distribution(np.array([3, 1, 1, 7]))
    assert x.tolist() == [1, 3, 7]
    assert y.tolist() == [1, 0.5, 0.25]
    assert [len(column) for column in distribution(np.empty(0))] == [0, 0]


def test_an_empty_graph(tmp_path: Path) -> None:
    path = tmp_path / "empty.lpma"
    lpma.Graph(device="cpu").save(path)
    for algorithm in (
        "core",
        "truss",
        "triangles",
        "components",
        "strong-components",
        "clustering",
        "pagerank",
    ):
        found = document("run", algorithm, path, "--plot", tmp_path / "p.png")
        assert (found["vertices"], found["top"]) == (0, [])
    run("run", "bfs", path, "--source", 0, status=1)


def test_failures_are_status_1(store: Path, tmp_path: Path) -> None:
    g = lpma.Graph(device="cpu", weight_dtype=None)
    g.insert(1, 2)
    g.save(tmp_path / "unweighted.lpma")
    for arguments in (
        ["core", tmp_path / "absent.txt"],
        ["core", "nothing"],
        ["core", tmp_path],
        ["bfs", store, "--source", 11],
        ["pagerank", tmp_path / "unweighted.lpma", "--weighted"],
        ["shortest-paths", tmp_path / "unweighted.lpma", "--source", 1],
        ["core", store, "--out", tmp_path / "none" / "x.csv"],
    ):
        run("run", *arguments, status=1)


def test_a_stream_is_said_to_be_one(tmp_path: Path) -> None:
    with ingest.SqliteLog(tmp_path / "log.db") as log:
        log.create_topic(ingest.types.UPDATES)
    for target in (tmp_path / "log.db", "kafka://localhost:1"):
        for arguments in (
            ["run", "bicliques", target, "--p", 2, "--q", 2],
            ["run", "core", target],
            ["load", target, tmp_path / "x.lpma"],
        ):
            failed = run(*arguments, status=1).stderr
            assert f"{target}: a stream is not read here: `lpma ingest`" in failed


def test_bad_usage_is_status_2(store: Path, tmp_path: Path) -> None:
    for arguments in (
        ["cores", store],
        ["core"],
        ["bfs", store],
        ["bfs", store, "--source", -1],
        ["core", store, "--source", 10],
        ["core", store, "--weighted"],
        ["bfs", store, "--source", 10, "--max-iter", 3],
        ["pagerank", store, "--damping", 2],
        ["core", store, "--out", tmp_path / "x.txt"],
        ["core", store, "--plot", tmp_path / "x.pdf"],
        ["core", store, "--undirected"],
        ["core", store, "--columns", "src dst"],
        ["core", store, "--device", "gpu"],
    ):
        run("run", *arguments, status=2)


def biclique_file(tmp_path: Path) -> Path:
    """All edges of 1 … 4 and 10 … 14, and two of 7; the ends in either order."""
    path = tmp_path / "sides.txt"
    edges = [(u, v) for u in range(1, 5) for v in range(10, 15)] + [(7, 14), (7, 20)]
    path.write_text("".join(f"{v} {u}\n" if u % 2 else f"{u} {v}\n" for u, v in edges))
    return path


def test_bicliques(tmp_path: Path) -> None:
    path = biclique_file(tmp_path)
    found = document("run", "bicliques", path, "--p", 3, "--q", 4)
    assert (found["bicliques"], found["p"], found["q"], found["vertices"]) == (20, 3, 4, 11)
    assert found["list"] == []
    assert document("run", "bicliques", path, "--p", 1, "--q", 5, "--left", 10)["bicliques"] == 4
    listed = document("run", "bicliques", path, "--p", 2, "--q", 2, "--left", 9, "--list", 2)
    assert listed["bicliques"] == 60
    assert listed["list"] == [
        {"left": [1, 2], "right": [10, 11]},
        {"left": [1, 2], "right": [10, 12]},
    ]
    for method in ("closed", "wedges", "gbc", "pivot", "auto"):
        p = {"closed": 1, "wedges": 2}.get(method, 3)
        found = document("run", "bicliques", path, "--p", p, "--q", 4, "--method", method)
        assert found["bicliques"] == {1: 20, 2: 30, 3: 20}[p]
    text = run("run", "bicliques", path, "--p", 4, "--q", 5, "--list", 1).stdout
    assert "1 2 3 4" in text
    assert "10 11 12 13 14" in text


def test_bicliques_of_what_has_none(tmp_path: Path, store: Path) -> None:
    failed = run("run", "bicliques", store, "--p", 2, "--q", 2, status=1)
    assert "has a loop" in failed.stderr
    path = biclique_file(tmp_path)
    assert (
        "lies within a side"
        in run("run", "bicliques", path, "--p", 2, "--q", 2, "--left", 12, status=1).stderr
    )
    for wrong in (("--p", 0, "--q", 2), ("--p", 3, "--q", 3, "--method", "best"), ("--p", 3),
                  ("--p", 3, "--q", 3, "--method", "wedges")):  # fmt: skip
        run("run", "bicliques", path, *wrong, status=2)
    told = run("run", "bicliques", path, *wrong, status=2).stderr
    assert "wedges is for p or q = 2, not (3, 3)" in told


def test_an_error_within_a_count_is_not_the_methods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> int:
        raise ValueError("within")

    monkeypatch.setattr(algorithms, "count_bicliques", fail)
    command = ["run", "bicliques", str(biclique_file(tmp_path)), "--p", "2", "--q", "2"]
    with pytest.raises(ValueError, match="within"):
        CliRunner().invoke(app, command, catch_exceptions=False)


def test_bicliques_name_a_vertex_by_its_id(tmp_path: Path) -> None:
    """Not by its row in the compact snapshot."""
    path = tmp_path / "triangle.txt"
    path.write_text("1000000 2000000\n2000000 3000000\n3000000 1000000\n")
    loop = tmp_path / "loop.txt"
    loop.write_text("500 500\n")
    for told, arguments in (
        ("vertex 1000000 is in a component with an odd cycle", [path]),
        ("the edge of 2000000 and 3000000 lies within a side", [path, "--left", 1_500_000]),
        ("vertex 500 has a loop", [loop]),
        ("vertex 500 has a loop", [loop, "--left", 600]),
    ):
        failed = run("run", "bicliques", *arguments, "--p", 2, "--q", 2, status=1)
        assert told in failed.stderr
