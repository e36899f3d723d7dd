"""The triangles that have one of the listed edges, counted on the CPU: see `triangles`.

Each entry of the shorter row is searched for in the longer one, from where the last search ended.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled
from lpma.cpu.threads import cuts, run_all

from ..views.simple import View
from .listed_cpu import entries_of, gallop, is_before
from .types import HALF, LOW, Change

Array = npt.NDArray[Any]

PIECE = 1 << 6  # entries of the list that a thread takes at a time


def difference(change: Change) -> int:
    """The number of triangles after the change less that before."""
    won = _count_touching(change.after, change.inserted)
    return won - _count_touching(change.before, change.deleted)


def _count_touching(rows: View, edges: Array) -> int:
    """The number of triangles with an edge of the list. edges: uint64, as in Change.

    REQUIRES: all edges of the list are in the rows."""
    if not len(edges):
        return 0
    sources = (edges >> HALF).astype(np.uint32)
    pieces = cuts(len(edges), PIECE, per_thread=64)
    return int(
        sum(run_all(_count, [(*cut, edges, sources, rows.indptr, rows.indices) for cut in pieces]))
    )


@compiled
def _count(
    first: int, last: int, edges: Array, sources: Array, indptr: Array, indices: Array
) -> np.int64:
    total = np.int64(0)
    for i in range(first, last):
        u, v = np.int64(edges[i] >> HALF), np.int64(edges[i] & LOW)
        if u > v:
            continue
        listed_u, listed_v = entries_of(edges, sources, u), entries_of(edges, sources, v)
        # The edge itself is listed, so a row with no other listed edge needs no search.
        more_u, more_v = len(listed_u) > 1, len(listed_v) > 1
        a, b = indices[indptr[u] : indptr[u + 1]], indices[indptr[v] : indptr[v + 1]]
        if len(a) > len(b):
            a, b = b, a
        at = 0
        for w in a:
            at = gallop(b, at, w)
            if at == len(b):
                break
            if b[at] == w and not (
                (more_u and is_before(listed_u, u, np.int64(w), edges[i]))
                or (more_v and is_before(listed_v, v, np.int64(w), edges[i]))
            ):
                total += 1
    return total
