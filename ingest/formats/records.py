"""What a record says once it is decoded, and the checks that all its forms share.

Vertices are named in one of two ways, which a pipeline is told once and for all. With dense ids a
record names a vertex by the id it has in the graph. With mapped ids it names it by any integer of
64 bits or by text; such names stand beside the columns, in `Names`, until the vertex dictionary
has turned them into ids (`vertex_ids.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lpma.batch import MAX_VERTEX, MAX_WEIGHT, Columns, Kind

from ..errors import RecordError
from .msgpack import MAX_TEXT_BYTES, integer, type_name

Array = npt.NDArray[Any]
Ids = Literal["dense", "mapped"]
Name = int | str
Form = Literal["uint32", "uint64", "int64", "text", "mixed"]  # of a column of names

MIN_NAME, MAX_NAME = -(2**63), 2**64 - 1
MAX_ROWS = 1 << 20

UPDATES = {kind.name.lower(): kind for kind in Kind if kind < Kind.EDGE}
QUERIES = {kind.name.lower(): kind for kind in Kind if kind >= Kind.EDGE}
NO_DST = (Kind.ADD_VERTEX, Kind.REMOVE_VERTEX)


@dataclass(frozen=True)
class Query:
    """One query of the stream. `dst` is the number of steps for HOPS, 0 where unused. `src`,
    `dst` and `after` may be text where ids are mapped."""

    id: str
    kind: Kind
    src: Name
    dst: Name = 0
    reply: str | None = None  # None: the pipeline's first reply topic
    deadline: int | None = None  # ms since 1970
    after: Name | None = None  # only ids above it are asked for


@dataclass(frozen=True)
class Names:
    """The ends of a record's edges by name, a row each: uint32 or uint64, int64 where some are
    negative, or objects, each an int or a str. `dst` means nothing in a vertex operation."""

    src: Array
    dst: Array


@dataclass(frozen=True)
class Record:
    """A decoded record: its updates in order, or its query; (source, seq) where it names them.
    Where it has `names`, `batch.src` and `batch.dst` are zeros that wait for the ids."""

    batch: Columns
    queries: tuple[Query, ...] = ()
    source: str | None = None
    seq: int | None = None
    names: Names | None = None

    def only(self, rows: Array) -> Record:
        """The rows where the mask bool[n] is true, as a record of the same origin."""
        names = self.names and Names(self.names.src[rows], self.names.dst[rows])
        return replace(self, batch=only(self.batch, rows), names=names)


NO_UPDATES = Columns.validated([], [], [], None, None)


def only(columns: Columns, rows: Array) -> Columns:
    """The rows of validated columns where the mask bool[n] is true."""
    weight = None if columns.weight is None else columns.weight[rows]
    time = None if columns.time is None else columns.time[rows]
    return Columns(columns.kind[rows], columns.src[rows], columns.dst[rows], weight, time)


def updates(kind: Array | None, src: Array, dst: Array, weight: Any, time: Any, ids: Ids) -> Record:
    """The record of these columns, checked. REQUIRES: equal lengths, kind uint8 or None, src and
    dst as `Names` has them, weight of a float type or None, time int64 or None."""
    n = len(src)
    if kind is None:
        kind = np.zeros(n, np.uint8)
    elif int(kind.max(initial=0)) >= Kind.EDGE:
        raise RecordError("kind: 0 to 3 are updates; a query is a record of its own, with an id")
    # The store ignores the weight of a deletion; a record with a NaN there is still a bad record.
    if weight is not None and not bool((np.abs(weight) <= MAX_WEIGHT).all()):
        raise RecordError(f"weight: finite values of at most {MAX_WEIGHT:g} in size are taken")
    if ids == "mapped":
        unnamed = np.zeros(n, np.uint32)
        columns = Columns(kind, unnamed, unnamed, weight, time)
        return Record(columns, names=Names(src, dst))
    return Record(Columns(kind, _dense(src, "src"), _dense(dst, "dst"), weight, time))


def _dense(column: Array, name: str) -> Array:
    if column.dtype.kind != "u":
        raise RecordError(f"{name}: text and negative integers name vertices where ids are mapped")
    if int(column.max(initial=0)) > MAX_VERTEX:
        raise RecordError(f"{name}: ids go from 0 to {MAX_VERTEX} unless they are mapped")
    return column if column.dtype == np.uint32 else column.astype(np.uint32)


def vertex(fields: dict[Any, Any], name: str, ids: Ids) -> Name:
    """Field `name`, a vertex. Raises RecordError."""
    value = fields.get(name)
    if type(value) is not str:
        low, high = (0, MAX_VERTEX) if ids == "dense" else (MIN_NAME, MAX_NAME)
        return integer(fields, name, low, high)
    if ids == "dense":
        raise RecordError(f"{name}: text names a vertex only where ids are mapped")
    return text_name(value, name)


def text_name(value: str, name: str) -> str:
    """`value` where it can name a vertex. Raises RecordError."""
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise RecordError(f"{name}: half of a surrogate pair is no text") from None
    if not 1 <= size <= MAX_TEXT_BYTES:
        raise RecordError(f"{name}: text of 1 to {MAX_TEXT_BYTES} bytes names a vertex, not {size}")
    return value


def number(value: object, name: str) -> float:
    """`value`, a weight. Raises RecordError."""
    if type(value) not in (int, float):
        raise RecordError(f"{name}: expected a number, got {type_name(value)}")
    # Compared before it is converted: an integer of any size compares, NaN fails.
    if not abs(value) <= MAX_WEIGHT:  # type: ignore[arg-type]
        raise RecordError(f"{name}: finite values of at most {MAX_WEIGHT:g} in size are taken")
    return float(value)  # type: ignore[arg-type]


def row(fields: dict[Any, Any], ids: Ids) -> Record:
    """One update of fields src, dst, weight, time and kind (by name). Raises RecordError."""
    name = fields.get("kind", "append")
    kind = UPDATES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise RecordError(f"kind: expected one of {', '.join(UPDATES)}")
    src = vertex(fields, "src", ids)
    if kind in NO_DST and "dst" in fields:
        raise RecordError(f"dst: {name} takes one vertex, in src")
    dst: Name = 0 if kind in NO_DST else vertex(fields, "dst", ids)
    weight = time = None
    if "weight" in fields:
        weight = np.array([number(fields["weight"], "weight")])
    if "time" in fields:
        time = np.array([integer(fields, "time", -(2**63), 2**63 - 1)], np.int64)
    # Every field was checked above; checking columns of one row would take most of the time.
    kinds = np.array([kind], np.uint8)
    if ids == "dense":
        ends = np.array([src, dst], np.uint32)
        return Record(Columns(kinds, ends[:1], ends[1:], weight, time))
    unnamed, ends = np.zeros(1, np.uint32), np.array([src, dst], object)
    columns = Columns(kinds, unnamed, unnamed, weight, time)
    return Record(columns, names=Names(ends[:1], ends[1:]))
