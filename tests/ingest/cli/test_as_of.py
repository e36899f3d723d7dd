"""`--as-of-version` and `--as-of-time`: on every command that reads a checkpoint directory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from typer.testing import CliRunner

import ingest
import lpma
from ingest import Pipeline, SqliteLog
from ingest.cli import _as_of, app
from ingest.sources.base import Identity
from tests.support.command_line import document
from tests.support.topics import Ticking


def run(*arguments: object, status: int = 0) -> Any:
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exit_code == status, (result.stdout, result.stderr, result.exception)
    return result.stderr if status else result.stdout


def loaded(*arguments: object) -> Any:
    return json.loads(run(*arguments, "--json"))


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Version n has the edges (0, 1) … (0, n); version 0 and the newest two are kept."""
    with SqliteLog(tmp_path / "stream.log") as log:
        log.produce_many("updates", [ingest.encode_row(0, n) for n in range(1, 10)])
        with Pipeline(log, lpma.Graph(device="cpu"), tmp_path / "state", batch_size=1,
                      poll_records=1, batch_interval=9.0, clock=Ticking(),
                      keep_checkpoints="1d=2") as pipeline:  # fmt: skip
            for version in range(1, 10):
                assert pipeline.step() == 1
                if version in (3, 6):
                    pipeline.checkpoint_now()
    return tmp_path / "state"


@pytest.fixture
def at(state: Path) -> list[Any]:
    return ["--as-of-version", 5, "--as-of-source", state.parent / "stream.log"]


def test_query(state: Path, at: list[Any]) -> None:
    found = loaded("query", "degree", state, 0, *at)
    assert (found["version"], found["results"][0]["degree"]) == (5, 5)
    assert loaded("query", "degree", state, 0)["results"][0]["degree"] == 9


def test_run_and_export(state: Path, at: list[Any]) -> None:
    found = loaded("run", "components", state, *at)
    assert (found["version"], found["edges"], found["vertices"]) == (5, 5, 6)
    found = loaded("run", "bfs", state, "--source", 0, *at)
    assert found["edges"] == 5
    edges = state.parent / "edges.csv"
    assert loaded("export", state, edges, *at)["version"] == 5
    assert len(edges.read_text().splitlines()) == 6
    of_late = "--since", loaded("query", "edge", state, 0, 3)["results"][0]["time"]
    found = loaded("run", "components", state, *at, *of_late)
    assert (found["version"], found["edges"]) == (5, 3)
    assert loaded("export", state, edges, *at, *of_late)["edges"] == 3


def test_info(state: Path, at: list[Any]) -> None:
    found = loaded("info", state, *at)
    assert (found["version"], found["edges"], found["number"], found["replayed"]) == (5, 5, 0, 5)
    assert found["operations"] == 5, "the stream's figures are those of then, too"
    assert [span["first_version"] for span in found["past"]] == [0, 6, 9]
    assert "versions 0 … 9 (the beginning … 2001-09-09T01:46:40" in " ".join(
        run("info", state).split()
    )


def test_a_time(state: Path) -> None:
    """As ms and as text; the times of the edges say which."""
    source = ["--as-of-source", state.parent / "stream.log"]
    result = loaded("query", "edge", state, 0, 4)["results"][0]
    stamp = result["time"]
    found = loaded("query", "degree", state, 0, "--as-of-time", stamp, *source)
    assert found["results"][0]["degree"] == 4
    text = f"2001-09-09T01:46:40.{stamp - 10**12 - 1:03}"
    found = loaded("query", "degree", state, 0, "--as-of-time", text, *source)
    assert found["results"][0]["degree"] == 3
    assert loaded("info", state, "--as-of-time", "2000-01-01", *source)["edges"] == 0


def test_ls(state: Path) -> None:
    found = loaded("checkpoint", "ls", state)
    assert [row["version"] for row in found["checkpoints"]] == [0, 6, 9]
    assert [row["verified"] for row in found["checkpoints"]] == [True, False, False]
    assert found["past"][0]["last_version"] == 6
    assert "past views, if the log holds the records: versions 0 … 9" in run(
        "checkpoint", "ls", state
    )


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--as-of-version", 5, "--as-of-time", 5], "one of the two"),
        (["--as-of-source", "x"], "is needed with it"),
        (["--as-of-version", 5, "--as-of-kafka-config", "x"], "kafka://HOST:PORT needs it"),
        (["--as-of-time", "noon"], "ISO 8601"),
    ],
)
def test_wrong_combinations(state: Path, wrong: list[Any], said: str) -> None:
    for command in (["info", state], ["query", "degree", state, 0], ["run", "core", state]):
        assert said in " ".join(run(*command, *wrong, status=2).replace("│", "").split())


def test_what_has_no_past(state: Path) -> None:
    saved = state.parent / "saved.lpma"
    lpma.Graph(device="cpu").save(saved)
    log = state.parent / "stream.log"
    for command in (["info", saved], ["export", saved, state.parent / "x.csv"],
                    ["query", "degree", log, 0], ["run", "diversity", log],
                    ["run", "core", "rmat:scale=4"]):  # fmt: skip
        said = " ".join(run(*command, "--as-of-version", 1, status=2).replace("│", "").split())
        assert "only these have past views" in said


def test_a_refusal_is_one_line(state: Path) -> None:
    said = run("info", state, "--as-of-version", 5, status=1)
    assert said.count("\n") == 1
    assert "version 5 cannot be had: " in said
    assert "there are versions 0 … 9 (" in said


def test_the_ladder_is_an_option_of_ingest(state: Path, tmp_path: Path) -> None:
    log = state.parent / "stream.log"
    run("ingest", log, "-c", tmp_path / "other", "--set", "checkpoints.keep=1d=7",
        "--set", "checkpoints.operations=1", "--batch-size", 3)  # fmt: skip
    assert loaded("checkpoint", "ls", tmp_path / "other")["checkpoints"][0]["version"] == 0
    assert "is not a rule" in run("ingest", log, "-c", tmp_path / "third", "--set",
                               "checkpoints.keep=hourly", status=1)  # fmt: skip


@pytest.mark.parametrize("options", [[], ["--names"], ["--undirected"]], ids=str)
def test_of_a_file(tmp_path: Path, options: list[str]) -> None:
    edges, state = tmp_path / "edges.txt", tmp_path / "state"
    edges.write_text("".join(f"{n} {n + 1}\n" for n in range(20)))
    run("ingest", edges, "-c", state, "--batch-size", 8, "--set", "checkpoints.keep=1d=1", *options)
    past = ["--as-of-version", 2, "--as-of-source", edges]
    assert loaded("info", state, *past)["edges"] == 16
    edges.write_text("1 2\n")
    assert "--as-of-source" not in run("info", state, *past, status=1)


def test_the_window_of_a_past_view_is_that_of_then(tmp_path: Path) -> None:
    """Not that of the checkpoint which it began with."""
    log, state = tmp_path / "log", tmp_path / "state"
    with ingest.SqliteLog(log) as opened:
        opened.produce_many("updates", [ingest.encode_row(0, v, time=10 * v) for v in range(9)])
    run("ingest", log, "-c", state, "--window", 20, "--batch-size", 1)
    for version, expired in ((1, 0), (4, 1), (9, 6)):
        asked = ["--as-of-version", version, "--as-of-source", log]
        facts = document("info", state, *asked)
        assert (facts["expired"], facts["window"]["expired_before"]) == (expired, 10 * version - 30)


GIVEN = {"kafka://127.0.0.1:1": "Kafka", "edges.txt": "a file", "stream.log": "an embedded log"}


@pytest.mark.parametrize(
    ("given", "kind"), [(g, k) for g in GIVEN for k in GIVEN.values() if GIVEN[g] != k]
)
def test_another_kind_of_source_is_refused_before_it_is_opened(
    state: Path, given: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters = {
        "a file": "file",
        "an embedded log": str(uuid4()),
        "Kafka": "MkU3OEVBNTcwNTJENDM2Qk",
    }
    found = _as_of._newest_state(state)
    stated = replace(found, identity=Identity(clusters[kind], {"updates": str(uuid4())}))
    monkeypatch.setattr("ingest.cli._as_of._newest_state", lambda _: stated)
    (state.parent / "edges.txt").write_text("1 2\n")
    monkeypatch.chdir(state.parent)
    for opener in ("ingest.sources.SqliteLog", "ingest.cli._origin.Origin.open"):
        monkeypatch.setattr(opener, opened)
    said = run("info", state, "--as-of-version", 5, "--as-of-source", given, status=1)
    assert f"read from {kind}, {given} is {GIVEN[given]}: give --as-of-source" in said


def opened(*_: object, **__: object) -> None:
    raise AssertionError("it is opened")


@pytest.mark.parametrize(
    "options",
    [
        ["--source", "to", "--target", "from", "--weight", "none", "--time", "when", "--no-names"],
        ["--set", "file.columns=dst src - time", "--no-names"],
        ["--source", "to", "--target", "from", "--names"],
    ],
    ids=str,
)
def test_of_a_file_whose_columns_were_named(tmp_path: Path, options: list[str]) -> None:
    """The checkpoint keeps how the file was read, so a past view need not say it."""
    edges, state = tmp_path / "a.csv", tmp_path / "s1"
    edges.write_text("from,to,amount,when\n1,2,5,10\n3,4,7,20\n5,6,9,30\n")
    common = ["ingest", edges, "-c", state, "--batch-size", 1]
    run(*common, "--set", "checkpoints.keep=1d=1", *options)
    past = ["--as-of-version", 2, "--as-of-source", edges]
    for pair, present in ((("4", "3"), True), (("6", "5"), False), (("3", "4"), False)):
        said = run("query", "edge", state, *pair, *past)
        assert ("present" in said, "absent" in said) == (present, not present)
    assert loaded("run", "components", state, *past)["edges"] == 2
    (state / "stream.toml").unlink()  # or the file would be read as it was then
    said = run(*common, status=1)
    assert "is not read as it was then" in said
    assert ("columns" if options[0] == "--set" else "source") + " was " in said
    assert "topic" not in said
    copied = tmp_path / "b.csv"
    copied.write_bytes(edges.read_bytes())
    said = run("info", state, "--as-of-version", 2, "--as-of-source", copied, status=1)
    assert "the file was called 'a.csv' when it was read, this one is 'b.csv'" in said


def test_the_log_is_only_read(state: Path, at: list[Any]) -> None:
    log = state.parent / "stream.log"
    before = {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in state.parent.rglob("*")}
    assert sorted(before) == sorted({log, state, *state.rglob("*")})
    assert loaded("info", state, *at)["version"] == 5
    assert before == {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in state.parent.rglob("*")}
    with SqliteLog(log) as writes:
        assert "open to be written" in run("info", state, *at, status=1), "a handle of this process"
        assert writes.at_end() is False


@pytest.mark.parametrize("command", [
    ["query", "degree", "state", "0"], ["info", "state"], ["run", "components", "state"],
    ["export", "state", "edges.csv"],
])  # fmt: skip
def test_a_checkpoint_behind_its_journal_is_told(
    tmp_path: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a pipeline writes there, and after its crash; not where the checkpoint is the end."""
    monkeypatch.chdir(tmp_path)
    behind = (
        "lpma: state: this is version 2, of its last checkpoint; its stream has come to "
        "version 4 since"
    )

    def told(*more: str) -> str:
        result = CliRunner().invoke(app, [*command, *more, "--json"])
        assert result.exit_code == 0, result.stderr
        json.loads(result.stdout)
        return result.stderr

    with SqliteLog("stream.log") as log:
        log.produce_many("updates", [ingest.encode_row(0, n) for n in range(1, 5)])
        pipeline = Pipeline(log, lpma.Graph(device="cpu"), "state", batch_size=1, batch_interval=9)
        pipeline.run(2)
        pipeline.checkpoint_now()
        assert told() == ""
        pipeline.run(2)
        assert told().startswith(behind)
        pipeline.close(checkpoint=False)
    assert told().startswith(behind)
    assert told().count("\n") == 1
    if command[0] != "info":
        advised = told()[len(behind) + 2 :].partition(" reads that")[0].split()
        assert told(*[word.replace("SOURCE", "stream.log") for word in advised]) == ""
    with SqliteLog("stream.log") as log:
        Pipeline.resume("state", log).close()
    assert told() == ""
