"""The tree of pivots, walked depth first; `pivot` explains the method.

A frame has the candidates of both sides as bits over the root's subgraph, the numbers of vertices
held and free on each side, and the pivot's non-neighbours still to be held. Only holding a vertex
makes a new frame. Once the candidates of each side fit in a word, as in nearly all frames, the
search goes on in `words_cpu`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cpu.atomics import fetch_add
from lpma.cpu.instructions import lowest
from lpma.cpu.jit import compiled

from ...arrays import Array
from .bits_cpu import WORD, clear_bit, common, fill, size, take_lowest, words_for
from .shapes_cpu import AT_FIRST, add, grown
from .subgraph_cpu import candidates, mark, pack
from .words_cpu import (
    DEPTH,
    DOING,
    FREE_LEFT,
    FREE_RIGHT,
    FRESH,
    HELD_LEFT,
    HELD_RIGHT,
    LEFT,
    PIVOT,
    RIGHT,
    SETS,
    WORDS,
    search_words,
)  # fmt: skip

OPEN = -1


@compiled
def count_shapes(
    counter: Array, indptr: Array, indices: Array, other_indptr: Array, other: Array, least: Any,
    most: Any,
) -> Array:  # fmt: skip
    """int64[shapes, 3], as in `shapes_cpu`: the shapes of the leaves of all roots that this call
    takes from `counter`.

    least, most: the (left, right) sizes of the bicliques to be counted. counter: int64[2], the
    number of roots taken, and whether to give up, which another thread may set: the result is
    useless."""
    n = len(indptr) - 1
    counts, number = np.zeros(n, np.uint32), np.zeros(n, np.uint32)
    shapes = np.zeros((AT_FIRST, 3), np.int64)
    used = 0
    while True:
        u = n - 1 - fetch_add(counter, 0, 1)
        if u < 0 or fetch_add(counter, 1, 0):
            return shapes[shapes[:, 2] != 0]
        rows = (indptr, indices, other_indptr, other)
        a, b = candidates(u, *rows, least[1], counts, number), indptr[u + 1] - indptr[u]
        if a + 1 < least[0] or b < least[1]:
            continue
        of_left = np.zeros((a, words_for(b)), np.uint64)
        of_right = np.zeros((b, words_for(a)), np.uint64)
        mark(u, *rows, number, of_left, of_right)
        shapes, used = _search(of_left, of_right, least, most, shapes, used, counter)


@compiled
def _search(
    rows: Array, columns: Array, least: Any, most: Any, shapes: Array, used: int, counter: Array
) -> tuple[Array, int]:
    """Add the shapes of the leaves of a root with these candidates."""
    a, b = len(rows), len(columns)
    room = max(a, b) + 2  # shapes that one frame adds, at most
    depth = min(most[0] + most[1], a + b) + 2
    lefts = np.empty((depth, words_for(a)), np.uint64)
    rights = np.empty((depth, words_for(b)), np.uint64)
    todo = np.empty((depth, words_for(max(a, b))), np.uint64)
    frames = np.zeros((depth, WORDS), np.int64)
    bins = np.zeros(room, np.int64)
    small_rows, small_columns = np.empty(WORD, np.uint64), np.empty(WORD, np.uint64)
    stack = np.empty((DEPTH, WORDS), np.int64), np.empty((DEPTH, SETS), np.uint64)
    fill(lefts[0], a)
    fill(rights[0], b)
    frames[0, HELD_LEFT] = 1
    top = 0
    while top >= 0 and not fetch_add(counter, 1, 0):
        frame = frames[top]
        left, right = lefts[top], rights[top]
        if frame[DOING] != FRESH:
            top += _hold_next(frame, left, right, todo[top], rows, columns, frames[top + 1],
                              lefts[top + 1], rights[top + 1])  # fmt: skip
            continue
        shapes = grown(shapes, used, room)
        added = _close(frame, left, right, rows, columns, least, most, shapes, bins)
        if added == OPEN:
            if max(size(left), size(right)) <= WORD:
                pack(rows, left, right, small_rows, small_columns)
                shapes, used = search_words(
                    small_rows, small_columns, size(left), size(right), frame, least, most, shapes,
                    used, *stack, counter,
                )  # fmt: skip
                added = 0
            elif _choose_pivot(frame, left, right, todo[top], rows, columns, least):
                continue
            else:
                added = add(
                    shapes, frame[HELD_LEFT], frame[FREE_LEFT] + size(left), frame[HELD_RIGHT],
                    frame[FREE_RIGHT], 1, least,
                )  # fmt: skip
        used += added
        top -= 1
    return shapes, used


@compiled
def _close(
    frame: Array, left: Array, right: Array, rows: Array, columns: Array, least: Any, most: Any,
    shapes: Array, bins: Array,
) -> int:  # fmt: skip
    """Add the leaves of a frame that needs no pivot: too few vertices are left, or one side is full
    or lacks only one. Returns how many shapes are new, or OPEN if the frame must be searched."""
    a, b = size(left), size(right)
    held_left, free_left = frame[HELD_LEFT], frame[FREE_LEFT]
    held_right, free_right = frame[HELD_RIGHT], frame[FREE_RIGHT]
    if held_left + free_left + a < least[0] or held_right + free_right + b < least[1]:
        return 0
    if held_left == most[0]:
        return add(shapes, held_left, 0, held_right, free_right + b, 1, least)
    if held_right == most[1]:
        return add(shapes, held_left, free_left + a, held_right, 0, 1, least)
    if held_left + 1 == most[0]:
        new = add(shapes, held_left, free_left, held_right, free_right + b, 1, least)
        for d in range(_degrees(rows, left, right, bins) + 1):
            if bins[d]:
                new += add(
                    shapes, held_left + 1, 0, held_right, free_right + d, bins[d], least
                )  # fmt: skip
                bins[d] = 0
        return new
    if held_right + 1 == most[1]:
        new = add(shapes, held_left, free_left + a, held_right, free_right, 1, least)
        for d in range(_degrees(columns, right, left, bins) + 1):
            if bins[d]:
                new += add(
                    shapes, held_left, free_left + d, held_right + 1, 0, bins[d], least
                )  # fmt: skip
                bins[d] = 0
        return new
    return OPEN


@compiled
def _degrees(matrix: Array, of: Array, among: Array, bins: Array) -> int:
    """Add to bins[d] how many of the vertices `of` have d neighbours in `among`. Returns the
    largest d."""
    largest = 0
    for i in range(len(of)):
        word = of[i]
        while word:
            d = common(matrix[WORD * i + lowest(word)], among)
            bins[d] += 1
            largest = max(largest, d)
            word &= word - np.uint64(1)
    return largest


@compiled
def _choose_pivot(
    frame: Array, left: Array, right: Array, todo: Array, rows: Array, columns: Array, least: Any
) -> bool:
    """Drop vertices with too few neighbours, free those adjacent to all, and make the one with the
    fewest non-neighbours the pivot. False if no right vertex is left, so that all left are free."""
    before = -1
    while True:
        b, freed, left_pivot, lacked_by_left = _sift(
            rows, left, right, least[1] - frame[HELD_RIGHT] - frame[FREE_RIGHT]
        )
        frame[FREE_LEFT] += freed
        kept, freed, right_pivot, lacked_by_right = _sift(
            columns, right, left, least[0] - frame[HELD_LEFT] - frame[FREE_LEFT]
        )
        frame[FREE_RIGHT] += freed
        if kept == 0 or (kept + b == before):
            break
        before = kept + b
    if kept == 0:
        return False
    if lacked_by_left <= lacked_by_right:
        frame[DOING], frame[PIVOT] = RIGHT, left_pivot
        for i in range(len(right)):
            todo[i] = right[i] & ~rows[left_pivot, i]
    else:
        frame[DOING], frame[PIVOT] = LEFT, right_pivot
        for i in range(len(left)):
            todo[i] = left[i] & ~columns[right_pivot, i]
    return True


@compiled
def _sift(matrix: Array, of: Array, among: Array, needed: int) -> tuple[int, int, int, int]:
    """Remove from `of` the vertices adjacent to all of `among`, or to fewer than `needed`. Returns
    how many stay, how many were adjacent to all, and of those that stay the vertex with the fewest
    non-neighbours, and how many it has."""
    total = size(among)
    kept, freed, pivot, fewest = 0, 0, -1, total + 1
    for i in range(len(of)):
        word = of[i]
        while word:
            v = WORD * i + lowest(word)
            bit = word & (~word + np.uint64(1))
            word ^= bit
            d = common(matrix[v], among)
            if d == total or d < needed:
                of[i] ^= bit
                freed += d == total
            else:
                kept += 1
                if total - d < fewest:
                    pivot, fewest = v, total - d
    return kept, freed, pivot, fewest


@compiled
def _hold_next(
    frame: Array, left: Array, right: Array, todo: Array, rows: Array, columns: Array, child: Array,
    child_left: Array, child_right: Array,
) -> int:  # fmt: skip
    """Take the pivot's next non-neighbour out of the frame and hold it in a new one: returns 1. If
    none is left, the pivot is adjacent to all and becomes free: returns 0."""
    of_right = frame[DOING] == RIGHT
    v = take_lowest(todo[: len(right) if of_right else len(left)])
    if v < 0:
        clear_bit(left if of_right else right, frame[PIVOT])
        frame[FREE_LEFT if of_right else FREE_RIGHT] += 1
        frame[DOING] = FRESH
        return 0
    clear_bit(right if of_right else left, v)
    child[:] = frame
    child[HELD_RIGHT if of_right else HELD_LEFT] += 1
    child[DOING] = FRESH
    for i in range(len(left)):
        child_left[i] = left[i] & columns[v, i] if of_right else left[i]
    for i in range(len(right)):
        child_right[i] = right[i] if of_right else right[i] & rows[v, i]
    return 1
