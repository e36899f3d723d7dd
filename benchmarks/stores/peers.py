"""Other ways to keep a changing set of edges from Python, each at its fastest.

All of them are directed and keep a set: an edge inserted twice is there once. What they carry
besides the edges favours them: scipy a float32 weight per edge, GraphBLAS one value for all of them
("iso"), the others nothing; none keeps times.

    scipy      CSR matrix; a batch is one more CSR matrix, joined by `maximum`
    numpy      one sorted array of keys `src << 32 | dst`; a batch is sorted and merged into it
    networkit  adjacency lists; `addEdges(checkMultiEdge=True)`, deletions one call an edge
    graphblas  SuiteSparse matrix; a batch is one more matrix, joined by `max`
    igraph     edge list with indexes, rebuilt by every change; queried first, to stay a set
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from ..keys import Array, distinct, ends_of, keys_of, ragged_ranges
from .base import Store

Pair = tuple[Array, Array]


class ScipyCSR(Store):
    name = "scipy"

    def load(self, src: Array, dst: Array, n: int) -> None:
        self.shape = (n, n)
        self.matrix = self._csr(self.prepare(src, dst))

    def prepare(self, src: Array, dst: Array) -> Pair:
        return src.astype(np.int32), dst.astype(np.int32)

    def _csr(self, batch: Pair) -> Any:
        ones = np.ones(len(batch[0]), np.float32)
        return sparse.csr_matrix((ones, batch), shape=self.shape)

    def insert(self, batch: Pair) -> None:
        self.matrix = self.matrix.maximum(self._csr(batch))

    def delete(self, batch: Pair) -> None:
        self.matrix = self.matrix - self.matrix.multiply(self._csr(batch))

    def has_edges(self, batch: Pair) -> Array:
        return np.asarray(self.matrix[batch]).ravel() > 0

    def successors(self, u: Array) -> Pair:
        rows = self.matrix[u]
        return rows.indptr, rows.indices

    def to_csr(self) -> Pair:
        return self.matrix.indptr.copy(), self.matrix.indices.copy()


class NumpyMerge(Store):
    name = "numpy"

    def load(self, src: Array, dst: Array, n: int) -> None:
        self.n = n
        self.sorted = distinct(keys_of(src, dst))

    def prepare(self, src: Array, dst: Array) -> Pair:
        return src.astype(np.uint64), dst.astype(np.uint64)

    def _locate(self, batch: Pair) -> tuple[Array, Array, Array]:
        """The batch's keys sorted, without repeats; where each belongs; and whether it is there."""
        keys = distinct(batch[0] << np.uint64(32) | batch[1])
        place = np.searchsorted(self.sorted, keys)
        return keys, place, self._at(place) == keys

    def _at(self, place: Array) -> Array:
        last = max(len(self.sorted) - 1, 0)
        return self.sorted[np.minimum(place, last)]

    def insert(self, batch: Pair) -> None:
        keys, place, found = self._locate(batch)
        self.sorted = np.insert(self.sorted, place[~found], keys[~found])

    def delete(self, batch: Pair) -> None:
        _, place, found = self._locate(batch)
        self.sorted = np.delete(self.sorted, place[found])

    def has_edges(self, batch: Pair) -> Array:
        keys = batch[0] << np.uint64(32) | batch[1]
        found: Array = self._at(np.searchsorted(self.sorted, keys)) == keys
        return found

    def successors(self, u: Array) -> Pair:
        rows = u.astype(np.uint64)
        first = np.searchsorted(self.sorted, rows << np.uint64(32))
        end = np.searchsorted(self.sorted, (rows + np.uint64(1)) << np.uint64(32))
        indptr, place = ragged_ranges(first, end)
        return indptr, self.sorted[place].astype(np.uint32)

    def to_csr(self) -> Pair:
        fences = np.arange(self.n + 1, dtype=np.uint64) << np.uint64(32)
        return np.searchsorted(self.sorted, fences), self.sorted.astype(np.uint32)


class Networkit(Store):
    name = "networkit"

    def load(self, src: Array, dst: Array, n: int) -> None:
        from networkit import Graph, algebraic

        self.adjacency = algebraic.adjacencyMatrix
        self.graph = Graph(n, directed=True)
        self.graph.addEdges(self.prepare(src, dst))

    def prepare(self, src: Array, dst: Array) -> Pair:
        return src.astype(np.uint64), dst.astype(np.uint64)

    def insert(self, batch: Pair) -> None:
        self.graph.addEdges(batch, checkMultiEdge=True)

    def delete(self, batch: Pair) -> None:
        has, remove = self.graph.hasEdge, self.graph.removeEdge
        for u, v in zip(batch[0].tolist(), batch[1].tolist(), strict=True):
            if has(u, v):
                remove(u, v)

    def has_edges(self, batch: Pair) -> Array:
        pairs = zip(batch[0].tolist(), batch[1].tolist(), strict=True)
        has = self.graph.hasEdge
        return np.fromiter((has(u, v) for u, v in pairs), bool, len(batch[0]))

    def successors(self, u: Array) -> Pair:
        rows = [list(self.graph.iterNeighbors(v)) for v in u.tolist()]
        indptr = np.cumsum([0, *map(len, rows)])
        return indptr, np.fromiter((v for row in rows for v in row), np.uint32, indptr[-1])

    def to_csr(self) -> Pair:
        matrix = self.adjacency(self.graph)
        matrix.sort_indices()
        return matrix.indptr, matrix.indices

    def keys(self) -> Array:
        """Through the edge iterator: producing a CSR takes Networkit ten times as long."""
        return _pairs_to_keys(self.graph.iterEdges(), self.graph.numberOfEdges())


class GraphBLAS(Store):
    name = "graphblas"

    def load(self, src: Array, dst: Array, n: int) -> None:
        import graphblas

        self.max, self.type, self.shape = graphblas.binary.max, graphblas.Matrix, (n, n)
        self.matrix = self._matrix(self.prepare(src, dst))

    def prepare(self, src: Array, dst: Array) -> Pair:
        return src.astype(np.uint64), dst.astype(np.uint64)

    def _matrix(self, batch: Pair) -> Any:
        rows, columns = self.shape
        return self.type.from_coo(*batch, np.float32(1), dtype="FP32", nrows=rows, ncols=columns)

    def insert(self, batch: Pair) -> None:
        self.matrix << self.matrix.ewise_add(self._matrix(batch), self.max)
        self.matrix.wait()

    def delete(self, batch: Pair) -> None:
        gone = self._matrix(batch)
        self.matrix(~gone.S, replace=True) << self.matrix
        self.matrix.wait()

    def has_edges(self, batch: Pair) -> Array:
        asked = self._matrix(batch)
        there = self.type(self.matrix.dtype, *self.shape)
        there(asked.S) << self.matrix
        rows, columns, _ = there.to_coo(values=False)
        found: Array = np.isin(keys_of(*batch), keys_of(rows, columns))
        return found

    def successors(self, u: Array) -> Pair:
        rows = self.matrix[u.tolist(), :].new()
        indptr, ids, _ = rows.to_csr()
        return indptr, ids

    def to_csr(self) -> Pair:
        indptr, ids, _ = self.matrix.to_csr()
        return indptr, ids


class Igraph(Store):
    name = "igraph"

    def load(self, src: Array, dst: Array, n: int) -> None:
        import igraph

        self.graph = igraph.Graph(n, directed=True)
        self.graph.add_edges(self.prepare(src, dst))

    def prepare(self, src: Array, dst: Array) -> Array:
        return np.column_stack((src, dst)).astype(np.int64)

    def insert(self, batch: Array) -> None:
        new = batch[~self.has_edges(batch)]
        self.graph.add_edges(self.prepare(*ends_of(distinct(keys_of(*new.T)))))

    def delete(self, batch: Array) -> None:
        places = np.unique(self._places(batch))
        self.graph.delete_edges(places[places >= 0].tolist())

    def _places(self, batch: Array) -> Array:
        return np.array(self.graph.get_eids(batch.tolist(), error=False), np.int64)

    def has_edges(self, batch: Array) -> Array:
        found: Array = self._places(batch) >= 0
        return found

    def successors(self, u: Array) -> Pair:
        rows = [self.graph.successors(v) for v in u.tolist()]
        indptr = np.cumsum([0, *map(len, rows)])
        return indptr, np.fromiter((v for row in rows for v in row), np.uint32, indptr[-1])

    def to_csr(self) -> Pair:
        n, m = self.graph.vcount(), self.graph.ecount()
        pairs = np.fromiter(chain.from_iterable(self.graph.get_edgelist()), np.int32, 2 * m)
        pairs = pairs.reshape(-1, 2)
        ones = np.ones(len(pairs), bool)
        matrix = sparse.csr_matrix((ones, (pairs[:, 0], pairs[:, 1])), shape=(n, n))
        matrix.sort_indices()
        return matrix.indptr, matrix.indices

    def keys(self) -> Array:
        return _pairs_to_keys(self.graph.get_edgelist(), self.graph.ecount())


def _pairs_to_keys(pairs: Iterable[tuple[int, int]], count: int) -> Array:
    ends = np.fromiter(chain.from_iterable(pairs), np.int64, 2 * count)
    return np.sort(keys_of(ends[0::2], ends[1::2]))


_MODULES = {Networkit: "networkit", GraphBLAS: "graphblas", Igraph: "igraph"}
ALL: tuple[type[Store], ...] = (ScipyCSR, NumpyMerge, Networkit, GraphBLAS, Igraph)


def available() -> list[type[Store]]:
    """The peers whose package is installed here."""
    return [peer for peer in ALL if peer not in _MODULES or find_spec(_MODULES[peer])]
