"""The graphs that a caller may give besides a Graph and its Snapshot, checked once, on entry.

They are a scipy or cupyx CSR matrix and a pair (indptr, indices) of NumPy or CuPy arrays. A stored
entry is an edge even if its weight is zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.arrays import array_module, device_of, on_device
from lpma.errors import BatchError
from lpma.snapshot.checks import check_rows
from lpma.snapshot.read_only import alias_for_kernels

from ..arrays import Array


class Distributed:
    """A graph over shards, which computes the public functions itself; see `algorithms.sharded`."""

    def dispatch(self, algorithm: str, **arguments: Any) -> Any:
        """The result of the public function `algorithm` for these arguments."""
        raise NotImplementedError


def given_rows(s: Any) -> tuple[Array, Array]:
    """indptr int64[n+1] and indices uint32[m] of a matrix or a pair of arrays; rows may be unsorted
    and hold repeats. Kernels take the results even if the given arrays are read-only. Raises
    BatchError if s is not a graph."""
    indptr, indices, columns = _arrays(s)
    with device_of(indptr):
        check_rows(indptr, indices)
        n = len(indptr) - 1
        if columns not in (None, n):
            raise BatchError(f"a matrix of {n} by {columns}: a graph's is square")
        xp = array_module(indptr)
        return (
            alias_for_kernels(xp.ascontiguousarray(indptr, np.int64)),
            alias_for_kernels(xp.ascontiguousarray(indices, np.uint32)),
        )


def given_weights(s: Any) -> Array | None:
    """A matrix's data, one number per index; None if it has none. Raises BatchError."""
    data = getattr(s, "data", None)
    if data is None:
        return None
    indices, data = s.indices, data if on_device(data) else np.asarray(data)
    if data.shape != (len(indices),):
        raise BatchError(
            f"data: {list(data.shape)} numbers for {len(indices)} indices: there must be one for "
            "each; A.check_format() says what else is wrong with a matrix"
        )
    if on_device(data) != on_device(indices):
        raise BatchError("data and indices lie on two devices: bring them to one")
    return alias_for_kernels(data) if data.flags.c_contiguous else data


def _arrays(s: Any) -> tuple[Array, Array, int | None]:
    """indptr and indices, one-dimensional integers on one device, and the number of columns (None
    for arrays)."""
    columns = None
    if hasattr(s, "indptr") and hasattr(s, "indices"):
        if getattr(s, "format", "csr") != "csr":
            raise BatchError(f"a {s.format} matrix: convert it with .tocsr() first")
        indptr, indices = _array("indptr", s.indptr), _array("indices", s.indices)
        columns = getattr(s, "shape", (None, None))[1]
    elif isinstance(s, tuple | list) and len(s) == 2:
        indptr, indices = _array("indptr", s[0]), _array("indices", s[1])
    elif isinstance(s, Distributed):
        raise BatchError("this is computed on one device alone: give s.gather()")
    else:
        if type(s).__module__.partition(".")[0] == "networkx":
            raise BatchError("a graph of NetworkX: make one of lpma with lpma.from_networkx(G)")
        raise BatchError(
            f"a {type(s).__name__} is not a graph: give a Graph, a Snapshot, a CSR matrix, or "
            "(indptr, indices)"
        )
    if indptr.device != indices.device:
        raise BatchError("indptr and indices lie on two devices: bring them to one")
    return indptr, indices, columns


def _array(name: str, values: Any) -> Array:
    try:
        array: Array = values if on_device(values) else np.asarray(values)
    except (TypeError, ValueError) as error:
        raise BatchError(f"{name}: cannot be read as an array ({error})") from None
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise BatchError(f"{name}: expected integers in one dimension")
    return array
