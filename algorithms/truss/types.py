"""What both devices call the edges of the simple view when they intersect rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

Array = npt.NDArray[Any]  # or cupy.ndarray


class EdgeRows(NamedTuple):
    """The simple view, with the number of every entry's edge in the edge list sorted by (src, dst).

    `last`, `indices` and `edge` are copies: peeling drops edges from the rows."""

    src: Array  # uint32[m]: the edge's ends, in the order of the edge list
    dst: Array  # uint32[m]
    first: Array  # int64[n] or longer: row u is first[u] … last[u] - 1
    last: Array  # int64[n]
    indices: Array  # uint32[2m], sorted within a row
    edge: Array  # int32[2m]
