"""PageRank: the share of time that a surfer spends at each vertex.

way                     when it runs                                        decided in
power iteration         always at first, to the end where no other does
Chebyshev steps         undirected: once changes fall more slowly than by   steps.next_omega,
                        them                                                pagerank.cu
Gauss-Seidel sweeps     CPU, directed and `pieces.is_small`, d < 1: after   cpu.iterate
                        BEFORE_SWEEPS rounds
passes over the fringe  CUDA, undirected, more than layout_cuda.FEW rows,   layout_cuda._inner,
                        and few entries in the fringe: before each round,   pagerank.cu
                        for as long as rounds gain                          (`has_passes`)

Over shards every round is one of power iteration. `Tracker` brings ranks up to date by conjugate
gradients.

Source: Page, Brin, Motwani and Winograd, "The PageRank citation ranking: bringing order to the
web", 1999, as NetworkX defines it:

    rank(v) = (1 − d) · t(v) + d · ( Σ over u → v of rank(u) · w(u, v)/w(u)  +  dangling · t(v) )

t(v) is 1/n, or for *personalised* ranks (Page and others, section 6) what the caller gives, of sum
1. w(u) is the weight of all edges that leave u, an unweighted edge weighing 1. `dangling` is the
rank of the vertices with w(u) = 0. n counts the vertices: a row that is not a vertex
(`Snapshot.present`) has rank 0, gives none and gets none. Power iteration starts from 1/n, or from
given ranks, and ends when ranks change by less than tol in all. They are then wrong by less than
tol · d/(1 − d): a round maps any two vectors of sum 1 to d times their distance or less, and the
ranks r to themselves; so if it maps x, however found, to y, |y − r| ≤ d |x − r| ≤ d (|x − y| +
|y − r|).

cpu.py                the iteration on the CPU
cuda.py, pagerank.cu  the iteration on a CUDA device, all rounds in one launch
layout_cuda.py, layout.cu, layout.cuh  the rows that it reads there
steps.py              Chebyshev's steps; vectors.py: what the caller gives for each vertex

Both pull ranks along the rows of the transpose, which a Snapshot keeps. The *fringe* of a graph is
its rows of few entries.

Oracle: NetworkX and SciPy (tests/algorithms/test_pagerank.py).
"""

from __future__ import annotations

import warnings
from typing import Annotated, Any

from lpma.arrays import device_of
from lpma.cpu.pieces import is_small
from lpma.errors import BatchError

from ..arrays import Array
from ..options import Limits, algorithm
from ..views.cache import cached
from ..views.directed import is_symmetric, present, rows, transposed, transposed_weights, weights_of
from ..views.given import Distributed
from . import cpu
from .vectors import Vector, vector_of


class NotConverged(UserWarning):
    """The ranks still changed by more than tol in the last round that was allowed."""


@algorithm
def pagerank(
    s: Any,
    damping: Annotated[float, Limits(le=1)] = 0.85,
    tol: float = 1e-6,
    max_iter: int = 100,
    weighted: bool = False,
    personalization: Vector | None = None,
    start: Vector | None = None,
) -> Array:
    """The rank of every vertex.

    s: a Snapshot or ShardedSnapshot, a scipy or cupyx CSR matrix, or (indptr, indices), read with
    its directions, loops and repeats.
    damping: the probability of following an edge.
    tol: stop when the absolute changes of all ranks sum to less. cuGraph means the same by it;
    NetworkX stops at n times as much, which for a large graph is after a round or two.
    max_iter: the largest number of rounds. If they do not suffice, the last ranks are returned with
    the warning NotConverged (not with tol = 0, which asks for all rounds).
    weighted: follow an edge with a probability in proportion to its weight, the sum of the weights
    inserted; by default all edges that leave a vertex are alike. NetworkX's `pagerank` follows
    weights unless it is given `weight=None`.
    personalization: where the surfer jumps to, from a dangling vertex too, in proportion to
    these numbers: one for each row, or by vertex, others having 0. None: to every vertex alike.
    start: the first ranks, likewise; None: every vertex alike, or nearer to the ranks where a
    device has a better guess. Whether it takes fewer rounds from ranks that are nearly right
    depends on the graph: what is wrong in small components fades slowest. `Tracker` brings ranks up
    to date in another way.

    Returns float64[n], where s lies, which sums to 1: 0 for a row that is not a vertex (in a
    Snapshot, one that is not `present`; in anything else every row is a vertex). Raises
    `lpma.BatchError` if s is not a graph, if an argument is out of range, if weights are absent,
    negative or not finite, and if `personalization` or `start` are given for a ShardedSnapshot.

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 2, 0], device="cpu")
    >>> algorithms.pagerank(graph.snapshot()).round(3)
    array([0.388, 0.215, 0.397])
    >>> algorithms.pagerank(graph.snapshot(), personalization={1: 1}).round(3)
    array([0.327, 0.289, 0.384])
    """
    if isinstance(s, Distributed):
        if personalization is not None or start is not None:
            raise BatchError("personalization, start: of a graph on one device: give s.gather()")
        limits = {"damping": damping, "tol": tol, "max_iter": max_iter}
        ranks, converged = s.dispatch("pagerank", **limits, weighted=weighted)
    else:
        indptr = rows(s).indptr
        teleport = vector_of(s, indptr, personalization, "personalization")
        first = vector_of(s, indptr, start, "start")
        ranks, converged = power_iteration(s, damping, tol, max_iter, weighted, teleport, first)
    if not converged and tol > 0:
        warnings.warn(
            f"after {max_iter} rounds ranks still change by more than {tol:g}: allow more",
            NotConverged,
            stacklevel=2,
        )
    return ranks


def power_iteration(
    s: Any,
    damping: float,
    tol: float,
    max_iter: int,
    weighted: bool,
    teleport: Array | None = None,
    start: Array | None = None,
) -> tuple[Array, bool]:
    """The ranks, and whether they changed by less than tol in the last round. See `pagerank`, whose
    options these are, admitted.

    teleport, start: float64[n], where s lies, of sum 1 and 0 for rows that are not vertices: where
    the surfer jumps to, and the first ranks; None: every vertex alike."""
    view = rows(s)
    weights = weights_of(s) if weighted else None
    reverse = transposed(s)
    vertices = present(s)
    rest = (teleport, start, damping, tol, max_iter)
    if not view.on_device:
        reverse_weights = transposed_weights(s) if weighted else None
        if not weighted and is_small(view.indptr):
            pulled = cached(s, "read by lengths", lambda: cpu.by_lengths(reverse))
        else:
            pulled = cached(s, "read by places", lambda: cpu.by_places(view, reverse))
        return cpu.iterate(view, pulled, vertices, weights, reverse_weights, *rest, is_symmetric(s))
    from . import cuda
    from .layout_cuda import lay_out

    def laid_out() -> Any:
        if weights is None:
            return lay_out(view, reverse, vertices, None, None)
        leaving = cuda.weight_leaving(view, weights)
        return lay_out(view, reverse, vertices, leaving, transposed_weights(s))

    with device_of(view.indptr):
        layout = cached(s, f"laid out for PageRank{', weighted' * weighted}", laid_out)
        return cuda.iterate(layout, view.num_rows, *rest, is_symmetric(s))
