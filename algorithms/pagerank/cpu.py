"""PageRank on the CPU: power iteration in threads, a compiled call per round and piece of the rows;
in a small graph (`pieces.is_small`) in one thread, a compiled call for all rounds.

Every vertex *pulls* along the rows of the transpose, so that each rank has one writer. A vertex
leaves rank(u)/w(u), its *share*, for the next round while it writes its rank, so that a round is
one pass with one random read per edge. Where a cache does not hold all shares, they stand in the
order of out-degree: on graphs with hubs most reads then go to a few cache lines. Where it does,
vertices stay in their order, in which neighbours often have neighbouring ids. In a small graph all
is in a cache, and most of the time would go to loops that end otherwise than foreseen: there rows
stand by their lengths, so that one after the other ends alike.

An undirected graph takes Chebyshev steps where they are worth it (`steps.py`): a round then reads
the ranks of two rounds, and writes over the older ones. A small directed graph takes sweeps
(`sweeps.py`) after a few rounds, which suffice where ranks even out fast or are nearly right.

The order of additions is always the same: so are the ranks, in every run with the same number of
threads.

Requires rows in NumPy's arrays, C-contiguous.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows, is_small

from ..views.simple import View
from .pull import pull
from .steps import FIRST, POWER, next_omega
from .sweeps import sweep

Array = npt.NDArray[Any]

CACHED = 1 << 17  # shares that fit in a core's cache
BEFORE_SWEEPS = 5  # rounds of power iteration


class Pulled(NamedTuple):
    """The transpose's rows, with the places of shares in place of vertices."""

    indptr: Array  # int64[n+1]
    places: Array  # uint32[m]: where the share of each entry's vertex stands
    place: Array  # uint32[n]: where the share of each row's vertex stands
    order: Array | None = None  # int64[n]: the vertex of each row; None: the rows are in order


def by_lengths(reverse: View) -> Pulled:
    """The transpose's rows from the shortest to the longest, and shares in the same order."""
    n = reverse.num_rows
    lengths = np.diff(reverse.indptr)
    # Keys of 16 bits are sorted by radix. Longer rows than they count are few, in any order.
    order = np.argsort(np.minimum(lengths, 0xFFFF).astype(np.uint16), kind="stable")
    place, ordered = np.empty(n, np.uint32), np.arange(n, dtype=np.uint32)
    place[order] = ordered
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(lengths[order], out=indptr[1:])
    places = np.empty_like(reverse.indices)
    _place_rows(order, reverse.indptr, reverse.indices, place, indptr, places)
    return Pulled(indptr, places, ordered, order)


@compiled
def _place_rows(
    order: Array, indptr: Array, indices: Array, place: Array, to: Array, places: Array
) -> None:
    for i in range(len(order)):
        shift = to[i] - indptr[order[i]]
        for e in range(indptr[order[i]], indptr[order[i] + 1]):
            places[e + shift] = place[indices[e]]


def by_places(view: View, reverse: View) -> Pulled:
    """The transpose's rows with the places of shares instead of vertices: those of many vertices in
    the order of their out-edges, the most first."""
    n = view.num_rows
    if n <= CACHED:
        return Pulled(reverse.indptr, reverse.indices, np.arange(n, dtype=np.uint32))
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
    reverse_weights: Array | None, teleport: Array | None, start: Array | None, damping: float,
    tol: float, max_iter: int, symmetric: bool,
) -> tuple[Array, bool]:  # fmt: skip
    """float64[n]: the ranks; and whether a round changes them by less than tol. REQUIRES: with
    weights, rows in order.

    vertices: bool[n], which rows are vertices; None: all. weights, reverse_weights: float64[m], of
    the entries of the view and of the transpose; None: 1 each. teleport, start: float64[n], where
    the surfer jumps to and the first ranks; None: every vertex alike. symmetric: the rows are
    those of the transpose."""
    rows = view.num_rows
    is_vertex = np.ones(rows, np.bool_) if vertices is None else vertices
    n = int(is_vertex.sum())
    if n == 0:
        return np.zeros(rows), True
    leaving = weight_leaving(view, weights)
    ranks = np.where(is_vertex, 1 / n, 0.0) if start is None else start.copy()
    if pulled.order is not None:
        is_vertex, leaving, ranks = (x[pulled.order] for x in (is_vertex, leaving, ranks))
        teleport = None if teleport is None else teleport[pulled.order]
    inverse = np.divide(1.0, leaving, out=np.zeros(rows), where=leaving > 0)
    shares, next_shares = np.empty(rows), np.zeros(rows)
    shares[pulled.place] = ranks * inverse
    dangling = float(ranks[leaving == 0].sum())
    even = 1 / n if teleport is None else 1.0
    if is_small(view.indptr):
        ranks, converged = _rounds(
            *pulled[:3], is_vertex, reverse_weights, inverse, shares, next_shares, ranks, teleport,
            even, damping, dangling, tol, max_iter, symmetric,
        )  # fmt: skip
        return _in_order(ranks, pulled), converged
    to, once, last, omega, limit = ranks, np.empty(0), 0.0, POWER, tol
    for _ in range(max_iter):
        base = (1 - damping + damping * dangling) * even
        pieces = by_rows(
            pull, pulled.indptr, *pulled[:3], is_vertex, reverse_weights, inverse, shares,
            next_shares, ranks, to, once, teleport, base, damping, omega,
        )  # fmt: skip
        change, dangling, _ = (sum(column) for column in zip(*pieces, strict=True))
        if change < limit:
            return _in_order(ranks, pulled), True
        shares, next_shares = next_shares, shares
        ranks, to = to, ranks
        omega = next_omega(omega, change, last, damping, symmetric)
        last = change
        if omega == FIRST:
            to, limit = np.zeros_like(ranks), tol * damping
    return _in_order(ranks, pulled), False


def _in_order(ranks: Array, pulled: Pulled) -> Array:
    """The ranks by vertex instead of by row."""
    if pulled.order is None:
        return ranks
    by_vertex = np.empty_like(ranks)
    by_vertex[pulled.order] = ranks
    return by_vertex


def weight_leaving(view: View, weights: Array | None) -> Array:
    """float64[n]: the weight of the edges that leave each vertex."""
    if weights is None:
        return np.diff(view.indptr).astype(np.float64)
    leaving = np.empty(view.num_rows)
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
def _rounds(
    indptr: Array, places: Array, place: Array, is_vertex: Array, weights: Array | None,
    inverse: Array, shares: Array, next_shares: Array, ranks: Array, teleport: Array | None,
    even: float, damping: float, dangling: float, tol: float, max_iter: int, symmetric: bool,
) -> tuple[Array, bool]:  # fmt: skip
    """All rounds of `iterate`, by one thread. Returns the ranks, and whether they converged."""
    to, once, last, omega, limit = ranks, np.empty(0), 0.0, POWER, tol
    rounds, sweep_at = 0, max_iter if symmetric or damping == 1 else BEFORE_SWEEPS
    while rounds < max_iter:
        if rounds == sweep_at:
            sweeps, dangling = sweep(
                indptr, places, place, is_vertex, weights, inverse, shares, ranks, teleport, even,
                damping, dangling, tol, max_iter - rounds,
            )  # fmt: skip
            rounds += sweeps
            continue
        rounds += 1
        base = (1 - damping + damping * dangling) * even
        change, dangling, _ = pull(
            0, len(ranks), indptr, places, place, is_vertex, weights, inverse, shares, next_shares,
            ranks, to, once, teleport, base, damping, omega,
        )  # fmt: skip
        if change < limit:
            return ranks, True
        shares, next_shares = next_shares, shares
        ranks, to = to, ranks
        omega = next_omega(omega, change, last, damping, symmetric)
        last = change
        if omega == FIRST:
            to, limit = np.zeros_like(ranks), tol * damping
    return ranks, False
