"""`lpma load`: what is read, how, and what is said of lines that are no edges."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ingest
import lpma
from ingest.sources.files import formats
from ingest.sources.files.unpacking import head_of
from tests.conftest import real_graph
from tests.support.command_line import document, run


def test_load_a_file(edge_file: Path, tmp_path: Path) -> None:
    found = document("load", edge_file, tmp_path / "a.lpma")
    assert (found["operations"], found["vertices"], found["edges"]) == (6, 4, 5)
    assert found["rejected"] == 0
    assert found["directed"]
    assert found["bytes"] == (tmp_path / "a.lpma").stat().st_size
    graph = lpma.Graph.load(tmp_path / "a.lpma", device="cpu")
    graph.check()
    weight = graph.edges([0], [1]).weights
    assert weight is not None
    assert weight[0] == 2  # appended twice


def test_load_options(edge_file: Path, tmp_path: Path) -> None:
    options = ["--undirected", "--weight", "none", "--no-times", "--strategy", "top-down",
               "--segment-size", "4", "--batch-size", "2"]  # fmt: skip
    found = document("load", edge_file, tmp_path / "a.lpma", *options)
    assert (found["directed"], found["weight_dtype"], found["times"]) == (False, None, False)
    assert (found["strategy"], found["segment_size"], found["version"]) == ("top-down", 4, 3)
    assert found["edges"] == 4  # 0-1, 0-2, 1-2 and the loop


def test_load_symmetric_matrix_market(tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 0.5\n3 3 4\n")
    directed = document("load", path, tmp_path / "d.lpma", "--directed")
    undirected = document("load", path, tmp_path / "u.lpma", "--undirected")
    as_it_is = document("load", path, tmp_path / "i.lpma")
    assert (directed["edges"], undirected["edges"], as_it_is["edges"]) == (3, 2, 2)
    assert (undirected["directed"], as_it_is["directed"]) == (False, False)
    weight = lpma.Graph.load(tmp_path / "u.lpma", device="cpu").edges([0], [1]).weights
    assert weight is not None
    assert weight[0] == 0.5


def test_load_generated(tmp_path: Path) -> None:
    found = document("load", "rmat:scale=8,edges=1000", tmp_path / "a.lpma")
    assert found["operations"] == 1000
    assert not document("load", "grid:rows=3,columns=4", tmp_path / "b.lpma")["directed"]
    assert document("info", tmp_path / "b.lpma")["edges"] == 17


def test_load_bad_lines(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt.gz"
    path.write_bytes(gzip.compress(b"1 2\nx y\n3 4\n"))
    result = run("load", path, tmp_path / "a.lpma", "--no-names", "--json")
    assert json.loads(result.stdout)["rejected"] == 1
    assert "line 2, 'x y'" in result.stderr
    run("load", path, tmp_path / "b.lpma", "--no-names", "--strict", status=1)
    assert not (tmp_path / "b.lpma").exists()


def test_load_a_real_dataset(tmp_path: Path) -> None:
    columns = real_graph("ca-HepTh")
    found = document("load", "ca-HepTh", tmp_path / "a.lpma")
    assert not found["directed"]
    assert found["edges"] == 25_973 + 25
    ends = np.concatenate((columns["src"], columns["dst"]))
    assert (found["vertices"], found["rows"]) == (len(np.unique(ends)), 1 + ends.max())
    facts = document("info", "ca-HepTh")
    assert facts["here"].endswith("ca-HepTh.npz")


def test_no_file_of_edges_needs_pandas(tmp_path: Path) -> None:
    """Whose import takes longer than most files."""
    from pyarrow import csv, parquet

    (tmp_path / "a.csv").write_text('src,dst,weight\nann,"böb",1\nNA,cy,2.5\n')
    (tmp_path / "b.csv").write_text("src,dst,weight\n1,2,1\n2,3,2.5\n")
    (tmp_path / "a.jsonl").write_text('{"src": "ann", "dst": "bob"}\n{"src": "NA", "dst": "cy"}\n')
    for name in ("a", "b"):
        parquet.write_table(csv.read_csv(tmp_path / f"{name}.csv"), tmp_path / f"{name}.parquet")
    commands = [
        *(f"load {name} g.lpma" for name in ("a.csv", "b.csv", "a.jsonl", "a.parquet")),
        "load b.parquet g.lpma", *(f"export g.lpma g.{to}" for to in ("csv", "parquet", "npz")),
    ]  # fmt: skip
    code = (
        "import sys; from ingest.cli.commands import app\n"
        "for line in sys.argv[1:]:\n"
        "    app(line.split(), standalone_mode=False)\n"
        "    assert 'pandas' not in sys.modules, line\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *commands],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "read as names of vertices: NA (1)" in done.stderr


def test_what_a_file_is_is_asked_once(
    edge_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads: list[Path] = []

    def counted(path: Path, size: int) -> bytes:
        heads.append(path)
        return head_of(path, size)

    monkeypatch.setattr(formats, "head_of", counted)
    document("load", edge_file, tmp_path / "a.lpma")
    assert heads == [edge_file]
    assert ingest.read_csv(edge_file, device="cpu").num_edges == 5
    assert heads == [edge_file] * 2
