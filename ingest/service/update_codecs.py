"""The body of `POST /v1/updates` as records of the log, which `docs/format.md` specifies.

    application/json                      columns: {"src": […], "dst": […], …}; or a row
    application/jsonl, …/x-ndjson         a row a line: {"src": 1, "dst": 2, "kind": "delete"}
    application/msgpack                   one record as the log has it, which is written as it came
    application/vnd.apache.arrow.stream   columns src, dst, weight, time, kind

Idea: everything is judged before anything is written, by the functions that a pipeline reads with:
a record is encoded once, and decoded once to judge it. So what is taken never becomes a dead
letter, unless a policy for late records says so.

In a stream of JSON records are JSON, a row each, as its other producers and consumers have them.
They have no fields for a `source` and a `seq`, so what names these is refused there.

Tricks: columns are cut into records of `RECORD_ROWS` rows, which brokers take at their default
limits. What names a `source` and a `seq` stays one record: a second one of the same `seq` would be
a repeat. Bytes are counted before they are decoded, and Arrow's compression, of which some bytes
can become gigabytes, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from lpma.batch.columns import Kind

from ..errors import RecordError
from ..fields import Fields
from ..formats.encode import encode_updates
from ..formats.json import write_json
from ..formats.kinds import UPDATE_KINDS
from ..formats.msgpack import NestedRecord, has_expiry
from ..formats.records import MAX_ROWS, decode_record
from .arrow_input import is_text, read_columns
from .codecs import names_twice
from .messages import UpdateColumns
from .problems import Problem

Array = npt.NDArray[Any]

RECORD_ROWS = 1 << 15
MAX_ENCODED_BYTES = 64 << 20  # of all records of one request
_PRODUCER = ("source", "seq")
COLUMNS = tuple(n for n in UpdateColumns.__struct_fields__ if n not in _PRODUCER)
_TYPES: dict[str, set[type]] = {  # of the values of a column of numbers
    "src": {int},
    "dst": {int},
    "weight": {int, float},
    "time": {int},
}
_OF_A_VERTEX = ("add_vertex", "remove_vertex", Kind.ADD_VERTEX, Kind.REMOVE_VERTEX)
_EXPIRES = ("expire", Kind.EXPIRE)
_WITHOUT_DST = _OF_A_VERTEX + _EXPIRES
_SAID = {int: "integers", float: "fractions", str: "text"}


class Producer(NamedTuple):
    """Who sends, and which of its records this is; both None: nobody repeats it."""

    source: str | None = None
    seq: int | None = None


class Records(NamedTuple):
    """What a body becomes: records in order, how many updates are in them, who sent them, and
    whether something is to expire by them."""

    values: list[bytes]
    operations: int
    source: str | None
    expires: bool = False


class Stream(NamedTuple):
    """How a stream's records are read. fields: of its records of JSON; None: they are msgpack."""

    names: bool = False
    fields: Fields | None = None


def records_of(content_type: str, body: bytes, producer: Producer, stream: Stream) -> Records:
    """The records of a body. producer: as the request's query names it. Raises RecordError, or
    Problem 415 for other forms."""
    form = _FORMS.get(content_type.partition(";")[0].strip().lower())
    if form is None:
        said = f"{content_type[:80]!r} is not taken" if content_type else "there is none"
        raise Problem(415, f"Content-Type: {said}: send {', '.join(_FORMS)}")
    return form(body, producer, stream)


# Forms ---------------------------------------------------------------------------------------


def _of_json(body: bytes, producer: Producer, stream: Stream) -> Records:
    fields = _json_object(body, "the body")
    named = {name: fields.pop(name) for name in _PRODUCER if fields.get(name) is not None}
    if named and producer != Producer():
        raise RecordError("source and seq: give them once, in the body or in the URL")
    if named:
        producer = Producer(named.get("source"), named.get("seq"))
    present = {name: value for name, value in fields.items() if value is not None}
    if not isinstance(present.get("src"), list):
        columns, rows = _of_rows([present], stream.names)
        return _encoded(columns, rows, producer, stream)
    _only_columns(present)
    for name, values in present.items():
        if not isinstance(values, list):
            raise RecordError(f"{name}: expected a list, as src is")
    rows = len(present["src"])
    if wrong := next((name for name, values in present.items() if len(values) != rows), None):
        raise RecordError(f"{wrong}: {len(present[wrong])} values, but src has {rows}")
    if "kind" in present:
        present["dst"] = _ends(present)
    return _encoded(_checked(present, stream.names), rows, producer, stream)


def _of_lines(body: bytes, producer: Producer, stream: Stream) -> Records:
    lines = [line for line in body.split(b"\n") if line and not line.isspace()]
    _refuse_many(len(lines))
    objects = [_json_object(line, f"line {i}") for i, line in enumerate(lines, 1)]
    columns, rows = _of_rows(objects, stream.names)
    return _encoded(columns, rows, producer, stream)


def _of_msgpack(body: bytes, producer: Producer, stream: Stream) -> Records:
    if producer != Producer():
        raise RecordError("source and seq: a record of msgpack has them itself, as two fields")
    try:
        record = decode_record(body, names=stream.names)
    except NestedRecord as error:
        raise RecordError(
            f"{error}: send src and dst as bin columns beside `rows`, as the log has them, or "
            "lists as JSON",
            error.kind,
        ) from None
    if record.queries:
        raise RecordError("query: this endpoint takes updates; queries have endpoints of their own")
    batch = record.batch
    _refuse_none(len(batch))
    if stream.fields is not None:
        ends = record.names or batch
        columns = {"src": ends.src, "dst": ends.dst, "kind": batch.kind}
        columns |= {} if batch.weight is None else {"weight": batch.weight}
        columns |= {} if batch.time is None else {"time": batch.time}
        return _encoded(columns, len(batch), Producer(record.producer, record.seq), stream)
    return Records([body], len(batch), record.producer, has_expiry(batch.kind))


def _of_arrow(body: bytes, producer: Producer, stream: Stream) -> Records:
    columns, rows = read_columns(body, MAX_ROWS, _fits)
    return _encoded(_checked(columns, stream.names), rows, producer, stream)


_FORMS: dict[str, Callable[[bytes, Producer, Stream], Records]] = {
    "application/json": _of_json,
    "application/jsonl": _of_lines,
    "application/x-ndjson": _of_lines,
    "application/msgpack": _of_msgpack,
    "application/vnd.msgpack": _of_msgpack,
    "application/x-msgpack": _of_msgpack,
    "application/vnd.apache.arrow.stream": _of_arrow,
}


# Values --------------------------------------------------------------------------------------


def _json_object(data: bytes, what: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(data)
    except msgspec.ValidationError as error:
        raise RecordError(f"{what}: {error}") from None  # a number out of all bounds
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"{what} is not JSON: {error}", "malformed") from None
    if not isinstance(value, dict):
        raise RecordError(f"{what}: expected an object, not {type(value).__name__}", "malformed")
    if names_twice(data, len(value)):
        raise RecordError(f"{what}: a field appears twice, or has an object in it")
    return value


# Columns -------------------------------------------------------------------------------------


def _of_rows(rows: list[dict[str, Any]], names: bool) -> tuple[dict[str, Any], int]:
    """Rows as checked columns, and how many there are. Raises RecordError."""
    _only_columns({name: None for row in rows for name in row})
    columns: dict[str, Any] = {
        name: [row.get(name) for row in rows]
        for name in COLUMNS
        if any(row.get(name) is not None for row in rows)
    }
    if "time" in columns and None in columns["time"]:
        raise RecordError("time: give all rows of a request a time, or none")
    if "weight" in columns:
        columns["weight"] = [1.0 if w is None else w for w in columns["weight"]]
    if "kind" in columns:
        kinds = columns["kind"] = ["append" if k is None else k for k in columns["kind"]]
        _check_ends(columns)
        columns["dst"] = _ends(columns)
        sources = zip(kinds, _given("src", columns), strict=True)
        columns["src"] = [0 if kind in _EXPIRES else src for kind, src in sources]
    return _checked(columns, names), len(rows)


def _check_ends(columns: dict[str, list[Any]]) -> None:
    """Raise RecordError for a row that has not as many vertices as its kind takes."""
    rows = zip(columns["kind"], _given("src", columns), _given("dst", columns), strict=True)
    for row, (kind, src, dst) in enumerate(rows):
        if kind in _EXPIRES and not src is dst is None:
            raise RecordError(f"src: row {row}: {kind} takes a time alone")
        if (kind in _WITHOUT_DST) != (dst is None):
            takes = "one vertex, in src" if dst is not None else "two vertices, src and dst"
            raise RecordError(f"dst: row {row}: {kind} takes {takes}")


def _only_columns(fields: dict[str, Any]) -> None:
    """Raise RecordError for a field that is not known."""
    if unknown := sorted(fields.keys() - set(COLUMNS)):
        raise RecordError(f"unknown field {unknown[0][:64]!r}: known are {', '.join(COLUMNS)}")


def _checked(columns: dict[str, Any], names: bool) -> dict[str, Any]:
    """Columns, lists or arrays, as `encode_updates` takes them. Raises RecordError."""
    if missing := [name for name in ("src", "dst") if name not in columns]:
        raise RecordError(f"{missing[0]}: is missing")
    found = {name: _values(name, column, names) for name, column in columns.items()}
    if "kind" in columns:
        found["kind"] = _kinds(columns["kind"])
    return found


def _ends(columns: dict[str, list[Any]]) -> list[Any]:
    """The column `dst` of columns with kinds: 0 where an operation on one vertex has none. Raises
    RecordError where another has none."""
    given = _given("dst", columns)
    for row, (kind, end) in enumerate(zip(columns["kind"], given, strict=True)):
        if end is None and kind not in _WITHOUT_DST:
            raise RecordError(f"dst: row {row} has none: only operations on one vertex need none")
    return [0 if end is None else end for end in given]


def _given(name: str, columns: dict[str, list[Any]]) -> list[Any]:
    """That column as it came; None in every row if it did not."""
    given: list[Any] = columns.get(name, [None] * len(columns["kind"]))
    return given


def _values(name: str, column: Any, names: bool) -> Any:
    """A column of numbers as an array; names as they are."""
    if name == "kind":
        return column
    if isinstance(column, np.ndarray):
        if name != "time":
            return column
        if column.dtype == np.uint64 and column.max(initial=0) >= 1 << 63:
            raise RecordError("time: an integer is too large")
        return column.astype(np.int64)
    wanted = _TYPES[name] | ({str} if names and name in ("src", "dst") else set())
    if not set(map(type, column)) <= wanted:
        said = " or ".join(_SAID[each] for each in _SAID if each in wanted)
        odd = next(i for i, value in enumerate(column) if type(value) not in wanted)
        got = type(column[odd]).__name__
        hint = "; text names vertices of a stream with names" if got == "str" else ""
        raise RecordError(f"{name}: row {odd} is {got}: expected {said}{hint}")
    if str in wanted:
        return column
    try:
        return np.array(column, np.float64 if float in wanted else np.int64)
    except OverflowError:
        raise RecordError(f"{name}: an integer is too large") from None


def _kinds(column: Any) -> Array:
    """uint8, from the names of kinds or their numbers. Raises RecordError."""
    if not isinstance(column, np.ndarray) and all(type(kind) is int for kind in column):
        column = np.array(column, object)
    if isinstance(column, np.ndarray):
        if not len(column) or 0 <= int(column.min()) <= int(column.max()) < len(UPDATE_KINDS):
            return column.astype(np.uint8)
    elif all(type(kind) is str and kind in UPDATE_KINDS for kind in column):
        return np.array([UPDATE_KINDS[kind] for kind in column], np.uint8)
    raise RecordError(f"kind: expected one of {', '.join(UPDATE_KINDS)}, or 0 to 4")


def _fits(name: str, kind: Any) -> bool:
    """Whether a column of Arrow may be of this type. Raises RecordError for an unknown column."""
    from pyarrow import types

    _only_columns({name: None})
    if name == "weight":
        return bool(types.is_integer(kind) or types.is_floating(kind))
    if name == "time":
        return bool(types.is_integer(kind) or types.is_timestamp(kind))
    return is_text(kind) or bool(types.is_integer(kind))


# Records -------------------------------------------------------------------------------------


def _encoded(columns: dict[str, Any], rows: int, producer: Producer, stream: Stream) -> Records:
    """The columns as records. Raises RecordError."""
    _refuse_none(rows)
    _refuse_many(rows)
    expires = "kind" in columns and has_expiry(columns["kind"])
    if producer != Producer():
        if stream.fields is not None:
            raise RecordError(
                "source and seq: the records of this stream, JSON, have no fields for them: send "
                "it without"
            )
        return Records([_record(columns, producer, stream.names)], rows, producer.source, expires)
    values, size = [], 0
    for start in range(0, rows, RECORD_ROWS):
        part = {name: column[start : start + RECORD_ROWS] for name, column in columns.items()}
        for value in _cut(part, stream.names):
            for record in (value,) if stream.fields is None else _as_json(value, stream):
                values.append(record)
                size += len(record)
            if size > MAX_ENCODED_BYTES:
                raise RecordError(
                    f"more than {MAX_ENCODED_BYTES} bytes as records: send it in parts", "oversized"
                )
    return Records(values, rows, None, expires)


def _as_json(record: bytes, stream: Stream) -> Iterator[bytes]:
    """A record of msgpack as JSON, a row each, of which each is decoded once. Raises RecordError.
    REQUIRES: the stream is of JSON."""
    assert stream.fields is not None
    found = decode_record(record, names=stream.names)
    batch, ends = found.batch, found.names or found.batch
    weight, time = (None if c is None else c.tolist() for c in (batch.weight, batch.time))
    rows = batch.kind.tolist(), ends.src.tolist(), ends.dst.tolist(), weight, time
    for value in write_json(stream.fields, *rows):
        decode_record(value, names=stream.names, fields=stream.fields)
        yield value


def _record(columns: dict[str, Any], producer: Producer, names: bool) -> bytes:
    try:
        return encode_updates(**columns, producer=producer.source, seq=producer.seq, names=names)
    except RecordError as error:
        if error.kind != "oversized":
            raise
        raise RecordError(
            f"{error}: what has a source and a seq is one record; send it in parts, each with a "
            "seq of its own",
            "oversized",
        ) from None


def _cut(columns: dict[str, Any], names: bool) -> Iterator[bytes]:
    """Records of these columns, halved until each is small enough: names may be long."""
    try:
        yield encode_updates(**columns, names=names)
    except RecordError as error:
        rows = len(columns["src"])
        if error.kind != "oversized" or rows == 1:
            raise
        for half in (slice(0, rows // 2), slice(rows // 2, rows)):
            yield from _cut({name: column[half] for name, column in columns.items()}, names)


def _refuse_none(rows: int) -> None:
    if not rows:
        raise RecordError("there is no update in it")


def _refuse_many(rows: int) -> None:
    if rows > MAX_ROWS:
        raise RecordError(f"{rows} rows: at most {MAX_ROWS} in one request", "oversized")
