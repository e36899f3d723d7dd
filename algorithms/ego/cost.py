"""What scoring an owner costs, estimated from its ego network's size and fitted on a sample.

Source: section 6.1 of "GPU-accelerated structural diversity search in graphs" and its Exp-1. With
N vertices and E edges in the ego network

    component  c = α E        core  c = α N + β E        truss  c = α N + β E^1.5

A hundredth of the owners, of all sizes, is scored and timed; α and β are fitted by least squares.
An owner alone takes a device less than a launch, so sampled owners are timed in groups of similar
size, and what a call costs by itself is fitted too and left out. Errors are weighed relative to the
time, since groups differ by orders of magnitude; and no weight is negative, for that would make the
largest egos cheap.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import to_host

from .model import Scorer

Array = npt.NDArray[Any]

SAMPLE = 100  # every so manieth owner, by size
GROUPS = 16
POWERS: dict[str, tuple[tuple[str, float], ...]] = {
    "component": (("edges", 1.0),),
    "core": (("vertices", 1.0), ("edges", 1.0)),
    "truss": (("vertices", 1.0), ("edges", 1.5)),
}


def terms(model: str, vertices: Array, edges: Array) -> Array:
    """float64[q, 1 or 2]: the terms of c for ego networks of so many vertices and edges."""
    sizes = {"vertices": vertices, "edges": edges}
    return np.stack([sizes[name] ** power for name, power in POWERS[model]], axis=1)


def estimate(
    scorer: Scorer, model: str, owners: Array, vertices: Array, edges: Array, sample: int = SAMPLE
) -> Array:
    """float64[q]: about the seconds that each of `owners`, uint32[q], takes the scorer, above 0.
    vertices, edges: of their ego networks. Scores every sample-th owner."""
    of_owner = terms(model, vertices, edges)
    drawn = np.lexsort((vertices, edges))[sample - 1 :: sample]
    groups = [group for group in np.array_split(drawn, GROUPS) if len(group)]
    if not groups:
        return unfitted(model, vertices, edges)
    to_host(scorer.scores(owners[groups[0]]))  # a first call compiles
    seconds = np.array([_seconds(scorer, owners[group]) for group in groups])
    of_group = np.stack([of_owner[group].sum(axis=0) for group in groups])
    weights = fit(of_group, seconds)
    if not weights.any():
        return unfitted(model, vertices, edges)
    costs: Array = of_owner @ weights
    return costs + np.finfo(np.float64).tiny


def unfitted(model: str, vertices: Array, edges: Array) -> Array:
    """float64[q], above 0: c with weights of 1, in no unit: where there is nobody to share with."""
    costs: Array = 1.0 + terms(model, vertices, edges).sum(axis=1)
    return costs


def fit(of_group: Array, seconds: Array) -> Array:
    """float64[terms], none negative: the weights of the terms, float64[groups, terms], that best
    explain what the groups took beside the constant cost of a call."""
    from scipy.optimize import nnls  # takes a third of a second to import

    columns = np.column_stack((of_group, np.ones(len(seconds))))
    scale = np.maximum(columns.max(axis=0), 1e-300)
    found, _ = nnls(columns / scale / seconds[:, None], np.ones(len(seconds)))
    weights: Array = (found / scale)[:-1]
    return weights


def _seconds(scorer: Scorer, owners: Array) -> float:
    begun = time.perf_counter()
    to_host(scorer.scores(owners))
    return time.perf_counter() - begun
