"""Degrees, vertices and rows gathered on one host, and the edges that lead to a vertex, for which
every shard scans all of its entries: a graph that needs these often keeps a transpose.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arrays import to_host

from ...arrays import Array
from ..runtime.rows import joined, packed
from ..runtime.state import ShardState
from ..runtime.types import Steps
from .views import present_rows


def degrees(state: ShardState) -> Steps:
    """int64: how many out-edges each owned row has."""
    indptr, own = state.part.indptr, state.owned
    yield state.nothing(), None
    return to_host(indptr[own + np.uint32(1)] - indptr[own])


def present(state: ShardState) -> Steps:
    """bool: which owned rows are vertices."""
    found = yield from present_rows(state)
    return to_host(found[state.owned])


def rows(state: ShardState) -> Steps:
    """(rows, lengths, indices, weights or None, times or None, added): the rows with entries."""
    yield state.nothing(), None
    part = state.part
    some = state.rows_where(part.indptr[1:] > part.indptr[:-1])
    taken = packed(part.indptr, some, [part.indices, part.weights, part.times])
    return tuple(map(to_host, (some, *taken, part.added)))


def whole_of(parts: list[Any], n: int) -> tuple[Any, ...]:
    """(indptr, indices, weights, times, added) of the whole graph of n rows, from the results of
    `rows`. Weights and times are None if the parts' are."""
    columns = joined(n, parts[0][0], [part[:5] for part in parts], 3)
    return *columns, np.sort(np.concatenate([part[5] for part in parts]))


CHUNK = 1 << 24  # entries compared at once


def edges_into(state: ShardState, sources: Any) -> Steps:
    """[(uint32, rising: the owned rows with an edge to it; the edges' weights, or None; their
    times, or None) of each of these vertices]. sources: integers, which need not be rows."""
    part = state.part
    found = []
    for vertex in sources:
        places = _places(state, vertex)
        rows = state.xp.searchsorted(part.indptr, places, "right") - 1
        columns = (None if c is None else to_host(c[places]) for c in (part.weights, part.times))
        found.append((to_host(rows.astype(np.uint32)), *columns))
    yield state.nothing(), None
    return found


def _places(state: ShardState, vertex: int) -> Array:
    """int64, rising: the places of the entries of this vertex."""
    xp, indices = state.xp, state.part.indices
    pieces = [xp.empty(0, np.int64)]
    if 0 <= vertex < state.num_rows:
        for first in range(0, len(indices), CHUNK):
            here = indices[first : first + CHUNK] == np.uint32(vertex)
            pieces.append(xp.flatnonzero(here) + first)
    places: Array = xp.concatenate(pieces)
    return places
