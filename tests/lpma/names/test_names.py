"""The dictionary of names: ids by first appearance, text and integers, files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpma import FormatError
from lpma.errors import TooManyNames
from lpma.names import UNKNOWN, Names, column_of
from tests.support.named_stream import NAMES

names = (
    st.sampled_from(NAMES)
    | st.integers(-(2**63), 2**64 - 1)
    | st.text(st.characters(codec="utf-8"), min_size=1, max_size=16)
)


def objects(items: list[Any]) -> Any:
    column = np.empty(len(items), object)
    column[:] = items
    return column


@given(st.lists(st.lists(names, max_size=30), max_size=6))
def test_ids_come_in_order_of_first_appearance(columns: list[list[Any]]) -> None:
    ids, known = Names(), {}  # type: ignore[var-annotated]
    for column in columns:
        expected = [known.setdefault((type(n), n), len(known)) for n in column]
        assert ids.assign(column_of(objects(column), "x")).tolist() == expected
    assert len(ids) == len(known)
    every = [name for _, name in known]
    assert ids.of(np.arange(len(known))).tolist() == every
    assert [ids.find(name) for name in every] == list(range(len(known)))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "vertices"
        image = ids.image()
        ids.assign(column_of(objects(["later", -77, 2**50]), "x"))
        with open(path, "wb") as file:
            image.write(file)
        loaded = Names.load(path)
    assert len(loaded) == len(known), "what an image writes is what there was when it was made"
    assert loaded.of(np.arange(len(known))).tolist() == every
    assert loaded.assign(column_of(objects(every), "x")).tolist() == list(range(len(known)))
    assert loaded.assign(column_of(objects(["new one"]), "x")).tolist() == [loaded.find("new one")]


def test_columns_of_integers_agree_with_a_dict() -> None:
    rng = np.random.default_rng(4)
    ids, known = Names(), {}  # type: ignore[var-annotated]
    for dtype in (np.uint32, np.uint64, np.int64) * 4:
        info = np.iinfo(dtype)
        column = rng.integers(info.min, info.max, 3000, dtype, endpoint=True)
        column[::3] = rng.integers(0, 500, 1000)
        expected = [known.setdefault(name, len(known)) for name in column.tolist()]
        np.testing.assert_array_equal(ids.assign(column_of(column, "x")), expected)
    assert ids.of(np.arange(len(ids))).tolist() == list(known)
    assert ids.find(2**33 + 1) is None
    assert ids.find("0") is None


def test_names_have_the_narrowest_type() -> None:
    ids = Names()
    ids.assign(column_of(objects([3, -4, 2**63, "a"]), "x"))
    assert ids.of([0]).dtype == np.uint64
    assert ids.of([2, 0]).dtype == np.uint64
    assert ids.of([0, 1]).dtype == np.int64
    assert ids.of([1, 2]).tolist() == [-4, 2**63]
    assert ids.of([3, 0]).tolist() == ["a", 3]
    assert ids.of([]).tolist() == []


def test_the_limit_is_told() -> None:
    for more in ([7, 8], ["a", "b"]):
        ids = Names(limit=3)
        ids.assign(column_of(objects([1, 2]), "x"))
        with pytest.raises(TooManyNames, match="3 vertices"):
            ids.assign(column_of(objects(more), "x"))
        assert ids.assign(column_of(objects([2, more[0]]), "x")).tolist() == [1, 2]
    assert Names().limit == UNKNOWN == 2**32 - 2


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vertices"
    ids = Names()
    ids.assign(column_of(objects([1, "a", -1]), "x"))
    with open(path, "wb") as file:
        ids.image().write(file)
    good = path.read_bytes()
    for bad in (b"", good[:-1], b"x" + good[1:], good + b"x", good[:-1] + b"\xff"):
        path.write_bytes(bad)
        with pytest.raises(FormatError):
            Names.load(path)


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(0, 3))
def test_names_by_codes_get_ids_as_they_first_appear(codes: list[int], known: int) -> None:
    """Whatever the order of a dictionary's entries, and whichever of them no row has."""
    entries = pyarrow.array([f"name {i}" for i in range(10)])
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes, pyarrow.int8()), entries)
    by_code, by_name = Names(), Names()
    for names in (by_code, by_name):
        names.assign(column_of([f"name {i}" for i in range(known)], "names"))
    found = by_code.assign(column_of(column, "names"))
    assert found.tolist() == by_name.assign(column_of(column.to_pylist(), "names")).tolist()
    every = np.arange(len(by_name))
    assert by_code.of(every).tolist() == by_name.of(every).tolist()
