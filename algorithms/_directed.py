"""The graph with its directions: rows as they are, and the rows of the transpose.

BFS and PageRank follow the edges of a snapshot as it holds them: loops and, in an array or a matrix
that has them, repeats included. An undirected snapshot holds both directions, and is its own
transpose. The transpose of a directed one is built once and kept in its `views`.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from lpma.arrays import to_host
from lpma.errors import BatchError
from lpma.snapshot import Snapshot

from ._views import View, _checked_rows, _transpose

Array = npt.NDArray[Any]


def rows(s: Any) -> View:
    """The rows of a Snapshot, a scipy CSR matrix, or (indptr, indices), as given.

    Raises BatchError where these are no graph, or one of more than 2^31 - 1 vertices, whose numbers
    would not fit the int32 of the answers."""
    if isinstance(s, Snapshot):
        view = View(to_host(s.indptr), to_host(s.indices))
    else:
        view = View(*_checked_rows(s))
    if view.num_vertices > np.iinfo(np.int32).max:
        raise BatchError(f"{view.num_vertices:,} vertices: at most 2^31 - 1 are taken")
    return view


def is_symmetric(s: Any) -> bool:
    """Whether the rows are known to be those of the transpose too."""
    return isinstance(s, Snapshot) and not s.directed


def weights_of(s: Any) -> Array:
    """float64[m]: the weight of each entry of `rows(s)`. Raises BatchError where there are none,
    or one that is negative or not finite."""
    given = s.weights if isinstance(s, Snapshot) else getattr(s, "data", None)
    if given is None:
        raise BatchError("weighted: this graph has no weights; give a weighted one, or leave it")
    weights = np.asarray(to_host(given))
    if weights.dtype.kind not in "iufb":
        raise BatchError(f"weighted: weights are real numbers, not {weights.dtype}")
    weights = weights.astype(np.float64, copy=False)
    if not bool(np.isfinite(weights).all()) or float(weights.min(initial=0)) < 0:
        raise BatchError("weighted: weights must be finite and not negative")
    return weights


def transposed(s: Any) -> View:
    """The rows of the transpose: of each vertex, who has an edge to it."""
    if is_symmetric(s):
        return rows(s)
    if not isinstance(s, Snapshot):
        return _transposed(rows(s))
    view: View | None = s.views.get("transposed")
    return view or s.views.setdefault("transposed", _transposed(rows(s)))


def transposed_weights(s: Any) -> Array:
    """float64[m]: the weight of each entry of `transposed(s)`; raises as `weights_of`."""
    if is_symmetric(s):
        return weights_of(s)
    if not isinstance(s, Snapshot):
        return _moved_weights(rows(s), transposed(s).indptr, weights_of(s))
    weights: Array | None = s.views.get("transposed weights")
    if weights is None:
        moved = _moved_weights(rows(s), transposed(s).indptr, weights_of(s))
        weights = s.views.setdefault("transposed weights", moved)
    return weights


def _transposed(view: View) -> View:
    return View(*_transpose(view.indptr, view.indices))


def _moved_weights(view: View, transposed_indptr: Array, weights: Array) -> Array:
    return _move_weights(view.indices, transposed_indptr, weights)


@numba.njit(cache=True, nogil=True)
def _move_weights(indices: Array, transposed_indptr: Array, weights: Array) -> Array:
    """Weights in the order in which a counting sort by target leaves the entries."""
    place = transposed_indptr.copy()
    moved = np.empty_like(weights)
    for e in range(len(indices)):
        v = indices[e]
        moved[place[v]] = weights[e]
        place[v] += 1
    return moved
