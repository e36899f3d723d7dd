"""PageRank over shards: each pulls along the in-edges of its rows.

`algorithms.pagerank` has the definition. A shard holds the *shares* (rank over the weight of the
out-edges) of its own rows and of the rows of others that its entries name: these come once a round,
eight bytes each and nothing else, since both sides know the list (`views.border`). Sums of all
shards are taken in the order of the shards, so that all go on, or end, alike.

On the CPU a round is the compiled one of `pagerank.cpu`; on a device that of sharded.cu. Shares
stand in the order of how often entries name them, so that most reads go to a few cache lines.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lpma.arrays import all_of, any_of, array_module, count_true, on_device, to_host
from lpma.cpu.pieces import by_rows
from lpma.errors import BatchError

from ..pagerank import cpu
from ..pagerank.pull import pull
from ..pagerank.steps import POWER
from ..views.simple import View
from .held import Held
from .types import Array, Part, Steps
from .views import Border, border, exchanged, present_rows, turned_rows

Round = Callable[[Array, Array, Array, float], tuple[float, float]]


def pagerank(held: Held, damping: float, tol: float, max_iter: int, weighted: bool) -> Steps:
    """(float64: the ranks of the owned rows; whether they converged)."""
    problem = _problem(held.part) if weighted else ""
    _, problems = yield held.nothing(), problem
    if any(problems):
        raise BatchError(next(filter(None, problems)))
    xp = held.xp
    turned, weights = yield from turned_rows(held, weighted)
    is_vertex = yield from present_rows(held)
    across = yield from border(held, "turned", turned)
    leaving = _leaving(held.part, weighted)
    inverse = xp.where(leaving > 0, 1 / xp.where(leaving > 0, leaving, 1), 0.0)
    round_of, place, width = _puller(held, turned, weights, is_vertex, inverse, damping)
    _, counts = yield held.nothing(), count_true(is_vertex)
    vertices = sum(counts)
    ranks = xp.where(is_vertex, 1 / max(vertices, 1), 0.0)
    lists = Border([place[rows] for rows in across.wanted], [place[rows] for rows in across.given])
    shares, later = xp.zeros(width), xp.zeros(width)
    own = held.owned
    shares[place[own]] = (ranks * inverse)[own]
    change, dangling = 0.0, float(ranks[is_vertex & (leaving == 0)].sum())
    converged = vertices == 0
    for number in range(max_iter + 1):
        said = yield from exchanged(held, lists, shares, (change, dangling))
        if number and sum(change for change, _ in said) < tol:
            converged = True
        if converged or number == max_iter:
            break
        base = (1 - damping + damping * sum(one for _, one in said)) / vertices
        change, dangling = round_of(shares, later, ranks, base)
        shares, later = later, shares
    return to_host(ranks[own]), converged


def _problem(part: Part) -> str:
    """Why the weights of a part are none to follow edges by; nothing if they are."""
    weights = part.weights
    if weights is None:
        return "weighted: this graph has no weights; give a weighted one, or leave it"
    if not all_of(array_module(weights).isfinite(weights)) or any_of(weights < 0):
        return "weighted: weights must be finite and not negative"
    return ""


def _leaving(part: Part, weighted: bool) -> Array:
    """float64[n]: the weight of the edges that leave each row."""
    xp = array_module(part.indptr)
    degrees: Array = xp.diff(part.indptr).astype(np.float64)
    if not weighted:
        return degrees
    assert part.weights is not None
    weights = part.weights.astype(np.float64)
    if on_device(weights):
        from lpma.cuda import launch

        n = part.num_rows
        launch.run(
            "algorithms/pagerank/pagerank.cu", "sum_rows", 32 * n, part.indptr, weights, n, degrees
        )
        return degrees
    return cpu.weight_leaving(View(part.indptr, part.indices), weights)


def _puller(
    held: Held, turned: View, weights: Array | None, is_vertex: Array, inverse: Array,
    damping: float,
) -> tuple[Round, Array, int]:  # fmt: skip
    """(a round; uint32[n], where the share of each row stands; how many shares there are).

    A round (shares, later, ranks, base) writes the ranks of owned rows, and their shares to
    `later`. It returns how much the ranks change, and how much of the new ranks is dangling."""
    name = "places, weighted" if weights is not None else "places"
    if name not in held.kept:
        held.kept[name] = _places(held, turned)
    place, places = held.kept[name]
    width = held.num_rows
    if not turned.on_device:
        once = np.empty(0)

        def round_on_cpu(
            shares: Array, later: Array, ranks: Array, base: float
        ) -> tuple[float, float]:
            pieces = by_rows(
                pull, turned.indptr, turned.indptr, places, place, is_vertex, weights, inverse,
                shares, later, ranks, ranks, once, None, base, damping, POWER,
            )  # fmt: skip
            change, dangling, _ = (float(sum(column)) for column in zip(*pieces, strict=True))
            return change, dangling

        return round_on_cpu, place, width
    from . import cuda

    def round_on_device(
        shares: Array, later: Array, ranks: Array, base: float
    ) -> tuple[float, float]:
        return cuda.pull(
            turned.indptr, places, place, is_vertex, weights, inverse, shares, later, ranks, base,
            damping,
        )  # fmt: skip

    return round_on_device, place, width


def _places(held: Held, turned: View) -> tuple[Array, Array]:
    """uint32[n], a number for each row, the smallest for those that entries name most; and that of
    each entry. On a device, whose cache has room for many shares, the rows themselves."""
    place: Array = held.xp.arange(held.num_rows, dtype=np.uint32)
    if turned.on_device:
        return place, turned.indices
    times = np.bincount(turned.indices, minlength=held.num_rows)
    place[np.argsort(-times, kind="stable")] = np.arange(held.num_rows, dtype=np.uint32)
    return place, place[turned.indices]
