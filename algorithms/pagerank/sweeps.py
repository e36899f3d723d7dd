"""Fewer rounds in a small directed graph: Gauss-Seidel sweeps, by one thread.

Source: Varga, "Matrix iterative analysis", 1962, chapter 3. For PageRank: Arasu, Novak, Tomkins and
Tomlin, "PageRank computation and the structure of the web", WWW 2002.

A sweep is a round that reads the ranks which it has written already. Two tricks:

  - A vertex's loops give part of its rank back to it, a share l of it, so that power iteration
    takes what is missing there down to d · l of it a round: where all edges of a vertex are loops,
    to d, as slowly as can be. A sweep solves the vertex's own equation instead: it takes
    1/(1 − d · l) times the step that a round would.
  - Sweeps do not keep the sum of the ranks at 1, so the surfer's jumps, which depend on it, are in
    proportion to the sum of the last sweep. Otherwise the sum would come back to 1 by d a sweep.

At the end the ranks are scaled to 1. The caller goes on with power iteration, which ends after a
round or a few more: so what is then missing has the bound of power iteration.

REQUIRES: damping < 1. With 1, ranks may depend on where they start.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled

from .pull import pull
from .steps import POWER

Array = npt.NDArray[Any]


@compiled
def sweep(
    indptr: Array, places: Array, place: Array, is_vertex: Array, weights: Array | None,
    inverse: Array, shares: Array, ranks: Array, teleport: Array | None, even: float,
    damping: float, dangling: float, tol: float, max_iter: int,
) -> tuple[int, float]:  # fmt: skip
    """Sweeps until one changes the ranks by less than tol of their sum. Writes ranks of sum 1, and
    their shares. Returns the number of sweeps, and how much of the ranks is dangling.

    even: what a jump brings to each vertex, times its `teleport` if there is one. dangling: of the
    ranks as they are. The rest as of `pull`."""
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
