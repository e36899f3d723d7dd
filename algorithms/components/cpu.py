"""Connected components on the CPU.

Source: Sutton, Ben-Nun and Barak, "Optimizing parallel graph connectivity computation via subgraph
sampling", IPDPS 2018 (*Afforest*). Vertices hang in trees. An edge hooks the root with the larger
id under the smaller, so a root is the smallest id of its tree and finally its label. Two edges per
vertex join most of the graph. Then the largest tree is guessed from a sample, and its vertices skip
their other edges, since the far ends process them.

That needs every edge at both ends. If only out-edges are at hand, every edge is linked, which costs
less than a transpose: nearly all find both ends in one tree.

A graph of less than `pieces.FEW` entries takes one thread.

Threads hook by compare-and-swap, and only roots, so no hook is lost. A parent only changes to a
smaller member of the same tree; a thread that reads an old one comes to the same root. So labels
are the same in every run.

Requires rows as `ScatteredRows` says, C-contiguous.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cpu import pieces
from lpma.cpu.atomics import compare_and_swap
from lpma.cpu.jit import compiled
from lpma.cpu.threads import run_all
from lpma.snapshot.row_versions import ScatteredRows

from ..arrays import Array

SAMPLED_EDGES = 2  # of each vertex, before the largest tree is guessed
SAMPLED_VERTICES = 1024
LEAP = 0x9E3779B1  # from one vertex of the sample to the next: a prime, near 2^32 / 1.618
NO_TREE = -1  # no vertex's parent


def components(rows: ScatteredRows, is_symmetric: bool) -> Array:
    """int32[n]: the smallest vertex of each vertex's component.

    is_symmetric: every edge is in the rows of both ends."""
    parent = np.arange(rows.num_rows, dtype=np.int32)
    members = np.zeros(len(parent) if is_symmetric else 0, np.int32)  # of trees, in a sample
    arrays = *rows[:3], parent
    n = len(parent)
    parts = [(0, n)] if rows.size < pieces.FEW else pieces.even_rows(n)
    run_all(_link_first, [(*part, *arrays) for part in parts])
    run_all(compress, [(*part, parent) for part in parts])
    largest = _largest_tree(parent, members)
    run_all(_link_rest, [(*part, *arrays, largest) for part in parts])
    run_all(compress, [(*part, parent) for part in parts])
    return parent


@compiled
def _largest_tree(parent: Array, members: Array) -> int:
    """The root that most vertices of a sample hang under; NO_TREE if `members` is empty. members:
    room to count, int32[n] of zeros."""
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
def root_of(vertex: int, parent: Array) -> np.int64:
    """The root of a vertex's tree, for one thread; halves the path to it."""
    at = np.int64(vertex)
    while parent[at] != at:
        parent[at] = parent[parent[at]]
        at = np.int64(parent[at])
    return at


@compiled
def _link_first(
    first: int, last: int, starts: Array, ends: Array, entries: Array, parent: Array
) -> None:
    """Link each vertex with the first of its neighbours."""
    for u in range(first, last):
        for e in range(starts[u], min(starts[u] + SAMPLED_EDGES, ends[u])):
            link(u, np.int64(entries[e]), parent)


@compiled
def _link_rest(
    first: int, last: int, starts: Array, ends: Array, entries: Array, parent: Array, largest: int
) -> None:
    """Link each vertex that is not in the largest tree with its other neighbours."""
    for u in range(first, last):
        tree = parent[u]
        if tree != largest:
            for e in range(starts[u] + SAMPLED_EDGES, ends[u]):
                v = np.int64(entries[e])
                if parent[v] != tree:  # mostly it is the same
                    link(u, v, parent)
                    tree = parent[u]


@compiled
def compress(first: int, last: int, parent: Array) -> None:
    """Hang each vertex directly under its root, except those whose parent is below 0.

    The slice, and the test for a parent below 0, spare a check at each index whether it counts from
    the end."""
    own = parent[first:last]
    for i in range(len(own)):
        root: Any = own[i]
        while root >= 0 and root != parent[root]:
            root = parent[root]
        own[i] = root


@compiled
def leave_out(label: Array, starts: Array, ends: Array, added: Array, none: int) -> None:
    """Label rows that are not vertices `none`: no edge leaves them, they are not among `added`, and
    no edge enters them, or something else would have their label."""
    n = len(label)
    is_vertex = np.zeros(n, np.bool_)
    for u in range(n):
        if starts[u] < ends[u] or label[u] != u:
            is_vertex[u] = is_vertex[label[u]] = True
    is_vertex[added] = True
    for u in range(n):
        if not is_vertex[u]:
            label[u] = none
