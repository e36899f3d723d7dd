"""Scores of owners on the CPU by listing the edges of each ego network: see `listing` for the
method.

An owner's row is marked in a table, and the lower rows of its neighbours are looked up there: each
hit is an edge of the ego network. Edges join a forest over the row's places in the component model,
and fill a matrix of bits (`bits_cpu`) in the others. Table, forest and matrix belong to a piece of
the owners; threads take piece after piece. Owners are dealt out to pieces in turn from the longest
row down, so that pieces are alike.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.threads import THREADS, run_all
from lpma.host import available_memory_bytes

from ...arrays import Array
from ...components.cpu import root_of
from ..model import MODELS, NONE
from .absorb_cpu import HEAD, absorb
from .bits_cpu import components, fill, shrink_to_core, shrink_to_truss
from .types import RankedEgos

__all__ = ["AT_ONCE", "HEAD", "absorb", "finish", "largest_row", "room_bytes", "score", "words"]


COMPONENT, CORE, TRUSS = range(len(MODELS))
# Of an ego network, in each thread; at most, and at most half of what is free.
MATRIX_BYTES = 1 << 29
PIECES_PER_THREAD = 16
LEAST_PIECE = 64  # owners
# Owners of average size that take hardly longer than one: a piece for each thread.
AT_ONCE = LEAST_PIECE * THREADS


def largest_row(model: str) -> int:
    """The length of the largest owner's row for which there is memory."""
    if model == "component":
        return int(np.iinfo(np.int32).max)
    return int((8 * room_bytes()) ** 0.5) & ~63


def room_bytes() -> int:
    """The budget of what is made for owners: their matrices, or copies of their rows."""
    free = (available_memory_bytes() or np.inf) / (2 * THREADS)
    return int(min(MATRIX_BYTES, free))


def words(egos: RankedEgos) -> int:
    """How many words of 64 bits the matrices of all owners have, too large ones included."""
    length = np.diff(egos.slots.indptr)
    return int((length * ((length + 63) >> 6)).sum())


def finish() -> None:
    """Wait for what is enqueued, on the CPU nothing: a scorer may be used from any thread and
    stream."""


def score(egos: RankedEgos, owners: Array, starts: Array, scores: Array, label: Array) -> None:
    """Write the scores of owners, int64[q], which are ranks, to scores, int32[q]. Unless label,
    int32[starts[-1]], is empty, also write the context of each vertex of owner i's row there, from
    starts[i] on: the place in the row of one of the context's vertices, or NONE. REQUIRES: rows no
    longer than `largest_row`."""
    length = egos.row_lengths(owners)
    by_length = np.argsort(-length, kind="stable")
    number = min(PIECES_PER_THREAD * THREADS, len(owners) // LEAST_PIECE + 1)
    graph = (egos.slots.indptr, egos.slots.indices, egos.lower.indptr, egos.lower.indices)
    which = MODELS.index(egos.model), egos.k
    pieces = (by_length[i::number] for i in range(number))
    calls = [(*graph, *which, owners, piece, starts, scores, label) for piece in pieces]
    run_all(_score, calls)


@compiled
def _score(
    slots_indptr: Array, slots: Array, lower_indptr: Array, lower: Array, model: int, k: int,
    owners: Array, piece: Array, starts: Array, scores: Array, label: Array,
) -> None:  # fmt: skip
    """piece: the places of the owners to score, the one of the longest row first."""
    if len(piece) == 0:
        return
    u = owners[piece[0]]
    longest = slots_indptr[u + 1] - slots_indptr[u]
    place = np.zeros(len(lower_indptr) - 1, np.int32)  # 1 + that of a vertex in the owner's row
    root, size = np.empty(longest, np.int32), np.empty(longest, np.int32)
    stack = np.empty(longest, np.int32)
    is_queued = np.zeros(longest, np.uint8)
    room = np.empty(longest * ((longest + 63) >> 6) if model != COMPONENT else 0, np.int64)
    for i in piece:
        u = owners[i]
        row = slots[slots_indptr[u] : slots_indptr[u + 1]]
        for x in range(len(row)):
            place[row[x]] = x + 1
        if model == COMPONENT:
            scores[i] = _count_components(row, lower_indptr, lower, place, k, root, size)
        else:
            words = (len(row) + 63) >> 6
            matrix = room[: len(row) * words].reshape(len(row), words)
            fill(row, lower_indptr, lower, place, matrix, size)
            if model == CORE:
                shrink_to_core(matrix, k, size, stack)
            elif k > 2:
                shrink_to_truss(matrix, k - 2, stack, is_queued)
            scores[i] = components(matrix, root, stack)
        for x in range(len(row)):
            place[row[x]] = 0
        if len(label):
            for x in range(len(row)):
                label[starts[i] + x] = root[x]


@compiled
def _count_components(
    row: Array, lower_indptr: Array, lower: Array, place: Array, k: int, root: Array, size: Array
) -> int:
    """How many components have k vertices or more. Writes `root` as `components` does."""
    n = len(row)
    for x in range(n):
        root[x] = x
        size[x] = 0
    for x in range(n):
        v = np.int64(row[x])
        a = root_of(x, root)
        for w in lower[lower_indptr[v] : lower_indptr[v + 1]]:
            if place[w] == 0:
                continue
            b = root_of(np.int64(place[w] - 1), root)
            if a != b:
                a, b = min(a, b), max(a, b)
                root[b] = a
    for x in range(n):  # a parent comes before its child
        root[x] = root[root[x]]
        size[root[x]] += 1
    count = 0
    for x in range(n):
        count += size[x] >= k
    for x in range(n):
        if size[root[x]] < k:
            root[x] = NONE
    return count
