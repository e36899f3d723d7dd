"""Own files that Python and Arrow wrote come back as they were: csv, JSON lines, Parquet, .npz."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import ingest
import lpma
from ingest.sources.files import opening
from tests.support.edge_files import read

DAY = round(datetime.fromisoformat("2024-02-29T00:00:00+00:00").timestamp() * 1000)

LETTERS = st.characters(codec="utf-8", exclude_characters="\x00\r\ufffd", exclude_categories=["Cc"])
NAME = st.text(LETTERS, min_size=1, max_size=20).filter(lambda text: text == text.strip() != "")
ODD_NAME = st.one_of(
    NAME, st.sampled_from(['a"b', "a,b", 'x "y", z', "a\nb", "a;b", "a\tb", "-", "007", "NA"])
)
ROWS = st.lists(
    st.tuples(ODD_NAME, ODD_NAME, st.floats(-1e6, 1e6), st.integers(-(2**40), 2**40)),
    min_size=1, max_size=20,
)  # fmt: skip


def as_name(text: str) -> int | str:
    """What a field of text names: an integer in plain decimals is that integer."""
    try:
        number = int(text)
    except ValueError:
        return text
    return number if str(number) == text and -(2**63) <= number < 2**64 else text


def write_separated(rows: list[Any], separator: str, quoting: int) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator="\n")  # type: ignore[arg-type]
    writer.writerow(["from", "to", "amount", "when"])
    writer.writerows(rows)
    return text.getvalue().encode()


@settings(max_examples=60, deadline=None)
@given(
    ROWS, st.sampled_from([("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t")]),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]), st.sampled_from([16, 64, 1 << 22]),
)  # fmt: skip
def test_csv_comes_back(rows: list[Any], kind: tuple[str, str], quoting: int, block: int) -> None:
    import tempfile

    name, separator = kind
    if quoting == csv.QUOTE_MINIMAL:  # a comment to us, a field to the writer
        rows = [row for row in rows if row[0][0] not in "#%"] or [("a", "b", 1.0, 2)]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / name
        path.write_bytes(write_separated(rows, separator, quoting))
        patch.setattr(opening, "BLOCK_BYTES", block)
        found = read(
            path, separator=separator, names=True, header=True, weight="amount", time="when"
        )
    assert found == [(as_name(u), as_name(v), w, t) for u, v, w, t in rows]


@settings(max_examples=30, deadline=None)
@given(ROWS, st.sampled_from(["jsonl", "parquet", "npz"]))
def test_typed_files_come_back(rows: list[Any], kind: str) -> None:
    """Their types say what is text: "5" stays text."""
    import tempfile

    named = dict(
        zip(("from", "to", "amount", "when"), map(list, zip(*rows, strict=True)), strict=True)
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a.{kind}"
        if kind == "jsonl":
            lines = [json.dumps(dict(zip(named, row, strict=True))) for row in rows]
            path.write_text("\n".join(lines))
        elif kind == "parquet":
            parquet.write_table(pyarrow.table(named), path, row_group_size=3)
        else:
            arrays = {name: np.array(values) for name, values in named.items()}
            np.savez(path, **arrays)  # type: ignore[arg-type]
        found = read(path, weight="amount", time="when")
    assert found == [tuple(row) for row in rows]


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    when = [datetime.fromisoformat("2024-02-29T00:00:00.25"), None]
    parquet.write_table(
        pyarrow.table({"u": [1, 2], "v": [2, None], "when": when, "x": ["a", "b"]}), path
    )
    file = ingest.read_edges(path)
    assert [
        (c.src.tolist(), c.dst.tolist(), c.time.tolist()) for c in file if c.time is not None
    ] == [([1], [2], [DAY + 250])]
    assert file.left_out.reasons == {"dst: empty": 1}
    assert file.reading.unused == ("x",)
    parquet.write_table(pyarrow.table({"u": [1, 2], "v": [2, 2**40]}), path)
    assert "vertices by name (since 1099511627776" in str(ingest.read_edges(path).reading)
    assert read(path) == [(1, 2, 1, None), (2, 2**40, 1, None)]
    names = pyarrow.array(["ann", "bob", "ann"]).dictionary_encode()
    parquet.write_table(pyarrow.table({"from": names, "to": names}), path)
    assert read(path) == [(n, n, 1, None) for n in ("ann", "bob", "ann")]


def test_names_that_were_exported_come_back(tmp_path: Path) -> None:
    """The integer 5 and the text "5" stay two vertices: a column beside the names says which is
    which, and counts as used."""
    g = lpma.Graph(names=True, device="cpu")
    g.insert([5, "5", "ann", -7], ["5", 6, 5, "b"])
    path = tmp_path / "a.parquet"
    g.snapshot().write_parquet(path)
    file = ingest.read_edges(path)
    assert file.reading.unused == ()
    edges = [(u, v) for c in file for u, v in zip(c.src.tolist(), c.dst.tolist(), strict=True)]
    assert sorted(edges, key=str) == sorted([(5, "5"), ("5", 6), ("ann", 5), (-7, "b")], key=str)


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    columns = [pyarrow.array(["a"]), pyarrow.array(["b"]), pyarrow.array(["c"])]
    parquet.write_table(pyarrow.Table.from_arrays(columns, names=["src", "dst", "dst"]), path)
    with pytest.raises(ingest.SourceError, match="two columns are called 'dst'"):
        ingest.read_edges(path)


@pytest.mark.parametrize(
    ("field", "good", "kept"), [("weight", "7", 7.0), ("time", "2024-02-29", DAY)]
)
def test_a_column_that_is_called_so_is_never_dropped_for_its_bad_rows(
    tmp_path: Path, field: str, good: str, kept: float
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"src,dst,{field}\na,b,x\na,c,none of it\na,d,{good}\n")
    file = ingest.read_edges(path)
    found = [(c.dst.tolist(), getattr(c, field).tolist()) for c in file]
    assert (found, file.left_out.count) == ([(["d"], [kept])], 2)
