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

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

import numpy.typing as npt

from ..errors import RecordError
from ..formats.encode import encode_updates
from ..formats.json import JsonFields, write_json
from ..formats.msgpack import NestedRecord, has_expiry
from ..formats.records import MAX_ROWS, decode_record
from .problems import Problem
from .update_columns import COLUMNS, checked, ends, of_rows, only_columns

Array = npt.NDArray[Any]

RECORD_ROWS = 1 << 15
MAX_ENCODED_BYTES = 64 << 20  # of all records of one request
_PRODUCER = ("source", "seq")


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
    """How a stream's records are read. json: None for msgpack."""

    names: bool = False
    json: JsonFields | None = None


def records_of(content_type: str, body: bytes, producer: Producer, stream: Stream) -> Records:
    """The records of a body. producer: as the request's query names it. Raises Problem: 400 if it
    is no body of its form, 413 if it is too large, 415 for other forms, 422 for a wrong value."""
    form = _FORMS.get(content_type.partition(";")[0].strip().lower())
    if form is None:
        said = f"{content_type[:80]!r} is not taken" if content_type else "there is none"
        raise Problem(415, f"Content-Type: {said}: send {', '.join(_FORMS)}")
    try:
        return form(body, producer, stream)
    except RecordError as error:
        raise _problem_of(error) from None


def _problem_of(error: RecordError) -> Problem:
    return Problem({"malformed": 400, "oversized": 413}.get(error.kind, 422), str(error))


def _malformed(detail: str) -> NoReturn:
    raise RecordError(detail, "malformed")


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
        columns, rows = of_rows([present], stream.names)
        return _encoded(columns, rows, producer, stream)
    only_columns(present)
    for name, values in present.items():
        if not isinstance(values, list):
            raise RecordError(f"{name}: expected a list, as src is")
    rows = len(present["src"])
    if wrong := next((name for name, values in present.items() if len(values) != rows), None):
        raise RecordError(f"{wrong}: {len(present[wrong])} values, but src has {rows}")
    if "kind" in present:
        present["dst"] = ends(present)
    return _encoded(checked(present, stream.names), rows, producer, stream)


def _of_lines(body: bytes, producer: Producer, stream: Stream) -> Records:
    lines = [line for line in body.split(b"\n") if line and not line.isspace()]
    _refuse_many(len(lines))
    objects = [_json_object(line, f"line {i}") for i, line in enumerate(lines, 1)]
    columns, rows = of_rows(objects, stream.names)
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
    if stream.json is not None:
        ends = record.names or batch
        columns = {"src": ends.src, "dst": ends.dst, "kind": batch.kind}
        columns |= {} if batch.weight is None else {"weight": batch.weight}
        columns |= {} if batch.time is None else {"time": batch.time}
        return _encoded(columns, len(batch), Producer(record.producer, record.seq), stream)
    return Records([body], len(batch), record.producer, has_expiry(batch.kind))


def _of_arrow(body: bytes, producer: Producer, stream: Stream) -> Records:
    from .arrow_updates import columns_of  # only Arrow's bodies need it

    columns, rows = columns_of(body, COLUMNS)
    return _encoded(checked(columns, stream.names), rows, producer, stream)


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
        value = _DECODER.decode(data.decode())
    except RecordError as error:
        raise RecordError(f"{what}: {error}", error.kind) from None
    except (ValueError, RecursionError) as error:
        _malformed(f"{what} is not JSON: {error}")
    if not isinstance(value, dict):
        _malformed(f"{what}: expected an object, not {type(value).__name__}")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise RecordError("a field appears twice")
    return fields


def _no_constant(name: str) -> NoReturn:
    _malformed(f"{name} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)


# Records -------------------------------------------------------------------------------------


def _encoded(columns: dict[str, Any], rows: int, producer: Producer, stream: Stream) -> Records:
    """The columns as records. Raises RecordError."""
    _refuse_none(rows)
    _refuse_many(rows)
    expires = "kind" in columns and has_expiry(columns["kind"])
    if producer != Producer():
        if stream.json is not None:
            raise RecordError(
                "source and seq: the records of this stream, JSON, have no fields for them: send "
                "it without"
            )
        return Records([_record(columns, producer, stream.names)], rows, producer.source, expires)
    values, size = [], 0
    for start in range(0, rows, RECORD_ROWS):
        part = {name: column[start : start + RECORD_ROWS] for name, column in columns.items()}
        for value in _cut(part, stream.names):
            for record in (value,) if stream.json is None else _as_json(value, stream):
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
    assert stream.json is not None
    found = decode_record(record, names=stream.names)
    batch, ends = found.batch, found.names or found.batch
    weight, time = (None if c is None else c.tolist() for c in (batch.weight, batch.time))
    rows = batch.kind.tolist(), ends.src.tolist(), ends.dst.tolist(), weight, time
    for value in write_json(stream.json, *rows):
        decode_record(value, names=stream.names, json=stream.json)
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
