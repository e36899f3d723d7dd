"""Errors of the library advise what helps on the command line, not arguments of Python."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import ingest
from ingest.cli import app
from ingest.cli._console import in_options, telling_outages
from ingest.events import log_event
from tests.support.command_line import run


@pytest.fixture
def huge(tmp_path: Path) -> Path:
    """A store with one huge id, and a log of it."""
    with ingest.SqliteLog(tmp_path / "huge.log") as log:
        log.produce(ingest.types.UPDATES, ingest.encode_row(1, 4_000_000_000))
    with ingest.SqliteLog(tmp_path / "more.log") as log:
        log.produce(ingest.types.UPDATES, ingest.encode_row(1, 2))
    run("ingest", tmp_path / "huge.log", "--save", tmp_path / "huge.lpma")
    return tmp_path / "huge.lpma"


@pytest.mark.parametrize("command", [
    ["export", "huge.lpma", "e.mtx"], ["plot", "degrees", "huge.lpma", "d.png"],
    ["ingest", "huge.log", "--track", "core", "-c", "state"],
    ["ingest", "more.log", "--track", "core", "-c", "kept", "--set", "graph.from_store=huge.lpma"],
])  # fmt: skip
def test_a_huge_id(huge: Path, command: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(huge.parent)
    said = run(*command, status=1).stderr
    helps = "`lpma export --compact` renumbers the vertices"
    assert ("without --track goes on" if "--track" in command else helps) in said
    assert "with --names" in said
    assert "=True" not in said
    assert "compact=True" not in said
    assert "max_bytes" not in said


def test_the_advice_works(huge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(huge.parent)
    run("export", huge, "e.mtx", "--compact")
    run("ingest", "huge.log", "--names", "--track", "core", "--save", "named.lpma")
    run("export", "named.lpma", "named.mtx")
    run("plot", "degrees", "named.lpma", "named.png")


def test_in_json_lines(huge: Path) -> None:
    command = ["ingest", huge.with_suffix(".log"), "--track", "core", "-c", huge.parent / "state"]
    result = CliRunner().invoke(app, [*map(str, command), "--set", "run.log_json=true"])
    failed = json.loads(result.stderr.splitlines()[-1])
    assert failed["event"] == "failed"
    assert "anew with --names" in failed["message"]


def test_no_predecessors(huge: Path) -> None:
    said = run("query", "predecessors", huge, 1, status=1).stderr
    assert "load or ingest the edges anew with --predecessors" in said
    assert "=True" not in said


def test_no_times(huge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(huge.parent)
    command = ["ingest", "huge.log", "-c", "state", "--window", "5", "--set", "graph.times=false"]
    told = run(*command, status=1).stderr
    assert "keeps none: leave out --set graph.times=false, or graph.times" in told


@pytest.mark.parametrize("text, to_load, to_ingest", [
    ("src;dst;w\n1;2;1,234\n1;3;4,567\n",
     "say --decimal , or --thousands , (", "say --set file.decimal=, or --set file.thousands=, ("),
    ("3 3\n1 2\n2 3\n3 1\n", "--header leaves it out, --no-header says",
     "--set file.header=true leaves it out, --set file.header=false says"),
    ("user,item\n1,2\n2,3\n", "--bipartite keeps", "--set file.bipartite=true keeps"),
    ("src,dst,do\n1,2,add\n1,3,add\n", "as in --kind-map add=insert",
     "as in --set fields.kinds=add=insert"),
])  # fmt: skip
def test_a_file_is_advised_on_with_what_the_command_has(
    text: str, to_load: str, to_ingest: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    for command, expected in (("load", to_load), ("ingest", to_ingest)):
        given = [path, tmp_path / "g.lpma"] if command == "load" else [path, "-c", tmp_path / "s"]
        result = CliRunner().invoke(
            app, [command, *map(str, given), *(["--kind", "do"] if ",do" in text else [])]
        )
        assert expected in " ".join(result.stderr.split())


@pytest.mark.parametrize("command, option, told", [
    ("load", "--src-field", "it is --source"), ("load", "--target-column", "it is --target"),
    ("load", "--dst", "it is --target"), ("load", "--sep", "it is --separator"),
    ("ingest", "--source-column", "it is --source"), ("ingest", "--kind-field", "it is --kind"),
    ("ingest", "--verbose", "--json has all figures, --set run.log_json=true logs what happens"),
    ("info", "-v", "--json has all figures"),
    ("info", "--src-field", "No such option: --src-field"),  # nor has it what was meant
])  # fmt: skip
def test_the_right_option_is_named(command: str, option: str, told: str) -> None:
    error = run(command, "x.csv", option, "a", status=2).stderr
    assert "".join(told.split()) in "".join(error.replace("│", "").split())
    assert ("it is" in error) == ("it is" in told)


def test_what_remains_is_asked_for_in_a_sentence(edge_file: Path) -> None:
    error = "".join(run("ingest", edge_file, status=2).stderr.replace("│", "").split())
    assert "--checkpoint,--save:giveoneofthem:withouteither,nothingwouldremain" in error


@pytest.fixture
def pay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("pay.csv")
    path.write_text("src,dst,amount,when\na,b,43.49,2026-01-01\nb,c,0.1,2026-06-01\n")
    return path


def in_words(*command: Any, status: int = 2) -> str:
    """What the command says on stderr, without the frame."""
    return " ".join(run(*command, status=status).stderr.replace("│", " ").split())


def test_weights_are_shown_as_they_were_given(pay: Path) -> None:
    run("load", pay, "pay.lpma")
    assert "weight 43.49 " in run("query", "successors", "pay.lpma", "a").stdout
    assert "weight 43.49," in run("query", "edge", "pay.lpma", "a", "b").stdout
    run("load", pay, "wide.lpma", "--weight-dtype", "float64")
    assert "weight 43.49 " in run("query", "successors", "wide.lpma", "a").stdout
    run("export", "pay.lpma", "again.csv")
    assert "43.49," in Path("again.csv").read_text()


def test_a_width_of_a_few_milliseconds(pay: Path) -> None:
    for command in (
        ["load", pay, "x.lpma", "--window"], ["ingest", pay, "-c", "state", "--window"],
        ["run", "pagerank", pay, "--half-life"],
    ):  # fmt: skip
        assert "30 is 30 ms: 30d is 30 days" in in_words(*command, 30)
    assert not Path("x.lpma").exists()
    run("load", pay, "x.lpma", "--window", "30ms")
    run("ingest", pay, "-c", "state", "--window", "30ms")
    assert "30 ms by event, expired before 2026-05-31T23:59:59.970Z" in run("info", "state").stdout
    said = in_words("ingest", pay, "-c", "state", "--window", "7d", status=1)
    assert "window is 604800000 (7 d if times are in milliseconds), but the checkpoint" in said
    pay.write_text("src,dst,amount,when\n1,2,3,10\n2,3,1,50\n")  # in a unit of their own
    run("load", pay, "x.lpma", "--window", 30)


def test_a_checkpoint_that_is_not_for_this(pay: Path) -> None:
    run("load", pay, "pay.lpma")
    said = in_words("ingest", pay, "--checkpoint", "pay.lpma", status=1)
    assert "pay.lpma is a file (a saved store); --checkpoint needs a directory" in said
    assert "reading" not in said
    run("ingest", pay, "--checkpoint", "kept")
    Path("other.csv").write_text("who,whom\nx,y\n")
    said = in_words("ingest", "other.csv", "--checkpoint", "kept", status=1)
    assert "goes on with pay.csv; give another --checkpoint for a new stream" in said


def test_words_that_are_nearly_right(pay: Path) -> None:
    run("load", pay, "pay.lpma")
    said = in_words("query", "neighbors", "pay.lpma", "a")
    assert "successors are where a vertex's edges lead, predecessors" in said
    assert "did you mean core?" in in_words("ingest", pay, "-c", "state", "--track", "cores")
    assert "timedelta" not in in_words("load", pay, "x.lpma", "--window", "30days")
    said = in_words("load", pay, "x.lpma", "--weight-dtype", "float16")
    assert "--weight-dtype': 'float16' is not one of 'float32'" in said
    assert "'--p' and '--q'" in in_words("run", "bicliques", "pay.lpma")
    assert "Missing option '--q'" in in_words("run", "bicliques", "pay.lpma", "--p", 2)


def test_files_in_python(pay: Path) -> None:
    with pytest.raises(TypeError, match=r"'wieght': did you mean weight\?"):
        ingest.read_csv(pay, wieght="amount")
    with pytest.raises(ingest.SourceError, match=r"^nofile.csv: no such file$"):
        ingest.read_csv("nofile.csv")


@pytest.mark.parametrize(
    ("advised", "expected"),
    [
        ("as Fields(…, time_unit='us'), or", "as --time-unit us, or"),
        ("on_repeat='last' (…) or on_repeat='sum'", "--on-repeat last (…) or --on-repeat sum"),
        ('Debezium(…, on_tombstone="delete")', "--on-tombstone delete"),
        ("read them with records=Debezium(Fields(…)), and", "add --format debezium, and"),
        ("time_unit is 'us'", "time_unit is 'us'"),
    ],
)
def test_settings_are_options_there(advised: str, expected: str) -> None:
    assert in_options(advised) == expected


@pytest.mark.parametrize("service", ["Kafka", "the schema registry"])
def test_an_outage_names_what_is_away(service: str, capsys: pytest.CaptureFixture[str]) -> None:
    where: dict[str, Any] = {"service": service, "bootstrap": "http://host:1"}
    with telling_outages():
        log_event("outage", logging.WARNING, **where, error="refused", patience_s=60.0)
        log_event("outage over", logging.WARNING, **where, seconds=2.5)
    begun, over = capsys.readouterr().err.splitlines()
    assert begun == f"lpma: {service} at http://host:1 fails, tried again for 60 s: refused"
    assert over == f"lpma: {service} at http://host:1 is back, after 2.5 s"


def test_times_in_another_unit_are_told_in_options(tmp_path: Path) -> None:
    with ingest.SqliteLog(tmp_path / "s.log", ["t"]) as log:
        log.produce("t", b'{"src": 1, "dst": 2, "at": 1700000000000000}')
    read = ["--topic", "t", "--source", "src", "--target", "dst", "--time", "at"]
    said = run("ingest", tmp_path / "s.log", "-c", tmp_path / "state", *read).stderr
    assert "as in --time-unit us, with a new checkpoint" in said
    assert "Fields(" not in said


def test_change_events_as_plain_rows_are_told_in_options(tmp_path: Path) -> None:
    event = {"op": "c", "before": None, "after": {"src": 1, "dst": 2}, "source": {"ts_ms": 5}}
    with ingest.SqliteLog(tmp_path / "s.log", ["t"]) as log:
        log.produce("t", json.dumps(event).encode(), key=b'{"src": 1, "dst": 2}')
    asked = ["ingest", tmp_path / "s.log", "-c", tmp_path / "state", "--topic", "t"]
    for ends in (["after.src", "after.dst"], ["src", "dst"]):
        read = ["--source", ends[0], "--target", ends[1]]
        said = run(*asked, *read, status=1).stderr
        assert "look like Debezium's change events: add --format debezium" in said
        assert "name the columns of the table: src, not after.src" in said
    assert not (tmp_path / "state").exists()
    said = run(*asked, "--source", "after.src", "--target", "after.dst", "--accept-bad").stderr
    assert "add --format debezium" in said
