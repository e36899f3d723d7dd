"""Stable radix sort of a batch's keys, carrying each operation's place.

Only the bits in use are sorted: those above the largest source and above the largest target are
left out, so 2 ceil(log2 n) bits for n vertices, not 64. A small batch is sorted by its least
significant digits first. A large one is first cut by its most significant digit into buckets
that fit a core's cache, a range a thread, each scattering behind those before it (which keeps
the sort stable); then the threads take the buckets one by one. So memory sees two passes,
however many digits there are.

`np.sort` is not an alternative: its AVX-512 path for uint64 is slower than its scalar one on the
machines we measured, and a stable argsort is slower still.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..arrays import Array
from ..pma.keys import HALF, LOW
from .jit import compiled, inlined
from .threads import THREADS, run_all

CACHED_KEYS = 1 << 13  # with their places, and the spares beside, they fit a core's cache
BUCKETS_FROM = 1 << 15  # keys; fewer are not worth a hand-over between threads
MOST_BUCKET_BITS = 10
WIDEST = 11  # bits of a digit


@inlined
def digit_of(
    key: np.uint64, low: np.uint64, gap: np.uint64, bit: np.uint64, mask: np.uint64
) -> Any:
    """A digit of the key without its gap: its bits under `low`, then those `gap` bits higher."""
    return ((((key >> gap) & ~low) | (key & low)) >> bit) & mask


@compiled
def _survey(keys: Array, lo: int, hi: int) -> tuple[np.uint64, bool]:
    """Of rows lo … hi - 1: (the bits that any key has set, whether the keys already rise, from the
    one before on)."""
    some = np.uint64(0)
    for key in keys[lo:hi]:
        some |= key
    before = keys[lo - 1] if lo else np.uint64(0)
    for key in keys[lo:hi]:
        if key < before:
            return some, False
        before = key
    return some, True


@compiled
def _count(keys: Array, low: np.uint64, gap: int, bit: int, counts: Array) -> None:
    mask = np.uint64(len(counts) - 1)
    counts[:] = 0
    for key in keys:
        counts[digit_of(key, low, np.uint64(gap), np.uint64(bit), mask)] += 1


@compiled
def _scatter(
    keys: Array, places: Array, low: np.uint64, gap: int, bit: int, offsets: Array,
    keys_out: Array, places_out: Array,
) -> None:  # fmt: skip
    mask = np.uint64(len(offsets) - 1)
    for i in range(len(keys)):
        key = keys[i]
        digit = digit_of(key, low, np.uint64(gap), np.uint64(bit), mask)
        to = offsets[digit]
        offsets[digit] = to + 1
        keys_out[to] = key
        places_out[to] = places[i]


@inlined
def _sort_range(
    keys: Array, places: Array, spare_keys: Array, spare_places: Array, low: np.uint64, gap: int,
    bits: int, counts: Array,
) -> None:  # fmt: skip
    """Sort these keys by their `bits` lowest digits' bits, in place. Columns are cut to the range
    by the caller, because Numba asks of each index that is not counted from 0 whether it is
    negative."""
    n = len(keys)
    widest = 6
    while widest < WIDEST and (1 << (widest + 1)) <= n:
        widest += 1
    rounds = (bits + widest - 1) // widest
    done = 0
    for r in range(rounds):
        width = (bits - done + rounds - r - 1) // (rounds - r)
        here = counts[: 1 << width]
        _count(keys, low, gap, done, here)
        total = 0
        for digit in range(len(here)):
            count = here[digit]
            here[digit] = total
            total += count
        _scatter(keys, places, low, gap, done, here, spare_keys, spare_places)
        keys, spare_keys = spare_keys, keys
        places, spare_places = spare_places, places
        done += width
    if rounds % 2:
        for i in range(n):
            spare_keys[i], spare_places[i] = keys[i], places[i]


@compiled
def _sort_buckets(
    keys: Array, places: Array, spare_keys: Array, spare_places: Array, starts: Array, first: int,
    last: int, low: np.uint64, gap: int, bits: int,
) -> None:  # fmt: skip
    """Sort buckets first … last - 1, each by its `bits` lower bits."""
    counts = np.empty(1 << WIDEST, np.int64)
    for bucket in range(first, last):
        lo, hi = starts[bucket], starts[bucket + 1]
        if hi - lo > 1:
            _sort_range(
                keys[lo:hi], places[lo:hi], spare_keys[lo:hi], spare_places[lo:hi], low, gap, bits,
                counts,
            )  # fmt: skip


@inlined
def _bit_length(bits: np.uint64) -> int:
    length = 0
    while bits >> np.uint64(length) and length < 64:
        length += 1
    return length


@compiled
def sort_few(keys: Array, places: Array, spare_keys: Array, spare_places: Array, n: int) -> None:
    """Sort the first n keys stably, in place; fewer than BUCKETS_FROM, on this thread."""
    used, rising = _survey(keys, 0, n)
    if rising:
        return
    in_low = _bit_length(used & LOW)
    _sort_range(
        keys[:n], places[:n], spare_keys[:n], spare_places[:n],
        (np.uint64(1) << np.uint64(in_low)) - np.uint64(1), 32 - in_low,
        in_low + _bit_length(used >> HALF), np.empty(1 << WIDEST, np.int64),
    )  # fmt: skip


def sort_pairs(
    keys: Array, places: Array, spare_keys: Array, spare_places: Array
) -> tuple[Array, Array]:
    """(keys, places) stably sorted by key. The results share memory with the arguments, all
    four of which are overwritten. keys: uint64[n], places: uint32[n], the spares alike."""
    n = len(keys)
    if n < BUCKETS_FROM:
        sort_few(keys, places, spare_keys, spare_places, n)
        return keys, places
    edges = [n * i // THREADS for i in range(THREADS + 1)]
    used, in_order = 0, True
    for some, rising in run_all(_survey, [(keys, lo, hi) for lo, hi in pairwise(edges)]):
        used, in_order = used | some, in_order and rising
    if in_order:
        return keys, places
    in_low = (used & 0xFFFFFFFF).bit_length()
    bits = in_low + (used >> 32).bit_length()
    low, gap = np.uint64((1 << in_low) - 1), 32 - in_low
    bucket_bits = min(MOST_BUCKET_BITS, (n // CACHED_KEYS).bit_length(), bits)
    bit = bits - bucket_bits
    offsets = np.empty((THREADS, 1 << bucket_bits), np.int64)
    ranges = [(edges[i], edges[i + 1], low, gap, bit, offsets[i]) for i in range(THREADS)]
    run_all(_count, [(keys[lo:hi], *piece) for lo, hi, *piece in ranges])
    # What counted the keys of (range, bucket) becomes where the first of them goes.
    by_bucket = offsets.T.ravel()
    ends = np.cumsum(by_bucket)
    offsets[:] = (ends - by_bucket).reshape(-1, THREADS).T
    starts = np.append(0, ends[THREADS - 1 :: THREADS])
    # As many tasks as even out buckets of uneven size, each of about as many keys.
    wanted = np.linspace(0, n, 8 * THREADS + 1)
    cuts = np.unique(np.searchsorted(starts, wanted))
    cuts[0], cuts[-1] = 0, len(starts) - 1
    tasks = list(pairwise(cuts.tolist()))
    run_all(
        _scatter,
        [
            (keys[lo:hi], places[lo:hi], *piece, spare_keys, spare_places)
            for lo, hi, *piece in ranges
        ],
    )
    run_all(
        _sort_buckets,
        [
            (spare_keys, spare_places, keys, places, starts, first, last, low, gap, bit)
            for first, last in tasks
        ],
    )
    return spare_keys, spare_places
