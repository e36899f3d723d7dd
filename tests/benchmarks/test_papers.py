"""The papers' programs agree, and what is quoted is whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import __main__ as runner
from benchmarks.papers import biclique_programs, diversity_programs, published
from benchmarks.stopwatch import WrongAnswer


@pytest.mark.integration
def test_diversity_by_its_programs_on_the_cpu(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"
    names = ["diversity-table2", "diversity-table4", "diversity-figure8"]
    only = "CPU-Div,MCPU-Div,lpma"
    assert runner.main([*names, "--quick", "--only", only, "--json", str(out)]) == 0
    found = json.loads(out.read_text())
    reports = {report["name"]: report["rows"] for report in found["reports"]}
    assert [row["model"] for row in reports["diversity-table2"]] == ["component", "core", "truss"]
    for row in reports["diversity-table2"]:
        assert min(row["CPU-Div"], row["MCPU-Div"], row["lpma"]) > 0
    assert reports["diversity-table4"][0]["MCPU-Div"] > 0
    assert reports["diversity-figure8"][0]["MCPU-Div"] > 0
    published = reports["diversity-table2-published"]
    assert len(published) == 24
    assert all("published" in row["graph"] for row in published)


def test_a_program_that_finds_others_is_caught() -> None:
    with pytest.raises(WrongAnswer, match="b: another answer than a's"):
        diversity_programs.race({"a": lambda: [(1, 2)], "b": lambda: [(2, 2)]}, rounds=1)


def test_biclique_programs_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a small graph made as the paper's are; an answer that differs is caught."""
    b = biclique_programs.synthetic("cpu", 60, 40, 500)
    assert b.num_left <= 60
    assert 400 < b.num_edges < 600
    count, seconds = biclique_programs.times(b, 2, 3)
    assert count > 0
    assert list(seconds) == list(biclique_programs.PROGRAMS)
    answers = iter(range(100))
    monkeypatch.setattr("algorithms.biclique.gbc.count", lambda *_: next(answers))
    with pytest.raises(WrongAnswer):
        biclique_programs.times(b, 2, 3)


def test_published_tables_are_whole() -> None:
    """As many values as graphs, or as columns."""
    by_graph: tuple[tuple[published.Columns, tuple[str, ...]], ...] = (
        (published.BICLIQUE_TABLE_3, published.BICLIQUE_GRAPHS),
        (published.BICLIQUE_TABLE_4, published.BICLIQUE_GRAPHS_OF_TABLE_4),
        (published.BICLIQUE_TABLE_5, published.BICLIQUE_GRAPHS),
        (published.CORE_TABLE_3_MS, published.CORE_GRAPHS),
        (published.CORE_TABLE_5_MB, published.CORE_GRAPHS),
    )
    for columns, graphs in by_graph:
        assert {len(values) for values in columns.values()} == {len(graphs)}
        assert len(published.by_graph(columns, graphs)) == len(graphs)
    rows = published.by_graph(published.BICLIQUE_TABLE_4, published.BICLIQUE_GRAPHS_OF_TABLE_4)
    assert rows[2] == {
        "graph": "BC (published)", "no balance": 8.02, "pre-runtime": 3.19, "runtime": 7.83,
        "joint": 2.99,
    }  # fmt: skip
    for table, titles in (
        (published.DIVERSITY_TABLE_2, published.DIVERSITY_TABLE_2_COLUMNS),
        (published.DIVERSITY_TABLE_3, published.DIVERSITY_TABLE_3_COLUMNS),
        (published.DIVERSITY_TABLE_4, published.DIVERSITY_TABLE_4_COLUMNS),
    ):
        assert len(published.by_model(table, titles)) == len(table)
