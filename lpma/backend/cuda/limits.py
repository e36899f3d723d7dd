"""How large a store on a CUDA device may be."""

from __future__ import annotations

# Kernels number windows, slots of a window and filled slots in 32 bits. The root of a store of 2^31
# slots, in segments of 2 at least, is the largest in which 32 bits number all of these.
MAX_SLOTS = 1 << 31


def most_levels(segment_size: int) -> int:
    """The highest m of a store with segments of that size."""
    return (MAX_SLOTS // segment_size).bit_length() - 1
