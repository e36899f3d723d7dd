"""Bicliques with two vertices on one side, counted from wedges: paths u, v, w of two edges.

*Histogram*: for every c, how many pairs of vertices of one side have c common neighbours. Such a
pair is in C(c, q) of the (2, q)-bicliques, whatever q is. The work is one step per wedge: the sum
of C(d, 2) over the degrees d of the other side.

*Butterflies*, the (2, 2)-bicliques: a butterfly is found from its first vertex in the order by
degree over both sides, over wedges whose middle and end come after it. There are at most as many
as the sum, over all edges, of the smaller degree of the two ends (Wang, Lin, Qin, Zhang and Zhang,
"Vertex priority based butterfly counting for large-scale bipartite networks", PVLDB 12(10), 2019,
doi:10.14778/3339490.3339497). The i-th wedge between the same ends forms i - 1 butterflies with
those before it, so no pairs are listed.

Graphs are trimmed and ordered by degree here, and counted on their device: `cpu`, `cuda`.

Oracle: brute force and known counts (tests/algorithms/test_bicliques.py).
"""

from __future__ import annotations

from lpma.arrays import device_of, to_host

from ...arrays import Array, by_device
from ..bipartite import Bipartite, by_degree, first_after, trimmed
from ..progress import part


def butterflies(b: Bipartite) -> int:
    """The number of (2, 2)-bicliques."""
    with device_of(b.left_indptr):
        ranked = by_degree(trimmed(b, 2, 2))
        from_left, from_right = first_after(ranked)
        count = by_device(b.left_indptr, __name__).butterflies
        with part(0, 1, of=2):
            of_left = int(count(ranked, from_left))
        with part(1, 2, of=2):
            return of_left + int(count(ranked.swapped(), from_right))


def pairs(b: Bipartite, least: int = 1) -> Array:
    """uint64[largest left degree + 1], on the host: at c, for c ≥ `least` ≥ 1, the number of pairs
    of left vertices with c common neighbours, and 0 below."""
    with device_of(b.left_indptr):
        ranked = by_degree(trimmed(b, 2, least))
        found: Array = to_host(by_device(b.left_indptr, __name__).histogram(ranked, least))
        return found
