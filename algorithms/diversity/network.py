"""One vertex's ego network."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lpma.arrays import array_module, device_of, to_host

from ..arrays import Array
from ..views.simple import induced, simple


class EgoNetwork(NamedTuple):
    """The ego network of one vertex, on the host: each edge once, by places in `vertices`."""

    vertices: Array  # uint32[d]: the owner's neighbours, rising
    src: Array  # int64[e], each smaller than its dst
    dst: Array  # int64[e]


def ego_network(s: Any, owner: int) -> EgoNetwork:
    """The subgraph that a vertex's neighbours induce. For s see `algorithms.diversity`. Raises
    IndexError if the owner is not a row of s, and as `diversity` does.

    >>> graph = lpma.from_edges([0, 0, 1, 2], [1, 2, 2, 3], device="cpu")
    >>> ego = ego_network(graph.snapshot(), 2)
    >>> ego.vertices.tolist(), ego.src.tolist(), ego.dst.tolist()
    ([0, 1, 3], [0], [1])
    """
    view = simple(s)
    if not 0 <= owner < view.num_rows:
        raise IndexError(f"there is no vertex {owner}: they go from 0 to {view.num_rows - 1}")
    with device_of(view.indptr):
        xp = array_module(view.indptr)
        first, last = view.indptr[owner : owner + 2].tolist()
        row = view.indices[first:last]
        inside = xp.zeros(view.num_rows, bool)
        inside[row] = True
        ego = induced(view, inside)
        lengths = to_host((ego.indptr[1:] - ego.indptr[:-1])[row])
        vertices, others = to_host(row), to_host(ego.indices)
    src, dst = np.repeat(np.arange(len(vertices)), lengths), np.searchsorted(vertices, others)
    return EgoNetwork(vertices, src[src < dst], dst[src < dst])
