"""Border: an order of the vertices of a layer in which truncated bitmaps have fewer words.

Source: Qiu et al., GBC, arXiv 2403.07858, section V-B and Algorithm 2. The rows of one layer over
the other form a matrix. In a row, 32 adjacent columns are a block, and a block with a single 1 is a
word of a bitmap that serves one neighbour only. Columns are first ordered by degree, unless the
given order makes fewer words. Then, in every iteration, the column with the most lone 1s changes
places with another: of the columns that share fewest rows with it, the one that gains most. The
gain is the number of blocks with a single 1 that disappear. Most columns share no row with it;
those looked at are in the BLOCKS blocks to which the column could move with the fewest new blocks
of a single 1.

Requires a byte of host memory for every row and block.

The order depends on the graph alone: reorder it once, and count for every p and q.
"""

from __future__ import annotations

import numpy as np

from algorithms.arrays import Array, inverse_of, starts_of
from algorithms.biclique.bipartite import Bipartite
from lpma.arrays import array_module, device_of, row_numbers, to_host
from lpma.cpu.jit import compiled

WIDTH = 32  # columns of a block
ITERATIONS = 2000
BLOCKS = 16  # whose columns are candidates for an exchange


def reordered(b: Bipartite, iterations: int = ITERATIONS) -> Bipartite:
    """The same graph with both layers in the order of Border, where its arrays lie."""
    with device_of(b.left_indptr):
        xp = array_module(b.left_indptr)
        of_left = (to_host(b.left_indptr), to_host(b.left_indices))
        of_right = (to_host(b.right_indptr), to_host(b.right_indices))
        right = xp.asarray(order(*of_left, *of_right, iterations))
        left = xp.asarray(order(*of_right, *of_left, iterations))
        left_rows = _rows(b.left_indptr, b.left_indices, left, right)
        right_rows = _rows(b.right_indptr, b.right_indices, right, left)
        return Bipartite(*left_rows, *right_rows, b.left_ids[left], b.right_ids[right])


def _rows(indptr: Array, indices: Array, order: Array, of_entries: Array) -> tuple[Array, Array]:
    """The rows in one order, with their entries renumbered by another."""
    rank, name = inverse_of(order, np.uint64), inverse_of(of_entries, np.uint64)
    row = row_numbers(indptr, len(indices))
    keys = (rank[row] << np.uint64(32)) | name[indices]
    keys.sort()
    starts = starts_of((indptr[1:] - indptr[:-1])[order])
    return starts, (keys & np.uint64(2**32 - 1)).astype(np.uint32)


def order(
    indptr: Array, indices: Array, back_indptr: Array, back: Array, iterations: int = ITERATIONS
) -> Array:
    """int64[n']: the columns, which are the values of `indices`, in Border's order. All arrays are
    on the host."""
    at = np.argsort(-np.diff(back_indptr), kind="stable")
    place = inverse_of(at, np.int64)
    as_given = np.arange(len(at))
    if _words(indptr, indices, as_given) < _words(indptr, indices, place):
        at, place = as_given, as_given.copy()
    _improve(indptr, indices, back_indptr, back, at, place, iterations)
    return at


def _words(indptr: Array, indices: Array, place: Array) -> int:
    """The number of blocks with a 1."""
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    keys = np.sort(row * np.int64(len(place) // WIDTH + 1) + place[indices] // WIDTH)
    return int(np.count_nonzero(keys[1:] != keys[:-1])) + (len(keys) > 0)


@compiled
def _improve(
    indptr: Array,
    indices: Array,
    back_indptr: Array,
    back: Array,
    at: Array,
    place: Array,
    iterations: int,
) -> None:
    """Exchange columns until none gains. at[i] is the column in place i; `place` is the inverse."""
    n, rows = len(at), len(indptr) - 1
    counts = np.zeros((rows, (n + WIDTH - 1) // WIDTH), np.uint8)  # 1s of each row in each block
    for row in range(rows):
        for v in indices[indptr[row] : indptr[row + 1]]:
            counts[row, place[v] // WIDTH] += 1
    lone = np.zeros(n, np.int64)  # of each column, in how many rows it is alone in its block
    for row in range(rows):
        for v in indices[indptr[row] : indptr[row + 1]]:
            lone[v] += counts[row, place[v] // WIDTH] == 1
    settled = np.zeros(n, np.bool_)  # columns that no exchange helped
    shared, of_worst = np.zeros(n, np.int64), np.zeros(rows, np.bool_)
    for _ in range(iterations):
        worst = -1
        for v in range(n):
            if not settled[v] and lone[v] and (worst < 0 or lone[v] > lone[worst]):
                worst = v
        if worst < 0:
            return
        own = back[back_indptr[worst] : back_indptr[worst + 1]]
        _mark(own, indptr, indices, shared, of_worst, 1)
        change = _changes(worst, own, indptr, indices, counts, place)
        best = _best(worst, change, back_indptr, back, counts, at, place, shared, of_worst)
        if best < 0:
            settled[worst] = True
        else:
            theirs = back[back_indptr[best] : back_indptr[best + 1]]
            _note(own, theirs, worst, best, indptr, indices, counts, place, of_worst, lone, -1)
            for row in own:
                counts[row, place[worst] // WIDTH] -= 1
                counts[row, place[best] // WIDTH] += 1
            for row in theirs:
                counts[row, place[best] // WIDTH] -= 1
                counts[row, place[worst] // WIDTH] += 1
            i, j = place[worst], place[best]
            at[i], at[j], place[worst], place[best] = best, worst, j, i
            _note(own, theirs, worst, best, indptr, indices, counts, place, of_worst, lone, 1)
        _mark(own, indptr, indices, shared, of_worst, 0)


@compiled
def _mark(
    own: Array, indptr: Array, indices: Array, shared: Array, of_worst: Array, up: int
) -> None:
    """Mark these rows, and count in shared[v] how many of them have column v; or, unless `up`, zero
    both again."""
    for row in own:
        of_worst[row] = up == 1
        for v in indices[indptr[row] : indptr[row + np.uint32(1)]]:
            shared[v] = (shared[v] + 1) * up


@compiled
def _moved(row_counts: Array, source: int, target: int) -> int:
    """How many more blocks with a single 1 a row has when one of its 1s changes blocks."""
    change = (row_counts[target] == 0) - np.int64(row_counts[target] == 1)
    return change + (row_counts[source] == 2) - (row_counts[source] == 1)


@compiled
def _changes(
    v: int, own: Array, indptr: Array, indices: Array, counts: Array, place: Array
) -> Array:
    """int64[blocks]: how many more blocks with a single 1 there are when column v moves to each
    block; for its own block a number too large to be chosen. Blocks without a 1 of the row are not
    visited."""
    source = place[v] // WIDTH
    change = np.zeros(counts.shape[1], np.float64)
    left = np.int64(len(own))  # the change if v moves to blocks where its rows have no 1
    for row in own:
        left += np.int64(counts[row, source] == 2) - np.int64(counts[row, source] == 1)
        for w in indices[indptr[row] : indptr[row + np.uint32(1)]]:
            block = place[w] // WIDTH
            ones = counts[row, block]
            change[block] -= 2.0 if ones == 1 else 1.0 / ones  # 1 for all 1s of a block together
    change += left
    change[source] = counts.shape[0]
    return np.rint(change).astype(np.int64)


@compiled
def _best(
    worst: int,
    change: Array,
    back_indptr: Array,
    back: Array,
    counts: Array,
    at: Array,
    place: Array,
    shared: Array,
    of_worst: Array,
) -> int:
    """The column to exchange `worst` with; -1 if none gains."""
    source = place[worst] // WIDTH
    best, best_gain, fewest = -1, 0, np.int64(len(of_worst))
    blocks = np.argsort(change)[:BLOCKS]
    for block in blocks:
        if block == source:
            continue
        for v in at[block * WIDTH : (block + 1) * WIDTH]:
            fewest = min(fewest, shared[v])
    for block in blocks:
        if block == source:
            continue
        for v in at[block * WIDTH : (block + 1) * WIDTH]:
            if shared[v] > fewest:
                continue
            gain = -change[block]
            for row in back[back_indptr[v] : back_indptr[v + 1]]:
                if of_worst[row]:  # the row keeps a 1 in both blocks
                    gain += _moved(counts[row], source, block)
                else:
                    gain -= _moved(counts[row], block, source)
            if gain > best_gain:
                best, best_gain = v, gain
    return best


@compiled
def _note(
    own: Array,
    theirs: Array,
    worst: int,
    best: int,
    indptr: Array,
    indices: Array,
    counts: Array,
    place: Array,
    of_worst: Array,
    lone: Array,
    sign: int,
) -> None:
    """Add to `lone`, times `sign`, what the exchange may change: the lone 1s in the two blocks of
    every row that has either column."""
    a, b = place[worst] // WIDTH, place[best] // WIDTH
    for which in range(2):
        for row in own if which == 0 else theirs:
            if which and of_worst[row]:
                continue
            for v in indices[indptr[row] : indptr[row + np.uint32(1)]]:
                block = place[v] // WIDTH
                if block in (a, b) and counts[row, block] == 1:
                    lone[v] += sign
