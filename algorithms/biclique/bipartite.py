"""Bipartite graphs: both sides' rows, under numbers of their own, and the cores in which bicliques
lie.

A (p, q)-biclique is p vertices of the left side and q of the right, each joined with each. Which
side is the left is told, by `left`, or found by colouring: in every component, the smallest vertex
is left. To colour, the graph is doubled (every vertex once for each side, every edge from either
end's left to the other's right copy) and the doubled graph's components are labelled by their
smallest vertices. A component with an odd cycle stays in one piece; any other falls into two, of
which one holds the left copy of the component's smallest vertex, hence the smaller label, and with
it the left copies of that vertex's side.

Vertices without edges are left out, being in no biclique. Local numbers rise with the vertices.
Everything is done where the graph's arrays lie.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import array_module, device_of, on_device, row_numbers, to_host
from lpma.errors import BatchError
from lpma.snapshot import Snapshot

from ..components import connected_components
from ..views.cache import cached, cached_last
from ..views.directed import is_symmetric, rows
from ..views.simple import View, simple
from . import bipartite_cpu

Array = npt.NDArray[Any]  # or cupy.ndarray

MOST_COLOURED = (1 << 30) - 1  # vertices, whose doubles still have int32 labels


class NotBipartite(BatchError):
    """Some vertices show that a graph has no such sides. `message` has a {} for each."""

    def __init__(self, message: str, *vertices: int | str) -> None:
        super().__init__(message.format(*vertices))
        self.message = message
        self.vertices = vertices  # rows of the graph that was given, or what they go by


@dataclass(frozen=True)
class Bipartite:
    """Rows of either side holding local numbers of the other, sorted: NumPy's arrays, or CuPy's on
    one device."""

    left_indptr: Array  # int64[a+1]
    left_indices: Array  # uint32[m]
    right_indptr: Array  # int64[b+1]
    right_indices: Array  # uint32[m]
    left_ids: Array  # uint32[a]: the vertex behind each local number
    right_ids: Array  # uint32[b]

    @property
    def num_left(self) -> int:
        return len(self.left_indptr) - 1

    @property
    def num_right(self) -> int:
        return len(self.right_indptr) - 1

    @property
    def num_edges(self) -> int:
        return len(self.left_indices)

    @property
    def on_device(self) -> bool:
        """Whether these are CuPy arrays."""
        return on_device(self.left_indptr)

    @property
    def left_degrees(self) -> Array:
        return self.left_indptr[1:] - self.left_indptr[:-1]

    @property
    def right_degrees(self) -> Array:
        return self.right_indptr[1:] - self.right_indptr[:-1]

    def swapped(self) -> Bipartite:
        """The same arrays, left and right exchanged."""
        return Bipartite(
            self.right_indptr, self.right_indices, self.left_indptr, self.left_indices,
            self.right_ids, self.left_ids,
        )  # fmt: skip


def bipartite(s: Any, left: Any = None) -> Bipartite:
    """The sides of a Snapshot, a CSR matrix or (indptr, indices), read as an undirected graph.

    left: which rows are the left side, as bool[n] or as a number: the rows below it. None: in each
    component, the side of its smallest vertex. What colouring gives is cached on a Snapshot, and
    what the last number gives.

    Raises NotBipartite where s has a loop or an odd cycle, or an edge within a side of `left`;
    BatchError where it is no graph, and where there are more than 2^30 - 1 vertices to colour."""
    if left is None:
        return cached(s, "bipartite", lambda: _build(s, colours))
    if isinstance(left, int | np.integer) and not isinstance(left, bool):
        count = int(left)
        return cached_last(
            s, "bipartite below", count, lambda: _build(s, lambda view: _below(view, count))
        )
    return _build(s, lambda view: _mask(view, left))


def trimmed(b: Bipartite, p: int, q: int) -> Bipartite:
    """The largest part of b in which left vertices have q neighbours or more and right ones p: its
    (q, p)-core. It holds all (p, q)-bicliques.

    Source: Liu, Yuan, Lin, Qin, Zhang and Zhou, "Efficient (α, β)-core computation: an index-based
    approach", WWW 2019."""
    p, q = min(p, b.num_left + 1), min(q, b.num_right + 1)  # what no vertex has, and int64 holds
    with device_of(b.left_indptr):
        degrees = array_module(b.left_indptr).concatenate((b.left_degrees, b.right_degrees))
        if len(degrees) == 0:
            return b
        _builder(b.left_indptr).peel(
            b.left_indptr, b.left_indices, b.right_indptr, b.right_indices, degrees, q, p
        )
        in_left, in_right = degrees[: b.num_left] >= q, degrees[b.num_left :] >= p
        if bool(in_left.all()) and bool(in_right.all()):
            return b
        return _of_sides(
            View(b.left_indptr, b.left_indices), in_left, in_right, b.left_ids, b.right_ids,
            View(b.right_indptr, b.right_indices),
        )  # fmt: skip


def _builder(array: Array) -> ModuleType:
    """The module that works on both sides' rows where the array lies."""
    if not on_device(array):
        return bipartite_cpu
    from . import bipartite_cuda

    return bipartite_cuda


def _build(s: Any, sides: Callable[[View], Array]) -> Bipartite:
    view = simple(s)
    with device_of(view.indptr):
        _refuse_loops(s, view)
        return by_sides(view, sides(view))


def by_sides(view: View, is_left: Array) -> Bipartite:
    """A simple view by sides, bool[n]. Raises NotBipartite where an edge lies within one."""
    xp = array_module(view.indptr)
    joined = view.indptr[1:] > view.indptr[:-1]
    ids = xp.arange(view.num_vertices, dtype=np.uint32)
    b = _of_sides(view, is_left & joined, ~is_left & joined, ids, ids, view)
    if len(b.left_indices) + len(b.right_indices) < len(view.indices):
        _refuse_within(view, is_left)
    return b


def _of_sides(
    left: View, in_left: Array, in_right: Array, left_ids: Array, right_ids: Array, right: View
) -> Bipartite:
    """The part within rows `in_left` of one view and rows `in_right` of the other."""
    left_indptr, left_indices = _builder(left.indptr).part(left, in_left, in_right)
    right_indptr, right_indices = _builder(left.indptr).part(right, in_right, in_left)
    return Bipartite(
        left_indptr, left_indices, right_indptr, right_indices,
        left_ids[in_left], right_ids[in_right],
    )  # fmt: skip


# Sides ------------------------------------------------------------------------------------------


def colours(view: View) -> Array:
    """bool[n]: whether a vertex of a simple view is on the side of its component's smallest. Raises
    NotBipartite where there is an odd cycle, BatchError on more than MOST_COLOURED vertices."""
    n = view.num_vertices
    if n > MOST_COLOURED:
        raise BatchError(f"{n:,} vertices: sides are found for at most 2^30 - 1; give `left`")
    xp = array_module(view.indptr)
    doubled = Snapshot(
        indptr=xp.concatenate((view.indptr, len(view.indices) + view.indptr[1:])),
        indices=xp.concatenate((view.indices + np.uint32(n), view.indices)),
        weights=None, times=None, num_edges=len(view.indices), version=0, time=0, directed=False,
    )  # fmt: skip
    labels = connected_components(doubled)
    as_left, as_right = labels[:n], labels[n:]
    odd = as_left == as_right
    if bool(odd.any()):
        raise NotBipartite(
            "the graph is not bipartite: vertex {} is in a component with an odd cycle; bicliques "
            "are of a bipartite graph",
            int(odd.argmax()),
        )
    is_left: Array = as_left < as_right
    return is_left


def _below(view: View, count: int) -> Array:
    if count < 0:
        raise BatchError(f"left: {count} vertices; give a number from 0 on, or bool[n]")
    is_left: Array = array_module(view.indptr).arange(view.num_vertices) < min(
        count, view.num_vertices
    )
    return is_left


def _mask(view: View, left: Any) -> Array:
    xp = array_module(view.indptr)
    is_left: Array = left if on_device(left) else np.asarray(left)
    if is_left.dtype != np.bool_ or is_left.shape != (view.num_vertices,):
        raise BatchError(
            f"left: {is_left.dtype}{list(is_left.shape)}; give bool[{view.num_vertices}], True for "
            "the left side, or how many of the first rows are it"
        )
    return xp.asarray(is_left) if view.on_device else to_host(is_left)


def _refuse_within(view: View, is_left: Array) -> None:
    """Name an edge that lies within a side."""
    row = row_numbers(view.indptr, len(view.indices))
    at = int((is_left[row] == is_left[view.indices]).argmax())
    raise NotBipartite(
        "left: the edge of {} and {} lies within a side", int(row[at]), int(view.indices[at])
    )


def _refuse_loops(s: Any, view: View) -> None:
    """view: the simple view of s, which an undirected snapshot differs from by its loops alone."""
    if is_symmetric(s) and len(view.indices) == len(s.indices):
        return
    given = rows(s)
    loops = row_numbers(given.indptr, len(given.indices)) == given.indices
    if bool(loops.any()):
        at = int(given.indices[int(loops.argmax())])
        raise NotBipartite("the graph is not bipartite: vertex {} has a loop", at)
