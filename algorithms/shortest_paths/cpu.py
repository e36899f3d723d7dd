"""Shortest paths on the CPU: Dijkstra's algorithm, in one thread, in one compiled call.

Idea: a heap of four children a node, with each vertex's place in it, so that a shorter path moves a
vertex up and none is in it twice. Distances are in the heap beside the vertices, so that a
comparison reads one cache line. Every row is read once.

Delta-stepping reads rows again whenever a distance in them falls. A prototype in one thread took
1.1 to 4 times as long on RMAT graphs and webs, and 0.55 to 0.67 times on roads; several threads
were not tried. The kernels release the GIL: sources can share the cores.

Requires indptr int64[n+1], indices uint32[m] and weights float32[m] or float64[m], C-contiguous,
the weights finite and not negative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lpma.cpu.jit import compiled, inlined

from ..arrays import Array

CHILDREN_BITS = 2
NOT_YET = -1


class Lengths(NamedTuple):
    """The weights of a graph's edges, finite and not negative."""

    weights: Array  # float32[m] or float64[m]
    mean: float  # of the weights, on a device; else nan


def first_refused(weights: Array) -> int:
    """Where the first weight stands that is negative, infinite or not a number; −1 for none."""
    good = (weights >= 0) & (weights < np.inf)
    return -1 if good.all() else int(good.argmin())


@compiled
def distances(indptr: Array, indices: Array, weights: Array, source: int) -> Array:
    """float64[n]: the distance of each vertex from `source`, infinity where no path leads."""
    n = len(indptr) - 1
    found = np.full(n, np.inf)
    place = np.full(n, NOT_YET, np.int32)  # of each vertex in the heap
    vertices = np.empty(n, np.uint32)  # the heap, and the distances of its vertices
    keys = np.empty(n, np.float64)
    found[source] = keys[0] = 0.0
    vertices[0], size = source, 1
    while size > 0:
        u, distance = vertices[0], keys[0]
        size -= 1
        _sink(vertices, keys, place, size)
        for e in range(indptr[u], indptr[u + np.uint32(1)]):
            v = indices[e]
            length = distance + weights[e]
            if length < found[v]:  # never of a vertex that has left the heap
                found[v] = length
                if place[v] == NOT_YET:
                    place[v] = size
                    size += 1
                _rise(vertices, keys, place, place[v], v, length)
    return found


@inlined
def _sink(vertices: Array, keys: Array, place: Array, size: int) -> None:
    """Replace the first entry by the one after the heap's end, `size`, and let that sink."""
    vertex, key = vertices[size], keys[size]
    at = 0
    while True:
        first = (at << CHILDREN_BITS) + 1
        if first >= size:
            break
        least, lowest = first, keys[first]
        for child in range(first + 1, min(first + (1 << CHILDREN_BITS), size)):
            if keys[child] < lowest:
                least, lowest = child, keys[child]
        if lowest >= key:
            break
        keys[at], vertices[at] = lowest, vertices[least]
        place[vertices[at]] = at
        at = least
    keys[at], vertices[at] = key, vertex
    place[vertex] = at


@inlined
def _rise(vertices: Array, keys: Array, place: Array, at: int, vertex: int, key: float) -> None:
    """Let a vertex rise from its place to that of its distance."""
    while at > 0:
        parent = (at - 1) >> CHILDREN_BITS
        if keys[parent] <= key:
            break
        keys[at], vertices[at] = keys[parent], vertices[parent]
        place[vertices[at]] = at
        at = parent
    keys[at], vertices[at] = key, vertex
    place[vertex] = at


@compiled
def predecessors(indptr: Array, indices: Array, weights: Array, source: int, found: Array) -> Array:
    """int32[n]: the vertex before each on a shortest path with the fewest edges, the smallest of
    several; −1 for the source and unreached vertices. found: the distances.

    A breadth-first search along the edges of shortest paths: edges of weight 0 may lead in circles,
    but levels rise."""
    n = len(indptr) - 1
    before = np.full(n, -1, np.int32)
    level = np.full(n, -1, np.int32)
    queue = np.empty(n, np.uint32)
    queue[0], level[source], size = source, 0, 1
    at = 0
    while at < size:
        u = queue[at]
        at += 1
        for e in range(indptr[u], indptr[u + np.uint32(1)]):
            v = indices[e]
            length = found[u] + weights[e]
            if length != found[v] or length == np.inf:
                continue
            if level[v] < 0:
                level[v] = level[u] + 1
                before[v] = u
                queue[size] = v
                size += 1
            elif level[v] == level[u] + 1 and u < before[v]:
                before[v] = u
    return before
