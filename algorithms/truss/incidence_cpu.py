"""The incidence of edges and triangles on the CPU: for every edge the triangles it is in.

Idea: a triangle's slots are uv, uw and vw (`triangles.cpu`), and only the list under uv is found by
look-ups. That under uw follows from it row by row, since both of u's slots are in u's row, and that
under vw middle vertex by middle vertex. So every list has one writer, no counter is shared, and
writes are close together. With one list per edge and atomic cursors this took three times as long.

Tricks: a ranked row has at most sqrt(2m) < 2^16 entries, so the distance of two slots of one row
takes 16 bits. An edge's triangles are then

    as uv    uw, by how far it lies before uv; vw, by its place in the row of v    4 bytes
    as uw    vw, and how far uv lies behind uw                                     6 bytes
    as vw    uv, and how far uw lies before it                                     6 bytes

which is half of two slots under each edge, beside the list that they are made from. Fresh pages are
expensive: the system clears them first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows

from ..arrays import Array, starts_of
from ..triangles.cpu import by_middle
from ..triangles.ranked import Ranked


class Incidence(NamedTuple):
    """Each edge's triangles: 16 bytes per triangle. Slots are edges; see above."""

    indptr: Array  # int64[n+1], of the ranked view
    indices: Array  # uint32[m], of the ranked view
    found_starts: Array  # int64[m+1]: where the triangles start in which an edge is uv
    found: Array  # uint16[triangles, 2]: uv - uw, and vw - indptr[v]
    starts: Array  # int64[m+1]: where the others start
    middle: Array  # int64[m]: those before have the edge as uw, the others as vw
    slot: Array  # int32[2 * triangles]: vw, or uv
    apart: Array  # uint16[2 * triangles]: uv - uw

    @property
    def support(self) -> Array:
        """int32[m]."""
        return (np.diff(self.found_starts) + np.diff(self.starts)).astype(np.int32)


def incidence(ranks: Ranked) -> Incidence:
    """Every triangle under each of its edges."""
    m, indptr, indices = ranks.num_edges, ranks.indptr, ranks.indices
    of_uv, of_uw, of_vw = np.zeros((3, m), np.int32)
    by_middle(_count_parts, ranks, of_uv, of_vw)
    found_starts = starts_of(of_uv)
    found = np.empty((int(found_starts[-1]), 2), np.uint16)
    by_middle(_list_uv, ranks, found_starts, found)
    by_apex = found_starts[indptr]
    by_rows(_count_uw, by_apex, indptr, found_starts, found, of_uw)

    starts = starts_of(of_uw + of_vw)
    slot, apart = np.empty(int(starts[-1]), np.int32), np.empty(int(starts[-1]), np.uint16)
    cursor = starts[:-1].copy()
    lists = found_starts, found, cursor, slot, apart
    by_rows(_list_uw, by_apex, indptr, indices, *lists)
    middle = cursor.copy()
    by_rows(_list_vw, ranks.in_indptr, ranks.in_indptr, ranks.in_slot, indptr, *lists)
    return Incidence(indptr, indices, found_starts, found, starts, middle, slot, apart)


@compiled
def _count_parts(
    first: int, last: int, indptr: Array, indices: Array, in_indptr: Array, in_slot: Array,
    in_length: Array, of_uv: Array, of_vw: Array,
) -> None:  # fmt: skip
    counted = np.zeros(last, np.int32)  # 1 + the triangles of (v, w) so far, 0 without it
    for v in range(first, last):
        row = indices[indptr[v] : indptr[v + 1]]
        if len(row) == 0:
            continue
        for w in row:
            counted[w] = 1
        for i in range(in_indptr[v], in_indptr[v + 1]):
            uv = in_slot[i]
            found = 0
            for w in indices[uv - in_length[i] : uv]:
                hit = counted[w] > 0
                counted[w] += hit
                found += hit
            of_uv[uv] = found
        for k in range(len(row)):
            of_vw[indptr[v] + k] = counted[row[k]] - 1
            counted[row[k]] = 0


@compiled
def _list_uv(
    first: int, last: int, indptr: Array, indices: Array, in_indptr: Array, in_slot: Array,
    in_length: Array, starts: Array, found: Array,
) -> None:  # fmt: skip
    """List the triangles of each uv, w rising."""
    behind = np.zeros(last, np.uint16)  # 1 + the place of w in the row of v, 0 if it is not there
    for v in range(first, last):
        row = indices[indptr[v] : indptr[v + 1]]
        for k in range(len(row)):
            behind[row[k]] = k + 1
        for i in range(in_indptr[v], in_indptr[v + 1]):
            uv = in_slot[i]
            place = starts[uv]
            if place == starts[uv + 1]:
                continue
            for uw in range(uv - in_length[i], uv):
                k = behind[indices[uw]]
                if k > 0:
                    found[place, 0], found[place, 1] = uv - uw, k - 1
                    place += 1
        for w in row:
            behind[w] = 0


@compiled
def _count_uw(
    first: int, last: int, indptr: Array, starts: Array, found: Array, of_uw: Array
) -> None:
    """Count triangles at uw. Those of u in first … last - 1 touch only these rows."""
    for uv in range(indptr[first], indptr[last]):
        for i in range(starts[uv], starts[uv + 1]):
            of_uw[uv - np.int64(found[i, 0])] += 1


@compiled
def _list_uw(
    first: int, last: int, indptr: Array, indices: Array, found_starts: Array, found: Array,
    cursor: Array, slot: Array, apart: Array,
) -> None:  # fmt: skip
    """List the triangles of each uw, moving the cursors on."""
    for uv in range(indptr[first], indptr[last]):
        row = indptr[indices[uv]]
        for i in range(found_starts[uv], found_starts[uv + 1]):
            uw = uv - np.int64(found[i, 0])
            place = cursor[uw]
            cursor[uw] = place + 1
            slot[place], apart[place] = row + found[i, 1], found[i, 0]


@compiled
def _list_vw(
    first: int, last: int, in_indptr: Array, in_slot: Array, indptr: Array, found_starts: Array,
    found: Array, cursor: Array, slot: Array, apart: Array,
) -> None:  # fmt: skip
    """List the triangles of each vw, moving the cursors on from the middles."""
    for v in range(first, last):
        row = indptr[v]
        for uv in in_slot[in_indptr[v] : in_indptr[v + 1]]:
            for i in range(found_starts[uv], found_starts[uv + 1]):
                vw = row + np.int64(found[i, 1])
                place = cursor[vw]
                cursor[vw] = place + 1
                slot[place], apart[place] = uv, found[i, 0]
