"""Scores of owners on a CUDA device: the counterpart of `algorithms.ego._listing_cpu`.

See ego_listing.cu for the kernels. What an owner needs to work in, its room, is in shared memory
where that is small. Of the others, the *large* ones, as many get room as the memory has, one part
after the other. Blocks take owners from the largest down, so that the largest are not begun last;
and the *huge* ones, which would keep a block busy long after all others are done, have the whole
device, one after the other. Which these are, costs tell that were fitted on an H200, where the
largest owner of a graph with hubs takes a block up to two seconds, and the device some ten
milliseconds.

Requires arrays on the current device; work is enqueued on the current stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from lpma.cuda import launch
from lpma.cuda.memory import free_bytes

from .model import MODELS, fewest_vertices

if TYPE_CHECKING:
    from .listing import Egos

Array = Any  # cupy.ndarray

SMALL_WORDS = 2560  # ego_listing.cu
COST_POWER = 1.5  # of a row's length: what its owner costs, about
BLOCKS = 1056  # that work side by side: eight for each of 132 multiprocessors
SPEEDUP = 250  # of the whole device, to one block
ROUNDS = {"component": 20_000, "core": 2_000, "truss": 800}  # what waiting for all blocks costs
SMALL_THREADS, LARGE_THREADS, HUGE_THREADS = 128, 256, 512
AT_ONCE = 8192  # owners: as many small ones as a device works on at the time, several times over
ROOM_BYTES = 1 << 33  # at most, and a half of what is free
MOST_VERTICES = 1 << 30
WHOLE_DEVICE = 1 << 30  # more threads than it has


def largest_row(model: str) -> int:
    """Of an ego network that can be scored here."""
    words = _room_bytes() // 4
    if model == "component":
        return min(MOST_VERTICES, words // 2)
    return int((32 * words) ** 0.5) - 64  # two vectors beside the matrix, and its rows rounded up


def finish() -> None:
    """Wait for what is enqueued, for a scorer is used from any thread and stream."""
    cupy.cuda.get_current_stream().synchronize()


def score(egos: Egos, owners: Array, starts: Array, scores: Array, label: Array) -> None:
    """As `algorithms.ego._listing_cpu.score`."""
    by_length = cupy.argsort(-egos.row_lengths(owners))
    owners, starts = owners[by_length], starts[by_length]
    length = egos.row_lengths(owners)
    large = int((_words(length, egos.model) > SMALL_WORDS).sum())
    of_large = cupy.asnumpy(length[:large])
    huge = huge_owners(of_large, egos.model)
    found = cupy.zeros(len(owners), np.int32)
    model = MODELS.index(egos.model)

    def run(kernel: str, first: int, last: int, items: int, block: int, *team: Any) -> None:
        launch.run_together(
            "algorithms/ego/listing.cu", f"{kernel}<{model}>", items,
            egos.slots.indptr, egos.slots.indices, egos.lower.indptr, egos.lower.indices,
            owners[first:last], last - first, egos.k, fewest_vertices(egos.model, egos.k),
            found[first:last], starts[first:last], len(label), label, *team, block=block,
        )  # fmt: skip

    def queue() -> Array:
        return cupy.zeros(1, np.uint64)

    words = _words(of_large, egos.model)
    if huge:
        room = cupy.empty(int(words[0]), np.int32)
        flags = cupy.zeros(3, np.uint32)
        run("huge", 0, huge, WHOLE_DEVICE, HUGE_THREADS, flags, room)
    for first, last in _parts(words, huge):
        rooms = np.zeros(last - first + 1, np.int64)
        np.cumsum(words[first:last], out=rooms[1:])
        room = cupy.empty(int(rooms[-1]), np.int32)
        items = LARGE_THREADS * (last - first)
        run("large", first, last, items, LARGE_THREADS, queue(), room, cupy.asarray(rooms))
    if large < len(owners):
        items = SMALL_THREADS * (len(owners) - large)
        run("small", large, len(owners), items, SMALL_THREADS, queue())
    scores[by_length] = found


def huge_owners(length: Any, model: str) -> int:
    """How many owners, the first ones, should have the whole device, so that all takes the least
    time: theirs, one after the other, and then that of the largest of the others or of all others
    together. length: int64[q] on the host, falling: their rows'."""
    cost = np.append(length.astype(np.float64) ** COST_POWER, 0.0)
    before = np.cumsum(cost) - cost
    one_by_one = np.arange(len(cost)) * ROUNDS[model] + before / SPEEDUP
    side_by_side = np.maximum(cost, (before[-1] - before) / BLOCKS)
    return int(np.argmin(one_by_one + side_by_side))


def _words(length: Any, model: str) -> Any:
    """int64: the room of owners with so long rows, which are on the host or the device."""
    matrix = 0 if model == "component" else length * ((length + 31) // 32)
    return 2 * length + matrix


def _parts(words: Any, first: int) -> list[tuple[int, int]]:
    """Ranges of owners, from `first` on, that have room together."""
    most, parts = _room_bytes() // 4, []
    upto = np.cumsum(words)
    while first < len(words):
        before = int(upto[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(upto, before + most, side="right")))
        parts.append((first, last))
        first = last
    return parts


def _room_bytes() -> int:
    return min(ROOM_BYTES, free_bytes() // 2)
