"""Tracked PageRank on the CPU: conjugate gradients over the tracker's rows, in threads.

A pass is three compiled calls for each piece of the rows: the product of a direction with the
matrix, a step along it, and the next direction. Sums are taken in the order of the pieces, so that
ranks are the same in every run with as many threads.

Requires rows in NumPy's arrays, C-contiguous.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import pass_over
from lpma.pma.keys import HALF, LOW

from ...arrays import Array
from ..types import Change, TrackedRows, extended


@dataclass
class State:
    """Of every row, float64[n]; 0 for one without edges."""

    shares: Array
    rest: Array


def begin(rows: TrackedRows, damping: float) -> State:
    """Every share alike, so that the rest sums to 0."""
    degree = np.diff(rows.indptr).astype(np.float64)
    share = even_share(int(np.count_nonzero(degree)), len(rows.indices), damping)
    shares = np.where(degree > 0, share, 0.0)
    return State(shares, np.where(degree > 0, 1 - (1 - damping) * degree * share, 0.0))


def even_share(vertices: int, entries: int, damping: float) -> float:
    """The share at which the rest sums to 0, of so many vertices with edges."""
    return vertices / ((1 - damping) * max(entries, 1))


def follow(state: State, change: Change, damping: float) -> bool:
    """Bring the state from the rows before to those after: see the package. Returns True."""
    before, after = np.diff(change.before.indptr), np.diff(change.after.indptr)
    n, known = len(after), min(len(before), len(after))
    shares, rest = (extended(x, max(n, len(before))) for x in (state.shares, state.rest))
    new = after > 0
    new[:known] &= before[:known] == 0
    live = int(np.count_nonzero(after))
    shares[:n][new] = even_share(live, len(change.after.indices), damping)
    rest[:n][new] = 1
    _move_rest(change.inserted, 1.0, damping, shares, rest)
    _move_rest(change.deleted, -1.0, damping, shares, rest)
    state.shares, state.rest = shares[:n], rest[:n]
    gone = after == 0
    state.shares[gone] = state.rest[gone] = 0
    return True


@compiled
def _move_rest(keys: Array, sign: float, damping: float, shares: Array, rest: Array) -> None:
    """Add what inserted (sign 1) or deleted (-1) edges change in the rest of their sources."""
    for key in keys:
        u, v = np.int64(key >> HALF), np.int64(key & LOW)
        rest[u] += sign * (damping * shares[v] - shares[u])


def solve(state: State, rows: TrackedRows, damping: float, least: float) -> Array:
    """float64[n]: the ranks, when the rest is at most `least` for each vertex with edges."""
    n, (shares, rest) = rows.num_rows, (state.shares, state.rest)
    degree = np.diff(rows.indptr)
    along, product = np.zeros(n), np.zeros(n)
    enough = least * int(np.count_nonzero(degree))
    size, norm = _step(rows, along, product, 0.0, shares, rest)
    pass_over(_turn, rows.indptr, rows.indptr, rest, along, 0.0)
    while norm > enough:
        found = pass_over(
            _multiply, rows.indptr, rows.indptr, rows.indices, along, product, damping
        )
        before = size
        size, norm = _step(rows, along, product, before / sum(found), shares, rest)
        pass_over(_turn, rows.indptr, rows.indptr, rest, along, size / before)
    ranks = np.where(degree > 0, degree * shares, 1.0) * rows.present
    total = ranks.sum()
    return ranks / total if n else ranks


def _step(
    rows: TrackedRows, along: Array, product: Array, length: float, shares: Array, rest: Array
) -> tuple[float, float]:
    found = pass_over(_advance, rows.indptr, rows.indptr, along, product, length, shares, rest)
    sums = [float(sum(column)) for column in zip(*found, strict=True)]
    return sums[0], sums[1]


@compiled
def _multiply(
    first: int, last: int, indptr: Array, indices: Array, along: Array, product: Array,
    damping: float,
) -> float:  # fmt: skip
    """product = (D − d A) along; returns its product with `along`."""
    total = 0.0
    for u in range(first, last):
        even = odd = 0.0
        e, end = indptr[u], indptr[u + 1]
        degree = end - e
        while e + 1 < end:
            even += along[indices[e]]
            odd += along[indices[e + 1]]
            e += 2
        if e < end:
            even += along[indices[e]]
        product[u] = degree * along[u] - damping * (even + odd)
        total += along[u] * product[u]
    return total


@compiled
def _advance(
    first: int, last: int, indptr: Array, along: Array, product: Array, length: float,
    shares: Array, rest: Array,
) -> tuple[float, float]:  # fmt: skip
    """A step along the direction. Returns rest² / degree and |rest|, summed."""
    size = norm = 0.0
    for u in range(first, last):
        degree = indptr[u + 1] - indptr[u]
        if degree:
            shares[u] += length * along[u]
            rest[u] -= length * product[u]
            size += rest[u] * rest[u] / degree
            norm += abs(rest[u])
    return size, norm


@compiled
def _turn(first: int, last: int, indptr: Array, rest: Array, along: Array, kept: float) -> None:
    """The next direction: the rest over the degrees, and so much of this one."""
    for u in range(first, last):
        degree = indptr[u + 1] - indptr[u]
        along[u] = rest[u] / degree + kept * along[u] if degree else 0.0
