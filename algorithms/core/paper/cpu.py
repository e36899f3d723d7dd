"""Core numbers on the CPU by the programs that the k-core papers compare.

`bz`: Batagelj and Zaversnik, "An O(m) algorithm for cores decomposition of networks", 2003. Peels a
vertex of least remaining degree, its core number, again and again. Vertices stand in an array
sorted by remaining degree, with the start of every degree's run. A neighbour that loses a degree
changes places with the first of its run, and the run's start moves past it: O(n + m) in all, in one
thread.
`park`: Dasari, Ranjan and Zubair, "ParK: an efficient algorithm for k-core decomposition on
multicore processors", IEEE BigData 2014. At every level k a scan of all vertices finds those of
degree k. Threads share them; the vertices that fall to k form the next sub-level.
`pkc`: Kabir and Madduri, "Parallel k-core decomposition on multicore platforms", IPDPSW 2017. Each
thread scans its part of the vertices, and peels those of degree k and those that it makes fall to
k, without sub-levels. The list of vertices is compacted when few are left.
`h_index`: Montresor, De Pellegrini and Miorandi, "Distributed k-core decomposition", PODC 2011
(`core.cpu.settle`).

Threads of `park` and `pkc` take back an atomic decrement that went below the level, so that a
peeled vertex ends at its core number.

Each takes indptr int64[n+1] and indices uint32[m] of a simple undirected view, and returns
int32[n].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lpma.cpu.atomics import fetch_add
from lpma.cpu.jit import compiled
from lpma.cpu.threads import cuts, run_all

from ...arrays import Array
from ..cpu import settle

PIECE = 1 << 14  # vertices to scan, or to peel, that are worth a hand-over
FEW = 50  # pkc compacts its vertices when fewer than one in FEW is left


def park(indptr: Array, indices: Array) -> Array:
    """Core numbers by ParK."""
    n = len(indptr) - 1
    degree = np.diff(indptr).astype(np.int32)
    vertices = np.arange(n, dtype=np.uint32)
    peeled, level = 0, np.int32(0)
    while peeled < n:
        frontier = _joined(_collected(_of_degree, n, n, vertices, degree, level))
        while len(frontier):
            peeled += len(frontier)
            graph = (indptr, indices, degree, level)
            frontier = _joined(_collected(_peel_once, len(frontier), n, frontier, *graph))
        level += np.int32(1)
    return degree


def pkc(indptr: Array, indices: Array) -> Array:
    """Core numbers by PKC."""
    n = len(indptr) - 1
    degree = np.diff(indptr).astype(np.int32)
    vertices = np.arange(n, dtype=np.uint32)
    peeled, level = 0, np.int32(0)
    while peeled < n:
        own = _collected(_of_degree, len(vertices), n, vertices, degree, level)
        calls = [(room, number, indptr, indices, degree, level) for room, number in own]
        peeled += sum(run_all(_peel_all, calls))
        if n - peeled < len(vertices) // FEW:
            vertices = vertices[degree[vertices] > level]
        level += np.int32(1)
    return degree


def _collected(kernel: Any, items: int, n: int, *arguments: Any) -> list[tuple[Array, int]]:
    """Call kernel(first, last, *arguments, room) over pieces of the items, each with its own room
    for n vertices. Returns for each piece the room and how many vertices the kernel wrote to it."""
    pieces = cuts(items, PIECE)
    rooms = [np.empty(n, np.uint32) for _ in pieces]
    calls = [(*piece, *arguments, room) for piece, room in zip(pieces, rooms, strict=True)]
    return list(zip(rooms, run_all(kernel, calls), strict=True))


def _joined(collected: list[tuple[Array, int]]) -> Array:
    return np.concatenate([room[:number] for room, number in collected])


def h_index(indptr: Array, indices: Array) -> Array:
    """Core numbers by h-indices (MPM)."""
    estimate = np.diff(indptr).astype(np.int32)
    settle(indptr, indices, estimate, np.ones(len(estimate), np.bool_))
    return estimate


@compiled
def _of_degree(
    first: int, last: int, vertices: Array, degree: Array, level: np.int32, found: Array
) -> int:
    """Write those of vertices[first:last] whose degree is the level to `found`. Returns their
    number."""
    number = 0
    for i in range(first, last):
        if degree[vertices[i]] == level:
            found[number] = vertices[i]
            number += 1
    return number


@compiled
def _peel(
    u: int, indptr: Array, indices: Array, degree: Array, level: np.int32, found: Array, number: int
) -> int:
    """Take a degree from u's neighbours above the level; append those that reach it to `found`,
    which holds `number` vertices. Returns how many it then holds."""
    for e in range(indptr[u], indptr[u + 1]):
        v = indices[e]
        if degree[v] > level:
            before = fetch_add(degree, v, np.int32(-1))
            if before == level + 1:
                found[number] = v
                number += 1
            elif before <= level:
                fetch_add(degree, v, np.int32(1))
    return number


@compiled
def _peel_once(
    first: int,
    last: int,
    frontier: Array,
    indptr: Array,
    indices: Array,
    degree: Array,
    level: np.int32,
    found: Array,
) -> int:
    """Peel a part of a sub-level of ParK. Returns the number of vertices found for the next."""
    number = 0
    for i in range(first, last):
        number = _peel(frontier[i], indptr, indices, degree, level, found, number)
    return number


@compiled
def _peel_all(
    own: Array, number: int, indptr: Array, indices: Array, degree: Array, level: np.int32
) -> int:
    """Peel a thread's part of a level of PKC, which begins with the `number` vertices in `own`.
    Returns how many vertices it peeled."""
    head = 0
    while head < number:
        number = _peel(own[head], indptr, indices, degree, level, own, number)
        head += 1
    return number


@compiled
def bz(indptr: Array, indices: Array) -> Array:
    """Core numbers by Batagelj and Zaversnik's algorithm.

    degree[u] is the remaining degree of a living vertex and the core number of a peeled one; order
    holds the vertices by degree, place is its inverse, and start[d] the first place of degree d."""
    n = len(indptr) - 1
    degree = np.empty(n, np.int32)
    largest = 0
    for u in range(n):
        degree[u] = indptr[u + 1] - indptr[u]
        largest = max(largest, degree[u])
    start = np.zeros(largest + 2, np.int64)
    for u in range(n):
        start[degree[u] + 1] += 1
    for d in range(largest + 1):
        start[d + 1] += start[d]
    order = np.empty(n, np.uint32)
    place = np.empty(n, np.uint32)
    for u in range(n):
        d = degree[u]
        place[u] = start[d]
        order[place[u]] = u
        start[d] += 1
    # Filling moved every start to its run's end, which is where the next run starts.
    for d in range(largest + 1, 0, -1):
        start[d] = start[d - 1]
    start[0] = 0
    for i in range(n):
        u = order[i]
        for e in range(indptr[u], indptr[u + 1]):
            v = indices[e]
            d = degree[v]
            if d > degree[u]:
                first = start[d]
                other = order[first]
                if other != v:
                    at = place[v]
                    order[at], order[first] = other, v
                    place[v], place[other] = first, at
                start[d] += 1
                degree[v] = d - 1
    return degree


METHODS: dict[str, Callable[[Array, Array], Array]] = {
    "bz": bz,
    "park": park,
    "pkc": pkc,
    "h-index": h_index,
}
