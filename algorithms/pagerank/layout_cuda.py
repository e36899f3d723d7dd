"""The transpose's rows laid out by their lengths, for PageRank on a CUDA device: see layout.cuh.

Rows are in the order of in-edges and shares in that of out-edges, by a radix sort of the vertices
each, or one for both in a graph that is its own transpose. Then every entry is read once, its place
looked up, and written once.

Requires rows on the current device. Work is enqueued on the current stream and waited for, since a
layout may be used from any stream.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cupy
import numpy as np

from lpma.cuda import driver, launch

from ..views.simple import View

Array = Any  # cupy.ndarray

FILE = "algorithms/pagerank/layout.cu"
PIECE, SHORT = 512, 32  # layout.cuh: entries of a hub's piece; the most of a row in a slice
FRINGE = 8  # entries of a row of the fringe, at most
FRINGE_SHARE = 1 / 12  # of all entries, at most, for passes over the fringe to pay
FEW = 1 << 16  # rows, of which a pass over all is little more than its barriers
ALL = (1 << 32) - 1


class Layout(NamedTuple):
    """The rows: layout.cuh has the fields of the first line."""

    hubs: int
    unsliced: int
    rows: int
    pieces: int
    starts: Array  # int64
    first_piece: Array  # int64
    hub: Array  # uint32

    vertex: Array  # uint32[rows]: of each row
    place: Array  # uint32[rows]: where the share of each row's vertex stands
    inverse: Array  # float64[rows]: 1 / the weight that leaves each; 0 where none does
    places: Array  # uint32: where the share of each entry's vertex stands; `rows`: nowhere
    values: Array | None  # float64: the weight of each entry; None: 1 each
    inner: int = 0  # rows before the fringe; 0: passes over the fringe do not pay

    @property
    def shape(self) -> tuple[Any, ...]:
        """What layout.cuh calls LAYOUT."""
        return self[:7]

    @property
    def tasks(self) -> int:
        """Of a round, a warp each."""
        teams = -(-(self.unsliced - self.hubs) // 4)
        return self.pieces + teams + -(-(self.rows - self.unsliced) // 32)


def lay_out(
    view: View,
    reverse: View,
    vertices: Array | None,
    leaving: Array | None,
    reverse_weights: Array | None,
) -> Layout:
    """vertices: bool[n], which rows are vertices; None: all. leaving, float64[n], and
    reverse_weights, float64[m]: the weight that leaves each vertex and that of each entry of the
    transpose; None: 1 an entry."""
    n = view.num_rows
    is_vertex = cupy.ones(n, np.bool_) if vertices is None else vertices
    keys = _order(reverse.indptr, is_vertex)
    fences = [(ALL - length) << 32 for length in (PIECE, SHORT, FRINGE)]
    bounds = cupy.searchsorted(keys, cupy.asarray([*fences, (1 << 64) - 1], np.uint64))
    hubs, unsliced, longer, rows = bounds.tolist()
    vertex, place_of = _numbered(keys, rows)
    is_symmetric = view.indptr is reverse.indptr
    if not is_symmetric:
        _, place_of = _numbered(_order(view.indptr, is_vertex), rows)
    shape = _shape(keys, hubs, unsliced, rows)
    place, inverse = cupy.empty(rows, np.uint32), cupy.empty(rows)
    launch.run(
        FILE, "describe_rows", rows, vertex, rows, place_of, view.indptr,
        inverse if leaving is None else leaving, int(leaving is None), place, inverse,
    )  # fmt: skip
    entries = int(shape[4][-1])
    places = cupy.empty(entries, np.uint32)
    is_weighted = reverse_weights is not None
    values = cupy.empty(entries) if is_weighted else None
    inner = _inner(shape, longer) if is_symmetric else 0
    layout = Layout(*(*shape, vertex, place, inverse, places, values, inner))
    warps = layout.pieces + unsliced - hubs + -(-(rows - unsliced) // 32)
    launch.run(
        FILE, "fill", 32 * warps, *layout.shape, vertex, reverse.indptr, reverse.indices,
        reverse_weights if is_weighted else inverse, int(is_weighted), place_of, places,
        values if is_weighted else inverse,
    )  # fmt: skip
    driver.await_stream(cupy.cuda.get_current_stream())
    return layout


def _inner(shape: tuple[Any, ...], longer: int) -> int:
    """`Layout.inner`, with so many rows longer than the fringe's. The fringe begins with the first
    slice that has none of these, if there is one."""
    _, unsliced, rows, _, starts, *_ = shape
    slices = -(-(longer - unsliced) // 32)
    inner = unsliced + 32 * slices
    if rows <= FEW or inner >= rows:
        return 0
    entries = driver.number(starts, -1)
    few = entries - int(starts[unsliced + slices]) <= FRINGE_SHARE * entries
    return inner if few else 0


def _order(indptr: Array, is_vertex: Array) -> Array:
    """uint64[n], rising: the vertices from the one of most entries to those of none."""
    n = len(is_vertex)
    keys = cupy.empty(n, np.uint64)
    launch.run(FILE, "order_keys", n, indptr, is_vertex, n, keys)
    keys.sort()
    return keys


def _numbered(keys: Array, rows: int) -> tuple[Array, Array]:
    """The vertices in their order, uint32[rows], and the place of each in it, uint32[n]."""
    vertex, place_of = cupy.empty(rows, np.uint32), cupy.empty(len(keys), np.uint32)
    launch.run(FILE, "number_rows", rows, keys, rows, vertex, place_of)
    return vertex, place_of


def _shape(keys: Array, hubs: int, unsliced: int, rows: int) -> tuple[Any, ...]:
    """`Layout.shape` of rows in this order."""
    units = unsliced + -(-(rows - unsliced) // 32)
    size, pieces = driver.zeros(units + 1, np.int64), driver.zeros(hubs + 1, np.int64)
    launch.run(FILE, "measure", units, keys, hubs, unsliced, rows, size[1:], pieces[1:])
    starts, first_piece = cupy.cumsum(size), cupy.cumsum(pieces)
    of_hubs = driver.number(first_piece, -1)
    hub = cupy.searchsorted(first_piece[1:], cupy.arange(of_hubs), side="right").astype(np.uint32)
    return hubs, unsliced, rows, of_hubs, starts, first_piece, hub
