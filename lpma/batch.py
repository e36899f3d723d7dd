"""Operations as columns: what a batch is, and what counts as a good one.

A batch is a sequence of operations in time order (paper, Definitions 1 and 5): edge appends,
deletions, vertex operations and queries. It is kept as five columns of equal length, because
every later step (sorting, locating, copying to a device) reads one column at a time.

    kind    uint8    what the operation is: a `Kind`
    src     uint32   the edge's source, or the vertex of a vertex operation or of a vertex query
    dst     uint32   the edge's target; the number of steps for HOPS; unused elsewhere
    weight  float    the appended weight; unused where the operation has none
    time    int64    a timestamp carried by the edge; None: stamped when the batch is applied

The order of the rows is the order of time. The time column never reorders.

Columns but `kind` may lie on a device where all operations are edge updates. Then their rows are
not looked at here, which would be to wait for the device: applying the batch validates them.
"""

from __future__ import annotations

import operator
import time as clock
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .arrays import on_device, pinned_memory, to_host
from .coerce import MAX_VERTEX as MAX_VERTEX
from .coerce import (
    are_ids,
    as_array,
    as_column,
    batch_vertices,
    empty_is_integer,
    is_scalar,
    stretched,
    where_it_lies,
)
from .errors import BatchError

MAX_WEIGHT = 1e30  # finite sums of many of these stay finite in float32
MAX_OPERATIONS = 2**31 - 1  # the place of an operation fits an int32 with room for a mark
MAX_HOPS = 255

Array = npt.NDArray[Any]


class Kind(IntEnum):
    """The operations. Updates come before `EDGE`, queries from there on."""

    APPEND = 0
    DELETE = 1
    ADD_VERTEX = 2
    REMOVE_VERTEX = 3
    EDGE = 4
    SUCCESSORS = 5
    PREDECESSORS = 6
    HOPS = 7
    DEGREE = 8
    VERTEX = 9


FIRST_OTHER = int(Kind.ADD_VERTEX)  # kinds below it update edges
FIRST_QUERY = int(Kind.EDGE)


@dataclass(frozen=True)
class Edges:
    """Answer to q edge queries. `weight` is 0 and `time` 0 where not found; None where the
    graph keeps no such column."""

    found: Array  # bool[q]
    weight: Array | None  # float[q]
    time: Array | None  # int64[q]


@dataclass(frozen=True)
class Neighbors:
    """Answer to q neighbourhood queries: those of query i are rows indptr[i]:indptr[i+1],
    sorted by id. `weight` and `time` are None for hops and where the graph keeps none."""

    indptr: Array  # int64[q+1]
    ids: Array  # uint32
    weight: Array | None = None
    time: Array | None = None


@dataclass(frozen=True)
class Changes:
    """Net edges inserted and removed between two versions, sorted by (src, dst)."""

    src: Array  # uint32
    dst: Array  # uint32
    inserted: Array  # bool


@dataclass(frozen=True)
class Touched:
    """The edges that batches after a version inserted or deleted, and what is there of them now.
    The arrays lie where the graph does."""

    keys: Array  # uint64: src << 32 | dst, perhaps repeated; a vertex itself has dst 2^32 - 1
    there: Array  # bool: an edge goes from src to dst now, or from dst to src
    version: int  # as of which it is so
    num_vertices: int


def now_ms() -> int:
    """What operations without a time are stamped with: milliseconds since 1970."""
    return clock.time_ns() // 1_000_000


class Batch:
    """One mixed batch, in time order. `append` … `remove_vertex` add updates; `edge` …
    `vertex` add queries and return the query's number, which indexes the answers."""

    def __init__(self) -> None:
        self._kind: list[int] = []
        self._src: list[int] = []
        self._dst: list[int] = []
        self._weight: list[float] = []
        self._time: list[int | None] = []
        self._queries = 0

    def __len__(self) -> int:
        return len(self._kind)

    @property
    def num_queries(self) -> int:
        return self._queries

    def _add(self, kind: Kind, src: int, dst: int, weight: float, time: int | None) -> None:
        source, target = _integer(src), _integer(dst)
        self._kind.append(kind)
        self._src.append(source)
        self._dst.append(target)
        self._weight.append(weight)
        self._time.append(time)

    def append(self, u: int, v: int, w: float = 1.0, time: int | None = None) -> None:
        """Append edge (u, v) with weight w: Definition 2."""
        self._add(Kind.APPEND, u, v, w, time)

    def delete(self, u: int, v: int, time: int | None = None) -> None:
        """Delete edge (u, v) whatever its weight; nothing where it is absent."""
        self._add(Kind.DELETE, u, v, 0.0, time)

    def add_vertex(self, v: int, time: int | None = None) -> None:
        """Make v a vertex even while it has no edge."""
        self._add(Kind.ADD_VERTEX, v, 0, 0.0, time)

    def remove_vertex(self, v: int, time: int | None = None) -> None:
        """Remove v with every edge incident to it at this place of the batch."""
        self._add(Kind.REMOVE_VERTEX, v, 0, 0.0, time)

    def _query(self, kind: Kind, src: int, dst: int = 0) -> int:
        self._add(kind, src, dst, 0.0, None)
        self._queries += 1
        return self._queries - 1

    def edge(self, u: int, v: int) -> int:
        return self._query(Kind.EDGE, u, v)

    def successors(self, u: int) -> int:
        return self._query(Kind.SUCCESSORS, u)

    def predecessors(self, v: int) -> int:
        return self._query(Kind.PREDECESSORS, v)

    def hops(self, u: int, k: int) -> int:
        return self._query(Kind.HOPS, u, k)

    def degree(self, u: int) -> int:
        return self._query(Kind.DEGREE, u)

    def vertex(self, v: int) -> int:
        return self._query(Kind.VERTEX, v)

    @staticmethod
    def from_columns(
        kind: Any, src: Any, dst: Any, weight: Any = None, time: Any = None
    ) -> Columns:
        """The fast road: whole columns at once, validated, not copied where dtypes agree.

        kind, weight and time may be scalars, every row's; weight None means 1.0 for every append;
        time None means stamped when applied. Raises BatchError."""
        return Columns.validated(kind, src, dst, weight, time)

    def columns(self) -> Columns:
        """This batch as validated columns. Where some rows have a time of their own, the others
        are stamped now; where none has, the batch is stamped when applied."""
        time = None
        if any(t is not None for t in self._time):
            now = now_ms()
            time = [now if t is None else t for t in self._time]
        kind = np.array(self._kind, np.uint8)
        return Columns.validated(kind, self._src, self._dst, self._weight, time)


@dataclass(eq=False)  # one is made a batch: frozen, that would take three times as long
class Columns:
    """A batch, validated unless `checked` is False, its columns contiguous. Built by
    `Batch.from_columns` or `Batch.columns`, never by hand."""

    kind: Array  # uint8[n], on the host
    src: Array  # uint32[n]
    dst: Array  # uint32[n]
    weight: Array | None  # float32[n] or float64[n]; None: 1.0 throughout
    time: Array | None  # int64[n]; None: stamped when applied
    checked: bool = True  # False: validated when applied (on a device, or filled by a caller)
    block: Any = None  # the pinned memory that all columns lie in, if they do: see pinned_batch
    throughout: int | None = None  # the kind of every row, where that is known

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def num_queries(self) -> int:
        return int(np.count_nonzero(self.kind >= FIRST_QUERY))

    @property
    def one_kind(self) -> int | None:
        """The kind of every row, where all have one."""
        if self.throughout is not None:
            return self.throughout
        least, most = self._range
        return most if least == most else None

    @property
    def edges_only(self) -> bool:
        """Whether every row appends or deletes an edge."""
        kind = self.throughout
        return (self._range[1] if kind is None else kind) < FIRST_OTHER

    @cached_property
    def _range(self) -> tuple[int, int]:
        """(the least kind, the greatest): 0 where there are no rows."""
        most = int(self.kind.max(initial=0))
        return (int(self.kind.min()) if most else 0), most

    @property
    def on_device(self) -> bool:
        """Whether a column lies on a device. Those are checked when applied."""
        return any(map(on_device, (self.src, self.dst, self.weight, self.time)))

    def rows(self, lo: int, hi: int) -> Columns:
        """Rows lo … hi - 1, sharing memory."""
        weight = None if self.weight is None else self.weight[lo:hi]
        time = None if self.time is None else self.time[lo:hi]
        return Columns(
            self.kind[lo:hi], self.src[lo:hi], self.dst[lo:hi], weight, time, self.checked,
            throughout=self.throughout,
        )  # fmt: skip

    def moved(self, near: Callable[[Any], Any]) -> Columns:
        """The same with every column through `near`, and without what was cached of it."""
        columns = {name: near(getattr(self, name)) for name in ("src", "dst", "weight", "time")}
        return replace(self, **columns)

    @staticmethod
    def edges(kind: Kind, src: Any, dst: Any, weight: Any, time: Any) -> Columns:
        """Operations of one kind; scalars stretch to the length of the others. Operations on
        vertices have no `dst`: None."""
        if kind > Kind.DELETE:
            src = to_host(as_array(empty_is_integer(src), "src"))
        if type(weight) in (float, int) and weight == 1:
            weight = None
        if weight is None and time is None and are_ids(src, dst) and len(src) <= MAX_OPERATIONS:
            return Columns(_kinds(kind, len(src)), src, dst, None, None, throughout=int(kind))
        src, dst = where_it_lies(src), where_it_lies(dst)
        sources = batch_vertices(src, "src")
        if kind > Kind.DELETE:
            targets = np.zeros(len(sources), np.uint32)
        else:
            targets = batch_vertices(dst, "dst")
            if is_scalar(dst):
                targets = stretched(targets, len(sources), sources)
            elif is_scalar(src):
                sources = stretched(sources, len(targets), targets)
        kinds = _kinds(kind, len(sources))
        return Columns._of(kinds, sources, targets, weight, time, int(kind))

    @staticmethod
    def validated(kind: Any, src: Any, dst: Any, weight: Any, time: Any) -> Columns:
        """Columns of these; on the device where some lie there and all rows update edges."""
        kind = _on_host(kind)
        kinds = as_column(empty_is_integer(kind), np.uint8, "kind")
        most = int(kinds.max(initial=0))
        if most > Kind.VERTEX:
            raise BatchError(f"kind: values go from 0 to {int(Kind.VERTEX)}")
        if most > Kind.DELETE:
            src, dst, weight, time = map(_on_host, (src, dst, weight, time))
        sources, targets = batch_vertices(src, "src"), batch_vertices(dst, "dst")
        n = len(sources)
        if is_scalar(kind):
            kinds = np.full(n, kinds[0], np.uint8)
        columns = Columns._of(kinds, sources, targets, weight, time)
        hops = targets[kinds == Kind.HOPS] if most >= Kind.HOPS else targets[:0]
        if hops.size and not 1 <= int(hops.min()) <= int(hops.max()) <= MAX_HOPS:
            raise BatchError(f"hops: the number of steps goes from 1 to {MAX_HOPS}")
        return columns

    @staticmethod
    def _of(
        kinds: Array, sources: Array, targets: Array, weight: Any, time: Any,
        throughout: int | None = None,
    ) -> Columns:  # fmt: skip
        """Columns of vertices and kinds that are validated, or to be when applied, with weights
        and times that are not: of these, one number is every row's."""
        n = len(sources)
        if n > MAX_OPERATIONS:
            raise BatchError(f"a batch holds at most {MAX_OPERATIONS} operations: cut it")
        weights = None if weight is None else _weights(weight, kinds, sources)
        times = None if time is None else _times(time, sources)
        named = {"dst": targets, "kind": kinds, "weight": weights, "time": times}
        for name, column in named.items():
            if column is not None and len(column) != n:
                raise BatchError(
                    f"{name} has {len(column)} rows, src has {n}: they must agree; one value for "
                    "all rows is given as a plain number, not in a list"
                )
        checked = not any(map(on_device, (sources, targets, weights, times)))
        return Columns(kinds, sources, targets, weights, times, checked, throughout=throughout)


def pinned_batch(n: int) -> Columns:
    """A batch of n operations to fill in place: kind is APPEND, weight 1, src, dst and time 0.

    It lies in memory that a device copies from fastest (plain memory where there is none), in
    one piece, and may be filled and applied again and again; it is validated each time."""
    widths = {"src": 4, "dst": 4, "kind": 1, "weight": 4, "time": 8}
    starts = np.cumsum([0, *(-(-n * width // 64) * 64 for width in widths.values())]).tolist()
    block = pinned_memory(starts[-1])
    memory = np.empty(starts[-1], np.uint8) if block is None else np.frombuffer(block, np.uint8)
    memory[:] = 0
    column = {
        name: memory[start : start + n * width]
        for (name, width), start in zip(widths.items(), starts, strict=False)
    }
    weight = column["weight"].view(np.float32)
    weight[:] = 1
    src, dst = column["src"].view(np.uint32), column["dst"].view(np.uint32)
    time = column["time"].view(np.int64)
    return Columns(column["kind"], src, dst, weight, time, checked=False, block=block)


def _kinds(kind: Kind, n: int) -> Array:
    kinds = np.empty(n, np.uint8)
    kinds.fill(kind)
    return kinds


def _integer(value: Any) -> int:
    """A whole number of any type, as Python's own; bool is none."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError("a bool")
        return operator.index(value)
    except TypeError:
        raise BatchError(f"expected an integer, got {value!r}") from None


def _on_host(values: Any) -> Any:
    """What lies on a device, copied from there; anything else as it is."""
    return to_host(where_it_lies(values))


def _weights(values: Any, kinds: Array, sources: Array) -> Array:
    """The weights of a batch; those on a device are not looked at."""
    n, values = len(sources), where_it_lies(values)
    given = getattr(values, "dtype", None)
    weights = as_column(values, np.float32 if given == np.float32 else np.float64, "weight")
    if is_scalar(values):
        weights = stretched(weights, n, sources)
    if len(weights) != n or on_device(weights):
        return weights
    # Only appended weights count, but all are mostly good, and picking takes longer.
    if not (_are_weights(weights) or _are_weights(weights[kinds == Kind.APPEND])):
        raise BatchError(f"weight: finite values of at most {MAX_WEIGHT:g} in size are taken")
    return weights


def _times(values: Any, sources: Array) -> Array:
    values = where_it_lies(values)
    times = as_column(empty_is_integer(values), np.int64, "time")
    return stretched(times, len(sources), sources) if is_scalar(values) else times


def _are_weights(values: Array) -> bool:
    """Written so that NaN, which is the maximum of what it is among, fails the comparison."""
    most, least = values.max(initial=0), values.min(initial=0)
    return bool(most <= MAX_WEIGHT) and bool(least >= -MAX_WEIGHT)


def last_update(kind: Array) -> int:
    """The last row of a column of kinds that is an update, -1 where all are queries."""
    if len(kind) and kind[-1] < FIRST_QUERY:
        return len(kind) - 1  # nearly always, and then the others need not be looked at
    updates = np.flatnonzero(kind < FIRST_QUERY)
    return int(updates[-1]) if len(updates) else -1
