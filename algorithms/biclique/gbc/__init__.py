"""(p, q)-bicliques counted by enumerating subsets of one layer: GBC, and beyond it.

Source: Qiu, Li, Ke, Chen and Gao, "Accelerating biclique counting on GPU", arXiv 2403.07858. The
basic model is that of Yang, Peng and Zhang, "(p, q)-biclique counting and enumeration for large
sparse bipartite graphs", PVLDB 15(2), 2021, doi:10.14778/3489496.3489497.

Idea: every p-subset of the anchor layer with c common neighbours is in C(c, q) bicliques. A subset
grows vertex by vertex from its root, and the set of its common neighbours shrinks beside it.

*Exact counts.* The search adds no binomials. It counts the subsets with c common neighbours for
every c, in 64 bits, which no count can exceed, since subsets are visited one by one. The sum of
counts times C(c, q) is taken in Python's integers. One histogram answers for its own q and all
larger ones.

*Rows.* A root's candidates have bitmaps over the root's neighbours, and every level below packs
them again to the bits and candidates that are left (`search_cpu`). The paper's hierarchical
truncated bitmaps and its baseline, binary search in rows, are programs of benchmarks/papers/gbc.

*Memory.* Within a `memory_limit` the graph is divided into parts that can be counted independently
of one another (`bcpar_cpu`). The limit bounds what a search holds: the part being counted, its
tables of two-hop neighbours, candidates, bitmaps and workspaces. It does not bound what is held for
the whole graph: a copy in the order of ranks, 4 bytes per vertex and thread to find two-hop
neighbours, and at most 100 bytes per vertex to choose the layer and the parts. For a graph on a
device the copy is there too; the parts are chosen on the host.

REQUIRES: p, q ≥ 1. The graph should be trimmed to its (q, p)-core beforehand.

    types          the graph and the query, the price of memory
    anchor         chooses the layer and ranks its vertices; two_hop_cpu, two_hop_cuda, two_hop.cu
    estimate       how much work a search would be
    bcpar_cpu      divides a graph within a budget of memory
    search_cpu     workspaces, threads and the search of roots
    search_cuda    batches and launches, whose sizes job_cuda finds; compact.cu

Oracle: brute force, closed forms and known counts (tests/algorithms/test_gbc.py).
"""

from __future__ import annotations

from math import comb
from types import ModuleType

import numpy as np

from lpma.arrays import array_module, device_of, to_host

from ...arrays import Array, by_device
from .. import progress
from ..bipartite import Bipartite
from . import two_hop_cpu
from .anchor import choose_anchor
from .bcpar_cpu import bcpar
from .types import Search

__all__ = ["Search", "count", "count_by", "histogram", "total"]


def count(b: Bipartite, p: int, q: int, memory_limit: int | None = None) -> int:
    """The number of (p, q)-bicliques, p vertices on the left: a Python int, exact.

    memory_limit: bytes that the search may hold, in the sense of the module's docstring; None: no
    limit. Raises BatchError if it is too small for one root; the message says how much is needed.
    """
    with device_of(b.left_indptr):
        return count_by(choose_anchor(b, p, q), memory_limit)


def count_by(search: Search, memory_limit: int | None = None) -> int:
    """As `count`, by a search that `choose_anchor` has prepared."""
    return total(histogram(search, memory_limit), search.least)


def total(found: Array, q: int) -> int:
    """The number of bicliques with q vertices on the other layer: the sum of found[c] · C(c, q).

    REQUIRES: a histogram of a search with `least` ≤ q."""
    return sum(int(found[c]) * comb(c, q) for c in np.flatnonzero(found).tolist() if c >= q)


def histogram(search: Search, memory_limit: int | None = None) -> Array:
    """uint64[largest degree + 1], on the host: at c, for c ≥ `search.least`, how many of the
    search's subsets have c common neighbours; entries below are meaningless."""
    graph = search.graph
    degrees = graph.left_degrees
    bins = int(degrees.max()) + 1 if len(degrees) else 1
    if search.depth == 1:
        of_vertices: Array = np.bincount(to_host(degrees), minlength=bins)
        return of_vertices.astype(np.uint64)
    engine = by_device(graph.left_indptr, __name__, "search")
    if memory_limit is not None:
        return _in_parts(engine, search, bins, memory_limit)
    two_hop = by_device(graph.left_indptr, __name__, "two_hop")
    return engine.search(search, two_hop.num_candidates(graph, search.least), bins, None)


def _in_parts(engine: ModuleType, whole: Search, bins: int, memory_limit: int) -> Array:
    """As `histogram`, summed over parts, which the engine's `prices` keep within the limit."""
    xp, depth, least = array_module(whole.graph.left_indptr), whole.depth, whole.least
    host = whole.graph.on_host()
    num_candidates = two_hop_cpu.num_candidates(host, least)
    num_candidates[num_candidates < depth - 1] = 0
    prices = engine.prices(depth, bins)
    total = np.zeros(bins, np.uint64)
    counted, candidates = 0, int(num_candidates.sum())
    for part in bcpar(host, num_candidates, least, prices, engine.WORD, memory_limit):
        of_part = int(part.num_candidates.sum())
        graph = Bipartite(*map(xp.asarray, vars(part.graph).values()))
        with progress.part(counted, counted + of_part, of=candidates):
            found = Search(graph, depth, least), part.num_candidates, bins, memory_limit
            total += engine.search(*found)
        counted += of_part
    return total
