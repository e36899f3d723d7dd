"""Own files of many shapes: each in one line, beside Python's csv and json modules and dicts."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import ingest
from ingest.sources.files import opening
from tests.support.edge_files import Edge, read, zstd


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


ANN: list[Edge] = [("ann", "bob", 3.0, None), ("bob", "eve", 1.5, None)]
DENSE: list[Edge] = [(1, 2, 1.0, None), (2, 3, 1.0, None)]
DAY = ms("2024-02-29T00:00:00+00:00")

SHAPES: dict[str, tuple[str, str | bytes, list[Edge], dict[str, Any]]] = {
    "csv": ("a.csv", "from,to,amount\nann,bob,3\nbob,eve,1.5\n", ANN, {}),
    "no line's end at the end": ("a.csv", "from,to,amount\nann,bob,3\nbob,eve,1.5", ANN, {}),
    "CR LF": ("a.csv", "from,to,amount\r\nann,bob,3\r\nbob,eve,1.5\r\n", ANN, {}),
    "CR": ("a.csv", "from,to,amount\rann,bob,3\rbob,eve,1.5\r", ANN, {}),
    "BOM": ("a.csv", "\ufefffrom,to,amount\nann,bob,3\nbob,eve,1.5\n", ANN, {}),
    "semicolons": ("a.csv", "from;to;amount\nann;bob;3\nbob;eve;1.5\n", ANN, {}),
    "decimal commas": ("a.csv", "from;to;amount\nann;bob;3\nbob;eve;1,5\n", ANN, {}),
    "bars": ("a.txt", "from|to|amount\nann|bob|3\nbob|eve|1.5\n", ANN, {}),
    "tsv": ("a.tsv", "from\tto\tamount\nann\tbob\t3\nbob\teve\t1.5\n", ANN, {}),
    "tabs in .txt": ("a.txt", "a b\tc\nd\te\n", [("a b", "c", 1, None), ("d", "e", 1, None)], {}),
    "commas in .txt": ("a.txt", "1,2\n2,3\n", DENSE, {}),
    "quotes": ("a.csv", '"from","to","amount"\n"ann","bob","3"\n"bob","eve","1.5"\n', ANN, {}),
    "a blank before a quote": ("a.csv", 'from, to\n"a, b", "c"\n', [("a, b", "c", 1, None)], {}),
    "a quoted separator, quote and line": (
        "a.csv", 'from,to,n\n"a, b","c ""d""","x\ny"\ne,f,g\n',
        [("a, b", 'c "d"', 1, None), ("e", "f", 1, None)], {},
    ),
    "a quote in a field": (
        "a.csv", 'from,to\n5" pipe,bolt\nnut,6" pipe\n',
        [('5" pipe', "bolt", 1, None), ("nut", '6" pipe', 1, None)], {},
    ),
    "comments": ("a.txt", "# made\nfrom,to,amount\nann,bob,3\n# more\n\nbob,eve,1.5\n", ANN, {}),
    "comments above a csv": (
        "a.csv", "# a\n\n % b,c\nfrom,to,amount\nann,bob,3\nbob,eve,1.5\n", ANN, {},
    ),
    "SNAP": ("a.txt", "# Nodes: 3\n# FromNodeId\tToNodeId\n1\t2\n2\t3\n", DENSE, {}),
    "odd blanks": ("a.edges", "  1 \t 2\n2   3  \n\n", DENSE, {}),
    "names between blanks": ("a", "ann bob 3\nbob eve 1.5\n", ANN, {}),
    "extra columns": (
        "a.csv", "id,note,from,to,amount\n1,x,ann,bob,3\n2,y,bob,eve,1.5\n", ANN, {},
    ),
    "columns by name": (
        "a.csv", "x,amount,y,z\n1,3,ann,bob\n2,1.5,bob,eve\n", ANN,
        {"source": "y", "target": "Z", "weight": "amount"},
    ),
    "columns by number": (
        "a.csv", "3,ann,bob\n1.5,bob,eve\n", ANN,
        {"source": "2", "target": "3", "weight": "1"},
    ),
    "weights not wanted": ("a.csv", "from,to,amount\n1,2,7\n2,3,7\n", DENSE, {"weight": "none"}),
    "not by names": ("a.csv", "from,to\n1,2\n2,3\n", DENSE, {"names": False}),
    "integers as names": ("a.csv", "1,2\n2,3\n", DENSE, {"names": True}),
    "large integers": (
        "a.csv", f"1,{2**63 + 1}\n2,3\n", [(1, 2**63 + 1, 1, None), (2, 3, 1, None)], {},
    ),
    "negative integers": ("a.csv", "-1,2\n2,3\n", [(-1, 2, 1, None), (2, 3, 1, None)], {}),
    "integers among text": (
        "a.csv", "ann,5\n05,bob\n", [("ann", 5, 1, None), ("05", "bob", 1, None)], {},
    ),
    "a header of text alone": (
        "a.csv", "buyer,seller\nann,bob\n", [("ann", "bob", 1, None)], {"header": True},
    ),
    "no header of known names": (
        "a.csv", "from,to\nann,bob\n", [("from", "to", 1, None), ("ann", "bob", 1, None)],
        {"header": False},
    ),
    "seconds": ("a.csv", "1,2,1700000000\n2,3,1700000001\n",
                [(1, 2, 1, 1700000000), (2, 3, 1, 1700000001)], {}),
    "four columns": ("a.csv", "1,2,.5,7\n2,3,-1,8\n", [(1, 2, 0.5, 7), (2, 3, -1, 8)], {}),
    "fractions of seconds are cut": ("a.csv", "u,v,t\n1,2,7.9\n", [(1, 2, 1, 7)], {}),
    "days": ("a.csv", "from,to,when\n1,2,2024-02-29\n", [(1, 2, 1, DAY)], {}),
    "dates with zones": (
        "a.csv", "from,to,when\n1,2,2024-02-29T01:00:00+01:00\n2,3,2024-02-29 00:00:00.5Z\n",
        [(1, 2, 1, DAY), (2, 3, 1, DAY + 500)], {},
    ),
    "dates with and without zones": (
        "a.csv", "from,to,when\n1,2,2024-02-29T01:00:00+01:00\n2,3,2024-02-29T00:00:01\n",
        [(1, 2, 1, DAY), (2, 3, 1, DAY + 1000)], {},
    ),
    "a separator that is said": ("a.csv", "1:2\n2:3\n", DENSE, {"separator": ":"}),
    "JSON lines": (
        "a.jsonl", '{"from": "ann", "to": "bob", "amount": 3, "x": [1]}\n\n'
        '{"amount": 1.5, "to": "eve", "from": "bob"}\n', ANN, {},
    ),
    "JSON lines, some fields absent": (
        "a.ndjson", '{"src": 1, "dst": 2}\n{"src": 2, "dst": 3, "weight": 2}\n',
        [(1, 2, 1, None), (2, 3, 2, None)], {},
    ),
    "JSON lines, dates": (
        "a.json", '{"u": 1, "v": 2, "when": "2024-02-29"}\n', [(1, 2, 1, DAY)], {},
    ),
    "Matrix Market": (
        "a.mtx", "%%MatrixMarket matrix coordinate pattern general\n% x\n4 4 2\n2 3\n3 4\n",
        DENSE, {},
    ),
}  # fmt: skip


def plain(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data


PACKINGS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstd}


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape(tmp_path: Path, shape: str, packing: str) -> None:
    name, text, expected, options = SHAPES[shape]
    path = tmp_path / (name + packing)
    path.write_bytes(PACKINGS[packing](plain(text)))
    assert read(path, **options) == expected
    edges = ingest.read_edges(path, **options)
    list(edges)
    assert edges.left_out.count == 0


def test_what_is_guessed_is_said(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("id,from,to,amount,when,x\n1,ann,bob,3,2024-02-29,y\n")
    assert str(ingest.read_edges(path).reading) == (
        "reading own.csv: columns from → source, to → target, amount → "
        "weight, when → time (dates, as ms since 1970); vertices by name; 2 columns unused (id, x)"
    )
    path.write_text("1 2\n2 3\n")
    assert str(ingest.read_edges(path).reading) == (
        "reading own.csv (blanks between fields, no header): columns column 1 → source, column 2 → "
        "target; vertices by number"
    )
    path.write_text("from,to\n1,2\n")
    with pytest.raises(ingest.SourceError, match=r"no column 'who' for the source.*'from', 'to'"):
        ingest.read_edges(path, source="who")
    path.write_text("1,2\n")
    with pytest.raises(ingest.SourceError, match=r"has no header that names 'who'.* 1 to 2"):
        ingest.read_edges(path, source="who")


def test_a_column_that_is_not_what_it_is_called_is_told(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("from,to,amount,when\nann,bob,2 EUR,11/13/2026\nbob,cid,3 EUR,11/14/2026\n")
    reading = ingest.read_edges(path).reading
    assert reading.unused == ("amount", "when")
    assert reading.notes(True) == [
        "column amount is not read as the weight: '2 EUR' is not a number",
        "column when is not read as the time: '11/13/2026' is neither a number nor an ISO 8601 "
        "date",
    ]
    edges = ingest.read_edges(path, weight="none", time="when")
    assert edges.reading.notes(True) == []
    list(edges)
    assert edges.left_out.reasons == {"time: not a date or time of ISO 8601": 2}
    path.write_text("from,to\n1.0,2.0\n")
    assert str(ingest.read_edges(path).reading).endswith("by number")
    path.write_text("from,to\n1.0,2.0\nv1.5,1\n")
    assert str(ingest.read_edges(path).reading).endswith("by name (such as 'v1.5')")
    path.write_text("ann\nbob\n")
    with pytest.raises(ingest.SourceError, match="has one column, and an edge needs two"):
        ingest.read_edges(path)


@pytest.mark.parametrize(
    "times, since",
    [
        (["1793923200", "100000000"], ("s", "1793923200")),
        (["1793923200", "1793923200000"], None),
        (["7", "1793923200"], None),
        (["1793923200", "x"], ("s", "1793923200")),
        (["1793923200000"], ("ms", "1793923200000")),
        (["1793923200000000"], ("us", "1793923200000000")),
        (["1793923200000000000"], ("ns", "1793923200000000000")),
        (["2026-11-01"], None),
        (["1793923200.5"], ("s", "1793923200.5")),
    ],
)
def test_the_unit_that_times_look_like(
    tmp_path: Path, times: list[str], since: tuple[str, str] | None
) -> None:
    path = tmp_path / "own.csv"
    path.write_text("from,to,when\n" + "".join(f"1,2,{time}\n" for time in times))
    reading = ingest.read_edges(path).reading
    assert reading.since == since
    told = any("--time-unit" in note for note in reading.notes(True))
    assert told == (since is not None and since[0] != "ms")


@pytest.mark.parametrize("late", ["ann,7", "4294967295,7", "-1,7"])
def test_text_after_numbers_is_an_error_that_says_what_to_do(tmp_path: Path, late: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{i},{i + 1}\n" for i in range(5000)) + late + "\n")
    with pytest.raises(ingest.SourceError, match=rf"line 5001, '{late}'.*--names.*--no-names"):
        read(path)
    assert len(read(path, names=True)) == 5001
    edges = ingest.read_edges(path, names=False)
    assert sum(map(len, edges)) == 5000
    assert edges.left_out.first[0]["number"] == 5001


BAD = [
    ("1", "1 field where 4 are expected"),
    ("1,2,3,4,5", "5 fields where 4 are expected"),
    (",2,3,4", "src: empty"),
    ("x,2,3,4", "src: not an integer of 64 bits"),
    ("1,0x2,3,4", "dst: not an integer of 64 bits"),
    ("1,4294967295,3,4", "dst: ids go from 0 to 4294967294"),
    ("1,2,y,4", "weight: not a number"),
    ("1,2,,4", "weight: empty"),
    ("1,2,3,\\N", "time: empty"),
    ("1,2,inf,4", "weight: must be finite and at most 1e+30 in size"),
    ("1,2,3,z", "time: not a number of 64 bits"),
    ('1,"2', "1 field where 4 are expected"),
]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_bad_lines_are_counted_exactly_wherever_they_stand(data: st.DataObject) -> None:
    """At any block size; with comments, blank lines and quoted fields of several lines between.
    Below the first row, a csv has no comments: there they are bad lines."""
    import tempfile

    format = data.draw(st.sampled_from(["csv", "text"]))
    lines, bad, edges = ["# above", "src,dst,weight,time"], [], []
    for i in range(data.draw(st.integers(1, 40))):
        kind = data.draw(st.sampled_from(["good", "good", "good", "bad", "comment", "blank"]))
        if kind == "good":
            lines.append(f"{i},{i + 1},0.5,{i}")
            edges.append((i, i + 1, 0.5, i))
        elif kind == "bad":
            line, reason = data.draw(st.sampled_from(BAD[:-1]))
            bad.append({"number": len(lines) + 1, "line": line, "reason": reason})
            lines.append(line)
        elif kind == "comment" and format == "csv":
            reason = "1 field where 4 are expected"
            bad.append({"number": len(lines) + 1, "line": "% x", "reason": reason})
            lines.append("% x")
        else:
            lines.append("# x" if kind == "comment" else data.draw(st.sampled_from(["", "  "])))
    # Columns are as many as most lines have, also where the header names fewer.
    wide = sum(line.count(",") == 4 for line in lines)
    assume(wide == 0 or wide < len(edges))
    assume(edges or not bad)  # what a time is, is seen from one that is one
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "a.csv"
        path.write_text("\n".join(lines) + data.draw(st.sampled_from(["", "\n"])))
        patch.setattr(opening, "BLOCK_BYTES", data.draw(st.sampled_from([7, 40, 1 << 20])))
        file = ingest.read_edges(path, names=False, header=True, separator=",", weight="weight",
                                 time="time", format=format)  # fmt: skip
        found: list[Edge] = []
        for columns in file:
            assert columns.weight is not None
            assert columns.time is not None
            found += zip(columns.src.tolist(), columns.dst.tolist(), columns.weight.tolist(),
                         columns.time.tolist(), strict=True)  # fmt: skip
        assert found == edges
        assert file.left_out.count == len(bad)
        assert file.left_out.first == bad[:3]


def test_an_unclosed_quote_spoils_its_own_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = "".join(f"a{i},b\n" for i in range(100))
    path.write_text("from,to\n" + rows + '"ann,bob\n' + rows)
    file = ingest.read_edges(path)
    assert sum(map(len, file)) == 200
    assert [one["number"] for one in file.left_out.first] == [102]
