"""Triangles over shards: each is counted by the owner of its vertex of lowest rank.

For every edge the oriented row (`oriented`) of the end of higher rank is shipped to the owner of
the other end, once per shard: at most m entries to each shard, and few in graphs with hubs. Each
shard then counts in the ranked view of its rows and these by the one-device program.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arrays import array_module, row_numbers
from lpma.errors import BatchError
from lpma.pma.keys import HALF, LOW

from ...arrays import Array, inverse_of, starts_of
from ...triangles.ranked import MOST_EDGES, Ranked, lister
from ...views.simple import View, induced
from ..runtime.state import ShardState
from ..runtime.types import Steps
from .oriented import degrees_around, oriented_rows, shipped
from .views import halo, marked


def triangles(state: ShardState) -> Steps:
    """The number of triangles whose vertex of lowest rank this shard owns."""
    degree = yield from degrees_around(state)
    oriented = yield from oriented_rows(state)
    across = yield from halo(state, "oriented", oriented)
    rows = yield from shipped(state, oriented, across)
    # Entries that no own row has are in no triangle of this shard.
    rows = induced(rows, marked(state.num_rows, oriented.indices) | state.is_owned)
    problem = len(rows.indices) > MOST_EDGES
    _, problems = yield state.nothing(), problem
    if any(problems):
        raise BatchError(
            f"a shard looks through more than {MOST_EDGES} edges: triangles need more shards"
        )
    ranks = _ranked(rows, degree, state.is_owned)
    return lister(rows).count(ranks)


def _ranked(rows: View, degree: Array, is_owned: Array) -> Ranked:
    """The ranked view of oriented rows; under each vertex only the own rows that hold it."""
    build = _ranked_on_device if rows.on_device else _ranked_on_cpu
    order, indptr, indices, in_indptr, in_slot, in_length = build(rows, degree)
    keep = _of_rows(indptr, is_owned[order])[in_slot]
    before = starts_of(keep)
    return Ranked(rows, order, indptr, indices, before[in_indptr], in_slot[keep], in_length[keep])


def _of_rows(indptr: Array, values: Array) -> Array:
    """The value of each entry's row."""
    of_entries: Array = values[row_numbers(indptr, int(indptr[-1]))]
    return of_entries


def _ranked_on_cpu(rows: View, degree: Array) -> tuple[Any, ...]:
    from ...triangles.cpu import append_by_rank, by_falling_degree
    from ...views.transpose_cpu import transpose

    order = by_falling_degree(starts_of(degree))
    indptr = starts_of(np.diff(rows.indptr)[order])
    in_rows = transpose(rows.indptr, rows.indices)
    in_indptr = starts_of(np.diff(in_rows[0])[order])
    indices, in_slot, in_length = append_by_rank(*in_rows, order, indptr)
    return order, indptr, indices, in_indptr, in_slot, in_length


def _ranked_on_device(rows: View, degree: Array) -> tuple[Any, ...]:
    from ...triangles.cuda import keys_of, rows_of_keys

    xp, n = array_module(degree), len(degree)
    by_degree = (LOW - degree.astype(np.uint64)) << HALF | xp.arange(n, dtype=np.uint64)
    by_degree.sort()
    order = (by_degree & LOW).astype(np.uint32)
    keys = keys_of(rows, inverse_of(order), len(rows.indices))
    indptr, indices, by_entry, in_slot, in_length = rows_of_keys(n, keys)
    in_indptr = xp.searchsorted(by_entry, xp.arange(n + 1, dtype=np.uint64) << HALF)
    return order, indptr, indices, in_indptr, in_slot, in_length
