"""The command line: what it prints where, its exit statuses, and that its figures are right."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import ingest
import lpma
from ingest.cli import app
from ingest.cli._console import bytes_said, failing_in_one_line, said, telling_in_json
from ingest.run_log import RunLog, read_run
from tests.conftest import real_graph

ROOT = Path(__file__).parents[3]
PNG = b"\x89PNG\r\n\x1a\n"
EDGES = [(0, 1), (0, 2), (1, 2), (2, 0), (0, 1), (3, 3)]

COMMANDS = [
    [],
    ["demo"],
    ["load"],
    ["ingest"],
    ["query"],
    *(["query", kind] for kind in ("edge", "successors", "predecessors", "hops", "degree")),
    ["query", "vertex"],
    ["export"],
    ["run"],
    ["run", "core"],
    ["run", "pagerank"],
    ["run", "diversity"],
    ["info"],
    ["doctor"],
    ["checkpoint"],
    *(["checkpoint", command] for command in ("ls", "verify", "prune")),
    ["plot"],
    ["plot", "latency"],
    ["plot", "degrees"],
]


def run(*arguments: object, status: int = 0) -> Any:
    """The command's result, after checking its exit status and where it said why."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == status, (result.stdout, result.stderr, result.exception)
    if status == 1:
        assert result.stdout == ""
        last = result.stderr.splitlines()[-1]
        assert last.startswith("lpma: ")
        assert "Traceback" not in result.stderr
    if status == 2:
        assert "Usage" in result.stderr
    return result


def document(*arguments: object) -> dict[str, Any]:
    """The one JSON document on stdout."""
    output = run(*arguments, "--json").stdout
    assert output.count("\n") == 1
    found: dict[str, Any] = json.loads(output)
    return found


@pytest.fixture
def edge_file(tmp_path: Path) -> Path:
    path = tmp_path / "edges.txt"
    path.write_text("# src dst\n" + "".join(f"{u} {v}\n" for u, v in EDGES))
    return path


@pytest.fixture
def store(edge_file: Path, tmp_path: Path) -> Path:
    path = tmp_path / "store.lpma"
    run("load", edge_file, path, "--predecessors")
    return path


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help(command: list[str]) -> None:
    text = run(*command, "--help").stdout
    assert "Usage" in text
    if command and command not in (["query"], ["plot"], ["checkpoint"], ["run"]):
        assert "--json" in text


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        *((["run", name], "TARGET") for name in ("core", "bfs", "bicliques", "diversity")),
        (["load"], "SOURCE STORE"),
        (["ingest"], "[SOURCE]"),
        (["query", "edge"], "STORE SRC DST"),
        (["query", "hops"], "STORE VERTICES..."),
        (["checkpoint", "ls"], "DIR"),
        (["plot", "latency"], "RUN PATH"),
    ],
    ids=str,
)
def test_usage_names_arguments_in_capitals(command: list[str], usage: str) -> None:
    expected = f"lpma {' '.join(command)} [OPTIONS] {usage}"
    for text in (run(*command, "--help").stdout, run(*command, "--none", status=2).stderr):
        line = next(line for line in text.splitlines() if "Usage:" in line)
        assert line.strip() == f"Usage: {expected}"


def test_an_interrupt_is_one_line_and_its_own_status(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where code called from C swallows it and something else fails for that."""

    @failing_in_one_line
    def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)

    @failing_in_one_line
    def failing_later() -> None:
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise RuntimeError("no compiled object yet")

    @failing_in_one_line
    def failing() -> None:
        raise RuntimeError("a programming error")

    before = signal.getsignal(signal.SIGINT)
    for command in (interrupted, failing_later):
        with pytest.raises(typer.Exit) as ended:
            command()
        assert ended.value.exit_code == 130
        assert capsys.readouterr().err == "lpma: interrupted\n"
        assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(RuntimeError, match="programming"):
        failing()


def test_an_interrupt_is_told_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, telling_in_json(True):
        signal.raise_signal(signal.SIGINT)
    assert ended.value.exit_code == 130
    event = json.loads(capsys.readouterr().err)
    assert (event["event"], event["message"]) == ("failed", "interrupted")


def test_version() -> None:
    assert run("--version").stdout.split()[0] == "lpma"


def test_load_a_file(edge_file: Path, tmp_path: Path) -> None:
    found = document("load", edge_file, tmp_path / "a.lpma")
    assert (found["operations"], found["vertices"], found["edges"]) == (6, 4, 5)
    assert found["rejected"] == 0
    assert found["directed"]
    assert found["bytes"] == (tmp_path / "a.lpma").stat().st_size
    graph = lpma.Graph.load(tmp_path / "a.lpma", device="cpu")
    graph.check()
    weight = graph.edges([0], [1]).weight
    assert weight is not None
    assert weight[0] == 2  # appended twice


def test_load_options(edge_file: Path, tmp_path: Path) -> None:
    options = ["--undirected", "--weight", "none", "--no-times", "--strategy", "top-down",
               "--segment-size", "4", "--batch-size", "2"]  # fmt: skip
    found = document("load", edge_file, tmp_path / "a.lpma", *options)
    assert (found["directed"], found["weight"], found["times"]) == (False, None, False)
    assert (found["strategy"], found["segment_size"], found["version"]) == ("top-down", 4, 3)
    assert found["edges"] == 4  # 0-1, 0-2, 1-2 and the loop


def test_load_symmetric_matrix_market(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 0.5\n3 3 4\n")
    directed = document("load", path, tmp_path / "d.lpma")
    undirected = document("load", path, tmp_path / "u.lpma", "--undirected")
    assert (directed["edges"], undirected["edges"]) == (3, 2)
    weight = lpma.Graph.load(tmp_path / "u.lpma", device="cpu").edges([0], [1]).weight
    assert weight is not None
    assert weight[0] == 0.5


def test_load_generated(tmp_path: Path) -> None:
    found = document("load", "rmat:scale=8,edges=1000", tmp_path / "a.lpma")
    assert found["operations"] == 1000
    assert not document("load", "grid:rows=3,columns=4", tmp_path / "b.lpma")["directed"]
    assert document("info", tmp_path / "b.lpma")["edges"] == 17


def test_load_bad_lines(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt.gz"
    path.write_bytes(gzip.compress(b"1 2\nx y\n3 4\n"))
    result = run("load", path, tmp_path / "a.lpma", "--json")
    assert json.loads(result.stdout)["rejected"] == 1
    assert "'x y'" in result.stderr
    run("load", path, tmp_path / "b.lpma", "--strict", status=1)
    assert not (tmp_path / "b.lpma").exists()


def test_load_a_real_dataset(tmp_path: Path) -> None:
    columns = real_graph("ca-HepTh")
    found = document("load", "ca-HepTh", tmp_path / "a.lpma")
    assert not found["directed"]
    assert found["edges"] == 25_973 + 25
    ends = np.concatenate((columns["src"], columns["dst"]))
    assert (found["vertices"], found["rows"]) == (len(np.unique(ends)), 1 + ends.max())
    facts = document("info", "ca-HepTh")
    assert facts["here"].endswith("ca-HepTh.npz")


def test_queries(store: Path) -> None:
    def results(*arguments: object) -> Any:
        found = document("query", *arguments)
        assert found["version"] == 1
        return found["results"]

    (edge,) = results("edge", store, 0, 1)
    assert edge["found"]
    assert edge["weight"] == 2
    assert results("edge", store, 1, 0)[0] == {
        "src": 1, "dst": 0, "found": False, "weight": None, "time": None
    }  # fmt: skip
    assert [r["ids"] for r in results("successors", store, 0, 3, 9)] == [[1, 2], [3], []]
    assert results("successors", store, 0)[0]["weight"] == [2, 1]
    assert [r["ids"] for r in results("predecessors", store, 2)] == [[0, 1]]
    assert results("hops", store, 1, "-k", 1) == [{"vertex": 1, "ids": [2]}]
    assert results("hops", store, 1, "--steps", 3) == [{"vertex": 1, "ids": [0, 1, 2]}]
    assert results("degree", store, 0, 2) == [
        {"vertex": 0, "degree": 2, "present": True}, {"vertex": 2, "degree": 1, "present": True}
    ]  # fmt: skip
    assert [r["found"] for r in results("vertex", store, 3, 4)] == [True, False]


def test_queries_for_people(store: Path) -> None:
    assert "present, weight 2" in run("query", "edge", store, 0, 1).stdout
    assert "absent" in run("query", "edge", store, 1, 0).stdout
    text = run("query", "successors", store, 0, "--limit", 1).stdout
    assert text.splitlines()[0] == "successors of 0: 2"
    assert "1 more" in text
    assert run("query", "degree", store, 0).stdout == "degree 0: 2\n"
    assert run("query", "degree", store, 3, 9).stdout == (
        "degree 3: 1\ndegree 9: 0 (there is no such vertex)\n"
    )
    assert run("query", "vertex", store, 3, 4).stdout == "vertex 3: present\nvertex 4: absent\n"


def test_export(store: Path, tmp_path: Path) -> None:
    s = lpma.Graph.load(store, device="cpu").snapshot()
    found = document("export", store, tmp_path / "s.npz")
    assert (found["format"], found["edges"]) == ("npz", 5)
    assert np.array_equal(lpma.Snapshot.read_npz(tmp_path / "s.npz").indices, s.indices)
    run("export", store, tmp_path / "s.mtx")
    scipy_io = pytest.importorskip("scipy.io")
    read = scipy_io.mmread(tmp_path / "s.mtx").toarray()
    assert np.array_equal(read, s.to_scipy().toarray())
    parquet = pytest.importorskip("pyarrow.parquet")
    run("export", store, tmp_path / "s.parquet", "--compact")
    assert parquet.read_table(tmp_path / "s.parquet").num_rows == 5


def test_info(store: Path) -> None:
    found = document("info", store)
    assert (found["kind"], found["vertices"], found["edges"]) == ("store", 4, 5)
    assert found["predecessors"]
    assert "vertices" in run("info", store).stdout
    listed = document("info", "--datasets")["datasets"]
    assert {"sx-mathoverflow", "com-orkut", "road-NY"} <= {facts["name"] for facts in listed}
    assert "soc-pokec" in run("info", "--datasets").stdout
    assert document("info", "as-skitter")["url"].endswith("as-skitter.txt.gz")


def test_ingest_and_resume(edge_file: Path, tmp_path: Path) -> None:
    checkpoint, statistics = tmp_path / "checkpoint", tmp_path / "run.jsonl"
    common = ["ingest", edge_file, "--checkpoint", checkpoint, "--statistics", statistics]
    first = document(*common, "--limit", 4, "--batch-size", 2, "--segment-size", 4)
    assert (first["operations"], first["resumed"], first["edges"]) == (4, False, 4)
    facts = document("info", checkpoint)
    assert (facts["kind"], facts["operations"], facts["segment_size"]) == ("checkpoint", 4, 4)
    assert facts["positions"] == [{"topic": "edges.txt", "partition": 0, "offset": 4}]
    rest = document(*common, "--save", tmp_path / "end.lpma")
    assert (rest["operations"], rest["total_operations"], rest["resumed"]) == (2, 6, True)
    assert document("query", "degree", checkpoint, 0, 77)["results"] == [
        {"vertex": 0, "degree": 2, "present": True}, {"vertex": 77, "degree": 0, "present": False}
    ]  # fmt: skip
    assert lpma.Graph.load(tmp_path / "end.lpma", device="cpu").num_edges == 5
    assert read_run(statistics)["operations"].tolist() == [2, 2, 2]
    run(*common, "--weight", "float64", status=2)
    run(*common, "--undirected", status=2)


def test_ingest_from_a_log_with_queries(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with ingest.SqliteLog(path) as log:
        log.produce(ingest.UPDATES, ingest.encode_updates([0, 0, 1], [1, 2, 2]))
        log.produce(ingest.QUERIES, ingest.encode_query("q", lpma.Kind.DEGREE, 0))
        log.produce(ingest.UPDATES, b"no record")
    found = document("ingest", path, "--checkpoint", tmp_path / "checkpoint")
    assert (found["operations"], found["queries"], found["rejected"]) == (4, 1, 1)
    with ingest.SqliteLog(path, topics=[ingest.REPLIES]) as log:
        (polled,) = log.poll()
    assert isinstance(polled.value, bytes)
    answer = ingest.decode_reply(polled.value).answer
    assert isinstance(answer, np.ndarray)
    assert answer.tolist() == [2]


def test_ingest_json_with_names_and_a_late_policy(tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "log", tmp_path / "checkpoint"
    rows = [("alice", "tea", 10), ("bob", "tea", 90), ("alice", "jam", 20)]
    with ingest.SqliteLog(path) as log:
        for user, item, at in rows:
            value = {"user": user, "item": item, "at": at, "page": {"n": 1}}
            log.produce(ingest.UPDATES, json.dumps(value).encode())
        query = ingest.encode_query("q", lpma.Kind.SUCCESSORS, "alice", ids="mapped")
        log.produce(ingest.QUERIES, query)
    command = ["ingest", path, "--checkpoint", checkpoint]
    fields = ["--src-field", "user", "--dst-field", "item", "--time-field", "at"]
    late = ["--ids", "mapped", "--late", "dead-letter", "--max-lateness", 50]
    found = document(*command, *fields, *late, "--limit", 1)
    assert (found["operations"], found["resumed"]) == (1, False)
    rest = document(*command)
    assert (rest["resumed"], rest["total_operations"], rest["rejected"]) == (True, 3, 1)
    assert (rest["edges"], rest["named"]) == (2, 3)
    with ingest.SqliteLog(path, topics=[ingest.REPLIES]) as log:
        (polled,) = log.poll()
    assert isinstance(polled.value, bytes)
    assert ingest.decode_reply(polled.value).answer.ids.tolist() == ["tea"]  # type: ignore[union-attr]
    run(*command, "--ids", "dense", status=1)
    run(*command, "--src-field", "who", status=1)
    assert document("query", "degree", checkpoint, "alice")["results"][0]["degree"] == 1
    run(*command, "--late", "drop", status=2)


def command_line(*arguments: object) -> list[str]:
    program = "import sys; from ingest.cli import main; main()"
    return [sys.executable, "-c", program, *(str(argument) for argument in arguments)]


def test_a_signal_ends_a_followed_log_with_a_checkpoint(tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "log", tmp_path / "checkpoint"
    with ingest.SqliteLog(path) as log:
        log.produce(ingest.UPDATES, ingest.encode_updates([0, 0, 1], [1, 2, 2]))
    statistics = tmp_path / "run.jsonl"
    process = subprocess.Popen(
        command_line("ingest", path, "-c", checkpoint, "-f", "--statistics", statistics, "--json"),
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 300  # it may have to compile
        while not (statistics.exists() and statistics.stat().st_size):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert json.loads(output)["operations"] == 3
    assert document("info", checkpoint)["operations"] == 3


def test_plots(store: Path, edge_file: Path, tmp_path: Path) -> None:
    statistics = tmp_path / "run.jsonl"
    run("ingest", edge_file, "--save", tmp_path / "a.lpma", "--statistics", statistics,
        "--batch-size", 1, "--segment-size", 2)  # fmt: skip
    found = document("plot", "latency", statistics, tmp_path / "latency.png")
    assert (found["batches"], found["operations"]) == (6, 6)
    assert found["expansions"] > 0
    assert (tmp_path / "latency.png").read_bytes().startswith(PNG)
    assert document("plot", "degrees", store, tmp_path / "d.png")["max_degree"] == 2
    assert (tmp_path / "d.png").read_bytes().startswith(PNG)
    run("plot", "degrees", store, tmp_path / "d.pdf", status=2)
    (tmp_path / "other").write_text("hello\n")
    run("plot", "latency", tmp_path / "other", tmp_path / "x.png", status=1)


def test_a_torn_last_line_of_a_run_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    graph = lpma.Graph(device="cpu")
    figures = ingest.BatchStats(5, 0, 0.1, 0.2, 5, 1, 5, 0.5, 0)
    with RunLog(path, graph) as log:
        log(figures)
    with open(path, "ab") as file:
        file.write(b'{"operations": 7, "sec')
    assert read_run(path)["operations"].tolist() == [5]
    with RunLog(path, graph) as log:
        log(figures)
    assert read_run(path)["operations"].tolist() == [5, 5]


def test_doctor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LPMA_CACHE", str(tmp_path / "cache"))
    found = document("doctor")
    assert found["packages"]["numpy"] == np.__version__
    assert found["problems"] == []
    assert found["threads"] >= 1
    assert found["cache_directory"] == str(tmp_path / "cache")
    assert isinstance(found["gpu"]["usable"], bool)
    assert "numba" in run("doctor").stdout


def test_devices(
    edge_file: Path, tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = document("load", edge_file, tmp_path / "a.lpma", "--device", "cpu")
    assert made["device"] == document("info", store, "--device", "cpu")["device"] == "cpu"
    assert document("ingest", edge_file, "--save", tmp_path / "b", "--device", "cpu")["edges"] == 5
    assert document("query", "degree", store, 0, "--device", "cpu")["results"][0]["degree"] == 2
    run("load", edge_file, tmp_path / "c.lpma", "--device", "gpu", status=2)
    monkeypatch.setitem(sys.modules, "cupy", None)
    for arguments in (
        ["load", edge_file, tmp_path / "c.lpma", "--device", "cuda"],
        ["query", "degree", store, 0, "--device", "cuda:1"],
        ["export", store, tmp_path / "c.npz", "--device", "cuda"],
    ):
        failed = run(*arguments, status=1)
        assert "pip install" in failed.stderr
        assert failed.stderr.count("\n") == 1
    assert not (tmp_path / "c.lpma").exists()
    assert document("load", edge_file, tmp_path / "d.lpma")["device"] == "cpu"
    gpu = document("doctor")["gpu"]
    assert (gpu["usable"], gpu["auto"], gpu["devices"]) == (False, "cpu", [])
    assert "CuPy" in gpu["why"]


@pytest.mark.gpu
def test_a_device_in_use(cupy: Any, edge_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.lpma"
    assert document("load", edge_file, path)["device"].startswith("cuda:")
    facts = document("info", path, "--device", "cuda:0")
    assert (facts["device"], facts["edges"]) == ("cuda:0", 5)
    for query in (["edge", path, 0, 1], ["successors", path, 0, 1], ["hops", path, 0],
                  ["degree", path, 0], ["vertex", path, 0]):  # fmt: skip
        assert document("query", *query, "--device", "cuda") == document("query", *query)
        run("query", *query, "--device", "cuda")
    document("export", path, tmp_path / "s.npz", "--device", "cuda", "--compact")
    gpu = document("doctor")["gpu"]
    assert gpu["usable"], gpu
    assert gpu["auto"].startswith("cuda:")
    assert "cuda:0" in run("doctor").stdout


def test_failures_are_one_line_and_status_1(
    store: Path, edge_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LPMA_DATA", raising=False)
    monkeypatch.setenv("LPMA_CACHE", str(tmp_path / "cache"))
    broken = tmp_path / "broken.lpma"
    broken.write_bytes(store.read_bytes()[:-1])
    empty = tmp_path / "empty"
    empty.mkdir()
    for arguments in (
        ["query", "degree", tmp_path / "absent", 1],
        ["query", "degree", broken, 1],
        ["query", "degree", empty, 1],
        ["info", edge_file],
        ["info", "nothing"],
        ["load", "nothing", tmp_path / "x"],
        ["load", "nothing.txt", tmp_path / "x"],
        ["load", "uk-2002", tmp_path / "x"],
        ["load", "wiki-Vote", tmp_path / "x", "--no-download"],
        ["load", edge_file, tmp_path / "none" / "x"],
        ["ingest", tmp_path / "absent", "--save", tmp_path / "x"],
        ["ingest", edge_file, "--checkpoint", edge_file],
        ["export", store, tmp_path / "none" / "x.npz"],
        ["plot", "latency", tmp_path / "absent", tmp_path / "x.png"],
    ):
        run(*arguments, status=1)
    run("load", edge_file, tmp_path / "out.lpma")
    result = run("query", "predecessors", tmp_path / "out.lpma", 1, status=1)
    assert "predecessors=True" in result.stderr


def test_bad_usage_is_status_2(store: Path, edge_file: Path, tmp_path: Path) -> None:
    for arguments in (
        ["nonsense"],
        ["query", "degree", store],
        ["query", "degree", store, "x"],
        ["query", "degree", store, 2**32 - 1],
        ["query", "hops", store, 1, "-k", 256],
        ["load", "rmat:scale=99", tmp_path / "x"],
        ["load", "rmat:scale=3", tmp_path / "x", "--columns", "src dst"],
        ["load", edge_file, tmp_path / "x", "--segment-size", 5],
        ["load", edge_file, tmp_path / "x", "--weight", "int8"],
        ["ingest", edge_file],
        ["export", store, tmp_path / "x.txt"],
        ["export", store, tmp_path / "x.npz", "--format", "mtx"],
        ["info"],
        ["info", store, "--datasets"],
    ):
        run(*arguments, status=2)


def test_checkpoints_are_read_past_a_damaged_one(edge_file: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    run("ingest", edge_file, "-c", checkpoint)
    names = sorted(p.name for p in checkpoint.glob("checkpoint-*"))
    newest = checkpoint / names[-1] / "graph.lpma"
    newest.write_bytes(newest.read_bytes()[:-1])
    assert document("info", checkpoint)["operations"] == 0  # the one before: the start
    for name in names:
        (checkpoint / name / "graph.lpma").unlink()
    run("info", checkpoint, status=1)


def test_a_closed_pipe_is_no_traceback(store: Path) -> None:
    process = subprocess.Popen(
        command_line("info", "--datasets"), cwd=ROOT, env={**os.environ, "COLUMNS": "200"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    stderr = process.stderr.read()
    process.stderr.close()
    process.wait(timeout=60)
    assert b"Traceback" not in stderr


def test_values_for_people() -> None:
    assert said(None) == "–"
    assert said(True) == "yes"
    assert said(1234567) == "1,234,567"
    assert said(0.45678) == "0.4568"
    assert said(514054.3) == "514,054"
    assert bytes_said(999) == "999 B"
    assert bytes_said(5 << 20) == "5 MiB"


def test_queries_to_a_running_pipeline(tmp_path: Path) -> None:
    path = tmp_path / "log"
    source = ingest.SqliteLog(path)
    source.produce(ingest.UPDATES, ingest.encode_updates([0] * 9 + [1], [*range(9), 2]))
    graph = lpma.Graph(device="cpu", predecessors=True)
    pipeline = ingest.Pipeline(source, graph, max_reply_rows=4, batch_interval=0.02)
    thread = threading.Thread(target=pipeline.run)
    thread.start()
    try:
        found = document("query", "successors", path, 0, 1, 7)
        assert [r["ids"] for r in found["results"]] == [list(range(9)), [2], []]
        assert found["version"] >= 5, "of the last of five replies"
        assert document("query", "edge", path, 1, 2)["results"][0]["found"]
        assert document("query", "predecessors", path, 2)["results"][0]["ids"] == [0, 1]
        assert len(document("query", "hops", path, 0)["results"][0]["ids"]) == 9
        assert document("query", "degree", path, 0, 5)["results"][0]["degree"] == 9
        assert run("query", "vertex", path, 3, 44).stdout.endswith("vertex 44: absent\n")
        refused = run("query", "hops", path, 0, "-k", 3, status=1)
        assert "refused (hops)" in refused.stderr
    finally:
        pipeline.stop()
        thread.join()
    nowhere = run("query", "degree", "kafka://127.0.0.1:1", 0, status=1)
    assert "no Kafka could be reached" in nowhere.stderr
