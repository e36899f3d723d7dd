"""A history in the words of Debezium's connectors: keys and values of a topic, as JSON.

Sources: the pages of Debezium 3.6 on each connector and on ExtractNewRecordState, its class
JdbcValueConverters, and records that people captured (`data/debezium`). What differs between
connectors and matters here: the fields of `source`; how numbers and times are encoded; how much of
a row `before` shows; and MongoDB, whose rows are text that holds extended JSON.

Postgres with REPLICA IDENTITY DEFAULT has the key alone in `before`. The other columns are null
where they may be, and else what the connector puts for NULL: 0, "", the epoch.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal, NamedTuple, get_args

from .database import DAY_MS, Change, Row, Table

Connector = Literal["postgresql", "mysql", "sqlserver", "oracle", "mongodb"]
CONNECTORS: tuple[Connector, ...] = ("postgresql", "mysql", "sqlserver", "oracle", "mongodb")

Amounts = Literal["integer", "double", "string", "decimal", "variable"]
AMOUNTS: tuple[Amounts, ...] = ("integer", "double", "string", "decimal", "variable")
SCALE = 3

Times = Literal["ms", "us", "ns", "days", "iso", "connect", "connect days", "iso date"]
TIMES: dict[Times, tuple[str, str]] = {  # the schema's type and name
    "ms": ("int64", "io.debezium.time.Timestamp"),
    "us": ("int64", "io.debezium.time.MicroTimestamp"),
    "ns": ("int64", "io.debezium.time.NanoTimestamp"),
    "days": ("int32", "io.debezium.time.Date"),
    "iso": ("string", "io.debezium.time.ZonedTimestamp"),
    "iso date": ("string", "io.debezium.time.IsoDate"),
    "connect": ("int64", "org.apache.kafka.connect.data.Timestamp"),
    "connect days": ("int32", "org.apache.kafka.connect.data.Date"),
}
WHOLE_DAYS = ("days", "connect days", "iso date")

Deletes = Literal["drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone"]
DELETES: tuple[Deletes, ...] = get_args(Deletes)


@dataclass(frozen=True)
class Encoding:
    """How a connector was set up. schemas: `schemas.enable` of the converters. full: whether
    `before` shows whole rows. flattened: by ExtractNewRecordState, with this handling of
    deletions; with_op: with `add.fields=op,source.ts_ms`. tombstones: `tombstones.on.delete`."""

    connector: Connector = "postgresql"
    schemas: bool = True
    key_schemas: bool = True
    amounts: Amounts = "double"
    times: Times = "ms"
    full: bool = True
    flattened: Deletes | None = None
    with_op: bool = True
    tombstones: bool = True
    padding: int = 0  # characters of a column more, for records of a size


class Message(NamedTuple):
    """A record of the topic, and the change that it is of; None: a tombstone or a deletion that
    says nothing new."""

    key: bytes | None
    value: bytes | None
    change: Change


def messages(changes: Iterable[Change], table: Table, encoding: Encoding) -> Iterator[Message]:
    """What a connector writes of `changes`."""
    written = _flat if encoding.flattened else _full
    for change in changes:
        values = written(change, table, encoding)
        key = _key(change, table, encoding)
        for value in values:
            yield Message(key, None if value is None else _json(value), change)


def _full(change: Change, table: Table, encoding: Encoding) -> Iterator[Any]:
    before, after = _shown_before(change, table, encoding), change.after
    payload: dict[str, Any] = {
        "before": None if before is None else _document(before, table, encoding),
        "after": None if after is None else _document(after, table, encoding),
    }
    if change.op == "t" and encoding.connector == "postgresql":
        payload = {}
    if encoding.connector == "mongodb":
        payload["updateDescription"] = None
    payload |= {
        "source": source_of(change, table, encoding), "transaction": None, "op": change.op,
        **_clock(change.at.time_ms + 40),
    }  # fmt: skip
    yield _with_schema(payload, _envelope_schema(table, encoding), encoding.schemas)
    if change.op == "d" and encoding.tombstones:
        yield None


def _flat(change: Change, table: Table, encoding: Encoding) -> Iterator[Any]:
    """What ExtractNewRecordState leaves of an envelope. Truncations are dropped."""
    mode = encoding.flattened
    if change.op == "t":
        return
    deleted = change.op == "d"
    if deleted and mode in ("drop", "tombstone", "delete-to-tombstone"):
        if mode != "drop":
            yield None
        return
    shown = _shown_before(change, table, encoding) if deleted else change.after
    row = _encoded(shown or {}, table, encoding)
    added: list[tuple[str, Any]] = []
    if encoding.with_op:
        added = [("__op", change.op), ("__source_ts_ms", change.at.time_ms)]
    fields = _row_fields(table, encoding)
    if mode in ("rewrite", "rewrite-with-tombstone"):
        added.append(("__deleted", "true" if deleted else "false"))
    for name, value in added:
        fields.append(_field("string" if isinstance(value, str) else "int64", name, True))
    schema = _struct(fields, f"shop.public.{table.name}.Value", optional=False)
    yield _with_schema({**row, **dict(added)}, schema, encoding.schemas)
    if deleted and mode == "rewrite-with-tombstone":
        yield None


def _shown_before(change: Change, table: Table, encoding: Encoding) -> Row | None:
    """`before`, as much of it as the database tells."""
    if change.before is None:
        return None
    if encoding.connector == "mongodb":
        return change.before if encoding.full else None
    if encoding.full or encoding.connector != "postgresql":
        return change.before
    if change.op == "u":
        return None
    return {
        name: change.before[name] if name in table.key
        else None if table.may_be_null(name) else _instead_of_null(name, table)
        for name in table.columns
    }  # fmt: skip


def _instead_of_null(column: str, table: Table) -> Any:
    if column in (table.source, table.target):
        return "" if table.text_ends else 0
    return Decimal(0) if column == table.amount else 0


# A row ----------------------------------------------------------------------------------------


def _document(row: Row, table: Table, encoding: Encoding) -> Any:
    if encoding.connector != "mongodb":
        return _encoded(row, table, encoding)
    return json.dumps(_bson(row, table))


def _encoded(row: Row, table: Table, encoding: Encoding) -> dict[str, Any]:
    found = {name: _value(name, row[name], table, encoding) for name in row}
    if encoding.padding:
        found["padding"] = "x" * encoding.padding
    return found


def _value(column: str, value: Any, table: Table, encoding: Encoding) -> Any:
    if value is None:
        return None
    if column == table.amount:
        return amount_of(value, encoding.amounts)
    if column == table.time:
        return time_of(value, encoding.times)
    return value


def amount_of(value: Decimal, amounts: Amounts) -> Any:
    """A number as the connector writes it. REQUIRES of "integer": it is one."""
    if amounts == "double":
        return float(value)
    if amounts == "string":
        return str(value.quantize(Decimal(10) ** -SCALE))
    if amounts == "integer":
        return int(value)
    if amounts == "decimal":
        return _unscaled(value, SCALE)
    scale = max(0, -int(value.as_tuple().exponent))
    return {"scale": scale, "value": _unscaled(value, scale)}


def _unscaled(value: Decimal, scale: int) -> str:
    """The unscaled value of a decimal of Java: two's complement, in as few bytes as can be."""
    whole = int(value.scaleb(scale))
    size = (whole + (whole < 0)).bit_length() // 8 + 1
    return base64.b64encode(whole.to_bytes(size, "big", signed=True)).decode()


def time_of(ms: int, times: Times) -> Any:
    if times in ("ms", "connect"):
        return ms
    if times in ("us", "ns"):
        return ms * (1_000 if times == "us" else 1_000_000)
    if times in ("days", "connect days"):
        return ms // DAY_MS
    when = datetime.fromtimestamp(ms / 1000, UTC)
    if times == "iso date":
        return f"{when:%Y-%m-%d}Z"
    return f"{when:%Y-%m-%dT%H:%M:%S}{f'.{ms % 1000:03d}' if ms % 1000 else ''}Z"


def _bson(row: Row, table: Table) -> dict[str, Any]:
    """A document in the strict mode of extended JSON, which the connector writes."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if name == table.time and value is not None:
            found[name] = {"$date": value}
        elif isinstance(value, Decimal):
            found[name] = float(value)
        elif isinstance(value, int) and name in table.key:
            found["_id" if table.key == (name,) else name] = {"$numberLong": str(value)}
        else:
            found[name] = value
    return found


def _key(change: Change, table: Table, encoding: Encoding) -> bytes | None:
    row = change.before if change.after is None else change.after
    if row is None:
        return None
    key: dict[str, Any]
    if encoding.connector == "mongodb":
        key = {"id": json.dumps(row[table.key[0]])}
        fields = [_field("string", "id", False)]
    else:
        key = {name: row[name] for name in table.key}
        fields = [field for field in _row_fields(table, encoding) if field["field"] in table.key]
    schema = _struct(fields, f"shop.public.{table.name}.Key", optional=False)
    return _json(_with_schema(key, schema, encoding.key_schemas))


# What surrounds it ----------------------------------------------------------------------------


def source_of(change: Change, table: Table, encoding: Encoding) -> dict[str, Any]:
    """`source`: where the change stands in the log of the database. A binlog's file ends now and
    then, so its positions fall; the rows of one statement share theirs."""
    at, snapshot = change.at, change.snapshot
    read = change.op == "r"
    found = {
        "version": "3.6.0.Final", "connector": encoding.connector, "name": "shop",
        "ts_ms": at.time_ms, "snapshot": snapshot, "db": "shop", "sequence": None,
        **{name: at.time_ms * scale for name, scale in (("ts_us", 1000), ("ts_ns", 1_000_000))},
    }  # fmt: skip
    lsn = 23_000_000 + 64 * at.transaction
    if encoding.connector == "postgresql":
        found |= {"sequence": f'["{lsn - 64}","{lsn}"]', "schema": "public", "table": table.name,
                  "txId": 700 + at.transaction, "lsn": lsn, "xmin": None}  # fmt: skip
    elif encoding.connector == "mysql":
        file, place = divmod(at.transaction, 7)
        found |= {
            "table": table.name, "server_id": 0 if read else 223344, "gtid": None,
            "file": "" if read else f"mysql-bin.{file + 1:06d}",
            "pos": 0 if read else 157 + 300 * place, "row": 0 if read else at.number % 3,
            "thread": None if read else 12, "query": None,
        }  # fmt: skip
    elif encoding.connector == "sqlserver":
        found |= {
            "schema": "dbo", "table": table.name,
            "change_lsn": None if read else f"00000025:{lsn:08x}:{at.number % 4 + 1:04x}",
            "commit_lsn": f"00000025:{lsn:08x}:0005",
            "event_serial_no": None if read else 2 if change.op == "u" else 1,
        }  # fmt: skip
    elif encoding.connector == "oracle":
        found |= {
            "schema": "SHOP", "table": table.name,
            "txId": None if read else f"{at.transaction:016x}",
            "scn": str(lsn), "commit_scn": None if read else str(lsn + 1), "lcr_position": None,
            "rs_id": None, "ssn": 0, "redo_thread": 1, "user_name": "SHOP", "redo_sql": None,
            "row_id": f"AAAkvCAAIAAAAA{at.number:04d}",
        }  # fmt: skip
    else:
        found |= {"rs": "rs0", "collection": table.name, "ord": at.number, "lsid": None,
                  "txnNumber": None, "wallTime": None}  # fmt: skip
    return found


def _clock(ms: int) -> dict[str, int]:
    return {"ts_ms": ms, "ts_us": 1000 * ms + 1, "ts_ns": 1_000_000 * ms + 1042}


# Schemas --------------------------------------------------------------------------------------


def _with_schema(payload: Any, schema: dict[str, Any], wanted: bool) -> Any:
    return {"schema": schema, "payload": payload} if wanted else payload


def _field(kind: str, column: str, optional: bool, **more: Any) -> dict[str, Any]:
    return {"type": kind, "optional": optional, **more, "field": column}


def _struct(
    fields: list[dict[str, Any]], name: str, optional: bool = True, **more: Any
) -> dict[str, Any]:
    return {"type": "struct", "fields": fields, "optional": optional, "name": name, **more}


def _row_fields(table: Table, encoding: Encoding) -> list[dict[str, Any]]:
    fields = [_column(name, table, encoding) for name in table.columns]
    return [*fields, _field("string", "padding", True)] if encoding.padding else fields


def _column(name: str, table: Table, encoding: Encoding) -> dict[str, Any]:
    optional = table.may_be_null(name)
    if name == table.amount:
        return _amount_field(name, optional, encoding.amounts)
    if name == table.time:
        kind, semantic = TIMES[encoding.times]
        return _field(kind, name, optional, name=semantic, version=1)
    text = name == "note" or (table.text_ends and name in (table.source, table.target))
    return _field("string" if text else "int64", name, optional)


def _amount_field(name: str, optional: bool, amounts: Amounts) -> dict[str, Any]:
    if amounts == "decimal":
        parameters = {"scale": str(SCALE), "connect.decimal.precision": "12"}
        decimal = "org.apache.kafka.connect.data.Decimal"
        return _field("bytes", name, optional, name=decimal, version=1, parameters=parameters)
    if amounts == "variable":
        parts = [_field("int32", "scale", False), _field("bytes", "value", False)]
        semantic = "io.debezium.data.VariableScaleDecimal"
        return _struct(parts, semantic, optional, version=1, field=name)
    return _field("int64" if amounts == "integer" else amounts, name, optional)


def _envelope_schema(table: Table, encoding: Encoding) -> dict[str, Any]:
    if encoding.connector == "mongodb":
        row = _field("string", "", True, name="io.debezium.data.Json", version=1)
    else:
        row = _struct(_row_fields(table, encoding), f"shop.public.{table.name}.Value")
    parts = [_field("string", "version", False), _field("string", "connector", False),
             _field("int64", "ts_ms", False)]  # fmt: skip
    source = f"io.debezium.connector.{encoding.connector}.Source"
    fields = [
        {**row, "field": "before"}, {**row, "field": "after"},
        _struct(parts, source, False, field="source"),
        _field("string", "op", False),
        *(_field("int64", name, True) for name in ("ts_ms", "ts_us", "ts_ns")),
    ]  # fmt: skip
    return _struct(fields, f"shop.public.{table.name}.Envelope", False, version=2)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
