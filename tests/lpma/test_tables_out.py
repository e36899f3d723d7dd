"""Tables, csv and XML of snapshots, read back by other libraries and made into graphs again."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import algorithms
import lpma
from lpma.snapshot import export
from lpma.snapshot.export import xml
from tests.support.oracles import host

NAMES = ["alice", 'quote " and, comma', "two\nlines", "çelik", " blank ", "5", "名前"]


def graph(device: str, named: bool, directed: bool = True) -> lpma.Graph:
    rng = np.random.default_rng(9)
    src, dst = rng.integers(0, 7, (2, 20))
    weight, time = rng.random(20), rng.integers(-5, 10**12, 20)
    label = np.array(NAMES, object) if named else np.arange(100, 107)
    return lpma.from_edges(
        label[src], label[dst], weight, time, device=device, directed=directed
    )  # fmt: skip


def edges_of(g: lpma.Graph) -> list[tuple[Any, ...]]:
    """By way of queries: (source, target, weight, time), once in either direction."""
    return sorted(
        ((u, v, *g.edge(u, v)) for u in g for v in g.neighbors(u).tolist()), key=str  # type: ignore[misc]
    )  # fmt: skip


EXTREMES = [0.0, 1.0, 0.1, 1e5, 999_999.0, 1e6, 1e7, 16777217.0, 1e15, 1e-7, 2.5, 1e30]


@pytest.mark.parametrize("weight_dtype", [None, "float32", "float64"])
@pytest.mark.parametrize("names", [None, NAMES, [*NAMES[:4], 5, -6, 2**64 - 1], range(7)], ids=str)
@pytest.mark.parametrize("directed", [False, True])
def test_lines_are_those_that_arrow_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: Any, weight_dtype: Any, directed: bool
) -> None:
    """Arrow's writer is the oracle, byte for byte."""
    monkeypatch.setattr(export.edges, "CHUNK_EDGES", 5)
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 7, (2, 30))
    if names is not None:
        label = np.empty(7, object)
        label[:] = list(names)
        src, dst = label[src], label[dst]
    else:
        src, dst = src * 10**9 // 3, dst * 10**9 // 3
    weight = np.append(EXTREMES, rng.random(30 - len(EXTREMES)) * 10.0 ** rng.integers(-9, 9, 18))
    time = np.append([-(2**62), -1, 0, 9, 10, 2**62], rng.integers(-(10**12), 10**12, 24))
    g = lpma.Graph(
        device="cpu", directed=directed, names=names is not None, weight_dtype=weight_dtype
    )
    g.insert(src, dst, np.maximum(weight, 1e-12), time)
    g.insert(src[:4], dst[:4], -np.maximum(weight[:4], 1e-12), time[:4])  # exactly 0
    for compact in (False, True):
        if names is None and not compact:
            continue
        s = g.snapshot(compact=compact)
        s.write_csv(tmp_path / "ours.csv")
        table = s.to_arrow()
        if "src_number" not in table.column_names and b"src_number" in _first_line(tmp_path):
            wrong = pa.array(np.zeros(len(table), np.bool_))
            table = table.add_column(1, "src_number", wrong).add_column(3, "dst_number", wrong)
        with open(tmp_path / "theirs.csv", "wb") as file:
            file.write(",".join(table.column_names).encode() + b"\n")
            plain = pyarrow.csv.WriteOptions(include_header=False)
            pyarrow.csv.write_csv(table, file, plain)
        assert (tmp_path / "ours.csv").read_bytes() == (tmp_path / "theirs.csv").read_bytes()


def _first_line(folder: Path) -> bytes:
    return (folder / "ours.csv").read_bytes().split(b"\n")[0]


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_what_goes_out_comes_in_again(
    device: str, tmp_path: Path, named: bool, directed: bool, compact: bool
) -> None:
    g = graph(device, named, directed)
    s = g.snapshot(compact=compact)
    s.write_csv(tmp_path / "e.csv")
    s.write_parquet(tmp_path / "e.parquet")
    multiline = pyarrow.csv.ParseOptions(newlines_in_values=True)
    for made in (
        s.to_pandas(), s.to_polars(), s.to_arrow(), pd.read_csv(tmp_path / "e.csv"),
        pl.read_csv(tmp_path / "e.csv"), pyarrow.parquet.read_table(tmp_path / "e.parquet"),
        pyarrow.csv.read_csv(tmp_path / "e.csv", parse_options=multiline),
    ):  # fmt: skip
        again = lpma.from_dataframe(
            made, weight="weight", time="time", device=device, directed=directed
        )
        assert edges_of(again) == edges_of(g)
        assert len(made) == g.num_edges


def test_csv_has_a_plain_header_and_rows(device: str, tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    lpma.Graph(device=device).snapshot().write_csv(path)
    assert path.read_text() == "src,dst,weight,time\n"
    g = lpma.from_edges([1, 2], [2, 3], device=device, weight_dtype=None, times=False)
    g.snapshot().write_csv(path)
    assert path.read_text() == "src,dst\n1,2\n2,3\n"
    lpma.from_edges([1, 2], [2, 3], [0.1, 1e30], 7, device=device).snapshot().write_csv(path)
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    assert [tuple(map(float, row)) for row in rows[1:]] == [(1, 2, 0.1, 7), (2, 3, 1e30, 7)]
    with pytest.raises(OSError, match=r"must end with .csv"):
        g.snapshot().write_csv(tmp_path / "e.tsv")


def test_names_of_two_types_are_told_apart(device: str, tmp_path: Path) -> None:
    g = lpma.from_edges([5, "5"], ["5", -7], device=device, times=False)
    table = g.snapshot().to_polars()
    assert table.columns == ["src", "src_number", "dst", "dst_number", "weight"]
    assert table.rows() == [("5", True, "5", False, 1.0), ("5", False, "-7", True, 1.0)]
    g.snapshot().write_csv(tmp_path / "e.csv")
    assert (tmp_path / "e.csv").read_text().splitlines()[1] == '"5",true,"5",false,1'


@given(st.data(), st.booleans())
def test_a_frame_of_results(data: Any, compact: bool) -> None:
    src = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=20))
    dst = data.draw(st.lists(st.integers(0, 30), min_size=len(src), max_size=len(src)))
    g = lpma.from_edges(src, dst, directed=False, device="cpu")
    g.add_vertices([40, 50])
    g.remove_vertices(src[0])
    s = g.snapshot(compact=compact)
    core, rank = algorithms.core_numbers(s), algorithms.pagerank(s)
    found = s.frame(core=core, rank=rank)
    G = s.to_networkx()
    G.remove_edges_from(list(nx.selfloop_edges(G)))
    expected = nx.core_number(G)
    assert dict(zip(found.vertex, found.core, strict=True)) == expected
    assert found.vertex.tolist() == list(g)
    assert list(found.columns) == ["vertex", "core", "rank"]
    assert found["rank"].sum() == pytest.approx(1)


def test_frames_of_every_library(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    g = lpma.from_edges(["a", "b"], ["b", "c"], device=device, directed=False)
    g.remove_vertices("a")
    s = g.snapshot()
    core = algorithms.core_numbers(s)
    expected = {"vertex": ["b", "c"], "core": [1, 1]}
    assert s.frame(core=core).to_dict("list") == expected
    assert s.frame("pandas", core=core).to_dict("list") == expected
    assert s.frame("polars", core=core).to_dict(as_series=False) == expected
    assert s.frame("arrow", core=core).to_pydict() == expected
    assert s.frame("arrow", library=host(core)).column_names == ["vertex", "library"]
    assert s.frame("arrow").to_pydict() == {"vertex": ["b", "c"]}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"core": core[:2]}, r"core has shape \[2\], and one value for each of 3 rows"),
        ({"core": 7}, r"core has shape \[\]"),
        ({"vertex": core}, "vertex is the column of the vertices"),
    ]
    for columns, message in wrong:
        with pytest.raises(export.ExportError, match=message):
            s.frame(**columns)
    with pytest.raises(export.ExportError, match="one of auto, pandas, polars, arrow, not 'numpy'"):
        s.frame("numpy", core=core)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(s.frame(core=core), pa.Table)
    for call in (s.to_pandas, lambda: s.frame("pandas", core=core)):
        with pytest.raises(lpma.LpmaError, match="pip install pandas"):
            call()


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("form", ["graphml", "gexf"])
def test_xml_is_read_back_by_networkx(
    device: str, tmp_path: Path, form: str, directed: bool
) -> None:
    src, dst = ["a<b", "ç&", '"'], ["ç&", '"', "a<b"]
    by_name = lpma.from_edges(src, dst, device=device, directed=directed)
    for g in (graph(device, False, directed), by_name):
        g.add_vertices("alone" if g.names is not None else 200)
        s, path = g.snapshot(), tmp_path / f"g.{form}"
        getattr(s, f"write_{form}")(path)
        again = getattr(nx, f"read_{form}")(path, node_type=int if g.names is None else str)
        expected = s.to_networkx()
        assert again.is_directed() == directed
        assert set(again) == set(expected)
        assert weighted(again) == weighted(expected)


def weighted(G: Any) -> dict[Any, Any]:
    """The edges, those of an undirected graph in both directions."""
    edges = nx.DiGraph(G).edges(data=True)
    return {(u, v): (found["weight"], found["time"]) for u, v, found in edges}


def test_what_xml_cannot_hold(device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "g.gexf"
    s = lpma.from_edges([5, "a"], ["5", 5], device=device).snapshot()
    with pytest.raises(export.ExportError, match="no integers as names"):
        s.write_gexf(path)
    s = lpma.from_edges(["a", "b"], ["b", "c\x00"], device=device).snapshot()
    with pytest.raises(export.ExportError, match="a character that XML cannot hold"):
        s.write_gexf(path)
    monkeypatch.setattr(xml, "MAX_ITEMS", 4)
    with pytest.raises(export.ExportError, match="5 vertices and edges are more than the 4 that"):
        s.write_graphml(tmp_path / "g.graphml")
    with pytest.raises(OSError, match=r"must end with .gexf"):
        s.write_gexf(tmp_path / "g.xml")
    assert list(tmp_path.iterdir()) == []
