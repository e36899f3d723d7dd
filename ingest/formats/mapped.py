"""Rows that a topic's mapping reads, one at a time and field by field: objects of JSON, or maps of
msgpack.

`docs/reference/format.md` is the specification. `ingest.Fields` says which fields mean what; the
others are passed over, whatever they hold: they need not even be UTF-8. A field that is absent or
null is not there, and of a field that is repeated the last counts.

Idea: msgspec finds the fields that are mapped, as bytes, and passes over the rest, exactly as it
does in `row_reader.py`; so both readers take the same records. Each field is then read by itself.
What the two formats differ in is a `Codec`.

Bytes are judged before they are decoded: how many there are, and how deep they nest. No msgpack
record begins as JSON can, so the first byte tells the two apart. A map of msgpack may also be one
of ours: see `codec_of`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from lpma.batch.columns import WEIGHTED

from ..errors import RecordError
from ..fields import Fields
from .kinds import WORDS, word_of

MAX_MAPPED_BYTES = 1 << 20
MAX_DEPTH = 256

# Possessive, and content with the end of the data: every quote is passed once, also where none
# closes it.
STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")
_WEIGHTED = tuple(WORDS[kind] for kind in WEIGHTED)
REFUSED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Codec(NamedTuple):
    """A format of rows: its decoder, how null is written, the first bytes of a map and of what else
    is no single value, and whether data nests deeper than MAX_DEPTH."""

    name: str
    decoder: Callable[[Any], Any]
    null: bytes
    maps: frozenset[int]
    others: frozenset[int]
    nests_too_deeply: Callable[[bytes], bool]

    def check_depth(self, data: bytes) -> None:
        """Raise RecordError if this nests too deeply."""
        if self.nests_too_deeply(data):
            raise RecordError(f"a {self.name} record nests deeper than {MAX_DEPTH}", "oversized")

    def find(self, data: bytes, name: str) -> bytes:
        """The bytes of the field of that name, or else of the one at the end of the path; those of
        null if there is none. Raises RecordError if `data` is no map."""
        try:
            field = bytes(_finder(self.name, name).decode(data).field)
            if field != self.null or "." not in name:
                return field
            field = data
            for step in name.split("."):
                if field[0] not in self.maps and field is not data:
                    return self.null
                field = bytes(_finder(self.name, step).decode(field).field)
        except msgspec.ValidationError as error:
            raise RecordError(f"a {self.name} record is an object: {error}", "malformed") from None
        except REFUSED as error:
            raise RecordError(f"not a {self.name} record: {error}", "malformed") from None
        return field

    def value(self, data: bytes, name: str) -> Any:
        """A field's value. Raises RecordError."""
        if data[0] in self.maps or data[0] in self.others:
            return {} if data[0] in self.maps else []  # not decoded: it may become many times that
        try:
            return _anything(self.name).decode(data)
        except msgspec.ValidationError:
            raise RecordError(f"{name}: a number out of all bounds") from None
        except REFUSED as error:
            raise RecordError(f"{name}: {error}", "malformed") from None


def _json_nests_too_deeply(data: bytes) -> bool:
    if len(data) <= MAX_DEPTH or data.count(b"{") + data.count(b"[") <= MAX_DEPTH:
        return False  # what strings hold can only add to these counts
    depth = 0
    for bracket in _BRACKET.finditer(STRING.sub(b"", data)):
        depth += 1 if bracket[0] in (b"[", b"{") else -1
        if depth > MAX_DEPTH:
            return True
    return False


# How many bytes of length follow the first byte, and how many of content, by the first byte.
_SIZED = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_FIXED = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4,
          0xD3: 8, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}  # fmt: skip
_OPENS = bytes([*range(0x80, 0xA0), *range(0xDC, 0xE0)])  # a map or an array


def _msgpack_nests_too_deeply(data: bytes) -> bool:
    if len(data) <= MAX_DEPTH or len(data.translate(None, _OPENS)) >= len(data) - MAX_DEPTH:
        return False  # what texts hold can only add to these
    at, left = 0, [1]  # values that are still to come, of each that is open
    while at < len(data):
        while left and not left[-1]:
            left.pop()
        if not left:
            return False  # something follows the value
        left[-1] -= 1
        head, at = data[at], at + 1
        if head in _SIZED:
            size = _SIZED[head]
            length = int.from_bytes(data[at : at + size], "big")
            at += size + length + (0xC7 <= head <= 0xC9)
        elif head in _FIXED or 0xA0 <= head <= 0xBF:
            at += _FIXED.get(head, head & 31)
        elif 0x80 <= head <= 0x9F:
            left.append((head & 15) << (head < 0x90))
        elif 0xDC <= head <= 0xDF:
            size = 2 if head in (0xDC, 0xDE) else 4
            left.append(int.from_bytes(data[at : at + size], "big") << (head > 0xDD))
            at += size
        if len(left) > MAX_DEPTH + 1:
            return True
    return False


JSON = Codec(
    "JSON", msgspec.json.Decoder, b"null", frozenset(b"{"), frozenset(b"["),
    _json_nests_too_deeply,
)  # fmt: skip
MSGPACK = Codec(
    "msgpack", msgspec.msgpack.Decoder, b"\xc0", frozenset([*range(0x80, 0x90), 0xDE, 0xDF]),
    frozenset([*range(0x90, 0xA0), 0xDC, 0xDD, *range(0xC7, 0xCA), *range(0xD4, 0xD9)]),
    _msgpack_nests_too_deeply,
)  # fmt: skip
_CODECS = {codec.name: codec for codec in (JSON, MSGPACK)}


@lru_cache(1024)
def _finder(codec: str, name: str) -> Any:
    """Decodes an object to the bytes of its field of that name."""
    found = _CODECS[codec]
    one = msgspec.defstruct("One", [("field", Raw, Raw(found.null))], rename={"field": name})
    return found.decoder(one)


@cache
def _anything(codec: str) -> Any:
    return _CODECS[codec].decoder(Any)


def is_msgpack(data: bytes) -> bool:
    """Whether these bytes begin as a map or an array of msgpack does, and no JSON."""
    return bool(data) and (0x80 <= data[0] <= 0x9F or 0xDC <= data[0] <= 0xDF)


def codec_of(data: bytes, fields: Fields) -> Codec | None:
    """The codec by which the mapping reads a record; None: it is in one of our own forms.

    A map of msgpack is a row of the mapping if it has one of its fields that rows of ours do not
    have, or if the ends go by our own names; and has no field of what is no row. Raises RecordError
    if it nests too deeply. REQUIRES: these are fields `of_topic`."""
    if not is_msgpack(data):
        return JSON
    if data[0] not in MSGPACK.maps:
        return None
    MSGPACK.check_depth(data)
    has = lambda name: MSGPACK.find(data, name) != MSGPACK.null  # noqa: E731
    try:
        if any(has(name) for name in fields.of_others()):
            return None
        is_row = fields.ends_are_ours or any(has(name) for name in fields.foreign())
    except RecordError:
        return None  # it says there what is wrong
    return MSGPACK if is_row else None


def read_mapped(data: bytes, fields: Fields, codec: Codec = JSON) -> dict[str, Any]:
    """What the record in `data` has in these fields, by role; the kind by the word of records.
    Raises RecordError only. REQUIRES: these are fields `of_topic`."""
    if len(data) > MAX_MAPPED_BYTES:
        raise RecordError(f"{len(data)} bytes: at most {MAX_MAPPED_BYTES} here", "oversized")
    codec.check_depth(data)
    found: dict[str, Any] = {}
    roles = fields.by_role() if codec is JSON else fields.by_role_of_maps()
    for role, name in roles.items():
        if name is not None:
            value = codec.value(codec.find(data, name), name)
            if value is not None:
                found[role] = value
    word = found.get("kind")
    if word is None:
        found["kind"] = fields.default_kind  # a word of ours, which `kinds` does not turn
    else:
        said = str(word) if type(word) is int else word
        found["kind"] = word_of(fields.kinds.get(said, said) if isinstance(said, str) else word)
    if fields.default_weight != 1 and found["kind"] in _WEIGHTED:
        found.setdefault("weight", fields.default_weight)
    return found
