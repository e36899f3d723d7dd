"""Edge files on the command line: what is loaded, what is left out, what is not used, and what a
file is that is no edge list; by `lpma load`, `run` and `ingest` alike."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import ingest
import lpma
from ingest.cli import app
from ingest.sources.files import by_networkx
from tests.support.command_line import document, run
from tests.support.edge_files import drain

OWN = "from,to,amount,when\nalice,bob,3,10\nbob,5,1.5,20\n"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.csv"
    path.write_text(OWN)
    return path


def saving(command: str, source: Path, store: Path, *options: object) -> list[object]:
    """A command that makes a store of a file. `--columns` is an option of `load` alone."""
    if command == "ingest" and "--columns" in options:
        at = options.index("--columns")
        options = (*options[:at], "--set", f"file.columns={options[at + 1]}", *options[at + 2 :])
    return [command, source, *([store] if command == "load" else ["--save", store]), *options]


@pytest.mark.parametrize("command", ["load", "ingest"])
def test_nothing_loaded_is_a_failure_and_nothing_is_written(
    own: Path, tmp_path: Path, command: str
) -> None:
    before = set(tmp_path.iterdir())
    more = ["-c", tmp_path / "state"] if command == "ingest" else []
    dense = [*more, "--no-names"]
    said = run(*saving(command, own, tmp_path / "g.lpma", *dense), status=1).stderr
    assert "left out 2 bad lines (src: not an integer of 64 bits: 2)" in said
    assert "--names" in said
    assert "alice,bob" in said
    for text in ("", "# nothing\n"):
        own.write_text(text)
        said = run(*saving(command, own, tmp_path / "g.lpma", *more), status=1).stderr
        assert "it holds no edge" in said
    assert set(tmp_path.iterdir()) == before
    assert run("run", "core", own, "--no-names", status=1).stderr


@pytest.mark.parametrize("command", ["load", "ingest"])
def test_named_vertices_and_columns_that_are_not_used(
    own: Path, tmp_path: Path, command: str
) -> None:
    store = tmp_path / "g.lpma"
    unused = ["--weight", "none", "--time", "none"]
    result = run(*saving(command, own, store, "--names", *unused, "--json"))
    found = json.loads(result.stdout)
    assert (found["edges"], found["named"], found["rejected"]) == (2, 3, 0)
    assert found["unused_columns"] == ["amount", "when"]
    said = " ".join(result.stderr.split())
    assert "2 columns unused (amount, when)" in said
    run(*saving(command, own, store, "--columns", "src dst - -"))
    assert document("query", "edge", store, "alice", "bob")["results"][0]["weight"] == 1

    columns = ["--columns", "src dst weight time"]
    found = document(*saving(command, own, store, "--names", *columns))
    assert found["unused_columns"] == []
    (edge,) = document("query", "edge", store, "bob", "5")["results"]
    assert (edge["weight"], edge["time"]) == (1.5, 20)
    skipped = document(*saving(command, own, store, "--names", "--columns", "src dst - -"))
    assert skipped["unused_columns"] == []  # somebody said so


def test_a_first_line_that_may_be_a_header_is_told_of(tmp_path: Path) -> None:
    path, store = tmp_path / "e.csv", tmp_path / "g"
    path.write_text("buyer,seller\nann,bob\n")
    result = run("load", path, store, "--names", "--json")
    found = json.loads(result.stdout)
    assert (found["operations"], found["header"]) == (2, None)
    assert "the first line, 'buyer,seller', is read as an edge" in " ".join(result.stderr.split())
    assert document("load", path, store, "--header")["operations"] == 1
    path.write_text("from,to\nann,bob\n")
    result = run("load", path, store, "--names", "--json")
    found = json.loads(result.stdout)
    assert (found["operations"], found["header"]) == (1, "from,to")
    assert "first line" not in result.stderr
    path.write_text("1,2\n")
    assert "first line" not in run("load", path, store, "--names").stderr


def test_an_algorithm_on_a_file_of_names(own: Path) -> None:
    found = document("run", "bfs", own, "--names", "--source", "alice", "--top", 1)
    assert (found["reached"], found["top"]) == (3, [{"vertex": 5, "hops": 2}])


@pytest.mark.parametrize("command", ["load", "ingest"])
def test_lines_left_out_are_counted_by_reason(tmp_path: Path, command: str) -> None:
    path = tmp_path / "e.txt"
    lines = ["1 2", "x 2", "1", "y 2", "3 4", "3 z", "4294967295 1", "5 6"]
    path.write_text("\n".join(lines))
    result = run(*saving(command, path, tmp_path / "g.lpma", "--no-names", "--json"))
    found = json.loads(result.stdout)
    assert (found["operations"], found["rejected"]) == (3, 5)
    assert found["rejected_by"] == {
        "src: not an integer of 64 bits": 2,
        "1 field where 2 are expected": 1,
        "dst: not an integer of 64 bits": 1,
        "src: ids go from 0 to 4294967294": 1,
    }
    assert [one["line"] for one in found["first_rejected"]] == ["x 2", "1", "y 2"]
    said = " ".join(result.stderr.split())
    assert "left out 5 bad lines (src: not an integer of 64 bits: 2; " in said
    shown = "line 2, 'x 2', line 3, '1', line 4, 'y 2'"
    assert f"the first: {shown}. Text and any 64-bit integer name vertices" in said
    found = document(*saving(command, path, tmp_path / "g.lpma", "--names"))
    assert (found["operations"], found["rejected"]) == (7, 1)


def test_a_source_of_names_needs_a_pipeline_of_names(own: Path) -> None:
    """Nobody has to say that a file's vertices go by names: of one read as ids, all lines would be
    left out."""
    for source in (ingest.FileSource(own, names=True), ingest.FileSource(own)):
        with pytest.raises(ingest.PipelineError, match="say names=True here as well"):
            ingest.Pipeline(source, lpma.Graph(device="cpu"))
    with ingest.Pipeline(ingest.FileSource(own), lpma.Graph(names=True, device="cpu")) as pipeline:
        assert pipeline.run() == 2
    with ingest.Pipeline(ingest.FileSource(own, names=False), lpma.Graph(device="cpu")) as pipeline:
        assert (pipeline.run(), sum(pipeline.outputs.rejected_by.values())) == (0, 2)


def test_what_the_vertices_go_by_is_guessed_once(tmp_path: Path) -> None:
    """Else a file could be read in two ways, before and after it was sought in."""
    path = tmp_path / "e.csv"
    path.write_text("src,dst\n" + "1,2\n" * 100 + "ann,bob\n")
    source = ingest.FileSource(path)
    found = drain(source)
    assert "src: not an integer" in str(found.pop(100))
    assert list(found.values()) == [(1, 2, 1.0, None, 0)] * 100
    source.seek({source.partition: 100})
    (again,) = source.poll()
    assert isinstance(again.value, ingest.sources.Rejected)


JSON_LINES = """{"user": "ann", "item": 5, "n": 2, "at": 7}
{"user": "ann", "item": "5", "n": 1}

{"user": "ann"}
{"user": "bob", "item": 5, "n": 4, "at": 9}
nothing
"""


ENDS = ("--source", "a", "--target", "b")
FIELDS = ("--source", "user", "--target", "item")


@pytest.mark.parametrize("command", ["load", "ingest"])
@pytest.mark.parametrize("name", ["e.jsonl", "e.ndjson.gz"])
def test_json_lines(tmp_path: Path, command: str, name: str) -> None:
    path, store = tmp_path / name, tmp_path / "g.lpma"
    data = JSON_LINES.encode() + b'{"user": "\xff", "item": 5}\n'
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    result = run(*saving(command, path, store, *FIELDS, "--names", "--json"))
    found = json.loads(result.stdout)
    assert (found["operations"], found["rejected"], found["named"]) == (3, 3, 4)
    assert found["rejected_by"] == {
        "dst: expected an integer or text, got nothing": 1, "not an object of JSON in UTF-8": 2
    }  # fmt: skip
    assert found["unused_columns"] == ["n", "at"]
    said = " ".join(result.stderr.split())
    assert "2 columns unused (n, at)" in said
    columns = ("--weight", "n", "--time", "at", "--names")
    run(*saving(command, path, store, *FIELDS, *columns))
    (edge,) = document("query", "edge", store, "bob", "5")["results"]
    assert (edge["weight"], edge["time"]) == (4, 9)
    (edge,) = document("query", "edge", store, "ann", '"5"')["results"]
    assert (edge["found"], edge["weight"]) == (True, 1)
    said = run(*saving(command, path, store, *FIELDS, "--no-names"), status=1).stderr
    assert "nothing was loaded" in said
    assert "--names" in said
    more = ("--source", "user", "--target", "item", "--weight", "n")
    assert document(*saving(command, path, store, *more))["operations"] == 3
    run(*saving(command, path, store, "--columns", "src dst"), status=1)


def test_json_lines_resume_without_being_told_again(tmp_path: Path) -> None:
    path, state = tmp_path / "e.jsonl", tmp_path / "state"
    path.write_text(JSON_LINES)
    run("ingest", path, "-c", state, *FIELDS, "--names", "--limit", 1)
    assert document("ingest", path, "-c", state)["total_operations"] == 3
    run("ingest", path, "-c", state, "--source", "item", "--target", "user", status=1)
    assert document("query", "degree", state, "ann")["results"][0]["degree"] == 2


@pytest.mark.parametrize("unit", ["s", "auto"])
def test_json_lines_with_times_in_a_unit(tmp_path: Path, unit: str) -> None:
    path, store = tmp_path / "e.jsonl", tmp_path / "g.lpma"
    path.write_text('{"user": 1, "item": 2, "at": 1700000000}\n')
    for command in ("load", "ingest"):
        run(*saving(command, path, store, *FIELDS, "--time", "at", "--time-unit", unit))
        (edge,) = document("query", "edge", store, 1, 2)["results"]
        assert edge["time"] == 1_700_000_000_000
    path.write_text('{"from": 1, "to": 2, "n": 3}\n')  # what is not named is guessed
    for command in ("load", "ingest"):
        run(*saving(command, path, store, "--weight", "n"))
        assert document("query", "edge", store, 1, 2)["results"][0]["weight"] == 3


def test_fields_of_a_file_without_json_are_its_columns(own: Path, tmp_path: Path) -> None:
    for command in (("load", own, tmp_path / "g"), ("ingest", own, "--save", tmp_path / "g")):
        told = run(*command, *FIELDS, status=1).stderr
        assert "no column 'user' for the source: the columns are 'from', 'to'" in told
        assert not (tmp_path / "g").exists()
    default = ("--set", "fields.default_weight=2")
    told = run("ingest", own, "--save", tmp_path / "g", *default, status=1)
    assert "not JSON lines, as a .jsonl has them" in told.stderr
    (tmp_path / "e.jsonl").write_text('{"src": 1, "dst": 2}\n')
    assert document("run", "core", tmp_path / "e.jsonl")["edges"] == 1


OTHERS: dict[str, tuple[Any, str]] = {
    "svg": (b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg">', "an SVG picture"),
    "bare svg": (b"<svg width='1'></svg>", "an SVG picture"),
    "html": (b"<!DOCTYPE html><p>", "XML or HTML"),
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(50), "a picture"),
    "random": (np.random.default_rng(1).bytes(5000), "binary data"),
    "few random": (np.random.default_rng(2).bytes(40), "binary data"),
    "json": (b'{"src": 1,\n "dst": 2}\n', "JSON"),
    "utf-16": ("1 2\n".encode("utf-16"), "UTF-16"),
    "xz": (b"\xfd7zXZ\x00abc", "unpack it first"),
}


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("name", ["e.txt", "e.csv", "e.txt.gz", "e.npz", "e.mtx"])
def test_other_files_are_named(tmp_path: Path, kind: str, name: str) -> None:
    content, message = OTHERS[kind]
    path = tmp_path / name
    if name.endswith(".gz"):
        content = gzip.compress(content)
    path.write_bytes(content)
    for command in ("load", "ingest"):
        said = run(*saving(command, path, tmp_path / "g.lpma", "--names"), status=1).stderr
        assert message in said
        assert str(path) in said
    assert sorted(p.name for p in tmp_path.iterdir()) == [name]


def test_a_store_or_an_archive_given_as_edges(tmp_path: Path) -> None:
    lpma.Graph(device="cpu").save(tmp_path / "g.lpma")
    said = run("load", tmp_path / "g.lpma", tmp_path / "h.lpma", status=1).stderr
    assert "a saved store" in said
    with zipfile.ZipFile(tmp_path / "e.csv", "w") as archive:
        archive.writestr("e.txt", "1 2\n")
        archive.writestr("f.txt", "1 2\n")
    assert (
        "a zip archive of 2 files"
        in run("load", tmp_path / "e.csv", tmp_path / "h", status=1).stderr
    )


def test_what_is_read_is_not_written_over(tmp_path: Path) -> None:
    edges, log = tmp_path / "e.txt", tmp_path / "s.log"
    edges.write_text("1 2\n")
    with ingest.SqliteLog(log) as made:
        made.produce("updates", ingest.encode_row(1, 2))
    before = {path: path.read_bytes() for path in (edges, log)}
    for command in (
        ["load", edges, edges], ["ingest", edges, "--save", edges], ["ingest", log, "--save", log],
        ["ingest", log, "-c", tmp_path / "c", "--set", f"outputs.statistics={log}"],
    ):  # fmt: skip
        said = run(*command, status=1).stderr
        assert "is what is read" in said
    assert {path: path.read_bytes() for path in before} == before


def test_lines_that_end_in_cr_alone(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_bytes(b"src,dst\r1,2\r3,4\r")
    assert document("load", path, tmp_path / "g.lpma")["edges"] == 2


def test_a_bad_line_of_a_stream_has_its_number(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text(
        "src,dst\n" + "".join(f"{i},{i + 1}\n" for i in range(2000)) + "a,b\n5,6\nc,d\n"
    )
    store, state = tmp_path / "g.lpma", tmp_path / "state"
    for more in (["--save", store, "--batch-size", 100], ["-c", state, "--batch-size", 2]):
        found = document("ingest", path, *more)
        assert [bad["number"] for bad in found["first_rejected"]] == [2002, 2004]
    assert "line 2002, 'a,b'" in " ".join(run("ingest", path, "--save", store).stderr.split())


@pytest.mark.parametrize("window, more, kept", [
    ("90d", [], 2), ("90d", ["--time-unit", "s"], 1), ("7776000", [], 1),
])  # fmt: skip
def test_a_window_in_milliseconds_over_seconds_is_told(
    tmp_path: Path, window: str, more: list[str], kept: int
) -> None:
    path = tmp_path / "own.csv"
    path.write_text("from,to,when\n1,2,1700000000\n2,3,1793923200\n")
    store = tmp_path / "g.lpma"
    for command in (["ingest", path, "--save", store], ["load", path, store]):
        said = run(*command, "--window", window, *more).stderr
        assert ("--time-unit s makes them milliseconds, as windows" in said) == (not more)
        assert lpma.Graph.load(store, "cpu").num_edges == kept


# -- what is refused, what is told -----------------------------------------------------------------


@pytest.mark.parametrize("command", [("load",), ("run", "core")])
def test_too_many_lines_left_out_is_status_1(tmp_path: Path, command: tuple[str, ...]) -> None:
    path, store = tmp_path / "e.txt", tmp_path / "g.lpma"
    path.write_text("1 2\n" * 1000 + "x\n" * 11)
    more = [store] if command == ("load",) else []
    said = run(*command, path, *more, status=1).stderr
    assert "left out 11 bad lines" in said
    assert "--accept-bad 0.011" in said
    assert not store.exists()
    said = run(*command, path, *more, "--accept-bad", 0.011).stderr
    assert "left out 11 bad lines" in " ".join(said.split())
    path.write_text("1 2\n" * 1001 + "x\n" * 10)
    run(*command, path, *more)


def test_what_a_row_does_by_options(tmp_path: Path) -> None:
    path, store = tmp_path / "e.csv", tmp_path / "g.lpma"
    path.write_text("src,dst,op\n1,2,follow\n1,3,follow\n1,2,unfollow\n")
    said = run("load", path, store, status=0).stderr
    assert "column op is not read: --kind op" in " ".join(said.split())
    assert lpma.Graph.load(store, "cpu").num_edges == 2
    store.unlink()
    said = run("load", path, store, "--kind", "op", status=1).stderr
    assert "'follow', 'unfollow'" in said
    assert not store.exists()
    words = "follow=insert,unfollow=delete"
    ways = ("load", "--kind-map", words), ("ingest", "--set", f"fields.kinds={words}")
    for command, *kinds in ways:
        run(*saving(command, path, store, "--kind", "op", *kinds))
        assert lpma.Graph.load(store, "cpu").num_edges == 1
    store.unlink()
    path.write_text("src,dst,w,op\n1,2,5,follow\n1,3,5,follow\n1,2,7,rate\n1,3,0,rate\n")
    words = "follow=insert,rate=set"
    run("load", path, store, "--weight", "w", "--kind", "op", "--kind-map", words)
    graph = lpma.Graph.load(store, "cpu")
    edge = graph.edge(1, 2)
    assert edge is not None
    assert (edge.weight, graph.num_edges) == (7.0, 1)
    run("load", path, store, "--kind", "op", "--kind-map", "follow", status=2)
    run("load", path, store, "--decimal", ",,", status=2)


def test_text_in_a_column_of_weights_has_a_hint(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("a,b,w\n" + "1,2,heavy\n" * 12 + "2,3,4\n")
    told = run("load", path, tmp_path / "g.lpma", *ENDS, "--weight", "w", status=1).stderr
    assert "--weight none reads none" in told
    run("load", path, tmp_path / "g.lpma", *ENDS, "--weight", "none")


@pytest.mark.parametrize("text", ["1,2\n2,3\n", '{"src":1,"dst":2}\n{"src":2,"dst":3}\n'])
def test_stdin_is_a_file_too(tmp_path: Path, text: str) -> None:
    store = tmp_path / "g.lpma"
    result = CliRunner().invoke(app, ["load", "-", str(store)], input=text)
    assert result.exit_code == 0
    assert "reading stdin" in result.stderr
    assert lpma.Graph.load(store, "cpu").num_edges == 2


@pytest.mark.parametrize("text", ["1,2\n2,3\n", '{"src":1,"dst":2}\n{"src":2,"dst":3}\n'])
def test_a_pipe_is_read_as_stdin_is(tmp_path: Path, text: str) -> None:
    pipe, store = tmp_path / "pipe", tmp_path / "g.lpma"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as beside:
        writing = beside.submit(pipe.write_text, text)
        found = document("load", pipe, store)
        writing.result()
        writing = beside.submit(pipe.write_text, "")
        said = run("load", pipe, store, status=1).stderr
        writing.result()
    assert (found["source"], found["operations"]) == (str(pipe), 2)
    assert f"{pipe}: nothing was loaded" in said
    assert lpma.Graph.load(store, "cpu").num_edges == 2


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    pipe, at, store = tmp_path / "pipe", tmp_path / "socket", tmp_path / "g.lpma"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(at))
        assert "a socket: pipe what it sends" in run("load", at, store, status=1).stderr
        assert "a socket: pipe what it sends" in run("ingest", at, "--save", store, status=1).stderr
    assert "a pipe" in run("ingest", pipe, "--save", store, status=1).stderr
    for read in (ingest.read_edges, ingest.FileSource):
        with pytest.raises(ingest.SourceError, match=r"a pipe.*`lpma load`"):
            read(pipe)
    assert "a directory" in run("ingest", tmp_path, "--save", store, status=1).stderr
    assert "no such file" in run("load", tmp_path / "none.csv", store, status=1).stderr
    assert not store.exists()


def test_a_large_graph_is_told_before_networkx_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    networkx = pytest.importorskip("networkx")
    path = tmp_path / "a.gml"
    networkx.write_gml(networkx.path_graph(3, create_using=networkx.DiGraph), path)
    assert "holds the graph whole" not in run("load", path, tmp_path / "g.lpma").stderr
    monkeypatch.setattr(by_networkx, "TOLD_BYTES", 10)
    said = CliRunner().invoke(app, ["load", str(path), str(tmp_path / "g.lpma")]).stderr
    assert said.index("B of GML are read by networkx") < said.index("reading a.gml")


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1"])
def test_a_terminal_that_cannot_show_a_name(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "e.csv"
    path.write_text("from,to\n王,bob\nbob,Łukasz\n王,Łukasz\n", encoding="utf-8")
    program = "from ingest.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "run", "core", str(path)], capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": str(Path.cwd())},
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    assert rb"\u738b" in done.stdout


def test_two_kinds_of_vertices_reach_the_bicliques(tmp_path: Path) -> None:
    path, store = tmp_path / "e.csv", tmp_path / "g.lpma"
    path.write_text("user,item\n5,5\n5,6\n6,5\n")
    said = " ".join(run("load", path, store).stderr.split())
    assert "columns user and item may be two kinds of vertices" in said
    run("load", path, store, "--bipartite")
    assert lpma.Graph.load(store, "cpu").left == 7
    found = document("run", "bicliques", store, "--p", 1, "--q", 2)
    assert (found["left"], found["bicliques"]) == (7, 1)


@pytest.mark.parametrize("block", [16, 1 << 22])
@pytest.mark.parametrize("form", ["csv", "txt", "jsonl", "parquet"])
def test_a_line_that_is_refused_later_is_shown_as_it_stands(
    form: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An id up to which no figures are tracked."""
    monkeypatch.setattr("ingest.sources.files.opening.BLOCK_BYTES", block)
    rows, path = [(1, 2), (2, 4_000_000_000), (3, 4), (4, 4_000_000_001)], tmp_path / f"a.{form}"
    if form == "parquet":
        parquet.write_table(
            pyarrow.table({"src": [u for u, _ in rows], "dst": [v for _, v in rows]}), path
        )
        shown = [(2, "{'source': 2, 'target': 4000000000}")]
    elif form == "jsonl":
        path.write_text("".join(f'{{"src":{u},"dst":{v}}}\n' for u, v in rows))
        shown = [(2, '{"src":2,"dst":4000000000}'), (4, '{"src":4,"dst":4000000001}')]
    else:
        mark = "," if form == "csv" else " "
        lines = ("src,dst", "", "1,2", "x", "2,4000000000", "3,4", "4,4000000001", "")
        path.write_text("\n".join(lines).replace(",", mark))
        shown = [(5, f"2{mark}4000000000"), (7, f"4{mark}4000000001")]
    found = document("ingest", path, "--track", "core", "-c", tmp_path / "state")
    assert (found["operations"], found["dead_letters"]["unserved"]) == (2, 2)
    told = [(one["number"], one["line"]) for one in found["first_rejected"]]
    assert [one for one in shown if one in told] == shown
    (reason,) = [reason for reason in found["rejected_by"] if "is an id above" in reason]
    assert reason.startswith("4000000000 is")
    assert found["rejected_by"][reason] == 2
    monkeypatch.setattr("ingest.sources.files.source.LAST_PIECES", 0)  # it is long gone
    found = document("ingest", path, "--track", "core", "-c", tmp_path / "other")
    gone: Any = [one["line"] for one in found["first_rejected"] if one["number"] is None]
    assert gone == ["2 4000000000", "4 4000000001"]
