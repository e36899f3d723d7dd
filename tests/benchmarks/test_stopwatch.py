"""The stopwatch, and what a report keeps of it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import machine
from benchmarks.report import Report, write_json
from benchmarks.stopwatch import (
    Figure,
    Kernel,
    WrongAnswer,
    alone,
    mean,
    measure,
    median,
    on_host,
    race,
)  # fmt: skip

ROOT = Path(__file__).parents[2]


def test_measure_rotates_verifies_and_keeps_to_its_budget() -> None:
    order: list[tuple[str, int]] = []
    verified: dict[str, tuple[int, Any]] = {}

    def kernel(name: str) -> Kernel:
        def run(i: int) -> int:
            order.append((name, i))
            return 10 * i

        return Kernel(lambda i: i, run)

    def verify(name: str, rounds: int, result: Any) -> None:
        verified[name] = (rounds, result)

    timings = measure({"a": kernel("a"), "b": kernel("b")}, verify, rounds=3, warmup=1)
    assert order == [(n, i) for i, names in enumerate(("ab", "ba", "ab", "ba")) for n in names]
    assert verified == {"a": (4, 30), "b": (4, 30)}
    assert [len(timings[n].seconds) for n in "ab"] == [3, 3]
    assert timings["a"].slowest >= timings["a"].median > 0

    stopped = measure({"a": kernel("a")}, verify, rounds=3, warmup=1, budget_s=0.0)
    assert stopped["a"].rounds == 1
    assert len(stopped["a"].seconds) == 1
    assert verified["a"] == (1, 0)


def test_measure_lets_no_wrong_answer_pass() -> None:
    def verify(name: str, rounds: int, result: Any) -> None:
        raise WrongAnswer(name)

    with pytest.raises(WrongAnswer):
        measure({"a": Kernel(lambda i: i, lambda i: i)}, verify, rounds=1)


def test_race_and_alone_keep_their_samples() -> None:
    answers: list[tuple[str, Any]] = []
    actions = {"a": lambda: 1, "b": lambda: 2}
    timings = race(actions, lambda name, answer: answers.append((name, answer)), rounds=3)
    assert answers == [("a", 1), ("b", 2)]
    assert [len(timing.median.samples) for timing in timings.values()] == [3, 3]
    assert len(alone(lambda: None, rounds=5, clock=on_host).samples) == 5


def test_a_figure_scales_with_its_samples() -> None:
    found = median([1.0, 4.0, 2.0])
    assert (found, found.samples) == (2.0, (1.0, 4.0, 2.0))
    for scaled, expected in (
        (found * 2, (2.0, 8.0, 4.0)), (2 * found, (2.0, 8.0, 4.0)),
        (found / 2, (0.5, 2.0, 1.0)), (8 / found, (8.0, 2.0, 4.0)),
    ):  # fmt: skip
        assert isinstance(scaled, Figure)
        assert scaled.samples == expected
    ratio = found / mean([1.0, 3.0])
    assert ratio == 1.0
    assert not isinstance(ratio, Figure)
    assert math.isnan(median(()))


def test_a_report_as_text() -> None:
    rows = [{"what": "x", "rate": 1234.5}, {"what": "y", "rate": math.nan}]
    report = Report("name", "title", rows)
    assert "| x    | 1,234 |" in report.text()
    assert "| y    |     – |" in report.text()


def test_json_says_what_was_measured_and_every_sample(tmp_path: Path) -> None:
    report = Report("name", "title", [{"graph": "g", "ms": median([3.0, 1.0, 2.0]) * 10}])
    report.rows.append({"graph": "published", "ms": math.inf})
    write_json(tmp_path / "out.json", [report], True, machine.describe())
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["reports"][0]["rows"] == [
        {"graph": "g", "ms": 20.0}, {"graph": "published", "ms": None},
    ]  # fmt: skip
    assert found["reports"][0]["samples"] == [{"ms": [30.0, 10.0, 20.0]}, {}]
    described = found["machine"]
    assert described["cores"] >= 1
    assert described["packages"]["numpy"] == np.__version__
    assert described["code"] == machine.code(ROOT)
    assert len(described["code"]["digest"]) == 16


def test_a_tree_without_a_checkout_has_a_digest(tmp_path: Path) -> None:
    (tmp_path / "lpma").mkdir()
    (tmp_path / "lpma" / "x.py").write_text("a = 1\n")
    first = machine.code(tmp_path)
    assert (first["commit"], first["dirty"]) == (None, None)
    (tmp_path / "lpma" / "x.py").write_text("a = 2\n")
    assert machine.code(tmp_path)["digest"] != first["digest"]
