"""Edges as keys, `src << 32 | dst`: what workloads, models and peers all do with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def keys_of(src: Array, dst: Array) -> Array:
    return src.astype(np.uint64) << np.uint64(32) | dst.astype(np.uint64)


def ends_of(keys: Array) -> tuple[Array, Array]:
    return (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32)


def distinct(keys: Array) -> Array:
    """The keys sorted, without repeats. `np.unique` hashes, and is tens of times slower here."""
    keys = np.sort(keys)
    return keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys


def ragged_ranges(first: Array, end: Array) -> tuple[Array, Array]:
    """The places first[i] ... end[i] - 1 of every i, one row after the other, with its indptr."""
    length = end - first
    indptr = np.concatenate(([0], np.cumsum(length)))
    place = np.arange(indptr[-1]) + np.repeat(first - indptr[:-1], length)
    return indptr, place


def csr_keys(indptr: Array, indices: Array) -> Array:
    degree: Array = np.diff(indptr.astype(np.int64))
    rows = np.repeat(np.arange(len(indptr) - 1), degree)
    return keys_of(rows, indices)
