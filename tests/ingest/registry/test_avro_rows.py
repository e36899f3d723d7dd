"""Programs of schemas: what they take of records is what fastavro and the careful reader make of
them, whatever the schema, and however damaged the record."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ingest import Fields
from ingest.pipeline.record_reader import RecordReader
from ingest.registry.avro import SchemaError, parse
from ingest.registry.avro_rows import program_of, read_rows
from ingest.registry.client import Schema
from ingest.registry.envelope import HEADER_BYTES
from ingest.registry.schemas import Schemas
from ingest.types import Polled, Values
from tests.ingest.registry.test_avro import LONGS, Named, lj, typed
from tests.ingest.registry.test_envelope import PLACE, reader, said
from tests.support.schema_registry import avro, enveloped

pytest.importorskip("fastavro", reason="pip install 'lpma-graph[registry]'")

SMALL = st.integers(-3, 9) | st.sampled_from([2**32 - 2, 2**32 - 1, -(2**63), 2**63 - 1])
NAMES = st.text(min_size=1, max_size=3) | st.just("") | st.just("żółć")
FLOATS = st.floats() | st.sampled_from([1e30, 1.1e30, 0.5])
NUMBERS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("long", SMALL), ("int", st.integers(-3, 9)), ("double", FLOATS),
    ("float", st.floats(width=32)), ("boolean", st.booleans()), ("bytes", st.binary(max_size=3)),
]  # fmt: skip
TIMES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (lj("long", "timestamp-micros"), LONGS), (lj("long", "timestamp-millis"), LONGS),
    (lj("long", "timestamp-nanos"), LONGS), (lj("int", "date"), st.integers(-9, 2**31 - 1)),
    ("long", SMALL | LONGS),
]  # fmt: skip
OF_ROLE = {
    "source": [("string", NAMES), *NUMBERS], "target": [("string", NAMES), *NUMBERS],
    "weight": NUMBERS, "time": [*TIMES, *NUMBERS, ("string", st.sampled_from(["2020-01-01", "x"]))],
}  # fmt: skip


def plain(schema: Any) -> Any:
    """Without logical types, so that fastavro writes integers as they are."""
    return json.loads(json.dumps(schema).replace('"logicalType"', '"ignored"'))


@st.composite
def mapped(draw: st.DrawFn, role: str) -> tuple[Any, st.SearchStrategy[Any]]:
    """The type of a field with this role, mostly a good one, and values."""
    choices = OF_ROLE[role]
    first = draw(st.sampled_from(choices[:2] * 3 + choices))
    if draw(st.booleans()):
        return first
    second = draw(st.sampled_from([("null", st.none()), *choices]))
    assume(json.dumps(plain(second[0])) != json.dumps(plain(first[0])))
    kinds = [each[0]["type"] if isinstance(each[0], dict) else each[0] for each in (first, second)]
    assume(kinds[0] != kinds[1])
    return [second[0], first[0]], first[1] | second[1]


@st.composite
def unmapped(draw: st.DrawFn, named: Named, depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
    """A field that is not mapped, without logical types."""
    schema, values = draw(typed(named, depth))
    assume("logicalType" not in json.dumps(schema))
    return schema, values


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, list[Any], Fields]:
    """A schema with fields of a mapping among others, at any depth, rows of it, and the mapping."""
    named = Named()
    roles = ["source", "target", *draw(st.lists(st.sampled_from(["weight", "time"]), unique=True))]
    paths: dict[str, Any] = {}
    top: list[tuple[str, Any, st.SearchStrategy[Any]]] = []
    for role in roles:
        schema, values = draw(mapped(role))
        path = role
        for level in range(draw(st.integers(0, 2))):
            name, within = path.partition(".")[0], values
            beside, others = draw(unmapped(named, 1))
            fields = [{"name": "z", "type": beside}, {"name": name, "type": schema}]
            schema = named("record", fields=fields[:: draw(st.sampled_from([1, -1]))])
            values = st.fixed_dictionaries({"z": others, name: within})
            path = f"{role}{level}.{path}"
            if draw(st.booleans()):
                schema, values = ["null", schema], st.none() | values
        paths[role] = path
        top.append((path.partition(".")[0], schema, values))
    for name in draw(st.lists(st.sampled_from("pqrs"), unique=True, max_size=3)):
        top.append((name, *draw(unmapped(named, 2))))
    top = draw(st.permutations(top))
    schema = named("record", fields=[{"name": n, "type": s} for n, s, _ in top])
    rows = draw(st.lists(st.fixed_dictionaries({n: v for n, _, v in top}), min_size=1, max_size=5))
    paths["time_unit"] = draw(st.sampled_from([None, "s", "ms", "us", "ns"]))
    return schema, rows, Fields(**paths).of_topic()


def known(schema: Any) -> Schemas:
    schemas = Schemas(None, None)
    schemas._known = {1: (0, Schema(1, "AVRO", json.dumps(schema)))}
    return schemas


def read(found: RecordReader, values: list[bytes], together: bool) -> list[Any]:
    polled = [Polled(PLACE, 0, Values.of(values))] if together else [
        Polled(PLACE, at, value) for at, value in enumerate(values)]  # fmt: skip
    return [each for one in polled for read in found.read(one, 5) for each in said(read)]


@given(cases(), st.booleans(), st.data())
def test_a_program_takes_what_the_careful_reader_takes(
    case: tuple[Any, list[Any], Fields], names: bool, data: st.DataObject
) -> None:
    schema, rows, fields = case
    try:
        of = parse(json.dumps(schema))
    except SchemaError:
        assume(False)
    values = []
    for row in rows:
        body = bytearray(avro(plain(schema), row))
        for _ in range(data.draw(st.integers(0, 2))):
            at = data.draw(st.integers(0, len(body)))
            body[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
        values += [enveloped(1, avro(plain(schema), row)), enveloped(1, bytes(body))]
    apart, many = (reader(fields, known(schema), names=names) for _ in range(2))
    assert read(many, values, True) == read(apart, values, False)
    reasons = [[(d.offset, d.reason) for d in each._outputs.letters] for each in (many, apart)]
    assert reasons[0] == reasons[1]
    assert of.kind == "record"


USUAL = {"type": "record", "name": "R", "fields": [
    {"name": "tags", "type": {"type": "map", "values": {"type": "array", "items": "string"}}},
    {"name": "user", "type": {"type": "record", "name": "U", "fields": [
        {"name": "id", "type": ["null", "string"]}, {"name": "age", "type": "int"}]}},
    {"name": "item", "type": ["long", "string"]}, {"name": "note", "type": ["null", "bytes"]},
    {"name": "stars", "type": ["null", "float"]},
    {"name": "at", "type": lj("long", "timestamp-millis")}]}  # fmt: skip
MAPPING = Fields("user.id", "item", "stars", "at").of_topic()
ROW: dict[str, Any] = {"tags": {"a": ["x", "y"], "b": []}, "user": {"id": "ann", "age": 7},
                       "item": 5, "note": b"!", "stars": 2.5, "at": 1_700_000_000_123}  # fmt: skip


def plain_of(rows: list[dict[str, Any]], names: bool = True) -> list[bool]:
    """Which of these are read by the program."""
    program = program_of(parse(json.dumps(USUAL)), MAPPING)
    assert program is not None
    values = Values.of([enveloped(1, avro(plain(USUAL), row)) for row in rows])
    return read_rows(values, HEADER_BYTES, program, names).plain.tolist()


def test_usual_records_are_read_by_their_program() -> None:
    good: list[dict[str, Any]] = [{}, {"item": "x"}, {"stars": None}, {"tags": {}}, {"note": None}]
    assert plain_of([ROW | each for each in good]) == [True] * 5
    bad: list[dict[str, Any]] = [
        {"user": {"id": None, "age": 7}},
        {"item": ""},
        {"stars": float("nan")},
    ]
    assert plain_of([ROW | each for each in bad]) == [False] * 3
    assert plain_of([ROW], names=False) == [False]


@pytest.mark.parametrize(
    "fields",
    [
        Fields("user.id", "item", kind="note"),
        Fields("user.id", "item", default_weight=2.0),
        Fields("user.id", "item", default_kind="delete"),
        Fields("user.id", "item", producer="note", seq="at"),
        Fields("user.id", "there is none"),
        Fields("user", "item"),
        Fields("user.id", "tags.a"),
        Fields("user.id", "item", weight="note"),
    ],
)
def test_there_is_no_program_for_other_mappings(fields: Fields) -> None:
    if fields.weight == "note":  # its null is taken
        assert program_of(parse(json.dumps(USUAL)), fields.of_topic()) is not None
        return
    assert program_of(parse(json.dumps(USUAL)), fields.of_topic()) is None


def test_fields_that_the_schema_lacks_have_their_defaults() -> None:
    fields = Fields("user.id", "item", kind="op", producer="who", seq="n").of_topic()
    assert program_of(parse(json.dumps(USUAL)), fields) is not None


@pytest.mark.parametrize("count", [2**62, 2**63 - 1, -(2**63)])
def test_no_count_of_items_is_believed(count: int) -> None:
    """It ends where the record does."""
    value = enveloped(1, long(count) + b"\0\0")
    program = program_of(parse(json.dumps(USUAL)), MAPPING)
    assert program is not None
    assert not read_rows(Values.of([value] * 2), HEADER_BYTES, program, True).plain.any()


SIMPLE = {"type": "record", "name": "R", "fields": [
    {"name": "user", "type": ["null", "string"]}, {"name": "item", "type": "string"},
    {"name": "at", "type": "LONG"}]}  # fmt: skip


def long(value: int) -> bytes:
    """As Avro writes it."""
    zigzag, found = (value << 1) ^ (value >> 63), bytearray()
    while zigzag > 0x7F:
        found.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*found, zigzag])


def text(value: bytes) -> bytes:
    return long(len(value)) + value


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("kind", ["long", "int", *(each[0] for each in TIMES)], ids=json.dumps)
def test_times_of_any_type_in_any_unit(kind: Any, unit: str) -> None:
    schema = json.loads(json.dumps(SIMPLE).replace('"LONG"', json.dumps(kind)))
    fields = Fields("user", "item", time="at", time_unit=unit).of_topic()  # type: ignore[arg-type]
    most = 2**63 - 1
    times = [0, 1, -1, 1999, -1999, 1_700_000_000_123_456, most, -most - 1, most // 1000,
             most // 1000 + 1, -(most // 1000) - 1, most // 86_400_000 + 1]  # fmt: skip
    values = [enveloped(1, long(1) + text(b"a") + text(b"b") + long(time)) for time in times]
    many, apart = (reader(fields, known(schema)) for _ in range(2))
    found = read(many, values, True)
    assert found == read(apart, values, False)
    taken = [row for _, row, _ in found if row is not None]
    assert len(taken) >= 5


@pytest.mark.parametrize(
    "body",
    [
        long(-1) + text(b"a") + text(b"b") + long(0),  # a branch before the first
        long(-1) + long(1) + text(b"a") + text(b"b") + long(0),
        long(2) + text(b"a") + text(b"b") + long(0),  # and behind the last
        long(1) + text(b"a") + b"\x01" + long(0),  # a length below 0
        long(1) + text(b"\xc5") + text(b"\xbc") + long(0),  # a character in two texts
        long(1) + text(b"\xbc") + text(b"a") + long(0),
        long(1) + text(b"a") + text(b"b") + b"\x80" * 9 + b"\x01",  # ten bytes
        long(1) + text(b"a") + text(b"b") + b"\x80" * 12 + b"\x01",
    ],
)
def test_a_program_leaves_what_is_odd(body: bytes) -> None:
    schema = json.loads(json.dumps(SIMPLE).replace("LONG", "long"))
    fields = Fields("user", "item", time="at").of_topic()
    program = program_of(parse(json.dumps(schema)), fields)
    assert program is not None
    good = enveloped(1, long(1) + text(b"a") + text(b"b") + long(0))
    values = [good, enveloped(1, body), good]
    plain = read_rows(Values.of(values), HEADER_BYTES, program, True).plain.tolist()
    assert plain in ([True, False, True], [False, False, False])  # all, where it is no UTF-8
    many, apart = (reader(fields, known(schema)) for _ in range(2))
    assert read(many, values, True) == read(apart, values, False)
