"""The subgraph of a root, as bits: made from wedges, and packed when little of it is left.

It is two matrices of bits: a row per left vertex, over the right vertices, and a column per right
vertex, over the left ones.

A set of vertices is sets[top, which], of uint64[depth, kinds, words]; a slice of its own would be
counted in and out of every call. words: any sequence as long as the set. Of a tuple the compiler
knows the length, so that loops over a single word cost nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lpma.cpu.instructions import lowest, ones
from lpma.cpu.jit import compiled

from ...arrays import Array
from ..gbc.two_hop_cpu import Rows, clear, meet

WORD = 64  # bits
ONE = np.uint64(1)


@compiled
def words_for(count: int) -> int:
    """How many words hold so many bits."""
    return (count + WORD - 1) // WORD


@compiled
def size(sets: Array, top: int, which: int, words: Any) -> int:
    """How many bits are set."""
    total = 0
    for i in range(len(words)):
        total += ones(sets[top, which, i])
    return total


@compiled
def common(matrix: Array, v: int, sets: Array, top: int, which: int, words: Any) -> int:
    """How many bits of row v are set in the set, too."""
    total = 0
    for i in range(len(words)):
        total += ones(matrix[v, i] & sets[top, which, i])
    return total


@compiled
def clear_bit(sets: Array, top: int, which: int, i: int) -> None:
    sets[top, which, i >> 6] &= ~(ONE << np.uint64(i & 63))


@compiled
def fill(bits: Array, count: int) -> None:
    """Set the first `count` bits, and clear all others."""
    for i in range(len(bits)):
        left = min(max(count - WORD * i, 0), WORD)
        bits[i] = ~np.uint64(0) >> np.uint64(WORD - left) if left else np.uint64(0)


@compiled
def take_lowest(sets: Array, top: int, which: int, words: Any) -> int:
    """Clear the lowest bit that is set, and return its number; -1 if none is set."""
    for i in range(len(words)):
        bits = sets[top, which, i]
        if bits:
            sets[top, which, i] = bits & (bits - ONE)
            return WORD * i + lowest(bits)
    return -1


@compiled
def fill_matrices(u: int, graph: Rows, least: Any, met: Array, found: Array) -> tuple[Array, Array]:
    """The rows and columns of root u, whose vertices are those before u that share at least
    least[1] neighbours with it, by rising number, and these neighbours; empty ones if the vertices
    and u are fewer than least[0]. met, found: int32[n], zero before and after, and uint32[n]."""
    indptr, indices, back_indptr, back = graph
    neighbors = indices[indptr[u] : indptr[u + 1]]
    a, steps = meet(u, least[1], graph, met, found, True)
    if a + 1 < least[0]:
        a, neighbors = 0, neighbors[:0]
    for i in range(a):
        met[found[i]] = -1 - i
    rows = np.zeros((a, words_for(len(neighbors))), np.uint64)
    columns = np.zeros((len(neighbors), words_for(a)), np.uint64)
    for j in range(len(neighbors)):
        b = neighbors[j]
        for w in back[back_indptr[b] : back_indptr[b + np.uint32(1)]]:
            if w >= u:
                break
            if met[w] < 0:
                place = -1 - np.int64(met[w])
                rows[place, j >> 6] |= ONE << np.uint64(j & 63)
                columns[j, place >> 6] |= ONE << np.uint64(place & 63)
    clear(u, steps, graph, met)
    return rows, columns


@compiled
def pack(rows: Array, left: Array, right: Array, new_rows: Array, new_columns: Array) -> None:
    """The subgraph of two sets of at most 64 vertices each, a word per vertex: uint64[64, 1]
    each."""
    new_columns[:] = 0
    i = 0
    for word in range(len(left)):
        bits = left[word]
        while bits:
            kept = _gathered(rows[64 * word + lowest(bits)], right)
            new_rows[i, 0] = kept
            while kept:
                new_columns[lowest(kept), 0] |= ONE << np.uint64(i)
                kept &= kept - ONE
            i += 1
            bits &= bits - ONE


@compiled
def _gathered(row: Array, places: Array) -> np.uint64:
    """The row's bits at the places that are set in `places`, packed side by side."""
    gathered, count = np.uint64(0), 0
    for word in range(len(places)):
        bits = places[word]
        found = row[word] & bits
        while found:
            below = (found & (~found + ONE)) - ONE
            gathered |= ONE << np.uint64(count + ones(bits & below))
            found &= found - ONE
        count += ones(bits)
    return gathered
