"""Answers as JSON, msgpack and Arrow.

    json      a list for each column; weight and times are null where an edge was not found
    msgpack   a little-endian bin for each column: found and present uint8, weight float32 or
              float64 as the graph has it, times, degree and indptr int64; beside `rows`, ids in a
              form of the log's replies: uint32 or uint64, int64 where some are negative, or text
    arrow     one record batch, whose schema has the version, the time and the cursor as metadata;
              neighbours are rows of (of: which vertex of those asked, id, weight, time)

Long columns are written piece by piece, so that a thread that writes one lets others run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt

from lpma import Edges, Kind, Neighbors

from ..formats.names import name_fields
from .bodies import ARROW, JSON
from .questions import Answer

Array = npt.NDArray[Any]

PIECE = 8192  # values written at once

_to_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


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
        value = Edges(joint.found[lo:hi], _part(joint.weights, lo, hi), _part(joint.times, lo, hi))
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
        order = ids if answer.order is None else answer.order[rows]
        kept = order > np.repeat(answer.seen, counts)
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])[indptr]
        ids = ids[kept]
        columns = [None if column is None else column[kept] for column in columns]
    return Neighbors(indptr, ids, *columns)


def _part(column: Array | None, lo: int, hi: int) -> Array | None:
    return None if column is None else column[lo:hi]


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
    head: dict[str, Any] = {"version": page.version, "time": page.time}
    value, columns = page.value, _columns(page)
    if isinstance(value, Neighbors):
        columns["ids"] = value.ids
    found = value.found if isinstance(value, Edges) and not value.found.all() else None
    if page.rows <= PIECE:
        for name, column in columns.items():
            head[name] = _listed(column, found if name != "found" else None)
        if isinstance(value, Neighbors):
            head["cursor"] = page.cursor
        return _to_json(head).encode()
    parts = [_to_json(head)[:-1]]
    for name, column in columns.items():
        parts += f',"{name}":[', _in_pieces(column, found if name != "found" else None), "]"
    if isinstance(value, Neighbors):
        parts.append(f',"cursor":{_to_json(page.cursor)}')
    return "".join([*parts, "}"]).encode()


def _in_pieces(column: Array, found: Array | None) -> str:
    starts = range(0, len(column), PIECE)
    pieces = []
    for i in starts:
        part = None if found is None else found[i : i + PIECE]
        pieces.append(_to_json(_listed(column[i : i + PIECE], part))[1:-1])
    return ",".join(pieces)


def _listed(column: Array, found: Array | None) -> list[Any]:
    """Values for JSON, which has no infinity: an overflown sum of weights is null."""
    values: list[Any] = column.tolist()
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        values = [value if abs(value) < np.inf else None for value in values]
    if found is not None:
        there = found.tolist()
        values = [v if is_there else None for v, is_there in zip(values, there, strict=True)]
    return values


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
