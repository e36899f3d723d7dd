"""Whatever cuts, joins, copies, moves or rebuilds a value carries all of it.

A batch has columns and marks: what is true of all its rows, such as that they were looked up. Each
field has a value of its own here, and each place at which batches are made of batches is tried with
each of them. A field that is added later is in these tests from its first day on: a place that
does not carry it fails.
"""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lpma
from lpma import Batch, BatchError, Columns, Kind
from lpma.arrays import PinnedBlock, address
from lpma.batch.named import NamedColumns, named_columns
from lpma.engine.admission import validated
from lpma.engine.answers import Answers
from lpma.names import Names, column_of
from lpma.results import Edges, Neighbors
from tests.support.carried import MARKS, SOMES, N, assert_carried, columns_of, values
from tests.support.oracles import assert_same

Value = TypeVar("Value")


def named_of(lacking: tuple[str, ...] = ()) -> NamedColumns:
    plain = columns_of(lacking)
    made = named_columns(plain.kind, [f"s{i}" for i in range(N)], [f"t{i}" for i in range(N)],
                         plain.weight, plain.time)  # fmt: skip
    return made.replace(**MARKS)


def pickled(value: Value) -> Value:
    copied: Value = pickle.loads(pickle.dumps(value))  # noqa: S301 - it was made here
    return copied


def test_every_field_is_tried() -> None:
    """Neither a column nor a mark is left at its default above."""
    made = columns_of()
    for field in dataclasses.fields(Columns):
        if field.name in Columns.ROWS:
            assert getattr(made, field.name) is not None
        elif field.name not in ("block", "places"):  # of one piece of memory: see below
            assert getattr(made, field.name) != field.default, field.name
    extra = {field.name for field in dataclasses.fields(NamedColumns)}
    assert extra - {field.name for field in dataclasses.fields(Columns)} == {"sources", "targets"}


class Place(NamedTuple):
    """Something that makes a batch of another one, and of which rows of it."""

    make: Callable[[Any], Any]
    rows: Any = slice(None)


MASK = np.arange(N) % 3 == 1
NUMBERS = np.array([5, 0, 0, 7, 2])
PLACES = {
    "rows": Place(lambda c: c.rows(2, 5), slice(2, 5)),
    "all rows": Place(lambda c: c.rows(0, N)),
    "no rows": Place(lambda c: c.rows(3, 3), slice(3, 3)),
    "rows of rows": Place(lambda c: c.rows(1, 7).rows(2, 4), slice(3, 5)),
    "take a slice": Place(lambda c: c.take(slice(1, None)), slice(1, None)),
    "take a mask": Place(lambda c: c.take(MASK), MASK),
    "take numbers": Place(lambda c: c.take(NUMBERS), NUMBERS),
    "take nothing": Place(lambda c: c.take(NUMBERS[:0]), NUMBERS[:0]),
    "replace": Place(lambda c: c.replace()),
    "dataclasses.replace": Place(dataclasses.replace),
    "moved": Place(lambda c: c.moved(lambda array: array)),
    "copy": Place(copy.copy),
    "deepcopy": Place(copy.deepcopy),
    "pickle": Place(lambda c: pickled(c)),
    "joined": Place(lambda c: Columns.joined([c.rows(0, 3), c.rows(3, 3), c.rows(3, N)])),
    "joined of one": Place(lambda c: Columns.joined([c])),
}  # fmt: skip


@pytest.mark.parametrize("lacking", SOMES.values(), ids=list(SOMES))
@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_a_batch_is_carried_whole(place: str, by_name: bool, lacking: tuple[str, ...]) -> None:
    of = PLACES[place]
    given = named_of(lacking) if by_name else columns_of(lacking)
    assert not given.num_queries  # which is kept, and is to be counted anew of other rows
    assert_carried(of.make(given), given, of.rows, but=("block",))


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("place", PLACES)
def test_no_mark_appears(place: str, mark: str) -> None:
    """One that is off stays off."""
    given = columns_of((), **{mark: False})
    made = PLACES[place].make(given)
    assert getattr(made, mark) is False
    assert all(getattr(made, other) for other in MARKS if other != mark)


@pytest.mark.parametrize("mark", ["ids_resolved", "expiry_expanded", "unvalidated"])
def test_parts_that_are_read_differently_make_no_batch(mark: str) -> None:
    parts = [columns_of(), columns_of((), **{mark: False})]
    with pytest.raises(BatchError, match="agree"):
        Columns.joined(parts)


def test_parts_of_which_some_have_times_make_no_batch() -> None:
    with pytest.raises(BatchError, match="agree"):
        Columns.joined([columns_of(), columns_of(("time",))])


def test_joined_parts_are_checked_only_if_all_are() -> None:
    assert not Columns.joined([columns_of(), columns_of(checked=False)]).checked


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_without_weights_have_ones(dtype: Any) -> None:
    part = columns_of()
    assert part.weight is not None
    part.weight = part.weight.astype(dtype)
    made = Columns.joined([columns_of(("weight",)), part])
    assert made.weight is not None
    assert made.weight.dtype == dtype
    assert made.weight.tolist() == [1.0] * N + part.weight.tolist()


@pytest.mark.parametrize("lacking", SOMES.values(), ids=list(SOMES))
def test_names_become_ids_and_all_else_stays(lacking: tuple[str, ...]) -> None:
    given = named_of(lacking).replace(ids_resolved=False)
    src, dst = np.arange(N, dtype=np.uint32), np.arange(N, dtype=np.uint32)
    made = given.by_ids(src, dst)
    assert type(made) is Columns
    assert made.src is src
    assert made.dst is dst
    assert made.ids_resolved
    for field in dataclasses.fields(Columns):
        if field.name not in ("src", "dst", "ids_resolved"):
            assert getattr(made, field.name) is getattr(given, field.name), field.name


@pytest.mark.parametrize("lacking", SOMES.values(), ids=list(SOMES))
def test_a_batch_that_is_validated_keeps_its_marks(lacking: tuple[str, ...]) -> None:
    given = columns_of(lacking, checked=False)
    assert_carried(validated(given), given, slice(None), but=("checked",))
    wide = given.replace(src=given.src.astype(np.int64))  # a column that is made anew
    assert_carried(validated(wide), given, slice(None), but=("checked",))


class _Memory:
    """What CuPy's pinned memory is to a block of it."""

    ptr = 4096


def test_a_part_of_pinned_memory_is_no_block_by_itself() -> None:
    """A block is copied as a whole, from its start. Other columns than its own are not in it."""
    block: Any = PinnedBlock(_Memory())
    columns = columns_of(checked=False)
    block.keep(columns.kind, columns.src, columns.dst, columns.weight, columns.time)
    columns.block = block
    moved = columns.moved(lambda array: array)
    assert moved.block is block
    assert moved.places == tuple(map(address, (getattr(columns, name) for name in columns.ROWS)))
    for whole in (moved.rows(0, N), moved.replace(ids_resolved=False)):
        assert (whole.block, whole.places) == (block, moved.places)
    for part in (moved.rows(1, 5), moved.take(MASK), moved.replace(weight=None)):
        assert part.block is part.places is None
    columns.src = columns.src.copy()
    moved = columns.moved(lambda array: array)
    assert moved.block is moved.places is None


# -- a batch by ids in a graph with names: the mark in use -----------------------------------------


def test_looked_up_rows_stay_ids_when_a_caller_cuts_them(device: str) -> None:
    whole, parts = (lpma.Graph(device=device, names=True) for _ in range(2))
    for g in (whole, parts):
        g.insert(["a", "b", "c"], ["b", "c", "d"], time=1)
    ids = Batch.from_columns(Kind.INSERT, [0, 1, 2, 3, 3], [3, 2, 1, 0, 1], time=[2, 3, 4, 5, 6])
    ids = ids.replace(ids_resolved=True)
    whole.apply(ids)
    for first in range(0, 5, 3):
        parts.apply(ids.rows(first, min(first + 3, 5)))
    for name, column in whole.snapshot().to_numpy().items():
        assert_same(column, parts.snapshot().to_numpy()[name], name)
    assert sorted(parts) == ["a", "b", "c", "d"]


# -- answers ---------------------------------------------------------------------------------------


def edges_of(lacking: tuple[str, ...]) -> Edges:
    given = columns_of(lacking)
    return Edges(given.kind == 0, given.weight, given.time)


def neighbors_of(lacking: tuple[str, ...]) -> Neighbors:
    given = columns_of(lacking)
    return Neighbors(np.array([0, 0, 3, 3, 7, N]), given.src, given.weight, given.time)


def cut(column: Any, start: int, stop: int) -> Any:
    return None if column is None else column[start:stop].tolist()


@pytest.mark.parametrize("lacking", SOMES.values(), ids=list(SOMES))
def test_answers_are_cut_and_moved_whole(lacking: tuple[str, ...]) -> None:
    moves = (lambda array: array.copy(), lambda array: array[:])
    edges, neighbors = edges_of(lacking), neighbors_of(lacking)
    for field in dataclasses.fields(Edges):
        old = getattr(edges, field.name)
        assert values(getattr(edges.rows(2, 5), field.name)) == cut(old, 2, 5)
        for move in moves:
            assert values(getattr(edges.with_columns(move), field.name)) == values(old)
    for field in dataclasses.fields(Neighbors):
        old = getattr(neighbors, field.name)
        for move in moves:
            assert values(getattr(neighbors.with_columns(move), field.name)) == values(old)
        if field.name != "indptr":
            assert values(getattr(neighbors.rows(2, 5), field.name)) == cut(old, 2, 5)
    assert neighbors.rows(2, 5).indptr.tolist() == [0, 3]
    assert neighbors.rows(6, 99).indptr.tolist() == [0, 2]
    assert neighbors.rows(2, 5, np.array([0, 1, 3])).indptr.tolist() == [0, 1, 3]
    answers = Answers(np.array([6] * 5, np.uint8), {6: (np.arange(5), neighbors)})
    starts = neighbors.indptr.tolist()
    for made in (answers, answers.on_host()):
        for number, (start, stop) in enumerate(pairwise(starts)):
            one: Any = made[number]
            assert one.indptr.tolist() == [0, stop - start]
            for name in ("ids", "weights", "times"):
                assert values(getattr(one, name)) == cut(getattr(neighbors, name), start, stop)


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [slice(1, 4), MASK, NUMBERS, NUMBERS[:0]], ids=str)
@pytest.mark.parametrize("repeated", [False, True])
def test_a_column_of_names_is_cut_whole(rows: Any, repeated: bool) -> None:
    """Text, large and negative integers; names that share an entry, as a caller's column says."""
    given = ["a", -5, 2**63, "ü", "5", 5, "", "zz"]
    given[6] = "six"
    column = column_of(given, "src")
    if repeated:
        codes = np.array([3, 3, 0, 1, 7, 6, 2, 2])
        column, given = dataclasses.replace(column, codes=codes), [given[i] for i in codes]
    dictionary = Names()
    ids = dictionary.assign(column.take(rows))
    assert dictionary.of(ids).tolist() == [given[i] for i in np.arange(N)[rows]]


# -- snapshots -------------------------------------------------------------------------------------


@pytest.fixture(params=["rows", "compact"])
def snapshot(request: pytest.FixtureRequest, device: str) -> lpma.Snapshot:
    g = lpma.Graph(device=device, names=True)
    g.insert(["a", "b", "c", "a"], ["b", "c", "a", "d"], [1, 2, 3, 4], time=[5, 6, 7, 8])
    g.add_vertices("alone")
    return g.snapshot(compact=request.param == "compact")


@pytest.mark.parametrize(
    "make",
    [dataclasses.replace, copy.copy, copy.deepcopy, lambda s: pickled(s)],
    ids=["replace", "copy", "deepcopy", "pickle"],
)
@pytest.mark.parametrize("filled", [False, True], ids=["columns late", "columns there"])
def test_a_snapshot_is_copied_whole(snapshot: lpma.Snapshot, make: Any, filled: bool) -> None:
    if filled:
        assert snapshot.weights is not None
    made = make(snapshot)
    for field in dataclasses.fields(lpma.Snapshot):
        if field.name not in ("names", "views"):  # see below; and what is derived
            assert_same(getattr(made, field.name), getattr(snapshot, field.name), field.name)
    assert made.num_rows == snapshot.num_rows
    assert made.names is not None
    assert snapshot.names is not None
    every = range(made.num_rows)
    assert made.names.of(every).tolist() == snapshot.names.of(every).tolist()


@given(
    rows=st.lists(
        st.tuples(st.sampled_from(["a", "é", 7, 2**40, -1]), st.sampled_from(["b", "a", 2**63])),
        min_size=1,
    ),
    cuts=st.lists(st.integers(0, 30), max_size=4),
)
def test_named_parts_are_joined_with_their_names(rows: list[Any], cuts: list[int]) -> None:
    """Also parts of other batches, whose names are numbered anew."""
    src, dst = map(list, zip(*rows, strict=True))
    whole = lpma.Batch.from_columns(lpma.Kind.INSERT, src, dst, names=True)
    bounds = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    parts = [whole.rows(lo, hi) for lo, hi in pairwise(bounds)]
    joined = lpma.Columns.joined([whole, *parts])
    g, expected = (lpma.Graph(names=True, device="cpu") for _ in range(2))
    g.apply(joined)
    for u, v in [*rows, *rows]:
        expected.insert(u, v)
    assert sorted(map(str, g)) == sorted(map(str, expected))
    assert_same(g.edges(src, dst).weights, expected.edges(src, dst).weights)


def test_parts_that_do_not_go_together_are_refused() -> None:
    plain = lpma.Batch.from_columns(lpma.Kind.INSERT, [1], [2])
    named = lpma.Batch.from_columns(lpma.Kind.INSERT, ["a"], ["b"], names=True)
    alone = lpma.Batch.from_columns(lpma.Kind.ADD_VERTEX, ["a"], [0], names=True)
    assert len(lpma.Columns.joined([named, named])) == 2
    for parts in ([plain, named], [named, plain], [], [np.zeros(2)], 5):
        with pytest.raises(lpma.BatchError, match="parts"):
            lpma.Columns.joined(parts)  # type: ignore[arg-type]
    assert len(lpma.Columns.joined([alone, alone])) == 2
