"""What a request's body says, and in which form it wants to be answered.

    form     Content-Type and Accept                          a column of vertices is
    json     application/json                                 a list
    msgpack  application/msgpack, …/vnd.msgpack, …/x-msgpack  a list; or, beside `rows`, a bin
                                                              in a form of the log's records
    arrow    application/vnd.apache.arrow.stream              a column (arrow_bodies.py)

Whatever is wrong with a body raises Problem: 400 if it is none of that form, 413 if it is too
large, 415 if the form is unknown, 422 if a field is wrong. Bytes are judged before they are
decoded: how many there are, and how many values and containers they can become.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from lpma.batch.columns import MAX_VERTEX

from ..errors import RecordError
from ..formats.json import STRING
from ..formats.msgpack import text_name, unpack
from ..formats.names import MAX_NAME, MIN_NAME, field_names, read_names
from ..types import Name
from .arrow_bodies import read_columns
from .context import Limits
from .problems import Problem, malformed, too_many, wrong

Array = npt.NDArray[Any]
Column = list[Name] | Array

JSON, MSGPACK, ARROW = "json", "msgpack", "arrow"
MEDIA_TYPES = {
    "application/json": JSON,
    "application/msgpack": MSGPACK,
    "application/vnd.msgpack": MSGPACK,
    "application/x-msgpack": MSGPACK,
    "application/vnd.apache.arrow.stream": ARROW,
}
CONTENT_TYPES = {JSON: b"application/json", MSGPACK: b"application/msgpack",
                 ARROW: b"application/vnd.apache.arrow.stream"}  # fmt: skip

MAX_CONTAINERS = 4  # of a body: the object itself, and its columns
_QUALITY = re.compile(r"q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)", re.IGNORECASE)


# Negotiation ---------------------------------------------------------------------------------


@lru_cache(256)
def accepted(accept: str) -> str:
    """The form of the answer that an Accept header asks for; JSON where several are as good.
    Raises Problem 406."""
    if not accept:
        return JSON
    best: dict[str, tuple[int, float]] = {}  # form: (how specific, quality)
    for item in accept.split(",")[:64]:
        name, _, parameters = item.partition(";")
        name = name.strip().lower()
        found = _QUALITY.search(parameters)
        quality = float(found[1]) if found else 1.0
        for media, form in MEDIA_TYPES.items():
            ranks = {media: 2, "application/*": 1, "*/*": 0}
            if name in ranks:
                best[form] = max(best.get(form, (-1, 0.0)), (ranks[name], quality))
    wanted = [(quality, form) for form, (_, quality) in best.items() if quality > 0]
    if not wanted:
        raise Problem(406, f"Accept: answers come as {', '.join(MEDIA_TYPES)}")
    most = max(quality for quality, _ in wanted)
    return next(form for form in CONTENT_TYPES if (most, form) in wanted)


@lru_cache(256)
def form_of(content_type: str) -> str:
    """The form of a body with this Content-Type. Raises Problem 415."""
    form = MEDIA_TYPES.get(content_type.partition(";")[0].strip().lower())
    if form is None:
        said = f"{content_type[:80]!r} is not taken" if content_type else "there is none"
        raise Problem(415, f"Content-Type: {said}: send {', '.join(MEDIA_TYPES)}")
    return form


# Decoding ------------------------------------------------------------------------------------


def decoded(form: str, body: bytes, limits: Limits) -> dict[str, Any]:
    """The fields of a body, not yet looked at. Raises Problem 400 or 413."""
    if len(body) > limits.max_body_bytes:
        raise Problem(
            413,
            f"the body has {len(body):,} bytes, and at most {limits.max_body_bytes:,} are taken: "
            "ask for fewer vertices at once",
        )  # fmt: skip
    if form == JSON:
        return json_object(body, 2 * limits.max_rows + 16)
    if form == ARROW:
        return dict(read_columns(body, limits.max_rows))
    try:
        fields = unpack(body, limits.max_body_bytes, max_items=2 * limits.max_rows + 16,
                        max_containers=MAX_CONTAINERS)  # fmt: skip
    except RecordError as error:
        if error.kind == "oversized":
            raise too_many(str(error)) from None
        raise malformed(str(error)) from None
    if not isinstance(fields, dict):
        raise malformed(f"a body is a map, not {_said(fields)}")
    return {name if isinstance(name, str) else repr(name)[:64]: x for name, x in fields.items()}


def json_object(body: bytes, max_values: int) -> dict[str, Any]:
    """The object in a body of JSON. Raises Problem 400 or 413."""
    if body.count(b"{") + body.count(b"[") > MAX_CONTAINERS or body.count(b",") >= max_values:
        outside = STRING.sub(b"", body)  # what strings hold counts for nothing
        if outside.count(b"{") + outside.count(b"[") > MAX_CONTAINERS:
            raise malformed(
                f"it nests or has more than {MAX_CONTAINERS} objects and lists: a body is one "
                "object of lists"
            )
        if outside.count(b",") >= max_values:
            raise too_many(f"it has more than {max_values:,} values")
    try:
        value = _DECODER.decode(body.decode())
    except Problem:
        raise
    except (ValueError, RecursionError) as error:
        raise malformed(f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise malformed(f"a body is an object, not {_said(value)}")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise malformed("a field appears twice")
    return fields


def _no_constant(name: str) -> NoReturn:
    raise malformed(f"not JSON: {name} is no value of JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant)


# Fields --------------------------------------------------------------------------------------


def only(fields: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Raise Problem 422 for a field that is not known."""
    for name in fields:
        if name not in known:
            base = name.partition("_")[0]
            if not (base in known and "rows" in fields and name in field_names(base)):
                said = ", ".join(known)
                raise wrong(f"unknown field {name[:64]!r}: this endpoint takes {said}")


def vertices(fields: Mapping[str, Any], name: str, named: bool, max_rows: int) -> Column:
    """Field `name`, a column of vertices: ids, or names where the graph has names. Raises Problem
    413 or 422."""
    if "rows" in fields:
        column = _bin_column(fields, name, max_rows)
    elif name in fields:
        column = fields[name]
    else:
        raise wrong(f"{name}: is missing: give a list of vertices")
    if not isinstance(column, list | np.ndarray):
        raise wrong(f"{name}: expected a list of vertices, got {_said(column)}{_hint(column)}")
    if len(column) > max_rows:
        raise too_many(f"{name}: {len(column):,} vertices, and at most {max_rows:,} are taken")
    check_vertices(column, name, named)
    return column


def _hint(value: Any) -> str:
    return ": a bin column needs `rows`, their number, beside it" if type(value) is bytes else ""


def check_vertices(column: Column, name: str, named: bool) -> None:
    """Raise Problem 422 unless each is a vertex of such a graph."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu":
        least, most = int(column.min(initial=0)), int(column.max(initial=0))
        if named or (least >= 0 and most <= MAX_VERTEX):
            return
        column = column.tolist()
    elif isinstance(column, np.ndarray):
        column = column.tolist()
    types = set(map(type, column))
    if types <= {int}:
        low, high = (MIN_NAME, MAX_NAME) if named else (0, MAX_VERTEX)
        if not column or (low <= min(column) and max(column) <= high):  # type: ignore[operator]
            return
    for row, value in enumerate(column):
        try:
            check_vertex(value, f"{name}: row {row}", named)
        except RecordError as error:
            raise wrong(str(error)) from None


def check_vertex(value: Any, what: str, named: bool) -> None:
    """Raise RecordError unless this is a vertex of such a graph."""
    if type(value) is str and named:
        text_name(value, what)
    elif type(value) is not int:
        expected = "an integer of 64 bits or text" if named else "an integer"
        hint = "; this graph has ids, no names" if type(value) is str else ""
        raise RecordError(f"{what} is {_said(value)}: a vertex is {expected}{hint}")
    else:
        low, high = (MIN_NAME, MAX_NAME) if named else (0, MAX_VERTEX)
        if not low <= value <= high:
            raise RecordError(f"{what} lies outside {low} … {high}")


def _bin_column(fields: Mapping[str, Any], name: str, max_rows: int) -> Column:
    """A column as the log's records have them."""
    rows = fields["rows"]
    if type(rows) is not int or rows < 0:
        raise wrong(f"rows: expected the number of rows, got {_said(rows)}")
    if rows > max_rows:
        raise too_many(f"rows: {rows:,} vertices, and at most {max_rows:,} are taken")
    if isinstance(fields.get(name), list):
        column: list[Name] = fields[name]
        if len(column) != rows:
            raise wrong(f"{name}: has {len(column):,} vertices, and rows says {rows:,}")
        return column
    try:
        return read_names(dict(fields), name, rows, max_rows)
    except RecordError as error:
        raise wrong(str(error)) from None


def marks(fields: Mapping[str, Any], rows: int, named: bool) -> list[Name | None] | None:
    """Field `after`: for each vertex, the last neighbour that the client has, or null. Raises
    Problem 422."""
    after = fields.get("after")
    if after is None:
        return None
    items = after.tolist() if isinstance(after, np.ndarray) else after
    if not isinstance(items, list) or len(items) != rows:
        raise wrong(f"after: expected a list of {rows:,}, a vertex or null for each one asked for")
    check_vertices([item for item in items if item is not None], "after", named)
    return items


def whole(fields: Mapping[str, Any], name: str, low: int, high: int) -> int:
    """Field `name`, an integer within [low, high]. Raises Problem 422."""
    value = fields.get(name)
    if type(value) is not int:
        raise wrong(f"{name}: expected an integer from {low} to {high}, got {_said(value)}")
    if not low <= value <= high:
        shown = str(value) if abs(value) < 10**12 else "a large number"
        raise wrong(f"{name}: {shown} lies outside {low} … {high}")
    return value


_SAID = {bool: "a boolean", int: "an integer", float: "a fraction", str: "text", list: "a list",
         dict: "an object", bytes: "bytes", type(None): "nothing"}  # fmt: skip


def _said(value: Any) -> str:
    return _SAID.get(type(value), type(value).__name__)
