"""Where batches are cut, and which offsets they end at."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest import Partition
from ingest.pipeline.batching import Batcher, BufferedRows, Producer, Refusal
from ingest.types import Position, Query
from lpma.batch.columns import Columns, Kind

A, B = Partition("a", 0), Partition("b", 1)
BIG = 10**9


def columns(start: int, count: int, weight: float | None = None, timed: bool = False) -> Columns:
    ids = np.arange(start, start + count, dtype=np.uint32)
    return Columns.validated(
        0,
        ids,
        ids + 1,
        None if weight is None else np.full(count, weight, np.float32),
        ids.astype(np.int64) * 10 if timed else None,
    )


def test_a_batch_closes_by_size_queries_or_age() -> None:
    b = Batcher(size=5, interval_ms=100, max_queries=2)
    assert b.due() is None
    assert not b.closes(now=BIG, limit=BIG)
    b.add(
        [BufferedRows(A, 0, stamp=1000)]
    )  # a refused record: no operation, so nothing to wait for
    assert b.due() is None
    b.add([BufferedRows(A, 1, 1010, columns(0, 2))])
    b.add([BufferedRows(A, 2, 1050, columns(2, 2))])
    assert b.due() == 1110
    assert not b.closes(1109, BIG)
    assert b.closes(1110, BIG)
    assert b.closes(1050, limit=4)
    b.add([BufferedRows(A, 3, 1060, query=Query("q", Kind.DEGREE, 1))])
    assert b.closes(1060, BIG), "five operations"
    b = Batcher(5, 100, max_queries=1)
    b.add([BufferedRows(A, 0, 0, query=Query("q", Kind.DEGREE, 1))])
    assert b.closes(0, BIG), "one query"


def test_stamps_fill_in_for_missing_times_and_weights_for_missing_weights() -> None:
    b = Batcher(100, 0, 10)
    b.add([BufferedRows(A, 0, 5, columns(0, 1))])
    b.add([BufferedRows(A, 1, 6, columns(1, 1, weight=2.5, timed=True))])
    b.add([BufferedRows(A, 2, 7, query=Query("q", Kind.EDGE, 8, 9))])
    batch = b.take(100, 10)
    assert batch.columns.kind.tolist() == [0, 0, Kind.EDGE]
    assert batch.columns.src.tolist() == [0, 1, 8]
    assert batch.columns.dst.tolist() == [1, 2, 9]
    assert batch.columns.time is not None
    assert batch.columns.weight is not None
    assert batch.columns.time.tolist() == [5, 10, 7]
    assert batch.columns.weight.tolist() == [1.0, 2.5, 1.0]
    assert batch.columns.weight.dtype == np.float32
    assert batch.stamp == 7


def test_one_whole_record_is_not_copied() -> None:
    b = Batcher(100, 0, 10)
    whole = columns(0, 50, weight=1.0, timed=True)
    b.add([BufferedRows(A, 0, 5, whole)])
    batch = b.take(100, 10).columns
    for name in ("kind", "src", "dst", "weight", "time"):
        assert np.shares_memory(getattr(batch, name), getattr(whole, name))


def test_a_record_split_between_batches_names_its_rows() -> None:
    b = Batcher(4, 0, 10)
    b.add([BufferedRows(A, 7, 5, columns(0, 10), producer=Producer("p", 3))])
    positions, producers = [], []
    while b.operations:
        batch = b.take(4, 10)
        positions.append(batch.positions[A])
        producers.append(batch.producers)
    assert positions == [Position(7, 4), Position(7, 8), Position(8, 0)]
    assert producers == [{}, {}, {(A, "p"): 3}], "a record counts as seen once all of it is applied"


def test_rows_with_offsets_of_their_own_need_no_row() -> None:
    b = Batcher(4, 0, 10)
    b.add([BufferedRows(A, 100, 5, columns(0, 10), counts_rows=True)])
    assert [b.take(4, 10).positions[A] for _ in range(3)] == [
        Position(104),
        Position(108),
        Position(110),
    ]


def test_a_refused_query_counts_and_is_not_asked() -> None:
    b = Batcher(10, 0, 10)
    why = Refusal("hops", "too many")
    b.add([BufferedRows(A, 0, 1, query=Query("q", Kind.HOPS, 1, 9), refusal=why)])
    b.add([BufferedRows(A, 1, 2, query=Query("r", Kind.DEGREE, 1))])
    batch = b.take(10, 10)
    assert batch.operations == 2
    assert batch.columns.kind.tolist() == [Kind.DEGREE]
    assert [(asked.query.id, asked.stamp, asked.refusal) for asked in batch.queries] == [
        ("q", 1, why),
        ("r", 2, None),
    ]


def test_stamps_must_not_fall() -> None:
    b = Batcher(10, 0, 10)
    b.add([BufferedRows(A, 0, 5)])
    with pytest.raises(AssertionError):
        b.add([BufferedRows(A, 1, 4)])


sizes = st.lists(st.tuples(st.sampled_from([A, B]), st.integers(0, 9), st.booleans()), max_size=30)


@given(sizes, st.lists(st.integers(1, 12), min_size=1), st.integers(1, 3))
def test_any_cuts_keep_every_operation_in_order(
    records: list[tuple[Partition, int, bool]], cuts: list[int], max_queries: int
) -> None:
    b = Batcher(1000, 0, max_queries)
    offsets = {A: 0, B: 0}
    expected: list[int] = []
    ends: list[tuple[Partition, Position]] = []  # after each operation
    for stamp, (partition, size, is_query) in enumerate(records):
        offset = offsets[partition]
        offsets[partition] += 1
        first = len(expected)
        if is_query:
            b.add([BufferedRows(partition, offset, stamp, query=Query("q", Kind.DEGREE, first))])
            expected.append(first)
            ends.append((partition, Position(offset + 1)))
            continue
        b.add([BufferedRows(partition, offset, stamp, columns(first, size))])
        expected += range(first, first + size)
        ends += [(partition, Position(offset, row)) for row in range(1, size)]
        ends += [(partition, Position(offset + 1))] * (size > 0)
    got: list[int] = []
    positions: dict[Partition, Position] = {}
    turn = 0
    while b.pieces:
        limit = cuts[turn % len(cuts)]
        turn += 1
        batch = b.take(limit, max_queries)
        assert batch.operations == len(batch.columns) <= limit
        assert batch.columns.num_queries == len(batch.queries) <= max_queries
        got += batch.columns.src.tolist()
        positions |= batch.positions
        expected_positions = dict(ends[: len(got)])
        for partition, position in expected_positions.items():
            # Records without operations behind the last one move the offset on.
            assert positions[partition] >= position
            assert positions[partition].row in (0, position.row)
    assert got == expected
    assert positions == {p: Position(n) for p, n in offsets.items() if n}
    assert (b.operations, b.queries) == (0, 0)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=12), st.integers(1, 4))
def test_a_change_of_a_table_is_never_cut(records: list[tuple[int, bool]], size: int) -> None:
    """A batch has more than its size only where a single change has."""
    b = Batcher(size, 0, 10)
    b.add(
        BufferedRows(A, offset, 0, columns(10 * offset, count), is_change=is_change, changes=1)
        for offset, (count, is_change) in enumerate(records)
    )
    batches = []
    while b.pieces:
        batches.append(b.take(size, 10))
    assert [row for batch in batches for row in batch.columns.src.tolist()] == [
        10 * offset + row for offset, (count, _) in enumerate(records) for row in range(count)
    ]
    assert sum(batch.changes for batch in batches) >= len(records)
    for batch in batches:
        place = batch.positions[A]
        assert place.row == 0 or not records[place.offset][1]
        with_rows = [piece for piece in batch.pieces if len(piece)]
        assert batch.operations <= size or len(with_rows) == 1
