"""Avro read to JSON: compared with fastavro's own reading, logical types and all."""

from __future__ import annotations

import io
import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ingest.errors import RecordError
from ingest.registry import avro as ours
from ingest.registry.avro import AvroReader, SchemaError, parse
from tests.support.schema_registry import avro

fastavro = pytest.importorskip("fastavro", reason="pip install 'lpma-graph[registry]'")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=8)


def lj(type: str, logical: str, **more: Any) -> dict[str, Any]:
    return {"type": type, "logicalType": logical, **more}


def times(unit: timedelta) -> st.SearchStrategy[datetime]:
    most = int(timedelta(days=100_000) / unit)
    return st.integers(-most // 10, most).map(lambda n: EPOCH + n * unit)


MS, US = timedelta(milliseconds=1), timedelta(microseconds=1)
# (schema, values as fastavro takes them); an object is made anew each time, for its name.
LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("null", st.none()), ("boolean", st.booleans()), ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", LONGS), ("double", st.floats(-1e300, 1e300)),  # of which no few sum up to infinity
    ("float", st.floats(width=32, allow_nan=False, allow_infinity=False)), ("string", TEXTS),
    (lj("long", "timestamp-millis"), times(MS)), (lj("long", "timestamp-micros"), times(US)),
    (lj("long", "local-timestamp-millis"), times(MS).map(lambda t: t.replace(tzinfo=None))),
    (lj("long", "local-timestamp-micros"), times(US).map(lambda t: t.replace(tzinfo=None))),
    (lj("int", "date"), st.dates()),
    (lj("bytes", "decimal", precision=20, scale=4),
     st.integers(-(10**19), 10**19).map(lambda n: Decimal(n).scaleb(-4))),
    (lj("bytes", "decimal", precision=18), st.integers(-(10**17), 10**17).map(Decimal)),
    (lj("string", "uuid"), st.uuids()),
    ("ENUM", st.sampled_from(["RED", "GREEN"])),
]  # fmt: skip
UNREAD = [("bytes", st.binary(max_size=8)), ("FIXED", st.binary(min_size=3, max_size=3))]


class Named:
    """Names that are used once."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, kind: str, **more: Any) -> dict[str, Any]:
        self.count += 1
        return {"type": kind, "name": f"N{self.count}", **more}


@st.composite
def typed(draw: st.DrawFn, named: Named, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    """A schema, and values for it."""
    kinds = ["leaf"] * 4 + ["unread"] + (["array", "map", "record", "nullable"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    if kind in ("leaf", "unread"):
        schema, values = draw(st.sampled_from(LEAVES if kind == "leaf" else UNREAD))
        if schema == "ENUM":
            schema = named("enum", symbols=["RED", "GREEN"])
        elif schema == "FIXED":
            schema = named("fixed", size=3)
        return schema, values
    if kind == "record":
        return draw(record(named, depth - 1))
    within, values = draw(typed(named, depth - 1))
    if kind == "nullable":
        assume(within != "null" and not isinstance(within, list))
        return ["null", within], st.none() | values
    if kind == "map":
        return {"type": "map", "values": within}, st.dictionaries(TEXTS, values, max_size=3)
    assume(parse(json.dumps(within)).least)  # items of no bytes are refused
    return {"type": "array", "items": within}, st.lists(values, max_size=3)


@st.composite
def record(draw: st.DrawFn, named: Named, depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
    names = draw(st.lists(st.sampled_from("abcde"), unique=True, min_size=1, max_size=4))
    parts = {name: draw(typed(named, depth)) for name in names}
    fields = [{"name": name, "type": schema} for name, (schema, _) in parts.items()]
    return named("record", fields=fields), st.fixed_dictionaries(
        {name: values for name, (_, values) in parts.items()}
    )


def plain(value: Any, path: str) -> Any:
    """What a field of a mapping is in JSON, by what fastavro reads: slow and obvious. RecordError
    for what is no number and no text."""
    if isinstance(value, datetime):
        value = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return (value - EPOCH) // MS
    if isinstance(value, date):
        return (value - EPOCH.date()) // MS
    if isinstance(value, Decimal):
        whole = value == value.to_integral_value()
        found = int(value) if whole else float(value)
        if whole and not -(2**63) <= found < 2**64:
            raise RecordError(path)
        return found
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes | list | dict):
        raise RecordError(path)
    if isinstance(value, float) and not math.isfinite(value):
        raise RecordError(path)
    return value


def at(value: Any, path: list[str]) -> Any:
    """As the JSON of a mapping is read: what lies in no object is not there."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def expected(value: dict[str, Any], fields: list[str]) -> dict[str, Any] | None:
    """By field, what is there; None if it is refused."""
    try:
        return {name: plain(at(value, name.split(".")), name) for name in fields}
    except RecordError:
        return None


def found(data: bytes, fields: list[str]) -> dict[str, Any]:
    read = json.loads(data)
    return {name: at(read, name.split(".")) for name in fields}


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, list[Any], list[str]]:
    """A schema, rows of it, and the fields of a mapping, of which none lies within another."""
    schema, values = draw(record(Named(), 3))
    rows = draw(st.lists(values, min_size=1, max_size=4))
    paths = st.lists(st.sampled_from("abcde"), min_size=1, max_size=3).map(".".join)
    fields = draw(st.lists(paths, min_size=1, max_size=3, unique=True))
    for one in fields:
        assume(not any(o != one and f"{o}.".startswith(f"{one}.") for o in fields))
    return schema, rows, fields


@given(cases())
def test_what_is_mapped_is_read_as_fastavro_reads_it(
    case: tuple[Any, list[Any], list[str]],
) -> None:
    schema, rows, fields = case
    parsed = fastavro.parse_schema(schema)
    bodies = [avro(schema, row) for row in rows]
    reader = AvroReader(parse(json.dumps(schema)), fields)
    each: list[bytes | None] = []
    for body in bodies:
        read = fastavro.schemaless_reader(io.BytesIO(body), parsed)
        wanted = expected(read, fields)
        try:
            data = reader.read(body)
        except RecordError:
            assert wanted is None
            each.append(None)
            continue
        assert repr(found(data, fields)) == repr(wanted)
        each.append(data)
    together = reader.read_many(bodies)
    if None in each:
        assert together is None
    else:
        assert together is not None
        assert together.splitlines() == each


@given(cases(), st.data())
def test_damaged_records_are_refused_or_records(
    case: tuple[Any, list[Any], list[str]], data: st.DataObject
) -> None:
    """Whatever bytes come, a record is read as itself alone, or refused; many are read as each is
    by itself, or not."""
    schema, rows, fields = case
    reader = AvroReader(parse(json.dumps(schema)), fields)
    bodies = []
    for row in rows:
        spoilt = bytearray(avro(schema, row))
        for _ in range(data.draw(st.integers(0, 3))):
            at = data.draw(st.integers(0, len(spoilt)))
            spoilt[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
        bodies.append(bytes(spoilt))
    each: list[bytes | None] = []
    for body in bodies:
        try:
            each.append(reader.read(body))
        except RecordError:
            each.append(None)
    together = reader.read_many(bodies)
    assert together is None or together.splitlines() == each


def test_a_record_does_not_read_into_the_next() -> None:
    schema = {"type": "record", "name": "R", "fields": [
        {"name": "a", "type": "string"}, {"name": "b", "type": "string"}]}  # fmt: skip
    reader = AvroReader(parse(json.dumps(schema)), ["a", "b"])
    # Apart each is bad, and one behind the other they are two records.
    short, long = b"\x02x", b"\x02y\x02x\x02y"
    assert reader.read_many([short + long[:2], long[2:]]) is not None
    assert reader.read_many([short, long]) is None
    for body in (short, long):
        with pytest.raises(RecordError, match="not a record of its schema"):
            reader.read(body)


FIELDS = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "ANY"}]}


def with_type(kind: Any) -> str:
    return json.dumps(FIELDS).replace('"ANY"', json.dumps(kind))


@pytest.mark.parametrize(
    "schema, why",
    [
        ("{", "not a schema of Avro"),
        ("[]x", "not a schema of Avro"),
        (with_type("strin"), "no type is called 'strin'"),
        (with_type({"type": "enum", "name": "E"}), "not a schema of Avro: 'symbols'"),
        (with_type(["null", "R"]), "R holds itself"),
        (with_type({"type": "array", "items": "null"}), "an array whose items have no bytes"),
        ("[" * 100 + "]" * 100, "nests too deeply"),
        ("[" * 100_000 + "]" * 100_000, "too deep|not a schema"),
        (with_type({"type": "fixed", "name": "F", "size": "x"}), "not a schema of Avro"),
    ],
)
def test_schemas_that_cannot_be_read_say_why(schema: str, why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        AvroReader(parse(schema), ["a"])


def test_a_schema_that_grows_without_end_is_refused() -> None:
    fields: list[Any] = [{"name": "f", "type": "int"}]
    for level in range(40):
        kind = {"type": "record", "name": f"L{level}", "fields": fields}
        fields = [{"name": "f", "type": kind}, {"name": "g", "type": f"L{level}"}]
    with pytest.raises(SchemaError, match="more than 10000 types"):
        parse(json.dumps({"type": "record", "name": "R", "fields": fields}))


def test_names_are_found_in_their_namespaces_and_in_other_schemas() -> None:
    other = json.dumps({"type": "enum", "name": "x.Color", "symbols": ["RED"]})
    schema = {"type": "record", "name": "x.R", "fields": [
        {"name": "a", "type": "Color"}, {"name": "b", "type": "x.Color"},
        {"name": "c", "type": {"type": "record", "name": "y.S", "fields": [
            {"name": "d", "type": {"type": "fixed", "name": "F", "size": 1}}]}},
        {"name": "e", "type": "y.F"}]}  # fmt: skip
    reader = AvroReader(parse(json.dumps(schema), [other]), ["a", "b"])
    assert json.loads(reader.read(b"\0\0xx")) == {"a": "RED", "b": "RED"}
    with pytest.raises(SchemaError, match="no type is called"):
        parse(json.dumps(schema))


TIME = {"type": "long", "logicalType": "timestamp-micros"}
REC = {"type": "record", "name": "S", "fields": [{"name": "x", "type": "string"}]}
OTHER = {"type": "record", "name": "T", "fields": [
    {"name": "y", "type": "long"}, {"name": "x", "type": "string"}]}  # fmt: skip


@pytest.mark.parametrize(
    "union, field, value, read",
    [
        (["null", TIME, "string"], "a", 7_500, 7),
        (["null", TIME, "string"], "a", "2020-01-01", "2020-01-01"),
        (["null", REC, OTHER], "a.x", {"y": 5, "x": "e"}, "e"),
        (["null", REC, OTHER, "string"], "a.x", "text", None),
        (["null", {"type": "map", "values": "long"}], "a.x", {"x": 5, "z": 6}, 5),
        (["null", {"type": "array", "items": "long"}], "a.x", [5], None),
        ([{"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}], "a",
         UUID(int=7).bytes, str(UUID(int=7))),
    ],
)  # fmt: skip
def test_unions(union: Any, field: str, value: Any, read: Any) -> None:
    text = with_type(union)
    body = avro(json.loads(text.replace(', "logicalType": "uuid"', "")), {"a": value})
    data = AvroReader(parse(text), [field]).read(body)
    assert at(json.loads(data), field.split(".")) == read


@pytest.mark.parametrize(
    "union, field",
    [
        ([TIME, "int"], "a"),
        ([REC, {"type": "record", "name": "U", "fields": [{"name": "x", "type": TIME}]}], "a.x"),
    ],
)
def test_unions_of_what_cannot_be_told_apart_are_refused(union: Any, field: str) -> None:
    with pytest.raises(SchemaError, match="a union of"):
        AvroReader(parse(with_type(union)), [field])
    AvroReader(parse(with_type(union)), ["b"])  # where it does not matter


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_are_refused(value: float) -> None:
    text = with_type("double")
    with pytest.raises(RecordError, match="a number that is"):
        AvroReader(parse(text), ["a"]).read(avro(json.loads(text), {"a": value}))
    assert (
        json.loads(AvroReader(parse(text), ["b"]).read(avro(json.loads(text), {"a": value}))) == {}
    )


def test_what_is_not_mapped_need_not_be_text() -> None:
    text = with_type({"type": "map", "values": "string"})
    body = b"\x02\x02\xff\x02\xfe\0"  # a map with one key of one byte
    assert AvroReader(parse(text), ["b"]).read(body) == b"{}"
    with pytest.raises(RecordError):
        AvroReader(parse(text), ["a.b"]).read(body)


def test_what_is_wanted_whole_is_what_kafka_connect_writes() -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "scale": 2, "precision": 9,
               "connect.parameters": {"scale": "2"},
               "connect.name": "org.apache.kafka.connect.data.Decimal"}  # fmt: skip
    micro = {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}
    row = {"type": "record", "name": "Value", "fields": [
        {"name": "id", "type": "long"}, {"name": "price", "type": decimal},
        {"name": "at", "type": ["null", micro]}, {"name": "day", "type": lj("int", "date")},
        {"name": "x", "type": "double"}]}  # fmt: skip
    schema = {"type": "record", "name": "Envelope", "fields": [
        {"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", "Value"]},
        {"name": "op", "type": "string"}]}  # fmt: skip
    after = {"id": 7, "price": Decimal("12.34"), "at": 5, "day": date(1970, 1, 3), "x": math.nan}
    body = avro(schema, {"before": None, "after": after, "op": "c"})
    read = json.loads(AvroReader(parse(json.dumps(schema)), None).read(body))
    assert read["payload"] == {
        "before": None, "op": "c",
        "after": {"id": 7, "price": "BNI=", "at": 5, "day": 2, "x": "nan"},
    }  # fmt: skip
    fields = {each["field"]: each for each in read["schema"]["fields"]}
    columns = {each["field"]: each for each in fields["after"]["fields"]}
    assert columns["price"]["name"] == "org.apache.kafka.connect.data.Decimal"
    assert columns["price"]["parameters"] == {"scale": "2"}
    assert columns["at"]["name"] == "io.debezium.time.MicroTimestamp"
    assert columns["day"]["name"] == "org.apache.kafka.connect.data.Date"


def test_a_decimal_of_any_scale_is_a_number() -> None:
    variable = {"type": "record", "name": "V", "connect.name": ours._VARIABLE_DECIMAL, "fields": [
        {"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}]}  # fmt: skip
    text = with_type(["null", variable])
    body = avro(json.loads(text), {"a": {"scale": 1, "value": b"\x7b"}})
    assert json.loads(AvroReader(parse(text), ["a"]).read(body)) == {"a": 12.3}


@pytest.mark.parametrize("text", ["5", "5.0000", "-0.0001", "123456789012345.6789", "0", "1e-4"])
def test_decimals_are_integers_if_they_are_whole_and_else_the_nearest_float(text: str) -> None:
    schema = with_type(lj("bytes", "decimal", precision=20, scale=4))
    body = avro(json.loads(schema), {"a": Decimal(text)})
    found = json.loads(AvroReader(parse(schema), ["a"]).read(body))["a"]
    whole = Decimal(text) == int(Decimal(text))
    assert repr(found) == repr(int(Decimal(text)) if whole else float(text))


def test_a_large_array_of_nothing_is_no_bomb() -> None:
    """A few bytes that say that they are 2^40 items, of a type that has bytes."""
    text = with_type({"type": "array", "items": "int"})
    count = bytes([0x80] * 5 + [0x40])
    with pytest.raises(RecordError, match="not a record"):
        AvroReader(parse(text), ["b"]).read(count)
