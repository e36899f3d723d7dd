"""Making a batch: operation by operation, or by filling columns that a device copies fast."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arguments.convert import MAX_WHOLE, one_time, one_weight
from ..arguments.renamed import no_attribute
from ..arguments.scalars import integer, is_bool, shown, truth
from ..arguments.times import numbered
from ..arrays import pinned_block
from ..errors import BatchError
from .columns import MAX_OPERATIONS, Columns, Kind, now_ms

if TYPE_CHECKING:
    from ..names import Name


class Batch:
    """A mixed batch, made operation by operation in the order of time (paper, Definition 5).

    `insert`, `set`, `delete`, `add_vertex`, `remove_vertex` and `expire` add updates. `edge`,
    `successors`, `predecessors`, `hops`, `degree` and `vertex` add queries and return the query's
    number, by which `Graph.apply` answers it. Vertices are integers from 0 to 2^32 - 2, or names
    for a graph that has them; a time is an int64, usually milliseconds since 1970, or a datetime.
    An operation without a time gets the moment when its batch is applied or, if another one has a
    time, when the batch is turned into columns.

    Vertices that are neither integers nor text, and weights that are no numbers, raise BatchError
    at once; values out of range raise it when the batch is applied, and then nothing is applied.

    >>> b = lpma.Batch()
    >>> b.insert(1, 2, 0.5)
    >>> before = b.edge(1, 2)
    >>> b.delete(1, 2)
    >>> after = b.edge(1, 2)
    >>> answers = lpma.Graph(device="cpu").apply(b)
    >>> answers[before].found, answers[after].found
    (array([ True]), array([False]))
    """

    def __init__(self) -> None:
        self._kind: list[int] = []
        self._src: list[Name] = []
        self._dst: list[Name] = []
        self._has_text = False
        self._weight: list[float] = []
        self._time: list[Any] = []  # each a time as `insert` takes it, or None
        self._queries = 0

    def __len__(self) -> int:
        """The number of operations, queries included."""
        return len(self._kind)

    def __repr__(self) -> str:
        """
        >>> b = lpma.Batch()
        >>> b.insert(1, 2), b.degree(1)
        (None, 0)
        >>> b
        <lpma.Batch: 2 operations, 1 of them a query>
        """
        asked = "1 of them a query" if self._queries == 1 else f"{self._queries:,} of them queries"
        count = "1 operation" if len(self) == 1 else f"{len(self):,} operations"
        return f"<lpma.Batch: {count}, {asked}>" if self._queries else f"<lpma.Batch: {count}>"

    @property
    def num_queries(self) -> int:
        """How many of the operations are queries."""
        return self._queries

    def _add(
        self, kind: Kind, src: Name, dst: Name, weight: float, time: Any,
        called: tuple[str, str] = ("u", "v"),
    ) -> None:  # fmt: skip
        """Add an operation. called: the arguments that src and dst came as, for errors."""
        source, target = _vertex(src, called[0]), _vertex(dst, called[1])
        time = time if time is None else numbered(time, "time")  # refused before anything is added
        self._kind.append(kind)
        self._src.append(source)
        self._dst.append(target)
        self._has_text |= type(source) is str or type(target) is str
        self._weight.append(weight)
        self._time.append(time)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise no_attribute("lpma.Batch", name, {"append": "insert"})

    def insert(self, u: Name, v: Name, w: float = 1.0, time: Any = None) -> None:
        """Insert edge (u, v) with weight w, as `Graph.insert` does."""
        self._add(Kind.INSERT, u, v, one_weight(w), time)

    def set(self, u: Name, v: Name, w: float = 1.0, time: Any = None) -> None:
        """Set edge (u, v) to weight w, as `Graph.set` does."""
        self._add(Kind.SET, u, v, one_weight(w), time)

    def delete(self, u: Name, v: Name, time: Any = None) -> None:
        """Delete edge (u, v) whatever its weight; an absent one is left absent."""
        self._add(Kind.DELETE, u, v, 0.0, time)

    def add_vertex(self, v: Name, time: Any = None) -> None:
        """Make v a vertex even if it has no edge."""
        self._add(Kind.ADD_VERTEX, v, 0, 0.0, time, ("v", ""))

    def remove_vertex(self, v: Name, time: Any = None) -> None:
        """Remove v, and every edge from or to it that is there at this place of the batch."""
        self._add(Kind.REMOVE_VERTEX, v, 0, 0.0, time, ("v", ""))

    def expire(self, before: Any) -> None:
        """Remove every edge whose time, at this place of the batch, is less than `before`, a time
        as `Graph.insert` takes it. Vertices that were added stay. See `Graph.expire`."""
        self._add(Kind.EXPIRE, 0, 0, 0.0, one_time(before, "before"))

    def _query(
        self, kind: Kind, src: Name, dst: Name = 0, called: tuple[str, str] = ("u", "v")
    ) -> int:
        self._add(kind, src, dst, 0.0, None, called)
        self._queries += 1
        return self._queries - 1

    def edge(self, u: Name, v: Name) -> int:
        """Ask for edge (u, v); answered by `Edges` of one row."""
        return self._query(Kind.EDGE, u, v)

    def successors(self, u: Name) -> int:
        """Ask for the targets of u's edges; answered by `Neighbors` of one vertex."""
        return self._query(Kind.SUCCESSORS, u)

    def predecessors(self, v: Name) -> int:
        """Ask for the sources of v's edges; answered by `Neighbors` of one vertex. The graph must
        have been made with predecessors=True, or be undirected."""
        return self._query(Kind.PREDECESSORS, v, called=("v", ""))

    def hops(self, u: Name, k: int) -> int:
        """Ask for the vertices within 1 … k steps of u; answered by `Neighbors` of one vertex. k
        goes from 1 to 255."""
        return self._query(Kind.HOPS, u, _integer(k, "k", "an integer"), ("u", "k"))

    def degree(self, u: Name) -> int:
        """Ask for the number of u's successors; answered by int64[1]."""
        return self._query(Kind.DEGREE, u)

    def vertex(self, v: Name) -> int:
        """Ask whether v is a vertex; answered by bool[1]."""
        return self._query(Kind.VERTEX, v, called=("v", ""))

    @staticmethod
    def from_columns(
        kind: Any,
        src: Any,
        dst: Any,
        weight: Any = None,
        time: Any = None,
        *,
        names: bool = False,
    ) -> Columns:
        """A batch from whole columns of n rows: the fast way. They are validated here, and copied
        only where their types differ from these:

        kind    uint8[n] of `Kind`, or one for every row
        src     uint32[n]; if the operation is on one vertex, that vertex
        dst     uint32[n]; for HOPS the number of steps, 1 to 255
        weight  float32[n] or float64[n], at most 1e30 in size, or one number for every row; None:
                1.0 for every row
        time    int64[n] or datetime64[n], or one for every row; None: the moment when the batch
                is applied

        Whoever changes these arrays before `apply` changes the batch, which is validated again
        there. names: src and dst are names, as `Graph.insert` takes them, for a graph made with
        names=True; all is copied then. Columns on a CUDA device stay there if all rows insert, set
        or delete edges by number. Raises BatchError.

        >>> columns = lpma.Batch.from_columns([lpma.Kind.INSERT, lpma.Kind.DEGREE], [1, 1], [2, 0])
        >>> lpma.Graph(device="cpu").apply(columns)[0]
        array([1])
        """
        if truth(names, "names"):
            from .named import named_columns

            named = named_columns(kind, src, dst, weight, time)
            given = named.kind, named.weight, named.time
            kind, weight, time = map(_copied, given)
            return named.replace(kind=kind, weight=weight, time=time, checked=False)
        return Columns.validated(kind, src, dst, weight, time).replace(checked=False)

    def columns(self, names: bool = False) -> Columns:
        """This batch as columns, validated here, and again when they are applied. If some
        operations have a time of their own, the others are stamped now; if none has, the batch is
        stamped when it is applied. names: vertices are named, for a graph with names. Raises
        BatchError."""
        names, time = truth(names, "names"), None
        if any(t is not None for t in self._time):
            now = now_ms()
            time = [now if t is None else t for t in self._time]
        kind = np.array(self._kind, np.uint8)
        if self._has_text and not names:
            raise BatchError("text names vertices only in a graph made with lpma.Graph(names=True)")
        given = kind, self._src, self._dst, self._weight, time
        return self.from_columns(*given, names=names)


def _copied(column: Any) -> Any:
    return None if column is None else column.copy()


def _vertex(value: Any, name: str) -> Name:
    """An integer, as by `_integer`, or text."""
    return str(value) if isinstance(value, str) else _integer(value, name, "an integer or text")


def _integer(value: Any, name: str, expected: str) -> int:
    """A whole number of any type, as Python's own; a bool does not count as one."""
    try:
        if is_bool(value):
            raise TypeError("a bool")
        if isinstance(value, float | np.floating) and float(value).is_integer():
            value = int(value) if abs(float(value)) <= MAX_WHOLE else value
        return operator.index(value)
    except TypeError:
        text = f"{name}: expected {expected}, got {shown(value)}"
        if is_bool(value):
            text += ", a boolean"
        elif hasattr(value, "__len__"):
            text += ": a Batch takes one operation at a time, Batch.from_columns takes arrays"
        raise BatchError(text) from None


def pinned_batch(n: int) -> Columns:
    """A batch of n operations to be filled in place: kind is INSERT, weight 1, src, dst and time 0.

    It lies in one piece of memory, of the kind that a device copies from fastest (plain memory if
    there is no device). It may be filled and applied again and again, and is validated each time.
    Raises BatchError if n is no integer from 0 on.

    >>> batch = lpma.pinned_batch(2)
    >>> batch.src[:], batch.dst[:], batch.time[:] = [1, 2], [2, 3], 7
    >>> g = lpma.Graph(device="cpu")
    >>> answers = g.apply(batch)
    >>> g.num_edges
    2
    """
    n = integer(n, "n", 0, MAX_OPERATIONS)
    widths = {"src": 4, "dst": 4, "kind": 1, "weight": 4, "time": 8}
    starts = np.cumsum([0, *(-(-n * width // 64) * 64 for width in widths.values())]).tolist()
    block = pinned_block(starts[-1])
    if block is None:
        memory = np.empty(starts[-1], np.uint8)
    else:
        memory = np.frombuffer(block.memory, np.uint8)
    memory[:] = 0
    column = {
        name: memory[start : start + n * width]
        for (name, width), start in zip(widths.items(), starts, strict=False)
    }
    weight = column["weight"].view(np.float32)
    weight[:] = 1
    src, dst = column["src"].view(np.uint32), column["dst"].view(np.uint32)
    time = column["time"].view(np.int64)
    if block is not None:
        block.keep(column["kind"], src, dst, weight, time)
    return Columns(column["kind"], src, dst, weight, time, block=block)
