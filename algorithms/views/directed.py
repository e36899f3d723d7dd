"""The graph with its directions: rows as they are, the rows of the transpose, and the vertices.

BFS and PageRank follow the edges of a graph as it holds them, with loops, and with the repeats of
arrays or a matrix. An undirected snapshot holds both directions and is its own transpose. That of a
directed snapshot is built once (`cache`), on the CPU by a counting sort over targets
(`transpose_cpu`), on a device by a radix sort (`transpose_cuda`).

An algorithm on the CPU that reads rows one by one takes them *scattered*
(lpma/snapshot/row_versions.py), which saves nine tenths of the copying for an incremental snapshot.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arrays import all_of, any_of, array_module, device_of, row_numbers, to_host
from lpma.errors import BatchError
from lpma.snapshot.row_versions import Rows, ScatteredRows, lineage_of, scattered
from lpma.snapshot.snapshot import Snapshot

from ..arrays import Array, by_device
from .cache import cached, is_cached
from .following import backwards, followed, follows, lineage_in, version_rows
from .given import given_rows, given_weights
from .simple import View
from .transpose_cpu import transpose

SMALL = 1e-30  # of weights; on a device some shares are float32


def rows(s: Any) -> View:
    """The rows of a Snapshot, a scipy or cupyx CSR matrix, or (indptr, indices), as they are: those
    of a matrix or arrays may be unsorted. Raises BatchError if s is not a graph, or has more than
    2^31 - 1 vertices: results are int32."""
    view = View(s._indptr, s._indices) if isinstance(s, Snapshot) else View(*given_rows(s))
    if view.num_rows > np.iinfo(np.int32).max:
        raise BatchError(f"{view.num_rows:,} vertices: at most 2^31 - 1 are taken")
    return view


def scattered_rows(s: Any) -> ScatteredRows:
    """As `rows`, each row anywhere in one array. REQUIRES: s is not on a device."""
    lineage = lineage_in(s)
    if lineage is not None:
        return lineage.state.rows.scattered()
    view = rows(s)
    return scattered(view.indptr, view.indices)


def is_on_device(s: Any) -> bool:
    """Whether the rows of a graph are CuPy's arrays."""
    if lineage_in(s) is not None:
        return False
    return rows(s).on_device


def present(s: Any) -> Array | None:
    """bool[n], where s lies: which rows are vertices; None if all are, as in a matrix."""
    return s._present if isinstance(s, Snapshot) and s._added is not None else None


def is_symmetric(s: Any) -> bool:
    """Whether the rows are known to be those of the transpose too."""
    return isinstance(s, Snapshot) and not s.directed


def weights_of(s: Any) -> Array:
    """float64[m]: the weight of each entry of `rows(s)`, relative to its row: rows are scaled by
    powers of two where a sum or its inverse could overflow. Raises BatchError if s has no weights,
    or one of them is negative or not finite."""
    weights = _given_weights(s)
    powers = _powers(s, weights)
    if powers is None:
        return weights
    with device_of(weights):
        return _scaled(weights, powers[row_numbers(to_host(rows(s).indptr), len(weights))])


def entry_weights(s: Any) -> Array | None:
    """The weight of each entry of `rows(s)`, as it is; None if s has none. Raises BatchError."""
    return s._weights if isinstance(s, Snapshot) else given_weights(s)


def _given_weights(s: Any) -> Array:
    weights = entry_weights(s)
    if weights is None:
        raise BatchError("weighted: this graph has no weights; give a weighted one, or leave it")
    if weights.dtype.kind not in "iufb":
        raise BatchError(f"weighted: weights are real numbers, not {weights.dtype}")
    with device_of(weights):
        xp = array_module(weights)
        if not all_of(xp.isfinite(weights)) or any_of(weights < 0):
            raise BatchError("weighted: weights must be finite and not negative")
        doubles: Array = xp.ascontiguousarray(weights, np.float64)
    return doubles


def _powers(s: Any, weights: Array) -> Array | None:
    """int[n]: the powers of two by which rows are multiplied, so that the largest weight of each is
    from 0.5 to 1; None if no weight is so small or large."""
    with device_of(weights):
        if not any_of((weights > 0) & ((weights < SMALL) | (weights > 1 / SMALL))):
            return None
        # This is rare, so a device's weights are scaled on the host.
        indptr = to_host(rows(s).indptr)
        most = np.zeros(len(indptr) - 1)
        np.maximum.at(most, row_numbers(indptr, len(weights)), to_host(weights))
        powers: Array = -np.frexp(most)[1]
    return powers


def _scaled(weights: Array, powers: Array) -> Array:
    """Exact, unless a result underflows."""
    scaled: Array = array_module(weights).asarray(np.ldexp(to_host(weights), powers))
    return scaled


def transposed(s: Any) -> View:
    """The rows of the transpose, sorted: of each vertex, the sources of its in-edges."""
    if is_symmetric(s):
        return rows(s)
    if isinstance(s, Snapshot) and lineage_of(s) is not None:
        packed = _followed_transpose(s).contiguous()
        return View(packed.indptr, packed.indices)
    return cached(s, "transposed", lambda: transpose_of(rows(s)))


def scattered_transpose(s: Snapshot) -> ScatteredRows:
    """As `transposed`, on the CPU, each row anywhere in one array."""
    if is_symmetric(s):
        return scattered_rows(s)
    if lineage_of(s) is not None:
        return _followed_transpose(s).scattered()
    view = transposed(s)
    return scattered(view.indptr, view.indices)


def is_transposed(s: Any) -> bool:
    """Whether `transposed(s)` exists already, or follows that of the last snapshot."""
    return follows(s, "transposed") or is_cached(s, "transposed")


def transposed_weights(s: Any) -> Array:
    """float64[m]: the weight of each entry of `transposed(s)`; raises as `weights_of` does."""
    if is_symmetric(s):
        weights = _given_weights(s)
        powers = _powers(s, weights)
        if powers is None:
            return weights
        with device_of(weights):
            return _scaled(weights, powers[to_host(rows(s).indices)])
    return cached(
        s, "transposed weights", lambda: move_weights(rows(s), transposed(s), weights_of(s))
    )


def _followed_transpose(s: Snapshot) -> Rows:
    """The transpose of a snapshot. REQUIRES: it has a lineage."""
    lineage = lineage_of(s)
    assert lineage is not None
    n, m = s.num_rows, lineage.state.rows.num_entries  # without making the rows
    return followed(
        s, "transposed", lambda: version_rows(transpose(s._indptr, s._indices), n, m),
        lambda before, since: before.after(n, m, [backwards(since)]),
    )  # fmt: skip


def transpose_of(view: View) -> View:
    """The transpose of any rows, sorted; repeats are kept."""
    with device_of(view.indptr):
        return View(*_program(view).transpose(view.indptr, view.indices))


def move_weights(view: View, reverse: View, weights: Array) -> Array:
    """The weights of the rows' entries in the order of those of the transpose, `reverse`."""
    with device_of(view.indptr):
        moved: Array = _program(view).move_weights(view.indices, reverse.indptr, weights)
        return moved


def _program(view: View) -> Any:
    return by_device(view.indptr, __package__, "transpose")
