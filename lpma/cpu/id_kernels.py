"""Vertex ids from callers, checked and narrowed to 32 bits in one pass.

The kernels keep the interpreter's lock, for less than 0.1 ms: they look at KEPT_ROWS rows at most,
and between two calls another thread may have it. NumPy releases it from 500 numbers on, and beside
a busy Python thread gets it back only 5 ms later.

An id is at most MOST.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from ..arrays import Array, address
from ..pma.keys import HALF
from .instructions import at_u32, at_u64, load_u32, load_u64, store_u32
from .jit import inlined, keeping_lock

KEPT_ROWS = 1 << 17
MOST = (1 << 32) - 2
UINT32 = np.dtype(np.uint32)


def ids(array: Array) -> Array | None:
    """A column of ids as uint32, not copied if it is uint32 already. None if one is not an id, or
    the column has another form: then a slower way has to look. array: one-dimensional integers."""
    n = len(array)
    if array.dtype == UINT32 and array.flags.c_contiguous:
        return array if _most(array) <= MOST else None
    if array.dtype.itemsize == 8 and array.flags.aligned and array.dtype.isnative:
        narrowed = np.empty(n, np.uint32)
        at, stride, to = address(array), array.strides[0], address(narrowed)
        for i in range(0, n, KEPT_ROWS):
            if narrow_kept(at + stride * i, stride, to + 4 * i, min(KEPT_ROWS, n - i)):
                return None
        return narrowed
    return None


def largest(src: Array, dst: Array) -> int:
    """The largest number in two contiguous columns of uint32; 0 if they are empty."""
    return max(_most(src), _most(dst))


def _most(column: Array) -> int:
    at, n, most = address(column), len(column), 0
    for i in range(0, n, KEPT_ROWS):
        most = max(most, largest_kept(at + 4 * i, min(KEPT_ROWS, n - i)))
    return most


@keeping_lock
def largest_kept(at: int, n: int) -> np.int64:
    """The largest of n numbers of 32 bits, without a sign."""
    values, most = carray(at_u32(at), n), np.uint32(0)
    for i in range(n):
        most = max(most, values[i])
    return np.int64(most)


@inlined
def same_words(
    source: int, stride: int, into: int, n: int, mask: np.uint32, limit: np.uint32
) -> bool:
    """Copy words of 32 bits. Returns whether one, without the bits outside `mask`, is larger than
    `limit`."""
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
def narrow(source: int, stride: int, into: int, n: int) -> bool:
    """From 8 bytes to 4. Returns whether one is not an id, for which id + 1 is below 2^32."""
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


@keeping_lock
def narrow_kept(source: int, stride: int, into: int, n: int) -> bool:
    """See `narrow`."""
    return narrow(source, stride, into, n)
