"""The demo, on a small part of its stream: every step happens, and its checks would notice."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import algorithms
import lpma
from ingest import demo
from ingest.cli import app
from ingest.cli.demo import _next_steps, lpma_here
from ingest.datasets.generators import with_deletions
from ingest.demo.client import answer_text, same_replies
from ingest.demo.figures import figures, who
from ingest.demo.stream import DELETIONS, choose_stream
from ingest.demo.town import CONNECTORS, make_town
from ingest.demo.worker import DemoError, Files
from ingest.run_log import read_run
from ingest.state.vertex_names import VertexNames
from ingest.types import Reply
from lpma.batch import Kind
from lpma.names import Names, column_of
from tests.conftest import real_graph


def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LPMA_DATA", raising=False)
    monkeypatch.setenv("LPMA_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "out"
    result = CliRunner().invoke(
        app, ["demo", "--out", str(out), "--operations", "20000", "--seconds", "1.5", "--json"]
    )
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout)
    assert summary == {**summary, "generated": True, "same_state": True, "same_replies": True}
    assert "sx-mathoverflow is used where LPMA_DATA has it" in result.stderr
    assert "deletions of earlier edges are mixed in" in result.stderr
    assert "killed (SIGKILL)" in result.stderr
    assert "query: " in result.stderr
    assert summary["operations"] == 20_000 + summary["deletions"]
    assert 0.04 < summary["deletions"] / summary["operations"] < 0.06
    assert summary["operations"] // 2 <= summary["killed_at"] <= summary["resumed_at"]
    assert summary["queries"] >= 1  # how many, the machine says
    assert json.loads((out / "summary.json").read_text()) == summary

    files = Files(out)
    graph = lpma.Graph.load(files.graph, device="cpu")
    names = VertexNames(graph.names)
    graph.check()
    s = graph.snapshot()
    assert demo.digest(s, names) == summary["digest"]
    assert (s.num_present, s.num_edges) == (summary["vertices"], summary["edges"])
    core = algorithms.core_numbers(s)
    members = names.of(np.flatnonzero(core == core.max())).tolist()
    assert (core.max(), members) == (summary["max_core"], summary["core_members"])
    assert algorithms.triangle_count(s) == summary["triangles"]
    assert algorithms.truss_numbers(s).truss.max() == summary["max_truss"]
    scores = algorithms.diversity(s, "truss", 4, method="extract")
    assert scores.max() == summary["most_contexts"] == len(summary["contexts"])
    assert scores[names.id(summary["most_diverse"])] == scores.max()
    batches = read_run(files.run)
    assert len(batches["seconds"]) == summary["batches"]
    assert batches["operations"].sum() == summary["operations"] + summary["queries"]

    assert {p.name for p in out.iterdir()} == {p.name for p in files.kept}
    assert sorted(summary["files"].values()) == sorted(map(str, files.kept))
    for picture in (files.latency, files.circles):
        assert picture.read_bytes().startswith(b"\x89PNG")
    _follow(_next_steps(summary, "lpma"))


def _follow(steps: list[str]) -> None:
    """The commands that the demo ends with work as they stand there."""
    assert len(steps) == 3
    for step in steps:
        command, *words = shlex.split(step, comments=True)
        assert command == "lpma"
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, (step, result.output)


def test_what_was_planted_in_the_town_is_found() -> None:
    town = make_town()
    graph = lpma.Graph(device="cpu")
    graph.apply(with_deletions(town.messages, DELETIONS))
    found = figures(graph.snapshot())
    about = who(found, town.names, town.circles, town.names)
    choir = town.circles[0]
    assert found.core.tolist() == choir.members.tolist()
    owner = found.bridge.vertex
    its = {circle.name for circle in town.circles if owner in circle.members}
    assert set(about["context_names"]) == its
    assert len(its) == max(CONNECTORS)
    assert about["most_diverse"] == town.names[owner]
    core, bridge = about["found"]
    assert f"{len(choir.members)} vertices" in core
    assert core.endswith("All of them are in the Harbour choir.")
    assert bridge.startswith(f"{town.names[owner]} bridges the most contexts, {len(its)} dense")


@pytest.mark.parametrize("messages, people", [(1000, 200), (20_000, 500), (300_000, 5700)])
def test_a_town(messages: int, people: int) -> None:
    town = make_town(messages)
    assert len(set(town.names.tolist())) == len(town.names) == people
    assert len({circle.name for circle in town.circles}) == len(town.circles)
    seats = np.concatenate([circle.members for circle in town.circles])
    assert np.array_equal(np.unique(seats), np.arange(people))
    stream = town.messages
    assert len(stream) == messages
    assert (stream.src != stream.dst).all()
    assert stream.time is not None
    assert (np.diff(stream.time) >= 0).all()
    assert np.array_equal(make_town(messages).messages.src, stream.src)
    assert not np.array_equal(make_town(messages, seed=2).messages.src, stream.src)


def test_vertices_without_names_and_circles_are_told_of_too() -> None:
    graph = lpma.Graph(device="cpu")
    src, dst = np.nonzero(~np.eye(6, dtype=bool))
    graph.insert(src, dst)
    s = graph.snapshot()
    core, bridge = who(figures(s), np.arange(6), (), np.arange(6))["found"]
    assert core == (
        "The largest core: 6 vertices, each of them tied to 5 or more of the others: "
        "user 0, user 1, user 2, user 3 and 2 more."
    )
    assert bridge.startswith("user 0 bridges the most contexts, 1 dense group of neighbours")
    graph.delete(src[1:], dst[1:])
    _, bridge = who(figures(graph.snapshot()), np.arange(6), (), np.arange(6))["found"]
    assert "nobody bridges anything" in bridge


def test_the_next_steps_say_where_the_command_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / ".venv" / "bin" / "lpma"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(program), "demo"])
    monkeypatch.setenv("PATH", "/nowhere")
    assert lpma_here() == ".venv/bin/lpma"
    summary = {
        "directory": "out", "most_diverse": "Ada Berg",
        "files": {"graph": "out/graph.lpma", "sample": "out/messages.csv"},
    }  # fmt: skip
    first, *_, last = _next_steps(summary, lpma_here())
    assert first == ".venv/bin/lpma query successors out/graph.lpma 'Ada Berg'"
    assert last.startswith("source .venv/bin/activate ")
    monkeypatch.setenv("PATH", str(program.parent))
    assert lpma_here() == "lpma"


def test_the_stream_is_the_real_one_where_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = real_graph("sx-mathoverflow")
    said: list[str] = []
    stream = choose_stream(said.append, operations=3000)
    columns_of = stream.columns
    appends = columns_of.kind == Kind.APPEND
    assert (stream.called, stream.generated) == ("sx-mathoverflow", False)
    assert np.array_equal(stream.names[columns_of.src[appends]], columns["src"][:3000])
    assert columns_of.time is not None
    assert np.array_equal(columns_of.time[appends], columns["t"][:3000])
    assert "506,550" in said[0]


def test_the_directory_is_cleared_of_the_demos_files_only(tmp_path: Path) -> None:
    files = Files(tmp_path)
    (tmp_path / "mine.txt").write_text("kept")
    files.checkpoint.mkdir(parents=True)
    files.log.write_text("old")
    files.graph.write_text("old")
    (files.checkpoint / "old").write_text("old")
    files.clear()
    assert {p.name for p in tmp_path.iterdir()} == {"mine.txt", "scratch"}
    assert not any(files.scratch.iterdir())
    with pytest.raises(DemoError, match="--out"):
        Files(tmp_path / "mine.txt").clear()


def test_digests_tell_snapshots_apart() -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([0, 1], [1, 2], time=[5, 6])
    once = graph.snapshot()
    again = graph.snapshot()
    ids = VertexNames()
    assert demo.digest(once, ids) == demo.digest(again, ids)
    assert once.times is not None
    later = replace(once, times=once.times + 1)
    assert demo.digest(later, ids) != demo.digest(once, ids)
    names = Names()
    names.assign(column_of(["a", "b", "c"], "names"))
    assert demo.digest(once, VertexNames(names)) != demo.digest(once, ids)


def test_replies_are_compared_whole() -> None:
    degree = Reply("a", Kind.DEGREE, 3, 0, np.array([4]))
    neighbors = Reply("b", Kind.SUCCESSORS, 3, 0, lpma.Neighbors(np.array([0, 1]), np.array([7])))
    both = {"a": degree, "b": neighbors}
    assert same_replies(both, {"a": replace(degree, version=9), "b": neighbors})
    assert not same_replies(both, {"a": degree})
    assert not same_replies(both, {"a": replace(degree, answer=np.array([5])), "b": neighbors})
    other = lpma.Neighbors(np.array([0, 1]), np.array([7]), weight=np.array([1.0]))
    assert not same_replies(both, {"a": degree, "b": replace(neighbors, answer=other)})
    assert not same_replies(both, {"a": replace(degree, error="rows"), "b": neighbors})


def test_answers_are_told_as_people_read_them() -> None:
    degree = Reply("q", Kind.DEGREE, 1, 1, np.array([11_729]))
    vertex = Reply("q", Kind.VERTEX, 1, 1, np.array([True]))
    assert [answer_text(degree), answer_text(vertex)] == ["11,729", "present"]
