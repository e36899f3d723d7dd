"""Loops over whole columns: the compiled ones do what NumPy's do, and the table of ids what a dict
does."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma.arrays import first_not_below
from lpma.cpu import change_kernels, column_kernels, columns, id_table
from lpma.cpu.splitmix import mix
from lpma.pma.keys import Slots, reversed_keys

Array = npt.NDArray[Any]

NO_ID = 2**32 - 1
ids = st.sampled_from([0, 1, 2, 3, 4, 5, 2**16, 2**31, 2**32 - 2])
targets = st.one_of(ids, st.just(NO_ID))


def rising(pairs: list[tuple[int, int]]) -> Array:
    return np.array(sorted({u << 32 | v for u, v in pairs}), np.uint64)


@given(pairs=st.lists(st.tuples(ids, targets), max_size=40))
def test_rows(pairs: list[tuple[int, int]]) -> None:
    keys = rising(pairs)
    ends = column_kernels.distinct_ends(keys)
    assert ends.dtype == np.uint32
    assert ends.tolist() == columns.sorted_ends(keys).tolist()
    keys = keys[keys & np.uint64(NO_ID) != NO_ID]
    for got, expected in zip(
        column_kernels.rows_by(keys, ends), columns.searched_rows(keys, ends), strict=True
    ):
        assert got.dtype == expected.dtype
        assert got.tolist() == expected.tolist()


def test_long_rows_and_many_ids() -> None:
    """More than a thread takes at once, and tables that grow."""
    rng = np.random.default_rng(3)
    u, v = rng.integers(0, 2**32 - 1, 40_000)[rng.integers(0, 40_000, (2, 500_000))]
    u[:200_000] = 77
    keys = np.unique(u.astype(np.uint64) << np.uint64(32) | v.astype(np.uint64))
    ends = column_kernels.distinct_ends(keys)
    assert np.array_equal(ends, columns.sorted_ends(keys))
    for got, expected in zip(
        column_kernels.rows_by(keys, ends), columns.searched_rows(keys, ends), strict=True
    ):
        assert np.array_equal(got, expected)


@pytest.mark.parametrize("directed", [True, False])
@given(pairs=st.lists(st.tuples(ids, targets), max_size=40))
def test_rising_keys_each_once(pairs: list[tuple[int, int]], directed: bool) -> None:
    src, dst = np.array(pairs, np.uint32).reshape(-1, 2).T
    ends = sorted({(u, v) if directed else (min(u, v), max(u, v)) for u, v in pairs})
    for rising_keys in (columns.rising_keys, change_kernels.rising_keys):
        assert rising_keys(src, dst, directed).tolist() == [u << 32 | v for u, v in ends]


@pytest.mark.parametrize("directed", [True, False])
def test_many_rising_keys(directed: bool) -> None:
    """So many that threads share the sorting."""
    src, dst = np.random.default_rng(5).integers(0, 3_000, (2, 200_000)).astype(np.uint32)
    low, high = (src, dst) if directed else (np.minimum(src, dst), np.maximum(src, dst))
    expected = np.unique(low.astype(np.uint64) << np.uint64(32) | high)
    for rising_keys in (columns.rising_keys, change_kernels.rising_keys):
        assert np.array_equal(rising_keys(src, dst, directed), expected)


states = st.none() | st.tuples(st.sampled_from([0.0, 1.0, 1.5]), st.integers(0, 2))
slots_of_two = st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.sampled_from([0, 1, 2, NO_ID])))


def states_of(rows: list[Any], dtype: Any, timed: bool) -> columns.States:
    found = np.array([row is not None for row in rows], np.bool_)
    weights, times = ([0 if row is None else row[i] for row in rows] for i in range(2))
    return (
        found, None if dtype is None else np.array(weights, dtype),
        np.array(times, np.int64) if timed else None,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [None, np.float32, np.float64])
@pytest.mark.parametrize("timed", [True, False])
@given(pairs=slots_of_two, data=st.data())
def test_net_rows(pairs: list[tuple[int, int]], data: Any, dtype: Any, timed: bool) -> None:
    pairs = sorted(set(pairs))
    was, now = (data.draw(st.lists(states, min_size=len(pairs), max_size=len(pairs)))
                for _ in range(2))  # fmt: skip
    removed, rest = [], []
    gone = {u for (u, v), a, b in zip(pairs, was, now, strict=True) if v == NO_ID and a and not b}
    for (u, v), before, after in zip(pairs, was, now, strict=True):
        weight, time = (0, 0) if after is None or v == NO_ID else after
        value = (0 if dtype is None else weight, time if timed else 0)
        if v == NO_ID:
            if before and not after:
                removed.append((lpma.Change.VERTEX_REMOVED, u, u, 0, 0))
            elif after and not before:
                rest.append((lpma.Change.VERTEX_ADDED, u, u, 0, 0))
        elif after and not before:
            rest.append((lpma.Change.INSERTED, u, v, *value))
        elif before and not after:
            rest.append((lpma.Change.REMOVED, u, v, 0, 0))
        elif before and after:
            differs = (dtype is not None and before[0] != weight) or (timed and before[1] != time)
            if differs or {u, v} & gone:
                rest.append((lpma.Change.CHANGED, u, v, *value))
    keys = np.array([u << 32 | v for u, v in pairs], np.uint64)
    for net_rows in (columns.net_rows, change_kernels.net_rows):
        change, src, dst, weights, times = net_rows(
            keys, *(states_of(rows, dtype, timed) for rows in (was, now))
        )
        assert [c.dtype.name for c in (change, src, dst)] == ["uint8", "uint32", "uint32"]
        assert (weights is None, times is None) == (dtype is None, not timed)
        values = [[0] * len(change) if c is None else c.tolist() for c in (weights, times)]
        assert weights is None or weights.dtype == dtype
        listed = list(zip(change.tolist(), src.tolist(), dst.tolist(), *values, strict=True))
        assert listed == removed + rest
        kept = (np.array([row is not None for row in rows], np.bool_) for rows in (was, now))
        before, after = (columns.hash_sum(keys[those]) for those in kept)
        for hash_moved in (columns.hash_moved, change_kernels.hash_moved):
            assert hash_moved(change, src, dst) == (after - before) % 2**64


@given(keys=st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_the_sum_of_hashes(keys: list[int]) -> None:
    column = np.array(keys, np.uint64)
    expected = sum(int(mix(np.uint64(key), np.zeros(1, np.uint64))[0]) for key in keys) % 2**64
    assert columns.hash_sum(column) == change_kernels.hash_sum(column) == expected


weights = st.sampled_from([0.0, 1.0, 2.5, -1.0, float("inf"), float("nan")])
slots = st.lists(st.tuples(st.one_of(targets), targets, weights), max_size=12)


LOOKS = [column_kernels.survey_piece, columns._survey_piece]


def surveyed(look: Any, size: int, keys: Array, *rest: Any) -> Slots:
    """In pieces of that size."""
    *values, directed = rest
    survey = columns.Survey(directed)
    cuts = [slice(at, at + size) for at in range(0, len(keys), size)]
    with patch.object(columns, "survey_piece", look):
        pieces: list[list[Any]] = [
            [None if c is None else c[cut] for c in (keys, *values)] for cut in cuts
        ]
        return survey.joined([survey.of(*piece) for piece in pieces])


def compared(keys: Array, weights: Any, times: Any, directed: bool) -> Slots:
    """The same by looking for each edge's other side."""
    low, high = keys & np.uint64(NO_ID), keys >> np.uint64(32)
    is_marker = low == NO_ID
    are_sound = not (high == NO_ID).any()
    if weights is not None:
        are_sound = are_sound and bool((weights >= 0).all()) and bool(np.isfinite(weights).all())
        are_sound = are_sound and not weights[is_marker].any()
    are_symmetric = True
    if not directed:
        edges = np.flatnonzero(~is_marker)
        back = edges[np.argsort(reversed_keys(keys[edges]), kind="stable")]
        edges = edges[np.argsort(keys[edges], kind="stable")]
        are_symmetric = np.array_equal(reversed_keys(keys[back]), keys[edges])
        for column in (weights, times):
            if column is not None:  # by their bits
                bits = column.view(f"u{column.itemsize}")
                are_symmetric = are_symmetric and np.array_equal(bits[back], bits[edges])
    return Slots(
        not bool((keys[1:] <= keys[:-1]).any()), bool(are_sound), are_symmetric,
        int(np.count_nonzero(is_marker)), int(np.count_nonzero(low == high)),
        max(int(low[~is_marker].max(initial=0)), int(high.max())) if len(keys) else -1,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [None, np.float32, np.float64])
@given(
    drawn=slots, directed=st.booleans(), is_sorted=st.booleans(), goes_back=st.booleans(),
    is_sound=st.booleans(), timed=st.none() | st.integers(0, 9),
)  # fmt: skip
def test_a_survey(
    dtype: Any, drawn: list[tuple[int, int, float]], directed: bool, is_sorted: bool,
    goes_back: bool, is_sound: bool, timed: int | None,
) -> None:  # fmt: skip
    if goes_back:
        drawn = drawn + [(v, u, w) for u, v, w in drawn if v != NO_ID]
    if is_sound:
        drawn = [(u, v, 0.0 if v == NO_ID else 1.0) for u, v, _ in drawn if u != NO_ID]
    if is_sorted:
        drawn = sorted({(u, v): (u, v, w) for u, v, w in drawn}.values())
    keys = np.array([u << 32 | v for u, v, _ in drawn], np.uint64)
    column = None if dtype is None else np.array([w for _, _, w in drawn], dtype)
    times = None if timed is None else np.full(len(keys), 7, np.int64)
    if times is not None and timed and len(keys):
        times[timed % len(keys)] = timed
    expected = compared(keys, column, times, directed)
    for look in LOOKS:
        for size in (1, 3, 100):
            got = surveyed(look, size, keys, column, times, directed)
            assert got[:2] == expected[:2]
            if expected.rise and expected.are_sound:  # else the rest means nothing
                assert got == expected


def test_a_survey_of_many_slots() -> None:
    """In several pieces; one edge of them does not go back."""
    rng = np.random.default_rng(4)
    u, v = rng.integers(0, 3_000, (2, 700_000)).astype(np.uint64)
    half = np.uint64(32)
    keys = np.unique(np.concatenate([u << half | v, v << half | u]))
    found = columns.survey(keys, None, None, False)
    assert found == compared(keys, None, None, False)
    assert found.rise
    assert found.are_symmetric
    low = keys & np.uint64(NO_ID)
    one = int(np.flatnonzero(keys >> half != low)[12_345])
    assert not columns.survey(np.delete(keys, one), None, None, False).are_symmetric
    swapped = keys.copy()
    swapped[one : one + 2] = swapped[one : one + 2][::-1]
    assert not columns.survey(swapped, None, None, True).rise


changes = st.lists(st.lists(st.tuples(ids, st.booleans()), max_size=30), max_size=8)


@given(batches=changes)
def test_a_table_counts_as_a_dict_does(batches: list[list[tuple[int, bool]]]) -> None:
    table, model = id_table.IdTable(), Counter[int]()
    for batch in batches:
        rows = []
        for id, comes in batch:
            if comes or model[id]:
                model[id] += 1 if comes else -1
                rows.append((id, comes))
        keys = np.array([5 << 32 | id for id, _ in rows], np.uint64)
        table.count(keys, np.array([comes for _, comes in rows], np.bool_))
        table.count(np.array([3 << 32 | NO_ID], np.uint64))  # a marker is no edge
        asked = [0, 1, 2, 3, 4, 5, 2**16, 2**31, 2**32 - 2, 99]
        assert table.numbers(np.array(asked, np.uint32)).tolist() == [model[i] for i in asked]
        assert [table.number_of(id) for id in asked] == [model[i] for i in asked]
        assert sorted(table.ids().tolist()) == sorted(+model)


def test_a_table_that_grows_leaves_behind_what_went() -> None:
    table = id_table.IdTable()
    keys = np.arange(100_000, dtype=np.uint64)
    table.count(keys)
    table.count(keys[:99_990], np.zeros(99_990, np.bool_))
    grown = table.nbytes
    table.count(np.arange(200_000, 260_000, dtype=np.uint64))
    assert table.nbytes <= 2 * grown
    assert table.numbers(np.arange(99_980, 100_001, dtype=np.uint32)).tolist() == (
        [0] * 10 + [1] * 10 + [0]
    )
    assert len(table.ids()) == 60_010


@given(values=st.lists(st.integers(0, 2**32 - 1)), asked=st.integers(0, 2**33))
def test_first_not_below(values: list[int], asked: int) -> None:
    column = np.array(sorted(values), np.uint32)
    assert first_not_below(column, asked) == sum(value < asked for value in values)
