"""Records of the stream: bytes in, validated operations out.

Idea: the cost of decoding should be per record, not per edge, so the fast form carries whole
columns that `np.frombuffer` reads in place. `wire.py` judges bytes before they are decoded.

Grammar. A record is one msgpack value and nothing after it. Maps have text keys, each once, in
any order except where said. Columns are `bin`, little-endian, `rows` values each.

    record  := columns | row | query
    columns := { "rows": uint                         first, wherever the record passes 1 MiB
               , "src": bin u4, "dst": bin u4
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
               , "reply": topic                       absent: the pipeline's first reply topic
               , "deadline": int64                    ms since 1970; absent: none
               , origin }
    origin  := "source": text, "seq": uint63          both or neither; seq rises within a source
    vertex  := 0 … 2^32 − 2
    name    := a member of `lpma.Kind` in lower case: "append", "remove_vertex", "successors" …
    text    := 1 to 64 bytes of UTF-8;  topic := text of letters, digits, ".", "_" and "-"

Limits: 8 MiB for columns, 1 MiB for other forms, 2^20 rows, 16 entries, |weight| ≤ 1e30, finite.
Repeated edges are normal; a boolean is not a number here. Replies are in `replies.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt

from lpma.batch import MAX_HOPS, MAX_VERTEX, MAX_WEIGHT, Columns, Kind
from lpma.errors import BatchError

from .errors import RecordError
from .wire import binary, integer, only_fields, text, topic_name, type_name, unpack

MAX_COLUMNAR_BYTES = 8 << 20
MAX_ROW_BYTES = 1 << 20
MAX_ROWS = 1 << 20

_COLUMN_FIELDS = frozenset({"rows", "src", "dst", "weight", "time", "kind", "source", "seq"})
_ROW_FIELDS = _COLUMN_FIELDS - {"rows"}
_QUERY_FIELDS = frozenset(
    {"query", "id", "src", "dst", "steps", "reply", "deadline", "source", "seq"}
)
_UPDATES = {kind.name.lower(): kind for kind in Kind if kind < Kind.EDGE}
_QUERIES = {kind.name.lower(): kind for kind in Kind if kind >= Kind.EDGE}
_NO_DST = (Kind.ADD_VERTEX, Kind.REMOVE_VERTEX)


@dataclass(frozen=True)
class Query:
    """One query of the stream. `dst` is the number of steps for HOPS, 0 where unused."""

    id: str
    kind: Kind
    src: int
    dst: int = 0
    reply: str | None = None  # None: the pipeline's first reply topic
    deadline: int | None = None  # ms since 1970


@dataclass(frozen=True)
class Record:
    """A decoded record: its updates in order, or its query; (source, seq) where it names them."""

    batch: Columns
    queries: tuple[Query, ...] = ()
    source: str | None = None
    seq: int | None = None


NO_UPDATES = Columns.validated([], [], [], None, None)


def decode_record(data: bytes) -> Record:
    """The record in `data`. Columns are read-only views into it. Raises RecordError only."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise RecordError(f"a record is bytes, not {type(data).__name__}")
    value = unpack(data, _size_limit(data))
    if isinstance(value, list):
        return Record(_row_from_list(value))
    if not isinstance(value, dict):
        raise RecordError(f"a record is a map or an array, not {type(value).__name__}", "malformed")
    if "query" in value:
        only_fields(value, _QUERY_FIELDS)
        return Record(NO_UPDATES, (_query(value),), *_origin(value))
    if "rows" in value:
        only_fields(value, _COLUMN_FIELDS)
        return Record(_columns(value), (), *_origin(value))
    only_fields(value, _ROW_FIELDS)
    return Record(_row(value), (), *_origin(value))


def decode(data: bytes) -> Columns:
    """The updates of the record in `data`; none where it is a query. Raises RecordError only."""
    return decode_record(data).batch


def encode_updates(
    src: npt.ArrayLike,
    dst: npt.ArrayLike,
    weight: npt.ArrayLike | None = None,
    time: npt.ArrayLike | None = None,
    kind: npt.ArrayLike | None = None,
    *,
    source: str | None = None,
    seq: int | None = None,
) -> bytes:
    """A columnar record, the fast road: some thousands of operations a record.

    src, dst: vertex ids; weight: float32 or float64, None for 1.0; time: int64, None to be
    stamped; kind: uint8 `Kind` of updates, None for appends. At most 2^20 rows and 8 MiB, which
    335,000 rows of all columns always fit. Raises RecordError."""
    try:
        columns = Columns.validated(0 if kind is None else kind, src, dst, weight, time)
    except BatchError as error:
        raise RecordError(str(error)) from None
    _check_updates(columns)
    fields: dict[str, Any] = {
        "rows": len(columns),
        "src": columns.src.astype("<u4").tobytes(),
        "dst": columns.dst.astype("<u4").tobytes(),
    }
    if columns.weight is not None:
        fields["weight"] = columns.weight.astype(f"<f{columns.weight.itemsize}").tobytes()
    if columns.time is not None:
        fields["time"] = columns.time.astype("<i8").tobytes()
    if kind is not None:
        fields["kind"] = columns.kind.tobytes()
    return _pack(fields, source, seq)


def encode_row(
    src: int,
    dst: int | None = None,
    weight: float | None = None,
    time: int | None = None,
    kind: Kind = Kind.APPEND,
    *,
    source: str | None = None,
    seq: int | None = None,
) -> bytes:
    """One update as a small map. `dst` is left out for vertex operations. Raises RecordError."""
    fields = {"src": src, "dst": dst, "weight": weight, "time": time, "kind": kind.name.lower()}
    return _pack(fields, source, seq)


def encode_query(
    id: str,
    kind: Kind,
    src: int,
    dst: int | None = None,
    *,
    steps: int | None = None,
    reply: str | None = None,
    deadline: int | None = None,
    source: str | None = None,
    seq: int | None = None,
) -> bytes:
    """One query. `dst` is for EDGE, `steps` for HOPS. `id` comes back in the reply; `reply` names
    the topic it goes to; `deadline` is in ms since 1970. Raises RecordError."""
    fields = {"query": kind.name.lower(), "id": id, "src": src, "dst": dst, "steps": steps}
    return _pack({**fields, "reply": reply, "deadline": deadline}, source, seq)


def _pack(fields: dict[str, Any], source: str | None, seq: int | None) -> bytes:
    """What is packed is decoded once, so that no producer writes what no consumer takes."""
    fields = {**fields, "source": source, "seq": seq}
    try:
        present = {name: value for name, value in fields.items() if value is not None}
        data: bytes = msgpack.packb(present)
    except (TypeError, ValueError, OverflowError) as error:
        raise RecordError(f"cannot be packed: {error}") from None
    decode_record(data)
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


def _columns(fields: dict[Any, Any]) -> Columns:
    rows = integer(fields, "rows", 0, MAX_ROWS)
    src, dst = binary(fields, "src", "<u4", rows), binary(fields, "dst", "<u4", rows)
    weight = binary(fields, "weight", "f", rows) if "weight" in fields else None
    time = binary(fields, "time", "<i8", rows) if "time" in fields else None
    kind = binary(fields, "kind", "u1", rows) if "kind" in fields else 0
    return _validated(kind, src, dst, weight, time)


def _validated(kind: Any, src: Any, dst: Any, weight: Any, time: Any) -> Columns:
    try:
        columns = Columns.validated(kind, src, dst, weight, time)
    except BatchError as error:
        raise RecordError(str(error)) from None
    _check_updates(columns)
    return columns


def _check_updates(columns: Columns) -> None:
    if len(columns) > MAX_ROWS:
        raise RecordError(f"{len(columns)} rows: at most {MAX_ROWS} a record; cut it", "oversized")
    if columns.num_queries:
        raise RecordError("kind: a query is a record of its own, with an id to answer to")
    # The store ignores the weight of a deletion; a record with a NaN there is still a bad record.
    if columns.weight is not None and not bool((np.abs(columns.weight) <= MAX_WEIGHT).all()):
        raise RecordError(f"weight: finite values of at most {MAX_WEIGHT:g} in size are taken")


def _number(value: object, name: str) -> float:
    if type(value) not in (int, float):
        raise RecordError(f"{name}: expected a number, got {type_name(value)}")
    # Compared before it is converted: an integer of any size compares, NaN fails.
    if not abs(value) <= MAX_WEIGHT:  # type: ignore[arg-type]
        raise RecordError(f"{name}: finite values of at most {MAX_WEIGHT:g} in size are taken")
    return float(value)  # type: ignore[arg-type]


def _row(fields: dict[Any, Any]) -> Columns:
    name = fields.get("kind", "append")
    kind = _UPDATES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise RecordError(f"kind: expected one of {', '.join(_UPDATES)}")
    src = integer(fields, "src", 0, MAX_VERTEX)
    if kind in _NO_DST and "dst" in fields:
        raise RecordError(f"dst: {name} takes one vertex, in src")
    dst = 0 if kind in _NO_DST else integer(fields, "dst", 0, MAX_VERTEX)
    weight = time = None
    if "weight" in fields:
        weight = np.array([_number(fields["weight"], "weight")])
    if "time" in fields:
        time = np.array([integer(fields, "time", -(2**63), 2**63 - 1)], np.int64)
    # Every field was checked above; checking columns of one row would take most of the time.
    ends = np.array([src, dst], np.uint32)
    return Columns(np.array([kind], np.uint8), ends[:1], ends[1:], weight, time)


def _row_from_list(items: list[Any]) -> Columns:
    if not 2 <= len(items) <= 4:
        raise RecordError(f"a row array is [src, dst, weight, time], not {len(items)} items")
    named = zip(("src", "dst", "weight", "time"), items, strict=False)
    return _row({name: item for name, item in named if item is not None})


def _query(fields: dict[Any, Any]) -> Query:
    name = fields["query"]
    kind = _QUERIES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise RecordError(f"query: expected one of {', '.join(_QUERIES)}")
    if ("dst" in fields) != (kind is Kind.EDGE):
        raise RecordError("dst: an edge query takes it, and no other")
    if ("steps" in fields) != (kind is Kind.HOPS):
        raise RecordError("steps: a hops query takes it, and no other")
    dst = 0
    if kind is Kind.EDGE:
        dst = integer(fields, "dst", 0, MAX_VERTEX)
    elif kind is Kind.HOPS:
        dst = integer(fields, "steps", 1, MAX_HOPS)
    reply = topic_name(text(fields, "reply")) if "reply" in fields else None
    deadline = integer(fields, "deadline", 0, 2**63 - 1) if "deadline" in fields else None
    src = integer(fields, "src", 0, MAX_VERTEX)
    return Query(text(fields, "id"), kind, src, dst, reply, deadline)
