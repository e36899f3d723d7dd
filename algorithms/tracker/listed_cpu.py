"""Rows and a sorted list of some of their edges, on the CPU: what triangles and butterflies share.

A butterfly with several listed edges is counted only at the least, by (smaller end, larger end).
The list holds source << 32 | target of every edge in both directions, rising, as in `types.Change`.
The counterpart of listed.cuh.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.search import first_not_below
from lpma.pma.keys import HALF

from ..arrays import Array


@compiled
def gallop(row: Array, at: int, w: np.uint32) -> int:
    """The first place from `at` on in a sorted row whose entry is at least w; len(row) if none."""
    step = 1
    low = at
    while at < len(row) and row[at] < w:
        low = at + 1
        at += step
        step += step
    return first_not_below(row, low, min(at, len(row)), w)


@compiled
def has(row: Array, w: int) -> Any:
    """Whether a sorted row of vertices has w."""
    at = np.searchsorted(row, np.uint32(w))
    return at < len(row) and row[at] == w


@compiled
def entries_of(edges: Array, sources: Array, u: int) -> Array:
    """The entries of the list whose source is u. sources: uint32, of every entry."""
    first = np.searchsorted(sources, u)
    return edges[first : gallop(sources, first, u + 1)]


@compiled
def is_before(listed: Array, u: int, w: int, edge: np.uint64) -> Any:
    """Whether the edge u, w is listed, and before another `edge`, smaller end << 32 | larger end.
    listed: the entries whose source is u."""
    if len(listed) == 0 or np.uint64(min(u, w)) << HALF | np.uint64(max(u, w)) > edge:
        return False
    key = np.uint64(u) << HALF | np.uint64(w)
    at = np.searchsorted(listed, key)
    return at < len(listed) and listed[at] == key
