"""Subsets enumerated on the CPU as the paper does it, over truncated bitmaps.

A level has the common neighbours of the chosen vertices, as words, and the candidates that share at
least `least` of them, found by searching a candidate's row for each word. (The paper intersects the
candidates with the two-hop list of the chosen vertex, and checks that enough neighbours are left
when one is chosen. One intersection serves for both: a candidate with enough is in that list.)

`by_word` is the hybrid exploration: each word of a level is looked up in the rows of all candidates
before the next word, so that all children of a node grow at once; else one child after the other.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from algorithms.arrays import Array, starts_of
from algorithms.biclique.gbc.search_cpu import END, NEXT
from algorithms.biclique.gbc.two_hop_cpu import Rows, after, clear, meet
from algorithms.biclique.gbc.types import Search
from lpma.cpu.atomics import fetch_add
from lpma.cpu.instructions import ones
from lpma.cpu.jit import compiled
from lpma.cpu.search import first_not_below
from lpma.cpu.threads import THREADS, run_all

from .truncated import Truncated

if TYPE_CHECKING:
    from . import Program

ONE = np.uint64(1)
GRAIN = {True: 32, False: 4}  # pairs, or roots, that a thread takes at a time


class Workspace(NamedTuple):
    """What one thread writes. `columns` bounds a root's candidates, `words` a row's words."""

    met: Array  # int32[n]: zero between roots
    lists: Array  # uint32[levels, columns]: candidates
    words: Array  # uint32[levels, words]: common neighbours
    bits: Array  # uint32[levels, words]
    shape: Array  # int64[levels, 3]: candidates, words, the candidate chosen
    shared: Array  # int64[columns]
    histogram: Array  # uint64[bins]

    @classmethod
    def of(cls, n: int, levels: int, columns: int, words: int, bins: int) -> Workspace:
        return cls(
            np.zeros(n, np.int32), np.empty((levels, columns), np.uint32),
            np.empty((levels, words), np.uint32), np.empty((levels, words), np.uint32),
            np.empty((levels, 3), np.int64), np.empty(columns, np.int64), np.zeros(bins, np.uint64),
        )  # fmt: skip


def search(searched: Search, num_candidates: Array, rows: Truncated, program: Program) -> Array:
    """uint64[largest degree + 1]: the histogram of a search, as by `gbc.histogram`."""
    graph, depth = searched.graph, searched.depth
    bins = int(np.diff(graph.left_indptr).max(initial=0)) + 1
    roots = np.flatnonzero(num_candidates >= depth - 1)
    starts = starts_of(num_candidates[roots])
    tasks = int(starts[-1]) if program.edges else len(roots)
    cuts = np.linspace(0, tasks, THREADS + 1).astype(np.int64).tolist()
    queues = [np.array([*cut, 0], np.int64) for cut in pairwise(cuts)]
    if program.stealing:
        queues = [np.array([0, tasks, 0], np.int64)] * THREADS
    columns = int(num_candidates.max(initial=0)) + 1
    spaces = [Workspace.of(graph.num_left, max(2, depth - 1), columns, bins, bins) for _ in queues]
    given = (
        GRAIN[program.edges], graph.rows, roots, starts, program.edges, depth, searched.least,
        program.common, program.hybrid, tuple(rows),
    )  # fmt: skip
    run_all(_search, [(queue, *given, space) for queue, space in zip(queues, spaces, strict=True)])
    return sum((space.histogram for space in spaces), np.zeros(bins, np.uint64))


@compiled
def _search(
    queue: Array, grain: int, rows: Rows, roots: Array, starts: Array, by_edges: bool, depth: int,
    least: int, common: bool, by_word: bool, truncated: tuple[Array, Array, Array],
    space: Workspace,
) -> None:  # fmt: skip
    """As `gbc.search_cpu`, with the rows of a `Truncated`."""
    row_words, row_numbers, row_bits = truncated
    met, lists, words, bits, shape, shared, histogram = space
    at, task, last = -1, 0, 0
    while True:
        number, first, end, task, last = _next_run(task, last, queue, grain, starts, by_edges)
        if number < 0:
            return
        if number != at:
            at, u = number, roots[number]
            shape[0, 0], steps = meet(u, least if common else 1, rows, met, lists[0], False)
            clear(u, steps, rows, met)
            own = row_words[u + 1] - row_words[u]
            shape[0, 1] = own
            words[0, :own] = row_numbers[row_words[u] : row_words[u + 1]]
            bits[0, :own] = row_bits[row_words[u] : row_words[u + 1]]
        for x in range(first, end):
            shape[0, 2] = x
            _below(truncated, depth, least, by_word, lists, words, bits, shape, shared, histogram)


@compiled
def _next_run(
    task: int, last: int, queue: Array, grain: int, starts: Array, by_edges: bool
) -> tuple[int, int, int, int, int]:
    """(root, first, end, task, last): the next run is the columns first … end - 1 of that root; −1
    if no task is left. Pass `task` and `last` to the next call; they begin as 0, 0."""
    if task >= last:
        task = fetch_add(queue, NEXT, grain)
        last = min(task + grain, queue[END])
    if task >= last:
        return -1, 0, 0, 0, 0
    if not by_edges:
        return task, 0, starts[task + 1] - starts[task], task + 1, last
    number = after(starts, task) - 1
    end = min(starts[number + 1], last)
    return number, task - starts[number], end - starts[number], end, last


@compiled
def _below(
    rows: tuple[Array, Array, Array],
    depth: int,
    least: int,
    by_word: bool,
    lists: Array,
    words: Array,
    bits: Array,
    shape: Array,
    shared: Array,
    histogram: Array,
) -> None:
    """Count all subsets of the root, the candidate chosen at level 0 and later candidates."""
    level, left = 0, depth - 1  # candidates to be chosen, the level's own included
    while True:
        x = shape[level, 2]
        if x + left <= shape[level, 0]:
            count = _meet(rows, lists[level, x], words[level], bits[level], shape[level, 1],
                          words[level + 1], bits[level + 1])  # fmt: skip
            shape[level + 1, 1] = count
            if left == 1:
                _add(bits[level + 1], count, histogram)
            else:
                children = lists[level, x + 1 : shape[level, 0]]
                _share(rows, children, words[level + 1], bits[level + 1], count, by_word, shared)
                if left == 2:
                    for y in range(len(children)):
                        histogram[shared[y]] += ONE
                else:
                    kept = 0
                    for y in range(len(children)):
                        if shared[y] >= least:
                            lists[level + 1, kept] = children[y]
                            kept += 1
                    shape[level + 1, 0], shape[level + 1, 2] = kept, 0
                    if kept >= left - 1:
                        level, left = level + 1, left - 1
                        continue
        else:
            level, left = level - 1, left + 1
        if level <= 0:
            return
        shape[level, 2] += 1


@compiled
def _add(bits: Array, count: int, histogram: Array) -> None:
    """Count one subset, whose common neighbours are the first `count` words of bits."""
    shared = np.int64(0)
    for j in range(count):
        shared += ones(np.uint64(bits[j]))
    histogram[shared] += ONE


@compiled
def _meet(
    rows: tuple[Array, Array, Array],
    w: int,
    words: Array,
    bits: Array,
    count: int,
    new_words: Array,
    new_bits: Array,
) -> int:
    """AND the words of a level with row w into new_words and new_bits. Returns how many remain."""
    starts, numbers, of_row = rows
    low, high = starts[w], starts[w + np.uint32(1)]
    kept = 0
    for j in range(count):
        low = first_not_below(numbers, low, high, words[j])
        if low < high and numbers[low] == words[j] and of_row[low] & bits[j]:
            new_words[kept], new_bits[kept] = words[j], of_row[low] & bits[j]
            kept += 1
    return kept


@compiled
def _share(
    rows: tuple[Array, Array, Array],
    children: Array,
    words: Array,
    bits: Array,
    count: int,
    by_word: bool,
    shared: Array,
) -> None:
    """shared[y]: how many of the level's common neighbours child y has."""
    starts, numbers, of_row = rows
    shared[: len(children)] = 0
    inner = count if not by_word else 1
    for j in range(0, count, inner):
        for y in range(len(children)):
            low, high = starts[children[y]], starts[children[y] + np.uint32(1)]
            found = np.int64(0)
            for i in range(j, j + inner):
                low = first_not_below(numbers, low, high, words[i])
                if low < high and numbers[low] == words[i]:
                    found += ones(np.uint64(of_row[low] & bits[i]))
            shared[y] += found
