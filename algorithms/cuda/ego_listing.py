"""Scores of owners on a CUDA device: the counterpart of `algorithms.ego._listing_cpu`.

See ego_listing.cu for the kernels. Owners are taken from the largest row down, so that the largest
are not begun last. What an owner needs to work in is in shared memory where it is small; the others
get room for as many of them as the memory has, one part after the other, and the largest of these
large blocks.

Requires arrays on the current device; work is enqueued on the current stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from ..ego.model import MODELS, fewest_vertices
from . import launch
from .truss import free_bytes

if TYPE_CHECKING:
    from ..ego.listing import Egos

Array = Any  # cupy.ndarray

SMALL_WORDS = 2560  # ego_listing.cu
HUGE_ROW = 2048
SMALL_THREADS, LARGE_THREADS, HUGE_THREADS = 128, 256, 1024
AT_ONCE = 8192  # owners: as many small ones as a device works on at the time, several times over
ROOM_BYTES = 1 << 33  # at most, and a half of what is free
MOST_VERTICES = 1 << 30


def largest_row(model: str) -> int:
    """Of an ego network that can be scored here."""
    words = _room_bytes() // 4
    if model == "component":
        return min(MOST_VERTICES, words // 2)
    return int((32 * words) ** 0.5) - 64  # two vectors beside the matrix, and its rows rounded up


def score(egos: Egos, owners: Array, starts: Array, scores: Array, label: Array) -> None:
    """As `algorithms.ego._listing_cpu.score`."""
    by_length = cupy.argsort(-egos.row_lengths(owners))
    owners, starts = owners[by_length], starts[by_length]
    length = egos.row_lengths(owners)
    words = _words(length, egos.model)
    is_large = words > SMALL_WORDS
    kinds = cupy.stack((is_large & (length >= HUGE_ROW), is_large))
    huge, large = kinds.sum(axis=1).tolist()
    found = cupy.empty(len(owners), np.int32)
    model = MODELS.index(egos.model)

    def run(kernel: str, first: int, last: int, block: int, *room: Any) -> None:
        launch.run_together(
            "ego_listing", f"{kernel}<{model}>", block * (last - first),
            egos.slots.indptr, egos.slots.indices, egos.lower.indptr, egos.lower.indices,
            owners[first:last], last - first, egos.k, fewest_vertices(egos.model, egos.k),
            cupy.zeros(1, np.uint64), found[first:last], starts[first:last], len(label), label,
            *room, block=block,
        )  # fmt: skip

    of_large = words[:large].get()
    for begin, end, block in ((0, huge, HUGE_THREADS), (huge, large, LARGE_THREADS)):
        for first, last in _parts(of_large[begin:end]):
            upto = np.zeros(last - first + 1, np.int64)
            np.cumsum(of_large[begin + first : begin + last], out=upto[1:])
            room = cupy.empty(int(upto[-1]), np.int32)
            run("large", begin + first, begin + last, block, room, cupy.asarray(upto))
    if large < len(owners):
        run("small", large, len(owners), SMALL_THREADS)
    scores[by_length] = found


def _words(length: Array, model: str) -> Array:
    """int64: the room of owners with so long rows."""
    matrix = 0 if model == "component" else length * ((length + 31) // 32)
    return 2 * length + matrix


def _parts(words: Any) -> list[tuple[int, int]]:
    """Ranges of owners that have room together."""
    most, parts, first = _room_bytes() // 4, [], 0
    upto = np.cumsum(words)
    while first < len(words):
        before = int(upto[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(upto, before + most, side="right")))
        parts.append((first, last))
        first = last
    return parts


def _room_bytes() -> int:
    return min(ROOM_BYTES, free_bytes() // 2)
