"""Quoted fields: NumPy finds what walking over the fields finds, and only blanks inside stay."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ingest
import lpma
from ingest.sources.files import opening, quotes
from tests.support.edge_files import read

FIELD = st.text(' a",\n', max_size=5)
BLANKS = st.sampled_from(["", " ", "   "])
NAME = st.one_of(
    st.text(
        st.characters(codec="utf-8", exclude_characters="\x00", exclude_categories=["Cs"]),
        min_size=1, max_size=5,
    ),
    st.text(' \t\n\r"\x01,5-+a#%\xa0', min_size=1, max_size=6),
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from(["5", "007", " 5 ", "true", "src"]),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.booleans(), BLANKS, FIELD, BLANKS), max_size=12))
@example([(True, "  ", "a", ""), (True, "", "", " "), (True, " ", '"', "")])
def test_blanks_around_fields_are_cut_as_walking_over_them_would(
    fields: list[tuple[bool, str, str, str]],
) -> None:
    """As many lines of a field, quoted or not, with blanks around it, and another."""
    lines, expected = [], []
    for in_quotes, before, field, behind in fields:
        field = field if in_quotes else field.replace('"', "'").replace(",", ".").replace("\n", " ")
        lines.append(f"{before}{quoted(field) if in_quotes else field}{behind},x \n")
        expected.append([field if in_quotes else field.strip(" "), "x"])
    data = "".join(lines).encode()
    pairs, walked = quotes._pairs(data, ","), quotes._found(data, ",")
    assert pairs is not None
    letters = [at for at, letter in enumerate(data) if letter != ord('"')]
    assert pairs.hold(letters).tolist() == walked.hold(letters).tolist()
    bare = quotes.trimmed(data, pairs, ",").decode()
    assert list(csv.reader(io.StringIO(bare, newline=""))) == expected


def quoted(field: str) -> str:
    return '"' + field.replace('"', '""') + '"'


WORD = st.text(' a",', max_size=4).map(lambda text: f"{text}b{text}")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.tuples(BLANKS, WORD, BLANKS), min_size=1, max_size=3), max_size=6))
@example([[("", "b", ""), (" ", " ,b,", "")]] * 2)  # too few fields, though as many commas
@example([[("", " b ", ""), ("", "b", " "), ("", " b", "")]])
def test_quoted_fields_with_blanks_around_them_are_read_as_walking_over_them_would(
    rows: list[list[tuple[str, str, str]]],
) -> None:
    """Two ends and a column that is not used, which is where a row may be cut wrongly unseen."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        lines = [",".join(f"{a}{quoted(b)}{c}" for a, b, c in row) for row in rows]
        path.write_text("src,dst,note\nx,y,z\n" + "".join(line + "\n" for line in lines))
        file = ingest.read_edges(path, names=True, header=True)
        found = [row for c in file for row in zip(c.src.tolist(), c.dst.tolist(), strict=True)]
    whole = [row for row in rows if len(row) == 3]
    assert found == [("x", "y"), *((row[0][1], row[1][1]) for row in whole)]
    assert file.left_out.count == len(rows) - len(whole)


@pytest.mark.parametrize("block", [16, 1 << 22])
def test_blanks_inside_quotes_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(opening, "BLOCK_BYTES", block)
    path = tmp_path / "a.csv"
    path.write_text('from,to,amount\n" a ", a ,1\n "b",  "b ", " 2 " \n"\t",\x01,x\n"""",5" c,3\n')
    file = ingest.read_edges(path, names=True)
    rows = [row for c in file for row in zip(c.src.tolist(), c.dst.tolist(), strict=True)]
    assert rows == [(" a ", "a"), ("b", "b "), ('"', '5" c')]
    assert file.left_out.reasons == {"weight: not a number": 1}


def test_lines_of_blanks_inside_quotes_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('from,to\n"a\n  \n# b",c\n  \n# no edge\n')
    assert read(path) == [("a\n  \n# b", "c", 1.0, None)]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(NAME, NAME), min_size=1, max_size=8), st.booleans())
@example([("5", "6")], False)
@example([(5, "5")], False)
def test_names_of_an_exported_csv_come_back(
    rows: list[tuple[int | str, int | str]], only_text: bool
) -> None:
    """Each name as it was, blanks and the text "5" too, and nothing has to be said."""
    if only_text:
        rows = [(str(u), str(v)) for u, v in rows]
    g = lpma.Graph(names=True, device="cpu")
    g.insert([u for u, _ in rows], [v for _, v in rows])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        g.snapshot().write_csv(path)
        found = [(u, v) for u, v, _, _ in read(path)]
    assert sorted(map(repr, found)) == sorted(map(repr, set(rows)))


def test_a_column_that_says_what_is_a_number(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("src,src_number,dst,weight\n5,true,5,1\n5,false,6,1\n6,perhaps,7,2\n")
    file = ingest.read_edges(path)
    assert file.reading.numbers == {}  # no such column: it holds something else
    path.write_text("src,src_number,dst\n5,true,5\n5,false,6\n" + "5,true,7\n" * 2000 + "6,so,7\n")
    file = ingest.read_edges(path)
    assert "by name (as src_number says)" in str(file.reading)
    rows = [row for c in file for row in zip(c.src.tolist(), c.dst.tolist(), strict=True)]
    assert rows[:3] == [(5, 5), ("5", 6), (5, 7)]
    assert file.left_out.reasons == {"src_number: neither true nor false": 1}
    assert read(path, names=False)[:2] == [(5, 5, 1.0, None), (5, 6, 1.0, None)]
