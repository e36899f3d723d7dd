"""The body of `POST /v1/updates` as records of the log, which `docs/reference/format.md` specifies.

    application/json                      columns: {"src": […], "dst": […], …}; a row; or a list
                                          of rows
    application/jsonl, …/x-ndjson         a row a line: {"src": 1, "dst": 2, "kind": "delete"}
    application/msgpack                   one record as the log has it, which is written as it came
    application/vnd.apache.arrow.stream   columns src, dst, weight, time, kind

Idea: everything is judged before anything is written, by the functions that a pipeline reads with:
a record is encoded once, and decoded once to judge it. So what is taken never becomes a dead
letter, unless a policy for late records says so. Rows are read as those of a topic of JSON are
(`formats/row_reader.py`), except that a field which means nothing is refused.

In a stream of JSON records are JSON, a row each, as its other producers and consumers have them.
They have no fields for a `source` and a `seq`, so what names these is refused there.

Tricks: columns are cut into records of `RECORD_ROWS` rows, which brokers take at their default
limits. What names a `source` and a `seq` stays one record: a second one of the same `seq` would be
a repeat. Bytes are counted before they are decoded, and Arrow's compression, of which some bytes
can become gigabytes, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Raw

from lpma.batch.columns import OF_EDGES, Columns

from ..errors import RecordError
from ..fields import Fields
from ..formats.encode import encode_updates
from ..formats.json import write_json
from ..formats.kinds import UPDATE_KINDS, WORDS
from ..formats.msgpack import NestedRecord, has_expiry
from ..formats.names import joined
from ..formats.records import MAX_ROWS, decode_record
from ..formats.row_reader import RowReader, named_ends
from ..types import Names, Record, Values
from .arrow_input import is_text, read_columns
from .media import ARROW, JSON, JSON_LINES, MSGPACK, UPDATES, form_of
from .messages import UpdateColumns
from .query_codecs import read_json

RECORD_ROWS = 1 << 15
MAX_ENCODED_BYTES = 64 << 20  # of all records of one request
COLUMNS = ("src", "dst", "weight", "time", "kind")
_KIND_OF: dict[Any, int] = {word: int(kind) for word, kind in UPDATE_KINDS.items()}
_KIND_OF |= {kind: kind for kind in _KIND_OF.values()}

_COLUMN = re.compile(rb'"src"\s*:\s*\[')  # a row has one vertex there
_LIST = re.compile(rb"\s*\[")
_ROW = Fields(weight="weight", time="time", kind="kind", producer="source", seq="seq").of_topic()
_KNOWN = (*COLUMNS, "source", "seq")  # fields of a row


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
    return _READERS[form_of(content_type, UPDATES)](body, producer, stream)


# Forms ---------------------------------------------------------------------------------------


def _of_json(body: bytes, producer: Producer, stream: Stream) -> Records:
    if _LIST.match(body):
        _check_count(max(1, body.count(b"{")))
        rows = [bytes(row) for row in _decoded(body, list[Raw])]
        return _of_rows(rows, producer, stream, "row {}: ".format)
    if not _COLUMN.search(body):
        return _of_rows([body.strip()], producer, stream, lambda at: "")
    given = read_json(body, UpdateColumns)
    named = Producer(given.source, given.seq)
    return _encoded(_of_columns(given), _only(named, producer), stream)


def _of_lines(body: bytes, producer: Producer, stream: Stream) -> Records:
    lines = [line for each in body.split(b"\n") if (line := each.strip())]
    return _of_rows(lines, producer, stream, lambda at: f"line {at + 1}: ")


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
    JSON: _of_json, JSON_LINES: _of_lines, MSGPACK: _of_msgpack, ARROW: _of_arrow,
}  # fmt: skip


def _only(named: Producer, producer: Producer) -> Producer:
    """The producer that a body names, or the URL. Raises RecordError if both name one."""
    if named != Producer() and producer != Producer():
        raise RecordError("source and seq: give them once, in the body or in the URL")
    return producer if named == Producer() else named


# Rows ----------------------------------------------------------------------------------------


@cache
def _reader(names: bool) -> RowReader:
    return RowReader(_ROW, names, others=False)


def _of_rows(
    rows: Sequence[bytes], producer: Producer, stream: Stream, place: Callable[[int], str]
) -> Records:
    """Rows of JSON, read as those of a topic. place: what a refusal says first, by the number of a
    row; a row that is alone may name its producer."""
    _check_count(len(rows))
    values = Values.of(rows)
    try:
        str(values.data, "utf-8")  # so that none begins as msgpack
    except UnicodeDecodeError as error:
        raise RecordError(f"not UTF-8: {error.reason}", "malformed") from None
    found: list[Record] = []
    at = 0
    for part in _read(values, stream.names, place):
        if found and (part.batch.time is None) != (found[0].batch.time is None):
            this, others = ("has no", "have one") if part.batch.time is None else ("has a", "none")
            raise RecordError(
                f"{place(at)}time: this row {this} time, and those before it {others}: give all "
                "rows of a request a time, or none"
            )
        if part.producer is not None and len(rows) > 1:
            raise RecordError(f"{place(at)}source and seq: of many rows, they are given in the URL")
        found.append(part)
        at += len(part.batch)
    batch = Columns.joined([part.batch for part in found])
    ends = [part.names or part.batch for part in found]
    columns = {
        "src": joined([each.src for each in ends]),
        "dst": joined([each.dst for each in ends]),
        "weight": batch.weight,
        "time": batch.time,
        "kind": batch.kind if batch.kind.any() else None,
    }
    given = {name: column for name, column in columns.items() if column is not None}
    named = Producer(found[0].producer, found[0].seq)
    return _encoded(given, _only(named, producer), stream)


def _read(values: Values, names: bool, place: Callable[[int], str]) -> Iterator[Record]:
    """The same, decoded: as many together as say the same things. Raises RecordError."""
    for stretch in _reader(names).stretches(values):
        if stretch.rows is not None:
            ends = None if stretch.ends is None else Names(*named_ends(stretch.ends))
            source, seq = stretch.producers[0] if stretch.producers else (None, None)
            yield Record(stretch.rows, producer=source, seq=seq, names=ends)
            continue
        for at in range(stretch.start, stretch.stop):
            try:
                yield _row(values[at], names)
            except RecordError as error:
                raise RecordError(f"{place(at)}{error}", error.kind) from None


def _row(row: bytes, names: bool) -> Record:
    """A row that was not read with others. Raises RecordError."""
    if unknown := _decoded(row, dict[str, Raw]).keys() - set(_KNOWN):
        said = ", ".join(_KNOWN)
        raise RecordError(f"unknown field {min(unknown)[:64]!r}: known are {said}")
    return decode_record(row, names=names, fields=_ROW)


def _decoded(data: bytes, kind: Any) -> Any:
    """What JSON of this type says, its values not looked at. Raises RecordError."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"not rows of JSON: {error}", "malformed") from None


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
            if dst is None and kind in OF_EDGES:
                raise RecordError(f"dst: row {row} has none: {WORDS[kind]} takes two vertices")
        columns["dst"] = [0 if dst is None else dst for dst in columns["dst"]]
    return columns


def _kinds(column: list[Any]) -> list[int]:
    """Kinds by number, from their words or numbers. Raises RecordError."""
    try:
        return [_KIND_OF[kind] for kind in column]
    except KeyError:
        words = ", ".join(f"{word} ({kind:d})" for word, kind in UPDATE_KINDS.items())
        raise RecordError(f"kind: expected a word or a number of {words}") from None


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
    rows = len(columns["src"])
    _check_count(rows)
    expires = has_expiry(np.asarray(columns.get("kind", ()), np.uint8))
    most = RECORD_ROWS if producer == Producer() else rows
    starts = range(0, rows, most)
    parts = ({name: c[i : i + most] for name, c in columns.items()} for i in starts)
    values = (value for part in parts for value in _cut(part, producer, stream.names))
    return _records(values, rows, producer, expires, stream)


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
