"""Degrees inside a mixed batch: how many edges of a vertex are there at a place of the batch.

Idea: a version adds an edge, takes one away or does neither. Sorted by (vertex, place), with the
sum of what came before, they tell a vertex's degree at any place by one search, however many
queries ask for it and however many versions it has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...keys import HALF, LOW
from ..values import Array


class Degrees(NamedTuple):
    """The versions of a store, by one end of their edges."""

    tags: Array  # uint64, rising: vertex << 32 | 1 + place
    change: Array  # int64[len(tags) + 1]: what the versions before each add up to

    def since(self, vertices: Array, limits: Array) -> Array:
        """int64[q]: by how much each vertex's degree has grown at that place, since the batch
        began."""
        first = vertices.astype(np.uint64) << HALF
        seen = self.change[np.searchsorted(self.tags, first | limits.astype(np.uint64), "right")]
        return seen - self.change[np.searchsorted(self.tags, first)]

    def versions(self, vertices: Array) -> Array:
        """int64[q]: how many versions each vertex has."""
        first = vertices.astype(np.uint64) << HALF
        return np.searchsorted(self.tags, first | LOW, "right") - np.searchsorted(self.tags, first)


def degrees_by(out: bool, keys: Array, marks: Array) -> Degrees:
    """The versions among slots, by source or by target. Markers are no edges."""
    rows = np.flatnonzero((marks != 0) & (keys & LOW != LOW))
    there, before = marks >= 0, rows - 1
    same = (rows > 0) & (keys[before] == keys[rows])
    change = there[rows].astype(np.int64) - (same & there[before])
    vertex = keys[rows] >> HALF if out else keys[rows] & LOW
    tags = vertex << HALF | np.abs(marks[rows]).astype(np.uint64)
    order = np.argsort(tags, kind="stable")
    return Degrees(tags[order], np.concatenate([[0], np.cumsum(change[order])]))
