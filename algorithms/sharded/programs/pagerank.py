"""PageRank over shards: each pulls along the in-edges of its rows.

`algorithms.pagerank` has the definition. A shard holds the *shares* (rank over the weight of the
out-edges) of its own rows and of the rows of others that its entries name (`views.halo`): these
come once a round, eight bytes each. Sums are taken in the order of the shards, so that all of them
continue or end alike.

A round is that of `pagerank.cpu`, or of sharded.cu on a device. The shares that entries name most
come first, so that most reads go to a few cache lines.
"""

from __future__ import annotations

import numpy as np

from lpma.arrays import all_of, any_of, array_module, count_true, to_host
from lpma.cpu.pieces import by_rows
from lpma.errors import BatchError

from ...arrays import Array, by_device, inverse_of
from ...pagerank.cpu import pull
from ...pagerank.steps import POWER
from ...views.simple import View
from ..runtime.state import ShardState
from ..runtime.types import Part, Steps
from .views import Halo, exchanged, halo, present_rows, transposed_rows


def pagerank(state: ShardState, damping: float, tol: float, max_iter: int, weighted: bool) -> Steps:
    """(float64: the ranks of the owned rows; whether they converged)."""
    problem = _problem(state.part) if weighted else ""
    _, problems = yield state.nothing(), problem
    if any(problems):
        raise BatchError(next(filter(None, problems)))
    xp = state.xp
    turned, weights = yield from transposed_rows(state, weighted)
    is_vertex = yield from present_rows(state)
    across = yield from halo(state, "transposed", turned)
    leaving = _leaving(state.part, weighted)
    inverse = xp.where(leaving > 0, 1 / xp.where(leaving > 0, leaving, 1), 0.0)
    name = "places, weighted" if weighted else "places"
    if name not in state.cache:
        state.cache[name] = _places(state, turned)
    place, places = state.cache[name]
    of_rows = turned, places, place, is_vertex, weights, inverse
    _, counts = yield state.nothing(), count_true(is_vertex)
    vertices = sum(counts)
    ranks = xp.where(is_vertex, 1 / max(vertices, 1), 0.0)
    lists = Halo([place[rows] for rows in across.receive], [place[rows] for rows in across.send])
    shares, later = xp.zeros((2, state.num_rows))
    own = state.owned
    shares[place[own]] = (ranks * inverse)[own]
    change, dangling = 0.0, float(ranks[is_vertex & (leaving == 0)].sum())
    converged = vertices == 0
    for number in range(max_iter + 1):
        said = yield from exchanged(state, lists, shares, (change, dangling))
        if number and sum(change for change, _ in said) < tol:
            converged = True
        if converged or number == max_iter:
            break
        base = (1 - damping + damping * sum(one for _, one in said)) / vertices
        change, dangling = _round(*of_rows, shares, later, ranks, base, damping)
        shares, later = later, shares
    return to_host(ranks[own]), converged


def _problem(part: Part) -> str:
    """Why edges cannot be followed by the weights of a part; empty if they can."""
    weights = part.weights
    if weights is None:
        return "weighted: this graph has no weights; give a weighted one, or leave it"
    if not all_of(array_module(weights).isfinite(weights)) or any_of(weights < 0):
        return "weighted: weights must be finite and not negative"
    return ""


def _leaving(part: Part, weighted: bool) -> Array:
    """float64[n]: the weight of the edges that leave each row."""
    if not weighted:
        degrees: Array = array_module(part.indptr).diff(part.indptr).astype(np.float64)
        return degrees
    assert part.weights is not None
    leaving: Array = by_device(part.indptr, "algorithms.pagerank").weight_leaving(
        View(part.indptr, part.indices), part.weights.astype(np.float64)
    )
    return leaving


def _round(
    turned: View, places: Array, place: Array, is_vertex: Array, weights: Array | None,
    inverse: Array, shares: Array, later: Array, ranks: Array, base: float, damping: float,
) -> tuple[float, float]:  # fmt: skip
    """Write the ranks of owned rows, and their shares to `later`. Returns how much ranks change,
    and how much of the new ones is dangling."""
    if turned.on_device:
        from . import cuda

        return cuda.pull(
            turned.indptr, places, place, is_vertex, weights, inverse, shares, later, ranks, base,
            damping,
        )  # fmt: skip
    pieces = by_rows(
        pull, turned.indptr, turned.indptr, places, place, is_vertex, weights, inverse, shares,
        later, ranks, ranks, np.empty(0), None, base, damping, POWER,
    )  # fmt: skip
    change, dangling, _ = (float(sum(column)) for column in zip(*pieces, strict=True))
    return change, dangling


def _places(state: ShardState, turned: View) -> tuple[Array, Array]:
    """uint32[n]: a number for each row, smallest for those that entries name most; and that of each
    entry. On a device, whose cache has room for many shares, the rows themselves."""
    if turned.on_device:
        return state.xp.arange(state.num_rows, dtype=np.uint32), turned.indices
    times = np.bincount(turned.indices, minlength=state.num_rows)
    place = inverse_of(np.argsort(-times, kind="stable"))
    return place, place[turned.indices]
