"""The simple undirected view: what most algorithms read a graph as.

Its rows are the union of the graph and its transpose, without loops and repeats. An undirected
snapshot already is its own transpose, so at most its loops are dropped. Weights play no part.

The view is built where the graph's arrays lie, by `simple_cpu` or `simple_cuda`, once for a
Snapshot (`cache`).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy.typing as npt

from lpma.arrays import device_of, on_device
from lpma.snapshot import Snapshot

from . import simple_cpu
from .cache import cached
from .given import given_rows

Array = npt.NDArray[Any]  # or cupy.ndarray


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
    on the device where these lie. A View is returned as it is.

    Raises BatchError if s is not a graph."""
    if isinstance(s, View):
        return s
    return cached(s, "simple", lambda: _build(s))


def symmetric(view: View) -> View:
    """The union of a view's rows and their transpose, without loops and repeats."""
    with device_of(view.indptr):
        return View(*device_module(view.indptr).simple(view.indptr, view.indices))


def induced(view: View, inside: Array) -> View:
    """The rows of a view with only the entries both of whose ends are `inside`, bool[n]."""
    with device_of(view.indptr):
        return View(*device_module(view.indptr).induced(view.indptr, view.indices, inside))


def as_snapshot(view: View, s: Any, added: Array | None = None) -> Snapshot:
    """A simple undirected view of part of s as a Snapshot without weights and times; `ids`,
    `version` and `time` are those of s, if that is a Snapshot.

    added: uint32, ascending: the vertices without an edge; None if there are none."""
    about = s if isinstance(s, Snapshot) else None
    if added is None:
        added = view.indices[:0]
    return Snapshot(
        indptr=view.indptr,
        indices=view.indices,
        weights=None,
        times=None,
        num_edges=len(view.indices) // 2,
        version=about.version if about else 0,
        time=about.time if about else 0,
        directed=False,
        ids=about.ids if about else None,
        added=added,
        names=about.names if about else None,
    )


def device_module(array: Array) -> ModuleType:
    """The module that builds views where the array lies."""
    if not on_device(array):
        return simple_cpu
    from . import simple_cuda

    return simple_cuda


def _build(s: Any) -> View:
    if not isinstance(s, Snapshot):
        return symmetric(View(*given_rows(s)))
    if s.directed:
        return symmetric(View(s.indptr, s.indices))
    with device_of(s.indptr):
        return View(*device_module(s.indptr).without_loops(s.indptr, s.indices))
