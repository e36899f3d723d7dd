"""Subsets enumerated on the CPU over compact bitmaps.

A root u has a matrix of bits, with a column per candidate and a line of words per 64 neighbours of
u: which of these the candidate has. It is stored line by line, so that vector instructions AND one
column with all columns after it.

Choosing column x keeps the bits of x and the later columns that share at least `least` of them.
These are packed into a smaller matrix, so that every level below is cheaper. With one column left
to choose nothing is packed: the counts of shared bits go into the histogram.

Each thread has a workspace, and takes tasks from a shared queue: pairs of a root and its first
column, numbered root by root. It takes runs of columns, so that a root's matrix serves a whole run.
REQUIRES: depth ≥ 2, sorted rows, and anchors numbered by rank.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from lpma.cpu.atomics import fetch_add
from lpma.cpu.instructions import ones
from lpma.cpu.jit import compiled
from lpma.cpu.threads import THREADS

from ...arrays import Array, starts_of
from ..progress import stoppable, watched
from .two_hop_cpu import Rows, after, clear, meet
from .types import Prices, Search

WORD = 64  # bits
ONE = np.uint64(1)
LOOK = 1024  # nodes of the search between two checks of whether to stop
NEXT, END, STOP = range(3)  # words of a queue: the first task not taken, the end, whether to stop
PAIRS, MOST_PAIRS = 32, 1 << 14  # that a thread takes at a time, at least and at most
RUNS = 64  # times that a thread takes some
SMALL_WORK = 512  # pairs below which one thread is used
# Bytes of a part: its rows and their starts in both directions, the table of one thread, and
# numbers for each root and vertex.
VERTEX, EDGE, OTHER = 80, 8, 8
FIXED = 1 << 14


class Workspace(NamedTuple):
    """What one thread writes. `columns` bounds a root's candidates, `cells` its matrix's words."""

    met: Array  # int32[n]: zero between roots
    found: Array  # uint32[columns]: candidates of the root, then the columns kept by a level
    shared: Array  # uint64[columns]: counts of shared bits
    cells: Array  # uint64[levels, cells]: the matrices
    shape: Array  # int64[levels, 3]: columns, words, the column chosen
    histogram: Array  # uint64[bins]

    @classmethod
    def of(cls, n: int, levels: int, columns: int, cells: int, bins: int) -> Workspace:
        return cls(
            np.zeros(n, np.int32), np.empty(columns, np.uint32), np.empty(columns, np.uint64),
            np.empty((levels, cells), np.uint64), np.empty((levels, 3), np.int64),
            np.zeros(bins, np.uint64),
        )  # fmt: skip

    @staticmethod
    def bytes_of(n: int, levels: int, columns: int, cells: int, bins: int) -> int:
        """How many bytes `of` allocates."""
        return 4 * n + 12 * columns + 8 * levels * cells + 24 * levels + 8 * bins


def search(searched: Search, num_candidates: Array, bins: int, memory_limit: int | None) -> Array:
    """uint64[bins]: the histogram of a search, as by `gbc.histogram`.

    num_candidates: int32[n], 0 for a vertex that is not a root. memory_limit: bytes within which
    the search stays, its graph included. REQUIRES: memory_limit is at least what `prices` gives."""
    graph, depth = searched.graph, searched.depth
    roots = np.flatnonzero(num_candidates >= depth - 1)
    starts = starts_of(num_candidates[roots])
    of_root = num_candidates.astype(np.int64)
    columns = int(of_root.max(initial=0))
    cells = int((of_root * -(-np.diff(graph.left_indptr) // WORD)).max(initial=0))
    sizes = graph.num_left, _levels(depth), columns + 1, cells + 1, bins
    threads = THREADS if starts[-1] >= SMALL_WORK else 1
    if memory_limit is not None:
        held = graph.num_left, len(graph.left_indices), graph.num_right, columns, cells
        spare = memory_limit - prices(depth, bins).least(*held)
        threads = max(1, min(threads, 1 + spare // Workspace.bytes_of(*sizes)))
    # A thread makes the bitmaps of each root that it takes pairs of, so it should take long runs.
    tasks = int(starts[-1])
    grain = min(MOST_PAIRS, max(PAIRS, tasks // (threads * RUNS)))
    queue = np.array([0, tasks, 0], np.int64)
    given = (queue, grain, graph.rows, roots, starts, depth, searched.least)
    calls = [(*given, Workspace.of(*sizes)) for _ in range(threads)]
    stop = partial(queue.__setitem__, STOP, 1)
    with watched(queue, tasks, stop):
        stoppable(_search, calls, stop)
    return sum((call[-1].histogram for call in calls), np.zeros(bins, np.uint64))


def prices(depth: int, bins: int) -> Prices:
    """What it costs to search a part with one thread."""
    levels = _levels(depth)
    return Prices(8 * bins + 24 * levels + FIXED, VERTEX, EDGE, OTHER, 12, 8 * levels)


def _levels(depth: int) -> int:
    return max(1, depth - 2)


@compiled
def _search(
    queue: Array, grain: int, rows: Rows, roots: Array, starts: Array, depth: int, least: int,
    space: Workspace,
) -> None:  # fmt: skip
    """Count the subsets of `depth` ≥ 2 vertices in the histogram, by the number of their common
    neighbours where that is at least `least`.

    queue: int64[3]; `grain` tasks are taken at a time. starts: int64[roots+1], where each root's
    pairs begin among all."""
    met, found, shared, cells, shape, histogram = space
    at, task, last = -1, 0, 0
    while True:
        if task >= last:
            task = fetch_add(queue, NEXT, grain)
            last = min(task + grain, queue[END])
        if task >= last or _is_stopped(queue):
            return
        number = after(starts, task) - 1
        if number != at:
            at = number
            _fill(roots[at], least, rows, met, found, cells[0], shape[0])
        end = min(starts[number + 1], last)
        for x in range(task - starts[number], end - starts[number]):
            _below(x, depth, least, queue, found, shared, cells, shape, histogram)
        task = end


@compiled
def _is_stopped(queue: Array) -> bool:
    """Whether threads must end now, whatever is left."""
    return fetch_add(queue, STOP, 0) != 0  # an atomic read, which cannot be hoisted out of a loop


@compiled
def _fill(
    u: int, least: int, rows: Rows, met: Array, found: Array, matrix: Array, shape: Array
) -> None:
    """Fill in the matrix of root u, with its candidates in the order of ranks."""
    indptr, indices, back_indptr, back = rows
    neighbors = indices[indptr[u] : indptr[u + 1]]
    columns, steps = meet(u, least, rows, met, found, False)
    words = (len(neighbors) + WORD - 1) // WORD
    shape[0], shape[1] = columns, words
    matrix[: columns * words] = 0
    for i in range(columns):
        met[found[i]] = -1 - i
    for j in range(len(neighbors)):
        b = neighbors[j]
        bit, line = ONE << np.uint64(j % WORD), j // WORD * columns
        row = back[back_indptr[b] : back_indptr[b + np.uint32(1)]]
        for w in row[after(row, u) :]:
            if met[w] < 0:
                matrix[line - 1 - met[w]] |= bit
    clear(u, steps, rows, met)


@compiled
def _below(
    x: int,
    depth: int,
    least: int,
    queue: Array,
    found: Array,
    shared: Array,
    cells: Array,
    shape: Array,
    histogram: Array,
) -> None:
    """Count all subsets of the root, column x and later columns, unless stopped."""
    if depth == 2:
        _own(x, shape[0], cells[0], histogram)
        return
    level, left = 0, depth - 1  # columns to be chosen, x included
    shape[0, 2] = x
    steps = 0
    while True:
        steps += 1
        if steps % LOOK == 0 and _is_stopped(queue):
            return
        columns, x = shape[level, 0], shape[level, 2]
        if x + left <= columns:
            _share(x, shape[level], cells[level], shared)
            if left == 2:
                for w in range(x + 1, columns):
                    histogram[shared[w]] += ONE
            elif _pack(
                x, left - 1, least, shape[level], cells[level], found, shared,
                shape[level + 1], cells[level + 1],
            ):  # fmt: skip
                level, left = level + 1, left - 1
                shape[level, 2] = 0
                continue
        else:
            level, left = level - 1, left + 1
        if level <= 0:
            return
        shape[level, 2] += 1


@compiled
def _own(x: int, shape: Array, matrix: Array, histogram: Array) -> None:
    """Count the subset of the root and column x: its common neighbours are the bits of x."""
    bits = np.int64(0)
    for j in range(shape[1]):
        bits += ones(matrix[j * shape[0] + x])
    histogram[bits] += ONE


@compiled
def _share(x: int, shape: Array, matrix: Array, shared: Array) -> None:
    """Write to shared[w] how many bits each later column w shares with x."""
    columns, words = shape[0], shape[1]
    into = shared[x + 1 : columns]
    for j in range(words):
        mask = matrix[j * columns + x]
        line = matrix[j * columns + x + 1 : (j + 1) * columns]
        if j == 0:
            for w in range(len(into)):
                into[w] = np.uint64(ones(mask & line[w]))
        elif mask:
            for w in range(len(into)):
                into[w] += np.uint64(ones(mask & line[w]))


@compiled
def _pack(
    x: int,
    needed: int,
    least: int,
    shape: Array,
    matrix: Array,
    found: Array,
    shared: Array,
    new_shape: Array,
    packed: Array,
) -> bool:
    """Pack the bits of x, of the later columns that share at least `least` of them, into a matrix
    of their own. False, with nothing packed, if there are fewer than `needed` such columns."""
    columns, words = shape[0], shape[1]
    count = 0
    for w in range(x + 1, columns):
        found[count] = w
        count += shared[w] >= np.uint64(least)
    if count < needed:
        return False
    bits, full = np.int64(0), 0
    for j in range(words):
        mask = matrix[j * columns + x]
        bits += ones(mask)
        full += mask != 0
    narrow = (bits + WORD - 1) // WORD
    new_shape[0] = count
    if full == narrow:  # packing the bits would save no word
        new_shape[1] = full
        line = 0
        for j in range(words):
            mask = matrix[j * columns + x]
            if mask:
                for y in range(count):
                    packed[line + y] = matrix[j * columns + found[y]] & mask
                line += count
        return True
    new_shape[1] = narrow
    packed[: count * narrow] = 0
    bit = 0
    for j in range(words):
        mask = matrix[j * columns + x]
        while mask:
            lowest = np.uint64(ones((mask & (~mask + ONE)) - ONE))
            line, place = bit // WORD * count, np.uint64(bit % WORD)
            for y in range(count):
                packed[line + y] |= (matrix[j * columns + found[y]] >> lowest & ONE) << place
            mask &= mask - ONE
            bit += 1
    return True
