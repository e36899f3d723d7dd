"""The graphs of all partitions, joined together, are the one graph of the stream: for any stream,
any number of partitions, directed or not, by ids or by names."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest
import lpma
from ingest import PartitionedSink
from ingest.cluster import routing as routing_module
from ingest.cluster.routing import Direction, Part, split
from ingest.cluster.topics import in_topic
from ingest.types import Names
from lpma import Columns, Kind
from lpma.batch.columns import OF_EDGES
from lpma.sharding import owners_of
from tests.conftest import soak
from tests.support.shards import MemorySink, applied, apply, content, joined, turned_round

IDS = st.integers(0, 9)
TEXT = st.sampled_from(["ann", "bob", "5", "żółć", "c" * 40])
NAMES = st.one_of(st.integers(-3, 5), st.sampled_from([2**40, 2**64 - 1]), TEXT)
KINDS = st.sampled_from([0, 0, 0, 0, 0, 1, 2, 3, 11, 11])


@st.composite
def streams(draw: Any, vertices: Any) -> list[tuple[Any, ...]]:
    """Writes, each of rows (kind, src, dst, weight, time); with or without the last two."""
    writes = []
    for _ in range(draw(st.integers(1, 4))):
        weighted, timed = draw(st.booleans()), draw(st.booleans())
        rows = draw(
            st.lists(
                st.tuples(
                    KINDS, vertices, vertices,
                    st.integers(-4, 8).map(lambda w: w / 4), st.integers(-5, 5),
                ),
                max_size=24,
            )
        )  # fmt: skip
        kind, src, dst, weight, time = map(list, zip(*rows, strict=True)) if rows else [[]] * 5
        writes.append((kind, src, dst, weight if weighted else None, time if timed else None))
    return writes


def named(values: list[Any]) -> Any:
    column = np.empty(len(values), object)
    column[:] = values
    return column


def records_of(write: tuple[Any, ...], names: bool) -> tuple[Columns, Names | None]:
    kind, src, dst, weight, time = write
    if not names:
        return Columns.validated(kind, src, dst, weight, time), None
    zeros = np.zeros(len(kind), np.uint32)
    return Columns.validated(kind, zeros, zeros, weight, time), Names(named(src), named(dst))


def graph_of(names: bool, directed: bool = True) -> lpma.Graph:
    return lpma.Graph(device="cpu", names=names, directed=directed, weight_dtype="float64")


def same_but_for_stamps(found: Any, expected: Any, writes: list[Any]) -> bool:
    """Equal; but for times where some rows had none, which depend on when they were written."""
    if all(time is not None for *_, time in writes):
        return bool(found == expected)
    edges, vertices = found
    without = {key: weight for key, (weight, _) in edges.items()}
    return without == {key: w for key, (w, _) in expected[0].items()} and vertices == expected[1]


@pytest.mark.soak
@pytest.mark.parametrize("names", [False, True])
@pytest.mark.parametrize("directed", [True, False])
@given(data=st.data(), partitions=st.integers(1, 6), by_source=st.booleans())
@settings(max_examples=soak(40, 1000), deadline=None)
def test_the_partitions_together_are_the_graph(
    names: bool, directed: bool, data: st.DataObject, partitions: int, by_source: bool
) -> None:
    writes = data.draw(streams(NAMES if names else IDS))
    log = MemorySink()
    ingest.create_sharded(log, "updates", partitions, predecessors=True)
    whole = graph_of(names, directed)
    with PartitionedSink(
        log, directed=directed, predecessors=True, names=names,
        producer="shop" if by_source else None,
    ) as sink:  # fmt: skip
        for write in writes:
            columns, ends = records_of(write, names)
            sink.write(columns, ends)
            apply(whole, ingest.types.Record(columns, names=ends))
    for topic in ("updates", in_topic("updates")) if directed else ("updates",):
        shards = [content(applied(graph_of(names), part)) for part in log.of(topic)]
        for number, (edges, _) in enumerate(shards):
            assert all(owners_of([u], partitions)[0] == number for u, _ in edges)
        found = joined(shards)
        found = turned_round(found) if topic != "updates" else found
        assert same_but_for_stamps(found, content(whole), writes)
        if topic != "updates" or not directed:
            one_time = {(u, v): t for (u, v), (_, t) in found[0].items()}
            if not directed:
                assert all(one_time[v, u] == t for (u, v), t in one_time.items()), "both alike"
    if not directed:
        assert not any(log.of(in_topic("updates"))), "a symmetric graph needs no second topic"


def test_predecessors_and_successors_have_the_same_times() -> None:
    """Rows without a time are stamped once, not by each shard."""
    log = MemorySink(updates=2, updates_in=2)
    with PartitionedSink(log, predecessors=True) as sink:
        sink.write(lpma.Batch.from_columns(Kind.INSERT, [1, 2, 3], [2, 3, 4]))
    out, into = (
        joined(content(applied(graph_of(False), part)) for part in log.of(topic))
        for topic in ("updates", "updates.in")
    )
    assert out == turned_round(into)


@pytest.mark.soak
@pytest.mark.parametrize("direction", list(Direction))
@given(
    partitions=st.sampled_from([1, 2, 7, 255, 256, 300]),
    rows=st.lists(st.tuples(KINDS, IDS, IDS), max_size=40),
)
@settings(max_examples=soak(60, 1000), deadline=None)
def test_rows_go_where_the_owners_are_in_their_order(
    direction: Direction, partitions: int, rows: list[tuple[int, int, int]]
) -> None:
    """Against one row after the other (splitting 1 to 3)."""
    kind, src, dst = ([row[i] for row in rows] for i in range(3))
    places = np.arange(len(rows))  # as times, so that each row is known again
    columns = Columns.validated(kind, src, dst, places * 2.0, places)
    expected: dict[int, list[tuple[int, ...]]] = {}

    def put(vertex: int, row: tuple[int, ...]) -> None:
        expected.setdefault(int(owners_of(vertex, partitions)[0]), []).append(row)

    for place, (k, u, v) in enumerate(rows):
        if k == Kind.REMOVE_VERTEX:
            for number in range(partitions):
                expected.setdefault(number, []).append((k, u, place))
        elif k == Kind.ADD_VERTEX:
            put(u, (k, u, place))
        else:
            if direction is not Direction.IN:
                put(u, (k, u, v, place))
            if direction is Direction.IN or (direction is Direction.BOTH and u != v):
                put(v, (k, v, u, place))
    found = {}
    for part in split(columns, columns.src, columns.dst, partitions, direction):
        found[part.number] = list(rows_in(part))
    assert found == expected
    assert list(found) == sorted(found)


def rows_in(part: Part) -> Iterator[tuple[int, ...]]:
    assert part.weight is not None
    assert part.time is not None
    kinds = np.zeros(len(part.src), np.uint8) if part.kind is None else part.kind
    assert (part.weight == part.time * 2).all(), "a row's fields stay together"
    for k, u, v, place in zip(kinds, part.src, part.dst, part.time, strict=True):
        ends = (int(u), int(v)) if k in OF_EDGES else (int(u),)
        yield (int(k), *ends, int(place))


def test_parts_are_cut_into_records_that_brokers_take() -> None:
    rows = 200_000
    ids = np.arange(rows, dtype=np.uint32)
    part = Part(0, ids, ids, np.ones(rows, np.uint8), ids / 2, ids.astype(np.int64))
    values = routing_module.encoded(part, names=False, producer="shop", seq=7)
    assert max(map(len, values)) < 600_000
    records = [ingest.decode_record(value) for value in values]
    assert [record.seq for record in records] == list(range(7, 7 + len(values)))
    for name in ("src", "dst", "kind", "weight", "time"):
        column = np.concatenate([getattr(record.batch, name) for record in records])
        assert np.array_equal(column, getattr(part, name))


@pytest.mark.parametrize("long", [1, 100, 512])
def test_records_of_text_are_cut_by_bytes_and_rows(
    long: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routing_module, "PIECE_BYTES", 8192)
    monkeypatch.setattr(routing_module, "MAX_TEXT_ROWS", 50)
    src = named([f"{i:d}".rjust(long, "ż")[:long] for i in range(300)])
    part = Part(0, src, src, None, None, None)
    values = routing_module.encoded(part, names=True)
    decoded = [ingest.decode_record(value, names=True) for value in values]
    names = [record.names.src.tolist() for record in decoded if record.names]
    assert list(chain.from_iterable(names)) == src.tolist()
    assert max(map(len, names)) <= 50
    assert max(map(len, values)) <= 8300
