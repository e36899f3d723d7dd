"""Hops on the CPU: a breadth-first search for each query, on bits.

Idea: a bit for each id says whether the query has reached it. So an edge costs one test of a bit,
which is mostly cached, and no key is sorted. The vertices of a round are sorted before the next one
(by bits too, unless they are few), so that rows are read in the order in which they are stored. A
query clears the bits that it set.

Ids may lie far apart: those beyond the bits are *far*, and kept in a hash table, as id + 1, since 0
is an empty slot. When the table is half full, the query starts over with more bits and more slots.
(The slot of an id is found as in cpu/id_table.py.)

A kernel answers one query after the other. It returns to Python for more bits, and when its results
leave no room for another query.
"""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

import numpy as np
from numba import carray

from ...arrays import Array
from ...cpu.instructions import at_u32, load_u32, load_u64, store_u32, store_u64, trailing_zeros
from ...cpu.jit import ZERO, compiled, inlined
from ...cpu.threads import cuts, run_all
from ...pma.keys import HALF, LOW
from .addressing import MARKER, View, count_of, first_from, leaf_before, lower_bound, segment_at
from .beside import BesideView, beside_key, first_row, is_there, next_change, past

FIRST_BITS, FIRST_FAR = 1 << 18, 1 << 12  # and slots of far ids
MOST_BITS = 1 << 26  # 8 MiB for a thread, twice
SPARSE = 8  # words of bits to a vertex, above which vertices are sorted

DONE, FULL, BEYOND = range(3)  # why a kernel returns


class Reached(NamedTuple):
    """What a query has reached, by addresses. All zeros between two queries."""

    bits: int  # uint64[words]
    order: int  # as many, for `_sort`
    words: int
    far: int  # uint32[2^(64 - shift)]
    shift: int
    factor: np.uint64


def reach(
    view: View, beside: BesideView, limits: Array, vertices: Array, steps: Array
) -> tuple[Array, Array]:
    """(indptr int64[q+1], ids uint32) of q queries. limits: int64[q] in a mixed batch, empty
    outside."""

    queries = view, beside, vertices, steps, limits
    parts = run_all(_answered, [(*queries, *cut) for cut in cuts(len(vertices), 1, 4)])
    counts, ids = zip(*parts, strict=True)
    indptr = np.zeros(len(vertices) + 1, np.int64)
    np.cumsum(np.concatenate(counts), out=indptr[1:])
    return indptr, np.concatenate([piece for pieces in ids for piece in pieces])


def _answered(
    view: View, beside: BesideView, vertices: Array, steps: Array, limits: Array, lo: int, hi: int
) -> tuple[Array, list[Array]]:
    """How many ids each of queries lo … hi - 1 has, and the ids."""
    counts, ids = np.zeros(hi - lo, np.int64), [np.empty(0, np.uint32)]
    size, slots, at, ended = FIRST_BITS, FIRST_FAR, lo, BEYOND
    factor = np.uint64(secrets.randbits(64) | 1)
    while at < hi:
        if ended == BEYOND:
            bits, far = np.zeros((2, size // 64), np.uint64), np.zeros(slots, np.uint32)
            out = np.empty(2 * (size + slots), np.uint32)
            size, slots = min(4 * size, MOST_BITS), 4 * slots
        at, used, ended = search(
            view, beside, vertices, steps, limits, at, hi, counts[at - lo :], bits, far, factor, out
        )
        ids.append(out[:used].copy())
    return counts, ids


@compiled
def search(
    v: View, b: BesideView, vertices: Array, steps: Array, limits: Array, lo: int, hi: int,
    counts: Array, bits: Array, far: Array, factor: np.uint64, out: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Answer queries from `lo` on: ids to `out`, and how many to `counts`. bits: uint64[2, words];
    far: uint32, a power of two of them; both are zeros, and again when this returns. Returns the
    first query that is not answered, how many ids there are, and why it ended."""
    used, words, to = 0, bits.shape[1], out.ctypes.data
    shift = 64 - trailing_zeros(np.int64(len(far)))
    at = bits.ctypes.data
    r = Reached(at, at + 8 * words, words, far.ctypes.data, shift, factor)
    for i in range(lo, hi):
        if len(out) - used < 64 * words + len(far):
            return i, used, FULL
        limit = limits[i] if len(limits) else np.int64(0)
        vertex, start = np.uint64(vertices[i]), used
        end, num_far, _ = _expand(v, b, 1, vertex, limit, r, to, used, 0)
        for _ in range(1, steps[i]):
            if start >= end:
                break
            _sort(r, to, start, end)
            k, start, leaf = start, end, np.int64(1)
            while k < start and end >= 0:
                vertex = np.uint64(load_u32(to + 4 * k))
                end, num_far, leaf = _expand(v, b, leaf, vertex, limit, r, to, end, num_far)
                k += 1
        is_beyond = end < 0
        end = ~end if is_beyond else end
        for k in range(used, end):
            _clear(r, np.uint64(load_u32(to + 4 * k)))
        if is_beyond:
            return i, used, BEYOND
        _sort(r, to, used, end)
        counts[i - lo] = end - used
        used = end
    return hi, used, DONE


@compiled
def _expand(
    v: View, b: BesideView, leaf: int, vertex: np.uint64, limit: int, r: Reached, to: int,
    end: int, num_far: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Append the neighbours of a vertex that are not reached yet, and note that they are. leaf:
    that of a vertex no larger, or 1. Returns where they end, or ~end if there is no room for
    another one that is far; how many are far; and the leaf."""
    first = vertex << HALF
    last = first | MARKER
    leaf = leaf_before(v, leaf, first)
    rank, position = first_from(v, leaf, first)
    row = first_row(b, ZERO, first, ZERO)
    if row == b.n or beside_key(b, row) >= last:
        _, _, end, num_far = _visit_below(v, rank, position, last, r, to, end, num_far)
    else:
        end, num_far = _expand_beside(v, b, row, rank, position, last, limit, r, to, end, num_far)
    return end, num_far, leaf


@compiled
def _expand_beside(
    v: View, b: BesideView, row: int, rank: int, position: int, last: np.uint64, limit: int,
    r: Reached, to: int, end: int, num_far: int,
) -> tuple[int, int]:  # fmt: skip
    """As `_expand`, of a vertex that has rows beside the store, from `row` on; its slots begin at
    (rank, position), and both have keys below `last`."""
    seen = ZERO
    while seen >= 0 and end >= 0:
        seen, key, row = next_change(b, row, last, limit)
        rank, position, end, num_far = _visit_below(v, rank, position, key, r, to, end, num_far)
        if seen >= 0 and end >= 0:
            position = past(v, rank, position, key)
            if is_there(b, seen):
                end, num_far = _visit(key & LOW, r, to, end, num_far)
    return end, num_far


@inlined
def _visit_below(
    v: View, rank: int, position: int, key: np.uint64, r: Reached, to: int, end: int, num_far: int
) -> tuple[int, int, int, int]:
    """Visit the ids of the slots from (rank, position) on whose keys are below `key`. Returns where
    the next slot is, and as `_expand` does."""
    leaves = 1 << v.m
    while rank < leaves and end >= 0:
        keys, count = segment_at(v, rank)[0], count_of(v, leaves + rank)
        here = lower_bound(v, keys, count, key)
        for k in range(position, here):
            end, num_far = _visit(load_u64(keys + k * 8) & LOW, r, to, end, num_far)
            if end < 0:
                break
        position = here
        if here < count:
            break
        rank, position = rank + 1, 0
    return rank, position, end, num_far


@inlined
def _visit(id: np.uint64, r: Reached, to: int, end: int, num_far: int) -> tuple[int, int]:
    """Append an id unless it is reached, and note that it is. As `_expand` returns."""
    word = np.int64(id >> np.uint64(6))
    if word < r.words:
        bits, bit = load_u64(r.bits + 8 * word), np.uint64(1) << (id & np.uint64(63))
        if bits & bit:
            return end, num_far
        store_u64(r.bits + 8 * word, bits | bit)
    else:
        at, held = _far_slot(r, id)
        if held:
            return end, num_far
        if num_far >= 1 << (63 - r.shift):
            return ~end, num_far
        store_u32(at, np.uint32(id + np.uint64(1)))
        num_far += 1
    store_u32(to + 4 * end, np.uint32(id))
    return end + 1, num_far


@inlined
def _far_slot(r: Reached, id: np.uint64) -> Any:
    """The address of a far id's slot, or of the empty one where it belongs, and what is there."""
    last = (np.int64(1) << (64 - r.shift)) - 1
    place: Any = np.int64((id * r.factor) >> np.uint64(r.shift))
    while True:
        held = np.uint64(load_u32(r.far + 4 * place))
        if held == 0 or held == id + np.uint64(1):
            return r.far + 4 * place, held
        place = (place + 1) & last


@inlined
def _clear(r: Reached, id: np.uint64) -> None:
    """Forget an id, and all ids that share its word of bits or its run of slots."""
    word = np.int64(id >> np.uint64(6))
    if word < r.words:
        store_u64(r.bits + 8 * word, np.uint64(0))
        return
    last = (np.int64(1) << (64 - r.shift)) - 1
    place: Any = np.int64((id * r.factor) >> np.uint64(r.shift))
    while load_u32(r.far + 4 * place):
        store_u32(r.far + 4 * place, np.uint32(0))
        place = (place + 1) & last


@compiled
def _sort(r: Reached, ids: int, lo: int, hi: int) -> None:
    """Put ids lo … hi - 1 in order."""
    if (hi - lo) * SPARSE < r.words:
        carray(at_u32(ids + 4 * lo), hi - lo).sort()
        return
    far = 0
    for k in range(lo, hi):
        id = load_u32(ids + 4 * k)
        word = np.int64(id >> 6)
        if word < r.words:
            at = r.order + 8 * word
            store_u64(at, load_u64(at) | np.uint64(1) << np.uint64(id & 63))
        else:
            store_u32(ids + 4 * (lo + far), id)
            far += 1
    for k in range(far):  # from the last on, since the places may overlap
        store_u32(ids + 4 * (hi - 1 - k), load_u32(ids + 4 * (lo + far - 1 - k)))
    carray(at_u32(ids + 4 * (hi - far)), far).sort()
    for place in range(r.words):
        bits = load_u64(r.order + 8 * place)
        if bits == 0:
            continue
        store_u64(r.order + 8 * place, np.uint64(0))
        while bits:
            store_u32(ids + 4 * lo, np.uint32(place * 64 + trailing_zeros(np.int64(bits))))
            lo += 1
            bits &= bits - np.uint64(1)
