"""JSON records: the fields they map, and what is refused before it costs anything."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ingest
from ingest import Fields, RecordError
from ingest.formats.mapped import MAX_DEPTH
from ingest.types import Record
from lpma import Kind
from tests.support.stream_model import SavedModel, weighted

FIELDS = Fields("user", "item", "score", "at", "event")


def decode(value: Any, fields: Fields = FIELDS, names: bool = False) -> Record:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return ingest.decode_record(data, names=names, fields=fields)


def content(record: Record) -> list[Any]:
    b, ends = record.batch, record.names or record.batch
    columns = (b.kind, ends.src, ends.dst, b.weight, b.time)
    return [None if column is None else column.tolist()[0] for column in columns]


@given(
    st.integers(0, 2**32 - 2), st.integers(0, 2**32 - 2),
    st.none() | st.floats(-1e30, 1e30) | st.integers(-(10**9), 10**9),
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.sampled_from(["append", "delete", "set", None]),
)  # fmt: skip
def test_fields_are_those_of_the_row(u: int, v: int, w: Any, t: Any, kind: Any) -> None:
    record = decode({"user": u, "item": v, "score": w, "at": t, "event": kind})
    expected = {"delete": Kind.DELETE, "set": Kind.SET}.get(kind, Kind.INSERT)
    assert content(record) == [expected, u, v, w, t]


def test_other_fields_are_ignored_and_defaults_stand_in() -> None:
    rest = {"page": {"tags": ["a,b", {"deep": [1, 2.5, None]}], "src": 1}, "ok": True}
    assert content(decode({"user": 1, "item": 2, **rest})) == [0, 1, 2, None, None]
    fields = Fields("user", "item", "score", default_weight=2.5)
    assert content(decode({"user": 1, "item": 2}, fields)) == [0, 1, 2, 2.5, None]
    assert content(decode({"user": 1, "item": 2, "score": 4}, fields)) == [0, 1, 2, 4, None]
    deleting = Fields(default_kind="delete", default_weight=3.0)
    assert content(decode({"src": 1, "dst": 2}, deleting)) == [1, 1, 2, None, None]
    setting = Fields(default_kind="set", default_weight=3.0)
    assert content(decode({"src": 1, "dst": 2}, setting)) == [Kind.SET, 1, 2, 3.0, None]
    gone = decode({"user": 1, "event": "remove_vertex"})
    assert content(gone)[:2] == [Kind.REMOVE_VERTEX, 1]
    assert content(decode(b' {"user":1,"item":2}\r\n')) == [0, 1, 2, None, None]


def test_text_and_wide_integers_name_vertices_with_names() -> None:
    record = decode({"user": "käse", "item": 2**64 - 1}, names=True)
    assert content(record) == [0, "käse", 2**64 - 1, None, None]
    for value in ({"user": "a", "item": 1}, {"user": 2**32 - 1, "item": 1}):
        with pytest.raises(RecordError):
            decode(value)


def test_a_query_is_msgpack_among_json() -> None:
    query = ingest.encode_query("q", Kind.DEGREE, 3)
    assert ingest.decode_record(query, fields=FIELDS).queries[0].src == 3
    row = ingest.encode_row(1, 2)
    assert content(ingest.decode_record(row, fields=FIELDS))[1:3] == [1, 2]


def nested(depth: int) -> bytes:
    return b'{"user":1,"item":2,"x":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


BAD: dict[str, Any] = {
    "nothing": b"",
    "a list": b"[1, 2]",
    "a number": b"17",
    "two objects": b'{"user":1,"item":2}{"user":1,"item":2}',
    "cut": b'{"user":1,"item":2',
    "single quotes": b"{'user':1,'item':2}",
    "a name that is not UTF-8": b'{"user":"\xff","item":2}',
    "a byte order mark": b'\xef\xbb\xbf{"user":1,"item":2}',
    "a field twice, the last of them bad": b'{"user":1,"user":[],"item":2}',
    "no item": {"user": 1},
    "null for a vertex": {"user": 1, "item": None},
    "a boolean vertex": {"user": True, "item": 1},
    "a fraction for a vertex": {"user": 1.5, "item": 1},
    "a float from where on they skip integers": {"user": 2.0**54, "item": 1},
    "a negative vertex": {"user": -1, "item": 1},
    "a boolean weight": {"user": 1, "item": 2, "score": False},
    "NaN": b'{"user":1,"item":2,"score":NaN}',
    "infinity": b'{"user":1,"item":2,"score":-Infinity}',
    "infinity where nobody looks": b'{"user":1,"item":2,"x":Infinity}',
    "infinity by exponent": b'{"user":1,"item":2,"score":1e999}',
    "a weight of text": {"user": 1, "item": 2, "score": "1"},
    "a float time": {"user": 1, "item": 2, "at": 1.5},
    "a time past 64 bits": {"user": 1, "item": 2, "at": 2**63},
    "an unknown kind": {"user": 1, "item": 2, "event": "click"},
    "a kind of a query": {"user": 1, "item": 2, "event": "edge"},
    "a kind of a list": {"user": 1, "item": 2, "event": ["append"]},
    "a vertex with an edge": {"user": 1, "item": 2, "event": "add_vertex"},
    "too deep": nested(MAX_DEPTH + 1),
    "a list of lists for a vertex": b'{"item":2,"user":[' + b"[]," * 300_000 + b"[]]}",
    "past 1 MiB": b'{"user":1,"item":2,"x":"' + b"x" * (1 << 20) + b'"}',
    "a million digits": b'{"user":' + b"9" * 1_000_000 + b"}",
    "a million digits after the point": b'{"user":1.' + b"9" * 1_000_000 + b"}",
    "a million brackets": b"[" * 1_000_000,
    "a million quotes": b'"' * 1_000_001 + b"[" * 9,
    "a million backslashes": b'{"' + b"\\" * 1_000_001 + b"[" * 9,
    "a million escaped quotes": b'{"' + b'\\"' * 500_000 + b"[" * 9,
}


@pytest.mark.parametrize("name", BAD)
def test_bad_records_are_refused(name: str) -> None:
    with pytest.raises(RecordError):
        decode(BAD[name])


def test_names_that_no_utf8_has_are_refused() -> None:
    for bad in (b'"\\ud800"', b'""', b'"' + b"x" * 1025 + b'"'):
        with pytest.raises(RecordError):
            decode(b'{"item":1,"user":' + bad + b"}", names=True)


def test_brackets_and_commas_in_text_do_not_count() -> None:
    value = {"user": 1, "item": 2, "x": '[{,\\"' * 1000, "y": '"[' * 90}
    assert content(decode(value))[1:3] == [1, 2]


def test_what_nobody_asked_for_is_no_reason_to_refuse_a_record() -> None:
    rest = {"many": list(range(300)), "empty": [[] for _ in range(200)], "long": "x" * 10_000}
    for data in (
        json.dumps({"user": 1, **rest, "item": 2}).encode(),
        b'{"user":1,"item":2,"x":"\xff","\xfe":7}',
        nested(MAX_DEPTH),
        b'{"user":1,"item":2,"x":{"a":1,"a":1},"n":' + b"9" * 100_000 + b"}",
    ):
        assert content(decode(data)) == [0, 1, 2, None, None]


def test_the_last_of_a_repeated_field_counts_and_whole_floats_are_integers() -> None:
    assert content(decode(b'{"user":7,"user":1,"item":2}')) == [0, 1, 2, None, None]
    whole = b'{"user":1.0,"item":2e0,"at":1e3,"score":4}'
    assert content(decode(whole)) == [0, 1, 2, 4.0, 1000]


def test_paths_words_producers_and_times() -> None:
    fields = Fields(
        "after.user.id", "after.item", time="at", kind="op", producer="who", seq="n",
        time_unit="s", kinds={"follow": "append", "unfollow": "delete", "upsert": "set"},
    )  # fmt: skip
    given = {"after": {"user": {"id": 3}, "item": 4}, "at": 7, "op": "unfollow", "who": "a", "n": 1}
    record = decode(given, fields)
    assert content(record) == [Kind.DELETE, 3, 4, None, 7000]
    assert (record.producer, record.seq) == ("a", 1)
    assert decode({**given, "op": "upsert"}, fields).batch.kind == Kind.SET
    dated = decode({**given, "at": "2019-10-01 00:00:07 UTC"}, fields)
    assert content(dated)[4] == 1569888007000
    flat = {"after.user.id": 5, "after": {"user": {"id": 3}, "item": 4}}
    assert content(decode(flat, fields))[1:3] == [5, 4]
    for bad in (
        {"after": 7}, {"after": {"user": 3, "item": 4}}, {**given, "op": "click"},
        {**given, "at": "soon"}, {**given, "n": None}, {**given, "at": 2**62},
    ):  # fmt: skip
        with pytest.raises(RecordError):
            decode(bad, fields)


def test_what_is_refused_costs_little_memory() -> None:
    for data in (b'{"user":[' + b"[]," * 300_000, b'{"x":[' + b"1.5," * 250_000):
        tracemalloc.start()
        with pytest.raises(RecordError):
            decode(data)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 3 * len(data)


def test_a_pipeline_reads_json_and_letters_say_where_and_why() -> None:
    good = [json.dumps({"user": u, "item": u + 1}).encode() for u in range(5)]
    with ingest.SqliteLog(":memory:") as log:
        log.produce_many("updates", [*good[:2], b'{"user": NaN}', *good[2:]])
        log.produce("queries", ingest.encode_query("q", Kind.SUCCESSORS, 4))
        letters: list[ingest.DeadLetter] = []
        got: list[ingest.Reply] = []
        pipeline = ingest.Pipeline(
            log, SavedModel(), records=FIELDS, dead_letters=letters.append, replies=got.append
        )
        pipeline.run(until="end")
    assert weighted(pipeline.graph) == {(u, u + 1): 1.0 for u in range(5)}
    (letter,) = letters
    assert (letter.topic, letter.partition, letter.offset) == ("updates", 0, 2)
    assert letter.reason.startswith("not a JSON record: JSON is malformed: invalid character")
    np.testing.assert_array_equal(got[0].answer.ids, [5])  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"user": {"id": 1}, "item": {"a": 1}}, "item: expected an integer, got object"),
        ({"user": {"id": 1}}, "item: expected an integer, got nothing"),
        ({"user": 1, "item": 2}, "user.id: expected an integer, got nothing"),
        ({"user": {"id": "a"}, "item": 2}, "user.id: text names a vertex only with names=True"),
        ({"user": {"id": 1}, "item": 2, "at": "today"}, "at: "),
        ({"user": {"id": 1}, "item": 2, "w": [1]}, "w: expected a number, got list"),
        ({"user": {"id": 1}, "item": 2, "do": [1]}, "do: expected one of append, .*got list$"),
        (
            {"user": {"id": 1}, "item": 2, "do": "follow"},
            "do: expected one of append, .*got 'follow'; say what it means, as fields.kinds = "
            "{'follow' = 'append'}",
        ),
    ],
)
def test_what_is_wrong_is_said_of_the_field_as_the_mapping_calls_it(
    record: dict[str, Any], said: str
) -> None:
    fields = ingest.Fields("user.id", "item", weight="w", time="at", kind="do")
    with pytest.raises(ingest.errors.RecordError, match=f"^{said}"):
        ingest.decode_record(json.dumps(record).encode(), fields=fields)
