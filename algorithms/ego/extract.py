"""Structural diversity by extracting every ego network, `method="extract"`: the paper's framework.

Source: Huang, Huang, Xu, Choi and Peng, "GPU-accelerated structural diversity search in graphs"
(Algorithms 1 to 7). Upper bounds for all vertices (`Scorer.bounds`); candidates in the order of
falling bounds, until no bound is good enough (`schedule.top`); for a batch of owners the ego
networks in CSR, peeled as the model asks; and a count of the components that are left.

on the CPU   one ego network after the other in each thread     `extract_cpu`
on a device  those of a batch side by side, as one graph        `extract_cuda`

Ego networks are sized before they are built: triangles are listed once, as the paper lists them to
retrieve ego edges, and a vertex's triangles are its ego network's edges. So batches fit in memory,
and costs can be estimated (`Scorer.terms`).

Where we depart from the paper's text, besides the points in `schedule`:

Algorithm 2, line 3   A map indexed by vertices has one place more than the largest id.
Algorithm 2, line 13  On the CPU one thread fills the rows, so that they are sorted; on CUDA a warp
                      finds each row by itself, sorted.
Algorithm 3, line 3   A vertex starts a search if it was *not* visited.
Algorithm 4           Estimates start at min(degree, k): it does not matter how far a core number is
                      above k.
Algorithm 5, line 4   A triangle is counted once, at all of its edges, not once at each of them.
Algorithm 5           Ends where the next edge to be peeled has truss number k or more: the levels
                      above are not needed.
Algorithm 7, line 6   The ends are in no known order. And a triangle of which two edges are peeled
                      in a round takes from the third only once, with the edge of smaller number.
Algorithm 7, line 10  What was peeled is deleted: *true*.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import array_module, device_of, to_host
from lpma.cpu.threads import THREADS

from ..triangles import Listed
from ..views.simple import View, simple
from . import cost
from .model import checked_model, fewest_vertices
from .types import ExtractModule

Array = npt.NDArray[Any]  # or cupy.ndarray

AT_ONCE = 4096  # on a device


class Scorer:
    """Ego networks by extraction: see `model.Scorer`. On the CPU each call works in one thread."""

    def __init__(self, s: Any, model: str, k: int):
        checked_model(model, k)
        self.model, self.k, self.fewest = model, k, fewest_vertices(model, k)
        view = s.ranks.view if isinstance(s, Listed) else simple(s)
        self.threads, self.at_once = (1, AT_ONCE) if view.on_device else (THREADS, 1)
        with device_of(view.indptr):
            self._device = _device_module(view)
            self.egos = self._device.prepared(s)  # a SizedEgos

    def bounds(self) -> Array:
        """By degrees, where the graph lies (Algorithm 1, lines 2 and 3)."""
        indptr = self.egos.view.indptr
        with device_of(indptr):
            most: Array = to_host(((indptr[1:] - indptr[:-1]) // self.fewest).astype(np.int32))
            return most

    def terms(self, owners: Array) -> Array:
        """By the sizes of ego networks."""
        return cost.of_ego(self.model, self.egos.vertices[owners], self.egos.edges[owners])

    def scores(self, owners: Array) -> Array:
        return self._scored(to_host(owners))[0]

    def refined(self, owners: Array) -> tuple[Array, Array]:
        return self.scores(owners), np.ones(len(owners), bool)

    def contexts(self, owners: Array) -> list[list[Array]]:
        owners = to_host(owners)
        label = to_host(self._scored(owners)[1])
        owner = np.repeat(np.arange(len(owners)), self.egos.vertices[owners])
        together = np.lexsort((label, owner))  # a label is the smallest vertex of its context
        label, owner = label[together], owner[together]
        is_last = (label[1:] != label[:-1]) | (owner[1:] != owner[:-1])
        ends = np.concatenate((np.flatnonzero(is_last) + 1, [len(label)]))
        starts = np.concatenate(([0], ends[:-1]))
        contexts: list[list[Array]] = [[] for _ in owners]
        vertices = self._neighbours(owners, together)
        for i in np.flatnonzero(ends - starts >= self.fewest).tolist():
            contexts[owner[starts[i]]].append(vertices[int(starts[i]) : int(ends[i])])
        return contexts

    def _neighbours(self, owners: Array, order: Array) -> Array:
        """The neighbours of all owners one after the other, in this order, where the graph lies."""
        view, length = self.egos.view, self.egos.vertices[owners]
        with device_of(view.indptr):
            xp = array_module(view.indptr)
            first = to_host(view.indptr[xp.asarray(owners)]) - np.cumsum(length) + length
            at = np.arange(int(length.sum())) + np.repeat(first, length)
            found: Array = view.indices[xp.asarray(at[order])]
            return found

    def _scored(self, owners: Array) -> tuple[Array, Array]:
        """See `types.ExtractModule.score`."""
        with device_of(self.egos.view.indptr):
            return self._device.score(self.egos, owners, self.model, self.k, self.fewest)


def _device_module(view: View) -> ExtractModule:
    """The module that extracts where the view lies."""
    if view.on_device:
        from . import extract_cuda

        return extract_cuda
    from . import extract_cpu

    return extract_cpu
