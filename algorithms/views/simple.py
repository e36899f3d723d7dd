"""What the algorithms read a graph as: the simple undirected view.

Rows of the union of the graph and its transpose, without loops and repeats. An undirected
snapshot already is its own transpose, so that at most its loops are dropped.

It is built where the graph's arrays lie: `_views_cpu`, `cuda.views`. Views are built once for a
Snapshot and kept in its `views`, under a name and a device: preparing often costs more than the
algorithm. Weights play no part, and a stored entry is an edge even where its weight is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from lpma.arrays import array_module, device_of, on_device
from lpma.errors import BatchError
from lpma.snapshot import Snapshot

from . import simple_cpu

__all__ = ["View", "induced", "simple"]

Array = npt.NDArray[Any]  # or cupy.ndarray
T = TypeVar("T")


@dataclass(frozen=True)
class View:
    """Rows of vertex ids, sorted within a row: NumPy's arrays, or CuPy's on one device."""

    indptr: Array  # int64[n+1]
    indices: Array  # uint32[m]

    @property
    def num_vertices(self) -> int:
        return len(self.indptr) - 1

    @property
    def on_device(self) -> bool:
        """Whether these are CuPy arrays."""
        return on_device(self.indptr)


def simple(s: Any) -> View:
    """The simple undirected view of a Snapshot, a scipy or cupyx CSR matrix, or (indptr, indices),
    on the device where these lie. A View is taken for its own.

    Raises BatchError where these are no graph."""
    if isinstance(s, View):
        return s
    return _cached(s, "simple", lambda: _build_simple(s))


def induced(view: View, inside: Array) -> View:
    """The rows of a view with only the entries both of whose ends are `inside`, bool[n]."""
    with device_of(view.indptr):
        return View(*_builder(view.indptr).induced(view.indptr, view.indices, inside))


def _cached(s: Any, name: str, build: Callable[[], T]) -> T:
    if not isinstance(s, Snapshot):
        return build()
    key = f"{name} on {s.indptr.device}"  # NumPy's arrays have one too: "cpu"
    view: T | None = s.views.get(key)
    # Two threads may both build it; setdefault lets them agree on one.
    return view if view is not None else s.views.setdefault(key, build())


def _cached_last(s: Any, name: str, of: object, build: Callable[[], T]) -> T:
    """As `_cached`, where there are many to build: what was last asked for is kept alone."""
    if not isinstance(s, Snapshot):
        return build()
    key = f"{name} on {s.indptr.device}"
    kept: tuple[object, T] | None = s.views.get(key)
    if kept is None or kept[0] != of:
        kept = s.views[key] = of, build()
    return kept[1]


def _builder(array: Array) -> ModuleType:
    """The module that builds views where the array lies."""
    if not on_device(array):
        return simple_cpu
    from . import simple_cuda

    return simple_cuda


def _build_simple(s: Any) -> View:
    of_snapshot = isinstance(s, Snapshot)
    indptr, indices, columns = (s.indptr, s.indices, None) if of_snapshot else _given_rows(s)
    with device_of(indptr):
        if not of_snapshot:
            indptr, indices = _checked_rows(indptr, indices, columns)
        elif not s.directed:
            return View(*_builder(indptr).without_loops(indptr, indices))
        return View(*_builder(indptr).simple(indptr, indices))


def _given_rows(s: Any) -> tuple[Array, Array, int | None]:
    """indptr, indices and the number of columns (None: not told), both arrays on one device."""
    columns = None
    if hasattr(s, "indptr") and hasattr(s, "indices"):
        if getattr(s, "format", "csr") != "csr":
            raise BatchError(f"a {s.format} matrix: convert it with .tocsr() first")
        indptr, indices = s.indptr, s.indices
        columns = s.shape[1]
    elif isinstance(s, tuple | list) and len(s) == 2:
        indptr, indices = (a if on_device(a) else np.asarray(a) for a in s)
    else:
        raise BatchError(
            f"a {type(s).__name__} is no graph here: give a Snapshot, a CSR matrix, or "
            "(indptr, indices)"
        )
    if indptr.device != indices.device:
        raise BatchError("indptr and indices lie on two devices: bring them to one")
    return indptr, indices, columns


def _checked_rows(indptr: Array, indices: Array, columns: int | None) -> tuple[Array, Array]:
    """The arrays as int64 and uint32, after a look at whether they are a graph's."""
    for name, array in (("indptr", indptr), ("indices", indices)):
        if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
            raise BatchError(f"{name}: expected integers in one dimension")
    n = len(indptr) - 1
    if n < 0 or int(indptr[0]) != 0 or int(indptr[-1]) != len(indices):
        raise BatchError("indptr must go from 0 to the number of indices")
    if bool((indptr[1:] < indptr[:-1]).any()):
        raise BatchError("indptr must not fall")
    if columns not in (None, n):
        raise BatchError(f"a matrix of {n} by {columns}: a graph's is square")
    if n > np.iinfo(np.uint32).max:
        raise BatchError("at most 2^32 - 1 rows are taken")
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < n:
        raise BatchError(f"indices must lie from 0 to {n - 1}, the last row")
    xp = array_module(indptr)
    return xp.ascontiguousarray(indptr, np.int64), xp.ascontiguousarray(indices, np.uint32)
