"""`lpma ingest --results-file | --results-topic --alert`, `lpma info` and `lpma plot results`."""

from __future__ import annotations

from pathlib import Path

import pytest

import ingest
import lpma
from ingest.metrics import PipelineCollector
from tests.support.command_line import PNG, document, run


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "stream.log"
    with ingest.SqliteLog(path) as log:
        log.produce("updates", ingest.encode_updates([1, 2, 3, 8], [2, 3, 1, 9]))
    return path


def test_results_go_to_a_topic_and_are_drawn(log: Path, tmp_path: Path) -> None:
    found = document(
        "ingest", log, "-c", tmp_path / "c", "--track", "core, triangles",
        "--results-topic", "told", "--alert", "core >= 2", "--alert", "triangles > 1e6",
    )  # fmt: skip
    results = found["results"]
    assert (results["records"], results["rows"], results["alerts"]) == (4, 5 + 1 + 1 + 3, 3)
    assert found["stages"]["results"] == pytest.approx(results["seconds"], abs=1e-3)
    with ingest.SqliteLog(log, ["told"]) as reader:
        told = [ingest.decode_result(record.value) for record in reader.poll()]  # type: ignore[arg-type]
    assert [(r.figure, r.alert) for r in told] == [
        ("core", None), ("max_core", None), ("triangles", None), ("core", "core >= 2")
    ]  # fmt: skip
    assert document("info", tmp_path / "c")["results"] == {
        "run": told[0].run,
        "figures": ["core", "max_core", "triangles"],
        "rules": ["core >= 2", "triangles > 1000000"],
        "visible": True,
        "records": 4,
        "told": [1, 3],
    }
    assert "4 records of core" in run("info", tmp_path / "c").stdout
    picture = tmp_path / "figures.png"
    drawn = document("plot", "results", log, picture, "--topic", "told")
    assert drawn["newest"] == {"max_core": 2, "triangles": 1}
    assert drawn["points"] == {"max_core": 1, "triangles": 1}
    assert picture.read_bytes().startswith(PNG)


def test_results_go_to_a_file_also_of_an_edge_file(
    edge_file: Path, log: Path, tmp_path: Path
) -> None:
    for source in (edge_file, log):
        path = tmp_path / f"{source.name}.results"
        run(
            "ingest",
            source,
            "--save",
            tmp_path / "a.lpma",
            "--track",
            "core",
            "--results-file",
            path,
        )
        assert {result.figure for result in ingest.read_results(path)} == {"core", "max_core"}
        assert document("plot", "results", path, tmp_path / "a.png")["newest"].keys() == {
            "max_core"
        }
    (tmp_path / "empty").write_text("")
    assert (
        "no total"
        in run("plot", "results", tmp_path / "empty", tmp_path / "b.png", status=1).stderr
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--results-file", "r"], "name some"),
        (["--track", "cores", "--results-file", "r"], "butterflies"),
        (["--track", "core", "--results-file", "r", "--results-topic", "r"], "not both"),
        (["--track", "core", "--results-file", "r", "--alert", "triangles > 1"], "max_core"),
        (["--track", "core", "--results-file", "r", "--alert", "lag > 1"], "max_core"),
        (["--track", "core", "--results-file", "r", "--alert", "core > many"], "is not a number"),
        (["--track", "core", "--results-file", "r", "--alert", "core >= 0"], "never become true"),
        (["--track", "core", "--alert", "core > 1"], "--results-file"),
        (["--track", "core", "--results-topic", "updates"], "another topic"),
        (["--track", "core", "--results-topic", "replies"], "the topic of replies"),
        (
            ["--track", "core", "--results-topic", "x", "--set", "outputs.reply_topics=x"],
            "the topic of replies",
        ),
        (["--track", "core", "--results-topic", "dead-letters"], "the topic of dead letters"),
        (
            ["--track", "core", "--results-topic", "x", "--set", "outputs.dead_letter_topic=x"],
            "the topic of dead letters",
        ),
        (["--track", "core", "--results-topic", ""], "a name is missing"),
        (["--track", "core", "--results-file", ""], "a name is missing"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_starts(
    log: Path, tmp_path: Path, options: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("ingest", log, "-c", "c", *options, status=2)
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert not Path("c").exists()
    assert not Path("r").exists()


@pytest.mark.parametrize(
    ("file", "options", "said"),
    [
        ("s", ["--save", "s"], "the file of --save"),
        ("s", ["--save", "there/../s"], "the file of --save"),
        (
            "s",
            ["--save", "a", "--set", "outputs.statistics=link/s"],
            "the file of outputs.statistics",
        ),
        ("a", ["--save", "b", "--set", "graph.from_store=a"], "the file of graph.from_store"),
        ("stream.log", ["--save", "a"], "what is read"),
        ("hard", ["--save", "a"], "what is read"),
        ("stream.log-wal", ["--save", "a"], "a part of the log"),
        ("link/stream.log-shm", ["--save", "a"], "a part of the log"),
        ("c", ["-c", "c"], "in the directory of --checkpoint"),
        ("link/c/lock", ["-c", "c"], "in the directory of --checkpoint"),
    ],
)
def test_a_results_file_that_has_another_use_here_is_refused(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    file: str, options: list[str], said: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    Path("link").symlink_to(".")
    Path("hard").hardlink_to(log)
    before = log.read_bytes()
    done = run("ingest", log, *options, "--track", "core", "--results-file", file, status=2)
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert log.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} <= {
        "stream.log", "stream.log-wal", "stream.log-shm", "there", "link", "hard"
    }  # fmt: skip


def test_options_of_results_are_in_one_panel() -> None:
    said = run("ingest", "--help").stdout
    panel = said[said.index("Figures and results") :]
    panel = panel[: panel.index("\u2570")]
    for option in ("--track", "--results-topic", "--results-file", "--alert"):
        assert f"│ {option} " in panel


def test_a_topic_that_is_not_there_is_told(log: Path, tmp_path: Path) -> None:
    failed = run("plot", "results", log, tmp_path / "a.png", "--topic", "nope", status=1)
    assert "no topic 'nope'" in failed.stderr
    assert "--topic" in failed.stderr
    absent = run("plot", "results", tmp_path / "absent.log", tmp_path / "a.png", status=1)
    assert "cannot be read" in absent.stderr


def test_a_file_that_can_hold_no_results_is_refused_before_anything_is_made(
    edge_file: Path, tmp_path: Path
) -> None:
    own = tmp_path / "config.json"
    own.write_text('{"settings": {"a": 1}}')
    for file, said in ((own, "no file of results"), ("/dev/full", "not a plain file")):
        done = run("ingest", edge_file, "--save", tmp_path / "a", "--track", "core", "--checkpoint",
                   tmp_path / "c", "--results-file", file, status=1)  # fmt: skip
        assert f"lpma: {file}: " in done.stderr
        assert said in done.stderr
    assert own.read_text() == '{"settings": {"a": 1}}'
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "c").exists()


def test_metrics_say_what_was_sent(log: Path) -> None:
    with (
        ingest.SqliteLog(log) as source,
        ingest.Pipeline(
            source, lpma.Graph(device="cpu"), track=["core"], results=source, alerts=["core > 1"]
        ) as pipeline,
    ):
        pipeline.run("end")
        figures = {
            sample.name: sample.value
            for family in PipelineCollector(pipeline).collect()
            for sample in family.samples
            if sample.name.startswith("lpma_results")
        }
    assert figures == {
        "lpma_results_records_total": 3,
        "lpma_results_rows_total": 5 + 1 + 3,
        "lpma_results_alerts_total": 3,
        "lpma_results_repeats_total": 0,
        "lpma_results_waiting": 0,
    }
