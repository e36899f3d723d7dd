"""Joining and separating components on the CPU: see `components`."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from lpma.backend.numba.threads import cuts

from .._rows import together
from ..components import compress, link
from ._triangles_cpu import gallop
from .figure import Change


Array = npt.NDArray[Any]

LOOKED_AT = 1024  # entries of a row, at most
PIECE = 1 << 8  # entries of a list in a thread's turn
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)


def separate(change: Change, labels: Array) -> bool:
    """Whether each deleted edge is one that does not cut, or takes a leaf away: leaves are then
    labelled by themselves. If not, the labels are spoilt."""
    rows = change.before.indptr, change.after.indptr, change.after.indices
    pieces = cuts(len(change.deleted), PIECE, per_thread=4)
    return all(together(_separate, [(*cut, change.deleted, *rows, labels) for cut in pieces]))


def join(inserted: Array, labels: Array) -> None:
    """Hook the components at both ends of each inserted edge together, and flatten the labels."""
    _join(inserted, labels)
    together(compress, [(*cut, labels) for cut in cuts(len(labels), 1 << 16)])


@numba.njit(cache=True, nogil=True)
def _join(inserted: Array, labels: Array) -> None:
    for edge in inserted:
        u, v = np.int64(edge >> HALF), np.int64(edge & LOW)
        if u < v:
            link(u, v, labels)


@numba.njit(cache=True, nogil=True)
def _separate(
    first: int, last: int, deleted: Array, before: Array, indptr: Array, indices: Array,
    labels: Array,
) -> bool:  # fmt: skip
    """Of entries first … last - 1. Only the one entry of a leaf changes its label."""
    for i in range(first, last):
        u, v = np.int64(deleted[i] >> HALF), np.int64(deleted[i] & LOW)
        if before[u + 1] - before[u] == 1:
            if u < len(labels):
                if labels[u] == u and before[v + 1] - before[v] > 1:
                    return False
                labels[u] = u
        elif u < v and before[v + 1] - before[v] > 1 and not _joined(u, v, indptr, indices):
            return False
    return True


@numba.njit(cache=True, nogil=True)
def _joined(u: int, v: int, indptr: Array, indices: Array) -> bool:
    """Whether u and v have a common neighbour among the shorter row's first, or their strongest
    neighbours are joined."""
    if max(u, v) >= len(indptr) - 1:
        return False
    a, b = indices[indptr[u] : indptr[u + 1]], indices[indptr[v] : indptr[v + 1]]
    if len(a) == 0 or len(b) == 0:
        return False
    if len(a) > len(b):
        a, b = b, a
    at = 0
    for w in a[:LOOKED_AT]:
        at = gallop(b, at, w)
        if at == len(b):
            break
        if b[at] == w:
            return True
    x, y = _strongest(a, indptr), _strongest(b, indptr)
    of_x = indices[indptr[x] : indptr[x + 1]]
    place = np.searchsorted(of_x, np.uint32(y))
    return bool(place < len(of_x) and of_x[place] == y)


@numba.njit(cache=True, nogil=True)
def _strongest(row: Array, indptr: Array) -> np.int64:
    """One of highest degree among the first LOOKED_AT entries."""
    best = np.int64(row[0])
    for entry in row[:LOOKED_AT]:
        w = np.int64(entry)
        if indptr[w + 1] - indptr[w] > indptr[best + 1] - indptr[best]:
            best = w
    return best
