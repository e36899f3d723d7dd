"""A key and its place in one word of 64 bits: what most batches are sorted as. See sort.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...cpu.jit import compiled, inlined

Array = npt.NDArray[Any]

PASSES = 3  # over a bucket of packed words
ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def digit_of(
    key: np.uint64, low: np.uint64, gap: np.uint64, bit: np.uint64, mask: np.uint64
) -> Any:
    """A digit of the key without its gap: its bits under `low`, then those `gap` bits higher."""
    return ((((key >> gap) & ~low) | (key & low)) >> bit) & mask


@compiled
def scatter_packed(
    keys: Array, places: Array, lo: int, hi: int, low: np.uint64, gap: int, bit: int,
    offsets: Array, words: Array, place_bits: int,
) -> None:  # fmt: skip
    """As sort._scatter, but each key without its gap and above its place, in one word."""
    mask = np.uint64(len(offsets) - 1)
    for i in range(lo, hi):
        key = digit_of(keys[i], low, np.uint64(gap), np.uint64(0), ALL_BITS)
        digit = (key >> np.uint64(bit)) & mask
        to = offsets[digit]
        offsets[digit] = to + 1
        words[to] = (key << np.uint64(place_bits)) | np.uint64(places[i])


@compiled
def sort_packed(
    words: Array, keys: Array, places: Array, starts: Array, first: int, last: int,
    low: np.uint64, gap: int, bits: int, place_bits: int,
) -> None:  # fmt: skip
    """Sort the words of buckets first … last - 1, each by its `bits` lower bits, in PASSES into
    `keys` and `places`; the words are overwritten."""
    width = np.uint64((bits + PASSES - 1) // PASSES)
    mask = (np.uint64(1) << width) - np.uint64(1)
    at_key, shift = np.uint64(place_bits), np.uint64(gap)
    at_second, at_third = at_key + width, at_key + width + width
    place_mask = (np.uint64(1) << at_key) - np.uint64(1)
    counts = np.empty((PASSES, 1 << width), np.int64)
    for bucket in range(first, last):
        lo, hi = starts[bucket], starts[bucket + 1]
        if lo == hi:
            continue
        counts[:] = 0
        for i in range(lo, hi):
            word = words[i]
            counts[0, (word >> at_key) & mask] += 1
            counts[1, (word >> at_second) & mask] += 1
            counts[2, (word >> at_third) & mask] += 1
        for r in range(PASSES):
            total = lo
            for digit in range(1 << width):
                here = counts[r, digit]
                counts[r, digit] = total
                total += here
        _pass(words, keys, lo, hi, at_key, mask, counts[0])
        _pass(keys, words, lo, hi, at_second, mask, counts[1])
        offsets = counts[2]
        for i in range(lo, hi):
            word = words[i]
            digit = (word >> at_third) & mask
            to = offsets[digit]
            offsets[digit] = to + 1
            key = word >> at_key
            keys[to] = ((key & ~low) << shift) | (key & low)
            places[to] = word & place_mask


@inlined
def _pass(
    words: Array, out: Array, lo: int, hi: int, at: np.uint64, mask: np.uint64, offsets: Array
) -> None:
    for i in range(lo, hi):
        word = words[i]
        digit = (word >> at) & mask
        to = offsets[digit]
        offsets[digit] = to + 1
        out[to] = word
