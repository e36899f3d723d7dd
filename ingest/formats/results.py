"""The results of a stream as records: what changed of its figures, and alerts. The specification
is `docs/reference/format.md`.

Results are columns: all vertices whose figure changed in one batch are one record, or a few, if
they are many. A reader finds its place by three fields: `run`, which changes only when the results
start over from nothing; `version`, which rises in a run; and `part`, which rises in a version. So a
record is a repeat if (version, part) is not above that of the last one of its run.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import msgpack
import numpy as np

from ..errors import RecordError
from ..types import Array
from .msgpack import binary, integer, only_fields, short_text, type_name, unpack
from .names import field_names, name_fields, names_of, read_names

MAX_RESULT_BYTES = 1_000_000  # brokers take records of 1 MiB unless they are told otherwise
MAX_RESULT_ROWS = 1 << 16
MAX_LINE_BYTES = 6 * MAX_RESULT_BYTES  # as JSON, which writes a byte of text as six at most
ROW_BYTES = 13  # of a row beside its name: the name's end and kind, old and new

_PLACE = ("figure", "run", "version", "part", "parts", "time")
_HEAD = frozenset({*_PLACE, "alert", "old", "new"})
_VERTICES = frozenset({"rows"}) | field_names("vertex")
_MOST = 2**64 - 1


@dataclass(frozen=True)
class Result:
    """How one figure changed with one version of the graph, or where an alert's rule became true.

    For a figure of vertices, `vertex`, `old` and `new` are columns of equal length: vertex is
    uint32, or names (uint64, int64, or objects, each int or str); old and new are int32. For a
    total, vertex is None, and old and new are integers.

    >>> result = ingest.Result("5f0c", 7, 0, 1, 9, "triangles", old=3, new=4)
    >>> ingest.decode_result(ingest.formats.results.encode_result(result)).new
    4
    """

    run: str
    version: int  # of the graph
    part: int  # place among the results of this version, from 0
    parts: int  # how many results this version has
    time: int  # stamp of the version's last operation, ms since 1970
    figure: str
    vertex: Array | None = None
    old: Any = 0  # int32[rows], or an int
    new: Any = 0  # likewise
    alert: str | None = None  # the rule that became true; None: this is a change

    @property
    def rows(self) -> int:
        """How many vertices it names; 1 for a total."""
        return 1 if self.vertex is None else len(self.vertex)

    @property
    def pieces(self) -> int:
        """How many it can be cut into at most."""
        return self.rows

    @property
    def place(self) -> tuple[int, int]:
        """(version, part), which rises within a run."""
        return self.version, self.part


def encode_result(result: Result) -> bytes:
    """The bytes of a result. Raises RecordError only, if it could not be read back.

    >>> import numpy as np
    >>> core = ingest.Result("5f0c", 7, 0, 1, 9, "core", np.array([2], np.uint32),
    ...                      np.array([0], np.int32), np.array([1], np.int32))
    >>> ingest.decode_result(ingest.formats.results.encode_result(core)).vertex
    array([2], dtype=uint32)
    """
    if not isinstance(result, Result):
        raise RecordError(f"a result is expected, got {type_name(result)}")
    fields = _head(result)
    if result.vertex is None:
        for name in ("old", "new"):
            fields[name] = _whole(getattr(result, name))
            integer(fields, name, 0, _MOST)
    else:
        vertex = names_of(result.vertex, "vertex")
        rows = len(vertex)
        if not 1 <= rows <= MAX_RESULT_ROWS:
            raise RecordError(f"{rows} rows: a result has 1 to {MAX_RESULT_ROWS}")
        fields |= {"rows": rows, **name_fields("vertex", vertex)}
        fields |= {"old": _column(result.old, "old", rows), "new": _column(result.new, "new", rows)}
    _checked(fields, None, 0, 0)
    try:
        data: bytes = msgpack.packb(fields)
    except UnicodeEncodeError:
        raise RecordError("a lone surrogate is not valid text") from None
    if len(data) > MAX_RESULT_BYTES:
        raise RecordError(f"{len(data)} bytes: a result has at most {MAX_RESULT_BYTES}: cut it")
    return data


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, np.integer) else value


def _column(value: Any, name: str, rows: int) -> bytes:
    try:
        column = np.asarray(value)
    except ValueError:  # lists of several lengths
        column = np.empty(0)
    if column.shape != (rows,) or column.dtype.kind not in "iu":
        raise RecordError(f"{name}: expected {rows} integers")
    narrow = column.astype("<i4")
    if column.dtype != narrow.dtype and not bool((narrow == column).all()):
        raise RecordError(f"{name}: expected integers of 32 bits")
    return narrow.tobytes()


def _head(result: Result) -> dict[str, Any]:
    fields = {name: _whole(getattr(result, name)) for name in _PLACE}
    return fields if result.alert is None else {"alert": result.alert, **fields}


def decode_result(data: bytes) -> Result:
    """The result in `data`. Raises RecordError only.

    >>> ingest.decode_result(b"x")
    Traceback (most recent call last):
    ingest.errors.RecordError: a result is a map
    """
    fields = unpack(data, MAX_RESULT_BYTES)
    if not isinstance(fields, dict):
        raise RecordError("a result is a map")
    if "rows" not in fields:
        only_fields(fields, _HEAD)
        old, new = (integer(fields, name, 0, _MOST) for name in ("old", "new"))
        return _checked(fields, None, old, new)
    only_fields(fields, _HEAD | _VERTICES)
    rows = integer(fields, "rows", 1, MAX_RESULT_ROWS)
    vertex = read_names(fields, "vertex", rows, rows)
    return _checked(fields, vertex, *(binary(fields, name, "<i4", rows) for name in ("old", "new")))


def _checked(fields: dict[Any, Any], vertex: Array | None, old: Any, new: Any) -> Result:
    parts = integer(fields, "parts", 1, 2**31 - 1)
    return Result(
        short_text(fields, "run"),
        integer(fields, "version", 0, 2**63 - 1),
        integer(fields, "part", 0, parts - 1),
        parts,
        integer(fields, "time", -(2**63), 2**63 - 1),
        short_text(fields, "figure"),
        vertex,
        old,
        new,
        short_text(fields, "alert") if "alert" in fields else None,
    )


# JSON lines ----------------------------------------------------------------------------------


def result_line(result: Result) -> bytes:
    """The same as a line of JSON, with lists for columns, without its end."""
    fields = _head(result)
    for name in ("vertex", "old", "new"):
        value = getattr(result, name)
        if value is not None:
            fields[name] = value.tolist() if isinstance(value, np.ndarray) else _whole(value)
    return json.dumps(fields, separators=(",", ":")).encode()


_TEXT = re.compile(rb"(?:[ !#-\[\]-~]|\\(?:[!-~]|\Z))*")
_INTEGER, _REST = re.compile(rb"-?[0-9]*"), re.compile(rb"[ -~]*")
_LINE: tuple[Any, ...] = (
    b'figure":"', _TEXT, b'","run":"', _TEXT, b'","version":', _INTEGER, b',"part":', _INTEGER,
    b',"parts":', _INTEGER, b',"time":', _INTEGER,
)  # fmt: skip
_LINES = [
    (*opening, *_LINE, *end)
    for opening in ((b'{"',), (b'{"alert":"', _TEXT, b'","'))
    for end in ((b',"vertex":[', _REST), (b',"old":', _INTEGER, b',"new":', _INTEGER, b"}"))
]


def begins_result_line(data: bytes) -> bool:
    """Whether `data` is the beginning of a line that `result_line` writes, or all of one. What
    follows the head of one with columns may be any printable ASCII.

    >>> from ingest.formats.results import begins_result_line
    >>> [begins_result_line(data) for data in (b'{"figure":"co', b'{"figure": "co')]
    [True, False]
    """
    return any(_begins(data, forms) for forms in _LINES)


def _begins(data: bytes, forms: tuple[Any, ...]) -> bool:
    """Whether `data` is a beginning of these texts and patterns, one after the other. Where data
    ends, empty text begins all that would follow."""
    at = 0
    for form in forms:
        if isinstance(form, bytes):
            if not form.startswith(data[at : at + len(form)]):
                return False
            at += len(form)
        else:
            at = form.match(data, min(at, len(data))).end()
    return at >= len(data)


def decode_result_line(line: bytes) -> Result:
    """The result in a line. Raises RecordError only."""
    try:
        fields = json.loads(line)
    except (TypeError, ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise RecordError("a line of results is a JSON object")
    only_fields(fields, _HEAD | {"vertex"})
    if "vertex" not in fields:
        old, new = (integer(fields, name, 0, _MOST) for name in ("old", "new"))
        return _checked(fields, None, old, new)
    if not isinstance(fields["vertex"], list):
        raise RecordError("vertex: expected a list")
    vertex = names_of(fields["vertex"], "vertex")
    return _checked(
        fields, vertex, *(_integers(fields, name, len(vertex)) for name in ("old", "new"))
    )


def _integers(fields: dict[Any, Any], name: str, rows: int) -> Array:
    value = fields.get(name)
    if not isinstance(value, list) or len(value) != rows:
        raise RecordError(f"{name}: expected a list of {rows} integers")
    if not all(type(item) is int and -(2**31) <= item < 2**31 for item in value):
        raise RecordError(f"{name}: expected integers of 32 bits")
    return np.array(value, np.int32)
