"""`lpma plot`, and the run log it draws."""

from __future__ import annotations

from pathlib import Path

import ingest
import lpma
from ingest.plots.run_log import RunLog, read_run
from tests.support.command_line import PNG, document, run


def test_plots(store: Path, edge_file: Path, tmp_path: Path) -> None:
    statistics = tmp_path / "run.jsonl"
    run("ingest", edge_file, "--save", tmp_path / "a.lpma", "--batch-size", 1,
        "--set", f"outputs.statistics={statistics}", "--set", "graph.segment_size=2")  # fmt: skip
    found = document("plot", "latency", statistics, tmp_path / "latency.png")
    assert (found["batches"], found["operations"]) == (6, 6)
    assert found["expansions"] > 0
    assert (tmp_path / "latency.png").read_bytes().startswith(PNG)
    assert document("plot", "degrees", store, tmp_path / "d.png")["max_degree"] == 2
    assert (tmp_path / "d.png").read_bytes().startswith(PNG)
    run("plot", "degrees", store, tmp_path / "d.pdf", status=2)
    (tmp_path / "other").write_text("hello\n")
    run("plot", "latency", tmp_path / "other", tmp_path / "x.png", status=1)


def test_a_torn_last_line_of_a_run_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    graph = lpma.Graph(device="cpu")
    figures = ingest.BatchStats(5, 0, 0.1, 0.2, 5, 1, 5, 0.5, 0)
    with RunLog(path, graph) as log:
        log(figures)
    with open(path, "ab") as file:
        file.write(b'{"operations": 7, "sec')
    assert read_run(path)["operations"].tolist() == [5]
    with RunLog(path, graph) as log:
        log(figures)
    assert read_run(path)["operations"].tolist() == [5, 5]
