"""What a change event says, and that many at once are read as each by itself.

The events are of the forms that Debezium's connectors write, with values of our own.
"""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest import Debezium, Fields, PipelineError, RecordError
from ingest.formats.debezium.changes import ChangeReader, Skipped
from ingest.formats.debezium.rows import ChangeRows
from ingest.formats.debezium.values import UNAVAILABLE
from ingest.formats.mapped import MAX_MAPPED_BYTES
from ingest.formats.row_reader import with_names
from ingest.types import Record, Values
from lpma import Kind

FOLLOWS = Debezium(Fields("who", "whom", weight="w", time="source.ts_ms"))
BY_ID = Debezium(Fields("who", "whom", weight="w", time="at"), on_repeat="last")
WRONG = Debezium(Fields("woh", "whom", weight="w", time="at"))
WRONG_LAST = Debezium(Fields("woh", "whom", weight="w", time="at"), on_repeat="last")
VERTICES = Debezium(Fields("who", default_kind="add_vertex"))
KEY = b'{"who": 1, "whom": 2}'
ROW = {"id": 7, "who": 1, "whom": 2, "w": 0.5, "at": 9}
DECIMAL = "org.apache.kafka.connect.data.Decimal"

Operations = list[tuple[Any, ...]]


def event(op: str, before: Any = None, after: Any = None, **more: Any) -> bytes:
    source = {"connector": "postgresql", "ts_ms": 5, "table": "follows", **more.pop("source", {})}
    content = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 6, **more}
    return json.dumps(content).encode()


def flat(**more: Any) -> bytes:
    return json.dumps({**ROW, **more}).encode()


def operations(record: Record) -> Operations:
    """(kind, src, dst, weight, time) of each; the weight of those that have one."""
    batch = record.batch
    names = record.names
    src, dst = (batch.src, batch.dst) if names is None else (names.src, names.dst)
    found = []
    for at, kind in enumerate(batch.kind.tolist()):
        weight = None
        if kind == Kind.SET:
            weight = 1.0 if batch.weight is None else float(batch.weight[at])
        time = None if batch.time is None else int(batch.time[at])
        ends = src[at], dst[at] if kind in (Kind.SET, Kind.DELETE) else None
        found.append((Kind(kind), *(e if isinstance(e, str | None) else int(e) for e in ends),
                      weight, time))  # fmt: skip
    return found


def read(
    table: Debezium, value: bytes | None, key: bytes = b"", *, names: bool = False,
    topic: str = "follows",
) -> Operations | str:  # fmt: skip
    reader = ChangeReader(table, names, topic, is_alone=True)
    found = reader.event(value, key)
    return found.what if isinstance(found, Skipped) else operations(reader.record(found))


SET, DELETE = Kind.SET, Kind.DELETE


@pytest.mark.parametrize(
    ("table", "value", "key", "expected"),
    [
        (FOLLOWS, event("c", None, ROW), KEY, [(SET, 1, 2, 0.5, 5)]),
        (FOLLOWS, event("r", None, ROW), KEY, [(SET, 1, 2, 0.5, 5)]),
        (FOLLOWS, event("u", None, ROW), KEY, [(SET, 1, 2, 0.5, 5)]),
        (FOLLOWS, event("u", ROW, {**ROW, "w": 2}), KEY, [(SET, 1, 2, 2.0, 5)]),
        (FOLLOWS, event("d", {"who": 1, "whom": 2}), KEY, [(DELETE, 1, 2, None, 5)]),
        (FOLLOWS, event("d", None), KEY, [(DELETE, 1, 2, None, 5)]),
        (FOLLOWS, event("c", None, {**ROW, "whom": None}), KEY, []),
        (FOLLOWS, event("c", None, {**ROW, "w": None}), KEY, [(SET, 1, 2, 1.0, 5)]),
        (FOLLOWS, event("m", None, None), KEY, "message"),
        (BY_ID, event("u", ROW, {**ROW, "whom": 3}), b'{"id": 7}',
         [(DELETE, 1, 2, None, 9), (SET, 1, 3, 0.5, 9)]),
        (BY_ID, event("u", {**ROW, "whom": None}, ROW), b'{"id": 7}', [(SET, 1, 2, 0.5, 9)]),
        (BY_ID, event("u", ROW, {**ROW, "whom": None}), b'{"id": 7}', [(DELETE, 1, 2, None, 9)]),
        (BY_ID, event("d", ROW), b'{"id": 7}', [(DELETE, 1, 2, None, 9)]),
        (BY_ID, event("c", None, ROW), b"", [(SET, 1, 2, 0.5, 9)]),
        (FOLLOWS, flat(__op="u", __source_ts_ms=5), KEY, [(SET, 1, 2, 0.5, 5)]),
        (FOLLOWS, flat(__deleted="false"), KEY, [(SET, 1, 2, 0.5, None)]),
        (FOLLOWS, flat(__deleted="true"), KEY, [(DELETE, 1, 2, None, None)]),
        (FOLLOWS, flat(), KEY, [(SET, 1, 2, 0.5, None)]),
        (FOLLOWS, flat(op="c", source="web"), KEY, [(SET, 1, 2, 0.5, None)]),
        (FOLLOWS, None, KEY, "tombstone"),
        (FOLLOWS, b'{"schema": null, "payload": null}', KEY, "tombstone"),
        (FOLLOWS, b'{"ts_ms": 5}', b'{"serverName": "shop"}', "heartbeat"),
        (FOLLOWS, b'{"status": "END", "id": "571:5", "event_count": 2, "data_collections": [], '
                  b'"ts_ms": 5}', b'{"id": "571:5"}', "transaction"),
        (FOLLOWS, b'{"source": {}, "databaseName": "shop", "ddl": "ALTER", "tableChanges": []}',
         b"", "schema change"),
    ],
)  # fmt: skip
def test_what_an_event_does(
    table: Debezium, value: bytes | None, key: bytes, expected: Operations | str
) -> None:
    assert read(table, value, key) == expected


@pytest.mark.parametrize(
    ("table", "value", "key", "says"),
    [
        (FOLLOWS, event("c", None, ROW), b'{"id": 7}', "on_repeat='last'"),
        (FOLLOWS, event("c", None, ROW), b"", "on_repeat='sum'"),
        (BY_ID, event("u", None, ROW), b'{"id": 7}', "REPLICA IDENTITY FULL"),
        (BY_ID, event("d", {"id": 7}), b'{"id": 7}', "REPLICA IDENTITY FULL"),
        (BY_ID, event("d", {"id": 7, "who": 0, "whom": 0, "w": 0.0}), b'{"id": 7}', "FULL"),
        (BY_ID, event("d", {"id": 7, "who": None, "whom": None}), b'{"id": 7}', "FULL"),
        (BY_ID, event("d", None, source={"connector": "mysql"}), b'{"id": 7}', "binlog_row_image"),
        (BY_ID, event("d", None, source={"connector": "oracle"}), b'{"id": 7}', "SUPPLEMENTAL"),
        (BY_ID, event("d", None, source={"connector": "sqlserver"}), b'{"id": 7}', "sp_cdc_enable"),
        (BY_ID, event("u", None, source={"connector": "mongodb"}), b'{"id": 7}', "capture.mode"),
        (BY_ID, event("u", {"id": 7, "who": 0, "whom": 0}, ROW, source={"connector": "mysql"}),
         b'{"id": 7}', "binlog_row_image"),
        (BY_ID, flat(__op="u"), b'{"id": 7}', "ExtractNewRecordState"),
        (BY_ID, event("c", None, {**ROW, "who": UNAVAILABLE}), b'{"id": 7}', "not in the log"),
        (BY_ID, event("u", None, {**ROW, "w": UNAVAILABLE}, source={"connector": "oracle"}),
         b'{"id": 7}', "SUPPLEMENTAL.*ReselectColumnsPostProcessor$"),
        (FOLLOWS, event("c", None, {"who": 1, "whom": 2}), KEY, "w: the row has no such column"),
        (FOLLOWS, event("c", None, {**ROW, "w": "AfQ="}), KEY, "decimal.handling.mode"),
        (FOLLOWS, event("x", None, ROW), KEY, "op"),
        (FOLLOWS, b"{}", KEY, "who: the row has no such column"),
        (FOLLOWS, b"Struct{id=1}", KEY, "JSON"),
        (FOLLOWS, event("c", None, ROW), b"Struct{id=1}", "the key is no JSON.*key.converter"),
        (FOLLOWS, event("c", None, ROW), b"7", "key is an object.*key.converter.*ExtractField"),
        (FOLLOWS, event("c", None, ROW), b'"7"', "key is an object.*key.converter.*ExtractField"),
        (FOLLOWS, event("c", None, ROW), b"\0\1", "the key is no JSON.*key.converter"),
        (FOLLOWS, event("c", None, {**ROW, "blob": "x" * MAX_MAPPED_BYTES}), KEY,
         "at most 1,048,576 here.*column.exclude.list"),
        # A name that is wrong comes before what several rows mean.
        (WRONG, event("c", None, ROW), b'{"id": 7}', "^woh: the row has no such column: it has "),
        (WRONG, event("d", ROW | {"id": 7}), b'{"id": 7}', "^woh: the row before has no such col"),
        (WRONG_LAST, event("d", ROW | {"id": 7}), b'{"id": 7}', "^woh: the row before has no such"),
        (Debezium(Fields("after.who", "whom")), event("c", None, ROW), b'{"id": 7}',
         "^after.who: the row has no such column: .*: name the column itself, who$"),
        (VERTICES, event("t"), b"", "rows are vertices"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said(table: Debezium, value: bytes, key: bytes, says: str) -> None:
    with pytest.raises(RecordError, match=says):
        read(table, value, key)


@pytest.mark.parametrize("column", ["who", "w"])
@pytest.mark.parametrize("is_flat", [False, True])
def test_a_sum_takes_a_value_that_is_not_in_the_log_of_the_row_before(
    column: str, is_flat: bool
) -> None:
    """Where none is remembered, it is not known."""
    row = {**ROW, column: UNAVAILABLE}
    reader = ChangeReader(Debezium(BY_ID.fields, on_repeat="sum"), False, "follows", is_alone=True)
    told = json.dumps({**row, "__op": "u"}).encode() if is_flat else event("u", None, row)
    found = reader.event(told, b'{"id": 7}')
    assert not isinstance(found, Skipped)
    with pytest.raises(RecordError, match=f"^{column}: .*REPLICA IDENTITY FULL") as raised:
        reader.table_row(found)
    assert "on_repeat" not in str(raised.value)
    known = found._replace(remembered=(5, 6, 7.0, 8))
    expected = (5, 2, 0.5, 9) if column == "who" else (1, 2, 7.0, 9)
    assert reader.table_row(known) == expected


@pytest.mark.parametrize("text", ["", "NaN", "Infinity", "1,5", "AfQ"])
def test_text_that_is_no_base64_is_no_decimal_without_its_schema(text: str) -> None:
    with pytest.raises(RecordError, match=r"^w: .* is no (finite )?number$"):
        read(FOLLOWS, event("c", None, {**ROW, "w": text}), KEY)


def test_text_beside_its_schema_is_no_decimal_without_it() -> None:
    value = with_schema(json.loads(event("c", None, {**ROW, "w": "AfQ="})), w={"type": "string"})
    with pytest.raises(RecordError, match=r"^w: 'AfQ=' is no number$"):
        read(FOLLOWS, value, KEY)


def with_schema(payload: dict[str, Any], **types: dict[str, Any]) -> bytes:
    row = [{"field": name, "type": "int64", **type} for name, type in types.items()]
    parts = [{"type": "struct", "field": part, "fields": row} for part in ("before", "after")]
    schema = {"type": "struct", "fields": parts, "name": "shop.follows.Envelope"}
    return json.dumps({"schema": schema, "payload": payload}).encode()


def base64(value: int, size: int) -> str:
    return b64encode(value.to_bytes(size, "big", signed=True)).decode()


@pytest.mark.parametrize(
    ("role", "value", "type", "expected"),
    [
        ("w", base64(12345, 3), {"name": DECIMAL, "parameters": {"scale": "2"}}, 123.45),
        ("w", base64(-1, 1), {"name": DECIMAL, "parameters": {"scale": "0"}}, -1.0),
        ("w", {"scale": 3, "value": base64(-2500, 2)}, {}, -2.5),
        ("w", "1e3", {}, 1000.0),
        ("who", {"scale": 0, "value": base64(300, 2)}, {}, 300),
        ("who", base64(77, 1), {"name": DECIMAL, "parameters": {"scale": "0"}}, 77),
        ("at", 19000, {"name": "io.debezium.time.Date"}, 19000 * 86_400_000),
        ("at", 19000, {"name": "org.apache.kafka.connect.data.Date"}, 19000 * 86_400_000),
        ("at", 1_600_000_000_123, {"name": "io.debezium.time.Timestamp"}, 1_600_000_000_123),
        ("at", 1_600_000_000_123_456, {"name": "io.debezium.time.MicroTimestamp"},
         1_600_000_000_123),
        ("at", 1_600_000_000_123_456_789, {"name": "io.debezium.time.NanoTimestamp"},
         1_600_000_000_123),
        ("at", "2020-09-13T12:26:40.5Z", {"name": "io.debezium.time.ZonedTimestamp"},
         1_600_000_000_500),
        ("at", "2020-09-13Z", {"name": "io.debezium.time.IsoDate"}, 1_599_955_200_000),
        ("at", 3_600_000_000, {"name": "io.debezium.time.MicroTime"}, 3_600_000),
    ],
)  # fmt: skip
def test_values_in_their_encodings(role: str, value: Any, type: Any, expected: Any) -> None:
    place = {"who": 1, "w": 3, "at": 4}[role]
    content = json.loads(event("c", None, {**ROW, role: value}))
    records = [with_schema(content, **{role: type}) if type else json.dumps(content).encode()]
    for record in records:
        found = read(BY_ID, record, b'{"id": 7}')
        assert found[0][place] == expected
        assert by_columns(BY_ID, [record], [b'{"id": 7}']) in ([found], [None])


def test_rows_of_mongodb_are_text() -> None:
    table = Debezium(Fields("from", "to", weight="w", time="at"), on_repeat="last")
    row = {"_id": {"$oid": "63"}, "from": {"$oid": "5b"}, "to": {"$numberLong": "8"},
           "w": {"$numberDecimal": "1.5"}, "at": {"$date": 7}}  # fmt: skip
    key = json.dumps({"id": json.dumps(row["_id"])}).encode()
    source = {"connector": "mongodb"}
    value = event("c", None, json.dumps(row), source=source)
    assert read(table, value, key, names=True) == [(SET, "5b", 8, 1.5, 7)]
    assert read(table, event("d", json.dumps(row), None, source=source), key, names=True) == [
        (DELETE, "5b", 8, None, 7)
    ]
    by_key = Debezium(Fields("_id.a", "_id.b"))
    key = json.dumps({"id": '{"a": 1, "b": 2}'}).encode()
    assert read(by_key, event("d", None, None, source=source), key) == [(DELETE, 1, 2, None, None)]


WHOLE = {"_id": 1, "who": 1, "whom": 2, "w": 0.5, "at": 9}


@pytest.mark.parametrize("repeat", ["last", "sum"])
@pytest.mark.parametrize(
    ("op", "before", "lacking", "expected"),
    [
        ("u", WHOLE, "whom", [(DELETE, 1, 2, None, 9)]),
        ("u", WHOLE, "w", [(SET, 1, 2, 1.0, 9)]),
        ("u", WHOLE, "at", [(SET, 1, 2, 0.5, None)]),
        ("c", None, "who", []),
        ("d", {"_id": 1, "who": 1}, None, []),
        ("d", {"_id": 1}, None, []),
        ("d", {**WHOLE, "who": 0}, None, [(DELETE, 0, 2, None, 9)]),
    ],
)
def test_a_field_that_a_document_of_mongodb_lacks_is_null(
    repeat: Any, op: str, before: Any, lacking: str | None, expected: Operations
) -> None:
    after = {name: value for name, value in WHOLE.items() if name != lacking}
    value = event(op, *(row and json.dumps(row) for row in (before, after if lacking else None)),
                  source={"connector": "mongodb"})  # fmt: skip
    table = Debezium(BY_ID.fields, on_repeat=repeat)
    key = b'{"id": "1"}'
    if repeat == "last":
        assert read(table, value, key) == expected
        return
    reader = ChangeReader(table, False, "follows", is_alone=True)
    found = reader.event(value, key)
    assert not isinstance(found, Skipped)
    sets = [(*of[1:4], of[4]) for of in expected if of[0] is SET]
    assert reader.table_row(found) == (sets[0] if sets else None)


@pytest.mark.parametrize("op", ["c", "u"])
def test_a_time_that_is_not_in_the_log_is_that_of_before(op: str) -> None:
    row = {**ROW, "at": UNAVAILABLE}
    key = b'{"id": 7}'
    assert read(BY_ID, event(op, ROW, row), key) == [(SET, 1, 2, 0.5, 9)]
    assert by_columns(BY_ID, [event(op, ROW, row)], [key]) == [None]
    before = {name: value for name, value in ROW.items() if name != "at"}
    for known in (None if op == "c" else before, {**ROW, "at": UNAVAILABLE}):
        with pytest.raises(RecordError, match="at: the value did not change, and is not in the l"):
            read(BY_ID, event(op, known, row), key)


def test_tables_of_vertices() -> None:
    users = Debezium(Fields("id", default_kind="add_vertex"), on_tombstone="delete")
    key = b'{"id": 7}'
    assert read(users, event("c", None, {"id": 7}), key) == [(Kind.ADD_VERTEX, 7, None, None, None)]
    removed = [(Kind.REMOVE_VERTEX, 7, None, None, None)]
    assert read(users, event("d", {"id": 7}), key) == removed
    assert read(users, None, key) == removed
    with pytest.raises(RecordError, match="key of the table is email"):
        read(users, event("c", None, {"id": 7}), b'{"email": "a"}')


def test_tombstones_delete_if_that_is_said() -> None:
    table = Debezium(Fields("who", "whom"), on_tombstone="delete")
    assert read(table, None, KEY) == [(DELETE, 1, 2, None, None)]
    schema = b'{"schema": {"type": "struct", "fields": []}, "payload": {"who": 1, "whom": 2}}'
    assert read(table, None, schema) == [(DELETE, 1, 2, None, None)]
    with pytest.raises(RecordError, match="without a key"):
        read(table, None, b"")


def test_a_truncation_is_an_expiry_of_all_where_nothing_else_is_read() -> None:
    truncation = event("t")
    assert read(FOLLOWS, truncation, topic="shop.public.follows") == [
        (Kind.EXPIRE, 0, None, None, 2**63 - 1)
    ]
    for topic in ("shop.public.all_tables", "all_tables", "unfollows", "shop.unfollows"):
        with pytest.raises(RecordError, match="cannot be known"):
            read(FOLLOWS, truncation, topic=topic)
    dotted = event("t", source={"table": "old.follows"})
    assert read(FOLLOWS, dotted, topic="shop.public.old.follows")
    with pytest.raises(RecordError, match="cannot be known"):
        read(FOLLOWS, dotted, topic="shop.public.follows")
    beside_others = ChangeReader(FOLLOWS, False, "follows")
    found = beside_others.event(truncation, b"")
    with pytest.raises(RecordError, match="cannot be known"):
        beside_others.record(found)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given",
    [
        {"on_tombstone": "drop"},
        {"on_repeat": "first"},
        {"fields": Fields("a", "b", kind="k")},
        {"fields": Fields("a", "b", producer="p", seq="q")},
        {"fields": Fields("a", default_kind="delete")},
        {"fields": Fields("a", default_kind="add_vertex"), "on_repeat": "sum"},
    ],
)
def test_settings_that_make_no_sense_are_refused(given: Any) -> None:
    with pytest.raises(PipelineError):
        Debezium(**given)


# Many at once --------------------------------------------------------------------------------


def by_columns(
    table: Debezium, values: list[bytes], keys: list[bytes], *, names: bool = False
) -> list[Operations | None]:
    """What is read of each record at once; None of one that is left."""
    given = Values.of(values)
    given.keys = Values.of_keys(keys)
    found: list[Operations | None] = []
    for stretch in ChangeRows(table, names, "follows", True).stretches(given):
        assert stretch.start == len(found)
        if stretch.rows is None:
            found += [None] * (stretch.stop - stretch.start)
            continue
        rows = with_names(stretch.rows, stretch.ends)
        every = operations(Record(rows, names=rows if names else None))  # type: ignore[arg-type]
        found += [[each] for each in every]
    assert len(found) == len(values)
    return found


odd: st.SearchStrategy[Any] = st.sampled_from([
    None, True, 2.0, -1, 2**40, "", "a", "2020-01-01", UNAVAILABLE, {}, [],
    {"scale": 0, "value": "AQ=="}, "AQ==", 1e31,
])  # fmt: skip
ends = st.integers(0, 3) | st.sampled_from(["ann", "bob", 0]) | odd
rows = st.fixed_dictionaries(
    {"id": st.integers(0, 9), "who": ends, "whom": ends},
    optional={"w": st.floats(0, 9) | st.integers(-1, 9) | odd, "at": st.integers(0, 99) | odd,
              "op": st.just("c"), "note": st.just("x" * 300)},
)  # fmt: skip
types: st.SearchStrategy[dict[str, Any]] = st.sampled_from([
    {}, {"w": {"name": DECIMAL, "parameters": {"scale": "1"}}},
    {"at": {"name": "io.debezium.time.Date"}, "who": {"name": DECIMAL}},
    {"at": {"name": "io.debezium.time.MicroTimestamp"}}, {"who": {"name": 5}},
])  # fmt: skip


@st.composite
def records(draw: st.DrawFn) -> tuple[bytes, bytes]:
    row = draw(rows)
    by_id = draw(st.booleans())
    key = {"id": row["id"]} if by_id else {"who": row["who"], "whom": row["whom"]}
    op = draw(st.sampled_from("crudtmx"))
    content: dict[str, Any]
    if draw(st.integers(0, 3)):
        before = draw(st.none() | st.just(row) | rows | st.just(key) | odd)
        after = draw(st.just(None if op == "d" else row) | st.none())
        source = draw(st.just({"connector": "postgresql", "ts_ms": 5}) | st.none() | st.just({}) |
                      st.just({"connector": "mysql", "ts_ms": "2020-01-01"}))  # fmt: skip
        content = {"before": before, "after": after, "source": source, "op": op}
        content |= draw(st.sampled_from([{}, {"ts_ms": 6}]))
    else:
        content = row | draw(st.sampled_from([{}, {"__op": op}]))
        content |= draw(st.sampled_from([{}, {"__deleted": "true"}, {"__deleted": False},
                                         {"__source_ts_ms": 5}]))  # fmt: skip
    value = json.dumps(content).encode()
    if draw(st.booleans()):
        value = with_schema(content, **draw(types))
    said = json.dumps(key).encode()
    if draw(st.booleans()):
        said = json.dumps({"schema": {"type": "struct", "fields": []}, "payload": key}).encode()
    other = st.sampled_from([b"", b"null", b"{}", b"7", b'{"id": {"a": 1}}', b"{}\n{}"])
    broken = st.sampled_from([b"", b"{}", b"{", b"\x82\xa3src\x01\xa3dst\x02", b"[1]", b"{}\n{}"])
    return (draw(st.just(value) | broken) if draw(st.integers(0, 9)) == 0 else value,
            draw(other) if draw(st.integers(0, 9)) == 0 else said)  # fmt: skip


tables = st.builds(
    Debezium,
    st.builds(
        Fields, st.just("who"), st.just("whom"), weight=st.sampled_from([None, "w"]),
        time=st.sampled_from([None, "at", "ts_ms", "source.ts_ms", "source.ts_us"]),
        time_unit=st.sampled_from([None, "s", "us"]), default_weight=st.sampled_from([1.0, 2.5]),
    ),
    on_repeat=st.sampled_from([None, "last"]),
)  # fmt: skip


@given(tables | st.just(Debezium(Fields("id", default_kind="add_vertex"))),
       st.lists(records(), min_size=1, max_size=8), st.booleans())  # fmt: skip
@settings(deadline=None)
def test_many_at_once_are_read_as_each_by_itself(
    table: Debezium, given: list[tuple[bytes, bytes]], names: bool
) -> None:
    values, keys = [value for value, _ in given], [key for _, key in given]
    found = by_columns(table, values, keys, names=names)
    for value, key, many in zip(values, keys, found, strict=True):
        if many is not None:
            assert many == read(table, value, key, names=names)


def test_plain_events_are_read_at_once() -> None:
    """Or all of the above would hold of a reader that reads nothing."""
    rows = [{"id": n, "who": n, "whom": n + 1, "w": 0.5, "at": n} for n in range(1, 40)]
    content = [event("cru"[n % 3], row if n % 3 == 2 else None, row) for n, row in enumerate(rows)]
    content += [event("d", row) for row in rows]
    keys = [json.dumps({"id": row["id"]}).encode() for row in rows * 2]
    days = {"name": "io.debezium.time.Date"}
    typed = [with_schema(json.loads(each), at=days) for each in content]
    flattened = [json.dumps({**row, "__op": "c"}).encode() for row in rows]
    assert None not in by_columns(BY_ID, content, keys)
    assert None not in by_columns(BY_ID, typed, keys)
    assert None not in by_columns(BY_ID, flattened, keys[: len(rows)])
    by_ends = [json.dumps({"whom": row["whom"], "who": row["who"]}).encode() for row in rows]
    updates = [event("u", None, row) for row in rows]
    assert None not in by_columns(FOLLOWS, updates, by_ends)
    assert by_columns(FOLLOWS, updates, keys[: len(rows)]) == [None] * len(rows)
