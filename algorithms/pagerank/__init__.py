"""PageRank: the share of time that a surfer spends at each vertex.

Source: Page, Brin, Motwani and Winograd, "The PageRank citation ranking: bringing order to the
web", 1999, as NetworkX defines it:

    rank(v) = (1 − d)/n + d · ( Σ over u → v of rank(u) · w(u, v)/w(u)  +  dangling/n )

w(u) is the weight of all edges that leave u, an unweighted edge weighing 1, and `dangling` the rank
of the vertices with w(u) = 0, spread evenly over all n. n counts the vertices: a row that is none
(`Snapshot.present`) has rank 0, gives none and gets none. Power iteration: every vertex *pulls*
along the rows of the transpose, so that each rank has one writer. A vertex leaves rank(u)/w(u), its
*share*, for the next round while it writes its rank, so that a round is one pass with one random
read an edge. On the CPU shares stand in the order of out-degree: on graphs with hubs most reads
then go to a few cache lines. It ends when the ranks change by less than tol in all; what is then
missing is less than tol · d/(1 − d).

Requires rows of the transpose, cached on a Snapshot. Sums are taken in the order of the rows:
ranks are the same in every run with as many threads.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpma.arrays import device_of
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows
from lpma.errors import BatchError

from ..views.cache import cached
from ..views.directed import present, rows, transposed, transposed_weights, weights_of
from ..views.simple import View

Array = npt.NDArray[Any]


class NotConverged(UserWarning):
    """The ranks still changed by more than tol in the last round that was allowed."""


def pagerank(
    s: Any,
    damping: float = 0.85,
    tol: float = 1e-6,
    max_iter: int = 100,
    weighted: bool = False,
) -> Array:
    """The rank of every vertex: float64[n], which sums to 1; 0 for a row that is no vertex.

    s: a Snapshot, a scipy CSR matrix, or (indptr, indices), read with its directions, loops and
    repeats; but for a Snapshot (its `present`) every row is a vertex. damping: the probability,
    from 0 to 1, to follow an edge. tol: stop when the absolute changes of all ranks sum to less.
    max_iter: rounds at most; where they do not suffice, the last ranks are returned with the
    warning NotConverged (not with tol = 0, which asks for all rounds).
    weighted: follow an edge with a probability in proportion to its weight, the sum of what was
    inserted. Raises `lpma.BatchError` on an s that is no graph, an argument out of its range, and
    weights that are absent, negative or not finite."""
    ranks, converged = power_iteration(s, damping, tol, max_iter, weighted)
    if not converged and tol > 0:
        warnings.warn(
            f"after {max_iter} rounds ranks still change by more than {tol:g}: allow more",
            NotConverged,
            stacklevel=2,
        )
    return ranks


def power_iteration(
    s: Any, damping: float, tol: float, max_iter: int, weighted: bool
) -> tuple[Array, bool]:
    """The ranks, and whether they changed by less than tol in the last round. See `pagerank`."""
    _check(damping, tol, max_iter)
    view = rows(s)
    reverse = transposed(s)
    vertices = present(s)
    weights = weights_of(s) if weighted else None
    reverse_weights = transposed_weights(s) if weighted else None
    if not view.on_device:
        pulled = cached(s, "read by places", lambda: _by_places(view, reverse))
        return _iterate(view, pulled, vertices, weights, reverse_weights, damping, tol, max_iter)
    from .cuda import iterate

    with device_of(view.indptr):
        return iterate(
            view, reverse, vertices, weights, reverse_weights, damping, tol, int(max_iter)
        )


class Pulled(NamedTuple):
    """What a round reads and writes: the transpose's rows, by the places of shares."""

    indptr: Array  # int64[n+1]
    places: Array  # uint32[m]: where the share of each entry's vertex stands
    place: Array  # uint32[n]: where that of each vertex stands


def _by_places(view: View, reverse: View) -> Pulled:
    """The transpose's rows with the places of shares instead of vertices: first those of the
    vertices with the most out-edges."""
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


def _iterate(
    view: View, pulled: Pulled, vertices: Array | None, weights: Array | None,
    reverse_weights: Array | None, damping: float, tol: float, max_iter: int,
) -> tuple[Array, bool]:  # fmt: skip
    """`power_iteration` on the CPU. vertices: bool[n], which rows are; None: all."""
    rows = view.num_vertices
    is_vertex = np.ones(rows, np.bool_) if vertices is None else vertices
    n = int(is_vertex.sum())
    if n == 0:
        return np.zeros(rows), True
    leaving = _weight_leaving(view, weights)
    inverse = np.divide(1.0, leaving, out=np.zeros(rows), where=leaving > 0)
    ranks = np.where(is_vertex, 1 / n, 0.0)
    shares, next_shares = np.empty(rows), np.zeros(rows)
    shares[pulled.place] = ranks * inverse
    dangling = float(ranks[leaving == 0].sum())
    for _ in range(max_iter):
        base = (1 - damping + damping * dangling) / n
        pieces = by_rows(
            _pull, pulled.indptr, *pulled, is_vertex, reverse_weights, inverse, shares,
            next_shares, ranks, base, damping,
        )  # fmt: skip
        change, dangling = (sum(column) for column in zip(*pieces, strict=True))
        shares, next_shares = next_shares, shares
        if change < tol:
            return ranks, True
    return ranks, False


def _check(damping: float, tol: float, max_iter: int) -> None:
    if not 0 <= damping <= 1:
        raise BatchError(f"damping: a probability from 0 to 1, not {damping!r}")
    if not tol >= 0:
        raise BatchError(f"tol: 0 or more, not {tol!r}")
    if isinstance(max_iter, bool) or not isinstance(max_iter, int | np.integer) or max_iter < 0:
        raise BatchError(f"max_iter: a number of rounds, not {max_iter!r}")


def _weight_leaving(view: View, weights: Array | None) -> Array:
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
def _pull(
    first: int, last: int, indptr: Array, places: Array, place: Array, is_vertex: Array,
    weights: Array | None, inverse: Array, shares: Array, next_shares: Array, ranks: Array,
    base: float, damping: float,
) -> tuple[float, float]:  # fmt: skip
    """One round for the vertices among first … last - 1: how much their ranks change, and how much
    of the new ones is dangling. Ranks and shares of other rows stay 0."""
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
