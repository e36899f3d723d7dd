"""Files that were once misread: rows that begin as comments do, odd values, ids that look alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

import ingest
from ingest.sources.files import opening
from tests.support.command_line import document, run
from tests.support.edge_files import drain, read

DAY = 1_577_836_800_000  # 2020-01-01


def pairs(path: Path, **options: Any) -> list[tuple[Any, Any]]:
    return [(u, v) for u, v, *_ in read(path, **options)]


def reasons(path: Path, **options: Any) -> dict[str, int]:
    """Why rows are left out, and how many for each reason."""
    file = ingest.read_edges(path, **options)
    list(file)
    return dict(file.left_out.reasons)


# -- comments -------------------------------------------------------------------------------------

TAGS = [("#python", "ann"), ("%ai", "bob"), ("cid", "#ai")]


@pytest.mark.parametrize("block", [7, 1 << 22])
@pytest.mark.parametrize("top", ["", "# made\n", "\n% made\n#\n"])
@pytest.mark.parametrize("suffix, separator", [("csv", ","), ("tsv", "\t")])
def test_below_the_first_row_a_csv_has_no_comments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, separator: str, top: str,
    block: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(opening, "BLOCK_BYTES", block)
    path = tmp_path / f"a.{suffix}"
    rows = "".join(f"{u}{separator}{v}\n" for u, v in TAGS)
    path.write_text(f"{top}from{separator}to\n{rows}")
    assert pairs(path) == TAGS
    path.write_text(f"{top}z{separator}z\n{rows}")
    assert pairs(path) == [("z", "z"), *TAGS]
    source = ingest.FileSource(path)
    source.seek({source.partition: 2})
    (record, *_) = source.poll()
    assert (record.offset, list(record.value.src)[:1]) == (2, ["%ai"])  # type: ignore[union-attr]
    path.write_text(f"{top}1{separator}2\n# 3\n5{separator}6\n")
    assert drain(ingest.FileSource(path)) == {
        0: (1, 2, 1.0, None, 0), 1: "1 field where 2 are expected", 2: (5, 6, 1.0, None, 0),
    }  # fmt: skip


def test_comments_anywhere_in_other_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1 2\n# 3 4\n % 5 6\n7 8\n")
    assert pairs(path) == [(1, 2), (7, 8)]


@pytest.mark.parametrize("head", ["# FromNodeId,ToNodeId", "#source,target"])
def test_a_header_that_begins_as_a_comment(tmp_path: Path, head: str) -> None:
    for name in ("a.csv", "a.txt"):
        path = tmp_path / name
        path.write_text(f"{head}\n1,2\n2,3\n")
        assert pairs(path) == [(1, 2), (2, 3)]


def test_no_row_is_lost_unseen(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text("user,tag\n#python,ann\n#ai,bob\ncid,#ai\n")
    options = ["--header", "--source", "user", "--target", "tag", "--names", "--strict"]
    found = document("load", path, tmp_path / "h.lpma", *options)
    assert (found["operations"], found["rejected"]) == (3, 0)


# -- JSON lines -----------------------------------------------------------------------------------


def json_lines(path: Path, *odd: str) -> Path:
    """A good line, these, and a good one."""
    good = '{"src": "a", "dst": "b", "weight": 2, "time": "2020-01-01"}'
    path.write_text("\n".join([good, *odd, good]) + "\n")
    return path


@pytest.mark.parametrize("time", ["1.5", "5", "true", '{"x": 1}', "[1]", '""', '"soon"'])
def test_a_time_that_is_no_date_spoils_its_own_line_alone(tmp_path: Path, time: str) -> None:
    path = json_lines(tmp_path / "a.jsonl", f'{{"src": 1, "dst": 2, "time": {time}}}')
    assert read(path) == [("a", "b", 2.0, DAY)] * 2
    assert reasons(path) == {"time: not a date or time of ISO 8601": 1}


def test_a_time_of_null_is_none(tmp_path: Path) -> None:
    """As docs/reference/format.md has it: a field that is null is not there."""
    odd = ('{"src": 1, "dst": 2, "time": null}', '{"src": 1, "dst": 2}')
    path = json_lines(tmp_path / "a.jsonl", *odd)
    assert read(path)[1:3] == [(1, 2, 1.0, None)] * 2
    assert reasons(path) == {}


@pytest.mark.parametrize(
    "value", ["true", '{"x": 1}', "[[1], {}]", '""', "1e999", "[" * 9 + "]" * 9]
)
@pytest.mark.parametrize("field", ["src", "dst", "weight"])
@pytest.mark.parametrize("date", [True, False])
def test_odd_values_of_json(tmp_path: Path, field: str, value: str, date: bool) -> None:
    row = {"src": "1", "dst": "2", "weight": "3", "time": '"2020-01-01"'} | {field: value}
    odd = "{" + ", ".join(f'"{name}": {value}' for name, value in row.items()) + "}"
    path = json_lines(tmp_path / "a.jsonl", odd)
    if not date:
        path.write_text(path.read_text().replace('"2020-01-01"', "7"))
    assert read(path) == [("a", "b", 2.0, DAY if date else 7)] * 2
    (reason,) = reasons(path)
    assert reason.startswith(field)


def test_no_value_of_json_is_more_than_a_bad_line(tmp_path: Path) -> None:
    odd: list[Any] = [1.5, True, None, {"x": 1}, [], "", "\ud800", -0.0, 10**30, "2020-01-01"]
    rows = [{"src": "a", "dst": "b", "weight": 1, "time": "2020-01-01"} | {field: value}
            for field in ("src", "dst", "weight", "time") for value in odd]  # fmt: skip
    path = json_lines(tmp_path / "a.jsonl", *map(json.dumps, rows))
    file = ingest.read_edges(path, names=True)
    assert sum(map(len, file)) + file.left_out.count == len(rows) + 2


@pytest.mark.parametrize("first", ["", "\n"])
def test_a_byte_order_mark_before_json(tmp_path: Path, first: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'\ufeff{first}{{"src": 1, "dst": 2}}\n', encoding="utf-8")
    assert pairs(path) == [(1, 2)]


# -- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", ["007", "+1", "-0"])
def test_numbers_that_would_not_come_back_are_text(tmp_path: Path, odd: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"src,dst\n{odd},8\n7,9\n")
    assert pairs(path) == [(odd, 8), (7, 9)]
    assert str(ingest.read_edges(path).reading).endswith(f"vertices by name (such as {odd!r})")
    assert pairs(path, names=False) == [(int(odd), 8), (7, 9)]
    path.write_text("src,dst\n" + "7,9\n" * 100 + f"{odd},8\n")  # less than a tenth
    assert not ingest.read_edges(path).reading.named


# -- times ----------------------------------------------------------------------------------------


def test_fractions_of_times_are_cut_off_and_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("src,dst,time\n1,2,1.9\n2,3,-1.9\n3,4,5\n")
    assert [time for *_, time in read(path)] == [1, -1, 5]
    said = "time → time (fractions are cut off); vertices"
    assert said in str(ingest.read_edges(path).reading)
    parquet.write_table(pyarrow.table({"src": [1, 2], "dst": [2, 3], "time": [1.9, -1.9]}),
                        tmp_path / "a.parquet")  # fmt: skip
    assert [time for *_, time in read(tmp_path / "a.parquet")] == [1, -1]
    assert said in str(ingest.read_edges(tmp_path / "a.parquet").reading)
    path = tmp_path / "a.jsonl"  # where a number says its type
    path.write_text('{"src": 1, "dst": 2, "time": 1.9}\n{"src": 1, "dst": 2, "time": 3}\n')
    assert reasons(path) == {"time: expected an integer, got float": 1}
    assert "cut off" not in str(ingest.read_edges(path).reading)


# -- text in Parquet ------------------------------------------------------------------------------

TEXTS: dict[str, tuple[str, list[str | None], dict[int, float], dict[str, int]]] = {
    "dates": (
        "time", ["2020-01-01", "x", None, "2020-01-01T00:00:01"], {0: DAY, 3: DAY + 1000},
        {"time: not a date or time of ISO 8601": 1, "time: empty": 1},
    ),
    "dates with and without zones": (
        "time", ["2020-01-01", "2020-01-01T01:00:00+01:00"], {0: DAY, 1: DAY}, {},
    ),
    "whole times": (
        "time", ["5", "x", "6"], {0: 5, 2: 6}, {"time: not a number of 64 bits": 1},
    ),
    "weights": (
        "weight", ["1.5", "x", None, "inf", "2"], {0: 1.5, 4: 2},
        {"weight: not a number": 1, "weight: empty": 1,
         "weight: must be finite and at most 1e+30 in size": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary"])
@pytest.mark.parametrize("texts", TEXTS)
def test_bad_text_in_parquet_spoils_its_own_row_alone(
    tmp_path: Path, texts: str, kind: str
) -> None:
    field, values, good, bad = TEXTS[texts]
    path = tmp_path / "a.parquet"
    column = pyarrow.array(values, pyarrow.string())
    column = (
        column.dictionary_encode()
        if kind == "dictionary"
        else column.cast(getattr(pyarrow, kind)())
    )
    rows = range(len(values))
    parquet.write_table(pyarrow.table({"src": rows, "dst": rows, field: column}), path)
    place = 2 if field == "weight" else 3
    assert {row[0]: row[place] for row in read(path)} == good
    assert reasons(path) == bad
    if bad:
        file = ingest.read_edges(path)
        list(file)
        assert file.left_out.first[0]["number"] == 2


# -- what is said of columns ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, text",
    [
        ("a.txt", "5 7 9\n"),
        ("a.csv", "w,u,v\n5,7,9\n"),
        ("a.csv", "3,1,2\n5,7,9\n"),
        ("a.jsonl", '{"w": 5, "u": 7, "v": 9}\n'),
    ],
)
def test_columns_by_number(tmp_path: Path, name: str, text: str) -> None:
    """A number is the place, also where a column is called by another."""
    path = tmp_path / name
    path.write_text(text)
    header = True if name == "a.csv" else None
    read_as = {"source": 2, "target": 3, "weight": 1, "header": header}
    assert read(path, **read_as) == [(7, 9, 5.0, None)]
    source = ingest.FileSource(path, **read_as)  # type: ignore[arg-type]
    assert list(drain(source).values()) == [(7, 9, 5.0, None, 0)]
    again = source.identity().read_as
    assert again is not None
    source.identity().check(ingest.FileSource.again(path, again).identity())
    with pytest.raises(ingest.SourceError, match="no column 4 for the target"):
        ingest.read_edges(path, source=1, target=4)


@pytest.mark.parametrize("wrong", [1.0, True, b"u", ["u"]])
def test_columns_by_neither_name_nor_number(tmp_path: Path, wrong: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_text("u,v\n7,9\n")
    with pytest.raises(ingest.SourceError, match="a column is given by its name or its number"):
        ingest.read_edges(path, source=wrong)


def test_a_field_cannot_be_two_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("7 8 9 1\n")
    assert "only one can be the dst" in run(
        "load", path, tmp_path / "g.lpma", "--columns", "src dst dst", status=1
    ).stderr  # fmt: skip
    assert list(drain(ingest.FileSource(path, columns="src - dst -")).values()) == [
        (7, 9, 1.0, None, 0)
    ]


@pytest.mark.parametrize("command", ["load", "ingest"])
def test_names_are_no_way_out_for_a_wrong_matrix(tmp_path: Path, command: str) -> None:
    path, store = tmp_path / "a.mtx", tmp_path / "g.lpma"
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n3 3 3\n1 2\n4 1\nx 1\n")
    said = run(command, path, *([store] if command == "load" else ["--save", store])).stderr
    assert "src: indices go from 1 to 3" in " ".join(said.split())
    assert "src: not a whole number" in " ".join(said.split())
    assert "--names" not in said
