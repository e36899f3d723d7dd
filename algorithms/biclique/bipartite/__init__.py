"""Bipartite graphs: the two sides of a graph, and the core in which its bicliques lie.

The caller names the left side (`left`), or it is found by colouring: in every component the side of
its smallest vertex is the left. To colour a graph it is doubled: every vertex has a copy on each
side, and an edge joins the left copy of either end with the right copy of the other. A component
with an odd cycle stays in one piece. Any other falls in two, and the piece with the smaller label,
its smallest vertex, has the left copies of the left side.

Vertices without edges are left out. Numbers within a side rise with the vertices' ids, until it is
numbered by degree (`by_degree`): one order spans both sides, by falling degree, among equals the
left side first. A vertex's neighbours that come after it in the order are then the end of its row;
`first_after` says from which number of the other side on.

Oracle: colouring and peeling over sets (tests/algorithms/test_bicliques_sides.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lpma.arguments.scalars import is_integer
from lpma.arrays import all_of, any_of, array_module, device_of, row_numbers, to_host
from lpma.errors import BatchError
from lpma.snapshot.snapshot import Snapshot

from ... import arguments
from ...arrays import Array, by_device
from ...components import connected_components
from ...views.cache import cached, cached_last
from ...views.directed import is_symmetric, rows
from ...views.simple import View, device_module, simple
from .types import Bipartite, NotBipartite

__all__ = [
    "Bipartite", "NotBipartite", "bipartite", "by_degree", "by_sides", "colours", "first_after",
    "renumbered", "trimmed",
]  # fmt: skip

MOST_BELOW = 1 << 32  # a graph has no more rows
MOST_COLOURED = (1 << 30) - 1  # vertices, whose doubles still have int32 labels


def bipartite(s: Any, left: Any = None) -> Bipartite:
    """The two sides of a Snapshot, a CSR matrix or (indptr, indices), read as an undirected graph.

    left: which rows are the left side, as bool[n], or as a number, which means the rows below it.
    None: in each component, the side of its smallest vertex. On a Snapshot the result of colouring
    is cached, and so is that of the number given last.

    Raises NotBipartite if s has a loop or an odd cycle, or an edge within a side of `left`, and
    BatchError if it is not a graph, or has more than 2^30 - 1 vertices to colour."""
    if left is None:
        return cached(s, "bipartite", lambda: _build(s, colours))
    if is_integer(left):
        count = arguments.limit(left, "left", 0, MOST_BELOW)
        return cached_last(
            s, "bipartite below", count, lambda: _build(s, lambda view: _below(view, count))
        )
    return _build(s, lambda view: _mask(view, left))


def trimmed(b: Bipartite, p: int, q: int) -> Bipartite:
    """The (q, p)-core of b: its largest part in which every left vertex has at least q neighbours
    and every right vertex at least p. It contains all (p, q)-bicliques.

    Source: Liu, Yuan, Lin, Qin, Zhang and Zhou, "Efficient (α, β)-core computation: an index-based
    approach", WWW 2019."""
    p, q = min(p, b.num_left + 1), min(q, b.num_right + 1)  # no degree is larger; fits int64
    with device_of(b.left_indptr):
        degrees = array_module(b.left_indptr).concatenate((b.left_degrees, b.right_degrees))
        if len(degrees) == 0:
            return b
        by_device(b.left_indptr, __name__).peel(
            b.left_indptr, b.left_indices, b.right_indptr, b.right_indices, degrees, q, p
        )
        in_left, in_right = degrees[: b.num_left] >= q, degrees[b.num_left :] >= p
        if all_of(in_left) and all_of(in_right):
            return b
        return _of_sides(
            View(b.left_indptr, b.left_indices), in_left, in_right, b.left_ids, b.right_ids,
            View(b.right_indptr, b.right_indices),
        )  # fmt: skip


def renumbered(b: Bipartite, left: Array, right: Array) -> Bipartite:
    """The same graph, each side numbered in an order, uint32[a] and uint32[b], of its vertices."""
    found: Bipartite = by_device(b.left_indptr, __name__).renumbered(b, left, right)
    return found


def by_degree(b: Bipartite) -> Bipartite:
    """The same graph with each side numbered from the highest degree down, ties by number."""
    falling = by_device(b.left_indptr, __name__).by_falling_degree
    return renumbered(b, falling(b.left_indptr), falling(b.right_indptr))


def first_after(b: Bipartite) -> tuple[Array, Array]:
    """(int64[a], int64[b]): for each vertex, the first number on the other side that comes after it
    in the order. REQUIRES: the graph is numbered as by `by_degree`."""
    xp = array_module(b.left_indptr)
    left, right = -b.left_degrees, -b.right_degrees  # rising
    return (
        xp.searchsorted(right, left, side="left").astype(np.int64),
        xp.searchsorted(left, right, side="right").astype(np.int64),
    )


def _build(s: Any, sides: Callable[[View], Array]) -> Bipartite:
    view = simple(s)
    with device_of(view.indptr):
        _refuse_loops(s, view)
        return by_sides(view, sides(view))


def by_sides(view: View, is_left: Array) -> Bipartite:
    """A simple view divided by is_left, bool[n]. Raises NotBipartite if an edge lies within one
    side."""
    xp = array_module(view.indptr)
    joined = view.indptr[1:] > view.indptr[:-1]
    ids = xp.arange(view.num_rows, dtype=np.uint32)
    b = _of_sides(view, is_left & joined, ~is_left & joined, ids, ids, view)
    if len(b.left_indices) + len(b.right_indices) < len(view.indices):
        _refuse_within(view, is_left)
    return b


def _of_sides(
    left: View, in_left: Array, in_right: Array, left_ids: Array, right_ids: Array, right: View
) -> Bipartite:
    """The subgraph of the left vertices `in_left` and the right vertices `in_right`, bool masks
    over the rows of the two views."""
    return Bipartite(
        *_part(left, in_left, in_right), *_part(right, in_right, in_left),
        left_ids[in_left], right_ids[in_right],
    )  # fmt: skip


def _part(view: View, is_row: Array, is_entry: Array) -> tuple[Array, Array]:
    """(indptr int64[r+1], indices uint32[m]): the rows and entries that the masks select, both
    renumbered."""
    xp, module = array_module(view.indptr), device_module(view.indptr)
    starts, entries = module.induced(view.indptr, view.indices, is_row, is_entry)
    number = (xp.cumsum(is_entry) - 1).astype(np.uint32)
    return xp.concatenate((starts[:-1][is_row], starts[-1:])), number[entries]


# Sides ------------------------------------------------------------------------------------------


def colours(view: View) -> Array:
    """bool[n]: whether each vertex is on the side of its component's smallest vertex. Raises
    NotBipartite on an odd cycle, and BatchError on more than MOST_COLOURED vertices."""
    n = view.num_rows
    if n > MOST_COLOURED:
        raise BatchError(f"{n:,} vertices: sides are found for at most 2^30 - 1; give `left`")
    xp = array_module(view.indptr)
    doubled = Snapshot._trusted(
        indptr=xp.concatenate((view.indptr, len(view.indices) + view.indptr[1:])),
        indices=xp.concatenate((view.indices + np.uint32(n), view.indices)),
        weights=None, times=None, num_edges=len(view.indices), version=0, time=0, directed=False,
    )  # fmt: skip
    labels = connected_components(doubled)
    as_left, as_right = labels[:n], labels[n:]
    odd = as_left == as_right
    if any_of(odd):
        raise NotBipartite(
            "the graph is not bipartite: vertex {} is in a component with an odd cycle; butterflies"
            " and other bicliques need two sides without an edge within one: leave them out, or "
            "give the vertices of each side ids of their own",
            int(odd.argmax()),
        )
    is_left: Array = as_left < as_right
    return is_left


def _below(view: View, count: int) -> Array:
    is_left: Array = array_module(view.indptr).arange(view.num_rows) < min(count, view.num_rows)
    return is_left


def _mask(view: View, left: Any) -> Array:
    xp = array_module(view.indptr)
    is_left = arguments.array_of(left, "left")
    if is_left.dtype != np.bool_ or is_left.shape != (view.num_rows,):
        raise BatchError(
            f"left: {is_left.dtype}{list(is_left.shape)}; give bool[{view.num_rows}], True for "
            "the left side, or how many of the first rows are it"
        )
    return xp.asarray(is_left) if view.on_device else to_host(is_left)


def _refuse_within(view: View, is_left: Array) -> None:
    """Raise NotBipartite, naming an edge within a side. REQUIRES: there is one."""
    row = row_numbers(view.indptr, len(view.indices))
    at = int((is_left[row] == is_left[view.indices]).argmax())
    raise NotBipartite(
        "left: the edge of {} and {} lies within a side", int(row[at]), int(view.indices[at])
    )


def _refuse_loops(s: Any, view: View) -> None:
    """Raise NotBipartite if s has a loop. view: the simple view of s, from which an undirected s
    differs only in loops."""
    if is_symmetric(s) and len(view.indices) == len(s._indices):
        return
    given = rows(s)
    loops = row_numbers(given.indptr, len(given.indices)) == given.indices
    if any_of(loops):
        at = int(given.indices[int(loops.argmax())])
        raise NotBipartite("the graph is not bipartite: vertex {} has a loop", at)
