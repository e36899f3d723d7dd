"""Subsets enumerated on the CPU as the paper does it, over truncated bitmaps.

A level has the common neighbours of the chosen vertices, as words, and the candidates that share at
least `least` of them, found by searching a candidate's row for each word. (The paper intersects the
candidates with the two-hop list of the chosen vertex, and checks that enough neighbours are left
when one is chosen. One intersection serves for both: a candidate with enough is in that list.)

`by_word` is the hybrid exploration: each word of a level is looked up in the rows of all candidates
before the next word, so that all children of a node grow at once; else one child after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lpma.cpu.instructions import ones
from lpma.cpu.jit import compiled
from lpma.cpu.search import first_not_below

from ...arrays import Array
from ..gbc.tasks_cpu import next_run
from ..gbc.two_hop_cpu import Rows, clear, meet
from .truncated import truncated_rows as truncated_rows

ONE = np.uint64(1)


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

    @staticmethod
    def bytes_of(n: int, levels: int, columns: int, words: int, bins: int) -> int:
        """How many bytes `of` allocates."""
        return (
            4 * n + 4 * levels * columns + 8 * levels * words + 24 * levels + 8 * (columns + bins)
        )


@compiled
def search(
    queue: Array, grain: int, rows: Rows, roots: Array, starts: Array, by_edges: bool, depth: int,
    least: int, common: bool, by_word: bool, truncated: tuple[Array, Array, Array],
    space: Workspace,
) -> None:  # fmt: skip
    """As `gbc.compact_cpu.search`. truncated: the rows, as of a `Truncated`."""
    row_words, row_numbers, row_bits = truncated
    met, lists, words, bits, shape, shared, histogram = space
    at, task, last = -1, 0, 0
    while True:
        number, first, end, task, last = next_run(task, last, queue, grain, starts, by_edges)
        if number < 0:
            return
        if number != at:
            at, u = number, roots[number]
            shape[0, 0], steps = meet(u, least if common else 1, rows, met, lists[0])
            clear(u, steps, rows, met)
            own = row_words[u + 1] - row_words[u]
            shape[0, 1] = own
            words[0, :own] = row_numbers[row_words[u] : row_words[u + 1]]
            bits[0, :own] = row_bits[row_words[u] : row_words[u + 1]]
        for x in range(first, end):
            shape[0, 2] = x
            _below(truncated, depth, least, by_word, lists, words, bits, shape, shared, histogram)


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
