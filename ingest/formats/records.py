"""Records of the stream: bytes in, validated operations out. The specification is
`docs/reference/format.md`.

Idea: the cost of decoding should be per record, not per edge, so the form for speed carries whole
columns, which `np.frombuffer` reads in place. `msgpack.py` and `mapped.py` judge bytes before they
are decoded; what the fields mean is read here, the same way whatever form they came in.

Vertices are named in one of two ways, which a pipeline is told once. With ids a record says
the id that a vertex has in the graph. With names it says any integer of 64 bits, or text; these
stand beside the columns, in `Names`, until the vertex dictionary has turned them into ids
(`ingest/pipeline/record_decoder.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lpma.arguments.convert import BAD_WEIGHT
from lpma.batch.columns import (
    LAST_KIND,
    MAX_HOPS,
    MAX_VERTEX,
    MAX_WEIGHT,
    Columns,
    Kind,
    query_rows,
)

from ..arguments import by_name
from ..errors import RecordError
from ..fields import Fields
from ..types import NO_UPDATES, Array, Ids, Name, Names, Query, Record
from .kinds import FIELDS, OF_OTHERS, QUERY_KINDS, ROW_FIELDS, UPDATE_KINDS
from .mapped import codec_of, read_mapped
from .markers import read_marker
from .msgpack import (
    RepeatedFields,
    binary,
    has_expiry,
    integer,
    number,
    only_fields,
    short_text,
    text,
    text_name,
    topic_name,
    type_name,
    unpack,
    unsigned,
)
from .names import MAX_NAME, MIN_NAME, field_names, read_names
from .times import column_in_ms, in_ms, is_whole

MAX_COLUMNAR_BYTES = 8 << 20
MAX_ROW_BYTES = 1 << 20
MOST_SHOWN = 40  # characters of a word that means nothing
MAX_QUERY_BYTES = 4096  # of one that is recognised by its first bytes
MAX_ROWS = 1 << 20
MAX_TEXT_ROWS = 1 << 16  # an object each, many times its bytes

_NAME_FIELDS = {name: field_names(name) - {name} for name in ("src", "dst")}
_COLUMN_FIELDS = ROW_FIELDS.union({"rows"}, *_NAME_FIELDS.values())
_QUERY_FIELDS = frozenset(
    {"query", "id", "src", "dst", "steps", "after", "reply", "deadline", "source", "seq"}
)
_NO_DST = (Kind.ADD_VERTEX, Kind.REMOVE_VERTEX)
_MANY_ROWS = (Kind.SUCCESSORS, Kind.PREDECESSORS, Kind.HOPS)


class NamedVertex(RecordError):
    """Text names a vertex of a stream whose vertices go by ids."""

    def __init__(self, field: str) -> None:
        super().__init__(f"{field}: text names a vertex only with names=True")


def decode_record(
    data: bytes,
    *,
    names: bool = False,
    fields: Fields | None = None,
    ids: Ids | None = None,
) -> Record:
    """The record in `data`. Columns are read-only views into it. With `fields`, it may be an object
    of JSON, or a map of msgpack, with these. Raises RecordError or PipelineError.

    >>> fields = ingest.Fields("user", "item")
    >>> ingest.decode_record(b'{"user": 7, "item": 9}', fields=fields).batch.src
    array([7], dtype=uint32)
    """
    if ids is not None:
        names = by_name(names, ids, RecordError)
    if not isinstance(data, bytes | bytearray | memoryview):
        raise RecordError(f"a record is bytes, not {type(data).__name__}")
    if fields is None:
        return _our_own(data, names)
    if None in (fields.source, fields.target, fields.time_unit):
        fields = fields.of_topic()
    unit = fields.time_unit or "ms"
    if (codec := codec_of(data := bytes(data), fields)) is None:
        record = _our_own(data, names)
        times = record.batch.time
        if unit == "ms" or times is None:
            return record
        return replace(record, batch=record.batch.replace(time=column_in_ms(times, unit)))
    found = read_mapped(data, fields, codec)
    try:
        if "time" in found:
            found["time"] = in_ms(found["time"], unit)
        return _sent_by(found, decode_update(found, names))
    except RecordError as error:
        error.args = (_as_called(str(error), fields, found),)
        raise


def _as_called(reason: str, fields: Fields, found: dict[str, Any]) -> str:
    """Why a mapped record is refused, the field as its mapping calls it."""
    role, colon, why = reason.partition(": ")
    name = fields.by_role().get(role)
    if not colon or name is None:
        return reason
    if role == "kind" and isinstance(word := found["kind"], str) and word not in UPDATE_KINDS:
        why += f"; say what it means, as fields.kinds = {{{word[:MOST_SHOWN]!r} = 'append'}}"
    return f"{name}: {why}"


def _our_own(data: bytes | bytearray | memoryview, names: bool) -> Record:
    """The record in `data`, which is in one of the forms that every topic may have."""
    # Texts of any length, since of a field that is repeated the last alone counts.
    most = _size_limit(data)
    value = unpack(data, most, most, may_repeat=True)
    if isinstance(value, list):
        return _row_from_list(value, names)
    if isinstance(value, RepeatedFields) and not value.keys().isdisjoint(OF_OTHERS):
        raise RecordError("a field appears twice")
    if not isinstance(value, dict):
        raise RecordError(f"a record is a map or an array, not {type(value).__name__}", "malformed")
    if "query" in value:
        only_fields(value, _QUERY_FIELDS)
        return Record(NO_UPDATES, (_query(value, names),), *_producer(value))
    if "rows" in value:
        only_fields(value, _COLUMN_FIELDS)
        return _sent_by(value, _columns(value, names))
    if "epoch" in value:
        read_marker(value)
        return Record(NO_UPDATES)
    only_fields(value, ROW_FIELDS)
    return _sent_by(value, decode_update(value, names))


def decode(data: bytes) -> Columns:
    """The updates of the record in `data`; none where it is a query. Raises RecordError only.

    >>> ingest.decode(ingest.encode_updates([1, 2], [2, 3], weight=[0.5, 2.0])).weight
    array([0.5, 2. ])
    """
    return decode_record(data).batch


def is_query(data: bytes) -> bool:
    """Whether these are the bytes of a query as `encode_query` writes one: a map in its shortest
    encoding whose first field is "query"."""
    head = data[:7]
    return len(data) <= MAX_QUERY_BYTES and head[1:] == b"\xa5query" and head[0] & 0xF0 == 0x80


def _size_limit(data: bytes | bytearray | memoryview) -> int:
    """The shortest encoding of a map whose first field is "rows" marks the columnar form."""
    head = bytes(data[:6])
    columnar = len(head) == 6 and head[0] & 0xF0 == 0x80 and head[1:] == b"\xa4rows"
    return MAX_COLUMNAR_BYTES if columnar else MAX_ROW_BYTES


def _producer(fields: dict[Any, Any]) -> tuple[str | None, int | None]:
    if "source" not in fields and "seq" not in fields:
        return None, None
    return short_text(fields, "source"), integer(fields, "seq", 0, 2**63 - 1)


def _sent_by(fields: dict[Any, Any], record: Record) -> Record:
    if is_whole(fields.get("seq")):
        fields = {**fields, "seq": int(fields["seq"])}
    producer, seq = _producer(fields)
    return record if producer is None else replace(record, producer=producer, seq=seq)


def _columns(fields: dict[Any, Any], names: bool) -> Record:
    rows = integer(fields, "rows", 0, MAX_ROWS)
    src, dst = _column(fields, "src", rows), _column(fields, "dst", rows)
    weight = binary(fields, "weight", "f", rows) if "weight" in fields else None
    time = binary(fields, "time", "<i8", rows) if "time" in fields else None
    kind = binary(fields, "kind", "u1", rows) if "kind" in fields else None
    if kind is None:
        kind = np.zeros(rows, np.uint8)
    elif int(kind.max(initial=0)) > LAST_KIND or query_rows(kind).any():
        raise RecordError(
            "kind: 0 to 4 and 11 are updates; a query is a record of its own, with an id"
        )
    if time is None and has_expiry(kind):
        raise RecordError("time: a record with an expiry has it, and says what is too old")
    # The store ignores the weight of a deletion; a record with a NaN there is still a bad record.
    if weight is not None and not bool((np.abs(weight) <= MAX_WEIGHT).all()):
        raise RecordError(BAD_WEIGHT)
    if names:
        unnamed = np.zeros(rows, np.uint32)
        return Record(Columns(kind, unnamed, unnamed, weight, time), names=Names(src, dst))
    return Record(Columns(kind, _dense(src, "src"), _dense(dst, "dst"), weight, time))


def _column(fields: dict[Any, Any], name: str, rows: int) -> Array:
    """The column of vertices `name`, in whichever of its forms."""
    if name in fields and fields.keys().isdisjoint(_NAME_FIELDS[name]):
        return unsigned(fields, name, rows)
    return read_names(fields, name, rows, MAX_TEXT_ROWS)


def _dense(column: Array, name: str) -> Array:
    if column.dtype.kind != "u":
        raise RecordError(f"{name}: text and negative integers name vertices only with names=True")
    if int(column.max(initial=0)) > MAX_VERTEX:
        raise RecordError(f"{name}: ids go from 0 to {MAX_VERTEX}; names=True takes others")
    return column if column.dtype == np.uint32 else column.astype(np.uint32)


def decode_update(fields: dict[Any, Any], names: bool) -> Record:
    """The one update of FIELDS, the kind by its word; others are not looked at. A whole float is
    the integer that it is. Raises RecordError."""
    whole = [name for name in ("src", "dst", "time") if is_whole(fields.get(name))]
    fields = {**fields, **{name: int(fields[name]) for name in whole}}
    name = fields.get("kind", "append")
    kind = UPDATE_KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        said = f"{name[:MOST_SHOWN]!r}" if isinstance(name, str) else type_name(name)
        raise RecordError(f"kind: expected one of {', '.join(UPDATE_KINDS)}, got {said}")
    if kind is Kind.EXPIRE:
        return _expiry(fields, names)
    src = _vertex(fields, "src", names)
    if kind in _NO_DST and "dst" in fields:
        raise RecordError(f"dst: {name} takes one vertex, in src")
    dst: Name = 0 if kind in _NO_DST else _vertex(fields, "dst", names)
    weight = time = None
    if "weight" in fields:
        weight = np.array([number(fields["weight"], "weight")])
    if "time" in fields:
        time = np.array([integer(fields, "time", -(2**63), 2**63 - 1)], np.int64)
    return _one(kind, src, dst, weight, time, names)


def _expiry(fields: dict[Any, Any], names: bool) -> Record:
    """The expiry of what is older than the field time. Raises RecordError."""
    if more := sorted(fields.keys() & {"src", "dst", "weight"}):
        raise RecordError(f"{more[0]}: expire takes a time alone")
    time = np.array([integer(fields, "time", -(2**63), 2**63 - 1)], np.int64)
    return _one(Kind.EXPIRE, 0, 0, None, time, names)


def _one(
    kind: Kind, src: Name, dst: Name, weight: Array | None, time: Array | None, names: bool
) -> Record:
    """A record of one row. REQUIRES: its fields are valid: checking columns of one row would take
    most of the time."""
    kinds = np.array([kind], np.uint8)
    if not names:
        ends = np.array([src, dst], np.uint32)
        return Record(Columns(kinds, ends[:1], ends[1:], weight, time))
    unnamed, ends = np.zeros(1, np.uint32), np.array([src, dst], object)
    columns = Columns(kinds, unnamed, unnamed, weight, time)
    return Record(columns, names=Names(ends[:1], ends[1:]))


def _row_from_list(items: list[Any], names: bool) -> Record:
    if not 2 <= len(items) <= 4:
        raise RecordError(f"a row array is [src, dst, weight, time], not {len(items)} items")
    named = zip(FIELDS, items, strict=False)
    return decode_update({name: item for name, item in named if item is not None}, names)


def _query(fields: dict[Any, Any], names: bool) -> Query:
    name = fields["query"]
    kind = QUERY_KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise RecordError(f"query: expected one of {', '.join(QUERY_KINDS)}")
    if ("dst" in fields) != (kind is Kind.EDGE):
        raise RecordError("dst: an edge query takes it, and no other")
    if ("steps" in fields) != (kind is Kind.HOPS):
        raise RecordError("steps: a hops query takes it, and no other")
    dst: Name = 0
    if kind is Kind.EDGE:
        dst = _vertex(fields, "dst", names)
    elif kind is Kind.HOPS:
        dst = integer(fields, "steps", 1, MAX_HOPS)
    after = None
    if "after" in fields:
        if kind not in _MANY_ROWS:
            raise RecordError("after: a query for neighbours or hops takes it, and no other")
        after = _vertex(fields, "after", names)
    reply = topic_name(text(fields, "reply")) if "reply" in fields else None
    deadline = integer(fields, "deadline", 0, 2**63 - 1) if "deadline" in fields else None
    src = _vertex(fields, "src", names)
    return Query(short_text(fields, "id"), kind, src, dst, reply, deadline, after)


def _vertex(fields: dict[Any, Any], name: str, names: bool) -> Name:
    """Field `name`, a vertex. Raises RecordError."""
    value = fields.get(name)
    if names and type(value) not in (int, str):
        raise RecordError(f"{name}: expected an integer or text, got {type_name(value)}")
    if type(value) is not str:
        low, high = (MIN_NAME, MAX_NAME) if names else (0, MAX_VERTEX)
        return integer(fields, name, low, high)
    if not names:
        raise NamedVertex(name)
    return text_name(value, name)
