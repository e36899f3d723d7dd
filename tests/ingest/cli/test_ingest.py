"""`lpma ingest`: files and logs, resumed, answered, ended by a signal; its checkpoints read."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest
import lpma
from ingest.plots.run_log import read_run
from tests.support.command_line import ROOT, command_line, document, run
from tests.support.waiting import HANGS_S, wait_for


def test_ingest_and_resume(edge_file: Path, tmp_path: Path) -> None:
    checkpoint, statistics = tmp_path / "checkpoint", tmp_path / "run.jsonl"
    written = f"outputs.statistics={statistics}"
    common = ["ingest", edge_file, "--checkpoint", checkpoint, "--set", written]
    first = document(*common, "--limit", 4, "--batch-size", 2, "--set", "graph.segment_size=4")
    assert (first["operations"], first["resumed"], first["edges"]) == (4, False, 4)
    facts = document("info", checkpoint)
    assert (facts["kind"], facts["operations"], facts["segment_size"]) == ("checkpoint", 4, 4)
    assert facts["positions"] == [
        {"topic": "edges.txt", "partition": 0, "offset": 4, "rows_done": 0}
    ]
    rest = document(*common, "--save", tmp_path / "end.lpma")
    assert (rest["operations"], rest["total_operations"], rest["resumed"]) == (2, 6, True)
    assert document("query", "degree", checkpoint, 0, 77)["results"] == [
        {"vertex": 0, "degree": 2, "present": True}, {"vertex": 77, "degree": 0, "present": False}
    ]  # fmt: skip
    assert lpma.Graph.load(tmp_path / "end.lpma", device="cpu").num_edges == 5
    assert read_run(statistics)["operations"].tolist() == [2, 2, 2]
    run(*common, "--weight", "float64", status=2)
    run(*common, "--undirected", status=2)


def test_a_file_is_not_followed(edge_file: Path, tmp_path: Path) -> None:
    told = run("ingest", edge_file, "--follow", "--checkpoint", tmp_path / "c", status=2).stderr
    assert "is read to its end" in told
    assert not (tmp_path / "c").exists()


def test_a_file_is_read_at_a_rate(edge_file: Path, tmp_path: Path) -> None:
    started = time.monotonic()
    found = document("ingest", edge_file, "--set", "file.rate=20", "--checkpoint", tmp_path / "c")
    assert found["total_operations"] == 6
    assert time.monotonic() - started > 5 / 20


def test_ingest_from_a_log_with_queries(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with ingest.SqliteLog(path) as log:
        log.produce(ingest.types.UPDATES, ingest.encode_updates([0, 0, 1], [1, 2, 2]))
        log.produce(ingest.types.QUERIES, ingest.encode_query("q", lpma.Kind.DEGREE, 0))
        log.produce(ingest.types.UPDATES, b"no record")
    found = document("ingest", path, "--checkpoint", tmp_path / "checkpoint")
    assert (found["operations"], found["queries"], found["rejected"]) == (4, 1, 1)
    with ingest.SqliteLog(path, topics=[ingest.types.REPLIES]) as log:
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
            log.produce(ingest.types.UPDATES, json.dumps(value).encode())
        query = ingest.encode_query("q", lpma.Kind.SUCCESSORS, "alice", names=True)
        log.produce(ingest.types.QUERIES, query)
    command = ["ingest", path, "--checkpoint", checkpoint]
    fields = ["--source", "user", "--target", "item", "--time", "at"]
    late = ["--names", "--set", "records.late=dead-letter", "--set", "records.max_lateness=50"]
    found = document(*command, *fields, *late, "--limit", 1)
    assert (found["operations"], found["resumed"]) == (1, False)
    rest = document(*command)
    assert (rest["resumed"], rest["total_operations"], rest["rejected"]) == (True, 3, 1)
    assert (rest["edges"], rest["named"]) == (2, 3)
    with ingest.SqliteLog(path, topics=[ingest.types.REPLIES]) as log:
        (polled,) = log.poll()
    assert isinstance(polled.value, bytes)
    assert ingest.decode_reply(polled.value).answer.ids.tolist() == ["tea"]  # type: ignore[union-attr]
    run(*command, "--no-names", status=1)
    run(*command, "--source", "who", status=1)
    assert document("query", "degree", checkpoint, "alice")["results"][0]["degree"] == 1
    run(*command, "--set", "records.late=drop", status=2)


def test_a_log_of_json_with_words_for_kinds_and_a_unit_of_times(tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "log", tmp_path / "checkpoint"
    with ingest.SqliteLog(path) as log:
        for word, item in (("follow", 2), ("follow", 3), ("unfollow", 2), ("rate", 3)):
            value = {"user": 1, "item": item, "stars": 5, "at": 1_700_000_000, "op": word}
            log.produce(ingest.types.UPDATES, json.dumps(value).encode())
    fields = ["--source", "user", "--target", "item", "--time", "at", "--kind", "op"]
    fields += ["--weight", "stars"]
    more = ["--time-unit", "s", "--set", "fields.kinds=follow=insert,unfollow=delete,rate=set"]
    found = document("ingest", path, "--checkpoint", checkpoint, *fields, *more)
    assert (found["operations"], found["edges"], found["rejected"]) == (4, 1, 0)
    assert document(*("ingest", path), *fields, *more, "--dry-run")["updates"] == {
        "append": 2, "delete": 1, "set": 1
    }  # fmt: skip
    (edge,) = document("query", "edge", checkpoint, 1, 3)["results"]
    assert (edge["weight"], edge["time"]) == (5.0, 1_700_000_000_000)
    run("ingest", path, "--save", tmp_path / "g", *fields, "--time-unit", "auto", status=1)


def test_a_window_is_kept_told_and_kept_to(tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "log", tmp_path / "checkpoint"
    hour = 3_600_000
    with ingest.SqliteLog(path) as log:
        for v, at in ((1, 0), (2, 20), (3, 30), (4, 2)):
            log.produce(ingest.types.UPDATES, ingest.encode_row(0, v, time=at * hour))
    command = ["ingest", path, "--checkpoint", checkpoint]
    statistics = tmp_path / "run.jsonl"
    found = document(*command, "--window", "24h", "--batch-size", 1, "--limit", 2)
    window = {"width": 24 * hour, "time": "event"}
    assert found["window"] == {**window, "expired_before": -4 * hour, "late": 0, "untimed": 0}
    facts = document("info", checkpoint)
    assert facts["window"] == {**window, "expired_before": -4 * hour}
    assert (found["expired"], facts["expired"]) == (0, 0)
    assert document(*command, "--dry-run")["updates"] == {"append": 2}
    rest = document(*command, "--batch-size", 1, "--set", f"outputs.statistics={statistics}")
    assert read_run(statistics)["expired"].tolist() == [1, 1]
    assert (rest["expired"], document("info", checkpoint)["expired"]) == (2, 2)
    assert document(*command)["expired"] == 2, "since the stream began"
    assert rest["window"] == {**window, "expired_before": 6 * hour, "late": 1, "untimed": 0}
    assert rest["edges"] == 2
    assert "86400000 by event, expired before 21600000" in run("info", checkpoint).stdout
    assert "86400000 by event" in run(*command, "--window", "24h").stdout
    run(*command, "--window", "25h", status=1)
    run(*command, "--set", "records.window_time=arrival", status=1)
    run(*command, "--window", "a day", status=2)
    arrival = document("ingest", path, "--save", tmp_path / "g", "--window", 5,
                       "--set", "records.window_time=arrival")  # fmt: skip
    assert (arrival["window"]["time"], arrival["edges"]) == ("arrival", 4)
    timeless = "--set", "graph.times=false"
    run("ingest", path, "--save", tmp_path / "g", "--window", 5, *timeless, status=1)
    assert document("ingest", path, "--save", tmp_path / "g")["window"] is None


def test_a_signal_ends_a_followed_log_with_a_checkpoint(tmp_path: Path) -> None:
    path, checkpoint = tmp_path / "log", tmp_path / "checkpoint"
    with ingest.SqliteLog(path) as log:
        log.produce(ingest.types.UPDATES, ingest.encode_updates([0, 0, 1], [1, 2, 2]))
    statistics = tmp_path / "run.jsonl"
    process = subprocess.Popen(
        command_line("ingest", path, "-c", checkpoint, "-f", "--json",
                     "--set", f"outputs.statistics={statistics}"),
        cwd=ROOT, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:

        def applied() -> bool:
            assert process.poll() is None
            return statistics.exists() and statistics.stat().st_size > 0

        wait_for(applied, "the first batch")
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=HANGS_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert json.loads(output)["operations"] == 3
    assert document("info", checkpoint)["operations"] == 3


@pytest.mark.parametrize(
    "option, has",
    [
        ("--undirected", "--directed"),
        ("--set=graph.times=false", "--set graph.times=true"),
        ("--predecessors", "--no-predecessors"),
        ("--set=graph.weight_dtype=none", "--set graph.weight_dtype=float32"),
        ("--set=graph.weight_dtype=float64", "--set graph.weight_dtype=float32"),
    ],
)
def test_a_resume_names_the_option_that_differs(
    edge_file: Path, tmp_path: Path, option: str, has: str
) -> None:
    run("ingest", edge_file, "-c", tmp_path / "checkpoint")
    told = run("ingest", edge_file, "-c", tmp_path / "checkpoint", option, status=2).stderr
    plain = " ".join(told.replace("│", " ").split())
    assert f"Invalid value for {option.replace('=', ' ', 1)}: the graph in" in plain
    assert f"was made with {has}, which a resume cannot change" in plain


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


@pytest.mark.parametrize(("by", "warns"), [("event", True), ("arrival", False)])
def test_a_window_over_updates_without_a_time_is_told(tmp_path: Path, by: str, warns: bool) -> None:
    edges, state = tmp_path / "edges.txt", tmp_path / "state"
    edges.write_text("0 1\n1 2\n2 3\n")
    said = run("ingest", edges, "-c", state, "--window", 5, "--set", f"records.window_time={by}")
    assert "without a time" in " ".join(said.stdout.split())
    assert ("3 updates had no time, and nothing has moved it" in said.stderr) == warns
    timed = tmp_path / "timed.txt"
    timed.write_text("0 1 1 10\n1 2 1 20\n")
    command = ["ingest", timed, "--window", 5, "--set", "file.columns=src dst weight time"]
    said = run(*command, "-c", tmp_path / "other")
    assert "no time" not in said.stderr


def test_a_dry_run_tells_what_a_window_would_do(tmp_path: Path) -> None:
    """What the run then does, also from a checkpoint on, and by name; nothing is written."""
    path, checkpoint = tmp_path / "log", tmp_path / "checkpoint"

    def add(*rows: tuple[str, str, int | None]) -> None:
        with ingest.SqliteLog(path) as log:
            for u, v, at in rows:
                log.produce(ingest.types.UPDATES, ingest.encode_row(u, v, time=at, names=True))
            log.produce(
                ingest.types.QUERIES, ingest.encode_query("q", lpma.Kind.DEGREE, "a", names=True)
            )

    def both(batch_size: int, *more: Any) -> tuple[Any, Any]:
        command = ["ingest", path, "--checkpoint", checkpoint, "--batch-size", batch_size, *more]
        before = sorted(tmp_path.rglob("*"))
        dry = document(*command, "--dry-run")
        assert sorted(tmp_path.rglob("*")) == before
        return dry, document(*command)

    add(("a", "b", 10), ("b", "c", 20), ("c", "d", None), ("a", "b", 70), ("x", "y", 5))
    window = ["--names", "--window", 50]
    dry, found = both(2, *window)
    assert dry["window"] == found["window"]
    assert found["window"] == {
        "width": 50, "time": "event", "expired_before": 20, "late": 1, "untimed": 1,
    }  # fmt: skip
    assert (dry["expired"], found["expired"]) == (1, 1), "a → b is seen again in time"
    add(("e", "f", 80), ("g", "h", 29))
    dry, rest = both(1)
    assert dry["window"] == rest["window"]
    assert (dry["expired"], rest["expired"]) == (2, found["expired"] + 2)
    again = ["ingest", path, "--checkpoint", checkpoint, "--dry-run"]
    assert "30, late 0, without a time 0" in run(*again).stdout
    assert (document(*again)["expired"], document(*again)["operations"]) == (0, 0)
    arrival, timeless = ["--set", "records.window_time=arrival"], ["--set", "graph.times=false"]
    others: list[tuple[list[Any], int]] = [(["--window", 51], 1), (arrival, 1), (timeless, 2)]
    for other, status in others:
        run(*again, *other, status=status)
        run(*again[:-1], *other, status=status)
    new = ["ingest", path, "--save", tmp_path / "g", "--names"]
    for refused in (["--window", 5, *timeless], arrival):
        said = {run(*new, *refused, *dry_run, status=1).stderr for dry_run in ([], ["--dry-run"])}
        assert len(said) == 1, said
    assert document(*new, "--dry-run")["window"] is None
    late = ["--set", "records.late=dead-letter", "--set", "records.max_lateness=1000"]
    kept_out = document(*new, *window, *late, "--dry-run")
    assert (kept_out["window"]["late"], kept_out["dead_letters"]) == (0, {"late": 2})


def test_it_ends_in_a_few_lines(
    edge_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = run("ingest", edge_file.name, "-c", "c").stdout.splitlines()
    assert [line.split()[0] for line in told[1:]] == [
        "operations", "seconds", "vertices", "edges", "version", "checkpoint",
    ]  # fmt: skip
