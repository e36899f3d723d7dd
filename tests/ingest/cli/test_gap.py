"""`lpma ingest` where the log is not what it was: gaps accepted, new beginnings from a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ingest
import lpma
from tests.support.command_line import document, run


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of which a checkpoint in `state` has read 10 records, and 30 are no longer there."""
    path = tmp_path / "log"
    produce(path, 0, 10)
    document("ingest", path, "-c", tmp_path / "state")
    produce(path, 10, 40)
    with ingest.SqliteLog(path) as log:
        log.trim("updates", 0, 40)
    return path


ACCEPTED = ["--set", "checkpoints.accept_gap=true"]


def produce(path: Path, first: int, count: int) -> None:
    with ingest.SqliteLog(path) as log:
        log.produce_many("updates", [ingest.encode_row(0, first + i) for i in range(count)])


def targets(store: Path) -> list[int]:
    (found,) = document("query", "successors", store, 0)["results"]
    ids: list[int] = found["ids"]
    return ids


def test_a_gap_is_accepted_counted_and_kept(log: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    for options in ([], ["--dry-run"]):
        failed = run("ingest", log, "-c", state, *options, status=1).stderr
        assert "updates/0: offset 10 was trimmed, the first kept is 40" in failed
        assert "checkpoints.accept_gap=true" in failed
    gap = {"topic": "updates", "partition": 0, "from": 10, "to": 39, "records": 30}
    counted = document("ingest", log, "-c", state, *ACCEPTED, "--dry-run")
    assert (counted["gaps"], counted["operations"]) == ([gap], 10)
    told = run("ingest", log, "-c", state, *ACCEPTED).stderr
    assert "updates/0: 30 records are gone, 10 … 39: accepted" in told
    assert targets(state) == [*range(10), *range(40, 50)]
    again = document("ingest", log, "-c", state)
    assert (again["gaps"], again["operations"], again["total_operations"]) == ([], 0, 20)
    for row in (document("checkpoint", "ls", state)["checkpoints"][-1], document("info", state)):
        (kept,) = row["accepted"]
        assert (kept["kind"], kept["detail"], kept["time"] > 0) == ("gap", gap, True)
    listed = " ".join(run("checkpoint", "ls", state).stdout.split())
    assert "gap (topic updates, partition 0, from 10, to 39, records 30), " in listed
    assert "gap" in run("info", state).stdout
    run("ingest", log, *ACCEPTED, "--save", tmp_path / "x.lpma", status=2)


def test_a_stream_begins_with_a_saved_store(log: Path, tmp_path: Path) -> None:
    store, state = tmp_path / "g.lpma", tmp_path / "new"
    graph = lpma.Graph(device="cpu", weight_dtype="float64")
    graph.insert([0, 7], [5000, 8])
    for _ in range(4):
        graph.insert(3, 3)
    graph.save(store)
    command = ["ingest", log, "-c", state, "--set", f"graph.from_store={store}"]
    assert document(*command, "--dry-run")["operations"] == 10
    found = document(*command, "--from-offsets", "updates:0=45")
    assert (found["operations"], found["resumed"], found["edges"]) == (5, False, 3 + 5)
    facts = document("info", state)
    assert (facts["weight_dtype"], facts["version"]) == ("float64", graph.version + 1)
    assert targets(state) == [*range(45, 50), 5000]
    failed = run(*command, status=1).stderr
    assert "holds a checkpoint" in failed
    assert "graph.from_store" in failed
    assert document("ingest", log, "-c", state)["resumed"]
    run(*command[:3], tmp_path / "n", *command[4:], "--weight", "float32", status=2)
    for wrong in (tmp_path / "none", log):
        begun = f"graph.from_store={wrong}"
        run("ingest", log, "-c", tmp_path / "n", "--set", begun, status=1)
    assert not (tmp_path / "n").exists()
    from_state = f"graph.from_store={tmp_path / 'state'}"
    kept = document("ingest", log, "-c", tmp_path / "n", "--set", from_state)
    assert kept["edges"] == 20, "the graph of a checkpoint serves, too"


def test_names_are_taken_over(log: Path, tmp_path: Path) -> None:
    """A stream goes on with a store that has names; ids never come to stand for names."""
    named, state, store = tmp_path / "named", tmp_path / "kept", tmp_path / "g.lpma"
    with ingest.SqliteLog(named) as opened:
        opened.produce("updates", ingest.encode_row("alice", "bob", names=True))
    document("ingest", named, "-c", state, "--names", "--save", store)
    plain = tmp_path / "plain.lpma"
    document("ingest", log, "--save", plain)
    command = ["ingest", named, "-c", tmp_path / "new", "--set"]
    for saved, options, word in ((store, [], "give --names"), (plain, ["--names"], "leave out")):
        assert word in run(*command, f"graph.from_store={saved}", *options, status=1).stderr
        assert not (tmp_path / "new").exists()
    for saved in (store, state):
        new = tmp_path / f"new of {saved.name}"
        begun = f"graph.from_store={saved}"
        kept = document("ingest", named, "-c", new, "--set", begun, "--names")
        assert (kept["named"], kept["edges"]) == (2, 1)
        assert document("query", "edge", new, "alice", "bob")["results"][0]["weight"] == 2.0
    with ingest.SqliteLog(named) as opened, pytest.raises(ingest.PipelineError, match="no names"):
        ingest.Pipeline(opened, lpma.Graph.load(plain, "cpu"), names=True)


def test_a_library_begins_with_a_loaded_graph(log: Path, tmp_path: Path) -> None:
    store, state = tmp_path / "g.lpma", tmp_path / "new"
    graph = lpma.Graph(device="cpu")
    graph.insert([0, 1], [1, 2], time=10**15)
    graph.save(store)
    with ingest.SqliteLog(log) as opened:
        loaded = lpma.Graph.load(store, "cpu")
        with ingest.Pipeline(opened, loaded, checkpoint=state) as pipeline:
            pipeline.run("end")
            assert loaded.version == graph.version + 1
            assert pipeline.stats.history[-1].version == loaded.version
    with (
        ingest.SqliteLog(log) as opened,
        ingest.Pipeline.resume(state, opened, device="cpu") as pipeline,
    ):
        resumed: Any = pipeline.graph
        assert (resumed.version, resumed.num_edges) == (graph.version + 1, 12)
