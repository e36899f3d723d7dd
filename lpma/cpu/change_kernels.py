"""What a batch changed, compiled: the kernels of columns.py for the edge feed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array
from ..pma.changes import Change
from ..pma.keys import HALF, LOW
from .instructions import (
    data,
    data_if_any,
    load_f32,
    load_f64,
    load_i64,
    load_u8,
    load_u32,
    load_u64,
    store_i64,
    store_u32,
    store_u64,
)
from .jit import compiled, inlined
from .kernel_hash import mixed
from .search import first_not_below
from .sort import sort_pairs

INSERTED, REMOVED, VERTEX_ADDED, VERTEX_REMOVED, CHANGED = map(int, Change)


def rising_keys(src: Array, dst: Array, directed: bool) -> Array:
    """By radix sort, which wants a place for each."""
    n = len(src)
    src, dst = (np.ascontiguousarray(ids, np.uint32) for ids in (src, dst))
    keys, places = np.empty((2, n), np.uint64), np.empty((2, n), np.uint32)
    _join_ends(id(src), id(dst), directed, keys[0])
    keys, _ = sort_pairs(keys[0], places[0], keys[1], places[1])
    return keys[: _squeeze(keys)]


def net_rows(
    keys: Array, before: tuple[Any, ...], after: tuple[Any, ...]
) -> tuple[Array, Array, Array, Array | None, Array | None]:
    """In one call: at each of NumPy's another thread may take the interpreter."""
    (was, *old), (now, *new) = before, after
    n, width = len(keys), 0 if new[0] is None else new[0].itemsize
    change, src, dst = np.empty(n, np.uint8), np.empty(n, np.uint32), np.empty(n, np.uint32)
    values = [None if c is None else np.empty_like(c) for c in new]
    given = (column for triple in zip(old, new, values, strict=True) for column in triple)
    addresses = (0 if column is None else id(column) for column in given)
    m = _net_rows(keys, was, now, width, *addresses, change, src, dst)
    weights, times = (None if c is None else c[:m] for c in values)
    return change[:m], src[:m], dst[:m], weights, times


def hash_moved(change: Array, src: Array, dst: Array) -> int:
    change = np.ascontiguousarray(change, np.uint8)
    src, dst = (np.ascontiguousarray(ids, np.uint32) for ids in (src, dst))
    return int(_hash_moved(id(change), id(src), id(dst), len(change)))


def hash_sum(keys: Array) -> int:
    return int(_hash_sum(np.ascontiguousarray(keys)))


@compiled
def _join_ends(src: int, dst: int, directed: bool, keys: Array) -> None:
    """Write the key of each edge or marker; of an undirected edge that of its lesser end. src, dst:
    uint32, by id()."""
    src, dst = data(src), data(dst)
    for i in range(len(keys)):
        u, v = np.uint64(load_u32(src + i * 4)), np.uint64(load_u32(dst + i * 4))
        keys[i] = u << HALF | v if directed else min(u, v) << HALF | max(u, v)


@compiled
def _squeeze(keys: Array) -> int:
    """Leave out repeats among ascending keys. Returns how many are left, at the front."""
    n = 0
    for i in range(len(keys)):
        if i == 0 or keys[i] != keys[n - 1]:
            keys[n] = keys[i]
            n += 1
    return n


@compiled
def _net_rows(
    keys: Array, was: Array, now: Array, width: int, was_weights: int, now_weights: int,
    weights: int, was_times: int, now_times: int, times: int, change: Array, src: Array, dst: Array,
) -> int:  # fmt: skip
    """See columns.net_rows. width: of a weight, in bytes; 0 if there is none. Weights and times by
    id(), 0 for None. Returns the number of rows."""
    was_weights, now_weights = data_if_any(was_weights), data_if_any(now_weights)
    was_times, now_times = data_if_any(was_times), data_if_any(now_times)
    weights, times = data_if_any(weights), data_if_any(times)
    n = 0
    for i in range(len(keys)):
        if was[i] and not now[i] and keys[i] & LOW == LOW:
            change[n], src[n] = VERTEX_REMOVED, np.uint32(keys[i] >> HALF)
            n += 1
    gone = n  # the first of `src` are the vertices whose markers are gone, rising
    for i in range(len(keys)):
        u, v = keys[i] >> HALF, keys[i] & LOW
        how = INSERTED if now[i] else REMOVED
        if v == LOW:
            if was[i] or not now[i]:
                continue
            how = VERTEX_ADDED
        elif was[i] == now[i]:
            if not now[i]:
                continue
            how = CHANGED
            if not (
                (width == 4 and load_f32(was_weights + 4 * i) != load_f32(now_weights + 4 * i))
                or (width == 8 and load_f64(was_weights + 8 * i) != load_f64(now_weights + 8 * i))
                or (times and load_i64(was_times + 8 * i) != load_i64(now_times + 8 * i))
                or (gone and (_is_among(src, gone, u) or _is_among(src, gone, v)))
            ):
                continue
        change[n], src[n], dst[n] = how, np.uint32(u), np.uint32(v)
        if width == 4:
            store_u32(weights + 4 * n, load_u32(now_weights + 4 * i))
        elif width == 8:
            store_u64(weights + 8 * n, load_u64(now_weights + 8 * i))
        if times:
            store_i64(times + 8 * n, load_i64(now_times + 8 * i))
        n += 1
    _blank_vertices(change, src, dst, width, weights, times, n)
    return n


@inlined
def _is_among(rising: Array, n: int, id: np.uint64) -> bool:
    at = first_not_below(rising, 0, n, id)
    return at < n and rising[at] == id


@inlined
def _blank_vertices(
    change: Array, src: Array, dst: Array, width: int, weights: int, times: int, n: int
) -> None:
    """Rows about vertices end at the vertex and have no values."""
    for i in range(n):
        if change[i] in (VERTEX_ADDED, VERTEX_REMOVED):
            dst[i] = src[i]
            if width == 4:
                store_u32(weights + 4 * i, np.uint32(0))
            elif width == 8:
                store_u64(weights + 8 * i, np.uint64(0))
            if times:
                store_i64(times + 8 * i, 0)


@compiled
def _hash_moved(change: int, src: int, dst: int, n: int) -> np.uint64:
    """See columns.hash_moved. Columns of NetChanges, by id()."""
    change, src, dst = data(change), data(src), data(dst)
    total = np.uint64(0)
    for i in range(n):
        how, v = load_u8(change + i), np.uint64(load_u32(dst + 4 * i))
        if how == CHANGED:
            continue
        if how in (VERTEX_ADDED, VERTEX_REMOVED):
            v = LOW
        one = mixed(np.uint64(load_u32(src + 4 * i)) << HALF | v, np.uint64(0))
        total += one if how in (INSERTED, VERTEX_ADDED) else np.uint64(0) - one
    return total


@compiled
def _hash_sum(keys: Array) -> np.uint64:
    total = np.uint64(0)
    for key in keys:
        total += mixed(key, np.uint64(0))
    return total
