"""Bipartite graphs renumbered by rank: each side from the highest degree down.

One order spans both sides: by falling degree, among equals the left side first. A vertex's
neighbours that come after it in the order are then the end of its row; `first_after` says from
which number of the other side on.
"""

from __future__ import annotations

import numpy as np

from lpma.arrays import array_module
from lpma.cpu.jit import compiled
from lpma.cpu.threads import run_all

from ...arrays import Array, starts_of
from ...triangles.cpu import by_falling_degree
from .types import Bipartite


def by_degree(b: Bipartite) -> Bipartite:
    """The same graph with each side renumbered from the highest degree down, ties by number."""
    if b.on_device:
        from . import cuda

        return cuda.by_degree(b)
    left, right = by_falling_degree(b.left_indptr), by_falling_degree(b.right_indptr)
    ranked = [
        (starts_of(np.diff(b.left_indptr)[left]), left, right, b.right_indptr, b.right_indices),
        (starts_of(np.diff(b.right_indptr)[right]), right, left, b.left_indptr, b.left_indices),
    ]
    rows = run_all(_append_by_rank, ranked)
    return Bipartite(
        ranked[0][0], rows[0], ranked[1][0], rows[1], b.left_ids[left], b.right_ids[right]
    )


def first_after(b: Bipartite) -> tuple[Array, Array]:
    """(int64[a], int64[b]): for each vertex, the first number on the other side that comes after it
    in the order. REQUIRES: the graph is numbered by degree, as by `by_degree`."""
    xp = array_module(b.left_indptr)
    left, right = -b.left_degrees, -b.right_degrees  # rising
    return (
        xp.searchsorted(right, left, side="left").astype(np.int64),
        xp.searchsorted(left, right, side="right").astype(np.int64),
    )


@compiled
def _append_by_rank(
    starts: Array, order: Array, other_order: Array, other_indptr: Array, other: Array
) -> Array:
    """The rows of one side. Vertices of the other side append their ranks to their neighbours'
    rows in the order of ranks, so that rows come out sorted."""
    places = np.empty(len(order), np.int64)
    for rank in range(len(order)):
        places[order[rank]] = starts[rank]
    rows = np.empty(len(other), np.uint32)
    for rank in range(len(other_order)):
        v = np.int64(other_order[rank])
        for x in other[other_indptr[v] : other_indptr[v + 1]]:
            rows[places[x]] = rank
            places[x] += 1
    return rows
