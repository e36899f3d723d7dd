"""Graphs from sparse matrices and from PyTorch Geometric's pairs of rows.

Both hold the two directions of an undirected edge, as `lpma.snapshot.export` writes them: a graph
that is to be undirected takes each edge once, after a look that the other direction is there, with
the same weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments.convert import as_array, as_cupy_if_on_device
from ..arrays import Array, any_of, array_module, device_of, on_device, to_host
from ..errors import BatchError
from ..graph import Graph
from .edges import make_graph, refuse_lost_weights, type_of_weights


def from_scipy(A: Any, *, weight_dtype: str | None = "auto", **options: Any) -> Graph:
    """A graph with an edge (i, j) for each entry A[i, j], and a vertex for each row.

    A             a square sparse matrix or array of scipy's or, on a device, of cupyx's; entries
                  that are stored twice add up. Of booleans: each weight is 1
    weight_dtype  as for `from_edges`
    options       of `lpma.Graph`. With directed=False the matrix must be symmetric

    Raises BatchError, also for entries of 0 or less, which a graph cannot take: see
    `Graph.insert`.

    >>> import scipy.sparse
    >>> A = scipy.sparse.csr_array(np.array([[0, 0.5], [0.25, 0]]))
    >>> lpma.from_scipy(A, device="cpu").snapshot().to_scipy().toarray()
    array([[0.  , 0.5 ],
           [0.25, 0.  ]])
    """
    if not hasattr(A, "tocoo") or not hasattr(A, "shape"):
        raise BatchError(
            f"A: a {type(A).__name__} is no sparse matrix: scipy.sparse.csr_array(A) "
            "makes one, and lpma.from_edges(src, dst) takes columns"
        )
    if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
        raise BatchError(
            f"from_scipy: a graph's matrix is square, and this one has shape {A.shape}"
        )
    entries = A.tocoo()
    src, dst, weights = entries.row, entries.col, entries.data
    if weights.dtype.kind not in "biuf":
        raise BatchError(f"from_scipy: weights are numbers, not {weights.dtype}")
    with device_of(weights):
        graph = make_graph(False, weights.dtype, weight_dtype, options)
        if weights.dtype.kind == "b":
            weights = weights.astype(np.float32)
        refuse_lost_weights(weights, src, dst, "A.eliminate_zeros() drops entries of 0")
        if not graph.directed:
            src, dst, weights = _once(src, dst, weights)
        graph.insert(src, dst, weights)
        xp = array_module(src)
        is_end = xp.zeros(A.shape[0], np.bool_)
        is_end[src], is_end[dst] = True, True
        if any_of(~is_end):
            graph.add_vertices(xp.flatnonzero(~is_end))
    return graph


def from_edge_index(
    edge_index: Any, weight: Any = None, *, weight_dtype: str | None = "auto", **options: Any
) -> Graph:
    """A graph of PyTorch Geometric's form of edges.

    edge_index    integers[2, m], sources above targets: of NumPy, PyTorch or anything with DLPack,
                  on the host or on a device
    weight        float[m], or one number for every edge; None: 1.0
    weight_dtype  as for `from_edges`
    options       of `lpma.Graph`. With directed=False both directions of every edge must be there,
                  as PyTorch Geometric has them, and each edge is taken once

    Raises BatchError, also for weights of 0 or less, as `from_scipy` does.

    >>> g = lpma.from_edge_index(np.array([[0, 0, 1], [1, 2, 2]]), device="cpu")
    >>> g.successors(0).ids
    array([1, 2], dtype=uint32)
    """
    pairs = _matrix(edge_index)
    if weight is not None and hasattr(weight, "detach"):
        weight = weight.detach()  # of PyTorch: gradients do not matter here
    graph = make_graph(False, type_of_weights(weight), weight_dtype, options)
    src, dst = pairs
    if weight is not None:
        each = as_array(weight, "weight")
        if each.dtype.kind in "iuf" and each.shape in ((), src.shape):  # else insert refuses it
            with device_of(each):
                each = array_module(each).broadcast_to(each, src.shape)
                refuse_lost_weights(each, src, dst, "leave such edges out")
    if not graph.directed:
        weights = 1.0 if weight is None else to_host(as_cupy_if_on_device(weight))
        src, dst, weight = _once(src, dst, np.broadcast_to(weights, src.shape))
    graph.insert(src, dst, 1.0 if weight is None else weight)
    return graph


def _matrix(edge_index: Any) -> Array:
    """[2, m], where it lies. Raises BatchError."""
    given = as_cupy_if_on_device(edge_index)
    if not on_device(given):
        try:
            is_foreign = hasattr(given, "__dlpack__") and not hasattr(given, "__array__")
            given = np.from_dlpack(given) if is_foreign else np.asarray(given)
        except (TypeError, ValueError, BufferError, RuntimeError) as error:
            raise BatchError(f"edge_index: cannot be read as an array ({error})") from None
    if given.ndim != 2 or given.shape[0] != 2:
        is_turned = given.ndim == 2 and given.shape[1] == 2
        advice = ": give its transpose, edge_index.T" if is_turned else ""
        raise BatchError(f"edge_index: expected shape [2, m], got {list(given.shape)}{advice}")
    pairs: Array = given if given.shape[1] else given.astype(np.int64)
    return pairs


def _once(src: Any, dst: Any, weights: Any) -> tuple[Array, Array, Array]:
    """The edges with src <= dst, on the host. Raises BatchError if the others are not the same
    ones, in the other direction and with the same weights."""
    src, dst, weights = (np.asarray(to_host(column)) for column in (src, dst, weights))
    up, down = src < dst, src > dst
    here = np.lexsort((weights[up], dst[up], src[up]))
    back = np.lexsort((weights[down], src[down], dst[down]))
    same = len(here) == len(back)
    for one, other in ((src, dst), (dst, src), (weights, weights)):
        same = same and np.array_equal(one[up][here], other[down][back])
    if not same:
        raise BatchError(
            "directed=False takes edges in both directions, with the same weight: some are here in "
            "one only; lpma.from_edges(src, dst, directed=False) takes each once"
        )
    kept = ~down
    return src[kept], dst[kept], weights[kept]
