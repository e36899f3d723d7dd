"""The transpose of a CSR on the CPU: a stable counting sort over targets, in two steps. O(n + m).

Sources are visited in rising order and the sort is stable, so rows come out sorted. Writing entries
straight to their places would scatter them over all of memory. So they go first to buckets of
consecutive targets, few enough to be written side by side, and from each bucket to its rows, which
fit in a cache. Threads share the first step by pieces of the rows, each with its own places in
every bucket, and the second by buckets.

Requires indptr int64[n+1] and indices uint32[m], C-contiguous.
"""

from __future__ import annotations

import numpy as np

from lpma.cpu.jit import compiled
from lpma.cpu.pieces import is_small, row_pieces
from lpma.cpu.threads import run_all

from ..arrays import Array

BUCKET_BITS = 14  # targets of a bucket, at least
MOST_BUCKETS_BITS = 10
PIECES_PER_THREAD = 2  # of the first step; each has a counter per bucket


def transpose(indptr: Array, indices: Array) -> tuple[Array, Array]:
    """indptr int64[n+1], indices uint32[m] of the transpose: rows sorted, repeats kept."""
    n, m = len(indptr) - 1, len(indices)
    shift = max(BUCKET_BITS, (n - 1).bit_length() - MOST_BUCKETS_BITS if n else 0)
    buckets = (n >> shift) + 1
    pieces = [(0, n)] if is_small(indptr) else row_pieces(indptr, PIECES_PER_THREAD)
    counts = np.zeros((len(pieces), buckets), np.int64)
    run_all(
        _count_buckets,
        [
            (int(indptr[first]), int(indptr[last]), indices, shift, counts[i])
            for i, (first, last) in enumerate(pieces)
        ],
    )
    # Places go bucket by bucket, and within a bucket piece by piece.
    ends = np.cumsum(counts.T.ravel())
    places = (ends - counts.T.ravel()).reshape(buckets, len(pieces)).T.copy()
    starts = np.append(places[0], m)
    pairs = np.empty(m, np.uint64)
    run_all(
        _spread,
        [(*piece, indptr, indices, shift, places[i], pairs) for i, piece in enumerate(pieces)],
    )
    reverse_indptr, reverse = np.zeros(n + 1, np.int64), np.empty(m, np.uint32)
    spans = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    run_all(
        _place,
        [
            (b << shift, min((b + 1) << shift, n), start, end, pairs, reverse_indptr, reverse)
            for b, (start, end) in enumerate(spans)
            if b << shift < n
        ],
    )
    return reverse_indptr, reverse


@compiled
def _count_buckets(first: int, last: int, indices: Array, shift: int, counts: Array) -> None:
    for i in range(first, last):
        counts[indices[i] >> np.uint32(shift)] += 1


@compiled
def _spread(
    first: int, last: int, indptr: Array, indices: Array, shift: int, places: Array, pairs: Array
) -> None:
    """Write target << 32 | source to the buckets, from `places` on."""
    for u in range(first, last):
        for i in range(indptr[u], indptr[u + 1]):
            v = indices[i]
            bucket = v >> np.uint32(shift)
            pairs[places[bucket]] = np.uint64(v) << np.uint64(32) | np.uint64(u)
            places[bucket] += 1


@compiled
def _place(
    low: int, high: int, start: int, end: int, pairs: Array, indptr: Array, indices: Array
) -> None:
    """The rows low … high - 1 from their bucket, pairs[start:end]; writes indptr after `low`."""
    next_place = np.zeros(high - low + 1, np.int64)
    for i in range(start, end):
        next_place[np.int64(pairs[i] >> np.uint64(32)) - low + 1] += 1
    next_place[0] = start
    for v in range(high - low):
        next_place[v + 1] += next_place[v]
        indptr[low + v + 1] = next_place[v + 1]
    for i in range(start, end):
        row = np.int64(pairs[i] >> np.uint64(32)) - low
        indices[next_place[row]] = np.uint32(pairs[i])
        next_place[row] += 1


@compiled
def move_weights(indices: Array, transposed_indptr: Array, weights: Array) -> Array:
    """weights[m] in the order of the transpose's entries, those of repeats in their own."""
    place = transposed_indptr.copy()
    moved = np.empty_like(weights)
    for e in range(len(indices)):
        v = indices[e]
        moved[place[v]] = weights[e]
        place[v] += 1
    return moved
