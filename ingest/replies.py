"""What a pipeline writes back: replies to queries, and dead letters.

Grammar, as in `codec.py`; a column is `bin`, little-endian, of equal length within a reply.

    reply   := { "reply": text                        the query's id
               , "kind": name, "version": uint        of the graph after the query's batch
               , "time": int64                        when the query was buffered, ms since 1970
               , answer | "error": text, "message": text }
    answer  := "found": bin u1, "weight": bin f4 or f8, "times": bin i8         edge: one row
             | ids, "weight": bin f4 or f8, "times": bin i8                     neighbours, hops
             | "degree": bin i8 | "found": bin u1                               degree; vertex
    ids     := "ids": bin u4                          dense ids, rising
             | "rows": uint, names "ids" rows         mapped ids: see `id_columns.py`; in the order
                                                      in which the stream named them first
    letter  := { "topic": text, "partition": uint, "offset": uint, "reason": text
               , "bytes": uint, "value": bin }        the record's size, and its first 64 KiB

"weight" and "times" are absent where the graph keeps no such column, and for hops. A reply or a
dead letter may come twice after a crash: drop repeats by id, or by topic, partition and offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt

from lpma.batch import Edges, Kind, Neighbors

from .errors import RecordError
from .id_columns import field_names, name_fields, read_names
from .records import QUERIES as _QUERIES
from .wire import binary, integer, only_fields, text, unpack

MAX_REPLY_BYTES = 32 << 20
MAX_MESSAGE_BYTES = 1024
MAX_KEPT_BYTES = 64 << 10

Answer = Edges | Neighbors | npt.NDArray[Any]

_HEAD = frozenset({"reply", "kind", "version", "time"})
_IDS = field_names("ids") | {"rows"}
_FIELDS = {
    Kind.EDGE: _HEAD | {"found", "weight", "times"},
    Kind.SUCCESSORS: _HEAD | _IDS | {"weight", "times"},
    Kind.PREDECESSORS: _HEAD | _IDS | {"weight", "times"},
    Kind.HOPS: _HEAD | _IDS,
    Kind.DEGREE: _HEAD | {"degree"},
    Kind.VERTEX: _HEAD | {"found"},
}
_LETTER_FIELDS = frozenset({"topic", "partition", "offset", "reason", "bytes", "value"})


@dataclass(frozen=True)
class Reply:
    """The answer to query `id`, or an error. `answer` is what the graph gives for one query:
    Edges of length 1, Neighbors with one row, int64[1] for a degree, bool[1] for a vertex. Where
    ids are mapped, the ids of Neighbors are names: uint64, int64, or objects, each int or str."""

    id: str
    kind: Kind
    version: int
    time: int
    answer: Answer | None = None
    error: str | None = None  # "deadline", "hops", "rows" or "unsupported"
    message: str = ""  # what to do about the error


@dataclass(frozen=True)
class DeadLetter:
    """A record that was not applied, where it stood, and why."""

    topic: str
    partition: int
    offset: int
    reason: str
    size: int  # bytes of the whole record
    value: bytes  # its first 64 KiB


def encode_reply(reply: Reply) -> bytes:
    """Raises RecordError where the answer passes 32 MiB."""
    fields: dict[str, Any] = {
        "reply": reply.id,
        "kind": reply.kind.name.lower(),
        "version": reply.version,
        "time": reply.time,
    }
    if reply.error is not None:
        fields |= {"error": reply.error, "message": _clipped(reply.message, MAX_MESSAGE_BYTES)}
    else:
        fields |= _answer_columns(reply)
    data: bytes = msgpack.packb(fields)
    if len(data) > MAX_REPLY_BYTES:
        raise RecordError(f"a reply of {len(data)} bytes: at most {MAX_REPLY_BYTES}; ask for less")
    return data


def _answer_columns(reply: Reply) -> dict[str, Any]:
    answer = reply.answer
    fields: dict[str, Any] = {}
    if isinstance(answer, Edges):
        columns = {"found": answer.found, "weight": answer.weight, "times": answer.time}
    elif isinstance(answer, Neighbors):
        columns = {"weight": answer.weight, "times": answer.time}
        if answer.ids.dtype == np.uint32:
            columns["ids"] = answer.ids
        else:
            fields = {"rows": len(answer.ids), **name_fields("ids", answer.ids)}
    elif answer is None:
        raise RecordError(f"reply {reply.id!r} has neither an answer nor an error")
    else:
        columns = {"degree" if reply.kind is Kind.DEGREE else "found": answer}
    for name, column in columns.items():
        if column is not None:
            fields[name] = np.asarray(column).astype(column.dtype.newbyteorder("<")).tobytes()
    return fields


def decode_reply(data: bytes) -> Reply:
    """The reply in `data`. Raises RecordError only."""
    fields = unpack(data, MAX_REPLY_BYTES, MAX_MESSAGE_BYTES)
    if not isinstance(fields, dict):
        raise RecordError("a reply is a map")
    name = fields.get("kind")
    kind = _QUERIES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise RecordError(f"kind: expected one of {', '.join(_QUERIES)}")
    version = integer(fields, "version", 0, 2**63 - 1)
    time = integer(fields, "time", -(2**63), 2**63 - 1)
    reply = Reply(text(fields, "reply"), kind, version, time)
    if "error" in fields:
        only_fields(fields, _HEAD | {"error", "message"})
        message = fields.get("message", "")
        if not isinstance(message, str):
            raise RecordError("message: expected text")
        return Reply(reply.id, kind, version, time, None, text(fields, "error"), message)
    only_fields(fields, _FIELDS[kind])
    return Reply(reply.id, kind, version, time, _answer(kind, fields))


def _answer(kind: Kind, fields: dict[Any, Any]) -> Answer:
    if kind is Kind.DEGREE:
        return binary(fields, "degree", "<i8", 1)
    if kind is Kind.VERTEX:
        return binary(fields, "found", "u1", 1).astype(bool)
    if kind is Kind.EDGE:
        return Edges(binary(fields, "found", "u1", 1).astype(bool), *_edge_columns(fields, 1))
    ids = _ids(fields)
    rows = np.array([0, len(ids)], np.int64)
    return Neighbors(rows, ids, *_edge_columns(fields, len(ids)))


def _ids(fields: dict[Any, Any]) -> npt.NDArray[Any]:
    if "rows" in fields:
        rows = integer(fields, "rows", 0, MAX_REPLY_BYTES)
        names = read_names(fields, "ids", rows, rows)
        # Two ways to write integers, which depend on how large they are: one type for both.
        return names.astype(np.uint64) if names.dtype == np.uint32 else names
    if not fields.keys().isdisjoint(_IDS - {"ids"}):
        raise RecordError("rows: expected beside ids that are mapped")
    dense = fields.get("ids")
    return binary(fields, "ids", "<u4", len(dense) // 4 if isinstance(dense, bytes) else 0)


def _edge_columns(
    fields: dict[Any, Any], rows: int
) -> tuple[npt.NDArray[Any] | None, npt.NDArray[Any] | None]:
    weight = binary(fields, "weight", "f", rows) if "weight" in fields else None
    return weight, binary(fields, "times", "<i8", rows) if "times" in fields else None


def encode_dead_letter(letter: DeadLetter) -> bytes:
    data: bytes = msgpack.packb(
        {
            "topic": letter.topic,
            "partition": letter.partition,
            "offset": letter.offset,
            "reason": _clipped(letter.reason, MAX_MESSAGE_BYTES),
            "bytes": letter.size,
            "value": letter.value[:MAX_KEPT_BYTES],
        }
    )
    return data


def decode_dead_letter(data: bytes) -> DeadLetter:
    """The dead letter in `data`. Raises RecordError only."""
    fields = unpack(data, 2 * MAX_KEPT_BYTES, MAX_MESSAGE_BYTES)
    if not isinstance(fields, dict):
        raise RecordError("a dead letter is a map")
    only_fields(fields, _LETTER_FIELDS)
    value = fields.get("value")
    if not isinstance(value, bytes):
        raise RecordError("value: expected the record's bytes")
    return DeadLetter(
        text(fields, "topic"),
        integer(fields, "partition", 0, 2**31 - 1),
        integer(fields, "offset", 0, 2**63 - 1),
        text(fields, "reason"),
        integer(fields, "bytes", 0, 2**63 - 1),
        value,
    )


def _clipped(message: str, max_bytes: int) -> str:
    """The start of `message` that takes at most `max_bytes` as UTF-8."""
    return message.encode(errors="replace")[:max_bytes].decode(errors="ignore")
