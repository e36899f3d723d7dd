"""`lpma export`: each ending, with ids and with names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import polars as pl
import pytest

from tests.support.command_line import document, run

EDGES = "ann,bob\nbob,cem\ncem,ann\ncem,dan\n"


def stores(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "named.csv").write_text(EDGES)
    (tmp_path / "plain.txt").write_text("0 1\n1 2\n2 0\n2 3\n")
    run("load", tmp_path / "named.csv", tmp_path / "named.lpma", "--names")
    run("load", tmp_path / "plain.txt", tmp_path / "plain.lpma")
    return {
        "named": [tuple(line.split(",")) for line in EDGES.split()],
        "plain": [("0", "1"), ("1", "2"), ("2", "0"), ("2", "3")],
    }


@pytest.mark.parametrize("compact", [[], ["--compact"]])
def test_every_ending_holds_the_edges(tmp_path: Path, compact: list[str]) -> None:
    for name, edges in stores(tmp_path).items():
        for ending in ("csv", "parquet", "graphml", "gexf", "npz", "mtx"):
            path = tmp_path / f"{name}.out.{ending}"
            told = document("export", tmp_path / f"{name}.lpma", path, *compact)
            assert (told["format"], told["edges"], told["vertices"]) == (ending, 4, 4)
            assert told["bytes"] == path.stat().st_size
            table = tmp_path / f"{name}.out.{ending}.names.csv"
            assert table.exists() == (name == "named" and ending in ("npz", "mtx"))
        for frame in (
            pl.read_csv(tmp_path / f"{name}.out.csv", infer_schema=False),
            pl.read_parquet(tmp_path / f"{name}.out.parquet").cast(pl.String),
        ):
            assert sorted(frame.select("src", "dst").rows()) == sorted(edges)
        for G in (
            nx.read_graphml(tmp_path / f"{name}.out.graphml"),
            nx.read_gexf(tmp_path / f"{name}.out.gexf"),
        ):
            assert sorted(G.edges) == sorted(edges)


def test_an_ending_that_is_unknown(tmp_path: Path) -> None:
    stores(tmp_path)
    store = tmp_path / "plain.lpma"
    finished = run("export", store, tmp_path / "e.xlsx", status=2)
    assert all(f".{ending}" in finished.stderr for ending in ("csv", "parquet", "gexf"))
    run("export", store, tmp_path / "e.csv", "--format", "gexf", status=2)
    assert not (tmp_path / "e.csv").exists()
