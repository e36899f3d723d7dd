"""The tree of pivots, walked depth first; `pivot` explains the method.

A frame has the candidates of both sides as bits over the root's subgraph, the numbers of vertices
held and free on each side, and the pivot's non-neighbours still to be held. Only holding a vertex
makes a new frame. Once the candidates of each side fit in a word, as in nearly all frames, they are
packed. The same functions are compiled for sets of one word, which makes frames ten times cheaper:
see `words` in subgraph_cpu.py.

Leaves are counted by shape in a hash table, int64[slots, 3], of a power of two slots, at least half
of them empty. A slot has held << 32 | free of the left side, the same of the right, and the number
of such leaves, 0 if it is empty.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cpu.atomics import fetch_add
from lpma.cpu.instructions import lowest
from lpma.cpu.jit import compiled

from ...arrays import Array
from .subgraph_cpu import (
    ONE,
    WORD,
    clear_bit,
    common,
    fill,
    fill_matrices,
    pack,
    size,
    take_lowest,
    words_for,
)  # fmt: skip

LEFT, RIGHT, TODO, SETS = range(4)  # sets of a frame
FRESH = -1  # a frame's state: not yet begun; or else LEFT or RIGHT, whose vertices it holds
HELD_LEFT, HELD_RIGHT, FREE_LEFT, FREE_RIGHT, DOING, PIVOT, FIELDS = range(7)  # of a frame
OPEN = -1
AT_FIRST = 1 << 10  # slots of the table of shapes


@compiled
def count_shapes(
    counter: Array, indptr: Array, indices: Array, other_indptr: Array, other: Array, least: Any,
    most: Any,
) -> Array:  # fmt: skip
    """int64[shapes, 3]: the shapes of the leaves of all roots that this call takes from `counter`.

    least, most: the (left, right) sizes of the bicliques to be counted. counter: int64[2], the
    number of roots taken, and whether to give up, which another thread may set: the result is
    useless."""
    n = len(indptr) - 1
    graph = (indptr, indices, other_indptr, other)
    met, found = np.zeros(n, np.int32), np.empty(n, np.uint32)
    shapes = np.zeros((AT_FIRST, 3), np.int64)
    used = 0
    while True:
        u = n - 1 - fetch_add(counter, 0, 1)
        if u < 0 or fetch_add(counter, 1, 0):
            return shapes[shapes[:, 2] != 0]
        rows, columns = fill_matrices(u, graph, least, met, found)
        if len(columns) >= least[1]:
            shapes, used = _search(rows, columns, least, most, shapes, used, counter)


@compiled
def _search(
    rows: Array, columns: Array, least: Any, most: Any, shapes: Array, used: int, counter: Array
) -> tuple[Array, int]:
    """Add the shapes of the leaves of a root with these candidates."""
    a, b = len(rows), len(columns)
    words = np.zeros(words_for(a), np.uint8), np.zeros(words_for(b), np.uint8)
    frames, sets = _stack(min(most[0] + most[1], a + b) + 2, max(a, b))
    small_frames, small_sets = _stack(2 * WORD + 2, WORD)
    small_rows, small_columns = np.empty((WORD, 1), np.uint64), np.empty((WORD, 1), np.uint64)
    bins = np.zeros(max(a, b, WORD) + 1, np.int64)
    frames[0] = 0
    frames[0, HELD_LEFT], frames[0, DOING] = 1, FRESH
    fill(sets[0, LEFT], a)
    fill(sets[0, RIGHT], b)
    top = 0
    while True:
        top, shapes, used = _walk(
            top, frames, sets, rows, columns, words, WORD, least, most, shapes, used, bins, counter
        )
        if top < 0:
            return shapes, used
        left, right = sets[top, LEFT, : len(words[LEFT])], sets[top, RIGHT, : len(words[RIGHT])]
        pack(rows, left, right, small_rows, small_columns)
        small_frames[0] = frames[top]
        fill(small_sets[0, LEFT], size(sets, top, LEFT, words[LEFT]))
        fill(small_sets[0, RIGHT], size(sets, top, RIGHT, words[RIGHT]))
        _, shapes, used = _walk(
            0, small_frames, small_sets, small_rows, small_columns, ((0,), (0,)), -1, least, most,
            shapes, used, bins, counter,
        )  # fmt: skip
        top -= 1


@compiled
def _stack(depth: int, vertices: int) -> tuple[Array, Array]:
    """Room for so many frames, int64[depth, FIELDS], and their sets of vertices of one side,
    uint64[depth, SETS, words]."""
    sets = np.empty((depth, SETS, words_for(vertices)), np.uint64)
    return np.empty((depth, FIELDS), np.int64), sets


@compiled
def _walk(
    top: int, frames: Array, sets: Array, rows: Array, columns: Array, words: Any, small: int,
    least: Any, most: Any, shapes: Array, used: int, bins: Array, counter: Array,
) -> tuple[int, Array, int]:  # fmt: skip
    """Add the shapes of the leaves below frame `top` and those before it. Stops at a frame, and
    returns its place, if it must be searched and has at most `small` candidates a side; else
    returns -1. words: of the sets of either side, as in `subgraph_cpu`."""
    while top >= 0 and not fetch_add(counter, 1, 0):
        if frames[top, DOING] != FRESH:
            top += _hold_next(top, frames, sets, rows, columns, words, least)
            continue
        shapes = grown(shapes, used, WORD * sets.shape[2] + 2)
        new = _close(top, frames, sets, rows, columns, words, least, most, shapes, bins)
        if new == OPEN:
            a, b = size(sets, top, LEFT, words[LEFT]), size(sets, top, RIGHT, words[RIGHT])
            if max(a, b) <= small:
                return top, shapes, used
            new = _choose_pivot(top, frames, sets, rows, columns, words, least, shapes)
            if new == OPEN:
                continue
        used += new
        top -= 1
    return -1, shapes, used


@compiled
def _close(
    top: int, frames: Array, sets: Array, rows: Array, columns: Array, words: Any, least: Any,
    most: Any, shapes: Array, bins: Array,
) -> int:  # fmt: skip
    """Add the leaves of a frame in which one side is full, or lacks only one vertex. Returns how
    many shapes are new, or OPEN if the frame must be searched."""
    for side in (LEFT, RIGHT):
        if frames[top, HELD_LEFT + side] == most[side]:
            other = RIGHT - side
            held, free = frames[top, HELD_LEFT + other], frames[top, FREE_LEFT + other]
            free += size(sets, top, other, words[other])
            return add(shapes, side, most[side], 0, held, free, 1, least)
    for side in (LEFT, RIGHT):
        held, free = frames[top, HELD_LEFT + side], frames[top, FREE_LEFT + side]
        if held + 1 == most[side]:
            other = RIGHT - side
            others, others_free = frames[top, HELD_LEFT + other], frames[top, FREE_LEFT + other]
            all_free = others_free + size(sets, top, other, words[other])
            new = add(shapes, side, held, free, others, all_free, 1, least)
            matrix = rows if side == LEFT else columns
            for d in range(_degrees(top, side, other, sets, matrix, words, bins) + 1):
                if bins[d]:
                    all_free = others_free + d
                    new += add(shapes, side, held + 1, 0, others, all_free, bins[d], least)
                    bins[d] = 0
            return new
    return OPEN


@compiled
def _degrees(
    top: int, side: int, other: int, sets: Array, matrix: Array, words: Any, bins: Array
) -> int:
    """Add to bins[d] how many of one side's candidates have d neighbours among the other's. Returns
    the largest d."""
    largest = 0
    for i in range(len(words[side])):
        word = sets[top, side, i]
        while word:
            d = common(matrix, WORD * i + lowest(word), sets, top, other, words[other])
            bins[d] += 1
            largest = max(largest, d)
            word &= word - ONE
    return largest


@compiled
def _choose_pivot(
    top: int, frames: Array, sets: Array, rows: Array, columns: Array, words: Any, least: Any,
    shapes: Array,
) -> int:  # fmt: skip
    """Drop vertices with too few neighbours and free those adjacent to all, until there are none of
    either. Make the one with the fewest non-neighbours the pivot: returns OPEN. If a side is empty,
    add the one leaf instead: returns how many shapes are new."""
    held_left, free_left = frames[top, HELD_LEFT], frames[top, FREE_LEFT]
    held_right, free_right = frames[top, HELD_RIGHT], frames[top, FREE_RIGHT]
    before = size(sets, top, LEFT, words[LEFT]) + size(sets, top, RIGHT, words[RIGHT])
    while True:
        a, freed, left_pivot, lacked_by_left = _sift(
            top, LEFT, RIGHT, sets, rows, words, least[1] - held_right - free_right
        )
        free_left += freed
        b, freed, right_pivot, lacked_by_right = _sift(
            top, RIGHT, LEFT, sets, columns, words, least[0] - held_left - free_left
        )
        free_right += freed
        if held_left + free_left + a < least[0] or held_right + free_right + b < least[1]:
            return 0
        if b == 0:
            return add(shapes, LEFT, held_left, free_left + a, held_right, free_right, 1, least)
        if a + b == before:
            break
        before = a + b
    frames[top, FREE_LEFT], frames[top, FREE_RIGHT] = free_left, free_right
    if lacked_by_left <= lacked_by_right:
        frames[top, DOING], frames[top, PIVOT] = RIGHT, left_pivot
        for i in range(len(words[RIGHT])):
            sets[top, TODO, i] = sets[top, RIGHT, i] & ~rows[left_pivot, i]
    else:
        frames[top, DOING], frames[top, PIVOT] = LEFT, right_pivot
        for i in range(len(words[LEFT])):
            sets[top, TODO, i] = sets[top, LEFT, i] & ~columns[right_pivot, i]
    return OPEN


@compiled
def _sift(
    top: int, side: int, other: int, sets: Array, matrix: Array, words: Any, needed: int
) -> tuple[int, int, int, int]:
    """Remove from one side's candidates those adjacent to all of the other's, or to fewer than
    `needed`. Returns how many stay, how many were adjacent to all, and of those that stay the
    vertex with the fewest non-neighbours, and how many it has."""
    total = size(sets, top, other, words[other])
    kept, freed, pivot, fewest = 0, 0, -1, total + 1
    for i in range(len(words[side])):
        word = sets[top, side, i]
        stays = word
        while word:
            v = WORD * i + lowest(word)
            bit = word & (~word + ONE)
            word ^= bit
            d = common(matrix, v, sets, top, other, words[other])
            if d == total or d < needed:
                stays ^= bit
                freed += d == total
            else:
                kept += 1
                if total - d < fewest:
                    pivot, fewest = v, total - d
        sets[top, side, i] = stays
    return kept, freed, pivot, fewest


@compiled
def _hold_next(
    top: int, frames: Array, sets: Array, rows: Array, columns: Array, words: Any, least: Any
) -> int:
    """Take the pivot's next non-neighbour out of the frame and hold it in a new one: returns 1, or
    0 without that frame if too few vertices would be left in it. If there is none, the pivot is
    adjacent to all and becomes free: returns 0."""
    side = frames[top, DOING]
    other = RIGHT - side
    v = take_lowest(sets, top, TODO, words[side])
    if v < 0:
        clear_bit(sets, top, other, frames[top, PIVOT])
        frames[top, FREE_LEFT + other] += 1
        frames[top, DOING] = FRESH
        return 0
    clear_bit(sets, top, side, v)
    for i in range(len(words[side])):
        sets[top + 1, side, i] = sets[top, side, i]
    for i in range(len(words[other])):
        neighbours = columns[v, i] if side == RIGHT else rows[v, i]
        sets[top + 1, other, i] = sets[top, other, i] & neighbours
    for field in (HELD_LEFT, HELD_RIGHT, FREE_LEFT, FREE_RIGHT):
        frames[top + 1, field] = frames[top, field]
    frames[top + 1, HELD_LEFT + side] += 1
    frames[top + 1, DOING] = FRESH
    for i in (LEFT, RIGHT):
        most = frames[top + 1, HELD_LEFT + i] + frames[top + 1, FREE_LEFT + i]
        if most + size(sets, top + 1, i, words[i]) < least[i]:
            return 0
    return 1


@compiled
def grown(shapes: Array, used: int, room: int) -> Array:
    """The table, enlarged if less than half of it would be empty after `room` new shapes."""
    while 2 * (used + room) > len(shapes):
        larger = np.zeros((4 * len(shapes), 3), np.int64)
        for i in range(len(shapes)):
            if shapes[i, 2]:
                _add_shape(larger, shapes[i, 0], shapes[i, 1], shapes[i, 2])
        shapes = larger
    return shapes


@compiled
def add(
    shapes: Array, side: int, held: int, free: int, others: int, others_free: int, leaves: int,
    least: Any,
) -> int:  # fmt: skip
    """Add leaves of one shape, held and free vertices of a side and of the other, unless they are
    too few for any biclique. Returns how many shapes are new, 0 or 1."""
    if held + free < least[side] or others + others_free < least[RIGHT - side]:
        return 0
    mine, theirs = held << 32 | free, others << 32 | others_free
    left, right = (mine, theirs) if side == LEFT else (theirs, mine)
    return _add_shape(shapes, left, right, leaves)


@compiled
def _add_shape(shapes: Array, left: int, right: int, leaves: int) -> int:
    """As `add`, with each side as held << 32 | free."""
    mask = len(shapes) - 1
    mixed = left * 0x9E3779B1 + right * 0x85EBCA77
    slot = (mixed ^ mixed >> 32) & mask
    while shapes[slot, 2] != 0:
        if shapes[slot, 0] == left and shapes[slot, 1] == right:
            shapes[slot, 2] += leaves
            return 0
        slot = (slot + 1) & mask
    shapes[slot, 0], shapes[slot, 1], shapes[slot, 2] = left, right, leaves
    return 1
