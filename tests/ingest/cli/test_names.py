"""Names through the command line: what came in by name is asked for, computed on, written and shown
by name; what has no place for names has a table of them beside it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest.formats.names import plain_name
from ingest.state.vertex_names import VertexNames, name_of, table_path, word_of, write_table
from tests.support import containers
from tests.support.command_line import PNG, document, run

# A triangle with a tail, and a loop: the integer 5 and the text "5" are two vertices.
Edge = tuple[int | str, int | str]
EDGES: list[Edge] = [
    ("alice", 2**63 + 1), (2**63 + 1, "5"), ("5", "alice"), ("alice", 5), (5, -7),
    ('b "o", b\n', "[red]$x$"), ("[red]$x$", "[red]$x$"),
]  # fmt: skip
NAMES = list(dict.fromkeys((type(n), n) for edge in EDGES for n in edge))
CORE = {"alice": 2, 2**63 + 1: 2, "5": 2, 5: 1, -7: 1, 'b "o", b\n': 1, "[red]$x$": 1}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    with ingest.SqliteLog(tmp_path / "log") as log:
        for src, dst in EDGES:
            log.produce(ingest.types.UPDATES, ingest.encode_row(src, dst, names=True))
    return tmp_path / "log"


@pytest.fixture(params=["checkpoint", "saved", "resumed", "an older store"])
def state(request: pytest.FixtureRequest, log: Path, tmp_path: Path) -> Path:
    """The graph of EDGES, kept in each of the ways there are."""
    checkpoint, saved = tmp_path / "state", tmp_path / "graph.lpma"
    if request.param == "resumed":
        run("ingest", log, "-c", checkpoint, "--names", "--limit", 3)
        run("ingest", log, "-c", checkpoint)
        return checkpoint
    told = document("ingest", log, "-c", checkpoint, "--save", saved, "--names")
    assert told["named"] == len(NAMES)
    if request.param == "an older store":
        as_before(saved)
    return checkpoint if request.param == "checkpoint" else saved


def as_before(store: Path) -> None:
    """Rewrite a store as releases did that kept the names in a table beside it."""
    header, columns = containers.read(store)
    graph = lpma.Graph.load(store, "cpu")
    assert graph.names is not None
    digest = write_table(store, VertexNames(graph.names), np.arange(len(graph.names)))
    ids = {name: column for name, column in columns.items() if not name.startswith("name_")}
    containers.write(store, header | {"names": digest}, ids)


def both(column: list[Any]) -> set[tuple[type, Any]]:
    return {(type(name), name) for name in column}


WORDS: list[int | str] = [
    0, 5, -5, 2**64 - 1, "5", "-5", "007", "+5", "alice", '"', '"a"', "a b", "é\x1b\n", "5.0",
    str(2**64),
]  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_a_word_brings_back_its_name(name: int | str) -> None:
    word = word_of(name)
    assert name_of(word) == name
    assert type(name_of(word)) is type(name)
    assert word.isprintable()


def test_words_that_name_nothing() -> None:
    for word in ("", '""', "x" * 1025, '"' + "x" * 1025 + '"'):
        with pytest.raises(ingest.errors.WordError):
            name_of(word)
    assert (plain_name("-0"), plain_name("5"), plain_name("05")) == ("-0", 5, "05")


def test_queries(state: Path) -> None:
    def results(*arguments: object) -> Any:
        return document("query", *arguments)["results"]

    found = results("degree", state, "alice", "5", '"5"', 2**63 + 1, "nobody")
    assert [(r["vertex"], r["degree"], r["present"]) for r in found] == [
        ("alice", 2, True), (5, 1, True), ("5", 1, True), (2**63 + 1, 1, True),
        ("nobody", 0, False),
    ]  # fmt: skip
    assert both(results("successors", state, "alice")[0]["ids"]) == both([2**63 + 1, 5])
    assert both(results("hops", state, "alice", "-k", 2)[0]["ids"]) == both([2**63 + 1, "5", 5, -7])
    assert results("edge", state, '"5"', "alice")[0]["found"]
    assert not results("edge", state, "5", "alice")[0]["found"]
    assert [r["found"] for r in results("vertex", state, "nobody", 0, "alice")] == [
        False, False, True
    ]  # fmt: skip
    assert run("query", "degree", state, '"5"').stdout == 'degree "5": 1\n'
    shown = run("query", "successors", state, 'b "o", b\n').stdout
    assert shown.splitlines()[0] == 'successors of "b \\"o\\", b\\n": 1'
    assert shown.splitlines()[1].startswith("  [red]$x$  weight 1.0")


def test_algorithms(state: Path, tmp_path: Path) -> None:
    table = tmp_path / "core.csv"
    found = document("run", "core", state, "--top", 9, "--out", table)
    assert {(type(r["vertex"]), r["vertex"]): r["core"] for r in found["top"]} == {
        (type(name), name): core for name, core in CORE.items()
    }
    assert '\n"5",2\n' in table.read_text()  # text in quotes,
    assert "\n5,1\n" in table.read_text()  # an integer without
    with open(table, newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["vertex", "core"]
    assert [r[0] for r in rows[1:]] == [str(name) for _, name in NAMES]
    shown = run("run", "core", state, "--top", 9).stdout
    assert "[red]$x$" in shown  # no markup
    assert '"5"' in shown
    document("run", "pagerank", state, "--out", tmp_path / "rank.npz")
    with np.load(tmp_path / "rank.npz") as arrays:
        assert arrays.files == ["vertex", "vertex_number", "rank"]
        assert arrays["vertex"].tolist() == [str(name) for _, name in NAMES]
        assert arrays["vertex_number"].tolist() == [kind is int for kind, _ in NAMES]
    truss = document("run", "truss", state, "--top", 3)["top"]
    assert both([r["src"] for r in truss] + [r["dst"] for r in truss]) == both(
        ["alice", 2**63 + 1, "5"]
    )
    parts = document("run", "components", state)["top"]
    assert parts == [{"component": "alice", "size": 5}, {"component": 'b "o", b\n', "size": 2}]
    found = document("run", "triangles", state, "--top", 1)
    assert found["top"] == [{"vertex": "alice", "triangles": 1}]


def test_bfs_from_a_name(state: Path) -> None:
    found = document("run", "bfs", state, "--source", '"5"', "--top", 1)
    assert (found["source"], found["reached"], found["farthest"]) == ("5", 5, 3)
    assert found["top"] == [{"vertex": -7, "hops": 3}]
    found = document("run", "bfs", state, "--source", 5)
    assert (found["source"], found["reached"]) == (5, 2)
    assert "no vertex nobody" in run("run", "bfs", state, "--source", "nobody", status=1).stderr
    assert "no vertex 0" in run("run", "bfs", state, "--source", 0, status=1).stderr


def test_diversity_and_its_picture(state: Path, tmp_path: Path) -> None:
    picture = tmp_path / "ego.svg"
    options = ("--model", "component", "--k", 1, "--top", 1, "--plot", picture)
    found = document("run", "diversity", state, *options)
    (best,) = found["top"]
    assert (best["vertex"], best["score"]) == ("alice", 2)
    assert sorted(map(both, best["contexts"]), key=len) == [both([5]), both([2**63 + 1, "5"])]
    assert b"alice" in picture.read_bytes()
    run("run", "diversity", state, *options[:-1], tmp_path / "ego.png")
    assert (tmp_path / "ego.png").read_bytes().startswith(PNG)


def test_bicliques(log: Path, tmp_path: Path) -> None:
    with ingest.SqliteLog(tmp_path / "buys") as buys:
        for src, dst in [("ann", "tea"), ("ann", "jam"), ("bob", "tea"), ("bob", "jam")]:
            buys.produce(ingest.types.UPDATES, ingest.encode_row(src, dst, names=True))
    state = tmp_path / "state"
    run("ingest", buys.path, "-c", state, "--names")
    found = document("run", "bicliques", state, "--p", 2, "--q", 2, "--list", 1)
    assert found["list"] == [{"left": ["ann", "bob"], "right": ["tea", "jam"]}]
    assert (
        "names" in run("run", "bicliques", state, "--p", 2, "--q", 2, "--left", 1, status=2).stderr
    )
    run("ingest", log, "-c", tmp_path / "odd", "--names")
    refused = run("run", "bicliques", tmp_path / "odd", "--p", 1, "--q", 1, status=1).stderr
    assert "vertex [red]$x$ has a loop" in refused


def table_of(path: Path) -> dict[int, int | str]:
    with open(table_path(path), newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["row", "type", "name"]
    return {int(row): int(name) if kind == "integer" else name for row, kind, name in rows[1:]}


@pytest.mark.parametrize("compact", [(), ("--compact",)])
def test_exports_have_names_or_a_table_of_them(
    state: Path, tmp_path: Path, compact: tuple[str, ...]
) -> None:
    edges = {(type(u), u, type(v), v) for u, v in EDGES}
    for name in ("e.mtx", "e.npz"):
        path = tmp_path / name
        found = document("export", state, path, *compact)
        names: Any
        if name == "e.npz":
            s = lpma.Snapshot.read_npz(path)
            src, dst = np.repeat(np.arange(s.num_rows), np.diff(s.indptr)), s.indices
            assert s.names is not None
            names = s.names.of(range(s.num_rows)).tolist()
            assert found["names"] is None
        else:
            matrix = pytest.importorskip("scipy.io").mmread(path)
            src, dst = matrix.row + 1, matrix.col + 1
            assert found["names"] == str(path) + ".names.csv"
            names = table_of(path)
            assert sorted(names) == list(range(1, 1 + found["vertices"]))
        pairs = [(names[int(u)], names[int(v)]) for u, v in zip(src, dst, strict=True)]
        assert {(type(u), u, type(v), v) for u, v in pairs} == edges
    shown = run("export", state, tmp_path / "e.mtx").stdout
    assert "e.mtx.names.csv" in shown.replace("\n", "")
    parquet = pytest.importorskip("pyarrow.parquet")
    found = document("export", state, tmp_path / "e.parquet", *compact)
    assert found["names"] is None
    read = parquet.read_table(tmp_path / "e.parquet").to_pydict()
    assert list(read) == ["src", "src_number", "dst", "dst_number", "weight", "time"]

    def column(end: str) -> list[Any]:
        return [int(text) if number else text
                for text, number in zip(read[end], read[f"{end}_number"], strict=True)]  # fmt: skip

    pairs = list(zip(column("src"), column("dst"), strict=True))
    assert {(type(u), u, type(v), v) for u, v in pairs} == edges


@pytest.mark.parametrize(
    ("names", "dtype"),
    [([7, 2**40], "uint64"), ([7, -(2**40)], "int64"), (["ann", "b,ob"], "string")],
)
def test_parquet_of_names_of_one_kind(tmp_path: Path, names: list[Any], dtype: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    with ingest.SqliteLog(tmp_path / "log") as log:
        log.produce(ingest.types.UPDATES, ingest.encode_updates(names[:1], names[1:], names=True))
    run("ingest", log.path, "--save", tmp_path / "g.lpma", "--names")
    run("export", tmp_path / "g.lpma", tmp_path / "g.parquet")
    read = parquet.read_table(tmp_path / "g.parquet")
    assert (str(read.schema.field("src").type), read.column_names[:2]) == (dtype, ["src", "dst"])
    assert (read["src"].to_pylist(), read["dst"].to_pylist()) == (names[:1], names[1:])


def test_info(state: Path) -> None:
    assert document("info", state)["names"] == len(NAMES)


def test_a_store_is_not_read_without_its_names_or_with_others(log: Path, tmp_path: Path) -> None:
    store = tmp_path / "g.lpma"
    run("ingest", log, "--save", store, "--names")
    as_before(store)
    table = table_path(store)
    good = table.read_bytes()
    commands: list[tuple[list[str], list[object]]] = [
        (["run", "core"], []), (["info"], []), (["query", "degree"], ["alice"]),
        (["export"], [tmp_path / "e.mtx"]),
    ]  # fmt: skip
    for command, more in commands:
        table.write_bytes(good.replace(b"alice", b"alick"))
        assert "not the names" in run(*command, store, *more, status=1).stderr
        table.unlink()
        assert "keep the two files together" in run(*command, store, *more, status=1).stderr
    table.write_bytes(good)
    run("run", "core", store)
    assert lpma.Graph.load(store, device="cpu").num_edges == len(EDGES)


def test_a_damaged_dictionary_is_noticed(log: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    run("ingest", log, "-c", state, "--names")
    older, newest = sorted(state.glob("checkpoint-*/graph.lpma"))
    newest.write_bytes(newest.read_bytes().replace(b"alice", b"alick"))
    result = run("run", "core", state, "--json")
    assert json.loads(result.stdout)["vertices"] == 0  # the checkpoint before it, and this is said
    assert "checkpoint 1: " in result.stderr
    assert "name_text does not match its checksum" in result.stderr
    assert "checkpoint 0 is read" in result.stderr
    older.write_bytes(b"x" * older.stat().st_size)
    assert "no checkpoint can be read" in run("run", "core", state, status=1).stderr


def test_a_stream_is_watched_by_name(log: Path, tmp_path: Path) -> None:
    options = ("--model", "component", "--k", 1, "--top", 1)
    result = run("run", "diversity", log, *options, "--names", "--json")
    (best,) = json.loads(result.stdout)["top"]
    assert best["vertex"] == "alice"
    assert "vertex alice" in result.stderr
    found = document("run", "diversity", log, *options)
    assert found["rejected"] == len(EDGES)  # as ids, none of them can be read


def test_a_running_pipeline_is_asked_by_name(log: Path, tmp_path: Path) -> None:
    import threading

    source = ingest.SqliteLog(log)
    pipeline = ingest.Pipeline(source, lpma.Graph(device="cpu"), names=True, batch_interval=0.01)
    with source, pipeline:
        thread = threading.Thread(target=pipeline.run)
        thread.start()
        try:
            found = document("query", "degree", log, "alice", "5", '"5"')["results"]
            assert [r["degree"] for r in found] == [2, 1, 1]
            (first, second) = document("query", "successors", log, "alice", "5")["results"]
            assert both(first["ids"]) == both([2**63 + 1, 5])
            assert both(second["ids"]) == both([-7])
        finally:
            pipeline.stop()
            thread.join()


def test_ids_stay_ids(tmp_path: Path) -> None:
    """Where vertices go by ids, nothing is said of names, and a word is no vertex."""
    edges, store = tmp_path / "e.txt", tmp_path / "g.lpma"
    edges.write_text("0 1\n")
    assert document("load", edges, store)["named"] is None
    assert "not from this" not in run("export", store, tmp_path / "e.mtx").stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["e.mtx", "e.txt", "g.lpma"]
    table_path(tmp_path / "e.mtx").write_text("of an earlier export")
    said = " ".join(run("export", store, tmp_path / "e.mtx").stderr.split())
    assert "e.mtx.names.csv is not from this export" in said
    run("query", "degree", store, "alice", status=2)
    run("query", "degree", store, 2**32 - 1, status=2)
    assert document("info", store)["names"] is None
