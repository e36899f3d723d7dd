"""What a pipeline writes back: replies to queries, and dead letters.

Grammar, as in `codec.py`; a column is `bin`, little-endian, of equal length within a reply.

    reply   := { "reply": text                        the query's id; first, so that a reader can
                                                      pass over what others were sent
               , "kind": name, "version": uint        of the graph after the query's batch
               , "time": int64                        when the query was buffered, ms since 1970
               , answer | "error": text, "message": text
               , "retry_after": uint                  ms, where the error is "retry"
               , "more": true }                       rows were left out, all of higher ids
    answer  := "found": bin u1, "weight": bin f4 or f8, "times": bin i8         edge: one row
             | ids, "weight": bin f4 or f8, "times": bin i8                     neighbours, hops
             | "degree": bin i8 | "found": bin u1                               degree; vertex
    ids     := "ids": bin u4                          dense ids, rising
             | "rows": uint, names "ids" rows         mapped ids: see `id_columns.py`; in the order
                                                      in which the stream named them first
    letter  := { "topic": text, "partition": uint, "offset": uint, "reason": text
               , "bytes": uint, "value": bin          the record's size, and as much of its start as
                                                      the topic takes, at most 64 KiB
               , "sha256": bin[32] }                  of the whole record, where that is cut

"weight" and "times" are absent where the graph keeps no such column, and for hops. A query that
carries `after`, the last id of a reply with "more", asks for the next rows: as of its own place in
the stream, so that each part of a long answer is right at a version of its own. A reply or a
dead letter may come twice after a crash: drop repeats by id, or by topic, partition and offset.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt

from lpma import Edges, Kind, Neighbors

from ..errors import RecordError
from .msgpack import MAX_TEXT_BYTES, binary, integer, only_fields, text, unpack
from .names import field_names, name_fields, read_names
from .records import QUERIES, Name

MAX_REPLY_BYTES = 32 << 20
MAX_MESSAGE_BYTES = 1024
HEAD_BYTES = 256  # of a reply beside the rows of its answer, at most
MAX_NAME_BYTES = MAX_TEXT_BYTES + 5  # of a row of `id_columns.py`
MAX_KEPT_BYTES = 64 << 10  # of a dead letter's record
MAX_LETTER_HEAD_BYTES = MAX_MESSAGE_BYTES + 512  # of a dead letter beside that
_BIN_HEAD_BYTES = 5  # that bytes take beside themselves in msgpack, at most
_CHARACTER_BYTES = 4  # of UTF-8, at most
_SHA256_BYTES = 32

Answer = Edges | Neighbors | npt.NDArray[Any]

_HEAD = frozenset({"reply", "kind", "version", "time"})
_IDS = field_names("ids") | {"rows"}
_FIELDS = {
    Kind.EDGE: _HEAD | {"found", "weight", "times"},
    Kind.SUCCESSORS: _HEAD | _IDS | {"weight", "times", "more"},
    Kind.PREDECESSORS: _HEAD | _IDS | {"weight", "times", "more"},
    Kind.HOPS: _HEAD | _IDS | {"more"},
    Kind.DEGREE: _HEAD | {"degree"},
    Kind.VERTEX: _HEAD | {"found"},
}
_LETTER_FIELDS = frozenset({"topic", "partition", "offset", "reason", "bytes", "value", "sha256"})


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
    error: str | None = None  # "deadline", "hops", "retry" or "unsupported"
    message: str = ""  # what to do about the error
    retry_after_ms: int | None = None  # where the error is "retry"
    more: bool = False  # whether rows of higher ids were left out

    @property
    def cursor(self) -> Name | None:
        """What a query for the next rows carries as `after`; None where there are none."""
        if not self.more or not isinstance(self.answer, Neighbors):
            return None
        last: Name = self.answer.ids[-1:].tolist()[0]
        return last

    def first_rows(self, rows: int) -> Reply:
        """This reply with at most so many of its rows; with `more` where it has others.
        REQUIRES: rows >= 1."""
        answer = self.answer
        if not isinstance(answer, Neighbors) or len(answer.ids) <= rows:
            return self
        return replace(self, answer=neighbor_rows(answer, 0, rows), more=True)

    def within(self, limit: int) -> Reply:
        """This reply with as many of its rows, but at least one, as `limit` bytes take encoded; an
        error with as much of its message."""
        answer = self.answer
        if not isinstance(answer, Neighbors):
            if not self.message or limit >= HEAD_BYTES + MAX_MESSAGE_BYTES:
                return self
            return replace(self, message=_clipped(self.message, max(0, limit - HEAD_BYTES)))
        columns = (answer.weight, answer.time)
        row_bytes = sum(column.itemsize for column in columns if column is not None)
        is_text = answer.ids.dtype == object
        row_bytes += MAX_NAME_BYTES if is_text else answer.ids.itemsize
        return self.first_rows(max(1, (limit - HEAD_BYTES) // row_bytes))

    @property
    def rows(self) -> int:
        return len(self.answer.ids) if isinstance(self.answer, Neighbors) else 1


def neighbor_rows(answer: Neighbors, start: int, stop: int) -> Neighbors:
    """Rows start … stop − 1 of the neighbours of one vertex."""
    weight = None if answer.weight is None else answer.weight[start:stop]
    time = None if answer.time is None else answer.time[start:stop]
    ids = answer.ids[start:stop]
    return Neighbors(np.array([0, len(ids)], np.int64), ids, weight, time)


@dataclass(frozen=True)
class DeadLetter:
    """A record that was not applied, where it stood, and why."""

    topic: str
    partition: int
    offset: int
    reason: str
    size: int  # bytes of the whole record
    value: bytes  # its start: 64 KiB, or what the topic takes
    sha256: bytes = b""  # of the whole record; empty where an older release cut it

    def within(self, limit: int) -> DeadLetter:
        """This letter with as much of its value, and then of its reason, as `limit` bytes take
        encoded."""
        if len(self.value) + MAX_LETTER_HEAD_BYTES <= limit:
            return self
        bare = replace(self, value=b"")
        room = limit - len(encode_dead_letter(bare)) - _BIN_HEAD_BYTES
        if room >= 0:
            return replace(self, value=self.value[:room])
        reason = _clipped(self.reason, MAX_MESSAGE_BYTES).encode()
        left = max(_CHARACTER_BYTES, len(reason) + room)
        return replace(bare, reason=_clipped(self.reason, left))


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
        if reply.retry_after_ms is not None:
            fields["retry_after"] = reply.retry_after_ms
    else:
        fields |= _answer_columns(reply)
        if reply.more:
            fields["more"] = True
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
    kind = QUERIES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise RecordError(f"kind: expected one of {', '.join(QUERIES)}")
    version = integer(fields, "version", 0, 2**63 - 1)
    time = integer(fields, "time", -(2**63), 2**63 - 1)
    reply = Reply(text(fields, "reply"), kind, version, time)
    if "error" in fields:
        return _decoded_error(reply, fields)
    only_fields(fields, _FIELDS[kind])
    answer = _answer(kind, fields)
    more = "more" in fields
    if more and not (fields["more"] is True and isinstance(answer, Neighbors) and len(answer.ids)):
        raise RecordError("more: expected true, and rows before it")
    return replace(reply, answer=answer, more=more)


def _decoded_error(reply: Reply, fields: dict[Any, Any]) -> Reply:
    only_fields(fields, _HEAD | {"error", "message", "retry_after"})
    message = fields.get("message", "")
    if not isinstance(message, str):
        raise RecordError("message: expected text")
    after = integer(fields, "retry_after", 0, 2**31 - 1) if "retry_after" in fields else None
    return replace(reply, error=text(fields, "error"), message=message, retry_after_ms=after)


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
    value = letter.value[:MAX_KEPT_BYTES]
    fields: dict[str, Any] = {
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "reason": _clipped(letter.reason, MAX_MESSAGE_BYTES),
        "bytes": letter.size,
        "value": value,
    }
    if len(value) < letter.size and letter.sha256:
        fields["sha256"] = letter.sha256
    data: bytes = msgpack.packb(fields)
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
    size = integer(fields, "bytes", 0, 2**63 - 1)
    whole = hashlib.sha256(value).digest() if len(value) == size else b""
    sha256 = fields.get("sha256", whole)
    if not isinstance(sha256, bytes) or len(sha256) not in (0, _SHA256_BYTES):
        raise RecordError(f"sha256: expected {_SHA256_BYTES} bytes")
    return DeadLetter(
        text(fields, "topic"),
        integer(fields, "partition", 0, 2**31 - 1),
        integer(fields, "offset", 0, 2**63 - 1),
        text(fields, "reason"),
        size,
        value,
        sha256,
    )


def _clipped(message: str, max_bytes: int) -> str:
    """The start of `message` that takes at most `max_bytes` as UTF-8."""
    return message.encode(errors="replace")[:max_bytes].decode(errors="ignore")
