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

import re
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ..errors import RecordError
from ..fields import Fields
from ..formats.encode import encode_updates
from ..formats.json import write_json
from ..formats.kinds import UPDATE_KINDS, WORDS
from ..formats.msgpack import NestedRecord, has_expiry
from ..formats.records import MAX_ROWS, decode_record
from .arrow_input import is_text, read_columns
from .codecs import ARROW, JSON, MSGPACK, decoder_of, form_of, read_json
from .codecs import FORMS as QUERY_FORMS
from .messages import UpdateColumns, UpdateRow
from .problems import Problem

RECORD_ROWS = 1 << 15
MAX_ENCODED_BYTES = 64 << 20  # of all records of one request
LINES = "lines"
FORMS = (*QUERY_FORMS, ("application/jsonl", LINES), ("application/x-ndjson", LINES))
_LIST = re.compile(rb'"src"\s*:\s*\[')  # of columns; a row has one vertex there
COLUMNS = ("src", "dst", "weight", "time", "kind")
_KIND_OF: dict[Any, int] = {word: int(kind) for word, kind in UPDATE_KINDS.items()}
_KIND_OF |= {kind: kind for kind in _KIND_OF.values()}
_TAKES = (2, 2, 1, 1, 0)  # vertices, by kind: append, delete, add_vertex, remove_vertex, expire
_VERTICES = ("none, a time alone", "one, in src", "two, src and dst")


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
    Problem, also of status 415 for other forms."""
    return _READERS[form_of(content_type, FORMS)](body, producer, stream)


# Forms ---------------------------------------------------------------------------------------


def _of_json(body: bytes, producer: Producer, stream: Stream) -> Records:
    given: UpdateColumns | UpdateRow
    if _LIST.search(body):
        given = read_json(body, UpdateColumns, 422)
        columns = _of_columns(given)
    else:
        given = read_json(body, UpdateRow, 422)
        columns = _of_rows(_transposed([given]))
    named = Producer(given.source, given.seq)
    if named != Producer() and producer != Producer():
        raise RecordError("source and seq: give them once, in the body or in the URL")
    return _encoded(columns, named if producer == Producer() else producer, stream)


def _of_lines(body: bytes, producer: Producer, stream: Stream) -> Records:
    lines = [line for line in body.split(b"\n") if line and not line.isspace()]
    _check_count(len(lines))
    try:
        rows = decoder_of(UpdateRow).decode_lines(b"\n".join(lines))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        rows = []
    columns = _transposed(rows)
    if body.count(b":") != sum(len(rows) - column.count(None) for column in columns.values()):
        # Something is wrong, or a text has a colon: each line is read by itself.
        columns = _transposed([_of_line(*line) for line in enumerate(lines, 1)])
    if any(column.count(None) < len(lines) for column in (columns["source"], columns["seq"])):
        raise RecordError("source and seq: of lines, they are given in the URL")
    return _encoded(_of_rows(columns), producer, stream)


def _of_line(number: int, line: bytes) -> UpdateRow:
    try:
        return read_json(line, UpdateRow, 422)
    except Problem as problem:
        raise Problem(problem.status_code, f"line {number}: {problem.detail}") from None


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
    _check_count(len(record.batch))
    sender = Producer(record.producer, record.seq)
    return _records([body], len(record.batch), sender, has_expiry(record.batch.kind), stream)


def _of_arrow(body: bytes, producer: Producer, stream: Stream) -> Records:
    columns, _ = read_columns(body, MAX_ROWS, _fits)
    for name in ("src", "dst"):
        if name not in columns:
            raise RecordError(f"{name}: is missing")
    if isinstance(columns.get("kind"), list):
        columns["kind"] = _kinds(columns["kind"])
    return _encoded(columns, producer, stream)


_READERS: dict[str, Callable[[bytes, Producer, Stream], Records]] = {
    JSON: _of_json, LINES: _of_lines, MSGPACK: _of_msgpack, ARROW: _of_arrow,
}  # fmt: skip


# Columns -------------------------------------------------------------------------------------


def _of_columns(given: UpdateColumns) -> dict[str, Any]:
    """Columns as `encode_updates` takes them; a vertex that an operation has none of is 0. Raises
    RecordError."""
    every = {name: getattr(given, name) for name in COLUMNS}
    columns = {name: column for name, column in every.items() if column is not None}
    rows = len(given.src)
    for name, values in columns.items():
        if len(values) != rows:
            raise RecordError(f"{name}: {len(values)} values, but src has {rows}")
    if given.kind is not None:
        columns["kind"] = _kinds(given.kind)
    columns["dst"] = [None] * rows if given.dst is None else given.dst
    if None in columns["dst"]:
        for row, dst in enumerate(columns["dst"]):
            kind = 0 if given.kind is None else columns["kind"][row]
            if dst is None and _TAKES[kind] == 2:
                raise RecordError(f"dst: row {row} has none: {WORDS[kind]} takes two vertices")
        columns["dst"] = _filled(columns["dst"], 0)
    return columns


def _transposed(rows: list[UpdateRow]) -> dict[str, list[Any]]:
    """The values of each field."""
    return {name: list(map(attrgetter(name), rows)) for name in UpdateRow.__struct_fields__}


def _of_rows(columns: dict[str, list[Any]]) -> dict[str, Any]:
    """The same of rows, each of which has as many vertices as its kind takes."""
    src, dst, kinds = columns["src"], columns["dst"], _kinds(_filled(columns["kind"], 0))
    has_kinds = columns["kind"].count(None) < len(src)
    if has_kinds or None in src or None in dst:
        for row, (kind, u, v) in enumerate(zip(kinds, src, dst, strict=True)):
            takes = _TAKES[kind]
            if (u is None, v is None) != (takes < 1, takes < 2):
                raise RecordError(f"row {row}: vertices of {WORDS[kind]}: {_VERTICES[takes]}")
    found: dict[str, Any] = {"src": _filled(src, 0), "dst": _filled(dst, 0)}
    if columns["weight"].count(None) < len(src):
        found["weight"] = _filled(columns["weight"], 1.0)
    if columns["time"].count(None) < len(src):
        found["time"] = columns["time"]
        if None in found["time"]:
            raise RecordError("time: give all rows of a request a time, or none")
    return found | ({"kind": kinds} if has_kinds else {})


def _filled(values: list[Any], absent: Any) -> list[Any]:
    return [absent if value is None else value for value in values]


def _kinds(column: list[Any]) -> list[int]:
    """Kinds by number, from their words or numbers. Raises RecordError."""
    try:
        return [_KIND_OF[kind] for kind in column]
    except KeyError:
        expected = f"one of {', '.join(UPDATE_KINDS)}, or 0 to {len(UPDATE_KINDS) - 1}"
        raise RecordError(f"kind: expected {expected}") from None


def _fits(name: str, kind: Any) -> bool:
    """Whether a column of Arrow may be of this type. Raises RecordError for an unknown column."""
    from pyarrow import types

    if name not in COLUMNS:
        raise RecordError(f"unknown column {name[:64]!r}: known are {', '.join(COLUMNS)}")
    if name == "weight":
        return bool(types.is_integer(kind) or types.is_floating(kind))
    if name == "time":
        return bool(types.is_integer(kind) or types.is_timestamp(kind))
    return is_text(kind) or bool(types.is_integer(kind))


# Records -------------------------------------------------------------------------------------


def _encoded(columns: dict[str, Any], producer: Producer, stream: Stream) -> Records:
    """The columns as records. Raises RecordError."""
    columns = {name: _as_array(column) for name, column in columns.items()}
    rows = len(columns["src"])
    _check_count(rows)
    expires = "kind" in columns and has_expiry(columns["kind"])
    most = RECORD_ROWS if producer == Producer() else rows
    starts = range(0, rows, most)
    parts = ({name: c[i : i + most] for name, c in columns.items()} for i in starts)
    values = (value for part in parts for value in _cut(part, producer, stream.names))
    return _records(values, rows, producer, expires, stream)


def _as_array(column: Any) -> Any:
    """Numbers as an array, which is faster to cut and encode; what fits none stays as it is."""
    kinds = set() if isinstance(column, np.ndarray) else set(map(type, column))
    if not kinds or str in kinds:
        return column
    try:
        return np.array(column, np.float64 if float in kinds else np.int64)
    except OverflowError:
        return column


def _records(
    values: Iterable[bytes], rows: int, producer: Producer, expires: bool, stream: Stream
) -> Records:
    """These records of msgpack, as the stream has them. Raises RecordError."""
    if stream.fields is not None:
        if producer != Producer():
            raise RecordError(
                "source and seq: the records of this stream, JSON, have no fields for them: send "
                "it without"
            )
        values = (row for value in values for row in _as_json(value, stream.names, stream.fields))
    found, size = [], 0
    for value in values:
        found.append(value)
        size += len(value)
        if size > MAX_ENCODED_BYTES:
            raise RecordError(
                f"more than {MAX_ENCODED_BYTES} bytes as records: send it in parts", "oversized"
            )
    return Records(found, rows, producer.source, expires)


def _as_json(record: bytes, names: bool, fields: Fields) -> Iterator[bytes]:
    """A record of msgpack as JSON, a row each, which is decoded once. Raises RecordError."""
    found = decode_record(record, names=names)
    batch, ends = found.batch, found.names or found.batch
    weight, time = (None if c is None else c.tolist() for c in (batch.weight, batch.time))
    rows = batch.kind.tolist(), ends.src.tolist(), ends.dst.tolist(), weight, time
    for value in write_json(fields, *rows):
        decode_record(value, names=names, fields=fields)
        yield value


def _cut(columns: dict[str, Any], producer: Producer, names: bool) -> Iterator[bytes]:
    """Records of these columns, halved until each is small enough: names may be long."""
    try:
        yield encode_updates(**columns, producer=producer.source, seq=producer.seq, names=names)
    except RecordError as error:
        rows = len(columns["src"])
        if error.kind == "oversized" and producer != Producer():
            raise RecordError(
                f"{error}: what has a source and a seq is one record; send it in parts, each with "
                "a seq of its own",
                "oversized",
            ) from None
        if error.kind != "oversized" or rows == 1:
            raise
        for half in (slice(0, rows // 2), slice(rows // 2, rows)):
            part = {name: column[half] for name, column in columns.items()}
            yield from _cut(part, producer, names)


def _check_count(rows: int) -> None:
    if not rows:
        raise RecordError("there is no update in it")
    if rows > MAX_ROWS:
        raise RecordError(f"{rows} rows: at most {MAX_ROWS} in one request", "oversized")
