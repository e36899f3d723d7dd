"""Remembered rows, against a dictionary of rows whose sums are fractions."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.state.table_rows import Sum, TableRow, TableRows

names = st.sampled_from([1, 2, "1", "ann"])
weights = st.floats(-1e30, 1e30) | st.sampled_from([0.1, 0.2, 0.3, 5e-324, 1e30, -1e30])
row = st.builds(TableRow, names, names, weights, st.none() | st.integers(1, 4))
keys = st.sampled_from(["id:1", "id:2", "id:3"])
topics = st.sampled_from(["paid", "owed"])
change = st.tuples(st.just("change"), topics, keys, st.none() | row)
step = change | st.tuples(st.just("clear"), topics) | st.tuples(st.just("revert")) | st.tuples(
    st.just("applied"), st.integers(1, 3)
)  # fmt: skip

Rows = dict[tuple[str, str], TableRow]


def sum_in(rows: Rows, src: Any, dst: Any) -> Sum:
    own = [each for each in rows.values() if each[:2] == (src, dst)]
    total = float(sum((Fraction(each.weight) for each in own), Fraction()))
    times = [each.time for each in own if each.time is not None]
    return Sum(src, dst, total if own else None, max(times, default=None))


@given(st.lists(step, max_size=30))
@settings(deadline=None)
def test_sums_are_those_of_the_rows_that_are_there(steps: list[Any]) -> None:
    """And a checkpoint has the rows as of what was applied."""
    rows, states = TableRows(), [Rows()]
    for what, *about in steps:
        now = dict(states[-1])
        if what == "change":
            topic, key, new = about
            before = now.pop((topic, key), None)
            if new is not None:
                now[topic, key] = new
            ends = dict.fromkeys(each[:2] for each in (before, new) if each is not None)
            assert rows.change(topic, key, new) == [sum_in(now, *each) for each in ends]
            states.append(now)
        elif what == "clear":
            gone = dict.fromkeys(each[:2] for place, each in now.items() if place[0] == about[0])
            now = {place: each for place, each in now.items() if place[0] != about[0]}
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
    assert {topic: of for topic, of in again.image().rows.items() if of} == {
        topic: of for topic, of in found.items() if of
    }
    return sorted((topic, key, *map(repr, each)) for topic, of in found.items()
                  for key, each in of.items())  # fmt: skip


def kept_in(rows: Rows) -> list[Any]:
    return sorted((topic, key, *map(repr, each)) for (topic, key), each in rows.items())
