"""One layer of a bipartite graph made the anchor of a search, its vertices numbered by priority.

Source: Qiu, Li, Ke, Chen and Gao, "Accelerating biclique counting on GPU" (GBC), section III and
Definition 2. Subsets are enumerated on the anchor layer, and a subset is enumerated at its vertex
of least rank, its root. Ranks rise with the number of two-hop neighbours that share at least
`least` vertices, ties by id: a vertex that has many is then a candidate of many roots, and a root
of few candidates.

The layer is chosen by how many subsets a search would look at were nothing pruned. A root has at
most min(two-hop neighbours, vertices of larger rank) candidates, of which it chooses depth - 1.
Finding two-hop neighbours is a walk that may cost more than a search: the layer of the shorter walk
is looked at first, and the other not at all if its walk is longer than that search can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import array_module, on_device, to_host

from . import two_hop_cpu
from .bipartite import Bipartite

Array = npt.NDArray[Any]  # or cupy.ndarray


@dataclass(frozen=True)
class Anchored:
    """Rows of both layers; the anchor's vertices are numbered by rank, all rows are sorted."""

    indptr: Array  # int64[n+1]: of the anchor's vertices
    indices: Array  # uint32[m]: the other layer's
    back_indptr: Array  # int64[n'+1]: of the other layer's vertices
    back: Array  # uint32[m]: ranks

    @property
    def num_anchors(self) -> int:
        return len(self.indptr) - 1

    @property
    def nbytes(self) -> int:
        arrays = (self.indptr, self.indices, self.back_indptr, self.back)
        return sum(int(array.nbytes) for array in arrays)


@dataclass(frozen=True)
class Anchoring:
    """A layer as it was chosen: what is enumerated are `depth`-subsets with `least` common
    neighbours or more."""

    graph: Anchored
    depth: int
    least: int


def two_hop(array: Array) -> ModuleType:
    """The module that walks over two-hop neighbours where the array lies."""
    if not on_device(array):
        return two_hop_cpu
    from . import two_hop_cuda as on_cuda

    return on_cuda


def anchored(
    b: Bipartite, p: int, q: int, *, choose: bool, priority: bool, common: bool
) -> Anchoring:
    """The layer to enumerate on. choose: the cheaper one, else the left. priority: ranked as above,
    else by id. common: of two-hop neighbours only those that share enough, else all."""
    left = (b.left_indptr, b.left_indices, b.right_indptr, b.right_indices)
    right = (b.right_indptr, b.right_indices, b.left_indptr, b.left_indices)
    sides = [(Anchored(*left), p, q), (Anchored(*right), q, p)]
    sides.sort(key=lambda side: _steps(side[0]) if choose else 0.0)
    counted: list[tuple[Anchored, int, int, Array | None]] = []
    bound = np.inf
    for graph, depth, least in sides if choose else sides[:1]:
        if counted and np.log1p(_steps(graph)) > bound:
            break
        neighbors = None
        if choose or priority:
            neighbors = two_hop(graph.indptr).neighbors(graph, least if common else 1)
        counted.append((graph, depth, least, neighbors))
        bound = _subsets(neighbors, depth)
    graph, depth, least, neighbors = min(counted, key=lambda side: _subsets(side[3], side[1]))
    if priority and neighbors is not None:
        xp, n = array_module(neighbors), len(neighbors)
        order = xp.argsort(neighbors.astype(np.int64) * n + xp.arange(n))
        graph = two_hop(graph.indptr).renumbered(graph, order)
    return Anchoring(graph, depth, least)


def _steps(graph: Anchored) -> float:
    """Of a walk from all anchors to their two-hop neighbours."""
    degrees = (graph.back_indptr[1:] - graph.back_indptr[:-1]).astype(np.float64)
    return float((degrees * degrees).sum())


def _subsets(neighbors: Array | None, depth: int) -> float:
    """The logarithm of how many subsets of `depth` there are to look at, at most."""
    if neighbors is None:
        return 0.0
    counts = np.sort(to_host(neighbors))
    chosen = depth - 1
    candidates = np.minimum(counts, np.arange(len(counts))[::-1]).astype(np.float64)
    candidates = candidates[candidates >= chosen]
    if len(candidates) == 0:
        return -np.inf
    terms = sum((np.log(candidates - i) for i in range(chosen)), np.zeros(len(candidates)))
    most = float(terms.max())
    return most + float(np.log(np.exp(terms - most).sum())) - lgamma(chosen + 1)
