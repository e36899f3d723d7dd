"""Columns that a caller changes before they are applied: the arrays that were given, or the columns
that were made of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import lpma
from lpma import Batch, BatchError, Kind
from tests.support.oracles import host

MANY = 1 << 18  # rows that a device is told to look at itself


def arrays(n: int) -> dict[str, Any]:
    """Columns of a batch, of the types that are kept as they are."""
    return {
        "kind": np.zeros(n, np.uint8), "src": np.arange(n, dtype=np.uint32),
        "dst": np.ones(n, np.uint32), "weight": np.ones(n, np.float32),
        "time": np.full(n, 7, np.int64),
    }  # fmt: skip


BAD = [
    ("src", 2**32 - 1),
    ("dst", 2**32 - 1),
    ("weight", np.nan),
    ("weight", -np.inf),
    ("kind", 99),
]


@pytest.mark.parametrize("n", [3, MANY])
@pytest.mark.parametrize("name, value", BAD)
def test_what_became_bad_is_refused(device: str, n: int, name: str, value: Any) -> None:
    given = arrays(n)
    columns = Batch.from_columns(**given)
    g = lpma.Graph(device=device)
    g.insert(5, 6)
    given[name][1] = value
    with pytest.raises(BatchError, match="vertex ids" if name in ("src", "dst") else name):
        g.apply(columns)
    g.check()
    assert (g.version, g.num_edges) == (1, 1)
    given[name][1] = 0  # the batch is of use again
    g.apply(columns)
    assert g.version == 2


@pytest.mark.parametrize("name, value", [*BAD, ("hops", 0), ("hops", 256)])
def test_a_mixed_batch(device: str, name: str, value: Any) -> None:
    given = arrays(4)
    given["kind"][:] = [Kind.INSERT, Kind.INSERT, Kind.HOPS, Kind.DEGREE]
    columns = Batch.from_columns(**given)
    g = lpma.Graph(device=device)
    given["dst" if name == "hops" else name][2 if name == "hops" else 1] = value
    with pytest.raises(BatchError):
        g.apply(columns)
    assert (g.version, g.num_edges) == (0, 0)


def test_what_stays_good_is_applied_as_it_is_then(device: str) -> None:
    given = arrays(3)
    columns = Batch.from_columns(**given)
    given["src"][:], given["kind"][2] = [7, 8, 9], Kind.ADD_VERTEX
    g = lpma.Graph(device=device)
    g.apply(columns)
    g.check()
    assert host(g.edges([7, 8, 9], [1, 1, 1]).found).tolist() == [True, True, False]
    assert list(g) == [1, 7, 8, 9]


def test_a_batch_by_name_is_the_callers_no_more(device: str) -> None:
    given = arrays(3)
    columns = Batch.from_columns(**given, names=True)
    given["kind"][:], given["weight"][:], given["time"][:], given["src"][:] = 99, np.nan, 9, 5
    g = lpma.Graph(device=device, names=True)
    g.apply(columns)
    s = g.snapshot()
    assert (g.num_edges, g.time, sorted(g)) == (3, 7, [0, 1, 2])
    assert np.isfinite(host(s.weights)).all()


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("n", [1, 1000, MANY])
def test_what_kinds_there_are(n: int, kind: Kind) -> None:
    """One row among few or many that does not insert, wherever it is."""
    for row in {0, n // 3, n - 1}:
        ids = np.zeros(n, np.uint32)
        columns = lpma.Columns(np.zeros(n, np.uint8), ids, ids, None, None)
        columns.kind[row] = kind
        assert columns.one_kind == (kind if n == 1 or kind == Kind.INSERT else None)
        assert columns.edges_only == (kind in (Kind.INSERT, Kind.SET, Kind.DELETE))


# -- whoever made the columns, and whatever the caller does to them --------------------------------


def as_batch(kinds: list[Kind]) -> lpma.Columns:
    """As `Batch.columns` gives them."""
    batch = Batch()
    for kind in kinds:
        if kind == Kind.INSERT:
            batch.insert(1, 2, 0.5, time=7)
        else:
            batch.degree(1)
    return batch.columns()


def by_hand(kinds: list[Kind]) -> lpma.Columns:
    n = len(kinds)
    ids = np.ones(n, np.uint32)
    return lpma.Columns(np.array(kinds, np.uint8), ids, ids + np.uint32(1), np.full(n, 0.5),
                        np.full(n, 7, np.int64))  # fmt: skip


def pinned(kinds: list[Kind]) -> lpma.Columns:
    columns = lpma.pinned_batch(len(kinds))
    columns.kind[:], columns.src[:], columns.dst[:] = kinds, 1, 2
    return columns


def replaced(kinds: list[Kind]) -> lpma.Columns:
    """As programs change one column."""
    return dataclasses.replace(as_batch(kinds), src=np.ones(len(kinds), np.uint32))


def part(kinds: list[Kind]) -> lpma.Columns:
    columns = as_batch([*kinds, *kinds])
    return columns.rows(len(kinds), len(columns))


def joined(kinds: list[Kind]) -> lpma.Columns:
    return lpma.Columns.joined([as_batch(kinds[:1]), by_hand(kinds[1:])])


MAKERS = [as_batch, by_hand, pinned, replaced, part, joined]
UPDATES = [Kind.INSERT] * 3
MIXED = [Kind.INSERT, Kind.INSERT, Kind.DEGREE]


@pytest.fixture(params=[UPDATES, MIXED], ids=["updates", "mixed"])
def kinds(request: pytest.FixtureRequest) -> list[Kind]:
    found: list[Kind] = request.param
    return found


def refuses(g: lpma.Graph, columns: lpma.Columns, match: str | None = None) -> None:
    version, edges = g.version, g.num_edges
    with pytest.raises(BatchError, match=match):
        g.apply(columns)
    g.check()
    assert (g.version, g.num_edges) == (version, edges)


@pytest.mark.parametrize("name, value", BAD)
@pytest.mark.parametrize("make", MAKERS)
def test_a_bad_value_is_refused_whoever_made_the_columns(
    device: str, make: Any, kinds: list[Kind], name: str, value: Any
) -> None:
    columns = make(kinds)
    g = lpma.Graph(device=device)
    g.insert(5, 6)
    column = getattr(columns, name)
    before = column[1]
    column[1] = value
    refuses(g, columns)
    column[1] = before
    assert g.apply(columns) is not None
    g.check()
    assert g.num_edges == 2


OTHER_COLUMNS = {  # put in a column's place; each has three rows, unless that is what is wrong
    "kind of 64 bits": ("kind", np.array([0, 0, 99])),
    "kind too short": ("kind", np.zeros(2, np.uint8)),
    "kind too long": ("kind", np.zeros(5, np.uint8)),
    "signed ids": ("src", np.array([1, -1, 1])),
    "ids beyond 32 bits": ("dst", np.array([1, 2**40, 1])),
    "fractions": ("dst", np.array([1, 0.5, 1])),
    "text": ("src", np.array(["a", "b", "c"])),
    "a list": ("src", [1, 2, -1]),
    "too few ids": ("src", np.ones(2, np.uint32)),
    "too many ids": ("dst", np.ones(9, np.uint32)),
    "two dimensions": ("src", np.ones((3, 1), np.uint32)),
    "no ids": ("dst", None),
    "a weight too few": ("weight", np.ones(2, np.float32)),
    "weights of text": ("weight", np.array(["a", "b", "c"])),
    "a time too few": ("time", np.zeros(2, np.int64)),
    "times with fractions": ("time", np.array([0.5, 1, 2])),
}


@pytest.mark.parametrize("what", OTHER_COLUMNS)
@pytest.mark.parametrize("make", MAKERS)
def test_another_column_that_does_not_fit_is_refused(
    device: str, make: Any, kinds: list[Kind], what: str
) -> None:
    columns = make(kinds)
    name, column = OTHER_COLUMNS[what]
    setattr(columns, name, column)
    g = lpma.Graph(device=device)
    g.insert(5, 6)
    refuses(g, columns)


@pytest.mark.parametrize("make", MAKERS)
def test_another_column_that_fits_is_applied(device: str, make: Any, kinds: list[Kind]) -> None:
    """Whatever its type, and whether it has gaps."""
    columns = make(kinds)
    columns.src = np.array([10, 11, 12, 13, 10, 14])[::2]
    columns.weight = [1, 2, 3]
    columns.time = np.arange(6)[::2]
    g = lpma.Graph(device=device)
    g.apply(columns)
    g.check()
    assert host(g.edges([10, 12], [2, 2]).weights).tolist() == [4 if kinds is UPDATES else 1, 2]


@pytest.mark.parametrize("name, value", [("weight", np.nan), ("kind", 99)])
@pytest.mark.parametrize("made_by", ["columns", "from_columns"])
def test_changed_columns_by_name_are_refused(
    device: str, kinds: list[Kind], made_by: str, name: str, value: Any
) -> None:
    g = lpma.Graph(device=device, names=True)
    g.insert("x", "y")
    if made_by == "columns":
        batch = Batch()
        for kind in kinds:
            batch.insert("a", "b", 0.5) if kind == Kind.INSERT else batch.degree("a")
        columns = batch.columns(names=True)
    else:
        ends = ["a"] * 3, ["b"] * 3
        columns = Batch.from_columns(np.array(kinds), *ends, weight=np.ones(3), names=True)
    column = getattr(columns, name)
    before = column[1]
    column[1] = value
    refuses(g, columns)
    assert g.names is not None
    assert len(g.names) == 2, "a refused batch gives its ids back"
    column[1] = before
    columns.kind = np.append(columns.kind, np.uint8(0))
    refuses(g, columns)
    columns.kind = columns.kind[:3]
    g.apply(columns)
    assert sorted(g) == ["a", "b", "x", "y"]


def test_a_batch_that_is_refused_does_not_change_the_columns(device: str) -> None:
    columns = as_batch(MIXED)
    columns.dst[1] = 2**32 - 1
    arrays = [np.copy(getattr(columns, name)) for name in columns.ROWS]
    refuses(lpma.Graph(device=device), columns)
    assert all(
        np.array_equal(getattr(columns, n), a) for n, a in zip(columns.ROWS, arrays, strict=True)
    )


@pytest.mark.parametrize("field, value", [("keys", 2**40), ("bounds", 2**40), ("kinds", 77)])
@pytest.mark.parametrize("end", ["sources", "targets"])
def test_names_that_were_written_to_are_refused(end: str, field: str, value: int) -> None:
    """They were read far beyond their text."""
    g = lpma.Graph(names=True, device="cpu")
    columns: Any = Batch.from_columns(Kind.INSERT, ["a", "b"], ["b", "c"], names=True)
    getattr(getattr(columns, end), field)[:] = value
    with pytest.raises(BatchError, match="names were written to"):
        g.apply(columns)
    assert g.names is not None
    assert (g.version, len(g), len(g.names)) == (0, 0, 0)
