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
from lpma.cpu.pieces import is_small
from lpma.snapshot.snapshot import Snapshot

from . import both_cpu, simple_cpu
from .cache import cached, is_cached
from .following import both_ways, following, is_followed
from .given import given_rows

Array = npt.NDArray[Any]  # or cupy.ndarray


@dataclass(frozen=True)
class View:
    """Rows of vertex ids, sorted within a row: NumPy's arrays, or CuPy's on one device."""

    indptr: Array  # int64[n+1]
    indices: Array  # uint32[m]

    @property
    def num_rows(self) -> int:
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


def unsorted(s: Any) -> View:
    """As `simple`, but the rows may be in any order, where that saves time: those of a directed
    Snapshot that is small (`pieces.is_small`), on the CPU, whose simple view is not there yet. One
    that follows another has the simple view, which the next can follow."""
    if (
        not isinstance(s, Snapshot)
        or not s.directed
        or on_device(s._indptr)
        or not is_small(s._indptr, ways=2)
        or is_cached(s, "simple")
        or is_followed(s)
    ):
        return simple(s)
    return cached(s, "unsorted", lambda: View(*both_cpu.both_ways(s._indptr, s._indices)))


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
    return Snapshot._trusted(
        indptr=view.indptr,
        indices=view.indices,
        weights=None,
        times=None,
        num_edges=len(view.indices) // 2,
        version=about.version if about else 0,
        time=about.time if about else 0,
        directed=False,
        ids=about._ids if about else None,
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
    if not s.directed and 2 * s.num_edges == len(s._indices):  # a loop is one entry, not two
        return View(s._indptr, s._indices)
    if not on_device(s._indptr):
        make = simple_cpu.of_sorted if s.directed else simple_cpu.without_loops
        return View(*following(s, "simple", lambda: make(s._indptr, s._indices), both_ways))
    with device_of(s._indptr):
        module = device_module(s._indptr)
        if not s.directed:
            return View(*module.without_loops(s._indptr, s._indices))
        # As `directed.transposed` keeps it, which cannot be imported here.
        reverse = cached(s, "transposed", lambda: View(*module.transpose(s._indptr, s._indices)))
        return View(*module.united(s._indptr, s._indices, reverse.indptr, reverse.indices))
