"""Remembered rows, against a dictionary of rows whose sums are fractions."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest import RecordError
from ingest.formats.debezium.values import exact_weight_of
from ingest.state.table_rows import Sum, TableRow, TableRows

names = st.sampled_from([1, 2, "1", "ann"])
# As a reader gives them: a `Decimal` where a float is not enough.
digits = st.sampled_from(["99999999999999999.99", "-99999999999999999.98", "1e-40", "-7e22",
                          "12345678901234567890123456789012345.678"])  # fmt: skip
weights = st.floats(-1e30, 1e30) | st.sampled_from([0.1, 0.2, -0.3, 5e-324, 1e30, -1e30]) | (
    digits | st.decimals(-(10**20), 10**20, places=18).map(str)
).map(exact_weight_of)  # fmt: skip
row = st.builds(TableRow, names, names, weights, st.none() | st.integers(1, 4))
keys = st.sampled_from(["id:1", "id:2", "id:3"])
topics = st.sampled_from(["paid", "owed"])
tables = st.sampled_from(["shop.pays", "shop.gifts"])
change = st.tuples(st.just("change"), topics, keys, st.none() | row, tables)
clear = st.tuples(st.just("clear"), topics, tables)
step = change | clear | st.tuples(st.just("revert")) | st.tuples(
    st.just("applied"), st.integers(1, 3)
)  # fmt: skip

Rows = dict[tuple[str, str, str], TableRow]


def sum_in(rows: Rows, src: Any, dst: Any) -> Sum:
    own = [each for each in rows.values() if each[:2] == (src, dst)]
    total = float(sum((Fraction(str(each.weight)) for each in own), Fraction()))
    times = [each.time for each in own if each.time is not None]
    return Sum(src, dst, total if own else None, max(times, default=None))


@given(st.lists(step, max_size=30))
@settings(deadline=None)
def test_sums_are_those_of_the_rows_that_are_there(steps: list[Any]) -> None:
    """And a checkpoint has the rows as of what was applied."""
    rows, states = TableRows(), [Rows()]
    for what, *more in steps:
        about = tuple(more)
        now = dict(states[-1])
        if what == "change":
            topic, key, new, table = about
            before = now.pop((topic, table, key), None)
            if new is not None:
                now[topic, table, key] = new
            ends = dict.fromkeys(each[:2] for each in (before, new) if each is not None)
            assert rows.change(topic, key, new, table) == [sum_in(now, *each) for each in ends]
            states.append(now)
        elif what == "clear":
            own = [each for place, each in now.items() if place[:2] == about]
            gone = dict.fromkeys(each[:2] for each in own)
            now = {place: each for place, each in now.items() if place[:2] != about}
            found = rows.clear(*about)
            assert sorted(map(repr, found)) == sorted(repr(sum_in(now, *each)) for each in gone)
            states.append(now)
        elif what == "revert" and len(states) > 1:
            rows.revert()
            states.pop()
        elif what == "applied":
            count = min(about[0], len(states) - 1)
            rows.applied(count)
            del states[:count]
        assert len(rows) == len(states[-1])
    assert kept(rows) == kept_in(states[0])


def kept(rows: TableRows) -> list[Any]:
    """What a checkpoint holds, and that it is read again."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "rows"
        with open(path, "wb") as file:
            rows.image().write(file)
        again = TableRows.load(path)
    found = rows.image().rows
    assert {place: of for place, of in again.image().rows.items() if of} == {
        place: of for place, of in found.items() if of
    }
    return sorted((*place, key, *map(repr, each)) for place, of in found.items()
                  for key, each in of.items())  # fmt: skip


def kept_in(rows: Rows) -> list[Any]:
    return sorted((*place, *map(repr, each)) for place, each in rows.items())


def loaded(path: Path, *lines: Any) -> TableRows:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return TableRows.load(path)


def test_rows_of_an_older_file_are_of_the_table_that_names_them_first(tmp_path: Path) -> None:
    """It says no tables. What is taken back lies where it lay."""
    rows = loaded(tmp_path / "rows", ["all", [["id:1", 1, 2, 0.5, None], ["id:2", 1, 2, 4.0, 7]]])
    before = kept(rows)
    assert rows.change("all", "id:1", TableRow(1, 2, 1.0), "pays") == [Sum(1, 2, 5.0, 7)]
    assert kept(rows) == before
    assert rows.change("all", "id:1", TableRow(1, 2, 2.0), "gifts") == [Sum(1, 2, 7.0, 7)]
    assert rows.has_others("all", "pays")
    rows.revert()
    assert not rows.has_others("all", "pays")
    rows.revert()
    assert kept(rows) == before
    assert rows.change("all", "id:1", None, "pays") == [Sum(1, 2, 4.0, 7)]
    assert rows.clear("all", "pays") == [Sum(1, 2, None)]
    assert not len(rows)


def test_a_record_without_a_table_is_of_the_only_one(tmp_path: Path) -> None:
    """Once there are two, it may be of either, whichever has the key still."""
    rows = TableRows()
    for key in ("id:1", "id:2"):
        rows.change("all", key, TableRow(1, 2, 1.0), "pays")
    assert rows.change("all", "id:1", None) == [Sum(1, 2, 1.0)]
    rows.change("all", "id:1", None, "gifts")
    with pytest.raises(RecordError, match="the topic has gifts and pays"):
        rows.change("all", "id:2", None)
    rows.revert()
    rows.change("all", "id:2", TableRow(1, 2, 3.0))
    rows.change("all", "id:1", None, "gifts")
    rows.applied(4)
    with open(tmp_path / "rows", "wb") as file:
        rows.image().write(file)
    assert TableRows.load(tmp_path / "rows").find("all", "id:2") == TableRow(1, 2, 3.0)
    rows.applied(1)
    with open(tmp_path / "rows", "wb") as file:
        rows.image().write(file)
    with pytest.raises(RecordError, match="gifts"):
        TableRows.load(tmp_path / "rows").find("all", "id:2")
