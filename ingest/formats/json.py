"""Updates as JSON, for pipelines that speak it already: one object a record, its fields by name.

`docs/format.md` is the specification. `ingest.Fields` says which fields of an object mean what; the
others are passed over, whatever they hold: they need not even be UTF-8. A field that is absent or
null is not there, and of a field that is repeated the last counts.

Idea: msgspec finds the fields that are mapped, as bytes, and passes over the rest, exactly as it
does in `row_reader.py`; so both readers take the same records. Each field is then read by itself.

Bytes are judged before they are decoded: how many there are, and how deep they nest. Queries are
msgpack on every topic: no msgpack record begins as JSON can, so the first byte tells the two apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import repeat
from typing import Any

import msgspec
from msgspec import Raw

from lpma.batch.columns import Kind

from ..errors import RecordError
from ..fields import Fields
from ..types import Name
from .kinds import WORDS

MAX_JSON_BYTES = 1 << 20
MAX_DEPTH = 256

# Possessive, and content with the end of the data: every quote is passed once, also where none
# closes it.
STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")
_NOT_THERE = Raw(b"null")


def is_msgpack(data: bytes) -> bool:
    """Whether the first byte is that of a msgpack map or array, which no UTF-8 text begins with."""
    return bool(data) and (0x80 <= data[0] <= 0x9F or 0xDC <= data[0] <= 0xDF)


def read_json(data: bytes, fields: Fields) -> dict[str, Any]:
    """What the object in `data` has in these fields, by role; the kind by the word of records.
    Raises RecordError only. REQUIRES: these are fields `of_topic`."""
    if len(data) > MAX_JSON_BYTES:
        raise RecordError(f"{len(data)} bytes: at most {MAX_JSON_BYTES} here", "oversized")
    if nests_too_deeply(data):
        raise RecordError(f"a JSON record nests deeper than {MAX_DEPTH}", "oversized")
    found: dict[str, Any] = {}
    for role, name in fields.by_role().items():
        if name is not None:
            value = _value(_found(data, name), name)
            if value is not None:
                found[role] = value
    word = found.setdefault("kind", fields.default_kind)
    if isinstance(word, str):
        found["kind"] = fields.kinds.get(word, word)
    if fields.default_weight != 1 and found["kind"] == WORDS[Kind.INSERT]:
        found.setdefault("weight", fields.default_weight)
    return found


def nests_too_deeply(data: bytes) -> bool:
    """Whether what is JSON here nests deeper than MAX_DEPTH."""
    if len(data) <= MAX_DEPTH or data.count(b"{") + data.count(b"[") <= MAX_DEPTH:
        return False  # what strings hold can only add to these counts
    depth = 0
    for bracket in _BRACKET.finditer(STRING.sub(b"", data)):
        depth += 1 if bracket[0] in (b"[", b"{") else -1
        if depth > MAX_DEPTH:
            return True
    return False


@lru_cache(1024)
def _decoder(name: str) -> msgspec.json.Decoder[Any]:
    """Finds the field of that name in an object, as bytes."""
    one = msgspec.defstruct("One", [("field", Raw, _NOT_THERE)], rename={"field": name})
    return msgspec.json.Decoder(one)


def _found(data: bytes, name: str) -> bytes:
    """The bytes of the field of that name, or else of the one at the end of the path; "null" if
    there is none. Raises RecordError if `data` is no object."""
    try:
        field = bytes(_decoder(name).decode(data).field)
    except msgspec.ValidationError as error:
        raise RecordError(f"a JSON record is an object: {error}", "malformed") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"not a JSON record: {error}", "malformed") from None
    if field != b"null" or "." not in name:
        return field
    field = data
    for step in name.split("."):
        if not field.startswith(b"{") and field is not data:
            return b"null"
        field = bytes(_decoder(step).decode(field).field)
    return field


def _value(data: bytes, name: str) -> Any:
    """A field's value. Raises RecordError."""
    if data[:1] in (b"[", b"{"):  # not decoded: it may become many times its bytes
        return [] if data[:1] == b"[" else {}
    try:
        return msgspec.json.decode(data)
    except msgspec.ValidationError:
        raise RecordError(f"{name}: a number out of all bounds") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"{name}: {error}", "malformed") from None


def _word(kind: str, fields: Fields) -> str:
    """The word by which the topic says this kind."""
    said = (word for word, meant in fields.kinds.items() if meant == kind)
    return kind if fields.kinds.get(kind, kind) == kind else next(said, kind)


def _in_unit(time: int, unit: str | None, row: int) -> int:
    """A time in ms in the topic's unit. Raises RecordError if it has no such integer."""
    if unit == "s":
        if time % 1000:
            raise RecordError(f"time: row {row} has {time} ms, and the stream's times are seconds")
        return time // 1000
    return time * {"us": 1000, "ns": 1_000_000}.get(unit or "ms", 1)


def write_json(
    fields: Fields,
    kind: Iterable[int],
    src: Iterable[Name],
    dst: Iterable[Name],
    weight: Iterable[float] | None,
    time: Iterable[int] | None,
) -> Iterator[bytes]:
    """Updates as JSON, one object each, that `read_json` reads with the same fields. kind: of
    `Kind`; weight: None for 1; time: None to be stamped. Raises RecordError for a row that has
    something for which there is no field.

    >>> from ingest.formats.json import write_json
    >>> fields = ingest.Fields("user", "item").of_topic()
    >>> list(write_json(fields, [0], [1], [2], None, None))
    [b'{"user":1,"item":2}']
    """
    role = fields.by_role()
    weights: Iterable[float] = repeat(1.0) if weight is None else weight
    times: Iterable[int | None] = repeat(None) if time is None else time
    for row, (code, u, v, w, t) in enumerate(zip(kind, src, dst, weights, times)):  # noqa: B905
        name = WORDS[code]
        given: dict[str, Any] = {}
        if name != "expire":
            given["src"] = u
        if name in ("append", "delete"):
            given["dst"] = v
        if name == "append" and w != fields.default_weight:
            given["weight"] = w
        if t is not None:
            given["time"] = _in_unit(t, fields.time_unit, row)
        if name != fields.default_kind:
            given["kind"] = _word(name, fields)
        if missing := next((each for each in given if role[each] is None), None):
            raise RecordError(
                f"{missing}: row {row} has {given[missing]!r}, for which the records of this "
                f"stream, JSON, have no field: leave it out, or have the stream name one"
            )
        named = {role[each]: value for each, value in given.items()}
        yield json.dumps(named, ensure_ascii=False, separators=(",", ":")).encode()
