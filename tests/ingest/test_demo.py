"""The demo, on a small part of its stream: every step happens, and its checks would notice."""

from __future__ import annotations

import json
import shlex
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from typer.testing import CliRunner

import algorithms
import ingest
import lpma
from ingest import Pipeline, SqliteLog, demo, encode_updates
from ingest.cli import app
from ingest.cli.demo import _next_steps, lpma_here
from ingest.datasets.generators import with_deletions
from ingest.demo import watch
from ingest.demo.figures import Figures, figures, who
from ingest.demo.live import answer_text, same_replies
from ingest.demo.stream import DELETIONS, DemoStream, Watch, choose_stream
from ingest.demo.town import CONNECTORS, make_town
from ingest.demo.worker import DemoError, Files
from ingest.plots.run_log import read_run
from ingest.results.reading import read_results
from ingest.types import Reply
from lpma.batch.columns import Kind
from lpma.cpu import cache
from tests.conftest import real_graph
from tests.support.waiting import wait_for


@pytest.mark.system
def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the kernels that are compiled: test_wheel.py has it begin without."""
    monkeypatch.delenv("LPMA_DATA", raising=False)
    monkeypatch.setenv("LPMA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache.directory().parents[1]))
    out = tmp_path / "out"
    result = CliRunner().invoke(
        app, ["demo", "--out", str(out), "--operations", "20000", "--seconds", "1.5", "--json"]
    )
    assert result.exit_code == 0, result.stderr
    summary = json.loads(result.stdout)
    same = {"same_state": True, "same_replies": True, "same_copy": True}
    assert summary == {**summary, "generated": True, **same}
    assert summary["versions"] == lpma.Graph.load(out / "graph.lpma", device="cpu").version > 1
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
    graph.check()
    s = graph.snapshot()
    assert s.names is not None
    assert demo.digest(s) == summary["digest"]
    assert (s.num_vertices, s.num_edges) == (summary["vertices"], summary["edges"])
    core = algorithms.core_numbers(s)
    members = s.names.of(np.flatnonzero(core == core.max())).tolist()
    assert (core.max(), members) == (summary["max_core"], summary["core_members"])
    assert algorithms.triangle_count(s) == summary["triangles"]
    assert algorithms.truss_numbers(s).truss.max() == summary["max_truss"]
    scores = algorithms.diversity(s, "truss", 4, method="extract")
    assert scores.max() == summary["most_contexts"] == len(summary["contexts"])
    assert scores[s.names.find(summary["most_diverse"])] == scores.max()
    batches = read_run(files.run)
    assert len(batches["seconds"]) == summary["batches"]
    assert batches["operations"].sum() == summary["operations"] + summary["queries"]

    _check_watched(summary, files, graph)
    assert "alert: core >= 8 became true of 13 at once, in the last 20 seconds" in result.stderr
    assert {p.name for p in out.iterdir()} == {p.name for p in files.kept}
    assert sorted(summary["files"].values()) == sorted(map(str, files.kept))
    for picture in (files.latency, files.circles):
        assert picture.read_bytes().startswith(b"\x89PNG")
    _follow(_next_steps(summary, "lpma"))


def _check_watched(summary: dict[str, Any], files: Files, whole: lpma.Graph) -> None:
    """The file of results against NetworkX, on the edges of the whole graph that are new enough."""
    town = make_town(20_000)
    results = list(read_results(files.results))
    places = [result.place for result in results]
    assert sorted(set(places)) == places
    cores: dict[str, int] = {}
    for result in results:
        if result.figure == "core" and result.alert is None:
            assert result.vertex is not None
            cores |= dict(zip(result.vertex.tolist(), result.new.tolist(), strict=True))
    stream = with_deletions(town.messages, DELETIONS, seed=1).time
    assert stream is not None
    before = int(stream[-1]) - int(0.05 * int(stream[-1] - stream[0]))
    s = whole.snapshot()
    assert s.names is not None
    assert s.times is not None
    kept = s.times >= before
    src = s.names.of(np.repeat(np.arange(s.num_rows), np.diff(s.indptr))[kept]).tolist()
    window = networkx.Graph(list(zip(src, s.names.of(s.indices[kept]).tolist(), strict=True)))
    assert {name: core for name, core in cores.items() if core} == networkx.core_number(window)
    assert summary["window_edges"] == len(src)
    assert summary["window_let_go"] == s.num_edges - len(src)
    alerts = [result for result in results if result.alert is not None]
    assert len(alerts) == summary["alerts"]
    committee = sorted(town.names[town.committee.members].tolist())
    named = sorted(name for alert in alerts for name in alert.vertex.tolist())  # type: ignore
    assert named == sorted(2 * committee), "each of its two meetings, once"
    assert "of them are in the festival committee" in summary["found"][-1]


def _follow(steps: list[str]) -> None:
    """The commands that the demo ends with work as they stand there."""
    assert len(steps) == 4
    for step in steps:
        command, *words = shlex.split(step, comments=True)
        assert command == "lpma"
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, (step, result.output)


def named(found: Figures, names: Any) -> dict[str, Any]:
    """What was found of ids, by what these go by."""
    contexts = [names[context].tolist() for context in found.contexts]
    return {"core": names[found.core].tolist(), "owner": names[found.owner], "contexts": contexts}


def test_what_was_planted_in_the_town_is_found() -> None:
    town = make_town()
    graph = lpma.Graph(device="cpu")
    graph.apply(with_deletions(town.messages, DELETIONS))
    found = figures(graph)
    about = who(replace(found, **named(found, town.names)), town.circles, town.names)
    choir = town.circles[0]
    assert found.core == choir.members.tolist()
    owner: Any = found.owner
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
    assert len(town.committee.members) == min(40, 8 + people // 100)
    assert not np.isin(town.committee.members, town.circles[0].members).any()
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
    core, bridge = who(figures(graph), (), np.arange(6))["found"]
    assert core == (
        "The largest core: 6 vertices, each of them tied to 5 or more of the others: "
        "user 0, user 1, user 2, user 3 and 2 more."
    )
    assert bridge.startswith("user 0 bridges the most contexts, 1 dense group of neighbours")
    graph.delete(src[1:], dst[1:])
    _, bridge = who(figures(graph), (), np.arange(6))["found"]
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
        "files": {name: f"out/{name}" for name in ("graph", "results", "sample")},
    }  # fmt: skip
    first, *_, last = _next_steps(summary, lpma_here())
    assert first == ".venv/bin/lpma query successors out/graph 'Ada Berg'"
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
    appends = columns_of.kind == Kind.INSERT
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
    assert demo.digest(once) == demo.digest(again)
    assert once.times is not None
    later = replace(once, times=once.times + 1)
    assert demo.digest(later) != demo.digest(once)
    named = lpma.Graph(names=True, device="cpu")
    named.insert(["a", "b"], ["b", "c"], time=[5, 6])
    renamed = named.snapshot()
    assert demo.digest(renamed) != demo.digest(replace(renamed, names=None))


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Files, DemoStream, lpma.Graph]:
    """What the window's process leaves, and the graph of the whole stream."""
    files = Files(tmp_path_factory.mktemp("watched"))
    files.clear()
    town = make_town(5000)
    columns = with_deletions(town.messages, DELETIONS)
    watch_for = Watch(4000, "4 seconds", "core >= 7", 100)
    stream = DemoStream("a town", columns, town.names, watch_for, town.circles, town.committee)
    whole = lpma.Graph(names=True, device="cpu")
    with SqliteLog(files.log) as log:
        for first in range(0, len(columns), 70):
            part = columns.rows(first, first + 70)
            ends = town.names[part.src], town.names[part.dst]
            log.produce("updates", encode_updates(*ends, None, part.time, part.kind, names=True))
        with Pipeline(log, whole) as pipeline:
            pipeline.run("end")
    files.finished.touch()
    kept = signal.getsignal(signal.SIGINT)
    try:
        watch.main(str(files.directory), watch_for, "cpu")
    finally:  # it ignores Ctrl-C, as a process of its own may
        signal.signal(signal.SIGINT, kept)
    return files, stream, whole


def test_a_window_is_verified(watched: tuple[Files, DemoStream, lpma.Graph]) -> None:
    files, stream, whole = watched
    kept = files.results.read_bytes()
    found = watch.verify(files, whole, stream, "cpu")
    assert found["alerts"] >= 2
    assert found["window_edges"] > 100
    assert found["repeats"] == 0
    lines = kept.splitlines(keepends=True)
    for wrong in (kept + lines[-1], b"".join(lines[:-1]), kept.replace(b'"new":2', b'"new":3')):
        files.results.write_bytes(wrong)
        files.results_again.unlink()
        with pytest.raises(DemoError, match="nobody killed"):
            watch.verify(files, whole, stream, "cpu")
    files.results.write_bytes(kept)


def test_what_is_wrong_with_a_window_is_noticed(
    watched: tuple[Files, DemoStream, lpma.Graph],
) -> None:
    files, _, whole = watched
    with SqliteLog(files.log) as log:
        window = ingest.as_of(files.window, log, version=52, device="cpu")
    with pytest.raises(DemoError, match="edges of its time"):
        watch._check_window(window, whole, None)
    with pytest.raises(DemoError, match="edges of its time"):
        watch._check_window(window, whole, 1)
    results = list(read_results(files.results))
    with pytest.raises(DemoError, match="core numbers"):
        watch._check_cores(window, [r for r in results if r.version < 50])
    alert = next(result for result in results if result.alert is not None)
    assert watch._check_alert(files, alert, "cpu") < 7
    with pytest.raises(DemoError, match="past view"):
        watch._check_alert(files, replace(alert, version=alert.version + 1), "cpu")
    with pytest.raises(DemoError, match="past view"):
        watch._check_alert(files, replace(alert, old=alert.old + 1), "cpu")


def test_a_listener_tells_each_alert_once(
    watched: tuple[Files, DemoStream, lpma.Graph], tmp_path: Path
) -> None:
    files, stream, _ = watched
    lines = files.results.read_bytes().splitlines(keepends=True)
    rows = [line for line in lines if line.startswith(b'{"alert"')][:2]
    told: list[str] = []
    listener = watch.Listener(tmp_path / "results", stream, told.append)
    listener.start()
    (tmp_path / "results").write_bytes(rows[0] + rows[1][:40])
    wait_for(lambda: told, "the first alert, with which half of the second was read")
    (tmp_path / "results").write_bytes(rows[0] + rows[1] + rows[0] + rows[1])
    listener.finish()
    assert len(told) == 2
    assert told[0].startswith("alert: core >= 7 became true of ")
    assert told[0] != told[1]


def test_replies_are_compared_whole() -> None:
    degree = Reply("a", Kind.DEGREE, 3, 0, np.array([4]))
    neighbors = Reply("b", Kind.SUCCESSORS, 3, 0, lpma.Neighbors(np.array([0, 1]), np.array([7])))
    both = {"a": degree, "b": neighbors}
    assert same_replies(both, {"a": replace(degree, version=9), "b": neighbors})
    assert not same_replies(both, {"a": degree})
    assert not same_replies(both, {"a": replace(degree, answer=np.array([5])), "b": neighbors})
    other = lpma.Neighbors(np.array([0, 1]), np.array([7]), weights=np.array([1.0]))
    assert not same_replies(both, {"a": degree, "b": replace(neighbors, answer=other)})
    assert not same_replies(both, {"a": replace(degree, error="rows"), "b": neighbors})


def test_answers_are_told_as_people_read_them() -> None:
    degree = Reply("q", Kind.DEGREE, 1, 1, np.array([11_729]))
    vertex = Reply("q", Kind.VERTEX, 1, 1, np.array([True]))
    assert [answer_text(degree), answer_text(vertex)] == ["11,729", "present"]
