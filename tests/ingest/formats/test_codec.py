"""Records and replies: what goes in comes out, and nothing else gets in."""

from __future__ import annotations

import hashlib
import tracemalloc
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ingest
from ingest import RecordError, Reply
from ingest.formats.records import MAX_COLUMNAR_BYTES, MAX_ROW_BYTES
from ingest.formats.replies import MAX_REPLY_BYTES
from lpma import Edges, Kind, Neighbors
from tests.support.fuzzing import replies

vertices = st.integers(0, 2**32 - 2)
weights = st.floats(-1e30, 1e30, allow_nan=False)
times = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=16)
kinds = st.sampled_from([Kind.INSERT, Kind.DELETE, Kind.ADD_VERTEX, Kind.REMOVE_VERTEX, Kind.SET])
updates = st.lists(st.tuples(vertices, vertices, weights, times, kinds), max_size=20)


def packed(**fields: Any) -> bytes:
    data: bytes = msgpack.packb(fields)
    return data


def columns_of(rows: int = 2, **fields: Any) -> bytes:
    src = np.arange(rows, dtype="<u4").tobytes()
    return packed(**({"rows": rows, "src": src, "dst": src} | fields))


@given(updates, st.booleans(), st.booleans(), st.booleans(), st.sampled_from(["f4", "f8"]))
def test_columns_come_back(
    ops: list[tuple[int, int, float, int, int]], weighted: bool, timed: bool, kinds: bool, f: str
) -> None:
    table = np.array(ops, dtype=[("u", "u4"), ("v", "u4"), ("w", f), ("t", "i8"), ("k", "u1")])
    data = ingest.encode_updates(
        table["u"],
        table["v"],
        table["w"] if weighted else None,
        table["t"] if timed else None,
        table["k"] if kinds else None,
        producer="a",
        seq=7,
    )
    record = ingest.decode_record(data)
    assert (record.producer, record.seq, record.queries) == ("a", 7, ())
    batch = record.batch
    np.testing.assert_array_equal(batch.src, table["u"])
    np.testing.assert_array_equal(batch.dst, table["v"])
    np.testing.assert_array_equal(batch.kind, table["k"] if kinds else 0)
    assert [c.dtype.str[1:] for c in (batch.src, batch.dst, batch.kind)] == ["u4", "u4", "u1"]
    for column, field, given_ in ((batch.weight, "w", weighted), (batch.time, "t", timed)):
        if given_:
            assert column is not None
            np.testing.assert_array_equal(column, table[field])
            assert len(ops) == 0 or column.dtype == table[field].dtype
        else:
            assert column is None
    assert len(ingest.decode(data)) == len(ops)


@given(vertices, vertices, weights, times)
def test_rows_come_back(u: int, v: int, w: float, t: int) -> None:
    for data in (ingest.encode_row(u, v, w, t), msgpack.packb([u, v, w, t])):
        batch = ingest.decode(data)
        assert [*batch.kind, *batch.src, *batch.dst] == [Kind.INSERT, u, v]
        assert batch.weight is not None
        assert batch.time is not None
        assert [*batch.weight, *batch.time] == [w, t]
    batch = ingest.decode(ingest.encode_row(u, kind=Kind.REMOVE_VERTEX))
    assert [*batch.kind, *batch.src] == [Kind.REMOVE_VERTEX, u]
    assert (batch.weight, batch.time) == (None, None)
    batch = ingest.decode(msgpack.packb([u, v, None, t]))
    assert batch.weight is None
    assert batch.time is not None


@given(texts, vertices, vertices, st.integers(1, 255), st.integers(0, 2**63 - 1))
def test_queries_come_back(id: str, u: int, v: int, steps: int, deadline: int) -> None:
    if len(id.encode()) > 64:
        with pytest.raises(RecordError):
            ingest.encode_query(id, Kind.DEGREE, u)
        return
    data = ingest.encode_query(id, Kind.EDGE, u, v, reply="r.1", deadline=deadline)
    record = ingest.decode_record(data)
    assert record.queries == (ingest.types.Query(id, Kind.EDGE, u, v, "r.1", deadline),)
    assert len(record.batch) == 0
    hops = ingest.decode_record(ingest.encode_query(id, Kind.HOPS, u, steps=steps)).queries[0]
    assert (hops.kind, hops.dst, hops.reply, hops.deadline) == (Kind.HOPS, steps, None, None)


GOOD = columns_of()
BAD = {
    "nothing": b"",
    "text": packed()[:0] + msgpack.packb("x"),
    "a number": msgpack.packb(1),
    "more behind": GOOD + b"\x00",
    "cut": GOOD[:-1],
    "an empty map": packed(),
    "an unknown field": columns_of(color=1),
    "a bytes key": msgpack.packb({b"src": 1, "dst": 2}),
    "an integer key": msgpack.packb({1: 1}),
    "a nested map": packed(src={}, dst=1),
    "a nested array": msgpack.packb([1, [2]]),
    "an extension": msgpack.packb({"src": msgpack.ExtType(5, b"")}),
    "a timestamp": msgpack.packb({"src": msgpack.Timestamp(0)}),
    "too many fields": packed(**{f"f{i}": i for i in range(17)}),
    "too long an array": msgpack.packb([0] * 17),
    "a short array": msgpack.packb([1]),
    "a long array": msgpack.packb([1, 2, 3, 4, 5]),
    "a deep array": b"\x91" * 5000 + b"\x90",
    "invalid UTF-8": b"\x81\xa1\xff\x01",
    "src alone": packed(src=1),
    "a boolean vertex": packed(src=True, dst=1),
    "half a vertex": packed(src=1.5, dst=1),
    "a float past 2^53": packed(src=1, dst=1, time=2.0**53 + 2),
    "a negative vertex": packed(src=-1, dst=1),
    "the marker vertex": packed(src=1, dst=2**32 - 1),
    "a boolean weight": packed(src=1, dst=1, weight=True),
    "a NaN weight": packed(src=1, dst=1, weight=float("nan")),
    "an infinite weight": packed(src=1, dst=1, weight=float("-inf")),
    "a huge weight": packed(src=1, dst=1, weight=1.1e30),
    "a time past 64 bits": packed(src=1, dst=1, time=2**63),
    "half a time": packed(src=1, dst=1, time=1.5),
    "an unknown kind": packed(src=1, dst=1, kind="merge"),
    "a kind of a query": packed(src=1, dst=1, kind="edge"),
    "a kind by number": packed(src=1, dst=1, kind=0),
    "a vertex with an edge": packed(src=1, dst=1, kind="add_vertex"),
    "seq alone": packed(src=1, dst=1, seq=1),
    "a negative seq": packed(src=1, dst=1, source="a", seq=-1),
    "an empty source": packed(src=1, dst=1, source="", seq=1),
    "a long source": packed(src=1, dst=1, source="a" * 65, seq=1),
    "wrong rows": columns_of().replace(b"\xa4rows\x02", b"\xa4rows\x03"),
    "negative rows": columns_of(rows=2).replace(b"\xa4rows\x02", b"\xa4rows\xff"),
    "half a value": columns_of(dst=b"\x00" * 7),
    "columns of lists": columns_of(dst=[0, 1]),
    "unequal columns": columns_of(time=b"\x00" * 8),
    "a weight column of no float": columns_of(weight=b"\x00" * 6),
    "NaN in a column": columns_of(weight=np.array([1, np.nan], "<f4").tobytes()),
    "NaN beside a deletion": columns_of(
        weight=np.array([1, np.nan], "<f8").tobytes(), kind=bytes([0, 1])
    ),
    "the marker in a column": columns_of(dst=b"\xff" * 8),
    "an untimed expiry in a column": columns_of(kind=bytes([0, 4])),
    **{f"query {kind} in a column": columns_of(kind=bytes([11, kind])) for kind in range(5, 11)},
    "a kind past the last": columns_of(kind=bytes([0, 12])),
    "a kind past all": columns_of(kind=bytes([0, 99])),
    "an unknown query": packed(query="path", id="a", src=1),
    "a query for an update": packed(query="append", id="a", src=1, dst=1),
    "a query without id": packed(query="degree", src=1),
    "a query with an empty id": packed(query="degree", id="", src=1),
    "an edge without dst": packed(query="edge", id="a", src=1),
    "a degree with dst": packed(query="degree", id="a", src=1, dst=1),
    "hops without steps": packed(query="hops", id="a", src=1),
    "hops with too many steps": packed(query="hops", id="a", src=1, steps=256),
    "steps elsewhere": packed(query="degree", id="a", src=1, steps=1),
    "a bad topic": packed(query="degree", id="a", src=1, reply="a/b"),
    "a float deadline": packed(query="degree", id="a", src=1, deadline=1.5),
    "a query with a weight": packed(query="degree", id="a", src=1, weight=1.0),
    "a row past 1 MiB": packed(src=b"\x00" * MAX_ROW_BYTES, dst=1),
    "columns past 8 MiB": columns_of(weight=b"\x00" * MAX_COLUMNAR_BYTES),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_records_are_refused(name: str) -> None:
    with pytest.raises(RecordError):
        ingest.decode_record(BAD[name])


def test_whole_floats_are_integers_and_the_last_of_a_field_counts() -> None:
    batch = ingest.decode_record(packed(src=1.0, dst=2, time=3.0)).batch
    assert batch.time is not None
    assert (batch.src[0], batch.dst[0], batch.time[0]) == (1, 2, 3)
    twice = b"\x83\xa3src\x01\xa3dst\x02\xa3src\x05"
    assert ingest.decode_record(twice).batch.src[0] == 5


@pytest.mark.parametrize("value", [None, "text", 3, [1, 2], np.zeros(3)])
def test_only_bytes_are_records(value: Any) -> None:
    with pytest.raises(RecordError):
        ingest.decode_record(value)


def test_a_large_record_is_columnar_and_begins_with_its_rows() -> None:
    rows = 200_000
    column = np.zeros(rows, np.uint32)
    data = ingest.encode_updates(column, column)
    assert MAX_ROW_BYTES < len(data) < MAX_COLUMNAR_BYTES
    assert len(ingest.decode(data)) == rows
    with pytest.raises(RecordError, match="at most"):
        ingest.decode(packed(src=column.tobytes(), dst=column.tobytes(), rows=rows))
    with pytest.raises(RecordError, match="cut it"):
        ingest.encode_updates(np.zeros(1 << 21, int), np.zeros(1 << 21, int))


@pytest.mark.parametrize(
    "arguments",
    [([1], [2, 3]), ([2**32 - 1], [0]), ([1.5], [0]), ([1], [0], [np.inf]), ([1], [0], 1.0, [0.5]),
     ([1], [1], None, None, [4]), ([1], [1], [float("nan")], None, [1])],
)  # fmt: skip
def test_what_cannot_be_decoded_is_not_encoded(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(RecordError):
        ingest.encode_updates(*arguments)


def test_rows_and_queries_that_cannot_be_decoded_are_not_encoded() -> None:
    for bad in (lambda: ingest.encode_row(1), lambda: ingest.encode_row(1, 2, float("nan")),
                lambda: ingest.encode_row(2**64, 1), lambda: ingest.encode_row(2**70, 1),
                lambda: ingest.encode_row(1, 2, producer="a"),
                lambda: ingest.encode_query("a", Kind.EDGE, 1),
                lambda: ingest.encode_query("a", Kind.INSERT, 1, 2),
                lambda: ingest.encode_query("a", Kind.DEGREE, 1, reply="?")):  # fmt: skip
        with pytest.raises(RecordError):
            bad()


@pytest.mark.parametrize("kind", ["delete", 99, None, []])
def test_a_kind_that_is_none_is_told(kind: Any) -> None:
    with pytest.raises(RecordError, match=r"one of lpma\.Kind"):
        ingest.encode_row(1, 2, kind=kind)
    with pytest.raises(RecordError, match=r"one of lpma\.Kind"):
        ingest.encode_query("q", kind, 1)


def test_nested_empties_cost_no_more_than_their_bytes() -> None:
    def nested(depth: int) -> bytes:
        return b"\x90" if depth == 0 else b"\xdc\x00\x10" + nested(depth - 1) * 16

    data = b"\x81\xa3src" + nested(4) * 1
    assert len(data) > 60_000
    tracemalloc.start()
    with pytest.raises(RecordError, match="nest"):
        ingest.decode(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * len(data)


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, Edges | Neighbors):
        return type(a) is type(b) and all(equal(vars(a)[k], vars(b)[k]) for k in vars(a))
    if a is None or b is None:
        return a is b
    return bool(a.dtype == b.dtype and np.array_equal(a, b))


@pytest.mark.parametrize("reply", replies(), ids=lambda reply: reply.kind.name)
def test_replies_come_back(reply: Reply) -> None:
    got = ingest.decode_reply(ingest.formats.replies.encode_reply(reply))
    assert (got.id, got.kind, got.version, got.time, got.error) == (
        "id",
        reply.kind,
        4,
        10**12,
        None,
    )
    assert equal(got.answer, reply.answer)


def test_errors_come_back_clipped() -> None:
    reply = Reply("id", Kind.HOPS, 1, 2, None, "hops", "é" * 5000)
    got = ingest.decode_reply(ingest.formats.replies.encode_reply(reply))
    assert (got.error, got.answer) == ("hops", None)
    assert got.message == "é" * 512


def test_a_reply_is_bounded() -> None:
    n = MAX_REPLY_BYTES // 4
    huge = Neighbors(np.array([0, n]), np.zeros(n, np.uint32))
    with pytest.raises(RecordError, match="ask for less"):
        ingest.formats.replies.encode_reply(Reply("id", Kind.HOPS, 1, 2, huge))
    with pytest.raises(RecordError, match="neither"):
        ingest.formats.replies.encode_reply(Reply("id", Kind.HOPS, 1, 2))


def letter_of(record: bytes, reason: str = "because") -> ingest.DeadLetter:
    sha256 = hashlib.sha256(record).digest()
    return ingest.DeadLetter("updates", 3, 9, reason, len(record), record[:65536], sha256)


@pytest.mark.parametrize("size", [0, 1, 65536, 65537, 100_000])
def test_dead_letters_come_back(size: int) -> None:
    """With the hash of the whole record, which is written only where the record is cut."""
    letter = letter_of(b"x" * size)
    encoded = ingest.formats.replies.encode_dead_letter(letter)
    assert ingest.decode_dead_letter(encoded) == letter
    assert (letter.sha256 in encoded) == (size > 65536)


@given(st.integers(0, 70_000), st.text(min_size=1, max_size=1500), st.integers(0, 80_000))
def test_a_dead_letter_is_cut_to_fit(size: int, reason: str, limit: int) -> None:
    """First its value, then its reason; its place, its size and its hash stay."""
    letter = letter_of(b"x" * size, reason)
    cut = letter.within(limit)
    encoded = ingest.formats.replies.encode_dead_letter(cut)
    got = ingest.decode_dead_letter(encoded)
    assert len(encoded) <= max(limit, 256)
    assert (got.topic, got.partition, got.offset) == ("updates", 3, 9)
    assert (got.size, got.sha256) == (size, letter.sha256)
    assert got.value == letter.value[: len(got.value)]
    if len(got.value) < len(letter.value):
        assert len(encoded) >= min(limit, 256) - 10, "no more is cut than must be"
    whole = ingest.decode_dead_letter(ingest.formats.replies.encode_dead_letter(letter)).reason
    assert got.reason == whole or not got.value


def test_dead_letters_of_older_releases_are_read() -> None:
    fields = {"topic": "t", "partition": 0, "offset": 1, "reason": "r", "bytes": 9, "value": b"x"}
    assert ingest.decode_dead_letter(msgpack.packb(fields)).sha256 == b""
    for wrong in (b"x" * 31, "x" * 32, 7):
        with pytest.raises(RecordError, match="sha256"):
            ingest.decode_dead_letter(msgpack.packb({**fields, "sha256": wrong}))


def test_a_long_error_is_cut_to_fit() -> None:
    reply = Reply("id", Kind.HOPS, 1, 2, None, "hops", "é" * 500).within(400)
    encoded = ingest.formats.replies.encode_reply(reply)
    assert len(encoded) <= 400
    assert ingest.decode_reply(encoded).message == "é" * 72
