"""Bicliques of all sizes at once on the CPU: leaves of a tree of pivots, by their shapes.

`pivot` has the method. Vertices of a subgraph are bits of words: `rows` holds, for each left
candidate, its neighbours among the right ones, `columns` the reverse. A frame of the search has the
candidates of both sides, as bits too, how many vertices are held and free on each, and the bits of
the non-neighbours still to be held. Only holding a vertex makes a new frame.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from lpma.backend.numba.instructions import ones

from .._atomics import fetch_add

Array = npt.NDArray[Any]

SHAPES = 1 << 10  # of leaves that a thread's table first has room for
WORD = 64  # bits
FRESH, LEFT, RIGHT = range(3)  # what a frame is doing: nothing yet, or holding the side's bits
OPEN = -1
HELD_LEFT, FREE_LEFT, HELD_RIGHT, FREE_RIGHT, DOING, PIVOT = range(6)  # words of a frame


@numba.njit(cache=True, nogil=True)
def lowest(word: Any) -> Any:
    """The number of the lowest bit that is set."""
    return ones((word & (~word + np.uint64(1))) - np.uint64(1))


@numba.njit(cache=True, nogil=True)
def _size(bits: Array) -> int:
    total = 0
    for word in bits:
        total += ones(word)
    return total


@numba.njit(cache=True, nogil=True)
def _common(a: Array, b: Array) -> int:
    total = 0
    for i in range(len(a)):
        total += ones(a[i] & b[i])
    return total


@numba.njit(cache=True, nogil=True)
def _clear_bit(bits: Array, i: int) -> None:
    bits[i >> 6] &= ~(np.uint64(1) << np.uint64(i & 63))


@numba.njit(cache=True, nogil=True)
def _fill(bits: Array, count: int) -> None:
    """Set the first `count` bits alone."""
    for i in range(len(bits)):
        left = count - WORD * i
        if left >= WORD:
            bits[i] = ~np.uint64(0)
        else:
            bits[i] = (np.uint64(1) << np.uint64(max(left, 0))) - np.uint64(1)


# Shapes of leaves: a hash table of (held << 32 | free) of either side, and how many leaves --------


@numba.njit(cache=True, nogil=True)
def _add_shape(shapes: Array, left: int, right: int, leaves: int) -> int:
    """How many shapes are new: 0 or 1. shapes int64[size, 3], a power of two, never full."""
    mask = len(shapes) - 1
    slot = ((left * 0x9E3779B1 + right * 0x85EBCA77) >> 7) & mask
    while shapes[slot, 2] != 0:
        if shapes[slot, 0] == left and shapes[slot, 1] == right:
            shapes[slot, 2] += leaves
            return 0
        slot = (slot + 1) & mask
    shapes[slot, 0], shapes[slot, 1], shapes[slot, 2] = left, right, leaves
    return 1


@numba.njit(cache=True, nogil=True)
def _grown(shapes: Array) -> Array:
    larger = np.zeros((4 * len(shapes), 3), np.int64)
    for i in range(len(shapes)):
        if shapes[i, 2]:
            _add_shape(larger, shapes[i, 0], shapes[i, 1], shapes[i, 2])
    return larger


# The subgraph of a root ---------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def _candidates(
    u: int, indptr: Array, indices: Array, other_indptr: Array, other: Array, least: int,
    counts: Array, number: Array,
) -> int:  # fmt: skip
    """number[w] = 1, 2, … for those before u that have `least` neighbours in common with it, 0 for
    the others that have any; how many there are."""
    found = 0
    for v in indices[indptr[u] : indptr[u + 1]]:
        x = np.int64(v)
        for i in range(other_indptr[x], other_indptr[x + 1]):
            w = other[i]
            if w >= u:
                break
            counts[w] += 1
    for v in indices[indptr[u] : indptr[u + 1]]:
        x = np.int64(v)
        for i in range(other_indptr[x], other_indptr[x + 1]):
            w = other[i]
            if w >= u:
                break
            if counts[w] >= least:
                found += 1
                number[w] = found
            elif counts[w] > 0:
                number[w] = 0
            counts[w] = 0
    return found


@numba.njit(cache=True, nogil=True)
def _mark(
    u: int, indptr: Array, indices: Array, other_indptr: Array, other: Array, number: Array,
    rows: Array, columns: Array,
) -> None:  # fmt: skip
    """The bits of both sides' neighbours. rows uint64[left, words], columns uint64[right, words]"""
    for j in range(indptr[u + 1] - indptr[u]):
        x = np.int64(indices[indptr[u] + j])
        columns[j, :] = 0
        word, bit = j >> 6, np.uint64(1) << np.uint64(j & 63)
        for k in range(other_indptr[x], other_indptr[x + 1]):
            w = other[k]
            if w >= u:
                break
            if number[w]:
                i = np.int64(number[w]) - 1
                rows[i, word] |= bit
                columns[j, i >> 6] |= np.uint64(1) << np.uint64(i & 63)


# The search ---------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def count_shapes(
    counter: Array, indptr: Array, indices: Array, other_indptr: Array, other: Array, least: Any,
    most: Any,
) -> Array:  # fmt: skip
    """int64[shapes, 3]: held << 32 | free left, the same right, and how many leaves; of the roots
    taken from `counter`. least, most: (left, right) sizes of the bicliques that will be counted."""
    n = len(indptr) - 1
    counts, number = np.zeros(n, np.uint32), np.zeros(n, np.uint32)
    shapes = np.zeros((SHAPES, 3), np.int64)
    used = 0
    while True:
        u = n - 1 - fetch_add(counter, 0, 1)
        if u < 0:
            return shapes[shapes[:, 2] != 0]
        a = _candidates(
            u, indptr, indices, other_indptr, other, least[1], counts, number
        )  # fmt: skip
        b = indptr[u + 1] - indptr[u]
        if a + 1 < least[0] or b < least[1]:
            continue
        rows = np.zeros((a, (b + WORD - 1) // WORD), np.uint64)
        columns = np.empty((b, (a + WORD - 1) // WORD), np.uint64)
        _mark(u, indptr, indices, other_indptr, other, number, rows, columns)
        shapes, used = _search(rows, columns, least, most, shapes, used)


@numba.njit(cache=True, nogil=True)
def _search(
    rows: Array, columns: Array, least: Any, most: Any, shapes: Array, used: int
) -> tuple[Array, int]:
    """Add the shapes of a root's leaves: a left vertex held, and these candidates."""
    a, b = len(rows), len(columns)
    room = max(a, b) + 2  # a frame adds no more shapes
    depth = min(most[0] + most[1], a + b) + 2
    lefts = np.empty((depth, columns.shape[1]), np.uint64)
    rights = np.empty((depth, rows.shape[1]), np.uint64)
    todo = np.empty((depth, max(columns.shape[1], rows.shape[1])), np.uint64)
    frames = np.zeros((depth, 6), np.int64)
    bins = np.zeros(room, np.int64)
    _fill(lefts[0], a)
    _fill(rights[0], b)
    frames[0, HELD_LEFT] = 1
    top = 0
    while top >= 0:
        if frames[top, DOING] != FRESH:
            top += _hold_next(top, frames, lefts, rights, todo[top], rows, columns)
            continue
        while 2 * (used + room) > len(shapes):
            shapes = _grown(shapes)
        frame, left, right = frames[top], lefts[top], rights[top]
        added = _close(frame, left, right, rows, columns, least, most, shapes, bins)
        if added == OPEN:
            if _choose_pivot(frame, left, right, todo[top], rows, columns, least):
                continue
            added = _add(
                shapes, frame[HELD_LEFT], frame[FREE_LEFT] + _size(left), frame[HELD_RIGHT],
                frame[FREE_RIGHT], 1, least,
            )  # fmt: skip
        used += added
        top -= 1
    return shapes, used


@numba.njit(cache=True, nogil=True)
def _add(
    shapes: Array, held_left: int, free_left: int, held_right: int, free_right: int, leaves: int,
    least: Any,
) -> int:  # fmt: skip
    """As `_add_shape`, unless all that such a leaf holds is too small."""
    if held_left + free_left < least[0] or held_right + free_right < least[1]:
        return 0
    return _add_shape(shapes, held_left << 32 | free_left, held_right << 32 | free_right, leaves)


@numba.njit(cache=True, nogil=True)
def _close(
    frame: Array, left: Array, right: Array, rows: Array, columns: Array, least: Any, most: Any,
    shapes: Array, bins: Array,
) -> int:  # fmt: skip
    """Add a frame's leaves where they are known without a pivot: it holds too little, or all that
    may be held of a side, or all but one. How many shapes are new; OPEN where it must be searched.
    """
    a, b = _size(left), _size(right)
    held_left, free_left = frame[HELD_LEFT], frame[FREE_LEFT]
    held_right, free_right = frame[HELD_RIGHT], frame[FREE_RIGHT]
    if held_left + free_left + a < least[0] or held_right + free_right + b < least[1]:
        return 0
    if held_left == most[0]:
        return _add(shapes, held_left, 0, held_right, free_right + b, 1, least)
    if held_right == most[1]:
        return _add(shapes, held_left, free_left + a, held_right, 0, 1, least)
    if held_left + 1 == most[0]:
        new = _add(shapes, held_left, free_left, held_right, free_right + b, 1, least)
        for d in range(_degrees(rows, left, right, bins) + 1):
            if bins[d]:
                new += _add(
                    shapes, held_left + 1, 0, held_right, free_right + d, bins[d], least
                )  # fmt: skip
                bins[d] = 0
        return new
    if held_right + 1 == most[1]:
        new = _add(shapes, held_left, free_left + a, held_right, free_right, 1, least)
        for d in range(_degrees(columns, right, left, bins) + 1):
            if bins[d]:
                new += _add(
                    shapes, held_left, free_left + d, held_right + 1, 0, bins[d], least
                )  # fmt: skip
                bins[d] = 0
        return new
    return OPEN


@numba.njit(cache=True, nogil=True)
def _degrees(matrix: Array, of: Array, among: Array, bins: Array) -> int:
    """bins[d] += how many of the vertices `of` have d neighbours `among` the other side's; the
    largest d."""
    largest = 0
    for i in range(len(of)):
        word = of[i]
        while word:
            d = _common(matrix[WORD * i + lowest(word)], among)
            bins[d] += 1
            largest = max(largest, d)
            word &= word - np.uint64(1)
    return largest


@numba.njit(cache=True, nogil=True)
def _choose_pivot(
    frame: Array, left: Array, right: Array, todo: Array, rows: Array, columns: Array, least: Any
) -> bool:
    """Drop who has too few neighbours, free who has all, and make the vertex that has most of the
    rest the pivot. False where no right vertex is left: then every left one is free."""
    _, freed, left_pivot, lacked_by_left = _sift(
        rows, left, right, least[1] - frame[HELD_RIGHT] - frame[FREE_RIGHT]
    )
    frame[FREE_LEFT] += freed
    kept, freed, right_pivot, lacked_by_right = _sift(
        columns, right, left, least[0] - frame[HELD_LEFT] - frame[FREE_LEFT]
    )
    frame[FREE_RIGHT] += freed
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


@numba.njit(cache=True, nogil=True)
def _sift(matrix: Array, of: Array, among: Array, needed: int) -> tuple[int, int, int, int]:
    """Take those out of the vertices `of` that have all of the other side's, `among`, or fewer than
    `needed`. How many stay; how many had all; who of the others lacks fewest, and how many."""
    total = _size(among)
    kept, freed, pivot, fewest = 0, 0, -1, total + 1
    for i in range(len(of)):
        word = of[i]
        while word:
            v = WORD * i + lowest(word)
            bit = word & (~word + np.uint64(1))
            word ^= bit
            d = _common(matrix[v], among)
            if d == total or d < needed:
                of[i] ^= bit
                freed += d == total
            else:
                kept += 1
                if total - d < fewest:
                    pivot, fewest = v, total - d
    return kept, freed, pivot, fewest


@numba.njit(cache=True, nogil=True)
def _hold_next(
    top: int, frames: Array, lefts: Array, rights: Array, todo: Array, rows: Array, columns: Array
) -> int:
    """Take the next vertex that the pivot lacks out of the frame, and hold it in a new one: 1. Or,
    when none is left, free the pivot, which has all now: 0."""
    frame, of_right = frames[top], frames[top, DOING] == RIGHT
    v = _take_lowest(todo, len(rights[top]) if of_right else len(lefts[top]))
    if v < 0:
        _clear_bit(lefts[top] if of_right else rights[top], frame[PIVOT])
        frame[FREE_LEFT if of_right else FREE_RIGHT] += 1
        frame[DOING] = FRESH
        return 0
    _clear_bit(rights[top] if of_right else lefts[top], v)
    lefts[top + 1], rights[top + 1], frames[top + 1] = lefts[top], rights[top], frame
    if of_right:
        lefts[top + 1] &= columns[v]
    else:
        rights[top + 1] &= rows[v]
    frames[top + 1, HELD_RIGHT if of_right else HELD_LEFT] += 1
    frames[top + 1, DOING] = FRESH
    return 1


@numba.njit(cache=True, nogil=True)
def _take_lowest(bits: Array, words: int) -> int:
    """The number of the first bit set, which is cleared; -1 where none is."""
    for i in range(words):
        if bits[i]:
            v = WORD * i + lowest(bits[i])
            bits[i] &= bits[i] - np.uint64(1)
            return v
    return -1
