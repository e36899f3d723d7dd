"""Updates as JSON, for pipelines that speak it already: one object a record, its fields by name.

`docs/format.md` is the specification. `ingest.Fields` says which fields of an object mean what; the
others are ignored, whatever they hold. A field that is absent or null is not there.

Bytes are judged before they are decoded: first how many there are; then, outside of strings, how
deep they nest and how many values they hold; then the length of each number, because converting a
million digits takes minutes. Queries are msgpack on every topic: no msgpack
record begins as JSON can, so the first byte tells the two apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any, NoReturn

from lpma.batch.columns import Kind

from ..errors import RecordError
from ..fields import Fields
from ..types import Name
from .kinds import WORDS

MAX_JSON_BYTES = 1 << 20
MAX_DEPTH = 8
MAX_CONTAINERS = 64
MAX_COMMAS = 256  # so at most 257 fields, those of nested objects included
MAX_DIGITS = 20
MAX_NUMBER_CHARACTERS = 64

# Possessive, and content with the end of the data: every quote is passed once, also where none
# closes it.
STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")


def is_msgpack(data: bytes) -> bool:
    """Whether the first byte is that of a msgpack map or array, which no UTF-8 text begins with."""
    return bool(data) and (0x80 <= data[0] <= 0x9F or 0xDC <= data[0] <= 0xDF)


def read_json(data: bytes, fields: Fields) -> dict[str, Any]:
    """What the object in `data` has in these fields, by role; the kind by the word of records.
    Raises RecordError only. REQUIRES: these are fields `of_topic`."""
    value = _parsed(data)
    named = {role: name for role, name in fields.by_role().items() if name is not None}
    found = {r: item for r, name in named.items() if (item := field_at(value, name)) is not None}
    word = found.setdefault("kind", fields.default_kind)
    if isinstance(word, str):
        found["kind"] = fields.kinds.get(word, word)
    if fields.default_weight != 1 and found["kind"] == WORDS[Kind.INSERT]:
        found.setdefault("weight", fields.default_weight)
    return found


def field_at(value: dict[str, Any], name: str) -> Any:
    """The field of that name, or else the one at the end of the path; None if there is none."""
    found: Any = value.get(name)
    if found is None and "." in name:
        found = value
        for step in name.split("."):
            found = found.get(step) if isinstance(found, dict) else None
    return found


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
            given["time"] = t
        if name != fields.default_kind:
            given["kind"] = name
        if missing := next((each for each in given if role[each] is None), None):
            raise RecordError(
                f"{missing}: row {row} has {given[missing]!r}, for which the records of this "
                f"stream, JSON, have no field: leave it out, or have the stream name one"
            )
        named = {role[each]: value for each, value in given.items()}
        yield json.dumps(named, ensure_ascii=False, separators=(",", ":")).encode()


def _parsed(data: bytes) -> dict[str, Any]:
    if len(data) > MAX_JSON_BYTES:
        raise RecordError(f"{len(data)} bytes: at most {MAX_JSON_BYTES} here", "oversized")
    _check_shape(data)
    try:
        value = _DECODER.decode(data.decode())
    except RecordError:
        raise
    except (ValueError, RecursionError) as error:
        raise RecordError(f"not a JSON record: {error}", "malformed") from None
    if not isinstance(value, dict):
        raise RecordError(f"a JSON record is an object, not {type(value).__name__}", "malformed")
    return value


def _check_shape(data: bytes) -> None:
    """Refuse what is deep or has many values. Raises RecordError."""
    # What strings hold can only add to these counts, so most records are judged by them alone.
    if data.count(b"{") + data.count(b"[") <= MAX_DEPTH and data.count(b",") <= MAX_COMMAS:
        return
    outside = STRING.sub(b"", data)
    if outside.count(b",") > MAX_COMMAS:
        raise RecordError(f"more than {MAX_COMMAS + 1} values in a JSON record", "oversized")
    if outside.count(b"{") + outside.count(b"[") > MAX_CONTAINERS:
        raise RecordError(f"more than {MAX_CONTAINERS} containers in a JSON record", "oversized")
    depth = 0
    for bracket in _BRACKET.findall(outside):
        depth += 1 if bracket in (b"[", b"{") else -1
        if depth > MAX_DEPTH:
            raise RecordError(f"a JSON record nests deeper than {MAX_DEPTH}", "oversized")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise RecordError("a field appears twice")
    return fields


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise RecordError(f"an integer of {len(digits)} characters: at most {MAX_DIGITS}")
    return int(digits)


def _float(text: str) -> float:
    if len(text) > MAX_NUMBER_CHARACTERS:
        raise RecordError(f"a number of {len(text)} characters: at most {MAX_NUMBER_CHARACTERS}")
    return float(text)


def _no_constant(name: str) -> NoReturn:
    raise RecordError(f"{name} is not JSON", "malformed")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_integer,
    parse_float=_float,
    parse_constant=_no_constant,
)
