"""What the shards have, put together on one host: degrees, vertices, rows, and the edges that lead
to a vertex, for which every shard looks through all of its entries. A graph that is asked this
often keeps its edges turned round, too.
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
    columns = {"indices": part.indices, "weights": part.weights, "times": part.times}
    there = [name for name, column in columns.items() if column is not None]
    lengths, *taken = packed(
        part.indptr, some, [column for column in columns.values() if column is not None]
    )
    found = dict(zip(there, map(to_host, taken), strict=True))
    return (
        to_host(some), to_host(lengths), found["indices"], found.get("weights"),
        found.get("times"), to_host(part.added),
    )  # fmt: skip


def whole_of(parts: list[Any], n: int) -> tuple[Any, ...]:
    """(indptr, indices, weights, times, added) of the whole graph of n rows, from what `rows` found
    at all shards. Weights and times are None if the parts' are."""
    there = [i for i in (2, 3, 4) if parts[0][i] is not None]
    packed_rows = [(part[0], part[1], *(part[i] for i in there)) for part in parts]
    indptr, *columns = joined(n, parts[0][0], packed_rows, len(there))
    found = dict(zip(there, columns, strict=True))
    added = np.sort(np.concatenate([part[5] for part in parts]))
    return indptr, found[2], found.get(3), found.get(4), added


CHUNK = 1 << 24  # entries compared at once


def edges_into(state: ShardState, sources: Any) -> Steps:
    """[(uint32: the owned rows, rising, with an edge to it; their weights; their times) of each of
    these vertices]. Weights and times are None where the graph has none. sources: integers; nothing
    leads to one that is no row."""
    part = state.part
    found = []
    for vertex in sources:
        places = _places(state, vertex)
        rows = state.xp.searchsorted(part.indptr, places, "right") - 1
        weights = None if part.weights is None else to_host(part.weights[places])
        times = None if part.times is None else to_host(part.times[places])
        found.append((to_host(rows.astype(np.uint32)), weights, times))
    yield state.nothing(), None
    return found


def _places(state: ShardState, vertex: int) -> Array:
    """int64, rising: where the entries of this vertex lie."""
    xp, indices = state.xp, state.part.indices
    pieces = [xp.empty(0, np.int64)]
    if 0 <= vertex < state.num_rows:
        for first in range(0, len(indices), CHUNK):
            here = indices[first : first + CHUNK] == np.uint32(vertex)
            pieces.append(xp.flatnonzero(here) + first)
    places: Array = xp.concatenate(pieces)
    return places
