"""Structural diversity by extracting every ego network, `method="extract"`: the paper's framework.

Source: Huang, Huang, Xu, Choi and Peng, "GPU-accelerated structural diversity search in graphs",
Algorithms 1 to 7: upper bounds for all vertices (`Scorer.bounds`); candidates by falling bounds,
until no bound is good enough (`schedule.top`); for a batch of owners the ego networks in CSR,
peeled by the model; and a count of the components left. On the CPU each thread extracts one ego
network after the other (`cpu`); a device takes those of a batch as one graph (`cuda`).

Ego networks are sized before they are built, since a vertex's triangles are its ego network's
edges. So batches fit in memory, and costs can be estimated (`Scorer.costs`).

Departures from the paper's text, besides those in `schedule`:

Section 6.1           Vertices and edges weigh the same. The paper times a sample for their weights,
                      which takes a hundredth of the scoring; stealing makes up for wrong ones.
Algorithm 2, line 3   A map indexed by vertices has one place more than the largest id.
Algorithm 2, line 13  On the CPU one thread fills the rows, so that they are sorted; on CUDA a warp
                      finds each row, sorted.
Algorithm 3, line 3   A vertex starts a search if it was *not* visited.
Algorithm 4           Estimates start at min(degree, k): higher ones make no difference.
Algorithm 5, line 4   A triangle is counted once, at all of its edges, not once at each of them.
Algorithm 5           Ends before edges of truss number k or more, which are not needed.
Algorithm 7, line 6   The ends are in no known order. And a triangle with two edges peeled in one
                      round takes from the third only once, with the edge of smaller number.
Algorithm 7, line 10  What was peeled is deleted: *true*.

Oracle: NetworkX on each ego network (tests/algorithms/test_diversity.py, test_extract.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arrays import array_module, device_of, to_host
from lpma.cpu.threads import THREADS

from ...arrays import Array, by_device, starts_of
from ...triangles import Listed
from ...views.simple import simple
from ..model import by_context, fewest_vertices

AT_ONCE = 4096  # on a device


class Scorer:
    """Ego networks by extraction: see `model.Scorer`. On the CPU each call works in one thread."""

    def __init__(self, s: Any, model: str, k: int):
        self.model, self.k, self.fewest = model, k, fewest_vertices(model, k)
        view = s.ranks.view if isinstance(s, Listed) else simple(s)
        self.threads, self.at_once = (1, AT_ONCE) if view.on_device else (THREADS, 1)
        with device_of(view.indptr):
            self._device = by_device(view.indptr, __name__)
            self.egos = self._device.prepared(s)  # a SizedEgos

    def bounds(self) -> Array:
        """By degrees, where the graph lies (Algorithm 1, lines 2 and 3)."""
        indptr = self.egos.view.indptr
        with device_of(indptr):
            most: Array = to_host(((indptr[1:] - indptr[:-1]) // self.fewest).astype(np.int32))
            return most

    def costs(self, owners: Array) -> Array:
        """By the N vertices and E edges of ego networks: E, N + E or N + E^1.5 (section 6.1)."""
        n, m = (sizes[owners].astype(np.float64) for sizes in (self.egos.vertices, self.egos.edges))
        found: Array = 1 + {"component": m, "core": n + m, "truss": n + m * np.sqrt(m)}[self.model]
        return found

    def scores(self, owners: Array) -> Array:
        return self._scored(to_host(owners))[0]

    def refined(self, owners: Array) -> tuple[Array, Array]:
        return self.scores(owners), np.ones(len(owners), bool)

    def contexts(self, owners: Array) -> list[list[Array]]:
        owners = to_host(owners)
        view, length = self.egos.view, self.egos.vertices[owners]
        with device_of(view.indptr):
            xp = array_module(view.indptr)
            label = self._scored(owners)[1]  # the smallest vertex of a context
            owner = np.repeat(np.arange(len(owners)), length)
            first = to_host(view.indptr[xp.asarray(owners)]) - starts_of(length)[:-1]
            at = np.arange(len(owner)) + first[owner]
            rows = xp.asarray(owner), view.indices[xp.asarray(at)]
            return by_context(rows, label, len(owners), self.fewest)

    def _scored(self, owners: Array) -> tuple[Array, Array]:
        """See `cpu.score`."""
        with device_of(self.egos.view.indptr):
            return self._device.score(self.egos, owners, self.model, self.k, self.fewest)
