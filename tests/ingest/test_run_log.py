"""What a run writes of itself: figures batch by batch, and events as JSON lines."""

from __future__ import annotations

import json
import logging
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import ingest
import lpma
from ingest import CheckpointError, Pipeline, SqliteLog
from ingest.events import (
    LETTERS_EVERY_S,
    LOGGER,
    RESERVED,
    Event,
    JsonLines,
    LetterEvents,
    log_event,
)
from ingest.plots.run_log import RunLog, read_run
from lpma.errors import FormatError
from tests.support.command_line import run
from tests.support.stream_model import SavedModel


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Any:
    """A function: the events told so far, as (name, fields)."""
    caplog.set_level(logging.INFO, LOGGER.name)

    def events() -> list[tuple[str, dict[str, Any]]]:
        found = [record.msg for record in caplog.records if record.name == LOGGER.name]
        return [(event.name, event.fields) for event in found if isinstance(event, Event)]

    return events


# Figures, batch by batch ---------------------------------------------------------------------


def test_what_is_written_is_read(tmp_path: Path) -> None:
    graph = lpma.Graph(device="cpu")
    path = tmp_path / "run"
    figures = [ingest.BatchStats(i, 0, i / 8, i / 4, 10 * i, i, i, 0.5, 9) for i in range(1, 4)]
    with RunLog(path, graph) as log:
        for stats in figures:
            log(stats)
    columns = read_run(path)
    for field in ("operations", "seconds", "total_operations", "time", "density"):
        assert columns[field].tolist() == [getattr(stats, field) for stats in figures]
    assert columns["levels"].tolist() == [graph.levels] * 3
    for line in path.read_text().splitlines():
        assert isinstance(json.loads(line), dict)


def test_a_file_cut_at_any_byte_loses_at_most_its_last_line(tmp_path: Path) -> None:
    graph = lpma.Graph(device="cpu")
    whole, path = tmp_path / "whole", tmp_path / "cut"
    with RunLog(whole, graph) as log:
        for i in range(2):
            log(ingest.BatchStats(i, 0, 0.5, 0.5, i, i, i, 0.5, 9))
    data = whole.read_bytes()
    first = data.index(b"\n") + 1
    for size in range(first, len(data)):
        path.write_bytes(data[:size])
        with RunLog(path, graph) as log:
            log(ingest.BatchStats(7, 0, 0.5, 0.5, 7, 7, 7, 0.5, 9))
        complete = size == len(data) - 1  # but for its newline
        expected = [0, 1, 7] if complete else [0, 7]
        assert read_run(path)["operations"].tolist() == expected, size


@pytest.mark.parametrize("content", ["", "\n", "x\n", "[1]\n", '{"operations": 1}\n'])
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "run"
    path.write_text(content)
    with pytest.raises(FormatError, match="run"):
        read_run(path)


# Events --------------------------------------------------------------------------------------


def test_a_pipeline_tells_what_happens(log: SqliteLog, tmp_path: Path, told: Any) -> None:
    log.produce_many("updates", [ingest.encode_row(1, 2), b"bad", ingest.encode_row(1, 3)])
    directory = tmp_path / "c"
    with Pipeline(log, SavedModel(), directory) as pipeline:
        pipeline.run(until="end")
    pipeline.close()
    names = [name for name, _ in told()]
    assert names == ["start", "checkpoint", "dead letters", "checkpoint", "stop"]
    start, _, letters, checkpoint, stop = (fields for _, fields in told())
    assert start == {"operations": 0, "version": 0, "checkpoint": str(directory)}
    assert (letters["count"], letters["kinds"]) == (1, {"malformed": 1})
    assert letters["latest"].items() >= {"topic": "updates", "partition": 0, "offset": 1}.items()
    assert (checkpoint["operations"], checkpoint["version"]) == (2, 1)
    assert 0 < checkpoint["stopped_seconds"] <= checkpoint["duration_seconds"]
    assert abs(checkpoint["taken_ms"] / 1000 - time.time()) < 60
    assert stop == {"operations": 2, "version": 1}

    Pipeline.resume(directory, SqliteLog(log.path), load=SavedModel.load).close()
    (name, resume), (last, _) = told()[len(names) :]
    assert (name, last) == ("resume", "stop")
    assert (resume["operations"], resume["replayed"], resume["number"]) == (2, 0, 1)
    assert resume["torn_bytes"] == 0


def test_an_error_is_told_once_with_its_place(log: SqliteLog, told: Any) -> None:
    log.produce("updates", ingest.encode_row(1, 2))

    class Failing(SavedModel):
        def apply(self, batch: Any) -> Any:
            raise CheckpointError("the disk is full: free it")

    pipeline = Pipeline(log, Failing())
    with pytest.raises(CheckpointError):
        pipeline.run(until="end")
    assert told()[1:] == [
        (
            "error",
            {
                "error": "CheckpointError",
                "message": "the disk is full: free it",
                "operations": 0,
                "version": 0,
            },
        )
    ]


def test_dead_letters_are_counted_and_rarely_told(told: Any) -> None:
    now = 0.0
    letters = LetterEvents(lambda: now)
    letters.flush()
    assert told() == []
    for second in range(25):
        now = float(second)
        for i in range(1000):
            letters.note("malformed" if i else "oversized", "t", 0, 1000 * second + i, "why")
            letters.flush()
    letters.flush(at_once=True)
    letters.flush(at_once=True)
    counts = [fields["count"] for _, fields in told()]
    assert sum(counts) == 25_000
    assert counts[0] == 1, "the first is told of at once"
    assert len(counts) == 2 + 24 // LETTERS_EVERY_S
    kinds = [fields["kinds"] for _, fields in told()]
    assert sum(found.get("oversized", 0) for found in kinds) == 25
    assert told()[-1][1]["latest"]["offset"] == 24_999


def test_nothing_is_printed_unasked(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1 2\nbad\n")
    result = run("ingest", path, "--save", tmp_path / "s", "--device", "cpu")
    assert "dead letters" not in result.stdout + result.stderr


def format_line(message: object, **more: Any) -> dict[str, Any]:
    record = logging.LogRecord("x.y", logging.WARNING, "", 0, message, (), None)
    record.created = 1_700_000_000.25
    line = JsonLines().format(record)
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def test_json_lines() -> None:
    head = {"time": "2023-11-14T22:13:20.250+00:00", "level": "warning"}
    event = Event("checkpoint", {"path": Path("a b"), "n": 3, "text": 'two\nlines "'})
    assert format_line(event) == {
        **head, "event": "checkpoint", "path": "a b", "n": 3, "text": 'two\nlines "'
    }  # fmt: skip
    assert format_line("100 % other\n") == {
        **head, "event": "log", "logger": "x.y", "message": "100 % other\n"
    }  # fmt: skip
    assert str(Event("stop", {"operations": 3})) == "stop operations=3"


@pytest.mark.parametrize("name", sorted(RESERVED - {"level"}))
def test_no_event_overwrites_what_each_line_says(name: str) -> None:
    with pytest.raises(AssertionError, match="reserved"):
        log_event("an event", **{name: 3})


def lines_of(stderr: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in stderr.splitlines()]
    assert all({"time", "level", "event"} <= line.keys() for line in found)
    assert all(datetime.fromisoformat(line["time"]).tzinfo == UTC for line in found)
    return found


def test_the_command_tells_in_json(tmp_path: Path) -> None:
    path, directory = tmp_path / "a.txt", tmp_path / "c"
    path.write_text("1 2\nbad\n3 4\n")
    command = ["ingest", path, "--checkpoint", directory, "--device", "cpu"]
    command += ["--set", "run.log_json=true"]
    lines = lines_of(run(*command).stderr)
    names = [line["event"] for line in lines]
    assert names == ["start", "checkpoint", "dead letters", "checkpoint", "stop"]
    lines = lines_of(run(*command).stderr)
    assert [line["event"] for line in lines] == ["resume", "stop"]
    assert LOGGER.getEffectiveLevel() == logging.WARNING, "as before"


def test_a_failing_command_says_so_in_json(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from ingest.cli import app

    arguments = ["ingest", str(tmp_path / "none"), "--save", str(tmp_path / "s")]
    arguments += ["--set", "run.log_json=true"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    (line,) = lines_of(result.stderr)
    assert (line["event"], line["level"], line["error"]) == ("failed", "error", "TargetError")
    assert "no such file" in line["message"]


def test_what_others_print_becomes_json_too(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    import sys

    from ingest.cli._console import telling_in_json

    with telling_in_json(True):
        print("compiling", "\ntwice", file=sys.stderr)
        logging.getLogger("kafka.client").warning("a broker %s", "left")
        logging.getLogger("kafka.client").debug("bytes of a handshake")
    lines = lines_of(capfd.readouterr().err)
    assert [(line["logger"], line["message"]) for line in lines] == [
        ("stderr", "compiling "),
        ("stderr", "twice"),
        ("kafka.client", "a broker left"),
    ]
