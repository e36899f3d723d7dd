"""The runner: every experiment by its name, small runs from end to end, and two trees compared."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from benchmarks import __main__ as runner
from benchmarks import device, experiments
from benchmarks.report import Report, Setting

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", experiments.KNOWN)
def test_every_experiment_is_there(name: str) -> None:
    """Modules can be imported without CuPy, which is imported where it is used."""
    module, function = experiments.KNOWN[name].split(":")
    assert callable(getattr(importlib.import_module(f"benchmarks.{module}"), function))


@pytest.mark.integration
def test_runner_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "bench.json"
    only = "lpma,lpma-never,scipy,numpy"
    names = ["updates", "queries", "csr", "latency", "live-queries", "expansion"]
    assert runner.main([*names, "--quick", "--only", only, "--json", str(out)]) == 0
    found = json.loads(out.read_text())
    reports = {report["name"]: report for report in found["reports"]}
    assert list(reports) == names
    for row in reports["updates"]["rows"]:
        assert row["lpma"] > 0
        assert row["networkit"] is None
    assert reports["live-queries"]["rows"][0]["queries"] > 0
    for name in ("latency", "expansion"):
        assert (tmp_path / f"{name}.png").stat().st_size > 1000
    for row in reports["expansion"]["rows"]:
        assert row["moved"] < 2 * row["predicted"] < row["global"]
    for row in reports["latency"]["rows"]:
        assert row["strategy, merge"] != "top-down, never" or row["redundant"] == 0
    assert "ratio" in capsys.readouterr().out


def test_an_unknown_name_is_bad_usage() -> None:
    with pytest.raises(SystemExit) as stopped:
        runner.main(["no-such-experiment"])
    assert stopped.value.code == 2


def test_gpu_experiments_are_skipped_where_none_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(device, "why_none", lambda: "no CUDA device")
    assert runner.main(["figure8", "gpu-updates"]) == 0
    assert "figure8: skipped, no CUDA device" in capsys.readouterr().err


@pytest.mark.integration
def test_compare_sets_a_tree_beside_itself(tmp_path: Path) -> None:
    out = tmp_path / "compare.json"
    names = "insert-1000,k-core,pipeline-rows,import"
    arguments = ["compare", "--quick", "--only", names, "--base", str(ROOT), "--json", str(out)]
    assert runner.main(arguments) == 0
    (report,) = json.loads(out.read_text())["reports"]
    assert [row["what"] for row in report["rows"]] == names.split(",")
    for row, samples in zip(report["rows"], report["samples"], strict=True):
        assert row["ratio"] == row["base"] / row["this"] > 0
        assert len(samples["base"]) == len(samples["this"]) == row["rounds"]


def test_compare_wants_a_tree_and_cases_that_exist(tmp_path: Path) -> None:
    unknown = ["--base", str(ROOT), "--only", "no-such-case"]
    for arguments in ([], ["--base", str(tmp_path)], unknown):
        with pytest.raises(SystemExit, match="compare: "):
            runner.main(["compare", *arguments])


def test_only_wants_names_that_exist(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, setting: Setting) -> list[Report]:
        setting.wants("lpma")
        return []

    monkeypatch.setattr(experiments, "run", run)
    assert runner.main(["csr", "--only", "lpma"]) == 0
    assert runner.main(["csr", "--only", "lpma,scypi"]) == 1
    assert "--only: no scypi; there are lpma" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--base=.", "--device=cuda"])
def test_options_of_compare_are_refused_elsewhere(option: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        runner.main(["csr", option])
    assert stopped.value.code == 2
