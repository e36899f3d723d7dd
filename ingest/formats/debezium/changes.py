"""Change events of Debezium, one at a time: what a record says of a row of a table, and what the
graph is to do.

A record's value is one of these, in JSON; each may stand as `payload` beside its `schema`:

    envelope   {"op": "c" | "r" | "u" | "d" | "t" | "m", "before": row, "after": row, "source": …}
    flattened  the columns of the row, and "__op", "__deleted" (the transform ExtractNewRecordState)
    skipped    a heartbeat, a boundary of a transaction, a change of the schema, a message ("m")
    none       a tombstone

and its key holds the columns of the table's key. Of MongoDB a row is text that holds JSON, and the
key is {"id": text of _id}.

Idea: a row of the table is an edge, so what is read and created *sets* it, which may come twice;
an update sets it, and deletes the edge that the row was before if its ends changed; a deletion
deletes it. Which edge a row was is in `before`, or, where the ends are columns of the key, in the
key; where it is in neither, the record is refused, with the setting of the database that is
missing. A row of which an end is NULL is no edge.

What several rows with the same ends mean is decided by `Debezium.on_repeat`; with "sum" the rows
are remembered by their keys (`ingest/state/table_rows.py`), and nothing is asked of `before`.

As in `../mapped.py` the columns that are mapped are found as bytes, and the others are passed over,
whatever they hold. `rows.py` reads many records at once, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET, Raw

from lpma.batch.columns import Columns, Kind

from ...errors import RecordError
from ...fields import Debezium
from ...types import NO_UPDATES, Name, Names, Record
from ..kinds import WORDS
from ..mapped import JSON, MAX_MAPPED_BYTES, REFUSED
from ..records import decode_update
from ..times import in_ms
from .values import (
    NO_TYPES,
    UNNAMED,
    ColumnType,
    Types,
    exact_weight_of,
    is_unavailable,
    time_of,
    types_of,
    vertex_of,
    weight_of,
)

ENVELOPE_TIMES = {name: name[-2:] for of in ("", "source.") for name in
                  (f"{of}ts_ms", f"{of}ts_us", f"{of}ts_ns")}  # fmt: skip
FLAT_OP, FLAT_DELETED = "__op", "__deleted"
TABLE_PARTS = "db", "schema", "table", "collection"  # of `source`: what tells tables apart
LAST_TIME = 2**63 - 1  # an expiry of what is older removes every edge
MOST_COLUMNS = 12  # of a row, that are named
_MAX_WRAPPED = 4096  # bytes of a value that is an object: a number, an id
# What stands for a value that is not known: null, or in a column that is NOT NULL the fallback of
# its type, an empty text, 0 in any form, the epoch.
_EMPTY = frozenset((
    b"null", b"0", b"0.0", b"false", b'""', b'"0"', b'"AA=="', b'{"scale":0,"value":"AA=="}', b"{}",
    b"[]", b'"1970-01-01"', b'"1970-01-01Z"', b'"1970-01-01T00:00:00Z"', b'"00:00:00Z"',
))  # fmt: skip
_HINTS = {
    "postgresql": "ALTER TABLE … REPLICA IDENTITY FULL",
    "mysql": "binlog_row_image=FULL", "mariadb": "binlog_row_image=FULL",
    "oracle": "ALTER TABLE … ADD SUPPLEMENTAL LOG DATA (ALL) COLUMNS",
    "sqlserver": "sys.sp_cdc_enable_table with all columns captured",
    "db2": "ALTER TABLE … DATA CAPTURE CHANGES, with all columns captured",
    "mongodb": "capture.mode=change_streams_update_full_with_pre_image, and "
               "changeStreamPreAndPostImages of the collection",
}  # fmt: skip


class Row(NamedTuple):
    """A row of a table, or its key: an object of JSON, and what its schema says of the columns."""

    data: bytes
    types: Types = NO_TYPES

    def get(self, name: str) -> Any:
        """The value of a column, or at the end of a path; None if it is null, UNSET if it is not
        there. Raises RecordError."""
        field = _find(self.data, name)
        if not field:
            return UNSET
        if field[:1] != b"{":
            return JSON.value(field, name)
        try:
            return _ANYTHING.decode(field[:_MAX_WRAPPED])
        except REFUSED:
            raise RecordError(f"{name}: expected a value, not an object", "malformed") from None

    def columns(self) -> dict[str, bytes]:
        """All of them, as bytes; of an object within, its fields by their paths."""
        return dict(_leaves(self.data, ""))


class Event(NamedTuple):
    """What a record says. op: of Debezium, or "s" for a flattened record that may be an insertion
    or an update; "x" for a tombstone. time: in ms, of the event, if that is mapped. table: of whose
    row, where the event says it. remembered: as `table_row` gave the row before."""

    op: str
    key: Row | None
    before: Row | None = None
    after: Row | None = None
    is_flat: bool = False
    source: Row | None = None
    time: int | None = None
    table: str = ""
    remembered: tuple[Name, Name, float | Decimal, int | None] | None = None

    @property
    def connector(self) -> str:
        found = UNSET if self.source is None else self.source.get("connector")
        return found if isinstance(found, str) else ""


class Skipped(NamedTuple):
    """A record that says nothing of a row. what: by which it is counted."""

    what: str


class Edge(NamedTuple):
    """The ends of an edge, and its weight if it has one. Of a vertex, dst is None."""

    src: Name
    dst: Name | None
    weight: Any = None

    @property
    def ends(self) -> tuple[Name, Name | None]:
        return self.src, self.dst


class Unknown(RecordError):
    """It is not known which edge a row was."""


_REMEDIES = {  # what helps where a part of a record is no object
    "key": "; have key.converter write JSON or Avro, and leave out a transform that makes one "
    "value of the key, such as ExtractField$Key",
}

# Bytes ---------------------------------------------------------------------------------------

_ANYTHING = msgspec.json.Decoder(Any)
_OBJECT = msgspec.json.Decoder(dict[str, Raw])
_TEXT = msgspec.json.Decoder(str)


def parts_of(data: bytes, what: str = "record") -> dict[str, bytes]:
    """The fields of an object of JSON, as bytes. Raises RecordError."""
    if len(data) > MAX_MAPPED_BYTES:
        raise RecordError(
            f"the {what} has {len(data):,} bytes: at most {MAX_MAPPED_BYTES:,} here, in which an "
            "update has its row twice: leave large columns out with Debezium's column.exclude.list",
            "oversized",
        )
    JSON.check_depth(data)
    try:
        return {name: bytes(raw) for name, raw in _OBJECT.decode(data).items()}
    except msgspec.ValidationError as error:
        said = f"a change event's {what} is an object: {error}{_REMEDIES.get(what, '')}"
        raise RecordError(said, "malformed") from None
    except REFUSED as error:
        said = f"the {what} is no JSON: {error}{_REMEDIES.get(what, '')}"
        raise RecordError(said, "malformed") from None


@lru_cache(1024)
def _finder(name: str) -> Any:
    one = msgspec.defstruct("One", [("field", Raw, Raw(b""))], rename={"field": name})
    return msgspec.json.Decoder(one)


def _find(data: bytes, name: str) -> bytes:
    """The bytes of the field of that name, or else of the one at the end of the path; b"" if there
    is none. REQUIRES: an object of JSON."""
    try:
        field = bytes(_finder(name).decode(data).field)
        if field not in (b"", b"null") or "." not in name:
            return field
        found = data
        for step in name.split("."):
            if found[:1] != b"{":
                return field
            found = bytes(_finder(step).decode(found).field)
    except REFUSED as error:
        raise RecordError(f"the row is no JSON: {error}", "malformed") from None
    return found or field


def _leaves(data: bytes, path: str) -> Iterator[tuple[str, bytes]]:
    for name, value in parts_of(data, "row").items():
        here = f"{path}{name}"
        if value[:1] == b"{" and not _is_wrapped(value):
            yield from _leaves(value, f"{here}.")
        else:
            yield here, value


def _is_wrapped(data: bytes) -> bool:
    """Whether an object stands for one value: a decimal of any scale, or a value of MongoDB."""
    names = parts_of(data, "value").keys()
    return names == {"scale", "value"} or (bool(names) and all(n.startswith("$") for n in names))


def _row(data: bytes | None, types: Types) -> Row | None:
    """A row; of MongoDB it is text. None: null. Raises RecordError."""
    if data is None or data == b"null":
        return None
    if data[:1] == b'"':
        try:
            data = _TEXT.decode(data).encode()
        except (*REFUSED, UnicodeEncodeError) as error:
            raise RecordError(f"the row is no JSON: {error}", "malformed") from None
        JSON.check_depth(data)
    if data[:1] != b"{":
        raise RecordError("a row is an object of JSON", "malformed")
    return Row(data, types)


# Events --------------------------------------------------------------------------------------


class ChangeReader:
    """Reads the change events of one topic. table: how; names: whether vertices go by names. topic:
    its name; is_alone: whether nothing else is read into the graph. directed: whether (u, v) and
    (v, u) are two edges. has_partitions: whether the topic has several."""

    def __init__(
        self, table: Debezium, names: bool, topic: str = "", is_alone: bool = False,
        directed: bool = True, has_partitions: bool = False,
    ) -> None:  # fmt: skip
        self.table = table.of_topic()
        self._has_partitions = has_partitions
        self._one_way = directed or table.are_vertices
        self.names = names
        fields = self.table.fields
        self._topic, self.is_alone = topic, is_alone
        self.source, self.target, self.weight = fields.source, fields.target, fields.weight
        self.ends = {str(fields.source)} if table.are_vertices else {
            str(fields.source), str(fields.target)
        }  # fmt: skip
        self.time = fields.time
        self.unit = fields.time_unit or "ms"
        self.event_unit = ENVELOPE_TIMES.get(str(self.time))

    # What a record is ------------------------------------------------------------------------

    def event(self, value: bytes | None, key: bytes) -> Event | Skipped:
        """What a record says. value: None of one that has none. Raises RecordError."""
        parts, types = (None, NO_SCHEMA) if value is None else _opened(parts_of(value))
        if parts is None:
            if self.table.on_tombstone == "ignore":
                return Skipped("tombstone")
            if not key:
                raise RecordError("a record without a value and without a key says nothing")
            return Event("x", self.key(key))
        if "op" in parts and (
            "before" in parts or "after" in parts or parts.get("source", b"")[:1] == b"{"
        ):
            return self._envelope(parts, types, key)
        what = _kind_of_message(parts)
        if what is not None and str(self.source).partition(".")[0] not in parts:
            return Skipped(what)
        return self._flat(parts, types, key)

    def _envelope(
        self, parts: Mapping[str, bytes], types: Mapping[str, Types], key: bytes
    ) -> Event | Skipped:
        op = JSON.value(parts["op"], "op")
        if op == "m":
            return Skipped("message")
        if op not in ("c", "r", "u", "d", "t"):
            raise RecordError(f"op: {op!r} is none of c, r, u, d, t and m")
        before, after = (
            _row(parts.get(name), types.get(name, NO_TYPES)) for name in ("before", "after")
        )
        source = parts.get("source", b"null")
        around = Row(source) if source[:1] == b"{" else None
        time = None
        if self.event_unit is not None:
            of, _, name = str(self.time).rpartition(".")
            within = parts
            if of:
                within = {} if around is None else parts_of(around.data, of)
            time = in_ms(JSON.value(within.get(name, b"null"), str(self.time)), self.event_unit)
        after = None if op == "d" else after
        table = "" if around is None else table_text(map(around.get, TABLE_PARTS))
        return Event(op, self.key(key), before, after, False, around, time, table)

    def _flat(self, parts: Mapping[str, bytes], types: Mapping[str, Types], key: bytes) -> Event:
        row = Row(_joined(parts), types.get("", NO_TYPES))
        op = JSON.value(parts.get(FLAT_OP, b"null"), FLAT_OP)
        deleted = JSON.value(parts.get(FLAT_DELETED, b"null"), FLAT_DELETED)
        if op not in (None, "c", "r", "u", "d", "t"):
            raise RecordError(f"{FLAT_OP}: {op!r} is none of c, r, u, d and t")
        if deleted not in (None, True, False, "true", "false"):
            raise RecordError(f"{FLAT_DELETED}: {deleted!r} is neither true nor false")
        time = None
        if self.event_unit is not None:
            name = "__" + str(self.time).replace(".", "_")
            time = in_ms(JSON.value(parts.get(name, b"null"), name), self.event_unit)
        table = table_text(row.get(f"__{part}") for part in TABLE_PARTS)
        if op == "t":
            return Event("t", None, is_flat=True, time=time, table=table)
        if op == "d" or deleted in (True, "true"):
            return Event("d", self.key(key), row, None, True, None, time, table)
        return Event(op or "s", self.key(key), None, row, True, None, time, table)

    def has(self, event: Event, name: str) -> bool:
        """Whether a row that is there has a value in the column of that name, or its event such a
        time. Raises RecordError."""
        if name in ENVELOPE_TIMES:
            return event.time is not None
        return event.after is not None and event.after.get(name) not in (UNSET, None)

    def fields_of(self, value: bytes) -> bytes:
        """What a mapping may name of a record, as an object: the columns of its row, and what is
        told of the event. REQUIRES: `event` has read it, and there is a row."""
        parts = _opened(parts_of(value))[0] or {}
        row = _row(parts.get("after"), NO_TYPES) if "op" in parts else None
        if row is None:
            return _joined(parts)
        around = {name: raw for name, raw in parts.items() if name not in ("before", "after")}
        return _joined(parts_of(row.data) | around)

    def key(self, data: bytes) -> Row | None:
        """The columns of a record's key; None if it has none. Raises RecordError."""
        if not data or data == b"null":
            return None
        parts = parts_of(data, "key")
        types = NO_TYPES
        if parts.keys() == {"schema", "payload"}:
            types = types_of(parts["schema"]).get("", NO_TYPES)
            data = parts["payload"]
            if data == b"null":
                return None
            parts = parts_of(data, "key")
        if parts.keys() == {"id"} and parts["id"][:1] == b'"' and self.is_of_mongo:
            return Row(b'{"_id":%s}' % _TEXT.decode(parts["id"]).encode())
        return Row(data, types)

    @cached_property
    def is_of_mongo(self) -> bool:
        """Whether the mapping names the field of MongoDB's key."""
        return any(end.partition(".")[0] == "_id" for end in self.ends)

    # What it does ----------------------------------------------------------------------------

    def record(self, event: Event) -> Record:
        """What the graph is to do, where rows are not remembered. Raises RecordError."""
        if event.op == "t":
            return self.truncation(event)
        self.check_apart(event)
        new = self.new_edge(event)
        old = self._old(event) if self._asks_for_old(event) else None
        if new is not None and old is not None and self._is_same(new, old):
            old = None
        sets, removes = self.kinds
        time = self.time_ms(event)
        return _together([
            self._operation(kind, edge, time) for kind, edge in ((removes, old), (sets, new))
            if edge is not None
        ])  # fmt: skip

    def _is_same(self, one: Edge, other: Edge) -> bool:
        return one.ends == other.ends or (not self._one_way and one.ends == other.ends[::-1])

    @property
    def kinds(self) -> tuple[Kind, Kind]:
        """The operations by which a row comes, and goes."""
        if self.table.are_vertices:
            return Kind.ADD_VERTEX, Kind.REMOVE_VERTEX
        return Kind.SET, Kind.DELETE

    def new_edge(self, event: Event) -> Edge | None:
        """The edge that the row is now; None: it is none. Raises RecordError."""
        if event.after is not None:
            return self.edge(event.after, event)
        if event.op in _OF_ROWS:
            raise RecordError(_WITHOUT_AFTER.get(event.connector, "a change without `after`"))
        return None

    def _asks_for_old(self, event: Event) -> bool:
        """Whether the row may have been another edge, which must be known."""
        if event.op == "s" or (event.op == "u" and event.before is None):
            # The key did not change: Debezium tells that as a deletion and an insertion.
            return not self._has(event.key)
        return event.op in "udx"

    def _operation(self, kind: Kind, edge: Edge, time: Any) -> Record:
        fields = {"kind": WORDS[kind], "src": edge.src, "dst": edge.dst, "time": time}
        if kind is Kind.SET:
            default = self.table.fields.default_weight
            fields["weight"] = default if edge.weight is None else edge.weight
        given = {name: value for name, value in fields.items() if value is not None}
        return decode_update(given, self.names)

    # Rows that are remembered ----------------------------------------------------------------

    def row_key(self, event: Event) -> str:
        """What tells a row of the table from all others. Raises RecordError."""
        if event.key is None:
            raise RecordError(
                "the record has no key, by which a sum tells a row that is read again from "
                "another: name unique columns, as in message.key.columns=public.payments:id"
            )
        try:
            return key_text(sorted(event.key.columns().items()))
        except UnicodeDecodeError:
            raise RecordError("the key is not UTF-8", "malformed") from None

    def table_row(self, event: Event) -> tuple[Name, Name, float | Decimal, int | None] | None:
        """The ends, the weight and the time that the row has now; None if it is gone, or no edge.
        Raises RecordError."""
        edge = self.new_edge(event)
        if edge is None:
            return None
        exact = edge.weight if isinstance(edge.weight, Decimal) else None
        if exact is not None:
            edge = edge._replace(weight=float(exact))
        record = self._operation(Kind.SET, edge, self.time_ms(event))
        src, dst = record.batch.src[0], record.batch.dst[0]
        if record.names is not None:
            src, dst = record.names.src[0], record.names.dst[0]
        else:
            src, dst = int(src), int(dst)
        weight, times = record.batch.weight, record.batch.time
        assert weight is not None
        time = None if times is None else int(times[0])
        return src, dst, float(weight[0]) if exact is None else exact, time

    def summed(
        self, sums: Sequence[tuple[Name, Name, float | None, int | None]], time: int | None
    ) -> Record:
        """What makes edges have these weights (None: delete it) and times, those without one the
        time of the event. Raises RecordError."""
        times = [time if of_rows is None else of_rows for *_, of_rows in sums]
        if None in times:  # all have one, or none has
            newest = max((each for each in times if each is not None), default=None)
            times = [newest if each is None else each for each in times]
        return _together([
            self._operation(Kind.DELETE if weight is None else Kind.SET, Edge(src, dst, weight), at)
            for (src, dst, weight, _), at in zip(sums, times, strict=True)
        ])  # fmt: skip

    # A table that is truncated ---------------------------------------------------------------

    def truncation(self, event: Event) -> Record:
        """Every edge goes, if all are of this table. Raises RecordError."""
        if self.table.are_vertices:
            raise RecordError(
                "the table was truncated, and its rows are vertices, which are not known by their "
                "table: they stay, with their edges. Start anew, from a snapshot; Debezium leaves "
                "such records out with skipped.operations=t",
                "unserved",
            )
        self.check_order()
        if not self.is_alone or self.is_of_another_table(event):
            raise RecordError(
                "the table was truncated, and which edges of the graph came from it cannot be "
                "known: where a graph is read from the topic of one table alone, all of them go. "
                "Start anew, from a snapshot; Debezium leaves such records out with "
                "skipped.operations=t",
                "unserved",
            )
        return decode_update({"kind": "expire", "time": LAST_TIME}, self.names)

    def check_order(self) -> None:
        """Raise RecordError if it cannot be known which rows came before a truncation."""
        if self._has_partitions:
            raise RecordError(
                "the table was truncated, and its topic has several partitions, of which rows that "
                "came later may be read before: a table that is truncated needs a topic of one "
                "partition. Start anew, from a snapshot; Debezium leaves such records out with "
                "skipped.operations=t",
                "unserved",
            )

    def is_of_another_table(self, event: Event) -> bool:
        """Whether the topic's name does not end with the table's, so that several may be in it."""
        table = UNSET if event.source is None else event.source.get("table")
        return isinstance(table, str) and not f".{self._topic}".endswith(f".{table}")

    def check_apart(self, event: Event) -> None:
        """Raise RecordError if rows may share their ends, and nobody said what that means."""
        if self.table.on_repeat is not None:
            return
        self._check_columns(event)
        what = "a vertex" if self.table.are_vertices else "ends"
        advice = (
            "map the columns of the key" if self.table.are_vertices else "say what that means: "
            "on_repeat='last' (the edge is as the last change left it) or on_repeat='sum' (its "
            "weight is the sum over the rows); without such rows the first is right"
        )  # fmt: skip
        if event.key is None:
            raise RecordError(
                f"the record has no key, so rows of the table may share {what}: {advice}"
            )
        columns = event.key.columns().keys()
        if self.may_repeat(columns):
            within = ", the graph is undirected" if columns <= self.ends else ""
            own = ", ".join(sorted(columns))
            raise RecordError(
                f"the key of the table is {own}{within}, so several rows may share {what}: {advice}"
            )

    def may_repeat(self, key: Set[str]) -> bool:
        """Whether rows that differ in these columns may be the same edge: in an undirected graph
        (u, v) and (v, u) are."""
        return not self._one_way or not key <= self.ends

    def _check_columns(self, event: Event) -> None:
        """Raise RecordError if a column that is mapped is not in the row that is there."""
        row, what, names = event.after, "the row", self._ends_in_order
        if row is None:
            row, what = self._logged_before(event), "the row before"
        else:
            others = (None if self.table.are_vertices else self.weight,
                      None if self.event_unit else self.time)  # fmt: skip
            names = names + [str(name) for name in others if name is not None]
        if row is None or event.connector == "mongodb":  # whose fields may be absent
            return
        for name in names:
            if row.get(name) is UNSET:
                raise RecordError(_no_such_column(name, row, what))

    def edge(self, row: Row, event: Event) -> Edge | None:
        """The edge that a row is; None if an end is NULL. Raises RecordError."""
        src = self._read(row, str(self.source), event, 0, vertex_of)
        dst = None
        if not self.table.are_vertices:
            dst = self._read(row, str(self.target), event, 1, vertex_of)
        if src is None or (dst is None and not self.table.are_vertices):
            return None
        if self.weight is None or self.table.are_vertices:
            return Edge(src, dst)
        read = exact_weight_of if self.table.on_repeat == "sum" else weight_of
        return Edge(src, dst, self._read(row, str(self.weight), event, 2, read))

    def _read(self, row: Row, name: str, event: Event, place: int, read: Callable[..., Any]) -> Any:
        """What `read` gives of a column of `after`; of one that is nowhere in the event, what is
        remembered in this place. Raises RecordError."""
        try:
            value = self._column(row, name, event)
        except Unknown:
            if event.remembered is None:
                raise
            return event.remembered[place]
        untyped = None if row.types is NO_TYPES else UNNAMED
        return _said(name, read, value, row.types.get(name, untyped))

    def _column(self, row: Row, name: str, event: Event) -> Any:
        """A column of `after`. One that is not in the log is looked up in the key, and in `before`.
        A field that a document of MongoDB does not have is NULL: others may have it. Raises
        RecordError."""
        value = row.get(name)
        if value is UNSET:
            if event.connector == "mongodb":
                return None
            raise RecordError(_no_such_column(name, row))
        if not is_unavailable(value):
            return value
        for other in (event.key, event.before):
            found = UNSET if other is None else other.get(name)
            if found is not UNSET and not is_unavailable(found):
                return found
        known = _HINTS.get(event.connector, "ALTER TABLE … REPLICA IDENTITY FULL, in Postgres")
        raise Unknown(
            f"{name}: the value did not change, and is not in the log: set {known}; or have "
            "Debezium look it up, by its ReselectColumnsPostProcessor"
        )

    def _has(self, key: Row | None) -> bool:
        """Whether a key has all ends."""
        return key is not None and all(key.get(end) not in (UNSET, None) for end in self.ends)

    def _old(self, event: Event) -> Edge | None:
        """The edge that the row was before; None: it was none. Raises RecordError."""
        rows = [row for row in (event.before, event.key) if row is not None]
        if event.before is not None and self._is_key_alone(event, event.before):
            rows = rows[1:]
        found = []
        for end in self._ends_in_order:
            for row in rows:
                value = row.get(end)
                if value is UNSET and row is event.before and event.connector == "mongodb":
                    value = None
                if value is not UNSET and not is_unavailable(value):
                    found.append(_said(end, vertex_of, value, row.types.get(end)))
                    break
            else:
                before = self._logged_before(event)
                if before is not None and before.get(end) is UNSET:
                    raise Unknown(_no_such_column(end, before, "the row before"))
                raise Unknown(
                    f"{end}: the record does not say which edge the row was: {self._hint(event)}"
                )
        return None if None in found else Edge(*found, *[None] * (2 - len(found)))

    def _logged_before(self, event: Event) -> Row | None:
        """The row before, if more of it is there than its key."""
        before, key = event.before, event.key
        if before is None or self._is_key_alone(event, before):
            return None
        of_key = set() if key is None else key.columns().keys()
        return before if before.columns().keys() - of_key else None

    @property
    def _ends_in_order(self) -> list[str]:
        ends = [str(self.source), str(self.target)]
        return ends[:1] if self.table.are_vertices else ends

    def _is_key_alone(self, event: Event, before: Row) -> bool:
        """Whether `before` has the key's columns and, of others, nothing but what databases and
        Debezium put where a value is not known. An update of Postgres has no such `before`."""
        if event.op == "u" and event.connector not in ("mysql", "mariadb"):
            return False
        if event.connector == "mongodb":  # a pre-image is the whole document
            return False
        if event.key is None:
            return any(before.get(end) is None for end in self.ends)
        columns = event.key.columns()
        others = [value for name, value in before.columns().items() if name not in columns]
        return bool(self.ends - columns.keys()) and all(value in _EMPTY for value in others)

    def _hint(self, event: Event) -> str:
        if event.is_flat:
            return (
                "flattened records have no row before the change: leave out the transform "
                "ExtractNewRecordState, or say on_repeat='sum', which remembers the rows"
            )
        known = _HINTS.get(event.connector)
        if event.op == "x":
            return "on_tombstone='delete' needs both ends in the key, or on_repeat='sum'"
        setting = "have the database log whole rows" if known is None else f"set {known}"
        return f"{setting}, or say on_repeat='sum', which remembers the rows by their key"

    def time_ms(self, event: Event) -> Any:
        """The time of the event, or of the row, in ms; None: it has none. Raises RecordError."""
        if self.time is None:
            return None
        if self.event_unit is not None:
            return event.time
        name = str(self.time)
        if event.after is not None:
            return self._read(event.after, name, event, 3, self._time_of)
        value = UNSET if event.before is None else event.before.get(name)
        if event.before is None or value is UNSET or is_unavailable(value):
            return None
        return _said(name, self._time_of, value, event.before.types.get(name))

    def _time_of(self, value: Any, said: ColumnType | None) -> Any:
        return time_of(value, self.unit, said)


NO_SCHEMA: Mapping[str, Types] = {}
_OF_ROWS = ("c", "r", "u", "s")  # a row is there afterwards
_WITHOUT_AFTER = {
    "mongodb": "an update without `after`: set capture.mode=change_streams_update_full",
}


def _no_such_column(name: str, row: Row, what: str = "the row") -> str:
    columns = [each[:40] for each in row.columns() if not each.startswith("__")]
    listed = ", ".join(columns[:MOST_COLUMNS]) or "none"
    more = ", …" if len(columns) > MOST_COLUMNS else ""
    said = f"{name}: {what} has no such column: it has {listed}{more}"
    part, _, column = name.partition(".")
    if part in ("before", "after") and row.get(column) is not UNSET:
        said += f": name the column itself, {column}"
    return said


def key_text(columns: Iterable[tuple[str, bytes]]) -> str:
    """The columns of a key, in the order of their names, as what tells rows apart. Raises
    UnicodeDecodeError."""
    return ",".join([f"{name}:{value.decode()}" for name, value in columns])


def table_text(parts: Iterable[Any]) -> str:
    """What tells a table from others, of the values of `TABLE_PARTS`; "": nothing."""
    return ".".join([part for part in parts if isinstance(part, str)])


def _together(records: Sequence[Record]) -> Record:
    """Records of one operation each as one record, whose operations are applied together."""
    if len(records) < 2:
        return records[0] if records else Record(NO_UPDATES)
    names = None
    if records[0].names is not None:
        src, dst = (np.concatenate([getattr(each.names, end) for each in records])
                    for end in ("src", "dst"))  # fmt: skip
        names = Names(src, dst)
    return Record(Columns.joined([each.batch for each in records]), names=names, is_change=True)


def _said(name: str, read: Callable[..., Any], value: Any, type: ColumnType | None) -> Any:
    """What `read` gives, whose error names the column."""
    try:
        return read(value, type)
    except RecordError as error:
        raise RecordError(f"{name}: {error}", error.kind) from None


def _opened(parts: Mapping[str, bytes]) -> tuple[Mapping[str, bytes] | None, Mapping[str, Types]]:
    """The payload of a record that stands beside its schema (None: null), and what the schema
    says."""
    if parts.keys() != {"schema", "payload"}:
        return parts, NO_SCHEMA
    types = types_of(parts["schema"])
    return (None if parts["payload"] == b"null" else parts_of(parts["payload"])), types


def _joined(parts: Mapping[str, bytes]) -> bytes:
    pairs = (msgspec.json.encode(name) + b":" + value for name, value in parts.items())
    return b"{" + b",".join(pairs) + b"}"


def _kind_of_message(parts: Mapping[str, bytes]) -> str | None:
    """What a record is that is about no row; None: it is about one."""
    names = parts.keys()
    if names == {"ts_ms"}:
        return "heartbeat"
    if {"status", "id"} <= names <= {"status", "id", "ts_ms", "event_count", "data_collections"}:
        return "transaction"
    if "ddl" in names and names & {"databaseName", "tableChanges", "schemaName"}:
        return "schema change"
    return None
