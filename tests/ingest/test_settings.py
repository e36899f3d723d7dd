"""The settings of a pipeline: what it may be told, by name and by type, and what it says of the
rest, before anything is read or written."""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import networkx
import numpy as np
import pytest
from typer.testing import CliRunner

import lpma
from ingest import (
    IngestError,
    Pipeline,
    PipelineError,
    Settings,
    SettingsDict,
    SqliteLog,
    encode_row,
)
from ingest.cli import app
from ingest.errors import UnknownSetting
from tests.support.stream_model import SavedModel

HERE = lpma.Graph(device="cpu")
NOT_THERE = "cuda:77"


def test_the_typed_arguments_are_the_settings() -> None:
    hints = get_type_hints(Settings)
    typed = get_type_hints(SettingsDict)
    del typed["ids"]  # the last release's word for names
    assert typed == {field.name: hints[field.name] for field in fields(Settings)}


@pytest.mark.parametrize("name, near", [
    ("batch_szie", "batch_size"), ("chekpoint", "checkpoint"), ("dead_letter", "dead_letters"),
    ("colour", "max_hops"),
])  # fmt: skip
def test_a_misspelt_setting_names_pipeline(tmp_path: Path, name: str, near: str) -> None:
    """And the nearest there is, or all."""
    misspelt: dict[str, Any] = {name: 5}
    with SqliteLog(":memory:") as log:
        with pytest.raises(UnknownSetting, match=rf"^Pipeline has .*'{name}'.* {near}") as caught:
            Pipeline(log, HERE, tmp_path / "c", **misspelt)
        if name != "chekpoint":  # which `resume` gets by position, as often as not
            with pytest.raises(UnknownSetting, match=rf"^Pipeline\.resume has .* {near}"):
                Pipeline.resume(tmp_path / "c", log, **misspelt)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, IngestError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name, value", [
    ("batch_size", "100"), ("batch_size", 2.5), ("batch_size", True), ("batch_size", None),
    ("max_hops", -1), ("history", 0.5), ("batch_interval", "1"), ("batch_interval", float("nan")),
    ("query_interval", None), ("checkpoint_interval", -1), ("reply_topics", "replies"),
    ("reply_topics", (1,)), ("clock", 5), ("ids", "text"), ("names", 1),
    ("records", "csv"), ("late", "never"),
])  # fmt: skip
def test_a_setting_of_a_wrong_type_or_value(tmp_path: Path, name: str, value: Any) -> None:
    wrong: dict[str, Any] = {name: value}
    with SqliteLog(":memory:") as log, pytest.raises(PipelineError, match=name):
        Pipeline(log, HERE, tmp_path / "c", **wrong)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("until", ["END", "bogus", -1, 2.5, True, b"end", np.int64(3)], ids=repr)
def test_run_says_what_until_may_be(until: Any) -> None:
    """At once: any other text would mean forever."""
    with SqliteLog(":memory:") as log:
        log.produce("updates", encode_row(1, 2))
        pipeline = Pipeline(log, SavedModel())
        with pytest.raises(PipelineError, match=r"until is .*: expected a number .* 'end', a func"):
            pipeline.run(until)
        assert pipeline.stats.operations == 0
        assert (pipeline.run(0), pipeline.run(1), pipeline.run("end")) == (0, 1, 0)


@pytest.mark.parametrize("source", ["y.log", None, HERE, Path("y.log")], ids=repr)
def test_what_is_no_source(tmp_path: Path, source: Any) -> None:
    refused = pytest.raises(PipelineError, match=r"source is of type .* ingest\.FileSource\(path\)")
    with refused:
        Pipeline(source, HERE, tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
    with SqliteLog(":memory:") as log:
        log.create_topic("updates")
        Pipeline(log, SavedModel(), tmp_path / "c").close()
    with refused:
        Pipeline.resume(tmp_path / "c", source, load=SavedModel.load)


@pytest.mark.parametrize(
    "graph", [None, networkx.Graph(), "g.lpma", 5], ids=lambda given: type(given).__name__
)
def test_what_is_no_graph(tmp_path: Path, graph: Any) -> None:
    with SqliteLog(":memory:") as log:
        with pytest.raises(PipelineError, match=r"graph is of type .*: .* lpma\.Graph\(\)"):
            Pipeline(log, graph, tmp_path / "c")
        assert list(tmp_path.iterdir()) == []


def test_numbers_of_numpy_are_numbers() -> None:
    told = Settings(batch_size=np.int64(5), batch_interval=np.float32(0.5))  # type: ignore[arg-type]
    assert (told.batch_size, told.batch_interval) == (5, 0.5)


# Devices -------------------------------------------------------------------------------------


def test_a_device_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    """By everything that takes one. The files named are not there, or no graphs: none is read."""
    place = tmp_path / "place"
    place.mkdir()
    checkpoint, garbage = place / "c", place / "g.lpma"
    garbage.write_bytes(b"no graph")
    with SqliteLog(tmp_path / "log") as source:
        source.create_topic("updates")
        with Pipeline(source, SavedModel(), checkpoint):
            pass
        before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
        refused = pytest.raises(lpma.DeviceError, match=NOT_THERE)
        with refused:
            Settings(device=NOT_THERE)
        with refused:
            lpma.Graph(device=NOT_THERE)
        with refused:
            lpma.Graph.load(garbage, NOT_THERE)
        with refused:
            Pipeline(source, HERE, place / "new", device=NOT_THERE)
        with refused:
            Pipeline.resume(checkpoint, source, device=NOT_THERE)
        with refused:
            Pipeline.resume(checkpoint, source, load=SavedModel.load, device=NOT_THERE)
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before


@pytest.mark.parametrize("arguments", [
    ["load", "none.txt", "s.lpma"], ["ingest", "none.txt", "-c", "checkpoint"],
    ["ingest", "--kafka", "localhost:1", "-c", "checkpoint"], ["query", "degree", "none.lpma", "0"],
    ["export", "none.lpma", "e.mtx"], ["info", "none.lpma"], ["run", "core", "none.lpma"],
])  # fmt: skip
def test_commands_refuse_it_too(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With status 1 and one line, of the device and not of files that are not there."""
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, [*arguments, "--device", NOT_THERE])
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1), result.stderr
    assert NOT_THERE in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_device_that_the_graph_is_not_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new pipeline makes no graph, so that its device could only be passed over."""
    monkeypatch.setattr("ingest.settings.check_device", lambda device: None)
    with SqliteLog(":memory:") as log:
        with pytest.raises(PipelineError, match=r"the graph is on cpu"):
            Pipeline(log, HERE, tmp_path / "c", device="cuda")
        assert list(tmp_path.iterdir()) == []
        for same in ("cpu", "auto"):
            Pipeline(log, HERE, device=same).close()


def test_a_device_is_looked_for_only_where_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    Settings(device="auto")
    Settings(device="cpu")
    with pytest.raises(lpma.DeviceError, match="CuPy"):
        Settings(device="cuda")


@pytest.mark.parametrize("wrong", [5, 0, b"1h=24", ["1h=24"]], ids=repr)
def test_what_is_no_ladder_is_told(wrong: Any) -> None:
    with pytest.raises(PipelineError, match=r"keep_checkpoints is .*: expected text, as '1h=24"):
        Settings(keep_checkpoints=wrong)


def test_a_window_may_be_a_number_of_numpy() -> None:
    found = Settings(window=np.int64(5))  # type: ignore[arg-type]
    assert type(found.window) is int
    assert found.window == 5
    for wrong in (True, np.bool_(True), np.float64(5), np.int64(-1)):
        with pytest.raises(PipelineError, match="window is"):
            Settings(window=wrong)  # type: ignore[arg-type]
