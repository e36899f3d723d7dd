"""Rows read many at once: what the compiled reader takes is what the codec says, to the bit."""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
from ingest import Partition
from ingest.formats.fast_rows import MIN_RUN, coalesce_rows
from ingest.sources import Polled
from lpma import Kind
from lpma.batch.columns import Columns
from tests.conftest import soak

PLACE = Partition("t", 0)


def polled(values: list[Any], first: int = 0) -> list[Polled]:
    return [Polled(PLACE, first + i, value) for i, value in enumerate(values)]


def one_by_one(records: list[Polled]) -> list[tuple[Any, ...]]:
    """Each record's place and row, by the codec; the record itself where it has another form."""
    return [row for record in records for row in rows_of(record)]


def rows_of(record: Polled) -> list[tuple[Any, ...]]:
    value = record.value
    if isinstance(value, bytes):
        try:
            decoded = ingest.decode_record(value)
        except ingest.RecordError:
            return [(record.partition, record.offset, value)]
        if decoded.queries or decoded.producer is not None or len(decoded.batch) != 1:
            return [(record.partition, record.offset, value)]
        value = decoded.batch
    if not isinstance(value, Columns):
        return [(record.partition, record.offset, value)]
    weight = np.ones(len(value)) if value.weight is None else value.weight
    times = [None] * len(value) if value.time is None else value.time.tolist()
    columns = (value.kind.tolist(), value.src.tolist(), value.dst.tolist(), weight.tolist(), times)
    return [
        (record.partition, record.offset + i, *row)
        for i, row in enumerate(zip(*columns, strict=True))
    ]


numbers = st.one_of(
    st.integers(-(2**63), 2**64 - 1), st.integers(0, 300), st.integers(2**32 - 3, 2**32 + 1)
)
weights = st.one_of(
    st.floats(width=64), st.floats(-1e30, 1e30), st.floats(width=32), numbers, st.none()
)
fields = {
    "src": st.integers(0, 2**32 - 2) | numbers | st.booleans(),
    "dst": st.integers(0, 2**32 - 2) | numbers | st.none(),
}
optional = {
    "weight": weights,
    "time": numbers | st.none() | st.floats(),
    "kind": st.sampled_from(["append", "delete", "add_vertex", "remove_vertex", "edge", 0]),
    "source": st.just("s"),
    "seq": st.integers(0, 9),
    "more": st.just(1),
}


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """Rows good and bad, in all of msgpack's ways to write a number."""
    if draw(st.booleans()):
        content: Any = draw(st.fixed_dictionaries(fields, optional=optional))
        content = dict(draw(st.permutations(list(content.items()))))
    else:
        content = draw(st.lists(st.one_of(*fields.values(), weights), max_size=5))
    data: bytes
    try:
        data = msgpack.packb(content, use_single_float=draw(st.booleans()))
    except OverflowError:  # a float that has no single form
        data = msgpack.packb(content)
    form = draw(st.integers(0, 9))
    if form == 0:
        at = draw(st.integers(0, len(data) - 1))
        return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
    if form == 1:
        return data[: draw(st.integers(0, len(data)))]
    if form == 2:
        return data + b"\xc0"
    return data


def good_row(rng: np.random.Generator, timed: bool) -> bytes:
    u, v = (int(n) for n in rng.integers(0, 2**32 - 1, 2))
    time = int(rng.integers(-(2**62), 2**62)) if timed else None
    return ingest.encode_row(u, v, float(rng.normal()), time)


@pytest.mark.soak
@given(st.lists(records(), min_size=1, max_size=6), st.integers(0, 2**32), st.booleans())
@settings(max_examples=soak(60, 20_000))
def test_it_says_what_the_codec_says(some: list[bytes], seed: int, timed: bool) -> None:
    """Each record among enough good ones for a run."""
    rng = np.random.default_rng(seed)
    values = [good_row(rng, timed) for _ in range(MIN_RUN)]
    for record in some:
        values += [record, *(good_row(rng, timed) for _ in range(MIN_RUN))]
    given = polled(values, int(rng.integers(0, 10**6)))
    found = coalesce_rows(given)
    assert repr(one_by_one(found)) == repr(one_by_one(given))  # by repr: NaN is NaN
    assert any(isinstance(record.value, Columns) for record in found)


def test_runs_end_at_gaps_and_at_partitions_and_where_times_begin() -> None:
    def rows(count: int, time: int | None = None) -> list[bytes]:
        return [ingest.encode_row(1, n, time=time) for n in range(count)]

    other = Partition("t", 1)
    given = polled(rows(10), 5) + polled(rows(10), 20) + polled(rows(10, 7), 30)
    given += [Polled(other, 40 + i, value) for i, value in enumerate(rows(10))]
    found = coalesce_rows(given)
    assert [(r.partition.number, r.offset, r.last) for r in found] == [
        (0, 5, 14), (0, 20, 29), (0, 30, 39), (1, 40, 49)
    ]  # fmt: skip
    assert one_by_one(found) == one_by_one(given)


def test_few_rows_and_other_records_stay_as_they_are() -> None:
    row, query = ingest.encode_row(1, 2), ingest.encode_query("q", Kind.DEGREE, 1)
    columns = ingest.encode_updates(range(100), range(100))
    few = [row] * (MIN_RUN - 1)
    for values in (few, [query] * 20, [columns] * 20, [row, query] * 20, [b""] * 9):
        given = polled(values)
        assert coalesce_rows(given) == given


@pytest.mark.soak
def test_no_bytes_hurt_it() -> None:
    """Rows with bytes changed anywhere: never a fault, never another row than the codec's."""
    rng = np.random.default_rng(7)
    for _ in range(soak(20, 300)):
        values = []
        for _ in range(500):
            data = bytearray(good_row(rng, bool(rng.integers(2))))
            for _ in range(int(rng.integers(0, 4))):
                data[int(rng.integers(len(data)))] = int(rng.integers(256))
            values.append(bytes(data[: int(rng.integers(1, len(data) + 40))]))
        given = polled(values)
        assert repr(one_by_one(coalesce_rows(given))) == repr(one_by_one(given))
