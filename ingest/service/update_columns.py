"""The columns of updates that a request brings, checked: lists or rows of JSON, arrays of Arrow.

Whatever is wrong raises RecordError, which names the column and the row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.batch.columns import Kind

from ..errors import RecordError
from ..formats.msgpack import UPDATE_KINDS

Array = npt.NDArray[Any]

COLUMNS = ("src", "dst", "weight", "time", "kind")
_TYPES: dict[str, set[type]] = {  # of the values of a column of numbers
    "src": {int},
    "dst": {int},
    "weight": {int, float},
    "time": {int},
}
_OF_A_VERTEX = ("add_vertex", "remove_vertex", Kind.ADD_VERTEX, Kind.REMOVE_VERTEX)
_EXPIRES = ("expire", Kind.EXPIRE)
_WITHOUT_DST = _OF_A_VERTEX + _EXPIRES
_SAID = {int: "integers", float: "fractions", str: "text"}


def of_rows(rows: list[dict[str, Any]], names: bool) -> tuple[dict[str, Any], int]:
    """Rows as checked columns, and how many there are. Raises RecordError."""
    only_columns({name: None for row in rows for name in row})
    columns: dict[str, Any] = {
        name: [row.get(name) for row in rows]
        for name in COLUMNS
        if any(row.get(name) is not None for row in rows)
    }
    if "time" in columns and None in columns["time"]:
        raise RecordError("time: give all rows of a request a time, or none")
    if "weight" in columns:
        columns["weight"] = [1.0 if w is None else w for w in columns["weight"]]
    if "kind" in columns:
        kinds = columns["kind"] = ["append" if k is None else k for k in columns["kind"]]
        _check_vertices(columns)
        columns["dst"] = ends(columns)
        sources = zip(kinds, _given("src", columns), strict=True)
        columns["src"] = [0 if kind in _EXPIRES else src for kind, src in sources]
    return checked(columns, names), len(rows)


def _check_vertices(columns: dict[str, list[Any]]) -> None:
    """Raise RecordError for a row that has not as many vertices as its kind takes."""
    rows = zip(columns["kind"], _given("src", columns), _given("dst", columns), strict=True)
    for row, (kind, src, dst) in enumerate(rows):
        if kind in _EXPIRES and not src is dst is None:
            raise RecordError(f"src: row {row}: {kind} takes a time alone")
        if (kind in _WITHOUT_DST) != (dst is None):
            takes = "one vertex, in src" if dst is not None else "two vertices, src and dst"
            raise RecordError(f"dst: row {row}: {kind} takes {takes}")


def only_columns(fields: dict[str, Any]) -> None:
    if unknown := sorted(fields.keys() - set(COLUMNS)):
        raise RecordError(f"unknown field {unknown[0][:64]!r}: known are {', '.join(COLUMNS)}")


def checked(columns: dict[str, Any], names: bool) -> dict[str, Any]:
    """Columns, lists or arrays, as `encode_updates` takes them. Raises RecordError."""
    if missing := [name for name in ("src", "dst") if name not in columns]:
        raise RecordError(f"{missing[0]}: is missing")
    found = {name: _values(name, column, names) for name, column in columns.items()}
    if "kind" in columns:
        found["kind"] = _kinds(columns["kind"])
    return found


def ends(columns: dict[str, list[Any]]) -> list[Any]:
    """The column `dst` of columns with kinds: 0 where an operation on one vertex has none. Raises
    RecordError where another has none."""
    given = _given("dst", columns)
    for row, (kind, end) in enumerate(zip(columns["kind"], given, strict=True)):
        if end is None and kind not in _WITHOUT_DST:
            raise RecordError(f"dst: row {row} has none: only operations on one vertex need none")
    return [0 if end is None else end for end in given]


def _given(name: str, columns: dict[str, list[Any]]) -> list[Any]:
    """That column as it came; None in every row if it did not."""
    given: list[Any] = columns.get(name, [None] * len(columns["kind"]))
    return given


def _values(name: str, column: Any, names: bool) -> Any:
    """A column of numbers as an array; names as they are."""
    if name == "kind" or isinstance(column, np.ndarray):
        return column
    wanted = _TYPES[name] | ({str} if names and name in ("src", "dst") else set())
    if not set(map(type, column)) <= wanted:
        said = " or ".join(_SAID[each] for each in _SAID if each in wanted)
        odd = next(i for i, value in enumerate(column) if type(value) not in wanted)
        got = type(column[odd]).__name__
        hint = "; text names vertices of a stream with names" if got == "str" else ""
        raise RecordError(f"{name}: row {odd} is {got}: expected {said}{hint}")
    if str in wanted:
        return column
    try:
        return np.array(column, np.float64 if float in wanted else np.int64)
    except OverflowError:
        raise RecordError(f"{name}: an integer is too large") from None


def _kinds(column: Any) -> Array:
    """uint8, from the names of kinds or their numbers. Raises RecordError."""
    if not isinstance(column, np.ndarray) and all(type(kind) is int for kind in column):
        column = np.array(column, object)
    if isinstance(column, np.ndarray):
        if not len(column) or 0 <= int(column.min()) <= int(column.max()) < len(UPDATE_KINDS):
            return column.astype(np.uint8)
    elif all(type(kind) is str and kind in UPDATE_KINDS for kind in column):
        return np.array([UPDATE_KINDS[kind] for kind in column], np.uint8)
    raise RecordError(f"kind: expected one of {', '.join(UPDATE_KINDS)}, or 0 to 4")
