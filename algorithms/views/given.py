"""The graphs that a caller may give besides a Snapshot, checked once, on entry.

Accepted are a scipy or cupyx CSR matrix and a pair (indptr, indices) of NumPy or CuPy arrays. A
stored entry is an edge even if its weight is zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import any_of, array_module, device_of, on_device
from lpma.errors import BatchError

from .spread import Spread

Array = npt.NDArray[Any]  # or cupy.ndarray


def given_rows(s: Any) -> tuple[Array, Array]:
    """indptr int64[n+1] and indices uint32[m] of a matrix or a pair of arrays, where these lie;
    rows may be unsorted and hold repeats. Raises BatchError if s is not a graph."""
    indptr, indices, columns = _arrays(s)
    with device_of(indptr):
        _check(indptr, indices, columns)
        xp = array_module(indptr)
        return xp.ascontiguousarray(indptr, np.int64), xp.ascontiguousarray(indices, np.uint32)


def _arrays(s: Any) -> tuple[Array, Array, int | None]:
    """indptr, indices, both on one device, and the number of columns (None for arrays)."""
    columns = None
    if hasattr(s, "indptr") and hasattr(s, "indices"):
        if getattr(s, "format", "csr") != "csr":
            raise BatchError(f"a {s.format} matrix: convert it with .tocsr() first")
        indptr, indices = s.indptr, s.indices
        columns = s.shape[1]
    elif isinstance(s, tuple | list) and len(s) == 2:
        indptr, indices = (a if on_device(a) else np.asarray(a) for a in s)
    elif isinstance(s, Spread):
        raise BatchError("this is computed on one device alone: give s.gather()")
    else:
        raise BatchError(
            f"a {type(s).__name__} is no graph here: give a Snapshot, a CSR matrix, or "
            "(indptr, indices)"
        )
    if indptr.device != indices.device:
        raise BatchError("indptr and indices lie on two devices: bring them to one")
    return indptr, indices, columns


def _check(indptr: Array, indices: Array, columns: int | None) -> None:
    """Raise BatchError unless the arrays are the rows of a graph."""
    for name, array in (("indptr", indptr), ("indices", indices)):
        if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
            raise BatchError(f"{name}: expected integers in one dimension")
    n = len(indptr) - 1
    if n < 0 or int(indptr[0]) != 0 or int(indptr[-1]) != len(indices):
        raise BatchError("indptr must go from 0 to the number of indices")
    if any_of(indptr[1:] < indptr[:-1]):
        raise BatchError("indptr must not fall")
    if columns not in (None, n):
        raise BatchError(f"a matrix of {n} by {columns}: a graph's is square")
    if n > np.iinfo(np.uint32).max:
        raise BatchError("at most 2^32 - 1 rows are taken")
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < n:
        raise BatchError(f"indices must lie from 0 to {n - 1}, the last row")
