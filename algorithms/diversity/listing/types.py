"""A graph prepared for listing: see the package."""

from __future__ import annotations

from dataclasses import dataclass

from ...arrays import Array
from ...views.simple import View


@dataclass(frozen=True)
class RankedEgos:
    """A graph prepared for listing under one model and k: rows under ranks (`triangles.ranked`)."""

    model: str
    k: int
    view: View  # the simple view, under ids
    order: Array  # uint32[n]: the vertex of each rank
    rank_of: Array  # uint32[n]
    slots: View  # rows of the neighbours that may be in a context of the row's vertex
    lower: View  # rows of the neighbours of smaller rank

    def row_lengths(self, owners: Array) -> Array:
        """int64[q]: the lengths of the owners' rows of slots. owners: ranks."""
        indptr = self.slots.indptr
        lengths: Array = indptr[owners + 1] - indptr[owners]
        return lengths
