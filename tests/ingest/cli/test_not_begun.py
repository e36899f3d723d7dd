"""A checkpoint directory whose stream has checkpointed nothing yet: no command takes the stream for
an empty graph."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ingest
import lpma
from ingest.state.directory import take_lock, writer_of
from tests.support.command_line import command_line, document, run

READS = [
    ["query", "degree", "state", "1"], ["query", "vertex", "state", "1"], ["run", "core", "state"],
    ["export", "state", "edges.csv"], ["serve", "state", "--address", "0"],
    ["plot", "degrees", "state", "d.png"],
]  # fmt: skip


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ingest.Pipeline]:
    """A stream in its first minute: it has applied an edge, and its checkpoint is of before."""
    monkeypatch.chdir(tmp_path)
    with ingest.SqliteLog("stream.log") as log:
        log.produce("updates", ingest.encode_row(1, 2))
        pipeline = ingest.Pipeline(log, lpma.Graph(device="cpu"), "state")
        pipeline.run("end")
        yield pipeline
        pipeline.close(checkpoint=False)


@pytest.mark.parametrize("command", READS, ids=[" ".join(c[:2]) for c in READS])
def test_what_reads_it_fails_and_says_what_is_known(
    running: ingest.Pipeline, command: list[str]
) -> None:
    said = run(*command, status=1).stderr
    assert said.startswith(
        "lpma: state: its stream has not checkpointed anything yet: it began at 2"
    )
    assert "from an embedded log (queries, updates), and its journal has come to version 1" in said
    assert f"Process {os.getpid()} writes there: wait for the first checkpoint" in said
    assert "kafka://HOST:PORT or http://HOST:PORT in place of the directory" in said
    running.close(checkpoint=False)
    ended = run(*command, status=1).stderr
    assert "writes there" not in ended
    assert "If it has ended, `lpma ingest` goes on with it" in ended


def test_what_it_advises_works(running: ingest.Pipeline) -> None:
    said = run("query", "degree", "state", "1", status=1).stderr
    _, _, advised = said.partition("which ")
    words = advised.partition(" reads")[0].replace("SOURCE", "stream.log").split()
    running.close(checkpoint=False)
    running.source.close()  # type: ignore[attr-defined]
    assert document("query", "degree", "state", "1", *words)["results"][0]["degree"] == 1
    run("ingest", "stream.log", "-c", "state")
    result = run("query", "degree", "state", "1")
    assert (result.stdout, result.stderr) == ("degree 1: 1\n", "")


def test_info_says_it_and_ends_with_0(running: ingest.Pipeline) -> None:
    result = run("info", "state")
    assert "has not checkpointed anything yet" in result.stderr
    assert document("info", "state")["begun"] is False
    running.checkpoint_now()
    result = run("info", "state")
    assert result.stderr == ""
    assert document("info", "state")["begun"] is True


@pytest.mark.parametrize("came", [0, 2])
def test_a_stream_that_came_to_its_end_with_nothing_is_an_empty_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, came: int
) -> None:
    monkeypatch.chdir(tmp_path)
    with ingest.SqliteLog("stream.log") as log:
        log.create_topic("updates")
        log.produce_many("updates", [b"no record"] * came)
    run("ingest", "stream.log", "-c", "state", "--accept-bad")
    result = run("query", "degree", "state", "1")
    assert result.stdout == "degree 1: 0 (there is no such vertex)\n"
    assert result.stderr == "lpma: state: its stream has applied nothing so far\n"
    run("ingest", "stream.log", "-c", "state", "--accept-bad", "--dry-run")


def test_a_graph_that_a_stream_begins_with_is_read(running: ingest.Pipeline) -> None:
    graph = lpma.Graph(device="cpu")
    graph.insert(7, 8)
    with ingest.SqliteLog("other.log") as log:
        log.create_topic("updates")
        with ingest.Pipeline(log, graph, "begun"):
            result = run("query", "degree", "begun", "7")
    assert result.stdout == "degree 7: 1\n"
    assert "has not checkpointed anything yet" in result.stderr


def test_the_first_minute_of_a_command(tmp_path: Path) -> None:
    with ingest.SqliteLog(tmp_path / "s.log") as log:
        log.produce_many("updates", [ingest.encode_row(1, 2), b"no record"])
    follow = command_line("ingest", tmp_path / "s.log", "-c", tmp_path / "state", "--follow")
    with subprocess.Popen(follow, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "rejected 1 record" in process.stderr.readline()
        said = run("query", "degree", tmp_path / "state", "1", status=1).stderr
        assert f"Process {process.pid} writes there" in said
        process.terminate()
        process.stderr.read()
    assert process.returncode == 0
    assert run("query", "degree", tmp_path / "state", "1").stdout == "degree 1: 1\n"


def test_who_holds_a_directory_is_told_without_its_lock(tmp_path: Path) -> None:
    assert writer_of(tmp_path) is None
    lock = take_lock(tmp_path)
    assert writer_of(tmp_path) == os.getpid()
    os.close(lock)
    assert writer_of(tmp_path) is None


def test_a_lock_that_was_removed_meanwhile_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that discards its directory removes the file that others may have open."""
    opened: Any = os.open

    def slowly(path: Any, *rest: Any, **more: Any) -> int:
        descriptor: int = opened(path, *rest, **more)
        if str(path).endswith("lock"):
            os.unlink(path)
        return descriptor

    monkeypatch.setattr(os, "open", slowly)
    with pytest.raises(ingest.LockedError, match="start again"):
        take_lock(tmp_path)


def test_a_pipe_gets_no_blanks_at_the_ends_of_lines(tmp_path: Path) -> None:
    said = run("doctor").output
    assert "\n" in said
    assert not [line for line in said.splitlines() if line != line.rstrip()]


def test_a_topic_named_as_a_file_is_sent_to_its_option(tmp_path: Path) -> None:
    found = run("ingest", "kafka://here:9092", "--topic", "a", "-c", tmp_path / "c", status=2)
    assert "--kafka here:9092" in " ".join(found.output.replace("│", " ").split())
