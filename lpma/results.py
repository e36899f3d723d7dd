"""What queries return: columns of answers, with one row or one range of rows per query; and what a
batch changed.

The arrays lie where the graph does: NumPy's on the CPU, CuPy's on a CUDA device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .arguments.renamed import no_attribute
from .arrays import Array

_OLD = {"weight": "weights", "time": "times"}


@dataclass(frozen=True)
class Edges:
    """The answer to q edge queries.

    found    bool[q]: whether the edge is there
    weights  float32[q] or float64[q], 0 where not found; None where the graph has no weights
    times    int64[q]: when the edge was last changed, 0 where not found; None where the graph has
            no times

    >>> g = lpma.Graph(device="cpu")
    >>> g.insert(1, 2, 0.5, time=7)
    >>> g.edges([1, 2], [2, 1])
    Edges(found=array([ True, False]), weights=array([0.5, 0. ], dtype=float32),
          times=array([7, 0]))
    """

    found: Array
    weights: Array | None
    times: Array | None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise no_attribute("lpma.Edges", name, _OLD)

    def rows(self, start: int, stop: int) -> Edges:
        """The answers to queries start … stop - 1, sharing memory.

        >>> g = lpma.Graph(device="cpu", weight_dtype=None, times=False)
        >>> g.insert(1, 2)
        >>> g.edges([1, 2], [2, 1]).rows(1, 2)
        Edges(found=array([False]), weights=None, times=None)
        """
        return self.with_columns(lambda column: column[start:stop])

    def with_columns(self, change: Callable[[Array], Any]) -> Edges:
        """The same with each column that there is changed."""
        weights, times = (None if c is None else change(c) for c in (self.weights, self.times))
        return Edges(change(self.found), weights, times)


class Edge(NamedTuple):
    """One edge, as plain numbers: what `Graph.edge` returns.

    weight  None where the graph has no weights
    time    when the edge was last changed; None where the graph has no times

    >>> g = lpma.Graph(device="cpu")
    >>> g.insert(1, 2, 0.5, time=7)
    >>> g.edge(1, 2)
    Edge(weight=0.5, time=7)
    """

    weight: float | None
    time: int | None


@dataclass(frozen=True)
class Neighbors:
    """The answer to q neighbourhood queries: that to query i is rows indptr[i] … indptr[i+1] - 1
    of the other columns, sorted by id.

    indptr   int64[q+1]
    ids      uint32: the neighbours
    weights  float32 or float64: of the edge to each; None for hops and without weights
    times    int64: when that edge was last changed; None for hops and without times

    >>> g = lpma.Graph(device="cpu", weight_dtype=None, times=False)
    >>> g.insert([1, 1, 2], [3, 2, 3])
    >>> g.successors([1, 2])
    Neighbors(indptr=array([0, 2, 3]), ids=array([2, 3, 3], dtype=uint32), weights=None,
              times=None)
    """

    indptr: Array
    ids: Array
    weights: Array | None = None
    times: Array | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise no_attribute("lpma.Neighbors", name, _OLD)

    def rows(self, start: int, stop: int, indptr: Array | None = None) -> Neighbors:
        """Rows start … stop - 1 of the columns, sharing memory. indptr: of the queries that have
        them; None: of one.

        >>> g = lpma.Graph(device="cpu", weight_dtype=None, times=False)
        >>> g.insert([1, 1, 1], [3, 2, 5])
        >>> g.successors(1).rows(1, 3)
        Neighbors(indptr=array([0, 2]), ids=array([3, 5], dtype=uint32), weights=None, times=None)
        """
        if indptr is None:
            indptr = np.array([0, len(self.ids[start:stop])], np.int64)
        weights, times = (None if c is None else c[start:stop] for c in (self.weights, self.times))
        return Neighbors(indptr, self.ids[start:stop], weights, times)

    def with_columns(self, change: Callable[[Array], Any]) -> Neighbors:
        """The same with each column that there is changed, `indptr` too."""
        weights, times = (None if c is None else change(c) for c in (self.weights, self.times))
        return Neighbors(change(self.indptr), change(self.ids), weights, times)


@dataclass(frozen=True)
class Changes:
    """The net edges inserted and deleted between two versions, sorted by (src, dst).

    src, dst  uint32[m], NumPy's on every device
    inserted  bool[m]: True if the edge was inserted, False if it was deleted

    >>> g = lpma.Graph(device="cpu")
    >>> g.insert([1, 2], [2, 3])
    >>> g.delete(1, 2)
    >>> g.changes(since=1)
    Changes(src=array([1], dtype=uint32), dst=array([2], dtype=uint32), inserted=array([False]))
    """

    src: Array
    dst: Array
    inserted: Array


@dataclass(frozen=True)
class TouchedEdges:
    """The edges that the batches after a version inserted or deleted, and which of them are there
    now. What `Graph.touched` returns.

    keys          uint64[m]: src << 32 | dst, perhaps repeated; a vertex by itself has dst 2^32 - 1
    there         bool[m]: whether an edge goes from src to dst now, or from dst to src
    version       the version that `there` is of
    num_rows  rows of a snapshot of that version
    """

    keys: Array
    there: Array
    version: int
    num_rows: int


@dataclass(frozen=True)
class NetChanges:
    """What the batch that led to `version` changed, on the host: first the vertices that were
    removed, then all else by rising (src, dst). An undirected edge is listed once, src <= dst.

    change   uint8[n]: each a `Change`
    src      uint32[n]: where the edge begins; the vertex
    dst      uint32[n]: where it ends; of a vertex, this vertex again
    weights  float32[n] or float64[n], that edges have now, 0 elsewhere; None: the graph has none
    times    int64[n]: likewise
    version  of the graph after the batch
    time     of the last update applied to it: `Graph.time`
    num_edges  after the batch
    absent   a vertex without an edge to itself

    >>> g, watch = lpma.Graph(device="cpu"), lpma.Watch()
    >>> g.insert([1, 2], [2, 3], time=5)
    >>> batch = lpma.Batch()
    >>> batch.delete(1, 2, time=6)
    >>> batch.insert(2, 3, time=7)
    >>> _ = g.apply(batch, watch)
    >>> found = watch.changes
    >>> found.change.tolist(), found.src.tolist(), found.weights.tolist(), found.times.tolist()
    ([1, 4], [1, 2], [0.0, 2.0], [0, 7])
    """

    change: Array
    src: Array
    dst: Array
    weights: Array | None
    times: Array | None
    version: int
    time: int
    num_edges: int
    absent: int

    def __len__(self) -> int:
        return len(self.change)
