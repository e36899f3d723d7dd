"""Updates as JSON, for topics that speak it: what `mapped.py` reads, written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any

from lpma.batch.columns import EXPIRE, OF_EDGES, WEIGHTED

from ..errors import RecordError
from ..fields import Fields
from ..types import Name
from .kinds import MEANT, WORDS
from .row_reader import overlap


def _word(kind: str, fields: Fields, row: int) -> str:
    """The word by which the topic says this kind: its own, if it has one. Raises RecordError."""
    own = (word for word, meant in fields.kinds.items() if meant == kind)
    ours = (word for word, meant in MEANT.items() if meant == kind and word not in fields.kinds)
    word = next(own, None) or next(ours, None)
    if word is None:
        raise RecordError(f"kind: row {row} has {kind!r}, for which the stream has no word")
    return word


def _nested(named: dict[str, Any]) -> dict[str, Any]:
    """Fields with dots at the ends of their paths. REQUIRES: none lies within another."""
    found: dict[str, Any] = {}
    for name, value in named.items():
        *steps, last = name.split(".")
        place = found
        for step in steps:
            place = place.setdefault(step, {})
        place[last] = value
    return found


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
    """Updates as JSON, one object each, that `read_mapped` reads with the same fields. kind: of
    `Kind`; weight: None for 1; time: None to be stamped. Raises RecordError for a row that has
    something for which there is no field.

    >>> from ingest.formats.json import write_json
    >>> fields = ingest.Fields("user", "item").of_topic()
    >>> list(write_json(fields, [0], [1], [2], None, None))
    [b'{"user":1,"item":2}']
    """
    role, is_flat = fields.by_role(), overlap(fields)  # then a field goes by its whole name
    weights: Iterable[float] = repeat(1.0) if weight is None else weight
    times: Iterable[int | None] = repeat(None) if time is None else time
    for row, (code, u, v, w, t) in enumerate(zip(kind, src, dst, weights, times)):  # noqa: B905
        name = WORDS[code]
        given: dict[str, Any] = {}
        if code != EXPIRE:
            given["src"] = u
        if code in OF_EDGES:
            given["dst"] = v
        if code in WEIGHTED and w != fields.default_weight:
            given["weight"] = w
        if t is not None:
            given["time"] = _in_unit(t, fields.time_unit, row)
        has_word = role["kind"] is not None and name in fields.kinds.values()
        if name != fields.default_kind or has_word:
            given["kind"] = _word(name, fields, row)
        if missing := next((each for each in given if role[each] is None), None):
            raise RecordError(
                f"{missing}: row {row} has {given[missing]!r}, for which the records of this "
                f"stream, JSON, have no field: leave it out, or have the stream name one"
            )
        named = {str(role[each]): value for each, value in given.items()}
        content = named if is_flat else _nested(named)
        yield json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
