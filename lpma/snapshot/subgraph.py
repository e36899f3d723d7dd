"""The subgraph that some vertices induce: their edges among themselves.

A snapshot with a row for every id keeps its rows, and those of other vertices are empty. A compact
one gets a row for each of the vertices alone.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from ..arguments.convert import vertices_asked_for
from ..arrays import Array, array_module, device_of, places_of, row_numbers, to_host
from ..errors import BatchError
from ..names.given import column_of
from .csr import Csr

Rows = TypeVar("Rows", bound=Csr)


def rows_of(s: Csr, vertices: Any) -> Array:
    """int64, on the host: the rows of vertices, by id or name. Raises BatchError for absent
    ones."""
    if s.names is not None:
        rows = s.names.look_up(column_of(vertices, "vertices"))
        rows = np.where(rows < s.num_rows, rows, -1)
    else:
        ids = np.asarray(to_host(vertices_asked_for(vertices, "vertices"))).astype(np.int64)
        if s._ids is None:
            rows = np.where(ids < s.num_rows, ids, -1)
        else:
            rows = places_of(ids, np.asarray(to_host(s._ids)))
    present = np.append(to_host(s._present), False)  # which -1 finds
    missing = np.flatnonzero(~present[rows])
    if len(missing):
        which = np.atleast_1d(np.asarray(to_host(vertices), object))[missing[0]]
        raise BatchError(f"vertices: there is no vertex {which!r:.60} in the snapshot")
    return rows


def induced(s: Rows, vertices: Any) -> Rows:
    """See Snapshot.subgraph."""
    rows = rows_of(s, vertices)
    xp = array_module(s._indptr)
    with device_of(s._indptr):
        chosen = xp.zeros(s.num_rows, np.bool_)
        chosen[xp.asarray(rows)] = True
        sources = row_numbers(s._indptr, len(s._indices))
        kept = chosen[sources] & chosen[s._indices]
        sources, indices = sources[kept], s._indices[kept]
        num_edges = len(indices)
        if not s.directed:  # a loop is there once, any other edge twice
            num_edges = (num_edges + int((sources == indices).sum())) // 2
        weights, times = (None if c is None else c[kept] for c in (s._weights, s._times))
        ids, added, names = None, xp.flatnonzero(chosen).astype(np.uint32), s.names
        lengths = xp.bincount(sources, minlength=s.num_rows)
        if s._ids is not None:
            number = xp.cumsum(chosen, dtype=np.uint32) - np.uint32(1)
            indices, lengths = number[indices].astype(np.uint32), lengths[chosen]
            ids, added = s._ids[chosen], None
            names = None if names is None else names.with_rows(ids)
        indptr = xp.zeros(len(lengths) + 1, np.int64)
        xp.cumsum(lengths, out=indptr[1:])
    return s._trusted(
        indptr, indices, weights, times, num_edges, s.version, s.time, s.directed,
        ids=ids, added=added, names=names, left=s.left,
    )  # fmt: skip
