"""Scores from what one context leaves: the models core and truss, in long rows of the listing.

Most of a long row lies in one context, and its vertices are neighbours of the same few hubs. So a
context is found among the first vertices of the row, the *head*, and then absorbs other vertices of
the row one by one. The score, or a bound of it, follows from those that are left.

1. What stands when the head alone is shrunk stands in the whole ego network too: the k-core
   (k-truss) of a subgraph lies in that of the graph. Its largest component C is in one context.
2. A vertex belongs to that context if, core, k of its neighbours are in C; truss, some of its
   neighbours in C have k - 2 neighbours each among themselves, by edges that stand: then the edges
   to these are in k - 2 triangles each. (So the (k - 2)-core of its neighbours in C is not empty.)
3. Let U be the vertices of the row that are not absorbed. A context other than C's lies in U as a
   whole, with all its edges and triangles, so it stands when U alone is shrunk. Conversely, what
   stands in U alone stands in the ego network, and each component of it is in one context. So the
   contexts besides C's are among the components of the k-core (k-truss) of U: the score is 1 if
   there is none, and else at most one more than there are.

In the first case, that of nearly all hubs of RMAT graphs, no matrix over the row is made: U has a
tenth of its vertices or less, and the square of them takes a hundredth of the memory. Owners of the
second case are scored as a whole, in a search only if their bounds are good enough. That carries
further the bounds of Huang, Huang, Xu, Choi and Peng, "GPU-accelerated structural diversity search
in graphs", which are by degrees.

Memory: a word for each entry of the rows; owners are taken in parts that keep to the rooms' budget.
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
    """(int32[q], bool[q]): a number that is no less than the score, and whether it is the score, of
    each of `owners`, int64[q], which are ranks. device: the module `cpu` or `cuda` of listing.
    REQUIRES: rows of more than `device.HEAD` entries, and not the component model."""
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
