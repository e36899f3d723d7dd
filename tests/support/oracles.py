"""Oracles: slow, and simple enough to be read and believed.

`ModelGraph` is a dictionary and a loop over the operations, with the public face of `lpma.Graph`.
It follows Definition 2 and Definition 7 of the paper word for word and knows nothing of slots,
folds or versions; a sum is rounded to the graph's dtype after each operation. `agree` holds a graph
against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

import lpma
from lpma import Batch, Changes, Columns, Edges, Kind, Neighbors, Snapshot
from lpma.arrays import array_module, on_device
from lpma.batch.columns import QUERIES

Array = npt.NDArray[Any]
Key = tuple[int, int]
HISTORY = 64  # versions whose edges the model remembers


class ModelGraph:
    """A directed or undirected graph as {(u, v): (weight, time)} and a set of added vertices.

    An undirected edge is kept under (smaller end, larger end)."""

    def __init__(
        self,
        directed: bool = True,
        predecessors: bool = False,
        weight: str | None = "float32",
        times: bool = True,
    ) -> None:
        self.directed = directed
        self.has_predecessors = predecessors or not directed
        self.weight_dtype = None if weight is None else np.dtype(weight)
        self.has_times = times
        self.state: dict[Key, tuple[float, int]] = {}
        self.markers: set[int] = set()
        self.version = 0
        self.time = 0
        self.history: dict[int, frozenset[Key]] = {0: frozenset()}
        self._unchanged = lpma.Unchanged()
        self.expired = 0

    # Updates ---------------------------------------------------------------------------------

    def insert(self, src: Any, dst: Any, weight: Any = 1.0, time: Any = 0) -> None:
        self._update(Kind.INSERT, src, dst, weight, time)

    def set(self, src: Any, dst: Any, weight: Any = 1.0, time: Any = 0) -> None:
        self._update(Kind.SET, src, dst, weight, time)

    def delete(self, src: Any, dst: Any, time: Any = 0) -> None:
        self._update(Kind.DELETE, src, dst, 0.0, time)

    def add_vertices(self, v: Any, time: Any = 0) -> None:
        self._update(Kind.ADD_VERTEX, v, 0, 0.0, time)

    def remove_vertices(self, v: Any, time: Any = 0) -> None:
        self._update(Kind.REMOVE_VERTEX, v, 0, 0.0, time)

    def expire(self, before: Any) -> None:
        self._update(Kind.EXPIRE, 0, 0, 0.0, before)

    def _update(self, kind: Kind, src: Any, dst: Any, weight: Any, time: Any) -> None:
        columns = np.broadcast_arrays(*map(np.atleast_1d, (src, dst, weight, time)))
        self.apply(Batch.from_columns(np.uint8(kind), *(_exactly(column) for column in columns)))

    def apply(self, batch: Batch | Columns) -> list[Any]:
        """One operation at a time; the answers of the queries in turn."""
        rows = batch.columns() if isinstance(batch, Batch) else batch
        n = len(rows)
        weight = np.ones(n) if rows.weight is None else rows.weight
        time = np.zeros(n, np.int64) if rows.time is None else rows.time
        answers = []
        columns = (rows.kind, rows.src, rows.dst, weight, time)
        for kind, u, v, w, t in zip(*(column.tolist() for column in columns), strict=True):
            if kind in QUERIES:
                answers.append(self._query(kind, u, v))
            else:
                self._operate(kind, u, v, w, t)
                self.time = self.time if kind == Kind.EXPIRE else t
        self.version += 1
        self.history[self.version] = frozenset(self.state)
        self.history.pop(self.version - HISTORY, None)
        return answers

    def _operate(self, kind: int, u: int, v: int, weight: float, time: int) -> None:
        if kind == Kind.INSERT:
            self._append(self._key(u, v), weight, time)
        elif kind == Kind.SET:
            self._set(self._key(u, v), weight, time)
        elif kind == Kind.DELETE:
            self._unchanged.delete_absent += self._key(u, v) not in self.state
            self.state.pop(self._key(u, v), None)
        elif kind == Kind.ADD_VERTEX:
            self.markers.add(u)
        elif kind == Kind.EXPIRE:
            before = len(self.state)
            self.state = {key: edge for key, edge in self.state.items() if edge[1] >= time}
            self.expired += before - len(self.state)
        else:
            self.markers.discard(u)
            self.state = {key: edge for key, edge in self.state.items() if u not in key}

    def _append(self, key: Key, given: float, time: int) -> None:
        """Definition 2."""
        if self.weight_dtype is None:
            if given > 0:
                self.state[key] = (1.0, time)
            elif given == 0 or self.state.pop(key, None) is None:
                self._unchanged.not_positive += 1
            return
        d = self._rounded(given)
        self._unchanged.underflow += given != 0 and d == 0
        if key not in self.state:
            if d > 0:
                self.state[key] = (d, time)
            else:
                self._unchanged.not_positive += given <= 0 and not (given < 0 and d == 0)
            return
        before = self.state[key][0]
        after = self._rounded(before + d)
        self._unchanged.rounded_off += d != 0 and after == before
        if after < 0:
            del self.state[key]
        else:
            self.state[key] = (after, time)

    def _set(self, key: Key, given: float, time: int) -> None:
        """Exactly this weight and time, whatever was there; 0 or less: no edge."""
        was_there = self.state.pop(key, None) is not None
        weight = given if self.weight_dtype is None else self._rounded(given)
        if weight > 0:
            self.state[key] = (1.0 if self.weight_dtype is None else weight, time)
        elif not was_there and weight == 0 and given != 0:
            self._unchanged.underflow += 1
        elif not was_there:
            self._unchanged.not_positive += 1

    def _rounded(self, weight: float) -> float:
        assert self.weight_dtype is not None
        return float(self.weight_dtype.type(weight))

    def _key(self, u: int, v: int) -> Key:
        return (u, v) if self.directed or u <= v else (v, u)

    # Queries ---------------------------------------------------------------------------------

    def _query(self, kind: int, u: int, v: int) -> Any:
        match kind:
            case Kind.EDGE:
                return self.edges(u, v)
            case Kind.SUCCESSORS:
                return self.successors(u)
            case Kind.PREDECESSORS:
                return self.predecessors(u)
            case Kind.HOPS:
                return self.hops(u, v)
            case Kind.DEGREE:
                return self.degree(u)
            case _:
                return self.has_vertices(u)

    def arcs(self) -> Iterator[tuple[int, int, float, int]]:
        """Every edge in each direction in which it can be walked."""
        for (u, v), (weight, time) in self.state.items():
            yield u, v, weight, time
            if not self.directed and u != v:
                yield v, u, weight, time

    def edges(self, src: Any, dst: Any) -> Edges:
        pairs = zip(_integers(src), _integers(dst), strict=True)
        found = [self.state.get(self._key(u, v)) for u, v in pairs]
        edges = [(0.0, 0) if edge is None else edge for edge in found]
        return Edges(np.array([edge is not None for edge in found], bool), *self._columns(edges))

    def _columns(self, edges: Iterable[tuple[float, int]]) -> tuple[Array | None, Array | None]:
        pairs = list(edges)
        weight = np.array([w for w, _ in pairs], self.weight_dtype or np.float32)
        time = np.array([t for _, t in pairs], np.int64)
        return (None if self.weight_dtype is None else weight), (time if self.has_times else None)

    def successors(self, u: Any) -> Neighbors:
        return self._neighbors([[(v, w, t) for a, v, w, t in self.arcs() if a == x] for x in
                                _integers(u)])  # fmt: skip

    def predecessors(self, v: Any) -> Neighbors:
        return self._neighbors([[(u, w, t) for u, b, w, t in self.arcs() if b == x] for x in
                                _integers(v)])  # fmt: skip

    def _neighbors(self, rows: list[list[tuple[int, float, int]]]) -> Neighbors:
        flat = [entry for row in rows for entry in sorted(row)]
        weight, time = self._columns((w, t) for _, w, t in flat)
        ids = np.array([v for v, _, _ in flat], np.uint32)
        return Neighbors(_indptr(len(row) for row in rows), ids, weight, time)

    def hops(self, u: Any, k: int) -> Neighbors:
        rows = []
        for start in _integers(u):
            reached: set[int] = set()
            frontier = {start}
            for _ in range(k):
                frontier = {b for a, b, _, _ in self.arcs() if a in frontier} - reached
                reached |= frontier
                if not frontier:
                    break
            rows.append(sorted(reached))
        ids = np.array([v for row in rows for v in row], np.uint32)
        return Neighbors(_indptr(len(row) for row in rows), ids)

    def degree(self, u: Any) -> Array:
        return np.array([sum(a == x for a, _, _, _ in self.arcs()) for x in _integers(u)], np.int64)

    def has_vertices(self, v: Any) -> Array:
        present = self.vertices()
        return np.array([x in present for x in _integers(v)], bool)

    def vertices(self) -> AbstractSet[int]:
        return self.markers | {end for key in self.state for end in key}

    @property
    def unchanged(self) -> lpma.Unchanged:
        return replace(self._unchanged)

    @property
    def num_edges(self) -> int:
        return len(self.state)

    @property
    def num_rows(self) -> int:
        return max(self.vertices(), default=-1) + 1

    @property
    def num_vertices(self) -> int:
        return len(self.vertices())

    def snapshot(self, compact: bool = False) -> Snapshot:
        ids = sorted(self.vertices()) if compact else range(self.num_rows)
        row = {v: i for i, v in enumerate(ids)}
        arcs = sorted((row[u], row[v], w, t) for u, v, w, t in self.arcs())
        weights, times = self._columns((w, t) for _, _, w, t in arcs)
        degree = (
            np.bincount([u for u, _, _, _ in arcs], minlength=len(row)) if arcs else [0] * len(row)
        )
        return Snapshot(
            indptr=_indptr(degree),
            indices=np.array([v for _, v, _, _ in arcs], np.uint32),
            weights=weights,
            times=times,
            num_edges=self.num_edges,
            version=self.version,
            time=self.time,
            directed=self.directed,
            ids=np.array(ids, np.uint32) if compact else None,
            added=None if compact else np.array(sorted(self.markers), np.uint32),
        )

    def changes(self, since: int) -> Changes | None:
        if since not in self.history:
            return None
        before, now = self.history[since], self.history[self.version]
        rows = sorted((*key, key in now) for key in before ^ now)
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        dtypes = (np.uint32, np.uint32, bool)
        return Changes(*(np.array(c, d) for c, d in zip(columns, dtypes, strict=True)))


def _exactly(column: Array) -> Array:
    """An empty list is an array of floats to NumPy."""
    return column if column.size else np.empty(0, np.int64)


def _integers(values: Any) -> list[int]:
    return [int(value) for value in np.atleast_1d(values)]


def _indptr(lengths: Iterable[int]) -> Array:
    return np.cumsum([0, *lengths], dtype=np.int64)


# Comparison ----------------------------------------------------------------------------------


def host(array: Any) -> Any:
    """A device array as NumPy's, after whatever any stream has under way; else as it is."""
    if not on_device(array):
        return array
    with array.device:
        array_module(array).cuda.runtime.deviceSynchronize()
        return array.get()


def assert_same(got: Any, expected: Any, what: str = "") -> None:
    """Equal values, dtypes and shapes, through dataclasses and sequences."""
    got, expected = host(got), host(expected)
    if isinstance(expected, np.ndarray):
        assert isinstance(got, np.ndarray), f"{what}: {type(got)} instead of an array"
        assert got.dtype == expected.dtype, f"{what}: {got.dtype} instead of {expected.dtype}"
        # NumPy's takes a hundred times as long; it says what differs, and lets NaN equal NaN.
        if got.shape != expected.shape or not (got == expected).all():
            np.testing.assert_array_equal(got, expected, err_msg=what, strict=True)
    elif is_dataclass(expected):
        assert type(got) is type(expected), f"{what}: {type(got)} instead of {type(expected)}"
        for field in fields(expected):
            if field.compare and field.name != "views":
                name = f"{what}.{field.name}"
                assert_same(getattr(got, field.name), getattr(expected, field.name), name)
    elif isinstance(expected, list | tuple):
        assert len(got) == len(expected), f"{what}: {len(got)} instead of {len(expected)}"
        for i, one in enumerate(expected):
            assert_same(got[i], one, f"{what}[{i}]")
    else:
        assert got == expected, f"{what}: {got!r} instead of {expected!r}"


def agree(g: lpma.Graph, model: ModelGraph, dense_below: int = 100_000) -> None:
    """The graph's invariants hold and all that it shows is the model's."""
    g.check()
    for name in ("num_edges", "num_rows", "num_vertices", "version", "time"):
        assert_same(getattr(g, name), getattr(model, name), name)
    assert_same(g.snapshot(compact=True), model.snapshot(compact=True), "snapshot(compact)")
    if model.num_rows < dense_below:
        assert_same(g.snapshot(), model.snapshot(), "snapshot")
