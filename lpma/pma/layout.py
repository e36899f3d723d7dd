"""Where a segment lives: rank ⇄ (level, offset) ⇄ heap number (paper, Section III-B).

With m levels beside the head there are 2^m segments. A segment's *rank* is its place in key
order; its *level* and *offset* say which allocation holds it; its *heap number* names it in the
perfect binary tree over the segments, and is also the number of the window it splits.

    level, offset = m - z, rank >> (z + 1)     with z = ctz(rank), rank > 0;  the head is (0, 0)
    rank          = (2 * offset + 1) << (m - level)
    heap number   = 2^(level - 1) + offset  =  (2^m + rank) >> (z + 1);       the head's is 0

Windows are numbered w = 2^(m - layer) + j. The leaf window of a rank is 2^m + rank; w >> 1 is
the window around w; 2w and 2w + 1 are its halves. Expansion makes rank i rank 2i and leaves
every heap number and every w as it is: that is why no edge moves.

The paper's Equation (1) prints the exponent as m - x + 1; m - x is what inverts Equation (2).
The last level may be there in part: its segments come in PARTS parts, an eighth of all ranks each,
and rank r belongs to part number 1, 3, 2, 4 for r mod 8 = 1, 3, 5, 7. So each part puts one segment
more into every window of eight ranks, and a window of three layers or more has its share of what is
there. A segment that is not there yet is like one that an expansion has just made: nothing is in
it, and its fence is its successor's, so that nothing is located into it. Within a level, segments
lie part by part: what is there of a level is where its allocation begins.

Scalars in, scalars out. numba/addressing.py has the same for compiled kernels,
cuda/kernels/store.cuh for a device's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

PARTS = 4
PERIOD = 8  # ranks after which it is the same segments that are there
PARTED_SLOTS = 1 << 27  # a level of fewer slots comes whole: to double it takes less time
EVEN_SLOTS = 1024
NO_LEVEL = 1 << 30  # above all levels
_PART_OF = {1: 1, 5: 2, 3: 3, 7: 4}  # by the rank modulo PERIOD


class Size(NamedTuple):
    """How much there is of a store: m levels beside the head, the last one in `parts` parts of
    PARTS. A larger one compares as greater. REQUIRES: where m < 3, all parts."""

    m: int
    parts: int = PARTS

    @property
    def segments(self) -> int:
        """How many segments are there."""
        return (1 << self.m) * (PARTS + self.parts) // PERIOD if self.m else 1

    @property
    def by_level(self) -> list[int]:
        """How many segments of each level are there."""
        levels = [1, *(1 << (level - 1) for level in range(1, self.m + 1))]
        if self.parts < PARTS:
            levels[-1] = levels[-1] * self.parts // PARTS
        return levels

    def larger(self, parted_from: int) -> Size:
        """The next one, where levels come in parts from level `parted_from` on."""
        if self.parts < PARTS:
            return Size(self.m, self.parts + 1)
        return Size(self.m + 1, 1 if self.m + 1 >= parted_from else PARTS)


NOTHING = Size(0)  # the head alone


def even_layer(size: Size, segment_size: int) -> int:
    """The layer of EVEN_SLOTS slots, which a CUDA block can stage: its windows are spread evenly
    when a store has got a part of a level; 0 where these do not all have a share of it."""
    layer = min((EVEN_SLOTS // segment_size).bit_length() - 1, size.m)
    return layer if layer >= 3 else 0


def parted_from(segment_size: int) -> int:
    """The first level that comes in parts: one of PARTED_SLOTS slots or more."""
    return max(3, (PARTED_SLOTS // segment_size).bit_length())


def is_there(rank: int, size: Size) -> bool:
    """Whether there is a segment of this rank."""
    return size.m < 3 or _PART_OF.get(rank % PERIOD, 0) <= size.parts


def place_in_level(level: int, offset: int) -> int:
    """Where a segment lies in its level's allocation, in segments."""
    if level < 3:
        return offset
    return ((offset & 1) << 1 | (offset & 2) >> 1) << (level - 3) | offset >> 2


def by_place(offsets: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Entries by the offset of a level's segments, in the order in which the segments lie."""
    if len(offsets) < PARTS:
        return offsets
    return np.concatenate([offsets[first::PARTS] for first in (0, 2, 1, 3)])


def _trailing_zeros(value: int) -> int:
    return (value & -value).bit_length() - 1


def level_and_offset(rank: int, m: int) -> tuple[int, int]:
    """The allocation that holds segment `rank`, and its index there. 0 <= rank < 2^m."""
    if rank == 0:
        return 0, 0
    z = _trailing_zeros(rank)
    return m - z, rank >> (z + 1)


def level_slots(level: int, segment_size: int) -> int:
    """How many slots a level's allocation has."""
    return segment_size << max(level - 1, 0)


def heap_number(rank: int, m: int) -> int:
    """The segment's number in the tree; the window that its fence splits. 0 for the head."""
    if rank == 0:
        return 0
    return ((1 << m) + rank) >> (_trailing_zeros(rank) + 1)
