"""Scores of owners on a CUDA device by listing the edges of each ego network: see `listing` for the
method, and listing.cu for the kernels.

The room that an owner needs is shared memory if the owner is *small*. *Large* owners are scored in
parts, as many at a time as the device's memory has room for, from the largest down. *Huge* ones,
which would keep a block busy long after all others, get the whole device one after the other: costs
fitted on an H200, where the largest owner of a graph with hubs takes one block up to two seconds
and the whole device some ten milliseconds, decide which these are.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from lpma.arrays import count_true
from lpma.cuda import driver, launch
from lpma.cuda.driver import free_bytes

from ...arrays import ranges_within, starts_of
from ..model import MODELS, fewest_vertices
from .types import RankedEgos

Array = Any  # cupy.ndarray

HEAD, ABSORB_THREADS = 128, 256  # absorb.cu
SMALL_WORDS = 2560  # listing.cu
COST_POWER = 1.5  # of a row's length: what its owner costs, about
BLOCKS = 1056  # that work side by side: eight for each of 132 multiprocessors
SPEEDUP = 250  # of the whole device over one block
ROUNDS = {"component": 20_000, "core": 2_000, "truss": 800}  # what waiting for all blocks costs
SMALL_THREADS, LARGE_THREADS, HUGE_THREADS = 128, 256, 512
AT_ONCE = 8192  # owners: several times as many small ones as a device works on at the same time
ROOM_BYTES = 1 << 33  # at most, and at most half of what is free
MOST_VERTICES = 1 << 30
WHOLE_DEVICE = 1 << 30  # more threads than it has


def largest_row(model: str) -> int:
    """As `cpu.largest_row`."""
    words = room_bytes() // 4
    if model == "component":
        return min(MOST_VERTICES, words // 2)
    return int((32 * words) ** 0.5) - 64  # two vectors besides the matrix, and its rows rounded up


def finish() -> None:
    """As `cpu.finish`."""
    driver.await_stream(cupy.cuda.get_current_stream())


def score(egos: RankedEgos, owners: Array, starts: Array, scores: Array, label: Array) -> None:
    """As `cpu.score`."""
    by_length = cupy.argsort(-egos.row_lengths(owners))
    owners, starts = owners[by_length], starts[by_length]
    length = egos.row_lengths(owners)
    large = count_true(_words(length, egos.model) > SMALL_WORDS)
    of_large = cupy.asnumpy(length[:large])
    huge = huge_owners(of_large, egos.model)
    found = driver.zeros(len(owners), np.int32)
    model = MODELS.index(egos.model)

    def run(kernel: str, first: int, last: int, items: int, block: int, *team: Any) -> None:
        launch.run_together(
            "algorithms/diversity/listing/listing.cu", f"{kernel}<{model}>", items,
            egos.slots.indptr, egos.slots.indices, egos.lower.indptr, egos.lower.indices,
            owners[first:last], last - first, egos.k, fewest_vertices(egos.model, egos.k),
            found[first:last], starts[first:last], len(label), label, *team, block=block,
        )  # fmt: skip

    def queue() -> Array:
        return driver.zeros(1, np.uint64)

    words = _words(of_large, egos.model)
    if huge:
        room = cupy.empty(int(words[0]), np.int32)
        flags = driver.zeros(3, np.uint32)
        run("huge", 0, huge, WHOLE_DEVICE, HUGE_THREADS, flags, room)
    for first, last in ranges_within(words, room_bytes() // 4, huge):
        rooms = starts_of(words[first:last])
        room = cupy.empty(int(rooms[-1]), np.int32)
        items = LARGE_THREADS * (last - first)
        run("large", first, last, items, LARGE_THREADS, queue(), room, cupy.asarray(rooms))
    if large < len(owners):
        items = SMALL_THREADS * (len(owners) - large)
        run("small", large, len(owners), items, SMALL_THREADS, queue())
    scores[by_length] = found


def absorb(egos: RankedEgos, owners: Array, starts: Array, rest: Array) -> Array:
    """As `absorb_cpu.absorb`; blocks take owners from a counter."""
    left, queue = cupy.empty(len(owners), np.int32), driver.zeros(1, np.uint64)
    launch.run_together(
        "algorithms/diversity/listing/absorb.cu", f"absorb<{MODELS.index(egos.model)}>",
        ABSORB_THREADS * len(owners), egos.slots.indptr, egos.slots.indices, egos.lower.indptr,
        egos.lower.indices, owners, len(owners), egos.k, fewest_vertices(egos.model, egos.k),
        starts, rest, left, queue, block=ABSORB_THREADS,
    )  # fmt: skip
    return left


def huge_owners(length: Any, model: str) -> int:
    """How many of the first owners should get the whole device, one after the other, so that the
    total time is least: theirs, plus that of the largest of the others in one block or of all of
    them together. length: int64[q] on the host, falling: the lengths of their rows."""
    cost = np.append(length.astype(np.float64) ** COST_POWER, 0.0)
    before = np.cumsum(cost) - cost
    one_by_one = np.arange(len(cost)) * ROUNDS[model] + before / SPEEDUP
    side_by_side = np.maximum(cost, (before[-1] - before) / BLOCKS)
    return int(np.argmin(one_by_one + side_by_side))


def _words(length: Any, model: str) -> Any:
    """int64[q]: the rooms, in words of 4 bytes, of owners with rows of these lengths, int64[q]."""
    matrix = 0 if model == "component" else length * ((length + 31) // 32)
    return 2 * length + matrix


def room_bytes() -> int:
    """As `cpu.room_bytes`."""
    return min(ROOM_BYTES, free_bytes() // 2)
