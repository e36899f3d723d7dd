"""`lpma run diversity`: on stores, files and a live stream, with a picture of the best vertex."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ingest
import lpma
from algorithms.diversity.model import LARGEST_K
from algorithms.diversity.network import ego_network
from ingest.plots import ego as ego_picture_module
from tests.support.command_line import PNG, document, run

SVG = "{http://www.w3.org/2000/svg}svg"


def caveman() -> list[tuple[int, int]]:
    """Vertex 90 is joined to two cliques of four and to 50; vertex 7 to one of the cliques."""
    first, second = (10, 20, 30, 40), (11, 21, 31, 41)
    edges = [(u, v) for clique in (first, second) for u in clique for v in clique if u < v]
    return [*edges, *((90, v) for v in (*first, *second, 50)), *((u, 7) for u in first)]


FIRST, SECOND = [10, 20, 30, 40], [11, 21, 31, 41]


@pytest.fixture
def edge_file(tmp_path: Path) -> Path:
    path = tmp_path / "edges.txt"
    path.write_text("".join(f"{u} {v}\n" for u, v in caveman()))
    return path


def test_the_best(edge_file: Path, tmp_path: Path) -> None:
    table, picture = tmp_path / "all.csv", tmp_path / "best.png"
    found = document(
        "run", "diversity", edge_file, "--model", "truss", "--k", 4, "--top", 2,
        "--out", table, "--plot", picture,
    )  # fmt: skip
    assert (found["model"], found["k"], found["largest_score"]) == ("truss", 4, 2)
    assert found["top"] == [
        {"vertex": 90, "score": 2, "contexts": [FIRST, SECOND]},
        {"vertex": 7, "score": 1, "contexts": [FIRST]},
    ]
    assert picture.read_bytes().startswith(PNG)
    with open(table, newline="") as file:
        rows = {row["vertex"]: row["score"] for row in csv.DictReader(file)}
    assert rows == {str(v): "1" for v in (*FIRST, *SECOND, 7)} | {"50": "0", "90": "2"}


def test_a_store_and_other_models(edge_file: Path, tmp_path: Path) -> None:
    run("load", edge_file, tmp_path / "graph.lpma")
    for model, k, contexts in (
        ("component", 1, [FIRST, SECOND, [50]]), ("core", 3, [FIRST, SECOND]), ("core", 4, None)
    ):  # fmt: skip
        found = document("run", "diversity", tmp_path / "graph.lpma", "--model", model, "--k", k)
        best = found["top"][0]
        assert (best["vertex"], best["contexts"]) == ((90, contexts) if contexts else (7, []))
    assert document("run", "diversity", edge_file, "--top", 0)["top"] == []


def test_for_people(edge_file: Path) -> None:
    last = run("run", "diversity", edge_file, "--top", 1).stdout.splitlines()[-1]
    assert last.split() == ["90", "2", "of", "4,", "4"]


def test_of_many_contexts_people_see_the_first(tmp_path: Path) -> None:
    """Programs see them all."""
    path, pairs = tmp_path / "pairs.txt", 1012
    path.write_text("".join(f"0 {u}\n0 {u + 1}\n{u} {u + 1}\n" for u in range(1, 2 * pairs, 2)))
    command = ["run", "diversity", path, "--model", "component", "--k", 2, "--top", 1]
    last = run(*command).stdout.splitlines()[-1]
    assert last.split() == ["0", "1,012", "of", *["2,"] * 9, "2", "and", "1,002", "more"]
    contexts = document(*command)["top"][0]["contexts"]
    assert contexts == [[u, u + 1] for u in range(1, 2 * pairs, 2)]


def test_a_live_stream(tmp_path: Path) -> None:
    """Run again as the stream grows; deletions count, and nobody's queries are answered."""
    log_file, picture = tmp_path / "log", tmp_path / "best.svg"
    src, dst = np.array(caveman()).T
    with ingest.SqliteLog(log_file) as log:
        log.produce(ingest.types.UPDATES, ingest.encode_updates(src, dst))
        log.produce(ingest.types.UPDATES, b"no record")
        log.produce(ingest.types.QUERIES, ingest.encode_query("asked", lpma.Kind.DEGREE, 90))
        options = ["--every", 2, "--batch-size", 8, "--plot", picture]
        result = run("run", "diversity", log_file, *options)
        batches = -(-len(src) // 8)
        assert result.stderr.count("operations: largest score") == -(-batches // 2)
        found = document("run", "diversity", log_file, *options)
        assert (found["operations"], found["batches"]) == (len(src), batches)
        assert found["times_run"] == -(-batches // 2)
        assert found["top"][0]["contexts"] == [FIRST, SECOND]
        assert ElementTree.parse(picture).getroot().tag == SVG

        kinds = np.full(1, int(lpma.Kind.DELETE), np.uint8)
        log.produce(ingest.types.UPDATES, ingest.encode_updates(src[:1], dst[:1], kind=kinds))
        found = document("run", "diversity", log_file)
        assert found["times_run"] == 1
        written = {place.topic for place, end in log.end_offsets().items() if end}
        assert written == {ingest.types.UPDATES, ingest.types.QUERIES}
        assert found["top"][0] == {"vertex": 11, "score": 1, "contexts": [[*SECOND[1:], 90]]}


def test_an_empty_graph(tmp_path: Path) -> None:
    path = tmp_path / "empty.lpma"
    lpma.Graph(device="cpu").save(path)
    found = document("run", "diversity", path, "--out", tmp_path / "all.npz")
    assert (found["largest_score"], found["top"]) == (0, [])
    run("run", "diversity", path, "--plot", tmp_path / "p.png", status=1)
    with ingest.SqliteLog(tmp_path / "log") as log:
        log.create_topic(ingest.types.UPDATES)
    assert document("run", "diversity", tmp_path / "log")["times_run"] == 1


def test_a_picture_waits_for_a_vertex(tmp_path: Path) -> None:
    """A deletion of what is not there is an operation that leaves a stream's graph empty."""
    picture = tmp_path / "best.svg"
    options = [tmp_path / "log", "--plot", picture, "--every", 1, "--batch-size", 1]
    with ingest.SqliteLog(tmp_path / "log") as log:
        kinds = np.full(1, int(lpma.Kind.DELETE), np.uint8)
        log.produce(ingest.types.UPDATES, ingest.encode_updates([0], [1], kind=kinds))
        found = document("run", "diversity", *options)
        assert (found["vertices"], found["times_run"], "plot" in found) == (0, 1, False)
        assert not picture.exists()
        assert f"no picture in {picture}" in run("run", "diversity", *options).stderr
        log.produce(ingest.types.UPDATES, ingest.encode_updates([0], [1]))
        found = document("run", "diversity", *options)
        assert (found["vertices"], found["times_run"], found["plot"]) == (2, 2, str(picture))
        assert ElementTree.parse(picture).getroot().tag == SVG


def test_bad_usage_is_status_2(edge_file: Path, tmp_path: Path) -> None:
    with ingest.SqliteLog(tmp_path / "log") as log:
        log.create_topic(ingest.types.UPDATES)
    for arguments in (
        [edge_file, "--model", "clique"],
        [edge_file, "--k", 0],
        [edge_file, "--k", LARGEST_K + 1],
        [edge_file, "--every", 3],
        [edge_file, "--follow"],
        [edge_file, "--topic", "updates"],
        [tmp_path / "log", "--topic", "updates"],
        [edge_file, "--plot", tmp_path / "x.pdf"],
        [tmp_path / "log", "--columns", "src dst"],
        [tmp_path / "log", "--plot", tmp_path / "x.pdf"],
    ):
        run("run", "diversity", *arguments, status=2)
    assert document("run", "diversity", edge_file, "--k", LARGEST_K)["largest_score"] == 0


@given(sizes=st.lists(st.integers(1, 40), max_size=8), others=st.integers(0, 60))
def test_contexts_do_not_overlap(sizes: list[int], others: int) -> None:
    discs, ring = ego_picture_module.place(sizes, others)
    assert [len(disc) for disc in discs] == sizes
    assert len(ring) == others
    centers = [disc.mean(axis=0) for disc in discs]
    radii = [np.linalg.norm(d - c, axis=1).max() for d, c in zip(discs, centers, strict=True)]
    for i in range(len(sizes)):
        assert np.linalg.norm(centers[i]) > radii[i] - 0.5  # the owner stands at 0, 0
        for j in range(i):
            apart = np.linalg.norm(centers[i] - centers[j])
            assert apart > 0.9 * (radii[i] + radii[j])
    reach = max((np.linalg.norm(disc, axis=1).max() for disc in discs), default=0)
    assert others == 0 or np.linalg.norm(ring, axis=1).min() > reach


def test_large_pictures_are_thinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ego_picture_module, "MOST_EDGES", 5)
    n = 9
    graph: Any = (np.arange(0, n * n + 1, n), np.tile(np.arange(n), n))
    ego = ego_network(graph, 0)
    assert (len(ego.vertices), len(ego.src)) == (n - 1, (n - 1) * (n - 2) // 2)
    ego_picture_module.plot_ego(ego, 0, [ego.vertices[:4]], np.arange(n), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)
    with pytest.raises(IndexError, match="no vertex 9"):
        ego_network(graph, n)


def test_of_many_neighbours_the_largest_contexts_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path of six, a pair and a triangle among the neighbours of 0, and 10, alone."""
    edges = [*((u, u + 1) for u in range(11, 16)), (20, 21), (30, 31), (30, 32), (31, 32)]
    graph = lpma.Graph(device="cpu", directed=False)
    around = sorted({10, *(v for edge in edges for v in edge)})
    graph.insert(*np.array([*edges, *((0, v) for v in around)]).T)
    s = graph.snapshot()
    ego = ego_network(s, 0)
    contexts = [np.arange(11, 17), np.arange(20, 22), np.arange(30, 33)]
    picture = tmp_path / "ego.svg"
    for most, kept, points, lines, spokes in (
        (12, contexts, around, 9, 11),
        (11, [contexts[0], contexts[2], contexts[1]], around[1:], 9, 11),
        (9, [contexts[0], contexts[2]], [*range(11, 17), 30, 31, 32], 8, 9),
        (7, [contexts[0], contexts[2][:1]], [*range(11, 17), 30], 5, 7),
        (2, [contexts[0][:2]], [11, 12], 1, 2),
    ):
        monkeypatch.setattr(ego_picture_module, "MOST_VERTICES", most)
        part, parts = ego_picture_module.thinned(ego, contexts)
        assert part.vertices.tolist() == points
        assert [context.tolist() for context in parts] == [context.tolist() for context in kept]
        inside = {(u, v) for u, v in edges if u in points and v in points}
        at = part.vertices
        assert set(zip(at[part.src].tolist(), at[part.dst].tolist(), strict=True)) == inside
        assert len(part.src) == lines
        ego_picture_module.plot_ego(ego, 0, contexts, np.arange(s.num_rows), picture)
        groups = {group.get("id"): group for group in ElementTree.parse(picture).getroot().iter()}
        to_owner, faint, colored = (len(groups[f"LineCollection_{i}"]) for i in (1, 2, 3))
        assert (to_owner, faint + colored) == (spokes, lines)
        of_points, of_lines = (f" ({n:,} drawn)" if n < all_of_them else "" for n, all_of_them in
                               ((len(points), 12), (lines, 9)))  # fmt: skip
        title = f"12 neighbours{of_points}, 9 edges among them{of_lines}"
        assert f">{title}</text>" in picture.read_text()
    monkeypatch.setattr(ego_picture_module, "MOST_VERTICES", 2)
    part, parts = ego_picture_module.thinned(ego, [])
    assert (part.vertices.tolist(), len(part.src), list(parts)) == ([10, 11], 0, [])
