"""`lpma ingest --changes-topic | --changes-file` and `lpma replica`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ingest
import lpma
from tests.ingest.cli.test_serve import running
from tests.support.command_line import document, run
from tests.support.fed_stream import state_of
from tests.support.raw_http import ask, request
from tests.support.waiting import wait_for


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "s.log"
    with ingest.SqliteLog(path) as log:
        for at in range(6):
            data = ingest.encode_updates([at, at, 7], [at + 1, 7, at], time=[at, at, at])
            log.produce("updates", data)
    return path


@pytest.mark.parametrize("form", ["columns", "json"])
def test_a_copy_follows_and_goes_on(log: Path, tmp_path: Path, form: str) -> None:
    publish = "ingest", log, "-c", tmp_path / "w", "--batch-size", 5, "--save", tmp_path / "w.lpma"
    more = "--changes-topic", "fed", "--changes-format", form
    told = document(*publish, *more)
    assert told["changes"]["records"] > told["version"]
    assert "waiting" in told["changes"]
    follow = "replica", log, "--topic", "fed", "-c", tmp_path / "r", "--once"
    told = document(*follow, "--save", tmp_path / "r.lpma")
    assert told["version"] == 4
    written, copy = (lpma.Graph.load(tmp_path / name) for name in ("w.lpma", "r.lpma"))
    assert state_of(written) == state_of(copy)
    with ingest.SqliteLog(log) as more_of_it:
        more_of_it.produce("updates", ingest.encode_updates([1], [9], time=[9]))
    run("ingest", "-c", tmp_path / "w")  # which remembers where its feed goes, and how
    told = document(*follow)
    assert (told["version"], told["operations"]) == (5, 2)
    answer = run("query", "degree", tmp_path / "r", 1).stdout
    assert "3" in answer


def test_a_copy_of_a_file_begins_with_a_checkpoint_of_the_writer(
    edge_file: Path, tmp_path: Path
) -> None:
    feed = tmp_path / "feed.jsonl"
    run("ingest", edge_file, "-c", tmp_path / "w", "--changes-file", feed, "--batch-size", 2)
    told = document("replica", feed, "--once", "--from", tmp_path / "w", "--save", tmp_path / "s")
    assert told["operations"] == 0
    told = document("replica", feed, "--once", "--save", tmp_path / "s")
    assert (told["version"], told["edges"]) == (3, 5)


def test_a_copy_is_served_to_be_read_alone(log: Path, tmp_path: Path) -> None:
    run("ingest", log, "-c", tmp_path / "w", "--changes-topic", "changes")
    options = "--topic", "changes", "-c", tmp_path / "r", "--serve", 0
    with running("replica", log, *options, folder=tmp_path) as (_, port):

        def version() -> Any:
            return json.loads(ask(port, request("/v1/graph")).body)["version"]

        wait_for(lambda: version() == 1)
        refused = ask(port, request("/v1/updates", "POST", b"{}", Content_Type="application/json"))
        assert refused.status == 409
        detail = json.loads(refused.body)["detail"]
        assert "send updates to the pipeline that publishes that feed" in detail
        assert str(log) in detail
        told = document("query", "degree", f"http://127.0.0.1:{port}", 7)
        assert told["version"] == 1
        with ingest.SqliteLog(log) as more:
            more.produce("updates", ingest.encode_updates([1], [9]))
        run("ingest", "-c", tmp_path / "w")
        wait_for(lambda: version() == 2)


def test_its_checkpoints_are_taken_as_often_as_is_said(log: Path, tmp_path: Path) -> None:
    run("ingest", log, "-c", tmp_path / "w", "--changes-topic", "changes", "--batch-size", 3)
    often = "--set", "checkpoints.operations=1", "--set", "checkpoints.keep=1d=7"
    run("replica", log, "-c", tmp_path / "r", "--once", *often)
    (taken,) = (one for one in (tmp_path / "r").glob("checkpoint-*") if one.name.endswith("1"))
    assert taken.is_dir()
    config = tmp_path / "often.toml"
    config.write_text("[checkpoints]\noperations = 1\n")
    run("replica", log, "-c", tmp_path / "of", "--once", "--config", config)
    refused = run("replica", log, "--once", "--save", tmp_path / "s.lpma", *often, status=2)
    assert "needed by checkpoints.interval" in " ".join(refused.stderr.split())
    for command, example in (
        ("replica", "checkpoints.interval=300"), ("serve", "serve.insecure=true"),
        ("ingest", "records.late=reject"),
    ):  # fmt: skip
        assert example in "".join(run(command, "--help").stdout.replace("│", "").split())
    refused = run("serve", tmp_path / "s.lpma", "--set", "records.late=reject", status=2)
    assert "the table is serve" in " ".join(refused.stderr.replace("│", " ").split())


@pytest.mark.parametrize(("options", "said", "status"), [
    (["--once"], "nothing would remain", 2),
    (["-c", "r", "--topic", "updates", "--once"], "holds no feed yet", 1),
    (["-c", "r", "--topic", "none", "--once"], "no topic 'none'", 1),
    (["-c", "r", "--kafka", "h:1"], "give a log, a file, or --kafka", 2),
    (["-c", "r", "--token-file", "t"], "--serve", 2),
])  # fmt: skip
def test_what_makes_no_copy_is_refused(
    log: Path, tmp_path: Path, options: list[str], said: str, status: int
) -> None:
    command = [tmp_path / "r" if option == "r" else option for option in options]
    done = run("replica", log, *command, status=status)
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(("options", "said"), [
    (["--changes-topic", "updates"], "is read"),
    (["--changes-topic", "replies"], "is the topic of replies"),
    (["--changes-topic", "c", "--changes-file", "f"], "not both"),
    (["--changes-format", "json"], "--changes-topic or --changes-file"),
    (["--changes-format", "xml", "--changes-topic", "c"], "columns"),
    (["--changes-file", "s.log"], "is what is read"),
    (["--changes-topic", ""], "a name is missing"),
])  # fmt: skip
def test_a_feed_that_can_go_nowhere_is_refused(
    log: Path, tmp_path: Path, options: list[str], said: str
) -> None:
    command = [log if option == "s.log" else option for option in options]
    done = run("ingest", log, "-c", tmp_path / "w", *command, status=2)
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert not (tmp_path / "w").exists()
