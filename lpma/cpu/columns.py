"""Loops over whole columns that the host's logic needs: NumPy's or, once `use_kernels` is called,
compiled kernels.

That is when the first store is made that kernels keep: until then nothing here imports Numba. A
store on a device calls `use_id_kernels` alone.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from ..arrays import Array, array_module, distinct
from ..pma.changes import Change
from ..pma.keys import HALF, LOW, RISE, SOUND, Slots, ends_of, keys_of, reversed_keys
from .splitmix import mix
from .threads import cuts, run_all

SURVEYED = 1 << 18  # slots that a thread looks at per turn


def use_kernels() -> None:
    """Use the compiled kernels from now on."""
    from . import change_kernels, column_kernels

    use_id_kernels()
    for name in ("mark_rows", "mark_ends", "distinct_ends", "rows_by", "survey_piece"):
        globals()[name] = getattr(column_kernels, name)
    for name in ("rising_keys", "net_rows", "hash_sum", "hash_moved"):
        globals()[name] = getattr(change_kernels, name)


def use_id_kernels() -> None:
    """Use those that look at vertex ids, which stores on a device need, too."""
    from . import id_kernels

    globals().update(largest=id_kernels.largest, ids=id_kernels.ids)


def largest(src: Array, dst: Array) -> int:
    """The largest number in two contiguous columns of uint32 of one length; 0 if they are empty."""
    return max(int(src.max(initial=0)), int(dst.max(initial=0)))


def ids(array: Array) -> Array | None:
    """See id_kernels.ids. A slower way has to look."""
    return None


def mark_rows(ids: Array, present: Array) -> None:
    """Set present[ids[i]] for all i. ids: uint32."""
    present[ids] = True


def put_ends(keys: Array, present: Array) -> None:
    """Set `present` for both ends of each key, but for the target of a marker. On either device."""
    targets = keys & LOW
    present[(keys >> HALF).astype(np.int64)] = True
    present[targets[targets != LOW].astype(np.int64)] = True


mark_ends = put_ends


def sorted_ends(keys: Array) -> Array:
    """uint32, ascending: the ends of rising keys, but for the targets of markers. On either
    device; on a device, REQUIRES that it is the current one."""
    ends = array_module(keys).concatenate([keys >> HALF, keys & LOW])
    ids: Array = distinct(ends[ends != LOW]).astype(np.uint32)
    return ids


distinct_ends = sorted_ends


def searched_rows(keys: Array, ids: Array) -> tuple[Array, Array]:
    """(indptr int64[n+1], indices uint32): the rows that rising keys make, of vertices numbered by
    their places in rising `ids`, uint32[n], which are all ends. No markers. On either device."""
    xp = array_module(keys)
    indptr = xp.searchsorted(keys, ids.astype(np.uint64) << HALF)
    indices = xp.searchsorted(ids, (keys & LOW).astype(np.uint32))
    return xp.append(indptr, len(keys)).astype(np.int64), indices.astype(np.uint32)


rows_by = searched_rows


def rising_keys(src: Array, dst: Array, directed: bool) -> Array:
    """uint64[m]: the keys of these edges and markers in ascending order, each once; of an
    undirected edge the lesser of its two."""
    keys = keys_of(src, dst)
    if not directed:
        keys = np.minimum(keys, reversed_keys(keys))  # a marker turned round is a greater key
    keys.sort()
    once = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=once[1:])
    return keys[once]


States = tuple[Array, Array | None, Array | None]  # of keys: found bool[n], weights, times
NetRows = tuple[Array, Array, Array, Array | None, Array | None]  # the columns of NetChanges


def net_rows(keys: Array, before: States, after: States) -> NetRows:
    """What has changed of rising keys. REQUIRES: both are of one graph, on the host."""
    (was, *old), (now, *new) = before, after
    other = np.zeros(len(keys), np.bool_)
    for values_before, values in zip(old, new, strict=True):
        if values is not None:
            other |= values_before != values
    (src, dst), is_marker = ends_of(keys), (keys & LOW) == LOW
    gone = is_marker & was & ~now
    # A copy that removes a vertex loses its edges, also those that are as before.
    other |= np.isin(src, src[gone]) | np.isin(dst, src[gone])
    differs = (was != now) | (was & other & ~is_marker)
    change = np.where(now, np.uint8(Change.INSERTED), np.uint8(Change.REMOVED))
    change[was & now] = Change.CHANGED
    change[is_marker & now] = Change.VERTEX_ADDED
    change[gone] = Change.VERTEX_REMOVED
    dst = np.where(is_marker, src, dst)
    rows = np.concatenate([np.flatnonzero(gone), np.flatnonzero(differs & ~gone)])
    weights, times = (None if c is None else np.where(is_marker, 0, c)[rows] for c in new)
    return change[rows], src[rows], dst[rows], weights, times


def hash_moved(change: Array, src: Array, dst: Array) -> int:
    """What these net changes add to the `hash_sum` of all keys of a graph, modulo 2^64."""
    of_vertex = (change == Change.VERTEX_ADDED) | (change == Change.VERTEX_REMOVED)
    keys = keys_of(src, np.where(of_vertex, LOW, dst.astype(np.uint64)))
    came = (change == Change.INSERTED) | (change == Change.VERTEX_ADDED)
    went = (change == Change.REMOVED) | (change == Change.VERTEX_REMOVED)
    return (hash_sum(keys[came]) - hash_sum(keys[went])) % (1 << 64)


def hash_sum(keys: Array) -> int:
    """The sum of a hash of each key, modulo 2^64; the same on every machine."""
    return int(mix(keys, np.uint64(0)).sum(dtype=np.uint64))


class Survey:
    """What columns of slots are, found piece by piece. weights: float32[n], float64[n] or None;
    times: int64[n] or None.

    In an undirected graph each edge up has its edge down, alike in all columns, if the hashes of
    the ones and of the others turned round have equal sums, two of 64 bits: they are of different
    keys, from secret seeds. So no edge is looked for."""

    def __init__(self, directed: bool) -> None:
        self._directed = directed
        self._seeds = [np.uint64(secrets.randbits(64)) for _ in range(2)]

    def of(self, keys: Array, weights: Array | None = None, times: Array | None = None) -> Any:
        """What `joined` takes, of a piece; on any thread."""
        if not len(keys):
            return None
        keys = np.ascontiguousarray(keys)
        weights, times = (None if c is None else np.ascontiguousarray(c) for c in (weights, times))
        found = survey_piece(keys, weights, times, self._directed, *self._seeds)
        return keys[0], keys[-1], *found

    def joined(self, parts: list[Any]) -> Slots:
        """What all slots are, of all pieces in their order."""
        parts = [part for part in parts if part is not None]
        if not parts:
            return Slots(True, True, True, 0, 0, -1)
        begins, ends, good, markers, loops, most, *sums = zip(*parts, strict=True)
        rise = all(end < begin for end, begin in zip(ends, begins[1:], strict=False))
        good_all = int(np.bitwise_and.reduce(good))
        first, second = (sum(map(int, column)) % (1 << 64) for column in sums)
        return Slots(
            rise and bool(good_all & RISE), bool(good_all & SOUND),
            self._directed or first == second == 0, sum(markers), sum(loops), max(most),
        )  # fmt: skip


def survey(keys: Array, weights: Array | None, times: Array | None, directed: bool) -> Slots:
    """What whole columns are."""
    whole, pieces = Survey(directed), cuts(len(keys), SURVEYED, 4)
    cut = ([None if c is None else c[lo:hi] for c in (keys, weights, times)] for lo, hi in pieces)
    return whole.joined(run_all(whole.of, list(map(tuple, cut))))


def _survey_piece(
    keys: Array, weights: Array | None, times: Array | None, directed: bool, *seeds: np.uint64
) -> tuple[int, ...]:
    """(RISE and SOUND where they hold, markers, loops, the largest vertex, and two sums)."""
    low, high = keys & LOW, keys >> HALF
    is_marker, is_loop = low == LOW, low == high
    good = 0 if (keys[1:] <= keys[:-1]).any() else RISE
    is_sound = not (high == LOW).any()
    if weights is not None:  # written so that NaN fails the comparison too
        is_sound = is_sound and bool(((weights >= 0) & (weights < np.inf)).all())
        is_sound = is_sound and not weights[is_marker].any()
    largest = int(max(high.max(), low[~is_marker].max(initial=0)))
    sums = [0, 0]
    if not directed:
        edges = ~is_marker & ~is_loop
        low, high = low[edges], high[edges]
        for i, seed in enumerate(seeds):
            hashed = mix(np.minimum(low, high) << HALF | np.maximum(low, high), seed)
            for column in (weights, times):
                held = 0 if column is None else column[edges].view(f"u{column.itemsize}")
                hashed = mix(held, hashed)
            sums[i] = int(hashed[high < low].sum()) - int(hashed[high > low].sum())
    good |= SOUND if is_sound else 0
    return good, int(np.count_nonzero(is_marker)), int(np.count_nonzero(is_loop)), largest, *sums


survey_piece = _survey_piece
