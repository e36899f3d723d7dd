"""The command line as a new user meets it: terminals of any width, completion, stdin and stdout,
and what is said where something is amiss."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import algorithms
import ingest
import lpma
from ingest.cli import _completion, _console, _pipeline
from ingest.cli._console import Screen
from ingest.sources.files import unpacking
from ingest.sources.files.unpacking import share_read
from tests.support.command_line import ROOT, document, run
from tests.support.waiting import HANGS_S

DAY_MS = 86_400_000


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.csv"
    rows = ("ann,bob,3", 0), ("bob,eve,1", 40), ("ann,bob,2", 50), ("eve,ann,4", 10)
    lines = [f"{row},{1_700_000_000_000 + day * DAY_MS}\n" for row, day in rows]
    path.write_text("who,whom,amount,when\n" + "".join(lines))
    return path


# -- only the edges of late ------------------------------------------------------------------------


@pytest.mark.parametrize("more, left", [
    (["--window", "10d"], {("bob", "eve"): 1.0, ("ann", "bob"): 5.0}),
    (["--window", 0], {("ann", "bob"): 5.0}),
    (["--since", "2023-12-24"], {("bob", "eve"): 1.0, ("ann", "bob"): 5.0}),
    (["--since", 1_700_000_000_000 + 50 * DAY_MS], {("ann", "bob"): 5.0}),
    (["--since", "1d"], {}),
    (["--window", "9000d"], {("bob", "eve"): 1.0, ("ann", "bob"): 5.0, ("eve", "ann"): 4.0}),
])  # fmt: skip
def test_edges_of_late(own: Path, tmp_path: Path, more: list[Any], left: dict[Any, float]) -> None:
    """An edge stays or goes as a whole, by its last operation."""
    store, whole = tmp_path / "g.lpma", tmp_path / "all.lpma"
    told = run("load", own, store, *more).stderr
    assert f"{3 - len(left)} of 3 edges were last changed before" in told
    graph = lpma.Graph.load(store, "cpu")
    ends = [(u, v) for u in graph for v in graph.neighbors(u).tolist()]
    edges = {(u, v): graph.edges(u, v).weights.item() for u, v in ends}  # type: ignore[union-attr]
    assert edges == left
    run("load", own, whole)
    for target in (own, whole):
        assert document("run", "core", target, *more)["edges"] == len(left)
    assert lpma.Graph.load(whole, "cpu").num_edges == 3, "only in this run"


@pytest.mark.parametrize("more, said", [
    (["--window", "5x"], "expected'24h'"), (["--since", "soon"], "adateortimeofISO8601"),
    (["--window", 1, "--since", 1], "giveoneofthetwo"),
    (["--window", 1, "--time", "none"], "namethecolumnthatholdsthemby--time"),
])  # fmt: skip
def test_edges_of_late_that_cannot_be_told(
    own: Path, tmp_path: Path, more: list[Any], said: str
) -> None:
    told = run("load", own, tmp_path / "g.lpma", "--source", 1, "--target", 2, *more, status=2)
    assert said in "".join(told.stderr.replace("│", "").split())
    assert not (tmp_path / "g.lpma").exists()


@pytest.mark.parametrize("more, left", [
    (["--since", "2023-12-24"], {("bob", "eve"): 1.0, ("ann", "bob"): 5.0}),
    (["--until", "2023-12-24"], {("eve", "ann"): 4.0}),
    (["--since", "2023-11-24", "--until", "2024-01-03"],
     {("eve", "ann"): 4.0, ("bob", "eve"): 1.0}),
    (["--window", "10d", "--half-life", "5d"], {("bob", "eve"): 0.25, ("ann", "bob"): 5.0}),
    (["--half-life", "10d", "--now", "2024-01-23T22:13:20"],
     {("eve", "ann"): 4 / 64, ("bob", "eve"): 1 / 8, ("ann", "bob"): 5 / 4}),
    (["--since", "1d"], {}),
])  # fmt: skip
def test_a_view_in_time(own: Path, tmp_path: Path, more: list[Any], left: dict[Any, float]) -> None:
    """Of a store and of a file, which stay as they are; ranks follow the weights that are left."""
    store, out = tmp_path / "g.lpma", tmp_path / "g.npz"
    run("load", own, store)
    told = run("export", store, out, *more).stderr
    assert (f"{3 - len(left)} of 3 edges are not in the view" in told) == (len(left) < 3)
    s = lpma.Snapshot.read_npz(out)
    weights = s.weights if s.weights is not None else np.ones(len(s.indices))
    rows = np.repeat(np.arange(s.num_rows), np.diff(s.indptr))
    assert s.names is not None
    ends = zip(s.names.of(rows).tolist(), s.names.of(s.indices).tolist(), strict=True)
    assert dict(zip(ends, weights.tolist(), strict=True)) == left
    ranks = algorithms.pagerank(s, weighted="--half-life" in more)
    for target in (own, store):
        found = document("run", "pagerank", target, *more, "--top", 9, "--tol", 1e-12)
        assert found["edges"] == len(left)
        assert found["weighted"] == ("--half-life" in more)
        of = {row["vertex"]: row["rank"] for row in found["top"]}
        assert of == pytest.approx({name: ranks[s.names.find(name)] for name in of}, abs=1e-5)
    assert lpma.Graph.load(store, "cpu").num_edges == 3


@pytest.mark.parametrize("command, more, said", [
    (["run", "core"], ["--half-life", "2d"], "half_life:corereadsnoweights"),
    (["run", "bicliques", "--p", "2", "--q", "2"], ["--half-life", 2], "bicliquesreadsnoweights"),
    (["run", "pagerank"], ["--half-life", 0], "expectedaspanabove0"),
    (["run", "pagerank"], ["--half-life", "soon"], "expected'24h'"),
    (["run", "core"], ["--now", 5], "isneededwith--now"),
    (["run", "core"], ["--since", 7, "--until", 5], "isafter--until"),
    (["run", "core"], ["--since", 7, "--window", 5], "giveoneofthetwo"),
    (["run", "core"], ["--until", "soon"], "expectedadateortimeofISO8601"),
    (["export"], ["--until", "soon"], "expectedadateortimeofISO8601"),
    (["run", "core"], ["--until", 2**63], "atimeisanintegerof64bits"),
    (["run", "core"], ["--window", "10d", "--until", "2023-12-01"],
     "2023-12-01liesbeforethebeginningof--window10d"),
    (["export"], ["--window", "10d", "--until", "2023-12-01"], "liesbeforethebeginning"),
    (["run", "core"], ["--since", "99999999999999d"], "expectedadateortimeofISO8601"),
    (["run", "pagerank"], ["--half-life", "5y"], "expected'24h'"),
    (["run", "pagerank"], ["--half-life", "none"], "expected'24h'"),
    (["export"], ["--window", "none"], "expected'24h'"),
])  # fmt: skip
def test_views_that_are_refused(
    own: Path, tmp_path: Path, command: list[str], more: list[Any], said: str
) -> None:
    store, out = tmp_path / "g.lpma", tmp_path / "g.csv"
    run("load", own, store)
    status = 1 if 2**63 in more else 2
    files = [store, out] if command == ["export"] else [store]
    told = "".join(run(*command, *files, *more, status=status).stderr.replace("│", "").split())
    assert said in told
    assert "or'none'" not in told
    assert not out.exists()


def test_a_store_without_times_has_no_views(tmp_path: Path) -> None:
    store = tmp_path / "g.lpma"
    lpma.from_edges([1, 2], [2, 3], device="cpu", times=False).save(store)
    for command in (["run", "core", store], ["export", store, tmp_path / "g.csv"]):
        told = run(*command, "--since", 5, status=2).stderr
        assert "whatisreadhasnotimes" in "".join(told.replace("│", "").split())


# -- stdin and stdout ------------------------------------------------------------------------------


def piped(*command: object, given: bytes = b"") -> bytes:
    code = "import sys; sys.argv[0] = 'lpma'; from ingest.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *map(str, command)], input=given, cwd=ROOT,
                          capture_output=True, timeout=HANGS_S, check=True)  # fmt: skip
    return done.stdout


def test_in_from_a_pipe_and_out_to_one(own: Path, tmp_path: Path) -> None:
    content, store, state = own.read_bytes(), tmp_path / "g.lpma", tmp_path / "state"
    found = json.loads(piped("ingest", "-", "-c", state, "--save", store, "--json", given=content))
    assert (found["source"], found["edges"]) == ("stdin", 3)
    again = json.loads(piped("ingest", "-c", state, "--json", given=content))
    assert (again["resumed"], again["operations"]) == (True, 0)
    assert json.loads(piped("run", "core", "-", "--json", given=content))["edges"] == 3
    out = piped("export", store, "-", "--format", "csv")
    run("export", store, tmp_path / "g.csv")
    assert out == (tmp_path / "g.csv").read_bytes()
    for wrong in (["-"], ["-", "--format", "csv", "--json"], ["-", "--format", "mtx"]):
        run("export", store, *wrong, status=2)


# -- completion ------------------------------------------------------------------------------------


def completed(line: str) -> list[str]:
    words = line.split()
    environment = {
        **os.environ, "_LPMA_COMPLETE": "complete_bash", "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - (not line.endswith(" "))),
    }  # fmt: skip
    code = "import sys; sys.argv = ['lpma']; from ingest.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=ROOT, text=True,
                          capture_output=True, timeout=HANGS_S, check=False)  # fmt: skip
    return done.stdout.split()


def test_a_shell_completes_datasets_figures_and_columns(own: Path) -> None:
    assert "soc-pokec" in completed("lpma load soc-")
    assert completed("lpma ingest s.log --track core,t") == ["core,triangles"]
    assert completed(f"lpma load {own} g.lpma --source w") == ["who", "whom", "when"]
    assert completed(f"lpma ingest {own} --time ") == ["who", "whom", "amount", "when"]
    assert completed("lpma checkpoint v") == ["verify"]


def test_completion_knows_what_is_there(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own.parent)
    (own.parent / "folder").mkdir()
    assert {"own.csv", "folder/", "soc-pokec"} <= set(_completion.sources("ow"))
    assert _completion.sources("folder/none/") == list(_completion.sources("folder/"))
    assert "pagerank" in _completion.figures("")


# -- terminals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["load", "ingest", "run diversity", "cluster run"])
def test_help_is_whole_on_a_narrow_terminal(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = run(*command.split(), "--help").stdout
    options = set(re.findall(r"--[a-z-]+", wide))
    monkeypatch.setenv("COLUMNS", "60")
    narrow = piped(*command.split(), "--help").decode()
    long = [line for line in narrow.splitlines() if len(line) > 60]
    assert all(line.startswith("  --") for line in long), "an option is not broken"
    assert "…" not in narrow.replace(",…", "").replace("1 … k", "")
    assert options <= set(re.findall(r"--[a-z-]+", narrow))


@pytest.mark.parametrize("columns", [60, 80, 200, None])
def test_checkpoints_are_listed_whole(
    own: Path, tmp_path: Path, columns: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    run("ingest", own, "-c", state)
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", str(columns))
    told = run("checkpoint", "ls", state).stdout
    taken = document("checkpoint", "ls", state)["checkpoints"][-1]
    listed, _, _ = told.partition("journal:")
    assert "…" not in listed
    assert "own.csv/0 4" in " ".join(listed.split())
    assert f"{taken['operations']}" in listed
    lines = [line.rstrip() for line in listed.splitlines()]
    assert max(map(len, lines)) <= (columns or 200)
    assert (len(lines) > 5) == (columns in (60, 80)), "a line a checkpoint where there is room"


class _Bars:
    """A terminal's bars, of which what they show is kept."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, float]] = []

    def add_task(self, what: str, **more: Any) -> str:
        return what

    def update(self, task: str, **more: Any) -> None:
        self.shown.append((more["said"], more["completed"]))

    def stop(self) -> None: ...


@pytest.mark.parametrize("command", ["load", "ingest"])
def test_progress_is_a_share_of_the_file(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "long.csv"
    path.write_text("a,b\n" + "".join(f"{i},{i + 1}\n" for i in range(100_000)))
    bars = _Bars()
    monkeypatch.setattr("ingest.sources.files.opening.BLOCK_BYTES", 1 << 18)

    def enter(screen: Screen) -> Screen:
        screen._bars = bars
        return screen

    monkeypatch.setattr(Screen, "__enter__", enter)
    monkeypatch.setattr(_pipeline, "LOOK_EVERY_S", 0.0)
    to = [tmp_path / "g.lpma"] if command == "load" else ["--save", tmp_path / "g.lpma"]
    run(command, path, *to, "--batch-size", 10_000)
    said = [text for text, _ in bars.shown if "% of the file" in text]
    shares = [float(re.search(r"(\d+)% of", text)[1]) for text in said]  # type: ignore[index]
    assert shares == sorted(shares)
    assert shares
    assert 0 < shares[0] < 100
    assert share_read(path) is None, "it is closed"


@pytest.mark.parametrize("error", [OSError(9, "Bad file descriptor"), ValueError("closed")])
def test_a_share_is_asked_for_while_another_thread_closes(tmp_path: Path, error: Any) -> None:
    class Closing:
        def tell(self) -> int:
            raise error

    path, closing = tmp_path / "own.csv", Closing()
    path.write_text("a,b\n")
    unpacking._opened[path] = closing  # type: ignore[assignment]
    assert share_read(path) is None


def test_a_pipe_gets_whole_lines(capsys: pytest.CaptureFixture[str],
                                 monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.delenv("COLUMNS", raising=False)
    _console.table(["name", "long"], [["a", "x" * 300], ["b", "y"]])
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["name", "long"], ["a", "x" * 300], ["b", "y"],
    ]  # fmt: skip


# -- what is amiss ---------------------------------------------------------------------------------


def test_a_directory_that_is_misspelt(own: Path, tmp_path: Path) -> None:
    for name, said in (("none", "doesnotexist"), ("empty", "doesnotsayhowitsstreamisread")):
        if name == "empty":
            (tmp_path / name).mkdir()
        told = run("ingest", "-c", tmp_path / name, status=2).stderr.replace("│", "")
        told = "".join(told.split())
        assert f"{name}{said}:givewhatisread,aSOURCEor--kafka" in told
    assert not (tmp_path / "none").exists()


def test_a_file_that_was_renamed(own: Path, tmp_path: Path) -> None:
    state, moved = tmp_path / "state", tmp_path / "moved.csv"
    run("ingest", own, "-c", state)
    own.rename(moved)
    told = run("ingest", moved, "-c", state, status=1).stderr
    assert "ln -s moved.csv own.csv" in told
    own.symlink_to(moved)
    assert document("ingest", own, "-c", state)["resumed"]
    moved.write_text("other,columns\n1,2\n")
    assert "holds other bytes" in run("ingest", moved, "-c", state, status=1).stderr


def test_a_topic_that_is_misspelt(tmp_path: Path) -> None:
    log, state = tmp_path / "s.log", tmp_path / "state"
    with ingest.SqliteLog(log) as opened:
        opened.create_topic("clicks")
        opened.produce("clicks", ingest.encode_row(1, 2))
    told = run("ingest", log, "--topic", "click", "-c", state, status=1).stderr
    assert "no topic 'click': name one by --topic, of clicks" in told
    with ingest.SqliteLog(log) as opened:
        assert "click" not in opened.topic_names()
    assert document("ingest", log, "--topic", "clicks", "-c", state)["edges"] == 1
    (file := tmp_path / "own.csv").write_text("1,2\n")
    told = run("ingest", file, "--topic", "clicks", "-c", state, status=2).stderr
    assert "a file has no topics" in told


@pytest.mark.parametrize(
    "options",
    [["--topic", "clicks"], ["--format", "debezium"], ["--schema-registry", "http://localhost:1"],
     ["--results-topic", "r", "--track", "core"], []],
)  # fmt: skip
def test_a_log_that_is_not_there(tmp_path: Path, options: list[str]) -> None:
    log, state = tmp_path / "nope.log", tmp_path / "state"
    told = run("ingest", log, "-c", state, *options, status=1).stderr
    assert f"{log}: no such file" in told
    from_topic = ["--from-topic", "clicks"] if options else []
    command = ["repartition", log, "shards", "--to", tmp_path / "out", "-c", state, *from_topic]
    told = run(*command, status=1).stderr
    assert "no such file" in told
    assert not (tmp_path / "out").exists()


def test_json_that_nests_is_recognised(tmp_path: Path) -> None:
    log = tmp_path / "j.log"
    with ingest.SqliteLog(log) as opened:
        opened.produce("updates", b'{"after": {"user": {"id": "ann"}, "item": 7}, "op": "c"}')
    told = run("ingest", log, "-c", tmp_path / "s", status=1).stderr
    assert "looks like JSON with after.user.id, after.item, op" in told
    assert "--source after.user.id --target after.item" in told
    fields = ["--source", "after.user.id", "--target", "after.item", "--names"]
    assert document("ingest", log, "-c", tmp_path / "s", *fields)["edges"] == 1


def test_a_rejected_record_is_told_with_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "s.log"
    with ingest.SqliteLog(log) as opened:
        opened.produce("updates", ingest.encode_row(1, 2))
        opened.produce("updates", b"from a,to b" + b" and on" * 100)
    told = run("ingest", log, "-c", tmp_path / "s").stderr
    assert "updates/0 1: " in told
    assert "'from a,to b and on" in told
    assert len(told) < 300


def test_a_stream_that_reads_no_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.queries.client.TIMEOUT_S", 0.05)
    log = tmp_path / "s.log"
    with ingest.SqliteLog(log) as opened:
        opened.produce("updates", ingest.encode_row(1, 2))
        for topic in ("asked", "queries", "replies"):
            opened.create_topic(topic)
    told = run("query", "degree", log, 1, "--query-topic", "asked", status=1).stderr
    assert "--topic asked" in told
    assert "--names" not in told
    assert "--names" in run("query", "degree", log, "ann", status=1).stderr
