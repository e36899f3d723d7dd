"""The demo, on a small part of its stream: every step happens, and its checks would notice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import algorithms
import lpma
from ingest import demo
from ingest.cli import app
from ingest.demo.client import answer_text, same_replies
from ingest.demo.worker import DemoError, Files
from ingest.run_log import read_run
from ingest.types import Reply
from lpma.batch import Kind
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
    assert "sx-mathoverflow is not in LPMA_DATA" in result.stderr
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
    graph.check()
    s = lpma.Snapshot.read_npz(files.snapshot)
    assert demo.digest(s) == demo.digest(graph.snapshot()) == summary["digest"]
    assert (s.num_present, s.num_edges) == (summary["vertices"], summary["edges"])
    assert s.num_rows == summary["rows"] > summary["vertices"]
    core = algorithms.core_numbers(s)
    assert (core.max(), (core == core.max()).sum()) == (
        summary["max_core"], summary["max_core_vertices"]
    )  # fmt: skip
    assert algorithms.triangle_count(s) == summary["triangles"]
    assert algorithms.truss_numbers(s).truss.max() == summary["max_truss"]
    scores = algorithms.diversity(s, "truss", 4, method="extract")
    assert (scores.argmax(), scores.max()) == (summary["most_diverse"], summary["most_contexts"])
    assert files.plot.read_bytes().startswith(b"\x89PNG")
    batches = read_run(files.run)
    assert len(batches["seconds"]) == summary["batches"]
    assert batches["operations"].sum() == summary["operations"] + summary["queries"]


def test_the_stream_is_the_real_one_where_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = real_graph("sx-mathoverflow")
    said: list[str] = []
    name, stream = demo.choose_stream(said.append, operations=3000)
    appends = stream.kind == Kind.APPEND
    assert name == "sx-mathoverflow"
    assert np.array_equal(stream.src[appends], columns["src"][:3000])
    assert stream.time is not None
    assert np.array_equal(stream.time[appends], columns["t"][:3000])
    assert "506,550" in said[0]


def test_the_directory_is_cleared_of_the_demos_files_only(tmp_path: Path) -> None:
    files = Files(tmp_path)
    (tmp_path / "mine.txt").write_text("kept")
    files.log.write_text("old")
    files.checkpoint.mkdir()
    (files.checkpoint / "old").write_text("old")
    files.clear()
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(DemoError, match="--out"):
        Files(tmp_path / "mine.txt").clear()


def test_digests_tell_snapshots_apart() -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert([0, 1], [1, 2], time=[5, 6])
    once = graph.snapshot()
    again = graph.snapshot()
    assert demo.digest(once) == demo.digest(again)
    assert once.times is not None
    later = replace(once, times=once.times + 1)
    assert demo.digest(later) != demo.digest(once)


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
