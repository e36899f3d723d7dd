"""Triangles: how many triples of vertices are joined pairwise.

Source: Schank and Wagner, "Finding, counting and listing all triangles in large graphs", WEA 2005
(*forward*). In the oriented view every triangle is found exactly once: at its lowest vertex u, as a
common entry w of the rows of u and of v, where u → v. No row is longer than sqrt(2m), so that the
work is O(m sqrt(m)) on any graph. Rows are sorted, so two are intersected by merging; the step of
the merge is written without a branch, since a branch here would be guessed wrong half of the time.

Requires the oriented view of the simple undirected graph.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from ._views import by_rows, oriented

Array = npt.NDArray[Any]


def triangle_count(s: Any) -> int:
    """The number of triangles, each counted once.

    s: a Snapshot, a scipy CSR matrix, or (indptr, indices), read as a simple undirected graph.
    Raises `lpma.BatchError` on an s that is no graph."""
    view = oriented(s)
    return int(sum(by_rows(_count, view.indptr, view.indptr, view.indices)))


@numba.njit(cache=True, nogil=True)
def _count(first: int, last: int, indptr: Array, indices: Array) -> np.int64:
    """Triangles whose lowest vertex lies in first … last - 1."""
    total = np.int64(0)
    for u in range(first, last):
        end_u = indptr[u + 1]
        for e in range(indptr[u], end_u):
            v = indices[e]
            i, j, end_v = indptr[u], indptr[v], indptr[v + np.uint32(1)]
            while i < end_u and j < end_v:
                a, b = indices[i], indices[j]
                total += a == b
                i += a <= b
                j += b <= a
    return total
