"""What scoring an owner costs: estimated from the size of its ego network, fitted on a sample.

Source: section 6.1 of "GPU-accelerated structural diversity search in graphs" and its Exp-1. With
N vertices and E edges in the ego network

    component  c = α E        core  c = α N + β E        truss  c = α N + β E^1.5

At most a hundredth of the owners is scored and timed, and α and β are fitted by least squares. One
owner takes a device less time than a launch, so owners are timed in groups of similar size, and the
constant cost of a call is fitted too, and left out. Errors are relative, since groups differ by
orders of magnitude. Negative weights would make the largest ego networks cheap, and are excluded.
"""

from __future__ import annotations

import time

import numpy as np

from lpma.arrays import to_host

from ...arrays import Array
from ..model import Scorer

SAMPLE = 100  # one owner in this many is sampled,
MOST = 4096  # but no more than about this many owners,
GROUPS = 12  # which are timed in this many groups


def of_ego(model: str, vertices: Array, edges: Array) -> Array:
    """float64[q, 1 or 2]: the terms of c. vertices, edges: of ego networks, int64[q] each."""
    n, m = vertices.astype(np.float64), edges.astype(np.float64)
    columns = {"component": (m,), "core": (n, m), "truss": (n, m * np.sqrt(m))}[model]
    return np.stack(columns, axis=1)


def estimate(scorer: Scorer, owners: Array, workers: int) -> Array:
    """float64[q], above 0: about what each of `owners`, uint32[q], costs the scorer, in an
    arbitrary unit; with one worker, which needs no estimate, 1. A sample is scored if c has two
    terms."""
    if workers == 1:
        return np.ones(len(owners))
    terms = scorer.terms(owners)
    weights = np.ones(terms.shape[1])
    if len(weights) > 1:
        groups = sample(terms)
        if groups:
            weights = _fitted(scorer, owners, terms, groups)
    costs: Array = terms @ weights
    return costs + max(float(costs.max(initial=0)) * 1e-9, 1e-9)


def sample(terms: Array) -> list[Array]:
    """The sampled owners, as places in `terms`, in groups from small to large: a hundredth of those
    that cost anything, or about MOST."""
    places = np.flatnonzero(terms[:, -1])
    step = max(SAMPLE, len(places) // MOST)
    drawn = places[step - 1 :: step]
    by_size = drawn[np.argsort(terms[drawn, -1], kind="stable")]
    return [group for group in np.array_split(by_size, GROUPS) if len(group)]


def _fitted(scorer: Scorer, owners: Array, terms: Array, groups: list[Array]) -> Array:
    to_host(scorer.scores(owners[groups[0]]))  # a first call compiles
    seconds = np.array([_seconds(scorer, owners[group]) for group in groups])
    weights = fit(np.stack([terms[group].sum(axis=0) for group in groups]), seconds)
    return weights if weights.any() else np.ones(len(weights))


def fit(of_group: Array, seconds: Array) -> Array:
    """float64[terms], none negative: the weights that best explain the seconds of the groups,
    besides a constant per call. of_group: float64[groups, terms], the groups' sums of terms."""
    from scipy.optimize import nnls  # importing it takes a third of a second

    seconds = np.maximum(seconds, 1e-9)
    columns = np.column_stack((of_group, np.ones(len(seconds))))
    scale = np.maximum(columns.max(axis=0), 1e-300)
    found, _ = nnls(columns / scale / seconds[:, None], np.ones(len(seconds)))
    weights: Array = (found / scale)[:-1]
    return weights


def _seconds(scorer: Scorer, owners: Array) -> float:
    begun = time.perf_counter()
    to_host(scorer.scores(owners))
    return time.perf_counter() - begun
