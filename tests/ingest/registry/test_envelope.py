"""Records in the envelope, beside others: read many at once they are what each is by itself."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ingest
from ingest import Fields, Partition, RecordError
from ingest.fields import checked_records
from ingest.pipeline.outputs import Outputs
from ingest.pipeline.record_reader import ReadRecords, RecordReader
from ingest.pipeline.topics.readers import TopicReaders
from ingest.registry.client import Schema
from ingest.registry.envelope import Envelope, id_of, in_stretches
from ingest.registry.schemas import Schemas
from ingest.types import Polled, Values
from tests.ingest.formats.test_row_reader import rows_of
from tests.support.schema_registry import avro, enveloped

pytest.importorskip("fastavro", reason="pip install 'lpma-graph[registry]'")

PLACE = Partition("updates", 0)
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
FIRST = {"type": "record", "name": "E", "fields": [
    {"name": "user", "type": "string"}, {"name": "item", "type": "string"},
    {"name": "stars", "type": ["null", "double"]}, {"name": "at", "type": MICROS}]}  # fmt: skip
# The same, evolved: other fields, in another order, of other types.
LATER = {"type": "record", "name": "E", "fields": [
    {"name": "note", "type": "bytes"}, {"name": "at", "type": ["null", "long", "string"]},
    {"name": "item", "type": ["string", "int"]}, {"name": "user", "type": ["long", "string"]},
    {"name": "op", "type": {"type": "enum", "name": "Op", "symbols": ["follow", "unfollow"]}},
]}  # fmt: skip
AVRO, EVOLVED, JSON, PROTOBUF, BROKEN, NONE = range(1, 7)
SCHEMAS = {
    AVRO: Schema(AVRO, "AVRO", json.dumps(FIRST)),
    EVOLVED: Schema(EVOLVED, "AVRO", json.dumps(LATER)),
    JSON: Schema(JSON, "JSON", "{}"),
    PROTOBUF: Schema(PROTOBUF, "PROTOBUF", "syntax"),
    BROKEN: Schema(BROKEN, "AVRO", '"no such type"'),
}
FIELDS = Fields("user", "item", "stars", "at", "op", "who", "n", time_unit="s",
                kinds={"follow": "append", "unfollow": "delete"}).of_topic()  # fmt: skip


def known() -> Schemas:
    schemas = Schemas(None, None)
    schemas._known = {id: (0, schema) for id, schema in SCHEMAS.items()}
    schemas._none = {NONE: (10**15, "it is not in the registry")}
    return schemas


MADE: dict[str, Any] = {}  # readers, which take long to make, and remember nothing of records


def reader(
    fields: Fields | None = FIELDS, schemas: Schemas | None = None, *, names: bool = True
) -> RecordReader:
    records = checked_records("msgpack" if fields is None else fields)
    topics = TopicReaders(records, names, schemas)
    if schemas is not None and fields is FIELDS:
        topics._made = MADE
    return RecordReader(topics, {}, Outputs(None, None, ("replies",)))


def said(read: ReadRecords) -> list[Any]:
    """(offset, row, producer) of each."""
    if read.is_left_out:
        return [(read.offset, None, None)]
    found = []
    count = len(read.record.batch)
    for number, part in enumerate([read.part(i, i + 1) for i in range(count)]
                                  if read.counts_rows else [read]):  # fmt: skip
        record, ends = part.record, part.ends
        if ends is not None:
            from ingest.formats.row_reader import with_names

            rows = rows_of(with_names(record.batch, ends), with_names(record.batch, ends))
        else:
            rows = rows_of(record.batch, record.names or record.batch)
        found.append((part.offset, repr(rows), part.producer))
        assert part.offset == read.offset + number
    return found


def check(values: list[bytes], fields: Fields | None = FIELDS) -> RecordReader:
    """Read them together and apart, with the same result; the reader of the first."""
    together, apart = reader(fields, known()), reader(fields, known())
    many = [each for read in together.read(Polled(PLACE, 7, Values.of(values)), 5)
            for each in said(read)]  # fmt: skip
    one_by_one = [
        each for at, value in enumerate(values, 7)
        for read in apart.read(Polled(PLACE, at, value), 5) for each in said(read)
    ]  # fmt: skip
    assert many == one_by_one
    letters, others = (
        [(d.offset, d.reason, d.kind, d.value) for d in each._outputs.letters]
        for each in (together, apart)
    )
    assert letters == others
    assert all(value == values[offset - 7] for offset, _, _, value in letters)
    assert (together.duplicates, together.seen) == (apart.duplicates, apart.seen)
    return together


NAMES = st.text(max_size=3) | st.just("żółć")
AVRO_ROWS = st.fixed_dictionaries({
    "user": NAMES, "item": NAMES, "stars": st.none() | st.floats(), "at": st.integers(-9, 2**50),
})  # fmt: skip
EVOLVED_ROWS = st.fixed_dictionaries({
    "note": st.binary(max_size=3), "item": NAMES | st.integers(0, 9),
    "at": st.none() | st.integers(0, 9) | st.sampled_from(["2020-01-01", "x"]),
    "user": NAMES | st.integers(-(2**63), 2**63 - 1), "op": st.sampled_from(["follow", "unfollow"]),
})  # fmt: skip
OBJECTS = st.dictionaries(
    st.sampled_from(["user", "item", "stars", "at", "op", "who", "n", "other"]),
    NAMES | st.integers(-2, 9) | st.none() | st.sampled_from(["follow", 1.5, 2.0]), max_size=7,
).map(lambda row: json.dumps(row).encode())  # fmt: skip
GOOD_OBJECTS = st.builds(
    lambda u, v, n: json.dumps({"user": u, "item": v, "who": "w", "n": n}).encode(),
    NAMES, NAMES, st.integers(0, 4),
)  # fmt: skip


def mangled(data: bytes, at: int, put: bytes) -> bytes:
    return data[: at % (len(data) + 1)] + put + data[at % (len(data) + 1) + 1 :]


WHOLE = st.one_of(
    AVRO_ROWS.map(lambda row: enveloped(AVRO, avro(FIRST, row | {"at": row["at"]}))),
    EVOLVED_ROWS.map(lambda row: enveloped(EVOLVED, avro(LATER, row))),
    (OBJECTS | GOOD_OBJECTS).map(lambda data: enveloped(JSON, data)),
    OBJECTS | GOOD_OBJECTS,
    st.builds(lambda u, v: ingest.encode_row(u or "u", v, names=True), NAMES, st.integers(0, 5)),
    st.sampled_from([
        enveloped(PROTOBUF, b"\0x"), enveloped(BROKEN, b"x"), enveloped(NONE, b"x"), b"", b"\0",
        enveloped(AVRO, b""), enveloped(JSON, b""), enveloped(JSON, b"[]"), b"\0\0\0\0",
        enveloped(JSON, enveloped(JSON, b'{"user": "a", "item": "b"}')),
        enveloped(JSON, ingest.encode_row("a", "b", names=True)),
        enveloped(JSON, b' {"user": "a", "item": "b"}\n'),
    ]),
)  # fmt: skip
VALUES = WHOLE | st.builds(mangled, WHOLE, st.integers(0, 40), st.binary(max_size=2))


@given(st.lists(VALUES, min_size=1, max_size=12))
def test_many_records_are_read_as_each_is(values: list[bytes]) -> None:
    check(values)


@given(st.lists(st.integers(0, 300), max_size=4), st.integers(1, 300))
def test_one_bad_record_among_many_is_the_only_dead_letter(bad: list[int], count: int) -> None:
    values = [enveloped(AVRO, avro(FIRST, {"user": f"u{i}", "item": "i", "stars": 1.0, "at": 7}))
              for i in range(count)]  # fmt: skip
    for at in bad:
        values[at % count] = values[at % count][:-1]
    found = check(values)
    assert {d.offset - 7 for d in found._outputs.letters} == {at % count for at in bad}


def one(value: bytes, fields: Fields | None = FIELDS, schemas: Any = known) -> Any:
    """The row of a record; the reason of the dead letter that it becomes."""
    found = reader(fields, schemas and schemas())
    (read,) = found.read(Polled(PLACE, 7, value), 5)
    if read.is_left_out:
        return found._outputs.letters[0].reason
    return rows_of(read.record.batch, read.record.names or read.record.batch)[0][1:]


def test_a_time_of_a_logical_type_is_ms_whatever_the_unit_of_the_mapping() -> None:
    row: dict[str, Any] = {"user": "a", "item": "b", "stars": None, "at": 1_700_000_000_123_456}
    assert one(enveloped(AVRO, avro(FIRST, row))) == ("a", "b", 1.0, 1_700_000_000_123)
    row = {"user": "a", "item": "b", "note": b"", "at": 9, "op": "follow"}
    assert one(enveloped(EVOLVED, avro(LATER, row))) == ("a", "b", 1.0, 9000)  # in the mapping's
    assert one(enveloped(JSON, b'{"user": "a", "item": "b", "at": 9}')) == ("a", "b", 1.0, 9000)


def test_what_cannot_be_read_says_why() -> None:
    row: dict[str, Any] = {"user": "a", "item": "b", "stars": None, "at": 0}
    assert one(enveloped(PROTOBUF, b"")) == (
        "schema 4: it is one of Protobuf, which is not read: JSON and Avro are"
    )
    assert one(enveloped(NONE, b"")) == "schema 6: it is not in the registry"
    assert "no type is called" in one(enveloped(BROKEN, b""))
    assert "bytes are left over" in one(enveloped(AVRO, b"\2a\2b\0\0x"))
    assert "give schema_registry, or --schema-registry" in one(enveloped(7, b"x"), schemas=None)
    assert "records=Fields(…)" in one(enveloped(JSON, b"{}"), None)
    large = avro(FIRST, row | {"user": "a" * (1 << 20)})
    assert "at most" in one(enveloped(AVRO, large))


def test_a_schema_in_a_header_is_said_not_to_be_read() -> None:
    assert "__value_schema_id, is not read" in one(avro(FIRST, {
        "user": "ann", "item": "b", "stars": None, "at": 0}))  # fmt: skip
    assert "header" not in one(b"\2a", schemas=None)


def test_keys_are_asked_about_of_changes_of_tables_alone() -> None:
    """Others may be integers, say, of which many begin with the byte 0."""
    value, key = enveloped(1, b"x"), enveloped(2, b"y")
    many = Values.of([value] * 2)
    many.keys = Values.of([key] * 2)
    polled = [Polled(PLACE, 0, value, key=key), Polled(PLACE, 1, many)]
    table = ingest.Debezium(Fields("user", "item"))
    assert TopicReaders(checked_records(FIELDS), True, known()).schema_ids(polled) == {1}
    assert TopicReaders(checked_records(table), True, known()).schema_ids(polled) == {1, 2}
    assert TopicReaders("msgpack", True, known()).schema_ids(polled) == set()
    assert TopicReaders(FIELDS, True).schema_ids(polled) == set()


def test_without_fastavro_the_stream_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that could be read become no dead letters."""
    monkeypatch.setitem(sys.modules, "fastavro", None)
    envelope = Envelope(known(), FIELDS)
    with pytest.raises(ingest.PipelineError, match=r"lpma-graph\[registry\]"):
        envelope.unwrapping(AVRO, 5)
    envelope.unwrapping(JSON, 5)


def test_what_begins_otherwise_is_in_no_envelope() -> None:
    values = [b"", b"\0", b"\0\0\0\0", b"{}", ingest.encode_row(1, 2), enveloped(5, b"")]
    assert [id_of(value) for value in values] == [None] * 5 + [5]
    assert [tuple(part) for part in in_stretches(Values.of(values))] == [(0, 5, None), (5, 6, 5)]
    ids = [0, 0, 1, 2**32 - 1, 2**31]
    parts = in_stretches(Values.of([enveloped(id, b"x") for id in ids]))
    assert [tuple(part) for part in parts] == [
        (0, 2, 0), (2, 3, 1), (3, 4, 2**32 - 1), (4, 5, 2**31)]  # fmt: skip


def test_a_dead_letter_keeps_the_whole_record() -> None:
    value = enveloped(AVRO, b"no record of it")
    found = check([value] * 3)
    assert [letter.value for letter in found._outputs.letters] == [value] * 3


def test_no_error_but_its_own_leaves_the_reader() -> None:
    with pytest.raises(RecordError):
        Envelope(known(), FIELDS).unwrapping(NONE, 5)
