"""What a pipeline writes back: replies to queries, and dead letters. The specification is
`docs/reference/format.md`.

The query's id comes first in a reply, so that a reader can pass over what others were sent. A
query that carries `after`, the last id of a reply with "more", asks for the next rows: as of its
own place in the stream, so that each part of a long answer is right at a version of its own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt

from lpma import Edges, Kind, Neighbors

from ..errors import RecordError
from ..types import MAX_MESSAGE_BYTES, Answer, Reply, clipped
from .kinds import QUERY_KINDS, WORDS
from .msgpack import binary, integer, only_fields, text, unpack
from .names import field_names, name_fields, read_names

MAX_REPLY_BYTES = 32 << 20
MAX_KEPT_BYTES = 64 << 10  # of a dead letter's record
MAX_LETTER_HEAD_BYTES = MAX_MESSAGE_BYTES + 512  # of a dead letter beside that
_BIN_HEAD_BYTES = 5  # that bytes take beside themselves in msgpack, at most
_CHARACTER_BYTES = 4  # of UTF-8, at most
_SHA256_BYTES = 32

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
class DeadLetter:
    """A record that was not applied, where it stood, and why.

    >>> letter = ingest.DeadLetter("updates", 0, 7, "not a msgpack record", 1, b"x")
    >>> ingest.decode_dead_letter(ingest.formats.replies.encode_dead_letter(letter)).reason
    'not a msgpack record'
    """

    topic: str
    partition: int
    offset: int
    reason: str
    size: int  # bytes of the whole record
    value: bytes  # its start: 64 KiB, or what the topic takes
    sha256: bytes = b""  # of the whole record; empty where an older release cut it
    kind: str = field(default="", compare=False)  # that of the RecordError; not sent

    def within(self, limit: int) -> DeadLetter:
        """This letter with as much of its value, and then of its reason, as `limit` bytes take
        encoded."""
        if len(self.value) + MAX_LETTER_HEAD_BYTES <= limit:
            return self
        bare = replace(self, value=b"")
        room = limit - len(encode_dead_letter(bare)) - _BIN_HEAD_BYTES
        if room >= 0:
            return replace(self, value=self.value[:room])
        reason = clipped(self.reason, MAX_MESSAGE_BYTES).encode()
        left = max(_CHARACTER_BYTES, len(reason) + room)
        return replace(bare, reason=clipped(self.reason, left))


def encode_reply(reply: Reply) -> bytes:
    """The bytes of a reply. Raises RecordError where they pass 32 MiB.

    >>> refused = ingest.Reply("q1", lpma.Kind.DEGREE, 3, 9, error="retry", retry_after_ms=200)
    >>> ingest.decode_reply(ingest.formats.replies.encode_reply(refused)).retry_after_ms
    200
    """
    fields: dict[str, Any] = {
        "reply": reply.id,
        "kind": WORDS[reply.kind],
        "version": reply.version,
        "time": reply.time,
    }
    if reply.error is not None:
        fields |= {"error": reply.error, "message": clipped(reply.message, MAX_MESSAGE_BYTES)}
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
        columns = {"found": answer.found, "weight": answer.weights, "times": answer.times}
    elif isinstance(answer, Neighbors):
        columns = {"weight": answer.weights, "times": answer.times}
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
    """The reply in `data`. Raises RecordError only.

    >>> ingest.decode_reply(b"x")
    Traceback (most recent call last):
    ingest.errors.RecordError: a reply is a map
    """
    fields = unpack(data, MAX_REPLY_BYTES, MAX_MESSAGE_BYTES)
    if not isinstance(fields, dict):
        raise RecordError("a reply is a map")
    name = fields.get("kind")
    kind = QUERY_KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise RecordError(f"kind: expected one of {', '.join(QUERY_KINDS)}")
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
        raise RecordError("rows: expected beside names")
    dense = fields.get("ids")
    return binary(fields, "ids", "<u4", len(dense) // 4 if isinstance(dense, bytes) else 0)


def _edge_columns(
    fields: dict[Any, Any], rows: int
) -> tuple[npt.NDArray[Any] | None, npt.NDArray[Any] | None]:
    weight = binary(fields, "weight", "f", rows) if "weight" in fields else None
    return weight, binary(fields, "times", "<i8", rows) if "times" in fields else None


def encode_dead_letter(letter: DeadLetter) -> bytes:
    """The bytes of a dead letter, with at most 64 KiB of its record.

    >>> letter = ingest.DeadLetter("updates", 0, 7, "too large", 100_000, bytes(100_000))
    >>> len(ingest.decode_dead_letter(ingest.formats.replies.encode_dead_letter(letter)).value)
    65536
    """
    value = letter.value[:MAX_KEPT_BYTES]
    fields: dict[str, Any] = {
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "reason": clipped(letter.reason, MAX_MESSAGE_BYTES),
        "bytes": letter.size,
        "value": value,
    }
    if len(value) < letter.size and letter.sha256:
        fields["sha256"] = letter.sha256
    data: bytes = msgpack.packb(fields)
    return data


def decode_dead_letter(data: bytes) -> DeadLetter:
    """The dead letter in `data`. Raises RecordError only.

    >>> ingest.decode_dead_letter(b"x")
    Traceback (most recent call last):
    ingest.errors.RecordError: a dead letter is a map
    """
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
