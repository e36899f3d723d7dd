"""Bipartite graphs under ranks: either side numbered from the highest degree down.

Hubs' entries then lie together, and a row ends with what has the least degree, so that "after u in
the order" is the end of every row. Across the sides the order is by degree too, the left side first
among equals: `first_after` says where, in one side's numbers, the vertices after each of the
other's begin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import array_module
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import together

from ..triangles.cpu import by_falling_degree
from .bipartite import Bipartite

Array = npt.NDArray[Any]  # or cupy.ndarray


def by_degree(b: Bipartite) -> Bipartite:
    """The same graph, both sides from the highest degree down, ties by number."""
    if b.on_device:
        from .bipartite_cuda import by_degree as on_device

        return on_device(b)
    left, right = by_falling_degree(b.left_indptr), by_falling_degree(b.right_indptr)
    ranked = [
        (_starts(b.left_indptr, left), left, right, b.right_indptr, b.right_indices),
        (_starts(b.right_indptr, right), right, left, b.left_indptr, b.left_indices),
    ]
    rows = together(_append_by_rank, ranked)
    return Bipartite(
        ranked[0][0], rows[0], ranked[1][0], rows[1], b.left_ids[left], b.right_ids[right]
    )


def first_after(b: Bipartite) -> tuple[Array, Array]:
    """(int64[a], int64[b]): for each vertex the least number, on the other side, of those after it
    in the order by degree. REQUIRES: numbers by degree."""
    xp = array_module(b.left_indptr)
    left, right = -b.left_degrees, -b.right_degrees  # rising
    return (
        xp.searchsorted(right, left, side="left").astype(np.int64),
        xp.searchsorted(left, right, side="right").astype(np.int64),
    )


def _starts(indptr: Array, order: Array) -> Array:
    starts = np.zeros(len(indptr), np.int64)
    np.cumsum(np.diff(indptr)[order], out=starts[1:])
    return starts


@compiled
def _append_by_rank(
    starts: Array, order: Array, other_order: Array, other_indptr: Array, other: Array
) -> Array:
    """Rows of one side: every vertex of the other, in its order, appends its rank to its
    neighbours' rows, which so come out sorted."""
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
