"""A key and its place in one word of 64 bits: what most batches are sorted as. See sort.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...cpu.jit import compiled, inlined

Array = npt.NDArray[Any]

RANKED, RANKED_BITS = 96, 7  # keys that are sorted by comparing each with all, at most
PASSES = 3  # over a bucket of packed words
NARROWEST, WIDEST, WIDE_FROM = 8, 11, 512  # bits of a digit, up to so many words and above
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


@inlined
def sort_few_packed(
    keys: Array, places: Array, spare: Array, n: int, in_low: int, in_high: int, place_bits: int
) -> None:
    """Sort the first n keys, of which `in_low` lower and `in_high` upper bits are in use, stably
    and in place; a key without its gap and a place fit a word. `spare` is room for n words.

    The last pass unpacks the words into `keys`, so it must read them from `spare`: an odd number of
    passes starts there."""
    low, at_key = (np.uint64(1) << np.uint64(in_low)) - np.uint64(1), np.uint64(place_bits)
    gap, bits = np.uint64(32 - in_low), in_low + in_high
    passes = max(1, -(-bits // (WIDEST if n > WIDE_FROM else NARROWEST)))
    words, out = (spare, keys) if passes % 2 else (keys, spare)
    for i in range(n):
        key = digit_of(keys[i], low, gap, np.uint64(0), ALL_BITS)
        words[i] = (key << at_key) | np.uint64(places[i])
    width = -(-bits // passes)
    counts = np.empty(1 << width, np.int64)
    for r in range(passes):
        at = np.uint64(place_bits + r * width)
        _count_digits(words, n, at, counts)
        if r == passes - 1:
            _unpack_pass(words, keys, places, n, at, counts, low, gap, at_key)
        else:
            _pass(words, out, 0, n, at, np.uint64(len(counts) - 1), counts)
        words, out = out, words


@inlined
def sort_by_rank(
    keys: Array, places: Array, words: Array, spare_places: Array, n: int, in_low: int
) -> None:
    """Sort the first n keys stably, n <= RANKED: a word is a key and where it stands, and goes
    where as many words are smaller. That many comparisons take less than a few branches that
    nothing could predict: they are made eight at a time. REQUIRES: such a word has 64 bits."""
    low, gap = (np.uint64(1) << np.uint64(in_low)) - np.uint64(1), np.uint64(32 - in_low)
    for i in range(n):
        key = digit_of(keys[i], low, gap, np.uint64(0), ALL_BITS)
        words[i] = (key << np.uint64(RANKED_BITS)) | np.uint64(i)
        spare_places[i] = places[i]
    for i in range(n):
        word, rank = words[i], 0
        for j in range(n):
            rank += words[j] < word
        key = word >> np.uint64(RANKED_BITS)
        keys[rank] = ((key & ~low) << gap) | (key & low)
        places[rank] = spare_places[i]


@inlined
def _count_digits(words: Array, n: int, at: np.uint64, counts: Array) -> None:
    """Where the first word of each digit goes."""
    mask, total = np.uint64(len(counts) - 1), 0
    counts[:] = 0
    for i in range(n):
        counts[(words[i] >> at) & mask] += 1
    for digit in range(len(counts)):
        here = counts[digit]
        counts[digit] = total
        total += here


@inlined
def _unpack_pass(
    words: Array, keys: Array, places: Array, n: int, at: np.uint64, offsets: Array,
    low: np.uint64, gap: np.uint64, at_key: np.uint64,
) -> None:  # fmt: skip
    """As _pass, but the words' keys and places are written apart."""
    mask = np.uint64(len(offsets) - 1)
    place_mask = (np.uint64(1) << at_key) - np.uint64(1)
    for i in range(n):
        word = words[i]
        digit = (word >> at) & mask
        to = offsets[digit]
        offsets[digit] = to + 1
        key = word >> at_key
        keys[to] = ((key & ~low) << gap) | (key & low)
        places[to] = word & place_mask
