"""NetworkX's PageRank and HITS.

PageRank is `algorithms.pagerank`. HITS is the first singular vector, on the host: by SciPy, or as
in NetworkX by rounds of two products with SciPy's matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lpma.arrays import to_host

from ..arrays import Array, beside
from ..options import options_of
from ..pagerank import pagerank as pagerank_of_rows
from ..pagerank import power_iteration
from .converted import ConvertedGraph, is_since, networkx

LIMITS = options_of(pagerank_of_rows, "damping", "tol", "max_iter")

Vector = Mapping[Any, float] | None

ZERO = "the values of a vector over the nodes add up to 0"


def pagerank(
    G: ConvertedGraph,
    alpha: float = 0.85,
    personalization: Vector = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: Vector = None,
    weight: str | None = "weight",
    dangling: Vector = None,
) -> dict[Any, float]:
    """The rank of each node. NetworkX's `tol` is for one node, ours for the sum over all. Raises
    PowerIterationFailedConvergence, ZeroDivisionError if the sum of `personalization` is 0, and
    NotImplementedError if that of `nstart` is: NetworkX warns of it. With a distribution for
    dangling nodes NetworkX computes the ranks itself."""
    n = len(G)
    if n == 0:
        return {}
    if dangling is not None:
        own = networkx().pagerank.orig_func
        given = alpha, personalization, max_iter, tol, nstart, weight, dangling
        ranks: dict[Any, float] = own(G.unchanged_origin(), *given)
        return ranks
    s = G.weighted(weight)
    by_zero = ZeroDivisionError(ZERO)
    vectors = (
        None if given is None else beside(s._indptr, _vector(G, given, error))
        for given, error in ((personalization, by_zero), (nstart, None))
    )
    limits = zip(LIMITS.values(), (float(alpha), float(tol) * n, max_iter), strict=True)
    damping, most, rounds = (option.admit(value) for option, value in limits)
    weighted = s._weights is not None
    found, converged = power_iteration(s, damping, most, rounds, weighted, *vectors)
    if not converged:
        raise networkx().PowerIterationFailedConvergence(max_iter)
    return G.by_label(to_host(found).tolist())


def hits(
    G: ConvertedGraph,
    max_iter: int = 100,
    tol: float = 1.0e-8,
    nstart: Vector = None,
    normalized: bool = True,
    *,
    method: str | None = None,
) -> tuple[dict[Any, float], dict[Any, float]]:
    """The hub and the authority value of each node. method: "power_iteration" or "svd", which was
    the only one before NetworkX 3.7; None: NetworkX's default. Raises
    PowerIterationFailedConvergence."""
    if len(G) == 0:
        return {}, {}
    matrix = G.weighted("weight").to_scipy().astype(np.float64)
    if method == "svd" or (method is None and not is_since(3, 7)):
        start = None if nstart is None else np.array(list(nstart.values()))
        hubs, authorities = _by_svd(matrix, start, tol, max_iter)
    else:
        hubs, authorities = _by_rounds(matrix, _first_hubs(G, nstart), tol, max_iter)
    if normalized:
        hubs, authorities = hubs / hubs.sum(), authorities / authorities.sum()
    return G.by_label(hubs.tolist()), G.by_label(authorities.tolist())


def _by_svd(matrix: Any, start: Array | None, tol: float, max_iter: int) -> tuple[Array, Array]:
    from scipy.sparse import linalg

    if max_iter <= 0:
        raise networkx().PowerIterationFailedConvergence(max_iter)
    try:
        _, _, found = linalg.svds(matrix, k=1, v0=start, maxiter=max_iter, tol=tol)
    except linalg.ArpackNoConvergence as error:
        raise networkx().PowerIterationFailedConvergence(max_iter) from error
    authorities = found.ravel().real
    return matrix @ authorities, authorities


def _by_rounds(matrix: Any, hubs: Array, tol: float, max_iter: int) -> tuple[Array, Array]:
    """Until a round changes the hubs by less than tol, added up. The largest of each is 1."""
    for _ in range(max_iter):
        before = hubs
        authorities = before @ matrix
        hubs = matrix @ authorities
        hubs = hubs / hubs.max()  # NumPy warns, as in NetworkX, if no edge leads anywhere
        change = np.abs(hubs - before).sum()
        if change < tol:
            return hubs, authorities / authorities.max()
        if np.isnan(change):
            break  # nor is it a number in any later round
    raise networkx().PowerIterationFailedConvergence(max_iter)


def _first_hubs(G: ConvertedGraph, given: Vector) -> Array:
    """float64[n], of sum 1. Raises NetworkXError where NetworkX does."""
    if given is None:
        return np.full(len(G), 1 / len(G))
    missing = {node for node in G.labels if node not in given}
    if missing:
        raise networkx().NetworkXError(
            f"nstart must have a value for every node; missing: {missing}"
        )
    return _vector(G, given, networkx().NetworkXError("nstart values must not sum to zero"))


def _vector(G: ConvertedGraph, given: Mapping[Any, float], error: Exception | None = None) -> Array:
    """float64[n], of sum 1. Raises the error, by default one on which NetworkX takes over, if the
    given values sum to 0."""
    vector = np.array([given.get(node, 0) for node in G.labels], np.float64)
    total = vector.sum()
    if not total:
        raise error or NotImplementedError(ZERO)
    return vector / total
