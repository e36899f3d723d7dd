"""Bicliques with two vertices on a side, from wedges: paths over a middle, by their ends.

*Histogram*: for every number c, how many pairs of one side have c common neighbours. Each of them
is in C(c, q) of the (2, q)-bicliques, whatever q is; counts of pairs are small integers, and the
sum is taken in Python's, exact however large. The work is one step a wedge, the sum of C(d, 2) over
the other side.

*Butterflies*, (2, 2)-bicliques, have a side to choose at every vertex: in the order by degree a
butterfly has one first vertex, and is found from there, over wedges whose middle and end come
after it. Over all edges that are at most the sum of the smaller end's degree (Wang, Lin, Qin, Zhang
and Zhang, "Vertex priority based butterfly counting for large-scale bipartite networks", PVLDB 12,
2019). The ends need no table of pairs: of c wedges with the same ends, the i-th makes i - 1 pairs.
"""

from __future__ import annotations

from math import comb
from types import ModuleType

import numpy as np

from lpma.arrays import device_of, to_host

from .bipartite import Bipartite, trimmed
from .order import by_degree, first_after
from .progress import part


def butterflies(b: Bipartite) -> int:
    """The number of (2, 2)-bicliques."""
    with device_of(b.left_indptr):
        ranked = by_degree(trimmed(b, 2, 2))
        from_left, from_right = first_after(ranked)
        count = _counter(b).butterflies
        with part(0, 1, of=2):
            of_left = int(count(ranked, from_left))
        with part(1, 2, of=2):
            return of_left + int(count(ranked.swapped(), from_right))


def pairs(b: Bipartite, least: int = 1) -> dict[int, int]:
    """{c: how many pairs of left vertices have c common neighbours}, for c ≥ `least` ≥ 1."""
    with device_of(b.left_indptr):
        found = to_host(_counter(b).histogram(by_degree(trimmed(b, 2, least)), least))
    return {c: int(found[c]) for c in np.flatnonzero(found).tolist()}


def from_pairs(found: dict[int, int], q: int) -> int:
    """The number of (2, q)-bicliques, from `pairs` with `least` of q at most."""
    return sum(number * comb(c, q) for c, number in found.items())


def _counter(b: Bipartite) -> ModuleType:
    if b.on_device:
        from . import wedges_cuda

        return wedges_cuda
    from . import wedges_cpu

    return wedges_cpu
