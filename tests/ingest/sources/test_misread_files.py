"""Files that something plausible could be read from, silently: each is read rightly, or refused
with what to do."""

from __future__ import annotations

import bz2
import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import feather, parquet

import ingest
import lpma
from ingest.sources import Rejected
from ingest.sources.files import opening
from tests.support.edge_files import Edge, read, zstd

DENSE: list[Edge] = [(1, 2, 1.0, None), (2, 3, 1.0, None)]


SEVEN_PAST = round(datetime(2019, 10, 1, 0, 0, 7, tzinfo=UTC).timestamp() * 1000)


def edge(u: Any, v: Any, weight: float = 1.0, time: int | None = None) -> Edge:
    return u, v, weight, time


# name → (the file's name and content, what is read)
RIGHT: dict[str, tuple[str, str | bytes, list[Edge], dict[str, Any]]] = {
    # roles
    "op is no kind": ("a.csv", "src,dst,op\n1,2,1\n2,3,1\n", DENSE, {}),
    "kind is no kind": ("a.csv", "src,dst,kind\n1,2,like\n2,3,like\n", DENSE, {}),
    "kind of JSON is none": (
        "a.jsonl", '{"src":1,"dst":2,"kind":"delete"}\n{"src":2,"dst":3,"kind":1}\n', DENSE, {},
    ),
    "named ends end guesses": (
        "a.csv", "a,b,amount,time\n1,2,9,7\n2,3,9,7\n", DENSE, {"source": "a", "target": "b"},
    ),
    "head and tail that are said": (
        "a.csv", "head,rel,tail\n1,x,2\n2,y,3\n", DENSE, {"source": "head", "target": "tail"},
    ),
    "an empty column": ("a.csv", "from,to,time\n1,2,\n2,3,\n", DENSE, {}),
    "an empty column without a header": ("a.csv", "1,2,\n2,3,\n", DENSE, {}),
    "an empty first column": ("a.csv", ",1,2\n,2,3\n", DENSE, {}),
    "a time before a weight": (
        "a.txt", "1 2 1570000000 7\n", [edge(1, 2, 7.0, 1570000000)], {},
    ),
    "source is another column": (
        "a.csv", "id,source,from,to\n1,web,1,2\n2,app,2,3\n", DENSE, {},
    ),
    # headers
    "a header behind #": ("a.csv", "#id,from,to\n10,1,2\n11,2,3\n", DENSE, {}),
    "a header behind # and a blank": ("a.csv", "# id,from,to\n10,1,2\n11,2,3\n", DENSE, {}),
    "a header behind %": ("a.tsv", "% x\n% from\tid\tto\n1\t9\t2\n2\t9\t3\n", DENSE, {}),
    "a header behind # between blanks": (
        "a.txt", "# from to weight\n1 2 5\n", [edge(1, 2, 5.0)], {},
    ),
    "a header behind # with commas above blanks": (
        "a.txt", "# weight,to,from\n5 2 1\n", [edge(1, 2, 5.0)], {},
    ),
    "columns named as BioGRID's are": (
        "a.txt", "#Interaction ID\tGene A\tGene B\n9\tx\ty\n9\ty\tz\n",
        [edge("x", "y"), edge("y", "z")], {"source": "Gene A", "target": "Gene B"},
    ),
    "a comment that is no header": ("a.txt", "# Nodes: 3\n1 2\n2 3\n", DENSE, {}),
    "a comment of as many words": ("a.txt", "# made by me\n1 2 5\n", [edge(1, 2, 5.0)], {}),
    # lines
    "CR and one LF at the end": ("a.csv", "src,dst\r1,2\r2,3\n", DENSE, {}),
    "CR and no end": ("a.txt", "1 2\r2 3", DENSE, {}),
    "CR after CRLF": ("a.csv", "src,dst\r\n1,2\r2,3\r\n", DENSE, {}),
    "LF, CR and CRLF": ("a.csv", "src,dst\n1,2\r2,3\r\n3,4\n", [*DENSE, edge(3, 4)], {}),
    "CR in JSON lines": ("a.jsonl", '{"src":1,"dst":2}\r{"src":2,"dst":3}\r', DENSE, {}),
    "CR in Matrix Market": (
        "a.mtx", "%%MatrixMarket matrix coordinate pattern general\r4 4 2\r2 3\r3 4\r", DENSE, {},
    ),
    "CR and LF in quoted names": (
        "a.csv", 'from,to\r"a\rb","c\nd"\re,f\r', [edge("a\rb", "c\nd"), edge("e", "f")], {},
    ),
    # numbers
    "2.0 is 2": ("a.csv", "1,2.0\n2,3.0\n", DENSE, {}),
    "2.0 is 2 below a header": ("a.csv", "from,to\n1.0,2.0\n2.0,3.0\n", DENSE, {}),
    "1e+05 is 100000": ("a.csv", "1e+05,2.0\n7,1E5\n", [edge(100000, 2), edge(7, 100000)], {}),
    "2.0 after a thousand rows": (
        "a.csv", "1,2\n" * 1500 + "2.0,3\n", [edge(1, 2)] * 1500 + [edge(2, 3)], {},
    ),
    "whole floats that are large": (
        "a.csv", "5000000000.0,1\n7,2.0\n", [edge(5000000000, 1), edge(7, 2)], {},
    ),
    "2.0 in JSON": ("a.jsonl", '{"src":1,"dst":2.0}\n{"src":2.0,"dst":3}\n', DENSE, {}),
    "2.0 in JSON with names": (
        "a.jsonl", '{"src":"a","dst":2.0}\n{"src":2,"dst":"b"}\n', [edge("a", 2), edge(2, "b")], {},
    ),
    "a float that was rounded": (
        "a.csv", "1.2345678901234568e+18,2.0\n7,1e5\n",
        [edge("1.2345678901234568e+18", "2.0"), edge(7, "1e5")], {},
    ),
    "1.5 is a name": ("a.csv", "v1,1.5\nv2,1.0\n", [edge("v1", "1.5"), edge("v2", "1.0")], {}),
    "a decimal comma": (
        "a.csv", "a;b;3,5\nb;c;1,25\n", [edge("a", "b", 3.5), edge("b", "c", 1.25)], {},
    ),
    "a decimal comma that is said": (
        "a.csv", "a;b;610,086\n", [edge("a", "b", 610.086)], {"decimal": ","},
    ),
    "thousands that are said": (
        "a.csv", "a;b;610,086\nb;c;5\n", [edge("a", "b", 610086.0), edge("b", "c", 5.0)],
        {"thousands": ","},
    ),
    "English thousands": (
        "a.csv", 'from,to,amount\na,b,"1,610.5"\nb,c,"2,500"\n',
        [edge("a", "b", 1610.5), edge("b", "c", 2500.0)], {},
    ),
    "continental thousands": (
        "a.csv", "from;to;amount\na;b;1.610,5\nb;c;2,5\n",
        [edge("a", "b", 1610.5), edge("b", "c", 2.5)], {},
    ),
    "decimal commas between blanks": ("a.txt", "1 2 3,5\n2 3 1,25\n",
                                      [edge(1, 2, 3.5), edge(2, 3, 1.25)], {}),
    "decimal commas between tabs": ("a.csv", "u\tv\tw\n1\t2\t3,5\n", [edge(1, 2, 3.5)], {}),
    "commas within quoted names": (
        "a.csv", 'from,to\n"a, b",c;d\n"e, f",g;h\n', [edge("a, b", "c;d"), edge("e, f", "g;h")],
        {},
    ),
    # as other tools write them
    "R's table with row names": (
        "a.txt", '"src" "dst" "weight"\n"1" "ann" "b c" 2.5\n"2" "b c" "eve" 1\n',
        [edge("ann", "b c", 2.5), edge("b c", "eve", 1.0)], {},
    ),
    "R's table of numbers": ("a.txt", '"src" "dst"\n"7" 1 2\n"9" 2 3\n', DENSE, {}),
    "R's table without quotes": ("a.txt", "src dst\n1 1 2\n2 2 3\n", DENSE, {}),
    "quoted names between blanks": (
        "a.txt", '"a b" "c"\n"d" "a b"\n', [edge("a b", "c"), edge("d", "a b")], {},
    ),
    "a separator behind each row": ("a.csv", "src,dst\n1,2,\n2,3,\n", DENSE, {}),
    "a last column without a name": ("a.csv", "src,dst\n1,2,x\n2,3,y\n3,3,z\n1,1,z\n",
                                     [*DENSE, edge(3, 3), edge(1, 1)], {}),
    "Excel's separator": ("a.csv", "sep=;\r\nsrc;dst\r\n1;2\r\n2;3\r\n", DENSE, {}),
    "Excel's separator without a header": ("a.csv", '"sep=|"\n1|2\n2|3\n', DENSE, {}),
    "Neo4j": (
        "a.csv", ":START_ID(A),weight:double,:END_ID(A),:TYPE\n1,5,2,X\n",
        [edge(1, 2, 5.0)], {},
    ),
    "Neptune": ("a.csv", "~id,~from,~to,~label\ne1,1,2,x\ne2,2,3,x\n", DENSE, {}),
    "a ragged row that is not UTF-8": (
        "a.csv", b"from,to\nann,bob\nJos\xe9\nbob,\xe9\n\xc3\xa9,x\n",
        [edge("ann", "bob"), edge("é", "x")], {},
    ),
    # times
    "UTC behind a time": (
        "a.csv", "from,to,at\n1,2,2019-10-01 00:00:07 UTC\n",
        [edge(1, 2, 1.0, SEVEN_PAST)], {},
    ),
    "a zone behind some times": (
        "a.csv", "from,to,at\n1,2,2019-10-01 00:00:07 UTC\n1,2,2019-10-01T02:00:07+02:00\n",
        [edge(1, 2, 1.0, SEVEN_PAST)] * 2, {},
    ),
    "seconds": ("a.csv", "1,2,1570000000\n", [edge(1, 2, 1.0, 1570000000000)], {"time_unit": "s"}),
    "fractions of seconds": (
        "a.csv", "u,v,t\n1,2,1570000000.25\n", [edge(1, 2, 1.0, 1570000000250)],
        {"time_unit": "s"},
    ),
    "microseconds": (
        "a.csv", "1,2,1570000000123456\n", [edge(1, 2, 1.0, 1570000000123)], {"time_unit": "us"},
    ),
    "nanoseconds, by their size": (
        "a.csv", "1,2,1570000000123456789\n", [edge(1, 2, 1.0, 1570000000123)],
        {"time_unit": "auto"},
    ),
    "milliseconds, by their size": (
        "a.csv", "1,2,1570000000123\n", [edge(1, 2, 1.0, 1570000000123)], {"time_unit": "auto"},
    ),
    "seconds in JSON": (
        "a.jsonl", '{"src":1,"dst":2,"ts":1570000000}\n{"src":1,"dst":2,"ts":1570000001.0}\n',
        [edge(1, 2, 1.0, 1570000000000), edge(1, 2, 1.0, 1570000001000)], {"time_unit": "s"},
    ),
    "nested fields of JSON": (
        "a.jsonl", '{"after":{"u":{"id":1},"v":2}}\n{"after":{"u":{"id":2},"v":3}}\n', DENSE,
        {"source": "after.u.id", "target": "after.v"},
    ),
    # content before the name
    "JSON lines in .csv": ("a.csv", '{"src":1,"dst":2}\n{"src":2,"dst":3}\n', DENSE, {}),
    "Matrix Market in .edges": (
        "a.edges", "%%MatrixMarket matrix coordinate pattern general\n4 4 2\n2 3\n3 4\n", DENSE, {},
    ),
    "Matrix Market in .csv": (
        "a.csv", "%%matrixmarket matrix coordinate pattern general\n4 4 2\n2 3\n3 4\n", DENSE, {},
    ),
    # two kinds of vertices
    "KONECT's two kinds": (
        "out.x", "% bip unweighted\n% 2 2 2\n1 1\n2 2\n", [edge(1, 4), edge(2, 5)], {},
    ),
    "two kinds that are said": (
        "a.csv", "user,item\n5,5\n5,6\n", [edge(5, 11), edge(5, 12)], {"bipartite": True},
    ),
    "two kinds of names": (
        "a.csv", "user,item\nann,tea\nbob,ann\n",
        [edge("ann", "item:tea"), edge("bob", "item:ann")], {"bipartite": True},
    ),
    "two kinds without a name of both": (
        "a.csv", "user,item\nann,tea\nbob,7\n", [edge("ann", "tea"), edge("bob", 7)],
        {"bipartite": True},
    ),
    "a matrix that is not square": (
        "a.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 2\n1 1 5\n2 3 7\n",
        [edge(0, 2, 5.0), edge(1, 4, 7.0)], {},
    ),
    "a matrix that is said to have one kind": (
        "a.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 2\n1 1 5\n2 3 7\n",
        [edge(0, 0, 5.0), edge(1, 2, 7.0)], {"bipartite": False},
    ),
}  # fmt: skip


@pytest.mark.parametrize("lines", [3, 1 << 18])
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, lines: int
) -> None:
    """In blocks of some three lines, and in one."""
    file, content, expected, options = RIGHT[name]
    monkeypatch.setattr(opening, "BLOCK_BYTES", 16 * lines)
    data = content.encode() if isinstance(content, str) else content
    if lines == 3 and len(data) > 10_000:
        pytest.skip("one size is enough")
    path = tmp_path / file
    path.write_bytes(data)
    assert read(path, **options) == expected
    source = ingest.FileSource(path, **options)
    polled: list[Any] = [record.value for record in source.poll(10_000)]
    rows = [value for value in polled if not isinstance(value, Rejected)]
    assert sum(map(len, rows)) == len(expected)


REFUSED: dict[str, tuple[str, str, str]] = {
    "head and tail": ("a.csv", "head,tail\n1,2\n", "--source head --target tail, or"),
    "a knowledge graph": ("a.tsv", "head\trel\ttail\na\tr\tb\n", "--source tail --target head"),
    "subject and object": ("a.csv", "subject,predicate,object\na,r,b\n", "--source subject"),
    "triples without a header": ("a.tsv", "a\tr\tb\nb\tr\tc\n", "--source and --target"),
    "SIF": ("a.sif", "a pp b\nb pp c\n", "--source and --target"),
    "five columns": ("a.csv", "1,2,3,4,5\n2,3,4,5,6\n", "there are 5 columns and no header"),
    "labels in the third column": ("a.txt", "1 2 red\n2 3 blue\n", "'1', '2', 'red'"),
    "features": ("a.csv", "1,2,0.5,0.7\n2,3,0.1,0.2\n", "which columns"),
    "a date first": ("a.txt", "2019-01-01 a b\n2019-01-02 b c\n", "which columns"),
    "a time first": ("a.txt", "1570000000 1 2\n1570000005 2 3\n", "which columns"),
    "fractions first": ("a.csv", "0.5,1\n0.25,2\n", "which columns"),
    "several sources": ("a.csv", "src,dst,from,to\n1,2,3,4\n", "which columns"),
    "a comma in numbers": ("a.csv", "ann;bob;610,086\nb;c;1,500\n", "--decimal , or --thousands ,"),
    "a quoted comma": ("a.csv", 'from,to,amount\na,b,"1,234"\n', r"1\.234 or 1234"),
    "DIMACS without a problem": ("a.txt", "e 1 2\ne 2 3\n", "--columns '- src dst'"),
    "edges in brackets": ("a.txt", "(1,2)  2.5\n(2,3)  1.0\n", "edges in brackets"),
    "a table of vertices": ("nodes.csv", "Id,Label\n1,ann\n2,bob\n", "which columns"),
    "Neo4j's vertices": ("nodes.csv", "id:ID(Person),name\n1,ann\n2,bob\n", "which columns"),
    "vertices before colons": ("a.txt", "1: 2 3 4\n2: 3\n3: 4\n", "vertices before colons"),
    "single quotes": ("a.csv", "'a, b','c'\n'c','d, e'\n", "single quotes"),
    "commas and blanks": ("a.txt", "1,2 2.5\n2,3 1.0\n", "which columns"),
    "escaped quotes": ("a.csv", 'src,dst\n"a\\"b",c\n', "double them"),
    "an adjacency matrix": ("a.csv", "0,1,0\n1,0,1\n0,1,0\n", "adjacency matrix"),
    "units that differ": ("a.csv", "from,to,time\n1,2,1570000000\n1,2,5\n", "--time-unit"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_asked_about(tmp_path: Path, name: str) -> None:
    file, content, message = REFUSED[name]
    path = tmp_path / file
    path.write_text(content)
    options: dict[str, Any] = {"time_unit": "auto"} if "--time-unit" in message else {}
    with pytest.raises(ingest.SourceError, match=message):
        ingest.read_edges(path, **options)


@pytest.mark.parametrize(
    "options, kinds",
    [
        ({"kind": "op"}, [0, 1, 11, 2, 3]),
        (
            {"kind": "op", "kinds": {"Append": "set", "remove_vertex": "insert", "set": "delete"}},
            [11, 1, 1, 2, 0],
        ),
    ],
)
@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_kinds_that_are_said(
    tmp_path: Path, form: str, options: dict[str, Any], kinds: list[int]
) -> None:
    path = tmp_path / f"a.{form}"
    words = ["append", "delete", "set", "add_vertex", "remove_vertex"]
    if form == "csv":
        path.write_text("src,dst,op\n" + "".join(f"1,{i},{w}\n" for i, w in enumerate(words)))
    elif form == "jsonl":
        path.write_text("".join(f'{{"src":1,"dst":{i},"op":"{w}"}}\n' for i, w in enumerate(words)))
    else:
        parquet.write_table(pyarrow.table({"src": [1] * 5, "dst": range(5), "op": words}), path)
    if form == "jsonl":  # there only operations with two ends have a dst
        path.write_text("\n".join(path.read_text().splitlines()[:3]))
        kinds = kinds[:3]
    found = [int(kind) for columns in ingest.read_edges(path, **options) for kind in columns.kind]
    assert found == kinds


def test_a_column_that_counts_rows_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("0,5,7\n1,7,9\n2,9,5\n")
    (note,) = ingest.read_edges(path).reading.notes(True)
    assert "--source 2 --target 3" in note
    assert read(path, source=2, target=3) == [edge(5, 7), edge(7, 9), edge(9, 5)]
    path.write_text("0,5,7\n1,7,9\n3,9,5\n")
    assert ingest.read_edges(path).reading.notes(True) == []


def test_words_that_are_no_kinds_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("src,dst,op\n1,2,follow\n1,2,unfollow\n")
    with pytest.raises(ingest.SourceError, match=r"'follow', 'unfollow'.*--kind-map follow=insert"):
        ingest.read_edges(path, kind="op")
    kinds = {"follow": "insert", "unfollow": "delete"}
    (columns,) = ingest.read_edges(path, kind="op", kinds=kinds)
    assert columns.kind.tolist() == [0, 1]
    with pytest.raises(ingest.SourceError, match="follow: 'become': expected one of append"):
        ingest.read_edges(path, kind="op", kinds={"follow": "become"})


# -- what is left out, and what is told ------------------------------------------------------------


def left_out(path: Path, **options: Any) -> dict[str, int]:
    file = ingest.read_edges(path, **options)
    list(file)
    return dict(file.left_out.reasons)


@pytest.mark.parametrize("block", [20, 1 << 22])
@pytest.mark.parametrize(
    "name, header, row",
    [("a.csv", "from,to", "a,b"), ("a.csv", "from,to", "1,2"), ("a.csv", "#from,to", "1,2"),
     ("a.csv", "#from,to", "a,b"), ("a.txt", "from to", "a b"), ("a.tsv", "from\tto", "1\t2")],
)  # fmt: skip
def test_the_header_again_is_no_edge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, header: str, row: str, block: int
) -> None:
    monkeypatch.setattr(opening, "BLOCK_BYTES", block)
    path = tmp_path / name
    path.write_text((header + "\n" + 3 * (row + "\n")) * 3)
    file = ingest.read_edges(path)
    assert sum(map(len, file)) == 9
    assert dict(file.left_out.reasons) == {"the header again": 2}
    assert [first["number"] for first in file.left_out.first] == [5, 9]
    assert file.left_out.too_many(9) is None


@pytest.mark.parametrize("missing", ["", r"\N"])
def test_missing_values(tmp_path: Path, missing: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"from,to,weight\na,{missing},1\n{missing},b,1\na,b,{missing}\na,b,2\n")
    assert left_out(path) == {"dst: empty": 1, "src: empty": 1, "weight: empty": 1}
    path.write_text(f"from,to,time\n1,{missing},1\n{missing},2,1\n1,2,{missing}\n1,2,2\n")
    assert left_out(path) == {"dst: empty": 1, "src: empty": 1, "time: empty": 1}
    assert read(path) == [edge(1, 2, 1.0, 2)]


def test_names_that_may_stand_for_none_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("from,to\na,NA\nNULL,b\nnan,NA\nNAN,ban\n")
    file = ingest.read_edges(path)
    assert sum(map(len, file)) == 4
    assert file.doubtful == {"NA": 2, "NULL": 1, "nan": 1}


@pytest.mark.parametrize(
    "bad, rows, accepted, fails",
    [(10, 10, None, False), (11, 1100, None, False), (11, 1000, None, True),
     (11, 1000, 0.02, False), (5, 100, 0.01, True), (10_000, 1, None, True)],
)  # fmt: skip
def test_the_ceiling(
    tmp_path: Path, bad: int, rows: int, accepted: float | None, fails: bool
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1,2\n" * rows + "x\n" * bad)
    if fails:
        with pytest.raises(ingest.SourceError, match=rf"left out {bad:,} bad lines.*--accept-bad"):
            ingest.read_csv(path, accept_bad=accepted, device="cpu", header=False)
    else:
        with pytest.warns(UserWarning, match=f"left out {bad} bad lines"):
            g = ingest.read_csv(path, accept_bad=accepted, device="cpu", header=False)
        assert g.num_edges == 1


# -- packed ----------------------------------------------------------------------------------------


def zipped(*names: str) -> Callable[[bytes], bytes]:
    def pack(data: bytes) -> bytes:
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                archive.writestr(name, data)
        return sink.getvalue()

    return pack


def tarred(data: bytes) -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w:gz") as archive:
        info = tarfile.TarInfo("a.csv")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return sink.getvalue()


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "zstd": zstd, "bzip2": bz2.compress, "zip": zipped("a.csv"),
    "a Mac's zip": zipped("a.csv", "__MACOSX/._a.csv"),
}  # fmt: skip


@pytest.mark.parametrize("name", ["a.csv", "a.gz", "a.csv.zip", "a"])
@pytest.mark.parametrize("packing", PACKINGS)
def test_packed_whatever_it_is_called(tmp_path: Path, packing: str, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(PACKINGS[packing](b"from,to,weight\n1,2,1\n2,3,1\n"))
    assert read(path) == DENSE


@pytest.mark.parametrize(
    "name, pack, message",
    [("a.tar.gz", tarred, "tar -xf"), ("a.csv", tarred, "tar -xf"),
     ("a.zip", zipped("a", "b"), r"a zip archive of 2 files \(a, b\)")],
)  # fmt: skip
def test_archives_of_files(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes], message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(pack(b"1,2\n"))
    with pytest.raises(ingest.SourceError, match=message):
        ingest.read_edges(path)


# -- typed columns ---------------------------------------------------------------------------------


def test_decimals_without_fractions_are_integers(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    ids = pyarrow.array([Decimal(1), Decimal(2)], pyarrow.decimal128(38, 0))
    ends = pyarrow.array([Decimal(2), Decimal(3)], pyarrow.decimal128(38, 0))
    parquet.write_table(pyarrow.table({"src": ids, "dst": ends}), path)
    assert read(path) == DENSE
    large = pyarrow.array([Decimal(2**40), Decimal(2)], pyarrow.decimal128(38, 0))
    parquet.write_table(pyarrow.table({"src": large, "dst": ends}), path)
    assert [row[:2] for row in read(path)] == [(2**40, 2), (2, 3)]


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_arrow_files(tmp_path: Path, compression: str) -> None:
    table = pyarrow.table({"src": ["ann", "5"], "dst": ["bob", "ann"], "weight": [2.5, 1.0]})
    feather.write_feather(table, str(tmp_path / "a.csv"), compression=compression)
    assert read(tmp_path / "a.csv") == [edge("ann", "bob", 2.5), edge("5", "ann")]
    batches = pyarrow.table({"u": range(7), "v": range(7)}).to_batches(max_chunksize=2)
    with pyarrow.ipc.new_file(str(tmp_path / "a.arrow"), batches[0].schema) as file:
        for batch in batches:
            file.write_batch(batch)
    assert read(tmp_path / "a.arrow") == [edge(i, i) for i in range(7)]


def test_a_struct_before_the_ends(tmp_path: Path) -> None:
    """The file's statistics count what nests in columns, too."""
    nested = [{"a": 1, "b": -1}] * 2
    table = pyarrow.table({"x": nested, "src": [1, 2], "dst": [2, 2**40]})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == [edge(1, 2), edge(2, 2**40)]
    table = pyarrow.table({"x": nested, "src": [1, 2], "dst": [2, 3]})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert "vertices by number" in str(ingest.read_edges(tmp_path / "a.parquet").reading)


def test_extension_types_are_refused(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "a.parquet"
    period = pandas.period_range("2024-01", periods=2, freq="M")
    pandas.DataFrame({"src": [1, 2], "dst": [2, 3], "time": period}).to_parquet(path)
    with pytest.raises(ingest.SourceError, match=r"'time' is of the type .*period.* not read"):
        ingest.read_edges(path)
    assert read(path, time="none") == DENSE


def weight(g: lpma.Graph, u: Any, v: Any) -> Any:
    found = g.edge(u, v)
    assert found is not None
    return found.weight


def test_graphs_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y,n\nann,bob,2.5\nann,eve,1\n")
    float64 = np.dtype("float64")
    columns: dict[str, Any] = {"source": "x", "target": "y", "weight": "n", "device": "cpu"}
    g = ingest.read_csv(tmp_path / "a.csv", **columns)
    assert (g.num_edges, weight(g, "ann", "bob")) == (2, 2.5)
    (tmp_path / "a.json").write_text('{"x":"ann","y":"bob","n":2.5}\n{"x":"ann","y":"eve","n":1}')
    g = ingest.read_json(tmp_path / "a.json", **columns)
    assert (g.num_edges, weight(g, "ann", "bob")) == (2, 2.5)
    table = pyarrow.table({"x": ["ann", "ann"], "y": ["bob", "eve"], "n": [2.5, 1.0]})
    parquet.write_table(table, tmp_path / "a.parquet")
    g = ingest.read_parquet(tmp_path / "a.parquet", **columns, weight_dtype="float64")
    assert (g.num_edges, weight(g, "ann", "bob"), g.weight_dtype) == (2, 2.5, float64)
    with pytest.raises(ingest.SourceError, match=r"JSON lines: ingest\.read_edges reads it"):
        ingest.read_csv(tmp_path / "a.json")


def test_two_kinds_of_vertices_are_kept_in_the_store(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item\nann,tea\nbob,milk\nann,milk\n")
    g = ingest.read_csv(tmp_path / "a.csv", bipartite=True, device="cpu")
    g.save(tmp_path / "g.lpma")
    other = lpma.Graph.load(tmp_path / "g.lpma", "cpu")
    assert other.left == g.left == 2
    assert other.names is not None
    assert other.names.of([0, 1]).tolist() == ["ann", "bob"]
    with pytest.warns(UserWarning, match="--bipartite keeps them apart"):
        assert ingest.read_csv(tmp_path / "a.csv", device="cpu").left is None


def test_weights_that_are_rounded_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1,2,123456789.01\n2,3,0.1\n3,4,16777217\n4,5,1e-30\n5,6,1234.56\n")
    with pytest.warns(UserWarning, match=r"2 weights were rounded to float32, by 2\.99 at most"):
        ingest.read_csv(path, device="cpu")
    g = ingest.read_csv(path, device="cpu", weight_dtype="float64")
    assert weight(g, 1, 2) == 123456789.01
