"""Whether an edge goes into a vertex at a place of a mixed batch, without an in-store.

Idea: a vertex's in-degree there is the stored one (in_degrees.py) and what the batch's operations
on edges into it have added by then. What one of them adds shows in whether its edge is there just
before it and just after it, which are edge queries.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import array_module, distinct
from ..backend.degrees import degrees_of
from ..backend.values import Array, Implied
from ..batch.columns import FIRST_OTHER, Columns, Kind
from ..pma.keys import ends_of
from .stores import Stores


class MixedBatch(NamedTuple):
    """A batch that lies beside the stores while its queries are answered."""

    staged: Any
    columns: Columns
    implied: Implied | None  # deletions in the out-store, by place


def have_in_edges(stores: Stores, batch: MixedBatch, vertices: Array, limits: Array) -> Array:
    """bool[q]: whether an edge goes into each vertex before its limit. vertices: uint32[q], where
    the stores are. REQUIRES: the graph is directed, and nothing of the batch is applied."""
    out, xp = stores.out, array_module(vertices)
    targets, kind = distinct(vertices), batch.columns.kind
    # What the batch does to edges into these, in no order.
    places = xp.asarray(np.flatnonzero((kind < FIRST_OTHER) | (kind == Kind.EXPIRE)))
    src, dst = (xp.asarray(ids)[places] for ids in (batch.columns.src, batch.columns.dst))
    if batch.implied is not None:
        keys, implied = map(xp.asarray, batch.implied)
        src, dst = map(xp.concatenate, zip((src, dst), ends_of(keys), strict=True))
        places = xp.concatenate([places, implied.astype(np.int64)])
    hit = xp.isin(dst, targets)
    src, dst, places = src[hit], dst[hit], places[hit]
    before, after = (
        out.backend.find_edges(out.segments, batch.staged, src, dst, at)[0].astype(np.int64)
        for at in (places, places + 1)
    )
    grown = degrees_of(dst, places, after - before).since(vertices, limits)
    stored = stores.in_degrees.numbers_into(out, stores.history, stores.version, targets)
    found: Array = stored[xp.searchsorted(targets, vertices)] + grown > 0
    return found
