"""The command line: what it prints where, its exit statuses, and that its figures are right."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import lpma
from ingest.cli import commands
from ingest.cli._console import failing_in_one_line, format_value, telling_in_json
from lpma.display.words import size_of
from tests.support.command_line import ROOT, command_line, document, run
from tests.support.waiting import HANGS_S

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
    ["run", "strong-components"],
    ["run", "diversity"],
    ["info"],
    ["doctor"],
    ["checkpoint"],
    *(["checkpoint", command] for command in ("ls", "verify", "prune")),
    ["plot"],
    ["plot", "latency"],
    ["plot", "degrees"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = run(*command, "--help").stdout
    assert "Usage" in text
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search(r"--\S*…|[a-z]…", text)  # nothing is cut
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


def test_a_file_that_is_not_there_is_told_without_numbers(tmp_path: Path) -> None:
    told = run("plot", "latency", tmp_path / "none", tmp_path / "x.png", status=1).stderr
    assert told == f"lpma: {tmp_path / 'none'}: no such file or directory\n"


IMPORTING = """
import signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv = ["lpma", *WORDS]
from ingest.cli import main
main()
"""


@pytest.mark.parametrize(
    "module, words",
    [
        ("typer", ["--version"]), ("numpy", ["--version"]), ("lpma.graph", ["--version"]),
        ("ingest.cli.doctor", ["doctor", "--help"]),
    ],
)  # fmt: skip
def test_an_interrupt_among_the_imports_is_one_line(module: str, words: list[str]) -> None:
    program = IMPORTING.replace("MODULE", repr(module)).replace("WORDS", repr(words))
    finished = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT, capture_output=True, text=True, timeout=HANGS_S, check=False,
    )  # fmt: skip
    assert (finished.returncode, finished.stdout) == (130, "")
    assert finished.stderr == "lpma: interrupted\n"


def test_an_interrupt_when_a_command_is_over_is_one_line() -> None:
    """While the process ends, which is outside of what commands catch."""
    code = "import atexit, signal; atexit.register(signal.raise_signal, signal.SIGINT); "
    program = command_line("query", "--help")
    program[2] = code + program[2]
    finished = subprocess.run(
        program, cwd=ROOT, capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    assert (finished.returncode, finished.stderr) == (130, "lpma: interrupted\n")


def test_version() -> None:
    assert run("--version").stdout.split()[0] == "lpma"


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
    others = {"own.csv": b"a,b\n1,2\n", "x.npz": b"PK", "log": b"SQLite format 3\0"}
    for name, content in others.items():
        (store.parent / name).write_bytes(content)
        told = run("info", store.parent / name, status=1).stderr
        assert ("`lpma ingest --save STORE`" if name == "log" else "`lpma load ") in told
        assert "good copy" not in told
    (store.parent / "cut.lpma").write_bytes(b"a")
    assert "good copy" in run("info", store.parent / "cut.lpma", status=1).stderr
    assert document("info", "as-skitter")["url"].endswith("as-skitter.txt.gz")


def test_doctor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LPMA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "cupy"))
    found = document("doctor")
    assert found["packages"]["numpy"] == np.__version__
    assert found["problems"] == []
    assert found["threads"] >= 1
    assert found["cache_directory"] == str(tmp_path / "cache")
    assert isinstance(found["gpu"]["usable"], bool)
    assert found["kafka"]["codecs"] == dict.fromkeys(("gzip", "lz4", "snappy", "zstd"), True)
    kernels = found["gpu_kernels"]
    assert kernels["shipped"]["current"] <= kernels["shipped"]["modules"]
    assert kernels["cache"]["path"] == str(tmp_path / "cupy")
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
    assert "with --predecessors" in result.stderr


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
        ["load", edge_file, tmp_path / "x", "--weight-dtype", "int8"],
        ["ingest", edge_file],
        ["export", store, tmp_path / "x.txt"],
        ["export", store, tmp_path / "x.npz", "--format", "mtx"],
        ["info"],
        ["info", store, "--datasets"],
    ):
        run(*arguments, status=2)


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
    process.wait(timeout=HANGS_S)
    assert b"Traceback" not in stderr


def test_values_for_people() -> None:
    assert format_value(None) == "–"
    assert format_value(True) == "yes"
    assert format_value(1234567) == "1,234,567"
    assert format_value(0.45678) == "0.4568"
    assert format_value(514054.3) == "514,054"
    assert size_of(999) == "999 B"
    assert size_of(5 << 20) == "5 MiB"


def test_the_list_of_commands_is_there_at_once() -> None:
    """It imports no command, and no NumPy."""
    code = "import sys, runpy; sys.argv = ['lpma', '--help']; from ingest.cli import main\n"
    code += "try: main()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT,
                          timeout=HANGS_S, check=True)  # fmt: skip
    assert "repartition" in done.stdout
    loaded = done.stderr.split()
    assert "ingest.cli.commands" in loaded
    assert {"numpy", "lpma", "ingest.cli.ingest"}.isdisjoint(loaded)


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_a_command_is_listed_by_its_own_first_lines(name: str) -> None:
    group: Any = typer.main.get_command(commands.app)
    context = typer.Context(group)
    command = group.get_command(context, name)
    assert command.name == name
    assert " ".join(command.help.split("\n\n")[0].split()) == commands.COMMANDS[name]
