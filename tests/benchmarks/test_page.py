"""The page of figures is what the kept results make, and says what was not measured; `headline`
measures its rows and keeps them."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from benchmarks import headline, machine, page
from benchmarks.report import Setting

MOST_ROWS = 8  # of a table: more is a note's, or an experiment's


def row(ours: float, **others: float) -> dict[str, Any]:
    return {"ms": {"lpma": ours} | others, "command": "headline --only x", "date": "2026-11-30",
            "commit": "0123456789abcdef", "missing": []}  # fmt: skip


def found(**changes: Any) -> dict[str, Any]:
    return {
        "machine": {"title": "A machine"},
        "notes": [],
        "cpu": {},
        "cuda": {},
        "kept": [],
    } | changes


def line(text: str, start: str) -> str:
    (only,) = [line for line in text.splitlines() if line.startswith(start)]
    return only


def test_the_page_is_what_the_results_make() -> None:
    made = page.text(page.kept())
    assert page.PAGE.read_text(encoding="utf-8") == made, "run `python -m benchmarks page`"


def test_the_readme_shows_three_figures_of_the_page() -> None:
    text = page.README.read_text(encoding="utf-8")
    assert page.readme(text, page.kept()) == text, "run `python -m benchmarks page`"
    shown = text.partition("<!-- figures")[2].partition("<!-- /figures")[0]
    _, _, *figures = [line for line in shown.splitlines() if line.startswith("|")]
    assert len(figures) == 3


def test_no_table_is_long_and_each_row_has_its_command() -> None:
    lines = page.text(page.kept()).splitlines()
    tables = [list(of) for is_row, of in groupby(lines, lambda s: s.startswith("|")) if is_row]
    assert tables
    for _, _, *rows in tables:
        assert 0 < len(rows) <= MOST_ROWS
        for cells in rows:
            assert cells.split("|")[-2].strip().startswith(("`", "[note]("))


def test_what_was_not_measured_says_so() -> None:
    rows = {
        "insert-10": row(2.0, scipy=9.0, networkit=1.0),
        "core": row(5.0) | {"missing": ["igraph"]},
    }
    text = page.text([found(cpu=rows)])
    assert line(text, "| insert 10 |") == ("| insert 10 | networkit | 0.5 | `headline --only x` |")
    assert "| none (not installed: igraph) |" in line(text, "| core numbers |")
    assert page.UNMEASURED in line(text, "| PageRank |")
    assert f"On the device: {page.UNMEASURED}." in text
    assert "Measured 2026-11-30 (01234567)." in text
    assert "| 2 | networkit | 1 | 0.5 |" in page.text([found(cuda=rows)])


def test_quoted_figures_say_where_from() -> None:
    quoted = {"quoted": "an old page", "date": "2026-11-01", "command": "development/notes/x.md"}
    kept = [{"table": "More", "what": "w", "ours": "1 ms", "beside": "2", "commit": ""} | quoted]
    text = page.text([found(kept=kept)])
    assert "Quoted from an old page of 2026-11-01." in text
    assert line(text, "| w |") == "| w | 1 ms | 2 | [note](development/notes/x.md) |"


def test_all_rows_are_measured_on_both() -> None:
    for measures in (headline.ON_CPU, headline.ON_CUDA):
        assert sorted(name for names in measures.values() for name in names) == sorted(page.ROWS)


def test_a_quick_headline_keeps_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    report = headline.headline(Setting(quick=True, only=frozenset({"edges", "mixed"})))
    assert {row["row"] for row in report.rows} == {"edges", "mixed"}
    assert all(row["lpma"] > 0 < row["ratio"] for row in report.rows)
    assert not list(tmp_path.iterdir())


def test_rows_are_kept_in_the_place_of_those_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def measure(names: list[str], quick: bool) -> Any:
        yield "edges", {"lpma": 3.0, "scipy": 6.0}

    monkeypatch.setattr(page, "RESULTS", tmp_path)
    monkeypatch.setattr(headline, "ON_CPU", {measure: ("edges",)})
    path = tmp_path / f"{machine.name(machine.describe())[0]}.json"
    path.write_text(json.dumps(found(cpu={"edges": row(1.0), "core": row(2.0)})))
    headline.headline(Setting())
    (now,) = page.kept()
    assert now["cpu"]["core"] == row(2.0)
    edges = now["cpu"]["edges"]
    assert edges["ms"] == edges["least"] == {"lpma": 3.0, "scipy": 6.0}
    assert edges["command"] == "headline --only edges"
    assert edges["commit"] == machine.code(page.ROOT)["commit"]


def test_a_machine_has_a_name_for_files() -> None:
    on_cpu = {"processor": "Intel(R) Xeon(R) Processor", "cores": 2, "device": None}
    assert machine.name(on_cpu) == (
        "intel-xeon-processor-2-cores",
        "Intel(R) Xeon(R) Processor, 2 cores",
    )
    assert machine.name(on_cpu | {"device": {"name": "NVIDIA H200"}})[0] == "nvidia-h200"
