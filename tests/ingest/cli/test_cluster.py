"""`lpma cluster`: what the commands say, refuse and return. The cluster is a stand-in;
tests/ingest/cluster has the real one."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest.analyses import of_shards
from ingest.cli.cluster._actions import Actions
from ingest.cluster.control import ControlServer, ask
from tests.support.command_line import await_cluster, document, run
from tests.support.stand_in_cluster import Plain, StandIn
from tests.support.waiting import HANGS_S, wait_for

ROOT = Path(__file__).parents[3]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cluster that runs, as far as other processes can tell."""
    monkeypatch.setattr(of_shards, "algorithms", Plain())
    state = tmp_path / "state"
    actions = Actions("stream.log", state)
    with ControlServer(state, actions.by_name()) as server:
        server.start()
        stand_in: Any = StandIn("stream.log", 2)
        actions.cluster = stand_in
        yield state


def test_status(directory: Path) -> None:
    found = document("cluster", "status", directory)
    assert (found["state"], len(found["shards"]), found["problems"]) == ("running", 2, [])
    assert found["pid"] == os.getpid()
    lines = run("cluster", "status", directory).stdout.splitlines()
    assert any("operations" in line and "20" in line for line in lines)
    assert lines[-1] == "shard 1: not kept: the bucket is away"
    assert [line.split()[:3] for line in lines[-4:-2]] == [
        ["0", "running", "cpu"], ["1", "running", "cpu"],
    ]  # fmt: skip


def test_status_of_a_cluster_that_is_not_well(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StandIn, "problems", ("shard 1: unreachable: gone",))
    from typer.testing import CliRunner

    from ingest.cli import app

    for options in ([], ["--json"]):
        result = CliRunner().invoke(app, ["cluster", "status", str(directory), *options])
        assert result.exit_code == 1
        assert "unreachable" in result.stdout
        assert result.stderr == "lpma: shard 1: unreachable: gone\n"


def test_status_of_one_that_starts(tmp_path: Path) -> None:
    with ControlServer(tmp_path, Actions("log", tmp_path).by_name()) as server:
        server.start()
        assert ask(tmp_path, "status")["state"] == "starting"
        result = run("cluster", "epoch", tmp_path, status=1)
        assert "starting" in result.stderr


def test_epoch(directory: Path) -> None:
    found = document("cluster", "epoch", directory)
    assert found["number"] == 1_700_000_000_500
    assert found["edges"] == [2, 3]
    assert "epoch 1700000000500" in run("cluster", "epoch", directory).stdout
    refused = run("cluster", "epoch", directory, "--timeout", "0.5", status=1)
    assert refused.stderr == "lpma: shard 1: has not closed epoch 5 in time\n"


@pytest.mark.parametrize("timeout", ["inf", "1e12", "9e18", "1e308"])
def test_as_long_as_it_takes(directory: Path, tmp_path: Path, timeout: str) -> None:
    for arguments in (["epoch"], ["run-algorithm", "degree"], ["snapshot", tmp_path / "parts"]):
        command, *rest = arguments
        run("cluster", command, directory, *rest, "--timeout", timeout)


@pytest.mark.parametrize("timeout", ["nan", "-1", "-inf", "0", "soon"])
def test_no_time(directory: Path, timeout: str) -> None:
    for arguments in (["epoch", directory], ["run-algorithm", directory, "degree"]):
        assert "--timeout" in run("cluster", *arguments, "--timeout", timeout, status=2).stderr


@pytest.mark.parametrize("algorithm, options, best, summary", [
    ("degree", [], {"vertex": 0, "degree": 2}, {"largest": 2}),
    ("core", [], {"vertex": 0, "core": 2}, {"max_core": 2, "vertices_in_it": 3}),
    ("triangles", [], {"triangles": 1}, {}),
    ("components", [], {"component": 0, "size": 3}, {"components": 2, "of_one_vertex": 1}),
    ("pagerank", ["--damping", "0.5"], {"vertex": 0}, {}),
    ("bfs", ["--source", "1"], {"vertex": 0, "hops": 1}, {"reached": 3, "farthest": 1}),
    ("diversity", ["--model", "component", "--k", "1"], {}, {}),
])  # fmt: skip
def test_algorithms(
    directory: Path, tmp_path: Path, algorithm: str, options: list[str], best: dict[str, Any],
    summary: dict[str, Any],
) -> None:  # fmt: skip
    out = tmp_path / "values.csv"
    found = document("cluster", "run-algorithm", directory, algorithm, *options, "--out", out)
    assert best.items() <= found["top"][0].items()
    assert summary.items() <= found.items()
    assert found["vertices"] == 4, "a row that is no vertex is not reported"
    with open(out, newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == (2 if algorithm == "triangles" else 5)
    shown = run("cluster", "run-algorithm", directory, algorithm, *options, "--top", 1).stdout
    assert shown.startswith(f"{algorithm} of")


@pytest.mark.parametrize("arguments, said", [
    (["core", "--damping", "0.5"], "--damping"), (["bfs"], "--source"),
    (["truss"], "truss"), (["core", "--out", "x.txt"], "--out"),
])  # fmt: skip
def test_bad_usage(directory: Path, arguments: list[str], said: str) -> None:
    result = run("cluster", "run-algorithm", directory, *arguments, status=2)
    assert said in result.stderr


def test_snapshots(directory: Path, tmp_path: Path) -> None:
    found = document("cluster", "snapshot", directory, tmp_path / "parts")
    assert (found["edges"], found["epoch"]) == (4, 1_700_000_000_500)
    assert (tmp_path / "parts" / "manifest.json").is_file()
    run("cluster", "snapshot", directory, tmp_path / "whole.npz")
    with np.load(tmp_path / "whole.npz") as arrays:
        assert len(arrays["indices"]) > 0
    refused = run("cluster", "snapshot", directory, tmp_path / "parts", status=1)
    assert "name a new folder" in refused.stderr
    run("cluster", "snapshot", directory, tmp_path / "whole.txt", status=2)
    run("cluster", "snapshot", directory, tmp_path / "nowhere" / "whole.npz", status=1)


def test_views_in_time(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    views: list[dict[str, int]] = []
    monkeypatch.setattr(StandIn, "views", views)
    of_late = "--since", "1970-01-02", "--half-life", "2d", "--now", 7
    found = document("cluster", "run-algorithm", directory, "pagerank", *of_late)
    run("cluster", "snapshot", directory, tmp_path / "parts", "--until", 5)
    view = {"since": 86_400_000, "half_life": 172_800_000, "now": 7}
    assert views == [view, {"until": 5}]
    assert found["edges"] == 4
    for arguments, said in (
        (["core", "--half-life", "2d"], "half_life: core reads no weights"),
        (["core", "--since", "soon"], "--since"),
        (["core", "--since", 7, "--until", 5], "is after --until"),
    ):
        told = run("cluster", "run-algorithm", directory, *arguments, status=2).stderr
        assert said.replace(" ", "") in "".join(told.replace("│", "").split())
    assert len(views) == 2


@pytest.mark.parametrize("command", [["status"], ["epoch"], ["run-algorithm", "core"],
                                     ["snapshot", "x.npz"]])  # fmt: skip
def test_no_cluster(tmp_path: Path, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name, *rest = command
    assert "no cluster runs" in run("cluster", name, tmp_path / "state", *rest, status=1).stderr


# Running -------------------------------------------------------------------------------------

PROGRAM = f"""
import sys, types
sys.path.insert(0, {str(ROOT)!r})
from tests.support.stand_in_cluster import StandIn
module = types.ModuleType("ingest.cluster.cluster")
module.Cluster = StandIn
sys.modules["ingest.cluster.cluster"] = module
from ingest.cli import main
try:
    main()
finally:
    made = getattr(StandIn, "made", None)
    print("left open", StandIn.open, made, file=sys.stderr)
"""


def started(tmp_path: Path, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "cluster", "run", *map(str, arguments)], text=True,
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_until_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    process = started(
        tmp_path, "stream.log", "--shards", 2, "-c", "state", "--keep", "kept", "--undirected",
        "--epoch-interval", 0.5, "--batch-size", 10, "--set", "checkpoints.interval=5", "--json",
    )  # fmt: skip
    await_cluster(process, tmp_path / "state")
    again = started(tmp_path, "stream.log", "--shards", 2, "-c", "state")
    _, said = again.communicate(timeout=HANGS_S)
    assert again.returncode == 1
    assert f"another cluster runs here (process {process.pid} on " in said
    process.send_signal(number)
    out, said = process.communicate(timeout=HANGS_S)
    assert process.returncode == 0, said
    found = json.loads(out)
    assert found["state"] == "stopped"
    assert found["source"] == "stream.log"
    assert "left open 0" in said, "it was closed"
    made = said.partition("left open 0 ")[2]
    for argument in ("'shards': 2", "'keep': 'kept'", "'directed': False", "'batch_size': 10",
                     "'epoch_interval_s': 0.5", "'checkpoint_interval': 5.0",
                     "'engine': 'local'"):  # fmt: skip
        assert argument in made
    assert not (tmp_path / "state" / "control.sock").exists()


def test_the_brokers_of_a_file(tmp_path: Path) -> None:
    config = tmp_path / "stream.toml"
    config.write_text("kafka.servers = ['a:1', 'b:2']\ncheckpoints.directory = 'state'\n")
    process = started(tmp_path, "--shards", 2, "--config", config)
    await_cluster(process, tmp_path / "state")
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=HANGS_S)
    assert process.returncode == 0, said
    assert "'source': 'kafka://a:1,b:2'" in said
    process = started(tmp_path, "own.log", "--shards", 2, "--config", config)  # which wins
    await_cluster(process, tmp_path / "state")
    process.send_signal(signal.SIGTERM)
    assert "'source': 'own.log'" in process.communicate(timeout=HANGS_S)[1]
    config.write_text("kafka.servers = 'a:1'\nsource.path = 'own.log'\n")
    options = "--shards", 2, "-c", tmp_path / "state", "--config", config
    assert "kafka.servers" in run("cluster", "run", *options, status=2).stderr


def test_a_signal_while_it_starts(tmp_path: Path) -> None:
    process = started(tmp_path, "slow", "--shards", 2, "-c", "state")
    await_cluster(process, tmp_path / "state", "starting")
    wait_for((tmp_path / "slow").exists, "it starts")
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=HANGS_S)
    assert process.returncode == 130
    assert "lpma: interrupted" in said


def test_a_signal_that_python_drops_while_it_starts(tmp_path: Path) -> None:
    """What a handler raises in a callback comes to nobody."""
    process = started(tmp_path, "dropping", "--shards", 2, "-c", "state")
    _, said = process.communicate(timeout=HANGS_S)
    assert process.returncode == 130, said
    assert "Exception ignored in" in said
    assert "lpma: interrupted" in said
    assert "left open 0" in said


def test_run_is_refused(tmp_path: Path) -> None:
    process = started(tmp_path, "refused", "--shards", 2, "-c", "state")
    out, said = process.communicate(timeout=HANGS_S)
    assert (process.returncode, out) == (1, "")
    assert said.startswith("lpma: shard 1: it is in the way\n")
    for options in (["--shards", 0], ["--shards", 2, "--device", "tpu"], []):
        run("cluster", "run", "log", "-c", tmp_path / "state", *options, status=2)


def test_problems_are_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ingest.cli.cluster import _run

    looks, check = 0, StandIn.check

    def counted(self: StandIn) -> None:
        nonlocal looks
        looks += 1
        check(self)

    def look_twice() -> None:
        begun = looks
        wait_for(lambda: looks > begun + 2, "two looks")

    monkeypatch.setattr(StandIn, "check", counted)
    monkeypatch.setattr(_run, "LOOK_EVERY_S", 0.001)
    monkeypatch.setattr(StandIn, "problems", ("shard 1: failed: so it is",))
    said: list[str] = []
    screen: Any = type("Screen", (), {"say": lambda _, text: said.append(text)})()
    actions = Actions("log", tmp_path)
    stand_in: Any = StandIn("log", 2)
    actions.cluster = stand_in
    stopped = threading.Event()
    thread = threading.Thread(target=_run._watch, args=(actions, stopped, screen))
    thread.start()
    look_twice()
    monkeypatch.setattr(StandIn, "problems", ())
    look_twice()
    stopped.set()
    thread.join()
    assert ["so it is" in line for line in said] == [True, False]
    assert "all shards run again" in said[1]
