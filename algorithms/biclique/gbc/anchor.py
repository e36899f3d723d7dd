"""Choosing the layer of a bipartite graph on which subsets are enumerated, the anchor, and ranking
its vertices.

Source: GBC, arXiv 2403.07858, section III and Definition 2. A subset is enumerated from its vertex
of least rank, its root. Ranks rise with the number of two-hop neighbours that share at least
`least` vertices, ties by id. So a vertex with many such neighbours is a candidate of many roots,
but a root with few candidates.

The layer with fewer subsets is chosen, as if nothing were pruned: a root chooses depth - 1 of its
candidates, at most min(two-hop neighbours, vertices of larger rank). Walking to two-hop neighbours
may cost more than a search. So the layer with the shorter walk comes first, and the other is not
considered if its walk is longer than the search on the first can be.
"""

from __future__ import annotations

from math import lgamma

import numpy as np

from lpma.arrays import array_module, to_host

from ...arrays import Array, by_device
from ..bipartite import Bipartite, renumbered
from .types import Search


def choose_anchor(b: Bipartite, p: int, q: int, choose: bool = True) -> Search:
    """The search for (p, q)-bicliques on the cheaper layer of b, or if not `choose` on the left
    one, its vertices numbered by rank."""
    return ranked(*cheaper_layer(b, p, q, choose))


def cheaper_layer(b: Bipartite, p: int, q: int, choose: bool) -> tuple[Search, Array]:
    """The search on a layer as it is numbered, and int32[n]: the two-hop neighbours of each of its
    vertices that share enough."""
    sides = [Search(b, p, q)]
    if choose:
        sides.append(Search(b.swapped(), q, p))
        sides.sort(key=lambda side: _steps(side.graph))
    examined: list[tuple[float, Search, Array]] = []
    for side in sides:
        if examined and np.log1p(_steps(side.graph)) > examined[0][0]:
            break
        two_hop = by_device(side.graph.left_indptr, __package__, "two_hop")
        counts = two_hop.num_neighbors(side.graph, side.least)
        examined.append((_log_subsets(counts, side.depth), side, counts))
    return min(examined, key=lambda one: one[0])[1:]


def ranked(search: Search, counts: Array) -> Search:
    """The same search with vertices numbered by rank."""
    xp, n = array_module(counts), len(counts)
    order = xp.argsort(counts.astype(np.int64) * n + xp.arange(n))
    others = xp.arange(search.graph.num_right, dtype=np.uint32)
    graph = renumbered(search.graph, order.astype(np.uint32), others)
    return Search(graph, search.depth, search.least)


def _steps(graph: Bipartite) -> float:
    """The length of the walk from all anchors to their two-hop neighbours."""
    degrees = graph.right_degrees.astype(np.float64)
    return float((degrees * degrees).sum())


def _log_subsets(num_neighbors: Array, depth: int) -> float:
    """The logarithm of an upper bound on the number of subsets of `depth` anchors."""
    counts = np.sort(to_host(num_neighbors))
    chosen = depth - 1
    candidates = np.minimum(counts, np.arange(len(counts))[::-1]).astype(np.float64)
    candidates = candidates[candidates >= chosen]
    if len(candidates) == 0:
        return -np.inf
    terms = sum((np.log(candidates - i) for i in range(chosen)), np.zeros(len(candidates)))
    most = float(terms.max())
    return most + float(np.log(np.exp(terms - most).sum())) - lgamma(chosen + 1)
