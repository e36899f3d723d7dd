"""Keys: an edge (src, dst) as one integer, src << 32 | dst.

Keys in ascending order are edges sorted by source and then by target. A vertex that was added by
itself has a *marker*: a key whose target is 2^32 - 1, which is not a vertex id, so that it comes
last among the keys of its vertex.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Array

HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)  # the lower half; as a target, that of a marker


def keys_of(src: Array, dst: Array | np.uint64) -> Array:
    """uint64[n]: the keys of edges (src[i], dst[i]), of any integer types; LOW: of markers."""
    keys: Array = (src.astype(np.uint64) << HALF) | dst.astype(np.uint64)
    return keys


def one_id(vertex: int) -> Array:
    """uint32[1]: a column of one vertex."""
    return np.array([vertex], np.uint32)


def ends_of(keys: Array) -> tuple[Array, Array]:
    """(src, dst), uint32[n] each, of uint64[n] keys."""
    return (keys >> HALF).astype(np.uint32), (keys & LOW).astype(np.uint32)


def reversed_keys(keys: Array) -> Array:
    """uint64[n]: the keys of the same edges reversed."""
    back: Array = ((keys & LOW) << HALF) | (keys >> HALF)
    return back


RISE, SOUND = 1, 2  # bits: what Slots says of a piece of them


class Slots(NamedTuple):
    """What columns of slots are: keys, markers too, and weights."""

    rise: bool  # the keys: strictly
    are_sound: bool  # no source is 2^32 - 1; weights are finite, not negative, and 0 of markers
    are_symmetric: bool  # each edge goes back, alike in all columns; not looked for if directed
    markers: int
    loops: int
    largest: int  # vertex; -1 if there is none
