"""PageRank on the CPU: power iteration in threads, a compiled call per round and piece of the rows.

Every vertex *pulls* along the rows of the transpose, so that each rank has one writer. A vertex
leaves rank(u)/w(u), its *share*, for the next round while it writes its rank, so that a round is
one pass with one random read per edge. Shares stand in the order of out-degree: on graphs with hubs
most reads then go to a few cache lines.

Sums are taken in the order of the rows: ranks are the same in every run with the same number of
threads.

Requires rows in NumPy's arrays, C-contiguous.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows

from ..views.simple import View

Array = npt.NDArray[Any]


class Pulled(NamedTuple):
    """The transpose's rows, with the places of shares in place of vertices."""

    indptr: Array  # int64[n+1]
    places: Array  # uint32[m]: where the share of each entry's vertex stands
    place: Array  # uint32[n]: where the share of each vertex stands


def by_places(view: View, reverse: View) -> Pulled:
    """The transpose's rows with the places of shares instead of vertices. The vertices with the
    most out-edges have the first places."""
    n = view.num_vertices
    place = np.empty(n, np.uint32)
    place[np.argsort(-np.diff(view.indptr), kind="stable")] = np.arange(n, dtype=np.uint32)
    places = np.empty_like(reverse.indices)
    by_rows(_look_up, reverse.indptr, reverse.indptr, reverse.indices, place, places)
    return Pulled(reverse.indptr, places, place)


@compiled
def _look_up(
    first: int, last: int, indptr: Array, indices: Array, place: Array, places: Array
) -> None:
    for e in range(indptr[first], indptr[last]):
        places[e] = place[indices[e]]


def iterate(
    view: View, pulled: Pulled, vertices: Array | None, weights: Array | None,
    reverse_weights: Array | None, damping: float, tol: float, max_iter: int,
) -> tuple[Array, bool]:  # fmt: skip
    """float64[n]: the ranks; and whether they changed by less than tol in the last round.

    vertices: bool[n], which rows are vertices; None: all. weights, reverse_weights: float64[m], of
    the entries of the view and of the transpose; None: 1 each."""
    rows = view.num_vertices
    is_vertex = np.ones(rows, np.bool_) if vertices is None else vertices
    n = int(is_vertex.sum())
    if n == 0:
        return np.zeros(rows), True
    leaving = weight_leaving(view, weights)
    inverse = np.divide(1.0, leaving, out=np.zeros(rows), where=leaving > 0)
    ranks = np.where(is_vertex, 1 / n, 0.0)
    shares, next_shares = np.empty(rows), np.zeros(rows)
    shares[pulled.place] = ranks * inverse
    dangling = float(ranks[leaving == 0].sum())
    for _ in range(max_iter):
        base = (1 - damping + damping * dangling) / n
        pieces = by_rows(
            pull, pulled.indptr, *pulled, is_vertex, reverse_weights, inverse, shares,
            next_shares, ranks, base, damping,
        )  # fmt: skip
        change, dangling = (sum(column) for column in zip(*pieces, strict=True))
        shares, next_shares = next_shares, shares
        if change < tol:
            return ranks, True
    return ranks, False


def weight_leaving(view: View, weights: Array | None) -> Array:
    """float64[n]: the weight of the edges that leave each vertex."""
    if weights is None:
        return np.diff(view.indptr).astype(np.float64)
    leaving = np.empty(view.num_vertices)
    by_rows(_sum_rows, view.indptr, view.indptr, weights, leaving)
    return leaving


@compiled
def _sum_rows(first: int, last: int, indptr: Array, values: Array, sums: Array) -> None:
    for u in range(first, last):
        total = 0.0
        for e in range(indptr[u], indptr[u + 1]):
            total += values[e]
        sums[u] = total


@compiled
def pull(
    first: int, last: int, indptr: Array, places: Array, place: Array, is_vertex: Array,
    weights: Array | None, inverse: Array, shares: Array, next_shares: Array, ranks: Array,
    base: float, damping: float,
) -> tuple[float, float]:  # fmt: skip
    """One round for the vertices among first … last - 1. Returns how much their ranks change, and
    how much of the new ranks is dangling. Ranks and shares of rows that are not vertices stay 0."""
    change = dangling = 0.0
    for u in range(first, last):
        if not is_vertex[u]:
            continue
        pulled = 0.0
        for e in range(indptr[u], indptr[u + 1]):
            if weights is None:
                pulled += shares[places[e]]
            else:
                pulled += weights[e] * shares[places[e]]
        rank = base + damping * pulled
        change += abs(rank - ranks[u])
        ranks[u] = rank
        next_shares[place[u]] = rank * inverse[u]
        if inverse[u] == 0.0:
            dangling += rank
    return change, dangling
