"""The GBC paper's own program, with a switch for each of its parts.

Source: Qiu, Li, Ke, Chen and Gao, "Accelerating biclique counting on GPU", arXiv 2403.07858.

The choice of a layer, the histogram and the walks to two-hop neighbours are those of
`algorithms.biclique.gbc`; only the search below a root differs.

    truncated                                 hierarchical truncated bitmaps, and plain rows alike
    search_cpu; search_cuda and truncated.cu  search them

The paper's order of vertices, Border, is in `border`.
"""

from __future__ import annotations

from typing import NamedTuple

from algorithms.arrays import Array, by_device
from algorithms.biclique import gbc
from algorithms.biclique.bipartite import Bipartite
from algorithms.biclique.gbc.anchor import cheaper_layer, ranked
from algorithms.biclique.gbc.types import Search
from lpma.arrays import device_of

from .truncated import truncated


class Program(NamedTuple):
    """What the paper's program does. GBC is the whole, GBL the paper's baseline."""

    truncated: bool = True  # rows are truncated bitmaps; else plain, searched one by one
    anchor: bool = True  # the cheaper layer is searched; else the left one
    priority: bool = True  # vertices are ranked by two-hop neighbours; else as they are numbered
    common: bool = True  # candidates share enough neighbours with their root; else one
    hybrid: bool = True  # all children of a node are tested at once
    edges: bool = True  # tasks are pairs of a root and its first candidate; else roots
    stealing: bool = True  # tasks come from a shared queue; else workers have fixed shares


GBC = Program()
GBL = Program(truncated=False, hybrid=False, edges=False, stealing=False)


def count(b: Bipartite, p: int, q: int, program: Program = GBC) -> int:
    """The number of (p, q)-bicliques, as by `gbc.count`. REQUIRES: p ≥ 2 and q ≥ 2."""
    with device_of(b.left_indptr):
        search, num_neighbors = cheaper_layer(b, p, q, program.anchor)
        if program.priority:
            search = ranked(search, num_neighbors)
        return gbc.total(_histogram(search, program), search.least)


def _histogram(search: Search, program: Program) -> Array:
    graph = search.graph
    least = search.least if program.common else 1
    num_candidates = by_device(graph.left_indptr, gbc.__name__, "two_hop").num_candidates(
        graph, least
    )
    rows = truncated(graph.left_indptr, graph.left_indices, program.truncated)
    return by_device(graph.left_indptr, __name__, "search").search(
        search, num_candidates, rows, program
    )
