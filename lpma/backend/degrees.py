"""Degrees inside a mixed batch: how many edges a vertex has gained at a place of the batch.

Idea: an operation adds an edge, takes one away or does neither. Sorted by (vertex, place), with the
sum of what came before, they tell a vertex's gain at any place by one search, however many queries
ask for it and however many operations it has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import array_module
from ..pma.keys import HALF, keys_of
from .values import Array


class Degrees(NamedTuple):
    """Operations of a batch, by one end of their edges."""

    tags: Array  # uint64, rising: vertex << 32 | place
    gained: Array  # int64[len(tags) + 1]: what the operations before each add up to

    def since(self, vertices: Array, limits: Array) -> Array:
        """int64[q]: by how much each vertex's degree has grown at that place, since the batch
        began."""
        xp = array_module(self.tags)
        first = xp.asarray(vertices).astype(np.uint64) << HALF
        seen = self.gained[xp.searchsorted(self.tags, first | xp.asarray(limits, np.uint64))]
        grown: Array = seen - self.gained[xp.searchsorted(self.tags, first)]
        return grown


def degrees_of(vertices: Array, places: Array, change: Array) -> Degrees:
    """change: what the operation at each place does to the degree of that vertex. One place may be
    there for many edges."""
    xp = array_module(vertices)
    tags = keys_of(vertices, places)
    order = xp.argsort(tags)
    gained = xp.zeros(len(tags) + 1, np.int64)
    xp.cumsum(change[order], out=gained[1:])
    return Degrees(tags[order], gained)
