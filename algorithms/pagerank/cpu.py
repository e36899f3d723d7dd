"""PageRank on the CPU: power iteration in threads, a compiled call per round and piece of the rows;
in a small graph (`pieces.is_small`) in one thread.

Every vertex *pulls* along the rows of the transpose, so that each rank has one writer. With its
rank a vertex writes rank(u)/w(u), its *share*, for the next round, so that a round is one pass with
one random read per edge. If a cache does not hold all shares, they are in the order of out-degree:
with hubs most reads then go to a few cache lines. If it does, vertices stay in their order, in
which neighbours often have close ids. In a small graph mispredicted ends of loops would take most
of the time, so rows are in the order of their lengths.

An undirected graph takes Chebyshev steps where they pay (`steps.py`): a round then reads the ranks
of two rounds, and overwrites the older ones. A small directed graph takes sweeps after a few
rounds, which suffice where ranks even out fast or are nearly right.

A *sweep* (Varga, "Matrix iterative analysis", 1962, chapter 3; for PageRank: Arasu, Novak, Tomkins
and Tomlin, "PageRank computation and the structure of the web", WWW 2002) is a round that reads
ranks which it has already written. Two tricks:

  - A vertex's loops return a share l of its rank to it, which slows power iteration: a round leaves
    d · l of the error there. A sweep solves the vertex's own equation: it takes 1/(1 − d · l) times
    the step of a round.
  - Sweeps do not keep the sum of the ranks at 1, so the surfer's jumps are in proportion to the sum
    of the last sweep. Otherwise the sum would return to 1 only by d a sweep.

At the end ranks are scaled to 1, and power iteration ends after a round or a few more, with its own
bound. With damping 1, where ranks may depend on the start, there are no sweeps.

Additions are always in the same order: ranks are the same in every run with as many threads.

Requires rows in NumPy's arrays, C-contiguous.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows, is_small, pass_over

from ..arrays import Array, inverse_of, starts_of
from ..views.simple import View
from .steps import FIRST, POWER, next_omega

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
    place, ordered = inverse_of(order), np.arange(n, dtype=np.uint32)
    indptr = starts_of(lengths[order])
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
    """The transpose's rows with the places of shares instead of vertices; of more than CACHED, in
    the order of falling out-degree."""
    n = view.num_rows
    if n <= CACHED:
        return Pulled(reverse.indptr, reverse.indices, np.arange(n, dtype=np.uint32))
    place = inverse_of(np.argsort(-np.diff(view.indptr), kind="stable"))
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
    """float64[n]: the ranks; and whether a round changes them by less than tol. REQUIRES: rows in
    order, if there are weights.

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
    to, once, last, omega, limit = ranks, np.empty(0), 0.0, POWER, tol
    sweeps = is_small(view.indptr) and not symmetric and damping < 1
    rounds, sweep_at = 0, BEFORE_SWEEPS if sweeps else max_iter
    while rounds < max_iter:
        if rounds == sweep_at:
            more, dangling = sweep(
                *pulled[:3], is_vertex, reverse_weights, inverse, shares, ranks, teleport, even,
                damping, dangling, tol, max_iter - rounds,
            )  # fmt: skip
            rounds += more
            continue
        rounds += 1
        base = (1 - damping + damping * dangling) * even
        pieces = pass_over(
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
def sweep(
    indptr: Array, places: Array, place: Array, is_vertex: Array, weights: Array | None,
    inverse: Array, shares: Array, ranks: Array, teleport: Array | None, even: float,
    damping: float, dangling: float, tol: float, max_iter: int,
) -> tuple[int, float]:  # fmt: skip
    """Sweeps until one changes the ranks by less than tol of their sum. Writes ranks of sum 1, and
    their shares. Returns the number of sweeps, and how much of the ranks is dangling.

    even: what a jump brings to each vertex, times its `teleport` if there is one. dangling: of the
    given ranks. The rest as for `pull`."""
    steps = _steps(indptr, places, place, weights, inverse, damping)
    total, sweeps = 1.0, 0
    while sweeps < max_iter:
        sweeps += 1
        base = ((1 - damping) * total + damping * dangling) * even
        change, dangling, total = pull(
            0, len(ranks), indptr, places, place, is_vertex, weights, inverse, shares, shares,
            ranks, ranks, steps, teleport, base, damping, POWER,
        )  # fmt: skip
        if change < tol * total:
            break
    ranks /= total
    shares /= total
    return sweeps, dangling / total


@compiled
def _steps(
    indptr: Array, places: Array, place: Array, weights: Array | None, inverse: Array,
    damping: float,
) -> Array:  # fmt: skip
    """float64[n]: 1/(1 − d · l) for each row."""
    steps = np.empty(len(place))
    for u in range(len(place)):
        loops = 0.0
        for e in range(indptr[u], indptr[u + 1]):
            if places[e] == place[u]:
                loops += 1.0 if weights is None else weights[e]
        steps[u] = 1 / (1 - damping * loops * inverse[u])
    return steps


@compiled
def pull(
    first: int, last: int, indptr: Array, places: Array, place: Array, is_vertex: Array,
    weights: Array | None, inverse: Array, shares: Array, next_shares: Array, ranks: Array,
    to: Array, steps: Array, teleport: Array | None, base: float, damping: float,
    omega: float,
) -> tuple[float, float, float]:  # fmt: skip
    """One round for the vertices among first … last - 1. Returns how much it would change their
    ranks with omega up to 1, how much of the new ranks is dangling, and their sum. Ranks and shares
    of rows that are not vertices stay 0. A row is added up in two alternating sums, so that an
    addition need not wait for the last.

    indptr, places, place: as in `Pulled`. inverse: float64[n], 1 over the weight that leaves each
    row, 0 for none. shares: float64, ranks times that, each at its place; next_shares: the new
    ones, and may be `shares`. to: the new ranks; with omega above 1 it holds those of the last
    round, else it may be `ranks`. steps: float64[n], how many times the step of power iteration
    each rank takes; empty: once. base: what a rank has of its own, times `teleport` if given."""
    change = dangling = total = 0.0
    for u in range(first, last):
        if not is_vertex[u]:
            continue
        even = odd = 0.0
        e, end = indptr[u], indptr[u + 1]
        while e + 1 < end:
            if weights is None:
                even += shares[places[e]]
                odd += shares[places[e + 1]]
            else:
                even += weights[e] * shares[places[e]]
                odd += weights[e + 1] * shares[places[e + 1]]
            e += 2
        if e < end:
            even += shares[places[e]] if weights is None else weights[e] * shares[places[e]]
        own = base if teleport is None else base * teleport[u]
        rank = own + damping * (even + odd)
        if len(steps) > 0:
            rank = ranks[u] + steps[u] * (rank - ranks[u])
        change += abs(rank - ranks[u])
        if omega > FIRST:
            rank = to[u] + omega * (rank - to[u])
        to[u] = rank
        total += rank
        next_shares[place[u]] = rank * inverse[u]
        if inverse[u] == 0.0:
            dangling += rank
    return change, dangling, total
