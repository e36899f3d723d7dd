"""Columns of a batch copied to where a device fetches them, by several threads without the
interpreter's lock.

A copy also converts and checks, which is free where memory bounds the speed. Each value is read
once, so that what was checked is what is sent, even if another thread writes to the array.

Jobs are on a board, an int64 array with room for a few (staging_words.py). A job is cut into pieces
of a column, which are taken in order. Whoever needs a column calls `stage` with its number, and
takes pieces, of any column, until that one is whole. Helpers are in `serve` for as long as the
process lives: they sleep until `begin` wakes some of them, and then take what is left on the board.

Helpers are not told that a job is over, and its place on the board is used again. So a piece is
taken by one atomic decrement: a positive result is a piece of the job that is there at that moment,
and the job stays until the piece is done.

Tricks: rows are made in a chunk of memory that stays in the nearest cache, and leave it past the
caches: what they overwrite is not read first, which is a third of the traffic. One comparison
serves all that can be wrong: a weight is finite and not too large if its bits, without the sign,
are those of a number that is; a negative integer, read without its sign, is larger than any vertex.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from ..arrays import Array
from .atomics import add_in_order, put_in_order
from .id_kernels import narrow, same_words
from .instructions import (
    LINE,
    at_u64,
    load_u64,
    make_semaphore,
    move_bytes,
    post,
    store_u64,
    stream_line,
    wait,
)
from .jit import compiled, inlined, keeping_lock
from .staging_words import (
    BAD,
    BYTES,
    DONE,
    HEAD,
    HOW,
    INTO,
    LEFT,
    LIMIT,
    MASK,
    NARROW,
    PER_COLUMN,
    PIECE,
    PIECES,
    ROWS,
    SAME32,
    SAME64,
    SLOT,
    SOURCE,
    STRIDE,
    WORDS,
)

LOOKS = 20_000  # at a column that others are still at work on: some tenths of a millisecond
CHUNK = 1024  # rows that are made in the nearest cache before they leave it


@compiled
def prepare(semaphore: int) -> None:
    make_semaphore(semaphore)


@compiled
def begin(board: Array, at: int, semaphore: int, helpers: int) -> None:
    """Let everybody take pieces of the job at `at`, and wake helpers."""
    put_in_order(board, at + LEFT, board[at + PIECES])
    for _ in range(helpers):
        post(semaphore)


@compiled
def serve(board: Array, semaphore: int) -> None:
    """Take pieces of all jobs whenever the semaphore says so, until the last word of the board is
    set."""
    chunk = np.empty(CHUNK, np.uint64)
    while not board[-1]:
        wait(semaphore)
        busy = True
        while busy:
            busy = False
            for at in range(0, len(board) - 1, SLOT):
                while _take(board, at, chunk.ctypes.data):
                    busy = True


@compiled
def stage(board: Array, at: int, column: int) -> bool:
    """Take pieces of the job at `at` until this column is whole. Returns whether it is; False:
    others are still at work on it, for longer than a piece should take."""
    done, per_column = at + HEAD + WORDS * column + DONE, board[at + PER_COLUMN]
    chunk = np.empty(CHUNK, np.uint64)
    looks = 0
    while add_in_order(board, done, 0) < per_column:
        if not _take(board, at, chunk.ctypes.data):
            looks += 1
            if looks == LOOKS:
                return False
    return True


@keeping_lock
def stage_alone(job: Array, columns: int) -> bool:
    """Copy all columns of a job that nobody else knows of, with the interpreter's lock: to have
    that back takes longer than to copy the rows of a small batch. Returns whether one is bad."""
    chunk, rows, bad = np.empty(CHUNK, np.uint64), job[ROWS], False
    for words in range(HEAD, HEAD + WORDS * columns, WORDS):
        if _copy(job, words, 0, rows, chunk.ctypes.data):
            job[words + BAD], bad = 1, True
    return bad


@inlined
def _take(board: Array, at: int, near: int) -> bool:
    """Take a piece of the job at `at`, and do it. Returns whether there was one."""
    if board[at + LEFT] <= 0:
        return False
    left = add_in_order(board, at + LEFT, -1)
    if left <= 0:
        return False
    piece, per_column, size = board[at + PIECES] - left, board[at + PER_COLUMN], board[at + PIECE]
    words = at + HEAD + WORDS * (piece // per_column)
    lo = piece % per_column * size
    if _copy(board, words, lo, min(lo + size, board[at + ROWS]), near):
        board[words + BAD] = 1
    add_in_order(board, words + DONE, 1)
    return True


@inlined
def _copy(job: Array, words: int, lo: int, hi: int, near: int) -> bool:
    """Copy rows lo … hi - 1 of the column at `words`. Returns whether one is bad. near: memory for
    CHUNK rows of 8 bytes."""
    how, stride = job[words + HOW], job[words + STRIDE]
    source, into = job[words + SOURCE], job[words + INTO]
    mask, limit = np.uint64(job[words + MASK]), np.uint64(job[words + LIMIT])
    if how == BYTES:
        _send(into + lo * stride, source + lo * stride, (hi - lo) * stride)
        return False
    bad = False
    width = 8 if how == SAME64 else 4
    for at in range(lo, hi, CHUNK):
        n = min(CHUNK, hi - at)
        given, to = source + at * stride, into + at * width
        if how == SAME32:
            bad |= same_words(given, stride, near, n, np.uint32(mask), np.uint32(limit))
        elif how == NARROW:
            bad |= narrow(given, stride, near, n)
        else:
            bad |= _words64(given, stride, near, n, mask, limit)
        _send(to, near, n * width)
    return bad


@inlined
def _send(to: int, source: int, size: int) -> None:
    """Copy bytes. REQUIRES: `to` is a multiple of LINE."""
    whole = size // LINE * LINE
    for at in range(0, whole, LINE):
        stream_line(to + at, source + at)
    move_bytes(to + whole, source + whole, size - whole)


@inlined
def _words64(
    source: int, stride: int, into: int, n: int, mask: np.uint64, limit: np.uint64
) -> bool:
    """REQUIRES: mask and limit below 2^63, so that vectors can be compared with their signs."""
    bad, most, bits = np.uint64(0), np.int64(limit), np.int64(mask)
    if stride == 8:
        given, to = carray(at_u64(source), n), carray(at_u64(into), n)
        for i in range(n):
            value = given[i]
            to[i] = value
            bad |= np.uint64((np.int64(value) & bits) > most)
    else:
        for i in range(n):
            value = load_u64(source + i * stride)
            store_u64(into + 8 * i, value)
            bad |= np.uint64((np.int64(value) & bits) > most)
    return bool(bad != 0)
