"""Core numbers: the largest k for which a vertex is in a subgraph of degrees all at least k.

Source: Batagelj and Zaversnik, "An O(m) algorithm for cores decomposition of networks", 2003.
Peel a vertex of least remaining degree, again and again; its degree then is its core number. The
vertices stand in one array sorted by remaining degree, with the start of every degree's run. When
a neighbour loses a degree it changes places with the first of its run, and the run's start moves
past it: constant time an edge, O(n + m) in all, and no queue.

Requires the simple undirected view. `_bz` is the oracle of the parallel methods to come after it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from ._views import View, simple

Array = npt.NDArray[Any]


def core_numbers(s: Any, method: str = "auto") -> Array:
    """The core number of every vertex: int32[n]; 0 for a vertex without neighbours.

    s: a Snapshot, a scipy CSR matrix, or (indptr, indices), read as a simple undirected graph.
    method: "bz", bucket peeling in one thread; "auto" takes the fastest. Raises ValueError on
    another method and `lpma.BatchError` on an s that is no graph."""
    chosen = "bz" if method == "auto" else method
    if chosen not in _METHODS:
        raise ValueError(f"method {method!r}: choose one of auto, {', '.join(_METHODS)}")
    return _METHODS[chosen](simple(s))


def _bucket_peeling(view: View) -> Array:
    return _bz(view.indptr, view.indices)


_METHODS: dict[str, Callable[[View], Array]] = {"bz": _bucket_peeling}


@numba.njit(cache=True, nogil=True)
def _bz(indptr: Array, indices: Array) -> Array:
    """degree[u] is the remaining degree of a living vertex and the core number of a peeled one;
    order holds the vertices by degree, place is its inverse, start[d] the first of degree d."""
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
