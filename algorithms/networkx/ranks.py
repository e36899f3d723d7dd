"""NetworkX's PageRank and HITS.

PageRank is `algorithms.pagerank`; with a distribution for dangling nodes a round is a product with
SciPy's or CuPy's matrix, on the graph's device. HITS is the first singular vector, on the host: by
SciPy, or as in NetworkX by rounds of two products with SciPy's matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lpma import Snapshot
from lpma.arrays import array_module, device_of, to_host

from ..arrays import Array, beside
from ..options import options_of
from ..pagerank import pagerank as pagerank_of_rows
from ..pagerank import power_iteration
from ..views.directed import transposed, transposed_weights
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
    NotImplementedError if that of `nstart` or `dangling` is: NetworkX warns of it."""
    n = len(G)
    if n == 0:
        return {}
    s = G.weighted(weight)
    start = None if nstart is None else _vector(G, nstart)
    by_zero = ZeroDivisionError(ZERO)
    teleport = None if personalization is None else _vector(G, personalization, by_zero)
    alpha, limit = float(alpha), float(tol) * n
    if dangling is None:
        vectors = (None if v is None else beside(s._indptr, v) for v in (teleport, start))
        weighted = s._weights is not None
        limits = zip(LIMITS.values(), (alpha, limit, max_iter), strict=True)
        damping, most, rounds = (option.admit(value) for option, value in limits)
        ranks, converged = power_iteration(s, damping, most, rounds, weighted, *vectors)
    else:
        even = np.full(n, 1 / n)
        given = (start, teleport, _vector(G, dangling))
        ranks, converged = _with_dangling(
            s, alpha, [even if v is None else v for v in given], limit, max_iter
        )
    if not converged:
        raise networkx().PowerIterationFailedConvergence(max_iter)
    return G.by_label(to_host(ranks).tolist())


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


def _with_dangling(
    s: Snapshot, alpha: float, vectors: list[Array], tol: float, max_iter: int
) -> tuple[Array, bool]:
    """The ranks, and whether they changed by less than tol in the last round. vectors: float64[n],
    each of sum 1: the first ranks, where the surfer jumps to, and where from a dangling node."""
    with device_of(s._indptr):
        xp = array_module(s._indptr)
        ranks, towards, rest = map(xp.asarray, vectors)
        matrix, is_dangling = _matrix(s, xp)
        for _ in range(max_iter):
            before = ranks
            lost = ranks[is_dangling].sum()
            ranks = alpha * (matrix @ ranks + lost * rest) + (1 - alpha) * towards
            if float(xp.abs(ranks - before).sum()) < tol:
                return ranks, True
    return ranks, False


def _matrix(s: Snapshot, xp: Any) -> tuple[Any, Array]:
    """The transpose with each column divided by its sum, and which columns are empty."""
    if xp is np:
        from scipy.sparse import csr_matrix
    else:
        from cupyx.scipy.sparse import csr_matrix
    n = s.num_rows
    view = transposed(s)
    sources = view.indices.astype(np.int64)
    weights = xp.ones(len(sources)) if s._weights is None else transposed_weights(s)
    total = xp.bincount(sources, weights, n)
    shares = weights / xp.where(total == 0, 1, total)[sources]
    indptr = view.indptr.astype(np.int32) if xp is not np else view.indptr
    indices = view.indices.view(np.int32)
    return csr_matrix((shares, indices, indptr), shape=(n, n)), total == 0
