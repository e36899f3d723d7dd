"""Files with values that make no edges: what is said, and that the good rows are read."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow
import pytest
from pyarrow import parquet

import ingest
import lpma
from tests.support.edge_files import read


def test_integers_of_128_bits(tmp_path: Path) -> None:
    frame = pl.DataFrame({"src": pl.Series([1, 2], dtype=pl.Int128), "dst": [2, 3]})
    frame.write_parquet(tmp_path / "a.parquet")
    with pytest.raises(ingest.SourceError, match="integers of 64 bits"):
        ingest.read_edges(tmp_path / "a.parquet")
    with pytest.raises(lpma.BatchError, match=r"df\.cast"):
        lpma.from_dataframe(frame)


def test_fractions_as_ids_are_bad_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    ends = [*map(float, range(40)), 2.5, float("nan"), float("inf"), 1e300, None, 2.0**63, 2.0**53]
    parquet.write_table(pyarrow.table({"src": ends, "dst": range(len(ends))}), path)
    file = ingest.read_edges(path)
    rows = [row for c in file for row in zip(c.src.tolist(), c.dst.tolist(), strict=True)]
    assert "by number" in str(file.reading)
    assert rows == [(i, i) for i in range(40)]
    assert file.left_out.reasons == {
        "src: not a whole number that a float holds exactly": 6, "src: empty": 1,
    }  # fmt: skip
    assert read(path, names=True) == [(i, i, 1.0, None) for i in range(40)]


def test_text_views_are_text(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    texts = pyarrow.array(["a", "b"], pyarrow.string_view())
    parquet.write_table(pyarrow.table({"src": texts, "dst": texts}), path)
    assert [row[:2] for row in read(path)] == [("a", "a"), ("b", "b")]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"dst": [1, 2]}, "src has 3, dst has 2"),
        ({"dst": [1, 2, 3], "weight": [1.0]}, "src has 3, dst has 3, weight has 1"),
        ({"dst": [[1, 2, 3]]}, r"dst is int64\[1, 3\]"),
        ({"dst": [0.5, 1, 2]}, r"dst is float64\[3\], and cannot be the target"),
    ],
)
def test_arrays_that_are_no_columns(tmp_path: Path, more: dict[str, Any], message: str) -> None:
    arrays = {name: np.array(values) for name, values in more.items()}
    np.savez(tmp_path / "a.npz", src=np.arange(3), **arrays)  # type: ignore[arg-type]
    with pytest.raises(ingest.SourceError, match=message):
        ingest.read_edges(tmp_path / "a.npz")


def test_a_null_names_no_vertex(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"src": "a", "dst": null}\n{"src": "a", "dst": "b"}\n{"src": 1.5, "dst": 2}\n')
    file = ingest.read_edges(path, names=True)
    assert [c.dst.tolist() for c in file] == [["b"]]
    assert file.left_out.reasons == {
        "dst: expected an integer or text, got nothing": 1,
        "src: expected an integer or text, got float": 1,
    }


@pytest.mark.parametrize("name", ["a.xlsx", "a.csv", "a.npz"])
@pytest.mark.parametrize("kind", ["Excel", "OpenDocument"])
def test_spreadsheets(tmp_path: Path, name: str, kind: str) -> None:
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        if kind == "Excel":
            archive.writestr("docProps/thumbnail", bytes(20_000))
            archive.writestr("xl/workbook.xml", "<workbook/>")
        else:
            archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
    with pytest.raises(ingest.SourceError, match=r"a spreadsheet: .* pandas\.read_excel"):
        ingest.read_edges(tmp_path / name)
