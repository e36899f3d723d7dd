"""Stable radix sort of a batch's keys, carrying each operation's place.

Least significant digit first, over the bits in use only: bits that all keys share are skipped,
so 2 ceil(log2 n) bits are sorted for n vertices, not 64. Large batches are cut in one range a
thread; a thread scatters its own range behind those before it, which keeps the sort stable.
`np.sort` is no rival: its AVX-512 path for uint64 is slower than its scalar one here, and a
stable argsort is slower still.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from .threads import THREADS, run_all

Array = npt.NDArray[Any]

MOST_BITS = 11  # 2048 counters stay in the first-level cache beside the data
PARALLEL_FROM = 1 << 15


@njit(cache=True, nogil=True)
def _survey(keys: Array) -> tuple[np.uint64, bool]:
    """(the bits in which keys differ, whether they already rise)."""
    every = np.uint64(0xFFFFFFFFFFFFFFFF)
    some = np.uint64(0)
    rising = True
    before = np.uint64(0)
    for i in range(len(keys)):
        key = keys[i]
        every &= key
        some |= key
        rising &= key >= before
        before = key
    return every ^ some, rising


@njit(cache=True, nogil=True)
def _count(keys: Array, lo: int, hi: int, bit: int, width: int, counts: Array) -> None:
    mask = np.uint64((1 << width) - 1)
    shift = np.uint64(bit)
    counts[:] = 0
    for i in range(lo, hi):
        counts[np.int64((keys[i] >> shift) & mask)] += 1


@njit(cache=True, nogil=True)
def _offsets(counts: Array) -> None:
    """counts[range, digit] becomes where that range's first key with that digit goes."""
    total = 0
    for digit in range(counts.shape[1]):
        for piece in range(counts.shape[0]):
            here = counts[piece, digit]
            counts[piece, digit] = total
            total += here


@njit(cache=True, nogil=True)
def _scatter(
    keys: Array,
    places: Array,
    lo: int,
    hi: int,
    bit: int,
    width: int,
    offsets: Array,
    keys_out: Array,
    places_out: Array,
) -> None:
    mask = np.uint64((1 << width) - 1)
    shift = np.uint64(bit)
    for i in range(lo, hi):
        key = keys[i]
        digit = np.int64((key >> shift) & mask)
        to = offsets[digit]
        offsets[digit] = to + 1
        keys_out[to] = key
        places_out[to] = places[i]


def digits(varying: int) -> list[tuple[int, int]]:
    """The (lowest bit, width) of each pass that `varying`, the bits in use, asks for."""
    passes = []
    bit = 0
    while varying >> bit:
        if not (varying >> bit) & 1:
            bit += 1
            continue
        # A group of bits in use ends at a gap at least a digit wide.
        top = bit
        gap = 0
        for other in range(bit, 64):
            if (varying >> other) & 1:
                top, gap = other, 0
            else:
                gap += 1
                if gap >= MOST_BITS:
                    break
        length = top - bit + 1
        rounds = -(-length // MOST_BITS)
        width = -(-length // rounds)
        passes += [(bit + width * i, min(width, length - width * i)) for i in range(rounds)]
        bit = top + 1
    return passes


def sort_pairs(
    keys: Array, places: Array, spare_keys: Array, spare_places: Array
) -> tuple[Array, Array]:
    """(keys, places) stably sorted by key. The results share memory with the arguments, all
    four of which are overwritten. keys: uint64[n], places: uint32[n], the spares alike."""
    n = len(keys)
    varying, rising = _survey(keys)
    if rising:
        return keys, places
    pieces = THREADS if n >= PARALLEL_FROM else 1
    edges = [n * i // pieces for i in range(pieces + 1)]
    for bit, width in digits(int(varying)):
        offsets = np.empty((pieces, 1 << width), np.int64)
        ranges = [(edges[i], edges[i + 1], offsets[i]) for i in range(pieces)]
        run_all(_count, [(keys, lo, hi, bit, width, mine) for lo, hi, mine in ranges])
        _offsets(offsets)
        run_all(
            _scatter,
            [
                (keys, places, lo, hi, bit, width, mine, spare_keys, spare_places)
                for lo, hi, mine in ranges
            ],
        )
        keys, spare_keys = spare_keys, keys
        places, spare_places = spare_places, places
    return keys, places
