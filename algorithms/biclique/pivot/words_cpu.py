"""The tree of pivots below a frame with at most 64 candidates on each side: sets are words.

As `tree_cpu`, but a set is one number in a register: frames are ten times cheaper than with arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cpu.atomics import fetch_add
from lpma.cpu.instructions import lowest, ones
from lpma.cpu.jit import compiled

from ...arrays import Array
from .bits_cpu import WORD
from .shapes_cpu import add, grown

ONE, ALL = np.uint64(1), ~np.uint64(0)
FRESH, LEFT, RIGHT = range(3)  # a frame's state: not yet begun, or holding vertices of a side
HELD_LEFT, FREE_LEFT, HELD_RIGHT, FREE_RIGHT, DOING, PIVOT, WORDS = range(7)  # words of a frame
OF_LEFT, OF_RIGHT, TODO, SETS = range(4)  # sets of a frame
DEPTH = 2 * WORD + 2
OPEN = -1
ROOM = WORD + 2  # shapes that one frame adds, at most


@compiled
def search_words(
    rows: Array, columns: Array, a: int, b: int, above: Array, least: Any, most: Any,
    shapes: Array, used: int, frames: Array, sets: Array, counter: Array,
) -> tuple[Array, int]:  # fmt: skip
    """Add the shapes of the leaves below the frame `above`, which has a and b candidates.

    rows, columns: uint64[64], the adjacency of the candidates. frames: int64[DEPTH, WORDS], and
    sets: uint64[DEPTH, SETS], are overwritten. counter: as in `tree_cpu.count_shapes`."""
    frames[0] = above
    frames[0, DOING] = FRESH
    sets[0, OF_LEFT], sets[0, OF_RIGHT] = _first_bits(a), _first_bits(b)
    top = 0
    while top >= 0 and not fetch_add(counter, 1, 0):
        if frames[top, DOING] != FRESH:
            top += _hold_next(top, frames, sets, rows, columns, least)
            continue
        shapes = grown(shapes, used, ROOM)
        new = _close(frames[top], sets[top], rows, columns, least, most, shapes)
        if new == OPEN:
            new = _choose_pivot(frames[top], sets[top], rows, columns, least, shapes)
            if new == OPEN:
                continue
        used += new
        top -= 1
    return shapes, used


@compiled
def _first_bits(count: int) -> np.uint64:
    return ALL >> np.uint64(WORD - count) if count else np.uint64(0)


@compiled
def _hold_next(
    top: int, frames: Array, sets: Array, rows: Array, columns: Array, least: Any
) -> int:
    """Move the pivot's next non-neighbour into a new frame that holds it: returns 1, or 0 without
    that frame if too few vertices would be left in it. If there is none, the pivot is adjacent to
    all and becomes free: returns 0."""
    todo, of_right = sets[top, TODO], frames[top, DOING] == RIGHT
    if todo == 0:
        sets[top, OF_LEFT if of_right else OF_RIGHT] ^= ONE << np.uint64(frames[top, PIVOT])
        frames[top, FREE_LEFT if of_right else FREE_RIGHT] += 1
        frames[top, DOING] = FRESH
        return 0
    bit, v = todo & (~todo + ONE), lowest(todo)
    sets[top, TODO] = todo ^ bit
    sets[top, OF_RIGHT if of_right else OF_LEFT] ^= bit
    left, right = sets[top, OF_LEFT], sets[top, OF_RIGHT]
    if of_right:
        left &= columns[v]
    else:
        right &= rows[v]
    held_left = frames[top, HELD_LEFT] + (not of_right)
    held_right = frames[top, HELD_RIGHT] + of_right
    free_left, free_right = frames[top, FREE_LEFT], frames[top, FREE_RIGHT]
    if (
        held_left + free_left + ones(left) < least[0]
        or held_right + free_right + ones(right) < least[1]
    ):
        return 0
    sets[top + 1, OF_LEFT], sets[top + 1, OF_RIGHT] = left, right
    frames[top + 1, HELD_LEFT], frames[top + 1, FREE_LEFT] = held_left, free_left
    frames[top + 1, HELD_RIGHT], frames[top + 1, FREE_RIGHT] = held_right, free_right
    frames[top + 1, DOING] = FRESH
    return 1


@compiled
def _close(
    frame: Array, of: Array, rows: Array, columns: Array, least: Any, most: Any, shapes: Array
) -> int:
    """Add the leaves of a frame in which one side is full, or lacks only one vertex. Returns how
    many shapes are new, or OPEN if the frame must be searched."""
    left, right = of[OF_LEFT], of[OF_RIGHT]
    held_left, free_left = frame[HELD_LEFT], frame[FREE_LEFT]
    held_right, free_right = frame[HELD_RIGHT], frame[FREE_RIGHT]
    if held_left == most[0]:
        return add(shapes, held_left, 0, held_right, free_right + ones(right), 1, least)
    if held_right == most[1]:
        return add(shapes, held_left, free_left + ones(left), held_right, 0, 1, least)
    if held_left + 1 == most[0]:
        new = add(shapes, held_left, free_left, held_right, free_right + ones(right), 1, least)
        while left:
            found = free_right + ones(rows[lowest(left)] & right)
            new += add(shapes, held_left + 1, 0, held_right, found, 1, least)
            left &= left - ONE
        return new
    if held_right + 1 == most[1]:
        new = add(shapes, held_left, free_left + ones(left), held_right, free_right, 1, least)
        while right:
            found = free_left + ones(columns[lowest(right)] & left)
            new += add(shapes, held_left, found, held_right + 1, 0, 1, least)
            right &= right - ONE
        return new
    return OPEN


@compiled
def _choose_pivot(
    frame: Array, of: Array, rows: Array, columns: Array, least: Any, shapes: Array
) -> int:
    """Drop vertices with too few neighbours and free those adjacent to all, until there are none of
    either. Make the one with the fewest non-neighbours the pivot: returns OPEN. If a side is empty,
    add the one leaf instead: returns how many shapes are new."""
    left, right = of[OF_LEFT], of[OF_RIGHT]
    free_left, free_right = frame[FREE_LEFT], frame[FREE_RIGHT]
    needed_left, needed_right = least[0] - frame[HELD_LEFT], least[1] - frame[HELD_RIGHT]
    while True:
        kept_left, freed, left_pivot, lacked_by_left = _sift(
            rows, left, right, needed_right - free_right
        )
        free_left += freed
        kept_right, freed, right_pivot, lacked_by_right = _sift(
            columns, right, kept_left, needed_left - free_left
        )
        free_right += freed
        same = kept_left == left and kept_right == right
        left, right = kept_left, kept_right
        if free_left + ones(left) < needed_left or free_right + ones(right) < needed_right:
            return 0
        if right == 0:
            return add(
                shapes, frame[HELD_LEFT], free_left + ones(left), frame[HELD_RIGHT], free_right, 1,
                least,
            )  # fmt: skip
        if same:
            break
    of[OF_LEFT], of[OF_RIGHT] = left, right
    frame[FREE_LEFT], frame[FREE_RIGHT] = free_left, free_right
    if lacked_by_left <= lacked_by_right:
        frame[DOING], frame[PIVOT], of[TODO] = RIGHT, left_pivot, right & ~rows[left_pivot]
    else:
        frame[DOING], frame[PIVOT], of[TODO] = LEFT, right_pivot, left & ~columns[right_pivot]
    return OPEN


@compiled
def _sift(
    matrix: Array, of: np.uint64, among: np.uint64, needed: int
) -> tuple[np.uint64, int, int, int]:
    """The vertices `of` that are adjacent to at least `needed` of `among`, but not to all; how many
    are adjacent to all; of the former the one with the fewest non-neighbours, and how many."""
    total = ones(among)
    kept, freed, pivot, fewest = of, 0, -1, total + 1
    while of:
        bit, v = of & (~of + ONE), lowest(of)
        of ^= bit
        d = ones(matrix[v] & among)
        if d == total or d < needed:
            kept ^= bit
            freed += d == total
        elif total - d < fewest:
            pivot, fewest = v, total - d
    return kept, freed, pivot, fewest
