"""Scores from what one context leaves: the models core and truss, in long rows of the listing.

Most of a long row lies in one context, whose vertices are neighbours of the same few hubs. So a
context is found among the first vertices of the row, the *head*, and absorbs other vertices of the
row one by one. The score, or a bound of it, follows from those that are left.

1. The k-core (k-truss) of the head alone lies in that of the ego network. So its largest component
   C is in one context.
2. A vertex belongs to that context if, core, k of its neighbours are in C; truss, some of its
   neighbours in C have k - 2 neighbours each among themselves, by remaining edges: then the edges
   to these are in k - 2 triangles each. (The (k - 2)-core of its neighbours in C is not empty.)
3. Let U be the vertices of the row that are not absorbed. A context other than C's lies in U with
   all its edges and triangles, so it is in the k-core (k-truss) of U alone. Conversely, each
   component of that is in one context. So the score is 1 if there is no such component, and else at
   most one more than there are.

In the first case, that of nearly all hubs of RMAT graphs, no matrix over the row is made: U has at
most a tenth of its vertices, and their square takes a hundredth of the memory. Owners of the second
case are scored as a whole; in a search, only if their bounds, sharper than the paper's by degrees,
are good enough.

Memory: a word per entry of the rows; owners are taken in parts within the rooms' budget.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lpma.arrays import array_module, to_host

from ...arrays import Array, ranges_within, starts_of
from ...views.simple import View
from ..model import fewest_vertices
from .types import RankedEgos


def refined(egos: RankedEgos, owners: Array, device: Any) -> tuple[Array, Array]:
    """As `Scorer.refined`, of `owners`, int64[q], which are ranks. device: listing's module `cpu`
    or `cuda`. REQUIRES: rows of more than `device.HEAD` entries, and not the component model."""
    xp = array_module(egos.order)
    by_length = xp.argsort(-egos.row_lengths(owners))
    values, exact = xp.empty(len(owners), np.int32), xp.empty(len(owners), bool)
    lengths = to_host(egos.row_lengths(owners[by_length]))
    for first, last in ranges_within(lengths, device.room_bytes() // 4):
        places = by_length[first:last]
        values[places], exact[places] = _of_part(egos, owners[places], device)
    return values, exact


def _of_part(egos: RankedEgos, owners: Array, device: Any) -> tuple[Array, Array]:
    """As `refined`, for owners whose rows have room together, the longest first."""
    xp = array_module(egos.order)
    fewest = fewest_vertices(egos.model, egos.k)
    length = egos.row_lengths(owners)
    starts = starts_of(length)
    rest = xp.empty(int(starts[-1]), np.uint32)
    left = device.absorb(egos, owners, starts, rest)
    others = xp.where(left < 0, length // fewest, 1 + left // fewest).astype(np.int32)
    exact = (left >= 0) & (left < fewest)
    few = xp.flatnonzero((left >= fewest) & (left <= device.largest_row(egos.model)))
    if len(few):
        ends = xp.stack((starts[few], starts[few] + left[few]), axis=1).ravel()
        of_rest = replace(egos, slots=View(ends, rest))  # every second row is that of an owner
        found, none = xp.zeros(len(few), np.int32), xp.empty(0, np.int32)
        device.score(of_rest, 2 * xp.arange(len(few)), starts[few], found, none)
        others[few], exact[few] = 1 + found, found == 0
    return others, exact
