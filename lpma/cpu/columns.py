"""Loops over whole columns that the host's logic needs: NumPy's or, once `use_kernels` is called,
compiled kernels.

That is when the first store is made that kernels keep: until then nothing here imports Numba. A
store on a device calls `use_id_kernels` alone.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, array_module, distinct
from ..pma.keys import HALF, LOW, Slots, reversed_keys


def use_kernels() -> None:
    """Use the compiled kernels from now on."""
    from . import column_kernels

    use_id_kernels()
    for name in ("mark_rows", "mark_ends", "distinct_ends", "rows_by", "survey"):
        globals()[name] = getattr(column_kernels, name)


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


def mark_ends(keys: Array, present: Array) -> None:
    """Set `present` for both ends of each key, but for the target of a marker."""
    targets = keys & LOW
    present[(keys >> HALF).astype(np.int64)] = True
    present[targets[targets != LOW].astype(np.int64)] = True


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


def _survey(keys: Array, weights: Array | None, times: Array | None, directed: bool) -> Slots:
    """What columns of slots are. keys: uint64[n]; weights: float32[n], float64[n] or None; times:
    int64[n] or None."""
    low, high = keys & LOW, keys >> HALF
    is_marker = low == LOW
    are_sound = not bool((high == LOW).any())
    if weights is not None:  # written so that NaN fails the comparison too
        are_sound = are_sound and bool((weights >= 0).all()) and bool(np.isfinite(weights).all())
        are_sound = are_sound and not weights[is_marker].any()
    are_symmetric = True
    if not directed:
        edges = np.flatnonzero(~is_marker)
        back = edges[np.argsort(reversed_keys(keys[edges]), kind="stable")]
        edges = edges[np.argsort(keys[edges], kind="stable")]
        are_symmetric = np.array_equal(reversed_keys(keys[back]), keys[edges])
        for column in (weights, times):
            if column is not None:  # by their bits
                bits = column.view(f"u{column.itemsize}")
                are_symmetric = are_symmetric and np.array_equal(bits[back], bits[edges])
    return Slots(
        not bool((keys[1:] <= keys[:-1]).any()),
        are_sound,
        are_symmetric,
        int(np.count_nonzero(is_marker)),
        int(np.count_nonzero(low == high)),
        max(int(low[~is_marker].max(initial=0)), int(high.max())) if len(keys) else -1,
    )


survey = _survey
