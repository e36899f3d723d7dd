"""Query bodies as they come, and answers as they leave: JSON, msgpack and Arrow.

    form     Content-Type and Accept                          a column of vertices is
    json     application/json                                 a list
    msgpack  application/msgpack, …/vnd.msgpack, …/x-msgpack  a list; or, beside `rows`, a bin
                                                              in a form of the log's records
    arrow    application/vnd.apache.arrow.stream              a column (arrow_input.py)

A body becomes one of the types of `messages.py`. Whatever is wrong with it raises RecordError, of
status 400 if it is none of that form, 413 if it is too large, 422 if a field is wrong.

Answers have, by form:

    json      a list for each column; weight and times are null where an edge was not found
    msgpack   a little-endian bin for each column: found and present uint8, weight float32 or
              float64 as the graph has it, times, degree and indptr int64; beside `rows`, ids in a
              form of the log's replies: uint32 or uint64, int64 where some are negative, or text
    arrow     one record batch, whose schema has the version, the time and the cursor as metadata;
              neighbours are rows of (of: which vertex of those asked, id, weight, time)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgpack
import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET, UnsetType

from lpma import Edges, Kind, Neighbors
from lpma.batch.columns import MAX_VERTEX

from ..errors import RecordError
from ..formats.mapped import STRING
from ..formats.msgpack import text_name, unpack
from ..formats.names import MAX_NAME, MIN_NAME, field_names, name_fields, read_names
from ..types import Name
from .answering import Answer
from .arrow_input import is_text, read_columns
from .context import Limits
from .media import ARROW, JSON
from .messages import Message, refused

Array = npt.NDArray[Any]
Column = list[Name] | Array

MAX_CONTAINERS = 4  # of a body: the object itself, and its columns
VERTICES = ("src", "dst", "u", "v")  # fields of bodies that are columns of vertices


# Bodies --------------------------------------------------------------------------------------


def decoded(form: str, data: bytes, kind: type[Message], limits: Limits) -> Message:
    """A body, whose vertices are not yet looked at. Raises RecordError."""
    if form == JSON:
        return read_json(data, kind)
    fields = _of_arrow(data, limits) if form == ARROW else _of_msgpack(data, kind, limits)
    columns = {name: x for name, x in fields.items() if isinstance(x, np.ndarray)}
    try:
        body = msgspec.convert(fields | dict.fromkeys(columns, ()), kind)
    except msgspec.ValidationError as error:
        raise refused(error, kind) from None
    for name, column in columns.items():
        setattr(body, name, column)
    return body


def read_json(data: bytes, kind: type[Message]) -> Message:
    """The object of that type. Raises RecordError."""
    try:
        body: Message = _decoder(kind).decode(data)
        there = sum(x is not None and x is not UNSET for x in msgspec.structs.astuple(body))
        # They differ too where a field is null, or a text has a colon.
        if data.count(b":") != there:
            fields = _decoder(dict[str, msgspec.Raw]).decode(data)
            if STRING.sub(b"", data).count(b":") != len(fields):
                raise RecordError("a field appears twice")
        return body
    except msgspec.ValidationError as error:
        problem = refused(error, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"not JSON: {error}", "malformed") from None
    try:
        msgspec.json.decode(data, type=msgspec.Raw)  # what is no JSON is told so
    except (msgspec.DecodeError, RecursionError) as error:
        raise RecordError(f"not JSON: {error}", "malformed") from None
    raise problem


@lru_cache
def _decoder(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def _of_msgpack(data: bytes, kind: type[Message], limits: Limits) -> dict[str, Any]:
    most = 2 * limits.max_rows + 16
    try:
        fields = unpack(data, limits.max_body_bytes, max_items=most, max_containers=MAX_CONTAINERS)
    except RecordError as error:
        raise _too_many(limits.max_rows) if error.kind == "oversized" else error from None
    if not isinstance(fields, dict):
        raise RecordError(f"a body is a map, not {type(fields).__name__}", "malformed")
    found = {name if isinstance(name, str) else repr(name)[:64]: x for name, x in fields.items()}
    if "rows" in found:
        return _of_rows(found, kind, limits.max_rows)
    for name, column in found.items():
        if isinstance(column, bytes):
            raise RecordError(f"{name}: a bin column needs `rows`, their number, beside it")
    return found


def _of_rows(fields: dict[str, Any], kind: type[Message], max_rows: int) -> dict[str, Any]:
    """The same with columns as the log's records have them as arrays."""
    rows = fields.pop("rows")
    if type(rows) is not int or rows < 0:
        raise RecordError("rows: expected the number of rows")
    if rows > max_rows:
        raise _too_many(max_rows)
    for name in VERTICES:
        if name not in kind.__struct_fields__:
            continue
        column = fields.get(name)
        if isinstance(column, list) and len(column) != rows:
            raise RecordError(f"{name}: has {len(column):,} vertices, and rows says {rows:,}")
        if not isinstance(column, list):
            column = read_names(fields, name, rows, max_rows)
            fields = {key: x for key, x in fields.items() if key not in field_names(name)}
            fields[name] = column
    return fields


def _of_arrow(data: bytes, limits: Limits) -> dict[str, Any]:
    fields, _ = read_columns(data, limits.max_rows, _is_plain, nullable="after")
    k = fields.get("k")
    if k is not None and len(k) and all(k == k[0]):  # a column, since all of Arrow's are
        fields["k"] = k[0].item()
    if "after" in fields:
        fields["after"] = list(fields["after"])
    return fields


def _is_plain(name: str, kind: Any) -> bool:
    from pyarrow import types

    return is_text(kind) or bool(types.is_integer(kind) or types.is_null(kind))


# Vertices ------------------------------------------------------------------------------------


def vertices(body: Any, name: str, named: bool, max_rows: int) -> Column:
    """Field `name` of a body, a column of vertices: ids, or names where the graph has names. Raises
    RecordError."""
    column: Column | UnsetType = getattr(body, name)
    if column is UNSET:
        raise RecordError(f"{name}: is missing: give a list of vertices")
    if len(column) > max_rows:
        raise _too_many(max_rows)
    check_vertices(column, name, named)
    return column


def _too_many(max_rows: int) -> RecordError:
    return RecordError(f"more than {max_rows:,} vertices: ask for fewer at once", "oversized")


def check_vertices(column: Column, name: str, named: bool) -> None:
    """Raise RecordError unless each is a vertex of such a graph. REQUIRES: they are integers or
    text."""
    low, high = (MIN_NAME, MAX_NAME) if named else (0, MAX_VERTEX)
    items: Any = column
    ends: Any = ()
    is_whole = isinstance(column, np.ndarray) and column.dtype.kind in "iu"
    if is_whole:
        ends = items.min(initial=0), items.max(initial=0)
    else:
        items = list(column)
        is_whole = set(map(type, items)) <= {int}
        if is_whole:
            ends = min(items, default=0), max(items, default=0)
    if is_whole and low <= ends[0] and ends[1] <= high:
        return
    for row, value in enumerate(items):
        what = f"{name}[{row}]"
        if type(value) is str and not named:
            raise RecordError(f"{what} is text: this graph has ids, no names")
        if type(value) is str:
            text_name(value, what)
        elif not low <= value <= high:
            raise RecordError(f"{what} lies outside {low} … {high}")


def marks(after: list[Any] | None, rows: int, named: bool) -> list[Name | None] | None:
    """Field `after`: for each vertex, the last neighbour that the client has, or null. Raises
    RecordError."""
    if after is None:
        return None
    if len(after) != rows:
        raise RecordError(
            f"after: expected a list of {rows:,}, a vertex or null for each one asked for"
        )
    check_vertices([item for item in after if item is not None], "after", named)
    return after


# Answers -------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Page:
    """What one reply holds: an answer, or some of its rows. `value`: with the rows of this request
    alone."""

    kind: Kind
    version: int
    time: int
    value: Edges | Neighbors | Array
    cursor: str | None = None

    @property
    def rows(self) -> int:
        """How many there are to write."""
        if isinstance(self.value, Neighbors):
            return len(self.value.ids)
        return len(self.value.found if isinstance(self.value, Edges) else self.value)


def page_of(answer: Answer) -> Page:
    """All of an answer. The ids of neighbours are not yet names."""
    lo, hi, joint = answer.lo, answer.hi, answer.joint
    value: Edges | Neighbors | Array
    if isinstance(joint, Edges):
        value = joint.rows(lo, hi)
    elif isinstance(joint, Neighbors):
        value = _neighbors_of(answer, joint)
    else:
        value = joint[lo:hi]
    return Page(answer.kind, answer.version, answer.time, value)


def _neighbors_of(answer: Answer, joint: Neighbors) -> Neighbors:
    """The rows of the vertices asked, in their order, above each one's `after`."""
    places = answer.places
    assert places is not None
    starts, counts = joint.indptr[places], joint.indptr[places + 1] - joint.indptr[places]
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    rows: Any
    if len(places) and (np.diff(places) == 1).all():  # they lie together: nothing is copied
        rows = slice(int(starts[0]), int(starts[0] + indptr[-1]))
    else:
        rows = np.repeat(starts - indptr[:-1], counts) + np.arange(indptr[-1])
    ids = joint.ids[rows]
    columns = [None if c is None else c[rows] for c in (joint.weights, joint.times)]
    if answer.seen is not None:
        kept = ids > np.repeat(answer.seen, counts)
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])[indptr]
        ids = ids[kept]
        columns = [None if column is None else column[kept] for column in columns]
    return Neighbors(indptr, ids, *columns)


def encoded(page: Page, form: str) -> bytes:
    """The reply's body."""
    if form == JSON:
        return _json(page)
    return _arrow(page) if form == ARROW else _msgpack(page)


def _columns(page: Page) -> dict[str, Array]:
    """The columns but for ids, by the names they have in JSON and msgpack."""
    value = page.value
    if isinstance(value, Edges):
        columns = {"found": value.found, "weight": value.weights, "times": value.times}
    elif isinstance(value, Neighbors):
        columns = {"indptr": value.indptr, "weight": value.weights, "times": value.times}
    else:
        columns = {"degree" if page.kind is Kind.DEGREE else "present": value}
    return {name: column for name, column in columns.items() if column is not None}


# JSON ----------------------------------------------------------------------------------------


def _json(page: Page) -> bytes:
    """msgspec writes null for an infinity, which an overflown sum of weights is."""
    value = page.value
    fields: dict[str, Any] = {"version": page.version, "time": page.time}
    for name, column in _columns(page).items():
        if isinstance(value, Edges) and name != "found" and not value.found.all():
            column = column.astype(object)
            column[~value.found] = None
        fields[name] = column.tolist()
    if isinstance(value, Neighbors):
        fields |= {"ids": value.ids.tolist(), "cursor": page.cursor}
    return msgspec.json.encode(fields)


# msgpack -------------------------------------------------------------------------------------


def _msgpack(page: Page) -> bytes:
    fields: dict[str, Any] = {"version": page.version, "time": page.time}
    for name, column in _columns(page).items():
        fields[name] = column.astype(column.dtype.newbyteorder("<"), copy=False).tobytes()
    if isinstance(page.value, Neighbors):
        ids = page.value.ids
        fields["rows"] = len(ids)
        if ids.dtype.kind == "u":  # as wide as it is: name_fields would make it narrow
            fields["ids"] = ids.astype(ids.dtype.newbyteorder("<"), copy=False).tobytes()
        else:
            fields |= name_fields("ids", ids)
        fields["cursor"] = page.cursor
    data: bytes = msgpack.packb(fields)
    return data


# Arrow ---------------------------------------------------------------------------------------


def _arrow(page: Page) -> bytes:
    import pyarrow as pa

    value, columns = page.value, _columns(page)
    metadata = {"lpma.version": str(page.version), "lpma.time": str(page.time)}
    arrays: dict[str, Any] = {}
    if isinstance(value, Neighbors):
        counts = np.diff(columns.pop("indptr"))
        arrays["of"] = pa.array(np.repeat(np.arange(len(counts), dtype=np.uint32), counts))
        arrays["id"] = _names(value.ids)
        if page.cursor is not None:
            metadata["lpma.cursor"] = page.cursor
    absent = ~value.found if isinstance(value, Edges) else None
    for name, column in columns.items():
        mask = None if name == "found" else absent
        arrays["time" if name == "times" else name] = pa.array(column, mask=mask)
    batch = pa.record_batch(list(arrays.values()), names=list(arrays))
    batch = batch.replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _names(ids: Array) -> Any:
    """A column of ids; text where some are text, and integers among them as words of theirs."""
    import pyarrow as pa

    if ids.dtype != object:
        return pa.array(ids)
    from ..state.vertex_names import word_of

    items = ids.tolist()
    if all(type(item) is str for item in items):
        return pa.array(items, pa.large_string())
    return pa.array([word_of(item) for item in items], pa.large_string())
