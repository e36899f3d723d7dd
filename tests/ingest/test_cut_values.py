"""What passes along the stream's road is cut, chosen, joined and rebuilt, and carries all of it.

tests/lpma/test_cut_columns.py does the same of a batch by itself; here it is at each place of
`ingest` that makes one of another, or has one among its fields. Each field has a value of its own.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow
import pytest

from ingest import Partition, Record
from ingest.cluster.owners import Ownership
from ingest.cluster.removals import by_edges
from ingest.cluster.routing import Part, Rows, merged
from ingest.formats.replies import DeadLetter, encode_dead_letter
from ingest.pipeline.batching import Batcher, BufferedRows, Producer, updates_of
from ingest.pipeline.record_decoder import ends_of, mapped
from ingest.pipeline.windows import with_expiry
from ingest.results import changes as changes_module
from ingest.results.changes import Changes
from ingest.sources import Polled
from ingest.sources.files.pieces import Piece as FilePiece
from ingest.sources.files.pieces import kept_at_zero, mirrored
from ingest.types import Names, Reply
from lpma import Columns, Kind, Neighbors
from lpma.names import Names as Dictionary
from tests.support.carried import MARKS, SOMES, N, assert_carried, columns_of, values

HERE = Partition("updates", 2)
EVERY = slice(None)
SIZES = [1, 3, N]  # at which a batch is cut

lacking_some = pytest.mark.parametrize("lacking", SOMES.values(), ids=list(SOMES))


def field_by_field(made: Any, given: Any, but: tuple[str, ...]) -> None:
    """The same values in every field, but for these."""
    assert type(made) is type(given)
    names = (
        given._fields if hasattr(given, "_fields") else [f.name for f in dataclasses.fields(given)]
    )
    for name in names:
        if name not in but:
            assert getattr(made, name) is getattr(given, name), name


# -- a batch of another ----------------------------------------------------------------------------


def of_other_owner(columns: Columns) -> Columns:
    """Of the shard that owns all of them: with one partition."""
    return Ownership(1).owned(Partition("updates", 0), columns, None)


def expired(columns: Columns) -> Columns:
    """Its expiries by edge: there is none to expire."""
    nothing = np.empty(0, np.uint64), np.empty(0, np.int64)
    return by_edges(columns, lambda before: nothing, lambda number, ids: ids >= 0)


@lacking_some
def test_names_become_ids(lacking: tuple[str, ...]) -> None:
    given, dictionary = columns_of(lacking), Dictionary()
    names = np.array([f"v{row % 5}" for row in range(N)], object)
    made = mapped(dictionary, given, ends_of(Names(names, names)))
    assert_carried(made, given, EVERY, but=("src", "dst"))


@lacking_some
def test_a_record_is_owned_by_its_partition(lacking: tuple[str, ...]) -> None:
    given = columns_of(lacking)
    assert_carried(of_other_owner(given), given, EVERY)
    given.kind[3] = Kind.REMOVE_VERTEX  # which then says where it was read
    assert_carried(of_other_owner(given), given, EVERY, but=("dst",))


@pytest.mark.parametrize("lacking", [(), ("weight",)])
def test_expiries_become_those_of_edges(lacking: tuple[str, ...]) -> None:
    given = columns_of(lacking)
    given.kind[4] = Kind.EXPIRE
    rows = np.array([0, 1, 2, 3, 4, 4, 5, 6, 7])  # rows 0 and 2 append what is too old by then
    made = expired(given.replace(expiry_expanded=False))
    assert_carried(made, given, rows, but=("src", "dst"))
    assert made.src.tolist() == [100, 101, 102, 103, 100, 102, 105, 106, 107]
    assert made.dst.tolist() == [200, 201, 202, 203, 200, 202, 205, 206, 207]


@pytest.mark.parametrize("lacking", [(), ("weight",)])
def test_an_expiry_is_put_behind_a_batch(lacking: tuple[str, ...]) -> None:
    given = columns_of(lacking)
    made = with_expiry(given, 77)
    assert_carried(made.rows(0, N), given, EVERY)
    assert (made.kind[N], made.time is not None and made.time[N]) == (Kind.EXPIRE, 77)


@lacking_some
def test_queries_are_left_out(lacking: tuple[str, ...]) -> None:
    given = columns_of(lacking)
    assert updates_of(given) is given
    given.kind[2::3] = Kind.DEGREE
    rows = np.flatnonzero(given.kind != Kind.DEGREE)
    assert_carried(updates_of(given.replace()), given, rows)


@lacking_some
@pytest.mark.parametrize("ends", ["ids", "text", "integers and text"])
@pytest.mark.parametrize("make", [kept_at_zero, mirrored, FilePiece])
def test_rows_of_a_file_become_operations(make: Any, ends: str, lacking: tuple[str, ...]) -> None:
    """An edge of weight 0 is two operations, one of an undirected file two edges."""
    given = columns_of(lacking)
    if given.weight is not None:
        given.weight[[1, 4]] = 0
    if ends == "text":
        given.src, given.dst = (
            pyarrow.array([f"n{v}" for v in column.tolist()]) for column in (given.src, given.dst)
        )
    elif ends != "ids":
        given.src, given.dst = given.src.astype(object), given.dst.astype(object)
        given.src[2] = "two"
    if make is FilePiece:
        (made,) = FilePiece(given.rows(2, 5)).values()
        assert isinstance(made, Columns)
        assert_carried(made, given, slice(2, 5))
    elif make is mirrored:
        made = mirrored(given)
        assert_carried(made.take(slice(0, None, 2)), given, EVERY)
        assert_carried(made.take(slice(1, None, 2)), given, EVERY, but=("src", "dst"))
        assert made.src.tolist()[1::2] == values(given.dst)
    elif given.weight is None:
        assert kept_at_zero(given) is given
    else:
        rows = np.array([0, 1, 1, 2, 3, 4, 4, 5, 6, 7])
        made = kept_at_zero(given)
        assert_carried(made, given, rows, but=("weight",))
        assert made.weight is not None
        assert made.weight[[1, 2, 5, 6]].tolist() == [1, -1, 1, -1]


# -- what has a batch among its fields -------------------------------------------------------------


@lacking_some
@pytest.mark.parametrize("at", range(1, N))
def test_what_was_polled_is_split(at: int, lacking: tuple[str, ...]) -> None:
    given = columns_of(lacking)
    whole = Polled(HERE, 50, given, time=9)
    head, tail = whole.split(50 + at)
    field_by_field(head, whole, but=("value",))
    field_by_field(tail, whole, but=("value", "offset"))
    assert tail.offset == 50 + at
    assert_carried(head.value, given, slice(0, at))  # type: ignore[arg-type]
    assert_carried(tail.value, given, slice(at, None))  # type: ignore[arg-type]


@lacking_some
@pytest.mark.parametrize("counts_rows", [False, True])
@pytest.mark.parametrize("at", range(1, N))
def test_a_piece_is_split(at: int, counts_rows: bool, lacking: tuple[str, ...]) -> None:
    given = columns_of(lacking)
    whole = BufferedRows(
        HERE, 50, 9, given, row=4, counts_rows=counts_rows, producer=Producer("shop", 3),
        newest=None if given.time is None else int(given.time.max()),
    )  # fmt: skip
    head, tail = whole.split(at)
    moved = "offset" if counts_rows else "row"
    field_by_field(head, whole, but=("columns", "ends", "newest"))
    field_by_field(tail, whole, but=("columns", moved))
    assert getattr(tail, moved) == getattr(whole, moved) + at
    assert (head.ends, tail.ends) == (False, True)
    assert_carried(head.columns, given, slice(0, at))
    assert_carried(tail.columns, given, slice(at, None))
    if given.time is not None:
        assert head.newest == int((given.time[:at] if counts_rows else given.time).max())


@lacking_some
@pytest.mark.parametrize("names", [None, "ids", "objects"])
def test_rows_of_a_record_are_chosen(names: str | None, lacking: tuple[str, ...]) -> None:
    given, chosen = columns_of(lacking), np.arange(N) % 3 == 1
    ends = None
    if names is not None:
        dtype = object if names == "objects" else np.uint64
        ends = Names(given.src.astype(dtype), given.dst.astype(dtype))
    whole = Record(given, (), "shop", 3, ends)
    made = whole.only(chosen)
    field_by_field(made, whole, but=("batch", "names"))
    assert_carried(made.batch, given, chosen)
    if ends is None:
        assert made.names is None
    else:
        for field in dataclasses.fields(Names):
            assert made.names is not None
            old = getattr(ends, field.name)
            assert values(getattr(made.names, field.name)) == old[chosen].tolist()


@lacking_some
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("pieces", SIZES)
def test_a_stream_is_cut_into_batches(size: int, pieces: int, lacking: tuple[str, ...]) -> None:
    """Pieces of so many rows, batches of so many operations: together they are the stream, marks
    and all, stamped where rows have no time."""
    given = columns_of(lacking)
    batcher = Batcher(size, 0, 10)
    for first in range(0, N, pieces):
        part = given.rows(first, min(first + pieces, N))
        batcher.add([BufferedRows(HERE, 50 + first, 900 + first, part, counts_rows=True)])
    batches = []
    while batcher.operations:
        batches.append(batcher.take(size, 10).columns)
        assert len(batches[-1]) <= size
    stamped = given.time
    if stamped is None:
        stamped = np.array([900 + row // pieces * pieces for row in range(N)])
    whole = Columns.joined(batches)
    assert_carried(whole, given.replace(time=stamped), EVERY)


@pytest.mark.parametrize("mark", MARKS)
def test_a_batch_of_a_stream_has_no_mark_that_its_pieces_lack(mark: str) -> None:
    batcher = Batcher(3, 0, 10)
    batcher.add([BufferedRows(HERE, 50, 900, columns_of((), **{mark: False}), counts_rows=True)])
    made = batcher.take(3, 10).columns
    assert {name: getattr(made, name) for name in MARKS} == {**MARKS, mark: False}


@lacking_some
@pytest.mark.parametrize("source", [None, "shop"])
def test_records_that_are_written_together_are_joined(
    source: str | None, lacking: tuple[str, ...]
) -> None:
    given = columns_of(lacking)
    parts = []
    for first in range(0, N, 3):
        batch = given.rows(first, min(first + 3, N))
        seq = None if source is None else first
        parts.append(
            Rows(batch, batch.src.astype(np.uint64), batch.dst.astype(object), source, seq)
        )
    found = list(merged(parts))
    if source is not None:
        assert found == parts
        return
    (whole,) = found
    assert_carried(whole.batch, given, EVERY)
    assert (whole.src.tolist(), whole.dst.tolist()) == (given.src.tolist(), given.dst.tolist())
    assert (whole.producer, whole.seq) == (None, None)


@pytest.mark.parametrize("absent", [(), ("kind",), ("weight",), ("time",)])
def test_rows_of_a_partition_are_cut(absent: tuple[str, ...]) -> None:
    c = columns_of()
    whole = Part(7, c.src, c.dst, c.kind, c.weight, c.time)
    nothing: dict[str, Any] = dict.fromkeys(absent)
    whole = whole._replace(**nothing)
    made = whole.rows(2, 5)
    assert made.number == 7
    for name in Part._fields[1:]:
        old = getattr(whole, name)
        assert values(getattr(made, name)) == (None if old is None else old[2:5].tolist()), name


# -- what leaves -----------------------------------------------------------------------------------


@lacking_some
def test_a_reply_is_cut(lacking: tuple[str, ...]) -> None:
    given = columns_of(lacking)
    answer = Neighbors(np.array([0, N], np.int64), given.src, given.weight, given.time)
    whole = Reply("q", Kind.SUCCESSORS, 4, 9, answer, epoch=3, retry_after_ms=5, message="m")
    for made, rows in ((whole.first_rows(3), 3), (whole.within(0), 1)):
        field_by_field(made, whole, but=("answer", "more"))
        assert made.more
        assert isinstance(made.answer, Neighbors)
        assert made.answer.indptr.tolist() == [0, rows]
        for name in ("ids", "weights", "times"):
            old = getattr(answer, name)
            new = values(getattr(made.answer, name))
            assert new == (None if old is None else old[:rows].tolist())
    assert whole.first_rows(N) is whole


def test_a_dead_letter_is_cut_to_what_a_topic_takes() -> None:
    whole = DeadLetter("updates", 2, 50, "because of " + "this " * 20, 3000, bytes(3000), b"d" * 32)
    for limit in (3500, 1000, 250, 200):
        made = whole.within(limit)
        field_by_field(made, whole, but=("value", "reason"))
        assert whole.value.startswith(made.value)
        assert whole.reason.startswith(made.reason)
        assert len(encode_dead_letter(made)) <= limit


@pytest.mark.parametrize("named", [False, True])
def test_results_are_cut_into_parts(named: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "MAX_RESULT_ROWS", 3)
    dictionary = Dictionary()
    if named:
        from lpma.names import column_of

        dictionary.assign(column_of([f"v{row}" for row in range(N)], "names"))
    new = np.arange(1, N + 1, dtype=np.int32)
    found = Changes([], dictionary if named else None).to("run", 4, 9, {"core": new})
    of_vertices = [result for result in found if result.vertex is not None]
    assert [result.rows for result in of_vertices] == [3, 3, 2]
    assert [result.part for result in found] == list(range(len(found)))
    for result in found:
        assert (result.run, result.version, result.time) == ("run", 4, 9)
        assert result.parts == len(found)
    parts: list[Any] = [(r.vertex, r.old, r.new) for r in of_vertices]
    rows = [row for part in parts for row in zip(*(c.tolist() for c in part), strict=True)]
    assert rows == [(f"v{row}" if named else row, 0, row + 1) for row in range(N)]
