"""What every round of PageRank does on the CPU: rows pull along the transpose.

The entries of a row are added up by turns in two sums, so that an addition need not wait for the
one before it.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from lpma.cpu.jit import compiled

from .steps import FIRST

Array = npt.NDArray[Any]


@compiled
def pull(
    first: int, last: int, indptr: Array, places: Array, place: Array, is_vertex: Array,
    weights: Array | None, inverse: Array, shares: Array, next_shares: Array, ranks: Array,
    to: Array, steps: Array, teleport: Array | None, base: float, damping: float,
    omega: float,
) -> tuple[float, float, float]:  # fmt: skip
    """One round for the vertices among first … last - 1. Returns how much it would change their
    ranks with omega up to 1, how much of the new ranks is dangling, and their sum. Ranks and shares
    of rows that are not vertices stay 0.

    indptr, places, place: as in `cpu.Pulled`. inverse: float64[n], 1 over the weight that leaves
    each row, 0 for none. shares: float64, the ranks times that, each at its place; next_shares:
    where the new ones go, and may be `shares`. to: where the new ranks go; with omega above 1 it
    holds those of the round before, and else may be `ranks`. steps: float64[n], how many times the
    step of power iteration each rank takes; empty: once. base: what a vertex's rank has of its own,
    times its `teleport` if there is one."""
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
