"""Connected components: which vertices a path joins, whatever the directions of its edges.

Source: Sutton, Ben-Nun and Barak, "Optimizing parallel graph connectivity computation via subgraph
sampling", IPDPS 2018 (*Afforest*). Vertices hang in trees; an edge hooks the root with the larger
id under the smaller, so a root is the smallest id of its tree and, at the end, the label. Two edges
a vertex already join most of the graph: after them the largest tree is guessed from a sample, and
the vertices in it need not look at their other edges, because the far end of each will.

That needs every edge at both ends. Where only out-edges are at hand every edge is linked, which
costs less than a transpose: nearly all of them find both ends in one tree.

A row that is no vertex has no edge, hangs alone, and is labelled NONE at the end.

Threads hook by compare-and-swap, and only a root, so no hook is lost. A parent only ever changes to
a smaller member of the same tree; a thread that reads an old one starts higher up its path, and
comes to the same root. Labels are therefore the same in every run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import device_of
from lpma.cpu.atomics import compare_and_swap
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows

from ..views.directed import is_symmetric, present, rows
from ..views.simple import View

Array = npt.NDArray[Any]

SAMPLED_EDGES = 2  # of each vertex, before the largest tree is guessed
SAMPLED_VERTICES = 1024
NONE = -1


def connected_components(s: Any) -> Array:
    """The smallest vertex id of each vertex's (weak) component: int32[n]; −1 for a row that is no
    vertex (`Snapshot.present`), which is in none.

    s: a Snapshot, a scipy CSR matrix, or (indptr, indices), read as an undirected graph; but for a
    Snapshot every row is a vertex. Raises `lpma.BatchError` on an s that is no graph."""
    return labels(rows(s), is_symmetric(s), present(s))


def labels(view: View, is_symmetric: bool, present: Array | None) -> Array:
    """The same of rows; is_symmetric: every edge stands in the rows of both ends. present: bool[n],
    which rows are vertices; None: all."""
    with device_of(view.indptr):
        if view.on_device:
            from .cuda import components

            found = components(view.indptr, view.indices, is_symmetric)
        else:
            found = _afforest(view, is_symmetric)
        if present is not None:
            found[~present] = NONE
    return found


def _afforest(view: View, is_symmetric: bool) -> Array:
    indptr, indices = view.indptr, view.indices
    parent = np.arange(view.num_vertices, dtype=np.int32)
    for k in range(SAMPLED_EDGES):
        by_rows(_link_one, indptr, indptr, indices, parent, k)
        by_rows(compress, indptr, parent)
    largest = _largest_tree(parent) if is_symmetric else NONE
    by_rows(_link_rest, indptr, indptr, indices, parent, largest)
    by_rows(compress, indptr, parent)
    return parent


def _largest_tree(parent: Array) -> int:
    """The root that most of a sample hangs under: the same sample in every run."""
    if len(parent) == 0:
        return NONE
    sample = np.random.default_rng(0).integers(0, len(parent), SAMPLED_VERTICES)
    roots, counts = np.unique(parent[sample], return_counts=True)
    return int(roots[counts.argmax()])


@compiled
def link(u: int, v: int, parent: Array) -> None:
    """Hook the larger root of the two trees under the smaller, unless they are one."""
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
        if parent[u] != largest:
            for e in range(indptr[u] + SAMPLED_EDGES, indptr[u + 1]):
                link(u, np.int64(indices[e]), parent)


@compiled
def compress(first: int, last: int, parent: Array) -> None:
    """Hang each vertex directly under its root."""
    for u in range(first, last):
        while parent[u] != parent[parent[u]]:
            parent[u] = parent[parent[u]]
