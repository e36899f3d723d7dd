"""The edges that lead to a vertex, where each lies with its source: every shard looks through all
of its entries. A graph that is asked this often keeps its edges turned round, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arrays import to_host

from .held import Held
from .types import Array, Steps

CHUNK = 1 << 24  # entries compared at once


def edges_into(held: Held, sources: Any) -> Steps:
    """[(uint32: the owned rows, rising, with an edge to it; their weights; their times) of each of
    these vertices]. Weights and times are None where the graph has none. sources: integers; nothing
    leads to one that is no row."""
    part = held.part
    found = []
    for vertex in sources:
        places = _places(held, vertex)
        rows = held.xp.searchsorted(part.indptr, places, "right") - 1
        weights = None if part.weights is None else to_host(part.weights[places])
        times = None if part.times is None else to_host(part.times[places])
        found.append((to_host(rows.astype(np.uint32)), weights, times))
    return found
    yield  # a program is a generator, and this one has nothing to exchange


def _places(held: Held, vertex: int) -> Array:
    """int64, rising: where the entries of this vertex lie."""
    xp, indices = held.xp, held.part.indices
    pieces = [xp.empty(0, np.int64)]
    if 0 <= vertex < held.num_rows:
        for first in range(0, len(indices), CHUNK):
            here = indices[first : first + CHUNK] == np.uint32(vertex)
            pieces.append(xp.flatnonzero(here) + first)
    places: Array = xp.concatenate(pieces)
    return places
