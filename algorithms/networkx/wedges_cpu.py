"""Squares, and triangles by the directions of their edges, on the CPU.

Idea: the paths of two edges from a node, its wedges, are walked once, and counted by where they
end. A node at which c wedges end is the opposite corner of c(c − 1)/2 squares; an end that is a
neighbour closes triangles. O(Σ degree²), in threads.

Requires the simple undirected view: indptr int64[n+1], indices uint32[m], rows sorted, no loops.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.search import first_not_below

from ..arrays import Array


@compiled
def squares(first: int, last: int, indptr: Array, indices: Array) -> tuple[Array, Array]:
    """int64[last - first] each: the squares at each node, and as many as there could be, as Zhang
    et al. count them ("Clustering coefficient and community structure of bipartite networks",
    Physica A 387, 2008): for each pair of neighbours, the other nodes that either has."""
    found = np.zeros(last - first, np.int64)
    possible = np.zeros(last - first, np.int64)
    wedges = np.zeros(len(indptr) - 1, np.int64)  # that end at each node; 0 between the nodes
    for v in range(first, last):
        degree = indptr[v + 1] - indptr[v]
        ends = 0
        for i in range(indptr[v], indptr[v + 1]):
            u = np.int64(indices[i])
            ends += indptr[u + 1] - indptr[u]
            for j in range(indptr[u], indptr[u + 1]):
                wedges[indices[j]] += 1
        wedges[v] = 0
        closed = 0
        for i in range(indptr[v], indptr[v + 1]):
            closed += wedges[indices[i]]
        count = 0
        for i in range(indptr[v], indptr[v + 1]):
            u = np.int64(indices[i])
            for j in range(indptr[u], indptr[u + 1]):
                c = wedges[indices[j]]
                count += c * (c - 1) // 2
                wedges[indices[j]] = 0
        found[v - first] = count
        possible[v - first] = ends * (degree - 1) - degree * (degree - 1) - closed - count
    return found, possible


@compiled
def directions(
    first: int, last: int, indptr: Array, indices: Array, out_indptr: Array, out: Array
) -> Array:
    """For each entry v of the rows u = first … last - 1 of the simple view, in how many directions
    there is an edge between u and v: 1 or 2. out: the rows of the directed graph, sorted."""
    found = np.empty(indptr[last] - indptr[first], np.int64)
    for u in range(first, last):
        for i in range(indptr[u], indptr[u + 1]):
            v = np.int64(indices[i])
            there = _holds(out, out_indptr[u], out_indptr[u + 1], v)
            back = _holds(out, out_indptr[v], out_indptr[v + 1], u)
            found[i - indptr[first]] = there + back
    return found


@compiled
def _holds(row: Array, low: int, high: int, wanted: int) -> int:
    at = first_not_below(row, low, high, wanted)
    return 1 if at < high and row[at] == wanted else 0


@compiled
def triangles(first: int, last: int, indptr: Array, indices: Array, directed: Array) -> Array:
    """int64[last - first]: the triangles at each node, each as often as its edges' `directed`
    multiply to, and both ways round."""
    found = np.zeros(last - first, np.int64)
    to = np.zeros(len(indptr) - 1, np.int64)  # of the edge to each neighbour; 0 between the nodes
    for v in range(first, last):
        for i in range(indptr[v], indptr[v + 1]):
            to[indices[i]] = directed[i]
        count = 0
        for i in range(indptr[v], indptr[v + 1]):
            u = np.int64(indices[i])
            for j in range(indptr[u], indptr[u + 1]):
                count += directed[i] * directed[j] * to[indices[j]]
        for i in range(indptr[v], indptr[v + 1]):
            to[indices[i]] = 0
        found[v - first] = count
    return found
