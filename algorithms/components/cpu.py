"""Connected components on the CPU.

Source: Sutton, Ben-Nun and Barak, "Optimizing parallel graph connectivity computation via subgraph
sampling", IPDPS 2018 (*Afforest*). Vertices hang in trees. An edge hooks the root with the larger
id under the smaller, so a root is the smallest id of its tree and, at the end, the label. Two edges
per vertex already join most of the graph: after them the largest tree is guessed from a sample, and
the vertices in it need not look at their other edges, because the far end of each will.

That needs every edge at both ends. If only out-edges are at hand, every edge is linked, which
costs less than a transpose: nearly all of them find both ends in one tree.

In a small graph (`pieces.is_small`) one thread does it all, in one compiled call.

Threads hook by compare-and-swap, and only a root, so no hook is lost. A parent only ever changes to
a smaller member of the same tree; a thread that reads an old one starts higher up its path, and
comes to the same root. Labels are therefore the same in every run.

Requires indptr int64[n+1] and indices uint32[m], C-contiguous.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.atomics import compare_and_swap
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows, is_small

Array = npt.NDArray[Any]

SAMPLED_EDGES = 2  # of each vertex, before the largest tree is guessed
SAMPLED_VERTICES = 1024
LEAP = 0x9E3779B1  # from one vertex of the sample to the next: a prime, near 2^32 / 1.618
NO_TREE = -1  # no vertex's parent


def components(indptr: Array, indices: Array, is_symmetric: bool) -> Array:
    """int32[n]: the smallest vertex of each vertex's component.

    is_symmetric: every edge is in the rows of both ends."""
    parent = np.arange(len(indptr) - 1, dtype=np.int32)
    members = np.zeros(len(parent) if is_symmetric else 0, np.int32)  # of trees, in a sample
    if is_small(indptr):
        _alone(indptr, indices, parent, members)
        return parent
    for k in range(SAMPLED_EDGES):
        by_rows(_link_one, indptr, indptr, indices, parent, k)
        by_rows(compress, indptr, parent)
    largest = _largest_tree(parent, members)
    by_rows(_link_rest, indptr, indptr, indices, parent, largest)
    by_rows(compress, indptr, parent)
    return parent


@compiled
def _largest_tree(parent: Array, members: Array) -> int:
    """The root that most vertices of a sample hang under, which is the same in every run; NO_TREE
    without room to count the members, int32[n] of zeros."""
    largest: Any = np.int64(NO_TREE)
    n = len(members)
    if n == 0:
        return largest
    at = np.int64(0)
    for _ in range(SAMPLED_VERTICES):
        root = np.int64(parent[at])
        members[root] += 1
        if largest < 0 or members[root] > members[largest]:
            largest = root
        at = (at + LEAP) % n
    return largest


@compiled
def link(u: int, v: int, parent: Array) -> None:
    """Hook the larger root of the two trees under the smaller, unless they are the same."""
    a, b = parent[u], parent[v]
    while a != b:
        high, low = max(a, b), min(a, b)
        above = parent[high]
        if above == low or (above == high and compare_and_swap(parent, high, high, low)):
            return
        a, b = parent[parent[high]], parent[low]


@compiled
def _link_one(first: int, last: int, indptr: Array, indices: Array, parent: Array, k: int) -> None:
    """Link each vertex with the k-th of its neighbours."""
    for u in range(first, last):
        e = indptr[u] + k
        if e < indptr[u + 1]:
            link(u, np.int64(indices[e]), parent)


@compiled
def _link_rest(
    first: int, last: int, indptr: Array, indices: Array, parent: Array, largest: int
) -> None:
    """Link each vertex that is not in the largest tree with the neighbours not yet taken."""
    for u in range(first, last):
        tree = parent[u]
        if tree != largest:
            for e in range(indptr[u] + SAMPLED_EDGES, indptr[u + 1]):
                v = np.int64(indices[e])
                if parent[v] != tree:  # most often it is the same, and nothing else is to be done
                    link(u, v, parent)
                    tree = parent[u]


@compiled
def compress(first: int, last: int, parent: Array) -> None:
    """Hang each vertex directly under its root."""
    for u in range(first, last):
        while parent[u] != parent[parent[u]]:
            parent[u] = parent[parent[u]]


@compiled
def _alone(indptr: Array, indices: Array, parent: Array, members: Array) -> None:
    """All of `components`, by one thread."""
    n = len(parent)
    for k in range(SAMPLED_EDGES):
        _link_one(0, n, indptr, indices, parent, k)
        compress(0, n, parent)
    _link_rest(0, n, indptr, indices, parent, _largest_tree(parent, members))
    compress(0, n, parent)
