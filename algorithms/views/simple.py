"""The simple undirected view: what most algorithms read a graph as.

Its rows are the union of the graph and its transpose, without loops and repeats; an undirected
snapshot loses at most its loops. `simple_cpu` or `simple_cuda` builds it, once for a Snapshot
(`cache`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lpma.arrays import device_of, on_device
from lpma.cpu.pieces import is_small
from lpma.snapshot.snapshot import Snapshot

from ..arrays import Array, by_device
from . import simple_cpu
from .cache import cached, is_cached
from .following import both_ways, followed, is_followed, merged_rows
from .given import given_rows
from .unsorted_union_cpu import unsorted_union


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
    on its device. A View is returned as it is. Raises BatchError if s is not a graph."""
    if isinstance(s, View):
        return s
    return cached(s, "simple", lambda: _build(s))


def unsorted(s: Any) -> View:
    """As `simple`, but rows may be in any order where that saves time: those of a small
    (`pieces.is_small`) directed Snapshot on the CPU without a simple view. One that follows another
    gets the simple view, which the next can follow."""
    if (
        not isinstance(s, Snapshot)
        or not s.directed
        or on_device(s._indptr)
        or not is_small(s._indptr, ways=2)
        or is_cached(s, "simple")
        or is_followed(s)
    ):
        return simple(s)
    return cached(s, "unsorted", lambda: View(*unsorted_union(s._indptr, s._indices)))


def symmetric(view: View) -> View:
    """The union of a view's rows and their transpose, without loops and repeats."""
    with device_of(view.indptr):
        return View(*device_module(view.indptr).simple(view.indptr, view.indices))


def induced(view: View, inside: Array) -> View:
    """The rows of a view with only the entries both of whose ends are `inside`, bool[n]."""
    with device_of(view.indptr):
        return View(*device_module(view.indptr).induced(view.indptr, view.indices, inside, inside))


def as_snapshot(view: View, s: Any, added: Array | None = None) -> Snapshot:
    """A simple undirected view of part of s as a Snapshot without weights and times, with `ids`,
    `left`, `version` and `time` of s if that is a Snapshot. added: uint32, ascending: the vertices
    without an edge; None if there are none."""
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
        left=about.left if about else None,
    )


def device_module(array: Array) -> Any:
    """The module that builds views on the array's device."""
    return by_device(array, __package__, "simple")


def _build(s: Any) -> View:
    if not isinstance(s, Snapshot):
        return symmetric(View(*given_rows(s)))
    if not s.directed and 2 * s.num_edges == len(s._indices):  # a loop is one entry, not two
        return View(s._indptr, s._indices)
    if not on_device(s._indptr):
        make = simple_cpu.of_sorted if s.directed else simple_cpu.without_loops
        return View(*followed(
            s, "simple", lambda: make(s._indptr, s._indices),
            lambda before, since: merged_rows(before, both_ways(s, since), s.num_rows),
        ))  # fmt: skip
    with device_of(s._indptr):
        module = device_module(s._indptr)
        if not s.directed:
            return View(*module.without_loops(s._indptr, s._indices))
        # As `directed.transposed` keeps it, which cannot be imported here.
        reverse = cached(s, "transposed", lambda: View(*module.transpose(s._indptr, s._indices)))
        return View(*module.united(s._indptr, s._indices, reverse.indptr, reverse.indices))
