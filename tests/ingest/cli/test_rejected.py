"""What `lpma ingest` says of a log's records that could not be applied, and its status."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

import ingest
import lpma
from ingest.cli._pipeline import Progress
from tests.support.command_line import command_line, document, run

NAMED = ingest.encode_updates(["a", "b"], ["c", "d"], names=True)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log whose vertices go by names."""
    with ingest.SqliteLog(tmp_path / "stream.log") as log:
        log.produce_many(ingest.types.UPDATES, [NAMED] * 7)
    return tmp_path / "stream.log"


def letters_of(log: Path) -> int:
    with ingest.SqliteLog(log, topics=["dead-letters"]) as written:
        return sum(written.end_offsets().values())


def produce(log: Path, *records: bytes) -> None:
    with ingest.SqliteLog(log) as opened:
        opened.produce_many(ingest.types.UPDATES, records)


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["table", "json"])
def test_a_log_of_which_nothing_is_applied_fails(log: Path, tmp_path: Path, more: Any) -> None:
    """Nothing is left of it, so that the right command works right after. A dry run says the
    same."""
    command = ["ingest", log, "--checkpoint", tmp_path / "c", *more]
    for again in (["--dry-run"], [], [], ["--dry-run"]):
        said = run(*command, *again, status=1).stderr
        assert said.count("\n") == 1
        assert (
            "nothing was applied: rejected 7 records (invalid 7), the first at updates/0 0" in said
        )
        assert "text and negative integers name vertices only with --names" in said
        assert "give --names. Nothing was written; --accept-bad goes on all the same" in said
        assert letters_of(log) == 0
        assert not (tmp_path / "c").exists()
    right = run(*command, "--names")
    assert right.stderr == ""
    assert document("info", tmp_path / "c")["edges"] == 2


def test_a_stream_may_go_on_after_bad_records(log: Path, tmp_path: Path) -> None:
    command = ["ingest", log, "--checkpoint", tmp_path / "c", "--accept-bad"]
    assert document(*command, "--dry-run")["rejected"] == 7
    result = run(*command, "--json")
    assert "rejected 7 records (invalid 7), the first at updates/0 0" in result.stderr
    assert "see topic dead-letters" in result.stderr
    assert letters_of(log) == 7
    assert document(*command)["rejected"] == 0


def test_a_resume_keeps_its_dead_letters(log: Path, tmp_path: Path) -> None:
    """It fails all the same if nothing was ever applied, and keeps its place in the log. No store
    is saved over an older one."""
    with ingest.SqliteLog(tmp_path / "empty.log") as empty:
        empty.create_topic(ingest.types.UPDATES)
    old = tmp_path / "old.lpma"
    old.write_bytes(b"as it was")
    command = ["ingest", tmp_path / "empty.log", "--checkpoint", tmp_path / "c"]
    run(*command)
    produce(tmp_path / "empty.log", *[NAMED] * 7)
    run(*command, "--dry-run", status=1)
    assert letters_of(tmp_path / "empty.log") == 0
    run(*command, "--save", old, status=1)
    assert old.read_bytes() == b"as it was"
    assert letters_of(tmp_path / "empty.log") == 7
    assert document(*command)["rejected"] == 0


@pytest.mark.parametrize("form", ["msgpack", "json", "names", "file"])
def test_only_the_first_thousand_records_are_judged(form: str, tmp_path: Path) -> None:
    good, bad, more = ingest.encode_row(1, 2), b"no record", []
    if form == "json":
        good, bad = b'{"u": 1, "v": 2}', b'{"src": 1, "dst": 2}'
        more = ["--source", "u", "--target", "v"]
    elif form == "names":
        good, more = ingest.encode_row("a", "b", names=True), ["--names"]
    for count, status in ((999, 0), (1000, 1)):
        source, state = tmp_path / f"{count}.log", tmp_path / f"{count}"
        if form == "file":
            source = tmp_path / f"{count}.txt"
            source.write_bytes(b"x y\n" * count + b"1 2\n")
            more = ["--no-names"]
        else:
            produce(source, *[bad] * count, good)
        command = ["ingest", source, "-c", state, *more]
        for again in (["--dry-run"], []):
            result = run(*command, *again, status=status)
            assert "1,000" in result.stderr or not status
        assert state.exists() == (status == 0)
        if form != "file":
            assert letters_of(source) == (0 if status else 999)
        if status:
            assert document(*command, "--accept-bad")["operations"] == 1


def test_the_first_reasons_are_told_once_each(tmp_path: Path) -> None:
    produce(tmp_path / "s.log", b"no record", b"no record", NAMED, b"", ingest.encode_row(1, 2)[:3])
    said = run("ingest", tmp_path / "s.log", "-c", tmp_path / "c", status=1).stderr
    assert said.count("updates/0") == 3
    assert "updates/0 0" in said
    assert "updates/0 2: " in said


def test_results_are_no_trace_of_a_stream_that_stopped(log: Path, tmp_path: Path) -> None:
    command = ["ingest", log, "-c", tmp_path / "c", "--track", "core"]
    command += ["--results-file", tmp_path / "told.jsonl"]
    run(*command, status=1)
    assert document(*command, "--names")["results"]["begun"] is None
    assert {result.version for result in ingest.read_results(tmp_path / "told.jsonl")} == {1}


class Screen:
    """Keeps what is said, and the last note of the bar."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.note = ""

    def say(self, text: str) -> None:
        self.said.append(text)

    def progress(self, what: str, done: int, total: None, note: str, share: None) -> None:
        self.note = note


def test_what_a_stream_rejects_is_told_while_it_is_followed(tmp_path: Path) -> None:
    """At once, then every ten seconds at most, also when nothing else happens."""
    produce(tmp_path / "s.log", b"no record")
    seconds, screen = [0.0], Screen()
    with (
        ingest.SqliteLog(tmp_path / "s.log") as source,
        ingest.Pipeline(source, lpma.Graph(device="cpu"), stop_if_first_bad=9) as pipeline,
    ):
        look = Progress(pipeline, screen, lambda: seconds[0]).look  # type: ignore[arg-type]

        def take(*records: bytes) -> None:
            before = pipeline.outputs.rejected
            if records:
                source.produce_many(ingest.types.UPDATES, records)
            while pipeline.outputs.rejected < before + (len(records) or 1):
                pipeline.step()

        take()
        look()
        assert screen.note == ", 1 rejected"
        (said,) = screen.said
        assert said.startswith("rejected 1 record (malformed 1), the newest at updates/0 0: ")
        assert said.endswith("; nothing else came so far")
        take(b"no record", b"none")
        seconds[0] = 9.9
        look()
        assert len(screen.said) == 1
        assert screen.note == ", 3 rejected"
        seconds[0] = 10.0
        look()
        look()
        assert len(screen.said) == 2
        assert screen.said[1].startswith(
            "rejected 3 records (malformed 3), the newest at updates/0 2"
        )
        seconds[0] = 30.0
        look()
        assert len(screen.said) == 2, "nothing new"
        source.produce(ingest.types.UPDATES, ingest.encode_row(1, 2))
        assert pipeline.run(1) == 1


@pytest.mark.parametrize("signal_after", ["one", "many"])
def test_a_followed_stream_of_bad_records_ends_with_status_1(
    signal_after: str, tmp_path: Path
) -> None:
    """By itself after a thousand; after fewer when it is stopped. Until then it says so."""
    log, state = tmp_path / "s.log", tmp_path / "c"
    produce(log, *[b"no record"] * (1 if signal_after == "one" else 1000))
    with subprocess.Popen(
        command_line("ingest", log, "-c", state, "--follow"), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        if signal_after == "one":
            first = process.stderr.readline()
            assert "rejected 1 record (malformed 1), the newest at updates/0 0" in first
            process.send_signal(signal.SIGTERM)
        *_, last = process.stderr.read().splitlines()
    assert process.returncode == 1
    assert last.startswith(f"lpma: {log}: nothing was applied: rejected 1")
    assert not state.exists()
    assert letters_of(log) == 0


def test_some_bad_records_are_told(log: Path, tmp_path: Path) -> None:
    """With --json, too, on stderr; the hint at --names is not for who gave it."""
    produce(log, b"no record")
    command = ["ingest", log, "--checkpoint", tmp_path / "c", "--names", "--json"]
    result = run(*command)
    assert result.stdout.count("\n") == 1
    assert "rejected 1 record (malformed 1), the first at updates/0 7: not a" in result.stderr
    assert result.stderr.endswith("; see topic dead-letters\n")
    assert "--names" not in result.stderr
    assert run(*command).stderr.splitlines() == ["resumed at 14 operations"]
    produce(log, b"no record")
    assert "rejected 1 record" in run(*command).stderr, "some were applied, in a run before"


def test_a_limit_or_late_rows_are_no_failure(tmp_path: Path) -> None:
    path = tmp_path / "stream.log"
    with ingest.SqliteLog(path) as log:
        for time in (100, 1):
            log.produce(ingest.types.UPDATES, ingest.encode_row(1, 2, time=time))
    late = run("ingest", path, "--checkpoint", tmp_path / "c", "--set", "records.late=reject")
    assert late.stderr == ""
    produce(path, NAMED, ingest.encode_row(3, 4))
    assert "rejected 1 record" in run("ingest", path, "-c", tmp_path / "d", "--limit", 3).stderr


def test_useless_lateness_is_refused(tmp_path: Path) -> None:
    produce(tmp_path / "s.log", ingest.encode_row(1, 2))
    for more in ([], ["--dry-run"]):
        command = [
            "ingest",
            tmp_path / "s.log",
            "-c",
            tmp_path / "c",
            "--set",
            "records.max_lateness=5",
        ]
        assert "late='dead-letter'" in run(*command, *more, status=1).stderr


def test_records_of_json_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "json.log"
    with ingest.SqliteLog(path) as log:
        log.produce("updates", b'{"user": "a", "item": "b", "at": 3}')
    for more in ([], ["--dry-run"], ["--names"]):
        said = run("ingest", path, "-c", tmp_path / "c", *more, status=1).stderr
        assert "looks like JSON with user, item, at" in said
        assert "--source user" in said
