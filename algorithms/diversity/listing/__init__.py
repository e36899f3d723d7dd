"""Structural diversity by listing, `method="listing"`: the edges of all ego networks straight from
the graph's rows.

An edge of an ego network is a triangle at its owner, so one listing of triangles serves all of
them: no ego network is renumbered, sorted or put into rows. Over the ranked view
(`triangles.ranked`) an owner's row is compared with the *lower* rows of its neighbours, those of
their neighbours of higher degree, so every edge of every ego network occurs once. Lower rows have
at most sqrt(2m) entries, so all owners together cost O(m sqrt(m)) (Chiba and Nishizeki, SIAM J.
Comput. 14, 1985), and any can be scored without the others.

model       an edge
component   joins two trees of a forest over the owner's row
core        is two bits of a matrix over the row, and counts for two degrees; vertices whose degree
            is below k are peeled
truss       is two bits; edges whose rows have fewer than k - 2 bits in common are removed

A row of the matrix is a few words, so intersecting bits costs less than any list, and no 4-clique
is stored.

Rows are pruned first. A vertex of a context of c vertices has at least c - 1 neighbours in it, each
of which makes a triangle with the edge from the owner; entries whose edge is in fewer triangles are
dropped. In the truss model other edges are dropped too, since an edge of a context is in a triangle
with the owner beside its k - 2 others. That is the first round of the (k+1)-truss; the rest would
cost more than it saves. Owners left with fewer neighbours than a context has vertices score 0.

In the models core and truss long rows are first scored in part: see `absorb`.

Memory: the rows, and a matrix for every owner being scored. An owner whose matrix would exceed
`largest_row` is scored by the algorithms for whole graphs.

cpu.py, bits_cpu.py                                  matrices of bits on the CPU
cuda.py, listing.cu, ego.cuh, shrink.cuh             on a CUDA device
absorb.py, absorb_cpu.py, absorb.cu                  long rows by what a context leaves of them

Oracle: NetworkX on each ego network (tests/algorithms/test_diversity.py).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from lpma.arrays import array_module, device_of, to_host

from ...arrays import Array, by_device, inverse_of, starts_of
from ...components import connected_components
from ...core import k_core
from ...triangles import Listed
from ...triangles.ranked import lister, ranked
from ...truss import k_truss
from ...views.simple import View, induced, symmetric
from ..model import NONE, by_context, fewest_vertices
from . import absorb
from .types import RankedEgos

COST_POWER = 1.5  # of a row's length: what its owner costs, about


def prepared(s: Any, model: str, k: int) -> RankedEgos:
    """The ego networks of a graph. s: as for `algorithms.diversity`, a View, or a Listed."""
    ranks = s.ranks if isinstance(s, Listed) else ranked(s)
    view = ranks.view
    with device_of(view.indptr):
        lower = kept = View(ranks.indptr, ranks.indices)
        if model != "component":
            least = fewest_vertices(model, k) - 1
            known = s.support if isinstance(s, Listed) else lister(view).support(ranks)
            kept = _only(lower, known >= least)
        if model == "truss":
            lower = kept
        slots = symmetric(kept)
        return RankedEgos(model, k, view, ranks.order, inverse_of(ranks.order), slots, lower)


def _only(view: View, keep: Array) -> View:
    """The rows with the entries to `keep`, bool[m]."""
    return View(starts_of(keep)[view.indptr], view.indices[keep])


class Scorer:
    """Ego networks by listing: see `model.Scorer`."""

    threads = 1

    def __init__(self, s: Any, model: str, k: int):
        self.egos = prepared(s, model, k)
        self._device = by_device(self.egos.view.indptr, __name__)
        self.at_once: int = self._device.AT_ONCE
        with device_of(self.egos.order):
            self._device.finish()

    def scores(self, owners: Array) -> Array:
        with device_of(self.egos.order):
            owners = array_module(self.egos.order).asarray(owners)
            scores, exact = self.refined(owners)
            places = array_module(exact).flatnonzero(~exact)
            if len(places):
                scores[places] = self._scored(owners[places], labelled=False)[0]
            return scores

    def refined(self, owners: Array) -> tuple[Array, Array]:
        egos, device = self.egos, self._device
        with device_of(egos.order):
            xp = array_module(egos.order)
            owners = xp.asarray(owners)
            ranks = egos.rank_of[owners].astype(np.int64)
            exact = egos.row_lengths(ranks) <= device.HEAD
            if egos.model == "component":
                exact[:] = True
            values = xp.zeros(len(owners), np.int32)
            places, others = xp.flatnonzero(exact), xp.flatnonzero(~exact)
            if len(places):
                values[places] = self._scored(owners[places], labelled=False)[0]
            if len(others):
                values[others], exact[others] = absorb.refined(egos, ranks[others], device)
            return values, exact

    def contexts(self, owners: Array) -> list[list[Array]]:
        with device_of(self.egos.order):
            _, rows, label = self._scored(owners, labelled=True)
            return by_context(rows, label, len(owners))

    def bounds(self) -> Array:
        """int32[n], from the pruned rows."""
        fewest = fewest_vertices(self.egos.model, self.egos.k)
        found: Array = (self._row_lengths // fewest).astype(np.int32)
        return found

    def costs(self, owners: Array) -> Array:
        """By the lengths of rows, whose lower rows and matrices grow with them."""
        found: Array = 1 + self._row_lengths[owners].astype(np.float64) ** COST_POWER
        return found

    @cached_property
    def _row_lengths(self) -> Array:
        """int64[n], on the host, under ids."""
        indptr = self.egos.slots.indptr
        with device_of(self.egos.order):
            lengths: Array = to_host((indptr[1:] - indptr[:-1])[self.egos.rank_of])
            return lengths

    def _scored(self, owners: Array, labelled: bool) -> tuple[Array, tuple[Array, Array], Array]:
        """The scores of owners; and if labelled, for each entry of their rows, the owner's place
        and the vertex, and the number of the vertex's context, int32, or NONE."""
        egos = self.egos
        xp = array_module(egos.order)
        ranks = egos.rank_of[xp.asarray(owners)].astype(np.int64)
        length = egos.row_lengths(ranks)
        starts = starts_of(length)
        size = int(starts[-1]) if labelled else 0
        label, scores = xp.full(size, NONE, np.int32), xp.zeros(len(ranks), np.int32)
        fewest = fewest_vertices(egos.model, egos.k)
        largest = self._device.largest_row(egos.model)
        worth = xp.flatnonzero((length >= fewest) & (length <= largest))
        if len(worth):
            found = xp.zeros(len(worth), np.int32)
            self._device.score(egos, ranks[worth], starts[worth], found, label)
            scores[worth] = found
        for i in xp.flatnonzero(length > largest).tolist():
            of_row = _labels_by_whole_graph(egos.view, self._row(int(ranks[i])), egos.model, egos.k)
            scores[i] = len(xp.unique(of_row[of_row != NONE]))
            if labelled:
                label[int(starts[i]) : int(starts[i + 1])] = of_row
        if not labelled:
            return scores, (starts[:0], egos.order[:0]), label
        place = xp.repeat(xp.arange(len(ranks)), length.tolist())
        at = xp.arange(size) - starts[place] + egos.slots.indptr[ranks[place]]
        return scores, (place, egos.order[egos.slots.indices[at]]), label

    def _row(self, rank: int) -> Array:
        first, last = self.egos.slots.indptr[rank : rank + 2].tolist()
        row: Array = self.egos.order[self.egos.slots.indices[first:last]]
        return row


def _labels_by_whole_graph(view: View, row: Array, model: str, k: int) -> Array:
    """int32[len(row)]: the number of the context of each vertex of `row`, a row of the view; NONE
    if it is in none. The subgraph that the row induces is given to the algorithms for whole graphs,
    which reads the whole graph for one owner, and needs memory for another, no larger one."""
    with device_of(view.indptr):
        xp = array_module(view.indptr)
        inside = xp.zeros(view.num_rows, bool)
        inside[row] = True
        ego = induced(view, inside)
        if model == "core":
            ego = _view(k_core(ego, k))
        elif model == "truss":
            ego = _view(k_truss(ego, max(k, 2)))
        component = connected_components((ego.indptr, ego.indices))[row]
        if model == "component":
            is_in = xp.bincount(component, minlength=1)[component] >= k
        else:
            is_in = (ego.indptr[1:] > ego.indptr[:-1])[row]
        found: Array = xp.where(is_in, component, NONE).astype(np.int32)
        return found


def _view(s: Any) -> View:
    return View(s._indptr, s._indices)
