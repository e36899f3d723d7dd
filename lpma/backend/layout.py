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
Scalars in, scalars out. numba/ranks.py has the same for compiled kernels, cuda/store.cuh for a
device's.
"""

from __future__ import annotations


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


def rank_of(level: int, offset: int, m: int) -> int:
    """Inverse of `level_and_offset`."""
    if level == 0:
        return 0
    return (2 * offset + 1) << (m - level)


def heap_number(rank: int, m: int) -> int:
    """The segment's number in the tree; the window that its fence splits. 0 for the head."""
    if rank == 0:
        return 0
    return ((1 << m) + rank) >> (_trailing_zeros(rank) + 1)
