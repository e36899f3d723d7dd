"""Records of the stream: bytes in, validated operations out.

Idea: the cost of decoding should be per record, not per edge, so the fast form carries whole
columns that `np.frombuffer` reads in place. `wire.py` judges bytes before they are decoded.

Grammar. A record is one msgpack value and nothing after it. Maps have text keys, each once, in
any order except where said. Columns are `bin`, little-endian, `rows` values each.

    record  := columns | row | query
    columns := { "rows": uint                         first, wherever the record passes 1 MiB
               , names "src" rows, names "dst" rows   dense ids: bin u4 or u8; else `id_columns.py`
               , "weight": bin f4 or f8               absent: 1.0 throughout
               , "time": bin i8                       event time; absent: stamped when buffered
               , "kind": bin u1                       absent: appends; 0 append, 1 delete,
                                                      2 add vertex, 3 remove vertex
               , origin }
    row     := { "src": vertex, "dst": vertex         dst absent in a vertex operation
               , "weight": number, "time": int64, "kind": name, origin }
             | [ src, dst, weight or nil, time or nil ]      2 to 4 items: an append
    query   := { "query": name, "id": text, "src": vertex
               , "dst": vertex                        edge only
               , "steps": 1 … 255                     hops only
               , "after": vertex                      only ids above it: successors, predecessors,
                                                      hops; absent: all
               , "reply": topic                       absent: the pipeline's first reply topic
               , "deadline": int64                    ms since 1970; absent: none
               , origin }
    origin  := "source": text, "seq": uint63          both or neither; seq rises within a source
    vertex  := 0 … 2^32 − 2                           dense ids
             | −2^63 … 2^64 − 1 | text                mapped ids: 5 and "5" are two vertices
    name    := a member of `lpma.Kind` in lower case: "append", "remove_vertex", "successors" …
    text    := 1 to 64 bytes of UTF-8;  topic := text of letters, digits, ".", "_" and "-"

An append of weight w to an absent edge makes it where w > 0, and else does nothing; of an edge of
weight v it makes one of v + w, or none where that is below 0. So appends of 5 and −3 to an absent
edge come to 2, those of −3 and 5 to 5, those of 2 and −3 to no edge. What does nothing is no error,
and is counted: see `lpma.Unchanged`.

Limits: 8 MiB for columns, 1 MiB for other forms, 2^20 rows (2^16 where a name is text), 16 entries,
|weight| ≤ 1e30, finite. Repeated edges are normal; a boolean is not a number here. Updates as JSON
are in `json_records.py`, replies in `replies.py`.
"""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt

from lpma.batch import MAX_HOPS, Columns, Kind
from lpma.errors import BatchError

from ..errors import RecordError
from .json import JsonFields, decode_json, is_msgpack
from .msgpack import binary, integer, only_fields, text, topic_name, unpack
from .names import field_names, name_fields, names_of, read_names
from .records import MAX_ROWS, NO_UPDATES, Ids, Name, row, updates, vertex
from .records import QUERIES as _QUERIES
from .records import Query as Query
from .records import Record as Record

MAX_COLUMNAR_BYTES = 8 << 20
MAX_ROW_BYTES = 1 << 20
MAX_TEXT_ROWS = 1 << 16  # an object each, many times its bytes

_ROW_FIELDS = frozenset({"src", "dst", "weight", "time", "kind", "source", "seq"})
_COLUMN_FIELDS = _ROW_FIELDS | {"rows"} | field_names("src") | field_names("dst")
_QUERY_FIELDS = frozenset(
    {"query", "id", "src", "dst", "steps", "after", "reply", "deadline", "source", "seq"}
)
_MANY_ROWS = (Kind.SUCCESSORS, Kind.PREDECESSORS, Kind.HOPS)


def decode_record(data: bytes, *, ids: Ids = "dense", json: JsonFields | None = None) -> Record:
    """The record in `data`. Columns are read-only views into it. With `json`, a record that does
    not begin as msgpack is a JSON object with these fields. Raises RecordError only."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise RecordError(f"a record is bytes, not {type(data).__name__}")
    if json is not None and not is_msgpack(data):
        return decode_json(bytes(data), json, ids)
    value = unpack(data, _size_limit(data))
    if isinstance(value, list):
        return _row_from_list(value, ids)
    if not isinstance(value, dict):
        raise RecordError(f"a record is a map or an array, not {type(value).__name__}", "malformed")
    if "query" in value:
        only_fields(value, _QUERY_FIELDS)
        return Record(NO_UPDATES, (_query(value, ids),), *_origin(value))
    if "rows" in value:
        only_fields(value, _COLUMN_FIELDS)
        return _sent_by(value, _columns(value, ids))
    only_fields(value, _ROW_FIELDS)
    return _sent_by(value, row(value, ids))


def decode(data: bytes) -> Columns:
    """The updates of the record in `data`; none where it is a query. Raises RecordError only."""
    return decode_record(data).batch


def encode_updates(
    src: Any,
    dst: Any,
    weight: npt.ArrayLike | None = None,
    time: npt.ArrayLike | None = None,
    kind: npt.ArrayLike | None = None,
    *,
    source: str | None = None,
    seq: int | None = None,
    ids: Ids = "dense",
) -> bytes:
    """A columnar record, the fast road: some thousands of operations a record.

    src, dst: vertex ids; with ids="mapped" any integers of 64 bits, text, or a mixture. weight:
    float32 or float64, None for 1.0; time: int64, None to be stamped; kind: uint8 `Kind` of
    updates, None for appends. At most 2^20 rows (2^16 with text) and 8 MiB, which 335,000 rows of
    all columns of dense ids always fit. Raises RecordError."""
    named: tuple[Any, ...] = ()
    if ids == "mapped":
        named = names_of(src, "src"), names_of(dst, "dst")
        src, dst = (np.zeros(len(column), np.uint32) for column in named)
    try:
        columns = Columns.validated(0 if kind is None else kind, src, dst, weight, time)
    except BatchError as error:
        raise RecordError(str(error)) from None
    if len(columns) > MAX_ROWS:
        raise RecordError(f"{len(columns)} rows: at most {MAX_ROWS} a record; cut it", "oversized")
    src, dst = named or (columns.src, columns.dst)
    fields = {"rows": len(columns), **name_fields("src", src), **name_fields("dst", dst)}
    if columns.weight is not None:
        fields["weight"] = columns.weight.astype(f"<f{columns.weight.itemsize}").tobytes()
    if columns.time is not None:
        fields["time"] = columns.time.astype("<i8").tobytes()
    if kind is not None:
        fields["kind"] = columns.kind.tobytes()
    return _pack(fields, source, seq, ids)


def encode_row(
    src: Name,
    dst: Name | None = None,
    weight: float | None = None,
    time: int | None = None,
    kind: Kind = Kind.APPEND,
    *,
    source: str | None = None,
    seq: int | None = None,
    ids: Ids = "dense",
) -> bytes:
    """One update as a small map. `dst` is left out for vertex operations. Raises RecordError."""
    fields = {"src": src, "dst": dst, "weight": weight, "time": time, "kind": kind.name.lower()}
    return _pack(fields, source, seq, ids)


def encode_query(
    id: str,
    kind: Kind,
    src: Name,
    dst: Name | None = None,
    *,
    steps: int | None = None,
    after: Name | None = None,
    reply: str | None = None,
    deadline: int | None = None,
    source: str | None = None,
    seq: int | None = None,
    ids: Ids = "dense",
) -> bytes:
    """One query. `dst` is for EDGE, `steps` for HOPS. `after` goes on where a reply with more to
    come ended. `id` comes back in the reply; `reply` names the topic it goes to; `deadline` is in
    ms since 1970. Raises RecordError."""
    fields: dict[str, Any] = {"query": kind.name.lower(), "id": id, "src": src, "dst": dst}
    fields |= {"steps": steps, "after": after, "reply": reply, "deadline": deadline}
    return _pack(fields, source, seq, ids)


def encode_record(record: Record) -> bytes:
    """`record` again, its updates as columns whatever form they came in. Raises RecordError."""
    ids: Ids = "dense" if record.names is None else "mapped"
    if record.queries:
        (query,) = record.queries
        hops, edge = query.kind is Kind.HOPS, query.kind is Kind.EDGE
        return encode_query(
            query.id, query.kind, query.src, query.dst if edge else None,
            steps=int(query.dst) if hops else None, after=query.after, reply=query.reply,
            deadline=query.deadline,
            source=record.source, seq=record.seq, ids="mapped",
        )  # fmt: skip
    batch, ends = record.batch, record.names or record.batch
    return encode_updates(
        ends.src, ends.dst, batch.weight, batch.time, batch.kind,
        source=record.source, seq=record.seq, ids=ids,
    )  # fmt: skip


def _pack(fields: dict[str, Any], source: str | None, seq: int | None, ids: Ids) -> bytes:
    """What is packed is decoded once, so that no producer writes what no consumer takes."""
    fields = {**fields, "source": source, "seq": seq}
    try:
        present = {name: value for name, value in fields.items() if value is not None}
        data: bytes = msgpack.packb(present)
    except (TypeError, ValueError, OverflowError) as error:
        raise RecordError(f"cannot be packed: {error}") from None
    decode_record(data, ids=ids)
    return data


def _size_limit(data: bytes | bytearray | memoryview) -> int:
    """The shortest encoding of a map whose first field is "rows" marks the columnar form."""
    head = bytes(data[:6])
    columnar = len(head) == 6 and head[0] & 0xF0 == 0x80 and head[1:] == b"\xa4rows"
    return MAX_COLUMNAR_BYTES if columnar else MAX_ROW_BYTES


def _origin(fields: dict[Any, Any]) -> tuple[str | None, int | None]:
    if "source" not in fields and "seq" not in fields:
        return None, None
    return text(fields, "source"), integer(fields, "seq", 0, 2**63 - 1)


def _sent_by(fields: dict[Any, Any], record: Record) -> Record:
    source, seq = _origin(fields)
    return record if source is None else Record(record.batch, (), source, seq, record.names)


def _columns(fields: dict[Any, Any], ids: Ids) -> Record:
    rows = integer(fields, "rows", 0, MAX_ROWS)
    src = read_names(fields, "src", rows, MAX_TEXT_ROWS)
    dst = read_names(fields, "dst", rows, MAX_TEXT_ROWS)
    weight = binary(fields, "weight", "f", rows) if "weight" in fields else None
    time = binary(fields, "time", "<i8", rows) if "time" in fields else None
    kind = binary(fields, "kind", "u1", rows) if "kind" in fields else None
    return updates(kind, src, dst, weight, time, ids)


def _row_from_list(items: list[Any], ids: Ids) -> Record:
    if not 2 <= len(items) <= 4:
        raise RecordError(f"a row array is [src, dst, weight, time], not {len(items)} items")
    named = zip(("src", "dst", "weight", "time"), items, strict=False)
    return row({name: item for name, item in named if item is not None}, ids)


def _query(fields: dict[Any, Any], ids: Ids) -> Query:
    name = fields["query"]
    kind = _QUERIES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise RecordError(f"query: expected one of {', '.join(_QUERIES)}")
    if ("dst" in fields) != (kind is Kind.EDGE):
        raise RecordError("dst: an edge query takes it, and no other")
    if ("steps" in fields) != (kind is Kind.HOPS):
        raise RecordError("steps: a hops query takes it, and no other")
    dst: Name = 0
    if kind is Kind.EDGE:
        dst = vertex(fields, "dst", ids)
    elif kind is Kind.HOPS:
        dst = integer(fields, "steps", 1, MAX_HOPS)
    after = None
    if "after" in fields:
        if kind not in _MANY_ROWS:
            raise RecordError("after: a query for neighbours or hops takes it, and no other")
        after = vertex(fields, "after", ids)
    reply = topic_name(text(fields, "reply")) if "reply" in fields else None
    deadline = integer(fields, "deadline", 0, 2**63 - 1) if "deadline" in fields else None
    src = vertex(fields, "src", ids)
    return Query(text(fields, "id"), kind, src, dst, reply, deadline, after)
