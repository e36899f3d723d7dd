"""Damaged files, and files of another kind: each one clear line, and nothing is written."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from tests.support.command_line import run
from tests.support.edge_files import zstd

RUBBISH = np.random.default_rng(1).bytes(9999)
MANY = b"from,to\n" + b"".join(b"%d,%d\n" % (i, i * i % 1000) for i in range(20_000))


def parquet_bytes() -> bytes:
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table({"u": [1, 2], "v": [2, 3]}), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


DAMAGED = {
    "cut gz": ("a.csv.gz", lambda: gzip.compress(MANY)[:-2000], "cannot be read"),
    "damaged gz": ("a.csv.gz", lambda: gzip.compress(MANY)[:-8] + bytes(8), "cannot be read"),
    "cut zst": ("a.csv.zst", lambda: zstd(MANY)[:-20], "cannot be read"),
    "cut parquet": ("a.parquet", lambda: parquet_bytes()[:-20], "cannot be read"),
    "rubbish as parquet": ("a.parquet", lambda: RUBBISH[:999], "cannot be read"),
    "rubbish": ("a.csv", lambda: RUBBISH, "binary data"),
    "xlsx": ("a.csv", lambda: b"PK\3\4\x14\0[Content_Types].xml" + bytes(99), "a spreadsheet"),
    "JSON array": ("a.json", lambda: b'[{"src": 1, "dst": 2}]', "an array of JSON"),
    "JSON in csv": ("a.csv", lambda: b'{"src": 1,\n"dst": 2}', "not an object a line"),
    "empty": ("a.csv", lambda: b"", "it holds no edge"),
    "empty gz": ("a.csv.gz", lambda: gzip.compress(b""), "it holds no edge"),
    "empty npz": ("a.npz", lambda: b"", "not an .npz"),
    "empty parquet": ("a.parquet", lambda: b"", "cannot be read"),
    "empty jsonl": ("a.jsonl", lambda: b"", "nothing was loaded"),
    "a header alone": ("a.csv", lambda: b"from,to\n", "it holds no edge"),
    "comments alone": ("a.txt", lambda: b"# 1 2\n", "it holds no edge"),
    "one line without end": ("a.txt", lambda: b"1" * 9_000_000, "passes"),
    "one column": ("a.txt", lambda: b"1\n2\n", "an edge needs two, source and target"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_files_are_told_in_one_line(tmp_path: Path, damage: str) -> None:
    name, made, message = DAMAGED[damage]
    path = tmp_path / name
    path.write_bytes(made())
    said = run("load", path, tmp_path / "g.lpma", status=1).stderr
    assert message in said
    assert len([line for line in said.splitlines() if line.startswith("lpma: ")]) == 1
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_a_directory_is_told(tmp_path: Path) -> None:
    assert "a directory" in run("load", tmp_path, tmp_path / "g.lpma", status=1).stderr
