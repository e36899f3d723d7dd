"""Columns of a batch copied to where a device fetches them: any number of threads at one job, each
by one call, without the interpreter's lock.

A copy is also a conversion and an inspection, since a host that copies at the speed of its memory
has nothing better to do meanwhile: each value is read once, and what was looked at is what is sent,
even if another thread writes to the array.

A job is an int64 array: HEAD words, then WORDS for each column. It is cut into pieces of a column,
which threads take in order. Whoever needs a column calls `stage` with its number, and takes pieces,
of any column, until that one is whole; helpers call it with the number of columns, and take what is
left.

Tricks: rows are made in a chunk of memory that stays in the nearest cache, and leave it past the
caches: what they overwrite is not read first, which is a third of the traffic. One comparison
serves all that can be wrong: a weight is finite and not too large if its bits, without the sign,
are those of a number that is; a negative integer, read without its sign, is larger than any vertex.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import carray

from .atomics import add_in_order, fetch_add
from .instructions import (
    LINE,
    at_u32,
    at_u64,
    load_u32,
    load_u64,
    move_bytes,
    store_u32,
    store_u64,
    stream_line,
)
from .jit import compiled, inlined
from .staging_words import (
    BAD,
    BYTES,
    COLUMNS,
    DONE,
    HEAD,
    HOW,
    INTO,
    LIMIT,
    MASK,
    NARROW,
    NEXT,
    PIECE,
    ROWS,
    SAME32,
    SAME64,
    SOURCE,
    STRIDE,
    WORDS,
)

Array = npt.NDArray[Any]

LOOKS = 20_000  # at a column that others are still at work on: some tenths of a millisecond
CHUNK = 1024  # rows that are made in the nearest cache before they leave it
HALF = np.uint64(32)


@compiled
def stage(job: Array, column: int) -> bool:
    """Take pieces until this column is whole, or none is left. Returns whether that is so; False:
    others are still at work on it, for longer than a piece should take."""
    rows, piece, columns = job[ROWS], job[PIECE], job[COLUMNS]
    per_column = (rows + piece - 1) // piece
    own = HEAD + WORDS * min(column, columns - 1)
    chunk = np.empty(CHUNK, np.uint64)
    near = chunk.ctypes.data
    while column == columns or add_in_order(job, own + DONE, 0) < per_column:
        taken = fetch_add(job, NEXT, 1)
        if taken >= columns * per_column:
            break
        words = HEAD + WORDS * (taken // per_column)
        lo = taken % per_column * piece
        if _piece(job, words, lo, min(lo + piece, rows), near):
            job[words + BAD] = 1
        add_in_order(job, words + DONE, 1)
    looks = 0
    while column < columns and add_in_order(job, own + DONE, 0) < per_column:
        looks += 1
        if looks == LOOKS:
            return False
    return True


@inlined
def _piece(job: Array, words: int, lo: int, hi: int, near: int) -> bool:
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
            bad |= _words32(given, stride, near, n, np.uint32(mask), np.uint32(limit))
        elif how == NARROW:
            bad |= _narrow(given, stride, near, n)
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
def _words32(
    source: int, stride: int, into: int, n: int, mask: np.uint32, limit: np.uint32
) -> bool:
    most = np.uint32(0)
    if stride == 4:
        given, to = carray(at_u32(source), n), carray(at_u32(into), n)
        for i in range(n):
            value = given[i]
            to[i] = value
            most = max(most, value & mask)
    else:
        for i in range(n):
            value = load_u32(source + i * stride)
            store_u32(into + 4 * i, value)
            most = max(most, value & mask)
    return bool(most > limit)


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


@inlined
def _narrow(source: int, stride: int, into: int, n: int) -> bool:
    """From 8 bytes to 4. Good: up to 2^32 - 2, which with 1 added stays below 2^32."""
    over = np.uint64(0)
    if stride == 8:
        given, to = carray(at_u64(source), n), carray(at_u32(into), n)
        for i in range(n):
            value = given[i]
            to[i] = np.uint32(value)
            over |= (value | (value + np.uint64(1))) >> HALF
    else:
        for i in range(n):
            value = load_u64(source + i * stride)
            store_u32(into + 4 * i, np.uint32(value))
            over |= (value | (value + np.uint64(1))) >> HALF
    return bool(over != 0)
