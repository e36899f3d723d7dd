"""The incidence of edges and triangles on the CPU: for every edge the triangles it is in.

Idea: a triangle's slots are uv, uw and vw (`triangles.cpu`), and only the part of the incidence
under uv is found by looking rows up. The part under uw follows from it row by row, since both of
u's slots lie in u's row; the part under vw follows middle vertex by middle vertex. So every list is
written by one thread, which owns the rows that the list belongs to: no counter is shared, and
writes lie close together. With one list per edge and atomic cursors this took three times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows

from ..triangles.cpu import by_middle
from ..triangles.types import Ranked

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Incidence:
    """Each edge's triangles as the two other slots, in no order: 24 bytes per triangle."""

    starts: Array  # int64[m+1]
    pairs: Array  # int32[3 * triangles, 2]

    @property
    def support(self) -> Array:
        """int32[m]."""
        return np.diff(self.starts).astype(np.int32)


def incidence(ranks: Ranked) -> Incidence:
    """Each edge's triangles: first those in which it is uv, then uw, then vw."""
    of_uv, of_uw, of_vw = counts = np.zeros((3, ranks.num_edges), np.int32)
    by_middle(_count_parts, ranks, of_uv, of_vw)
    found_starts = _starts(of_uv)
    found = np.empty((int(found_starts[-1]), 2), np.int32)  # the part under uv
    by_middle(_list_uv, ranks, found_starts, found)
    by_apex = found_starts[ranks.indptr]
    by_rows(_count_uw, by_apex, ranks.indptr, found_starts, found, of_uw)

    starts = _starts(counts.sum(axis=0, dtype=np.int32))
    pairs = np.empty((int(starts[-1]), 2), np.int32)
    at_uv = starts[:-1]
    at_uw = at_uv + of_uv
    at_vw = at_uw + of_uw
    by_rows(_list_at_apex, by_apex, ranks.indptr, found_starts, found, at_uv, at_uw, pairs)
    by_rows(
        _list_vw, ranks.in_indptr, ranks.in_indptr, ranks.in_slot, found_starts, found, at_vw, pairs
    )
    return Incidence(starts, pairs)


def _starts(counts: Array) -> Array:
    """int64[m+1]: where lists of these lengths start, one after the other."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


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
    in_length: Array, starts: Array, pairs: Array,
) -> None:  # fmt: skip
    """Write (uw, vw) to the list of uv."""
    slot_of = np.full(last, -1, np.int32)  # of (v, w), by w
    for v in range(first, last):
        row = indices[indptr[v] : indptr[v + 1]]
        for k in range(len(row)):
            slot_of[row[k]] = indptr[v] + k
        for i in range(in_indptr[v], in_indptr[v + 1]):
            uv = in_slot[i]
            place = starts[uv]
            if place == starts[uv + 1]:
                continue
            for uw in range(uv - in_length[i], uv):
                vw = slot_of[indices[uw]]
                if vw >= 0:
                    pairs[place, 0], pairs[place, 1] = uw, vw
                    place += 1
        for w in row:
            slot_of[w] = -1


@compiled
def _count_uw(
    first: int, last: int, indptr: Array, starts: Array, pairs: Array, of_uw: Array
) -> None:
    """Count triangles at uw. Those of u in first … last - 1 touch only these rows."""
    for i in range(starts[indptr[first]], starts[indptr[last]]):
        of_uw[pairs[i, 0]] += 1


@compiled
def _list_at_apex(
    first: int, last: int, indptr: Array, starts: Array, found: Array, at_uv: Array, at_uw: Array,
    pairs: Array,
) -> None:  # fmt: skip
    """Write (uw, vw) to the list of uv, and (uv, vw) to that of uw, moving at_uw on."""
    for uv in range(indptr[first], indptr[last]):
        place = at_uv[uv]
        for i in range(starts[uv], starts[uv + 1]):
            uw, vw = found[i, 0], found[i, 1]
            pairs[place, 0], pairs[place, 1] = uw, vw
            place += 1
            other = at_uw[uw]
            at_uw[uw] = other + 1
            pairs[other, 0], pairs[other, 1] = uv, vw


@compiled
def _list_vw(
    first: int, last: int, in_indptr: Array, in_slot: Array, starts: Array, found: Array,
    at_vw: Array, pairs: Array,
) -> None:  # fmt: skip
    """Write (uv, uw) to the list of vw, moving at_vw on."""
    for uv in in_slot[in_indptr[first] : in_indptr[last]]:
        for i in range(starts[uv], starts[uv + 1]):
            uw, vw = found[i, 0], found[i, 1]
            place = at_vw[vw]
            at_vw[vw] = place + 1
            pairs[place, 0], pairs[place, 1] = uv, uw
