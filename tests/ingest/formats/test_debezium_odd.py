"""Tables and topics that are not as one expects: what is understood leaves the right edges, what is
not becomes a dead letter that says why, and nothing else becomes an edge."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lpma
from ingest import DeadLetter, Debezium, Fields, Pipeline, SqliteLog
from ingest.errors import RecordError
from ingest.formats.debezium.values import weight_of
from tests.conftest import soak
from tests.support.cdc.cases import weights_of

ENDS = Debezium(Fields("src", "dst", weight="w"))
SUM = Debezium(Fields("src", "dst", weight="w"), on_repeat="sum")
LAST = Debezium(Fields("src", "dst", weight="w"), on_repeat="last")


class Told(NamedTuple):
    """A record of a topic. `none`: no value at all."""

    key: Any
    value: Any
    none: bool = False


def event(op: str, before: Any, after: Any, connector: str = "mysql", **source: Any) -> Any:
    told = {"connector": connector, "table": "t", "ts_ms": 5, "snapshot": "false", **source}
    return {"before": before, "after": after, "source": told, "op": op, "ts_ms": 6}


def row(src: Any, dst: Any, w: Any = 1.0, **more: Any) -> dict[str, Any]:
    return {**more, "src": src, "dst": dst, "w": w}


def changed(key: Any, op: str, before: Any, after: Any, connector: str = "mysql") -> Told:
    return Told(key, event(op, before, after, connector))


def ends(src: Any, dst: Any) -> dict[str, Any]:
    return {"src": src, "dst": dst}


def made(src: Any, dst: Any, w: Any = 1.0) -> Told:
    """The insertion of a row whose key is its ends."""
    return changed(ends(src, dst), "c", None, row(src, dst, w))


def read(
    records: Any, told: list[Told], names: bool = True, polled: int = 500
) -> tuple[dict[Any, float], dict[int, str]]:
    """The edges that are left, and why records were refused, by offset."""
    with SqliteLog(":memory:", topics=("shop.t",)) as log:
        log.create_topic("shop.t")
        values = [None if each.none else _bytes(each.value) for each in told]
        keys = [None if each.key is None else _bytes(each.key) for each in told]
        log.produce_many("shop.t", values, keys=keys)
        graph = lpma.Graph(device="cpu", weight_dtype="float64", names=names)
        letters: list[DeadLetter] = []
        options: Any = {"records": records, "names": names, "dead_letters": letters.append}
        with Pipeline(log, graph, poll_records=polled, **options) as pipeline:
            pipeline.run("end")
        return weights_of(graph), {letter.offset: letter.reason for letter in letters}


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return json.dumps(value, ensure_ascii=False).encode()


def _decimal(name: str) -> dict[str, Any]:
    return {"type": "bytes", "optional": False, "name": "org.apache.kafka.connect.data.Decimal",
            "version": 1, "parameters": {"scale": "0"}, "field": name}  # fmt: skip


DECIMALS = {"type": "struct", "optional": True, "name": "s.t.Value",
            "fields": [_decimal("src"), _decimal("dst")]}  # fmt: skip


# Understood ------------------------------------------------------------------------------------

UNDERSTOOD: dict[str, tuple[Any, list[Told], dict[Any, float]]] = {
    "a column called op": (
        ENDS,
        [changed(ends(1, 2), "c", None, row(1, 2, 3.0, op="d", source="x", ts_ms="y"))],
        {(1, 2): 3.0},
    ),
    "columns called before and after": (
        Debezium(Fields("before", "after", weight="op")),
        [changed({"before": 1, "after": 2}, "c", None, {"before": 1, "after": 2, "op": 4.0})],
        {(1, 2): 4.0},
    ),
    "flattened, with columns called before and after": (
        Debezium(Fields("before", "after")),
        [Told({"before": 1, "after": 2}, {"before": 1, "after": 2, "__deleted": "false"}),
         Told({"before": 3, "after": 2}, {"before": 3, "after": 2, "__deleted": "false"}),
         Told({"before": 1, "after": 2}, {"before": 1, "after": 2, "__deleted": "true"})],
        {(3, 2): 1.0},
    ),
    "flattened, with columns of Debezium's other records": (
        ENDS,
        [Told(ends(1, 2), row(1, 2, 3.0, status="BEGIN", id="1", event_count=2, ts_ms=5)),
         Told(ends(3, 4), row(3, 4, 4.0, ddl="x", databaseName="y", ts_ms=5)),
         Told(ends(5, 6), row(5, 6, 5.0, op="c", source="web", message="hello")),
         Told(ends(7, 8), row(7, 8, 6.0, schema="s", payload="p", before=None, after="x"))],
        {(1, 2): 3.0, (3, 4): 4.0, (5, 6): 5.0, (7, 8): 6.0},
    ),
    "an end that becomes null, and comes back": (
        SUM,
        [changed({"id": 1}, "c", None, row(1, 2, 3.0, id=1)),
         changed({"id": 2}, "c", None, row(1, 2, 4.0, id=2)),
         changed({"id": 1}, "u", row(1, 2, 3.0, id=1), row(1, None, 3.0, id=1)),
         changed({"id": 2}, "u", row(1, 2, 4.0, id=2), row(None, None, 4.0, id=2)),
         changed({"id": 1}, "u", row(1, None, 3.0, id=1), row(1, 7, 3.0, id=1))],
        {(1, 7): 3.0},
    ),
    "rows that never have ends": (
        SUM,
        [changed({"id": 1}, "c", None, row(None, 2, id=1)),
         changed({"id": 1}, "u", row(None, 2, id=1), row(None, 3, id=1)),
         changed({"id": 1}, "d", row(None, 3, id=1), None)],
        {},
    ),
    "huge integers, and negative ones": (
        ENDS, [made(2**64 - 1, -(2**63)), made(2**53 + 1, 0)],
        {(2**64 - 1, -(2**63)): 1.0, (2**53 + 1, 0): 1.0},
    ),
    "numbers as text are names of their own": (
        ENDS, [made("5", 5), made(5, "5", 2.0)], {("5", 5): 1.0, (5, "5"): 2.0},
    ),
    "names of any script": (
        ENDS, [made("żółć", "金沙河"), made("a\"b\\c\n", "\U0001f600")],
        {("żółć", "金沙河"): 1.0, ("a\"b\\c\n", "\U0001f600"): 1.0},
    ),
    "bytes that are not UTF-8 in another column": (
        ENDS, [Told(ends(1, 2), b'{"op":"c","after":{"src":1,"dst":2,"w":3.5,"note":"\xff"}}')],
        {(1, 2): 3.5},
    ),
    "a large row": (
        ENDS, [changed(ends(1, 2), "c", None, row(1, 2, 3.0, blob="x" * 900_000))], {(1, 2): 3.0},
    ),
    "a column that comes later, and the others in another order": (
        ENDS,
        [made(1, 2), changed(ends(1, 2), "u", row(1, 2), row(1, 2, 5.0, extra=[1])),
         changed(ends(3, 4), "c", None, {"w": 2.0, "note": "", "dst": 4, "src": 3})],
        {(1, 2): 5.0, (3, 4): 2.0},
    ),
    "sums, where before holds the key alone": (
        SUM,
        [changed({"id": 1}, "c", None, row(1, 2, 3.0, id=1), "postgresql"),
         changed({"id": 2}, "c", None, row(1, 2, 4.0, id=2), "postgresql"),
         changed({"id": 3}, "c", None, row(1, 2, 8.0, id=3), "postgresql"),
         changed({"id": 1}, "d", {"id": 1, "src": 0, "dst": 0, "w": 0.0}, None, "postgresql"),
         changed({"id": 2}, "u", None, row(7, 8, 4.0, id=2), "postgresql"),
         changed({"id": 9}, "d", {"id": 9}, None, "postgresql")],
        {(1, 2): 8.0, (7, 8): 4.0},
    ),
    "full and flattened envelopes in one topic": (
        ENDS,
        [made(1, 2), Told(ends(1, 2), {**row(1, 2, 8.0), "__op": "u", "__deleted": "false"}),
         Told(ends(3, 4), row(3, 4, 2.0)),
         changed(ends(3, 4), "u", row(3, 4, 2.0), row(3, 4, 9.0)),
         Told(ends(1, 2), {**row(1, 2, 8.0), "__op": "d", "__deleted": "true"})],
        {(3, 4): 9.0},
    ),
    "an end that is a path": (
        Debezium(Fields("from.id", "to.id")),
        [changed({"_id": 1}, "c", None, {"from": {"id": 1}, "to": {"id": 2}})
         ._replace(key={"from.id": 1, "to.id": 2})],
        {(1, 2): 1.0},
    ),
    "a weight of 0 or less is no edge": (
        ENDS,
        [made(1, 2, 0), made(3, 4, -1.5), made(5, 6, 2),
         changed(ends(5, 6), "u", row(5, 6, 2), row(5, 6, 0)),
         changed(ends(3, 4), "u", row(3, 4, -1.5), row(3, 4, 1.5))],
        {(3, 4): 1.5},
    ),
    "with last, the last change decides": (
        LAST,
        [changed({"id": 1}, "c", None, row(1, 2, 3.0, id=1)),
         changed({"id": 2}, "c", None, row(1, 2, 4.0, id=2)),
         changed({"id": 3}, "c", None, row(5, 6, 4.0, id=3)),
         changed({"id": 4}, "c", None, row(5, 6, 7.0, id=4)),
         changed({"id": 3}, "d", row(5, 6, 4.0, id=3), None)],
        {(1, 2): 4.0},
    ),
    "a row that is read again counts once": (
        SUM,
        [changed({"id": 1}, "r", None, row(1, 2, 3.0, id=1)),
         changed({"id": 1}, "r", None, row(1, 2, 3.0, id=1)),
         changed({"id": 1}, "u", row(1, 2, 3.0, id=1), row(1, 2, 4.0, id=1)),
         changed({"id": 1}, "u", row(1, 2, 3.0, id=1), row(1, 2, 4.0, id=1)),
         changed({"id": 1}, "r", None, row(1, 3, 4.0, id=1))],
        {(1, 3): 4.0},
    ),
    "a payload whose schema is null": (
        ENDS, [Told({"schema": None, "payload": ends(1, 2)},
                    {"schema": None, "payload": event("c", None, row(1, 2))})],
        {(1, 2): 1.0},
    ),
    "ends and amounts that are decimals of any scale": (
        ENDS,
        [changed(ends({"scale": 0, "value": "AQ=="}, {"scale": -2, "value": "Aw=="}), "c", None,
                 row({"scale": 0, "value": "AQ=="}, {"scale": -2, "value": "Aw=="},
                     {"scale": -1, "value": "Ag=="}), "oracle")],
        {(1, 300): 20.0},
    ),
    "ends that are decimals by their schema": (
        ENDS,
        [Told({"schema": DECIMALS, "payload": ends("AQ==", "AP8=")},
              {"schema": {"type": "struct", "fields": [{**DECIMALS, "field": "after"}]},
               "payload": event("c", None, row("AQ==", "AP8=", 2.5))})],
        {(1, 255): 2.5},
    ),
    "one table by two spellings of its key": (
        SUM,
        [changed({"id": 1}, "c", None, row(1, 2, 3.0, id=1)),
         Told({"schema": {"type": "struct", "fields": []}, "payload": {"id": 1}},
              event("u", row(1, 2, 3.0, id=1), row(1, 2, 9.0, id=1))),
         Told(b'{ "id" : 1 }', event("d", row(1, 2, 9.0, id=1), None)),
         changed({"id": 2}, "c", None, row(1, 2, 0.5, id=2))],
        {(1, 2): 0.5},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNDERSTOOD)
def test_what_is_odd_and_understood(name: str) -> None:
    records, told, expected = UNDERSTOOD[name]
    edges, reasons = read(records, told)
    assert (edges, reasons) == (expected, {})


# Refused ---------------------------------------------------------------------------------------

PLACEHOLDER = "__debezium_unavailable_value"
KEY_ONLY = {"id": 1, "src": 0, "dst": 0, "w": 0.0}  # NOT NULL columns, REPLICA IDENTITY DEFAULT

REFUSED: dict[str, tuple[Any, Told, str]] = {
    "a before that holds the key alone, with last": (
        LAST, changed({"id": 9}, "d", {"id": 9}, None, "postgresql"), "REPLICA IDENTITY",
    ),
    "an update without before, with last": (
        LAST, changed({"id": 9}, "u", None, row(1, 2, id=9), "postgresql"), "REPLICA IDENTITY",
    ),
    "columns that are told as 0 where they are not told": (
        LAST, changed({"id": 1}, "d", KEY_ONLY, None, "postgresql"), "REPLICA IDENTITY",
    ),
    "a value that Postgres kept apart, as an end": (
        LAST, changed({"id": 9}, "c", None, row(PLACEHOLDER, 2, id=9), "postgresql"), "src",
    ),
    "ends that are no key, where nobody said what repeats mean": (
        ENDS, changed({"id": 9}, "c", None, row(1, 2, id=9)), "on.repeat",
    ),
    "no such column": (ENDS, changed(ends(1, 2), "c", None, {"a": 1, "b": 2}), "src"),
    "a column of the key that was renamed": (
        ENDS, changed({"from": 1, "dst": 2}, "c", None, {"from": 1, "dst": 2}),
        "src: the row has no such column: it has from, dst",
    ),
    "a column that was dropped": (ENDS, changed(ends(1, 2), "c", None, ends(1, 2)), "w"),
    "no such column, flattened": (ENDS, Told(ends(1, 2), {"a": 1, "b": 2}), "src"),
    "no such column, flattened, with what the transform adds": (
        ENDS, Told(ends(1, 2), {"a": 1, "__op": "c", "__deleted": "false"}), "src",
    ),
    "a truth value as an end": (ENDS, made(True, 2), "src"),
    "an object as an end": (ENDS, made({"value": 1, "set": True}, 2), "src"),
    "a list as an end": (ENDS, made([1], 2), "src"),
    "half an integer as an end": (ENDS, made(1.5, 2), "src"),
    "an empty name": (ENDS, made("", 2), "src"),
    "an amount that is no number": (ENDS, made(1, 2, "NaN"), "w"),
    "an amount in words": (ENDS, made(1, 2, "three"), "w"),
    "an amount of bytes whose scale nobody says": (ENDS, made(1, 2, "AMg="), "w"),
    "Avro's JSON, which names types": (
        ENDS, changed(ends(1, 2), "c", None, {"shop.t.Value": row(1, 2)}), "src",
    ),
    "no op that there is": (ENDS, changed(ends(1, 2), "x", None, row(1, 2)), "op"),
    "a creation of nothing": (ENDS, changed(ends(1, 2), "c", None, None), "after"),
    "a deletion of nothing": (LAST, changed(None, "d", None, None), "which edge"),
    "one end of two that the key tells, of a row that was": (
        ENDS, changed({"src": 5}, "d", {"src": 5, "dst": 0, "w": 0.0}, None, "postgresql"),
        "REPLICA IDENTITY",
    ),
    "one end of two that the key tells, of a row that changed": (
        ENDS, changed({"src": 5}, "u", None, row(5, 6), "postgresql"), "REPLICA IDENTITY",
    ),
    "an update that says what changed alone": (
        SUM, Told({"id": "1"}, {**event("u", None, None, "mongodb"), "updateDescription":
                                {"updatedFields": '{"w": 3}', "removedFields": None}}),
        "capture.mode",
    ),
    "an integer of more than 64 bits": (ENDS, made(2**64, 1), "src"),
    "a sum of a table without a key": (SUM, changed(None, "c", None, row(1, 2)), "key"),
    "no JSON": (ENDS, Told(ends(1, 2), b"\x00\x00\x00\x00\x01abc"), ""),
    "text": (ENDS, Told(ends(1, 2), "hello"), ""),
    "an empty object": (ENDS, Told(ends(1, 2), {}), ""),
    "more than a record may have": (
        ENDS, changed(ends(1, 2), "c", None, row(1, 2, blob="x" * 1_100_000)), "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_understood_is_a_dead_letter(name: str) -> None:
    """The records around it are read."""
    records, told, reason = REFUSED[name]
    if records == ENDS:
        around = [made(21, 22, 2.0), told, made(23, 24, 3.0)]
    else:
        around = [changed({"id": 21}, "c", None, row(21, 22, 2.0, id=21)), told,
                  changed({"id": 23}, "c", None, row(23, 24, 3.0, id=23))]  # fmt: skip
    edges, reasons = read(records, around)
    assert edges == {(21, 22): 2.0, (23, 24): 3.0}
    assert reasons.keys() == {1}
    assert re.search(reason, reasons[1]), reasons[1]


# Passed over -----------------------------------------------------------------------------------

NO_CHANGES = {
    "tombstone": Told(ends(1, 2), None, none=True),
    "heartbeat": Told({"serverName": "shop"}, {"ts_ms": 5}),
    "transaction": Told(
        {"id": "571"}, {"status": "BEGIN", "id": "571", "event_count": None, "ts_ms": 5}
    ),
    "schema change": Told(
        {"databaseName": "shop"},
        {"source": {"connector": "mysql"}, "databaseName": "shop", "ddl": "CREATE TABLE t ()",
         "tableChanges": []},
    ),
    "message": Told(
        {"prefix": "p"},
        {"op": "m", "source": {"connector": "postgresql"}, "message": {"prefix": "p"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("schemas", [False, True])
@pytest.mark.parametrize("name", NO_CHANGES)
def test_what_is_no_change_is_passed_over_and_counted(name: str, schemas: bool) -> None:
    told = NO_CHANGES[name]
    if schemas and not told.none:
        told = told._replace(value={"schema": {"type": "struct"}, "payload": told.value})
    with SqliteLog(":memory:", topics=("shop.t",)) as log:
        log.create_topic("shop.t")
        for each in (made(1, 2), told, made(3, 4)):
            log.produce("shop.t", None if each.none else _bytes(each.value), key=_bytes(each.key))
        letters: list[DeadLetter] = []
        graph = lpma.Graph(device="cpu")
        with Pipeline(log, graph, records=ENDS, dead_letters=letters.append) as pipeline:
            pipeline.run("end")
            assert pipeline.stats.skipped == {name: 1}
        assert weights_of(graph) == {(1, 2): 1.0, (3, 4): 1.0}
        assert not letters


# All at once, and one by one -------------------------------------------------------------------


def _told() -> list[Told]:
    """Every record above."""
    odd = [each for _, told, _ in UNDERSTOOD.values() for each in told]
    return [*odd, *(told for _, told, _ in REFUSED.values()), *NO_CHANGES.values()]


def _spoilt(value: Any, at: int, new: bytes) -> bytes:
    data = _bytes(value)
    at %= len(data) + 1
    return data[:at] + new + data[at + len(new) // 2 :]


odd_values = st.sampled_from([b'"', b"}", b",", b"1", b"e9", b"null", b"-", b'"src":8,',
                              b"NaN", b" ", b"[", b'"op":"d",', b"\\u0000", b"0", b"\xff",
                              b'"\xff":1,'])  # fmt: skip
usual = st.builds(
    lambda id, src, dst, w, op: changed(
        {"id": id}, op, None if op == "c" else row(src, dst, 1.0, id=id),
        None if op == "d" else row(src, dst, w, id=id),
    ),
    st.integers(1, 5), st.integers(1, 4), st.integers(1, 4), st.sampled_from([0.5, 1, 2.5]),
    st.sampled_from("cud"),
)  # fmt: skip
known = st.sampled_from(_told())
small = usual | known.filter(lambda told: len(_bytes(told.value)) < 10_000)
spoilt = st.builds(
    lambda told, at, new: told if told.none else told._replace(value=_spoilt(told.value, at, new)),
    small, st.integers(0, 2000), odd_values,
) | st.builds(
    lambda told, at, new: told._replace(key=_spoilt(told.key, at, new)),
    small, st.integers(0, 40), odd_values,
)  # fmt: skip


@pytest.mark.soak
@given(st.sampled_from([ENDS, LAST, SUM]), st.lists(usual | known | spoilt, max_size=30))
@settings(max_examples=soak(60, 5000), deadline=None)
def test_records_are_read_at_once_as_one_by_one(records: Any, told: list[Told]) -> None:
    """The same edges, and the same dead letters for the same reasons."""
    assert read(records, told) == read(records, told, polled=1)


@pytest.mark.parametrize("at", ["around", "before", "after", "source", "flattened", "key"])
@pytest.mark.parametrize("records", [ENDS, LAST, SUM])
def test_a_name_that_is_not_utf8_is_read_at_once_as_one_by_one(records: Any, at: str) -> None:
    key, value = ends(1, 2), event("u", row(1, 2), row(1, 2, 3.0))
    told = Told(key, row(1, 2)) if at == "flattened" else Told(key, value)
    spoils = {"around": b"{", "flattened": b"{", "source": b'"source": {', "before": b'"before": {',
              "after": b'"after": {'}  # fmt: skip
    if at == "key":
        odd = told._replace(key=_bytes(key).replace(b"{", b'{"\xff":1, ', 1))
    else:
        opening = spoils[at]
        data = _bytes(told.value)
        assert opening in data
        odd = told._replace(value=data.replace(opening, opening + b'"\xff":1, ', 1))
    around = [made(21, 22, 2.0), odd, Told(ends(3, 4), b"bad"), made(23, 24, 3.0)]
    for some in (around, around[:2], [odd]):
        assert read(records, some) == read(records, some, polled=1)


@pytest.mark.parametrize("text", ["1_000", " 7 ", "٣", "0x10", "1e"])
def test_text_that_only_python_reads_as_a_number_is_no_weight(text: str) -> None:
    with pytest.raises(RecordError, match="no number"):
        weight_of(text)


@pytest.mark.parametrize("text, weight", [("7", 7.0), ("-0.5", -0.5), (".5", 0.5), ("1E+3", 1e3)])
def test_text_that_databases_write_is_a_weight(text: str, weight: float) -> None:
    assert weight_of(text) == weight
