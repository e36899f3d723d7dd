"""A batch as columns: what its operations are, and what makes it valid.

A batch is a sequence of operations in the order of time (paper, Definitions 1 and 5), which is that
of its rows, whatever the time column says. It is kept as five columns of equal length, because
every later step (sorting, locating, copying to a device) reads one column at a time.

    kind    uint8    what the operation is: a `Kind`
    src     uint32   the edge's source, or the vertex of a vertex operation or of a vertex query
    dst     uint32   the edge's target; the number of steps for HOPS; unused elsewhere
    weight  float    the weight that is added or set; unused where the operation has none
    time    int64    a timestamp carried by the edge; None: stamped when the batch is applied. Of
                     EXPIRE: what edges must not be older than; src and dst are unused there

Columns other than `kind` may lie on a device if all operations update edges or let them expire.
Nobody waits for the device here: their rows are validated when the batch is applied.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import EnumType, IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..arguments.convert import MAX_VERTEX as MAX_VERTEX
from ..arguments.convert import MAX_WEIGHT as MAX_WEIGHT
from ..arguments.convert import (
    are_ids,
    as_array,
    as_column,
    id_column,
    stretched,
    time_array,
    time_column,
    weight_column,
)
from ..arguments.renamed import no_attribute
from ..arguments.scalars import raises_out_of_memory
from ..arrays import Array, on_device, rows_of, to_host
from ..errors import BatchError

MAX_OPERATIONS = 2**31 - 1  # the place of an operation fits an int32 with room for a mark
KEPT_ROWS = 1 << 22  # of one kind, whose column is kept
MAX_HOPS = 255


class _Kinds(EnumType):
    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any:
            raise no_attribute("lpma.Kind", name, {"APPEND": "INSERT"})


class Kind(IntEnum, metaclass=_Kinds):
    """What an operation of a batch is: an update, or, from `EDGE` to `VERTEX`, a query.

    SET is a deletion of the edge and an insertion with the weight at one place in time, never
    cut apart: the edge then has exactly that weight and the operation's time. With a weight of 0 or
    less, for which an insertion leaves an absent edge absent, it is gone.

    >>> lpma.Kind.DELETE
    <Kind.DELETE: 1>
    """

    INSERT = 0
    DELETE = 1
    ADD_VERTEX = 2
    REMOVE_VERTEX = 3
    EXPIRE = 4
    EDGE = 5
    SUCCESSORS = 6
    PREDECESSORS = 7
    HOPS = 8
    DEGREE = 9
    VERTEX = 10
    SET = 11


# As plain integers, which compiled functions take.
INSERT, DELETE, ADD_VERTEX = int(Kind.INSERT), int(Kind.DELETE), int(Kind.ADD_VERTEX)
REMOVE_VERTEX, EXPIRE, SET = int(Kind.REMOVE_VERTEX), int(Kind.EXPIRE), int(Kind.SET)
FIRST_QUERY, LAST_QUERY, LAST_KIND = int(Kind.EDGE), int(Kind.VERTEX), int(Kind.SET)

# What kinds have in common, for one kind and for a column of them. Nothing else compares kinds by
# their numbers.
QUERIES = tuple(kind for kind in Kind if FIRST_QUERY <= kind <= LAST_QUERY)
UPDATES = tuple(kind for kind in Kind if kind not in QUERIES)
OF_EDGES = INSERT, DELETE, SET  # each updates the edge (src, dst)
WEIGHTED = INSERT, SET  # these read the weight, and bring edges
_STAMPED = tuple(kind for kind in UPDATES if kind != EXPIRE)

BAD_KIND = f"kind: values go from 0 to {LAST_KIND}"


def query_rows(kinds: Array) -> Array:
    """bool[n]: the rows that are queries."""
    return (kinds >= FIRST_QUERY) & (kinds <= LAST_QUERY)


def edge_rows(kinds: Array) -> Array:
    """bool[n]: the rows that update the edge (src, dst)."""
    return (kinds <= DELETE) | (kinds == SET)


def weighted_rows(kinds: Array) -> Array:
    """bool[n]: the rows that read the weight."""
    return (kinds == INSERT) | (kinds == SET)


_OF_ONE = {kind: bytes([kind]) * (1 << 17) for kind in OF_EDGES}  # the columns of such batches


@dataclass(eq=False)  # one is made per batch; if frozen, that takes three times as long
class Columns:
    """A batch of n operations as columns, each contiguous. `Batch.from_columns`, `Batch.columns`
    and `pinned_batch` make it. The arrays are the caller's, who may write to them or put others in
    their place: `Graph.apply` validates them.

    kind             uint8[n], on the host
    src, dst         uint32[n]
    weight           float32[n] or float64[n]; None: 1.0 throughout
    time             int64[n]; None: stamped when the batch is applied
    checked          True: the rows were validated, and nobody else can write to them: they are
                     applied without another look. Set only by what makes a batch and
                     applies it itself
    block            the pinned memory that all columns lie in, if they do (arrays.PinnedBlock)
    places           where they do, 0 for None: noted by `moved`, once it is seen that they do
    ids_resolved     True: src and dst are ids that the graph's own dictionary gave; False: in a
                     graph with names, integers here are names
    expiry_expanded  True: each EXPIRE row is of its edge (src, dst) alone
    unvalidated      True: src and dst are integers of 32 or 64 bits, columns may have gaps, and
                     nobody has looked at them; for a backend that `stages_unvalidated`

    >>> columns = lpma.Batch.from_columns(lpma.Kind.INSERT, [1, 2], [2, 3], weight=0.5)
    >>> len(columns), columns.weight
    (2, array([0.5, 0.5]))
    """

    kind: Array
    src: Array
    dst: Array
    weight: Array | None
    time: Array | None
    checked: bool = False
    block: Any = None
    places: tuple[int, ...] | None = None
    ids_resolved: bool = False
    expiry_expanded: bool = False
    unvalidated: bool = False

    # The fields with an entry a row.
    ROWS: ClassVar[tuple[str, ...]] = ("kind", "src", "dst", "weight", "time")

    def __len__(self) -> int:
        """The number of operations, queries included."""
        return len(self.kind)

    @property
    def num_queries(self) -> int:
        """How many of the operations are queries."""
        return len(self.queries)

    @cached_property
    def queries(self) -> Array:
        """int64[q]: the rows that are queries."""
        return np.flatnonzero(query_rows(self.kind))

    @cached_property
    def largest_kind(self) -> int:
        """The largest number of a kind among the rows; 0 if there are none."""
        # Mostly all rows insert, and whether any do not is seen in less time than a maximum takes.
        few = len(self.kind) < 1 << 17
        others = np.count_nonzero(self.kind) if few else self.kind.view(np.bool_).any()
        return int(self.kind.max(initial=0)) if others else 0

    @cached_property
    def one_kind(self) -> int | None:
        """The kind of every row, if all rows have the same; 0 if there are no rows."""
        most = self.largest_kind
        return most if not most or int(self.kind.min()) == most else None

    @cached_property
    def edges_only(self) -> bool:
        """Whether every row updates the edge (src, dst)."""
        most = self.largest_kind
        if most <= DELETE or most != SET:
            return most <= DELETE
        return self.one_kind == SET or bool(edge_rows(self.kind).all())

    @cached_property
    def names_its_keys(self) -> bool:
        """Whether no row removes a vertex or lets edges expire: each update is of its own key."""
        return self.edges_only or not (self.kind - np.uint8(Kind.REMOVE_VERTEX) < 2).any()

    @cached_property
    def expires(self) -> bool:
        """Whether a row lets edges expire."""
        return not self.names_its_keys and bool((self.kind == EXPIRE).any())

    @cached_property
    def on_device(self) -> bool:
        """Whether a column lies on a CUDA device."""
        movable = self.src, self.dst, self.weight, self.time
        return self.block is None and not self._on_host and any(map(on_device, movable))

    @property
    def _on_host(self) -> bool:
        """Whether all columns are arrays of the host: their dtypes are checked later."""
        host, none = np.ndarray, type(None)
        return type(self.src) is type(self.dst) is host and (
            type(self.weight) in (host, none) and type(self.time) in (host, none)
        )

    # Whatever makes a batch of another goes through `replace` or `joined`, which carry every field.

    def replace(self, **changed: Any) -> Self:
        """The same batch with other values in some fields. What was worked out from its columns is
        worked out again. (`dataclasses.replace` does the same in three times the time.)

        >>> columns = lpma.Batch.from_columns(lpma.Kind.INSERT, [1, 2], [2, 3])
        >>> columns.replace(weight=np.array([0.5, 1.5])).src
        array([1, 2], dtype=uint32)
        """
        assert changed.keys() <= self.__dataclass_fields__.keys(), changed
        copy = object.__new__(type(self))
        copy.__dict__ = own = {**self.__dict__, **changed}
        for name in own.keys() & _WORKED_OUT:
            del own[name]
        if self.block is not None and not changed.keys().isdisjoint(self.ROWS):
            copy.block = copy.places = None  # it is copied as a whole, from its start
        return copy

    def take(self, rows: slice | Array) -> Self:
        """Some rows, by a slice, a mask or their numbers; only a slice shares memory. Columns of
        Arrow are taken too.

        >>> lpma.Batch.from_columns(lpma.Kind.INSERT, [1, 2, 3], [2, 3, 4]).take([2, 0, 0]).src
        array([3, 1, 1], dtype=uint32)
        """
        own = self.__dict__
        return self.replace(
            **{name: rows_of(own[name], rows) for name in self.ROWS if own[name] is not None}
        )

    def rows(self, lo: int, hi: int) -> Self:
        """Rows lo … hi - 1, sharing memory; all of them are the batch itself.

        >>> lpma.Batch.from_columns(lpma.Kind.INSERT, [1, 2, 3], [2, 3, 4]).rows(1, 3).src
        array([2, 3], dtype=uint32)
        """
        return self if lo == 0 and hi == len(self) else self.take(slice(lo, hi))

    def moved(self, near: Callable[[Any], Any]) -> Self:
        """The same with every column but `kind` through `near`. What was cached is computed
        again."""
        given, places = (self.src, self.dst, self.weight, self.time), None
        if self.block is not None and self.src is not None and self.dst is not None:
            places = tuple(map(self.block.at.get, map(id, (self.kind, *given))))
        if places is not None and None not in places:
            columns = self.replace(places=places)
            columns.on_device = False
        elif self._on_host:
            columns = self.replace(block=None, places=None)
            columns.on_device = False
        else:
            src, dst, weight, time = [None if it is None else near(it) for it in given]
            columns = self.replace(src=src, dst=dst, weight=weight, time=time)
        if type(self.kind) is np.ndarray:
            memory = self.kind.data
            for one_kind, kinds in _OF_ONE.items():
                if memory.contiguous and kinds.startswith(memory):  # which takes no time
                    columns.one_kind, columns.edges_only = one_kind, True
                    break
        return columns

    def _concatenated(self, columns: list[Any]) -> Any:
        return np.concatenate(columns)

    @staticmethod
    def joined(parts: Sequence[Columns]) -> Columns:
        """The operations of all parts, in their order: on the host, at least one part, each with
        times, or none. Parts without weights have 1. Raises BatchError if the parts are not all
        read the same way, say if only some have `ids_resolved`, or if only some name their
        vertices.

        >>> one = lpma.Batch.from_columns(lpma.Kind.INSERT, [1], [2])
        >>> other = lpma.Batch.from_columns(lpma.Kind.DELETE, [3], [4])
        >>> lpma.Columns.joined([one, other]).src
        array([1, 3], dtype=uint32)
        """
        if not isinstance(parts, list | tuple) or not parts:
            raise BatchError("parts: a list of at least one batch as columns")
        first = parts[0]
        for part in parts:
            if not isinstance(part, Columns):
                raise BatchError(f"parts: batches as columns, not a {type(part).__name__}")
            if type(part) is not type(first):
                raise BatchError("parts of one batch must all name their vertices, or none")
        if len(parts) == 1:
            return first
        columns = [[part.__dict__[name] for part in parts] for name in first.ROWS]
        marks = {tuple(part.__dict__[name] for name in _MARKS) for part in parts}
        # Of times and of what names vertices; weights may be absent in some parts.
        absent = [{value is None for value in column} for column in columns[4:]]
        if len(marks) > 1 or any(len(both) > 1 for both in absent):
            raise BatchError("parts of one batch must agree in what they are: ids, names, times")
        present = {weight.dtype for weight in columns[3] if weight is not None}
        if present:
            dtype = np.result_type(*present)
            columns[3] = [
                np.ones(len(part), dtype) if part.weight is None else part.weight for part in parts
            ]
        joined = [None if column[0] is None else first._concatenated(column) for column in columns]
        checked = all(part.checked for part in parts)
        return first.replace(**dict(zip(first.ROWS, joined, strict=True)), checked=checked)

    @staticmethod
    @raises_out_of_memory
    def edges(kind: int, src: Any, dst: Any, weight: Any, time: Any) -> Columns:
        """Updates of one kind from what a caller gave: see `Batch.from_columns`. A scalar is every
        row's; `dst` is None for operations on vertices. Raises BatchError."""
        if type(weight) in (float, int) and weight == 1:
            weight = None
        if weight is None and time is None and are_ids(src, dst) and len(src) <= MAX_OPERATIONS:
            columns = Columns(kinds_of(kind, len(src)), src, dst, None, None, checked=True)
            columns.on_device = False
            return of_one_kind(kind, columns)
        name = "src" if kind in OF_EDGES else "v"
        sources = as_array(src, name)
        if kind not in OF_EDGES:
            ids = id_column(to_host(sources), name)
            targets = np.zeros(len(ids), np.uint32)
        else:
            ids, many = id_column(sources, "src"), sources.ndim
            targets = as_array(dst, "dst")
            if not targets.ndim:
                targets = stretched(id_column(targets, "dst"), len(ids), ids)
            else:
                targets = id_column(targets, "dst")
                ids = ids if many else stretched(ids, len(targets), targets)
        weights = None if weight is None else weight_column(weight, ids)
        times = None if time is None else time_column(time, ids)
        kinds = kinds_of(kind, len(ids))
        return of_one_kind(kind, with_equal_lengths(kinds, ids, targets, weights, times))

    @staticmethod
    @raises_out_of_memory
    def validated(kind: Any, src: Any, dst: Any, weight: Any, time: Any) -> Columns:
        """A mixed batch from what a caller gave: see `Batch.from_columns`. The columns are on the
        device if any of them lies there and all rows update edges. Raises BatchError."""
        given = to_host(as_array(kind, "kind"))
        kinds = as_column(given, np.uint8, "kind")
        most = int(kinds.max(initial=0))
        if most > LAST_KIND:
            raise BatchError(BAD_KIND)
        place: Callable[[Any], Any] = (lambda a: a) if may_lie_on_device(kinds) else to_host
        sources = id_column(place(as_array(src, "src")), "src")
        targets = id_column(place(as_array(dst, "dst")), "dst")
        if not given.ndim:
            kinds = np.full(len(sources), kinds[0], np.uint8)
        weights, times = None, None
        if weight is not None:
            weights = weight_column(place(as_array(weight, "weight")), sources, kinds, WEIGHTED)
        if time is not None:
            times = time_column(place(time_array(time)), sources)
        refuse_untimed(kinds, times)
        columns = with_equal_lengths(kinds, sources, targets, weights, times)
        hops = targets[kinds == Kind.HOPS] if most >= Kind.HOPS else targets[:0]
        if hops.size and not 1 <= int(hops.min()) <= int(hops.max()) <= MAX_HOPS:
            raise BatchError(f"hops: the number of steps goes from 1 to {MAX_HOPS}")
        return columns


_WORKED_OUT = {name for name, it in vars(Columns).items() if isinstance(it, cached_property)}
_MARKS = sorted(
    {each.name for each in fields(Columns)} - {*Columns.ROWS, "checked", "block", "places"}
)


def may_lie_on_device(kinds: Array) -> bool:
    """Whether all rows update edges or let them expire: no vertex operation, no query."""
    if int(kinds.max(initial=0)) <= DELETE:
        return True
    return bool((edge_rows(kinds) | (kinds == EXPIRE)).all())


def refuse_untimed(kinds: Array, times: Array | None) -> None:
    """Raises BatchError if a row lets edges expire and has no time that says which."""
    if times is None and (kinds == EXPIRE).any():
        raise BatchError("expire: the time column says before which time edges expire: give one")


def kinds_of(kind: int, n: int) -> Array:
    """A column of one kind, which nobody writes to: the same memory as before, if it is small."""
    if n > KEPT_ROWS:
        return np.full(n, int(kind), np.uint8)
    kept = _kinds.get(kind)
    if kept is None or len(kept) < n:
        kept = np.full(n + n // 4, int(kind), np.uint8)
        kept.flags.writeable = False
        _kinds[kind] = kept
    return kept[:n]


_kinds: dict[int, Array] = {}


def of_one_kind(kind: int, columns: Columns) -> Columns:
    """These columns, with their kind already known."""
    columns.one_kind, columns.edges_only = int(kind), kind in OF_EDGES
    return columns


def with_equal_lengths(
    kinds: Array, src: Array, dst: Array, weights: Array | None, times: Array | None
) -> Columns:
    """Columns made of these, each valid by itself; they must have the same length."""
    n = len(src)
    if n > MAX_OPERATIONS:
        raise BatchError(f"a batch holds at most {MAX_OPERATIONS} operations: cut it")
    checked = type(src) is type(dst) is np.ndarray
    for name, column in (("dst", dst), ("kind", kinds), ("weight", weights), ("time", times)):
        if column is None:
            continue
        if len(column) != n:
            raise BatchError(
                f"{name} has {len(column)} rows, src has {n}: they must agree; one value for all "
                "rows is given as a plain number, not in a list"
            )
        checked = checked and type(column) is np.ndarray
    columns = Columns(kinds, src, dst, weights, times, checked)
    columns.on_device = not checked
    return columns


def now_ms() -> int:
    """What operations without a time are stamped with: milliseconds since 1970."""
    return clock.time_ns() // 1_000_000


def last_update(kind: Array, stamped: bool = False) -> int:
    """The last row of a column of kinds that is an update, -1 if there is none. stamped: one whose
    time is its own, which that of EXPIRE is not."""
    wanted = _STAMPED if stamped else UPDATES
    if len(kind) and int(kind[-1]) in wanted:
        return len(kind) - 1  # nearly always, and then the other rows need no look
    rows = np.flatnonzero(np.isin(kind, wanted))
    return int(rows[-1]) if len(rows) else -1
