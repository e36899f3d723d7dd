"""The kernels of columns.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..keys import HALF, LOW
from .addresses import data
from .instructions import load_u32
from .jit import compiled
from .threads import cuts, run_all

Array = npt.NDArray[Any]

PIECE = 1 << 18  # entries that a thread marks per turn


def largest(src: Array, dst: Array) -> int:
    """One call of a kernel takes less than two of NumPy's."""
    return int(_largest(id(src), id(dst), len(src)))


@compiled
def _largest(src: int, dst: int, n: int) -> int:
    """Of two columns of n rows, by id()."""
    src, dst, most = data(src), data(dst), np.uint32(0)
    for i in range(n):
        most = max(most, load_u32(src + i * 4), load_u32(dst + i * 4))
    return int(most)


def mark_rows(ids: Array, present: Array) -> None:
    """Threads only write True, and so need no order."""
    ids = np.ascontiguousarray(ids, np.uint32)
    run_all(_mark_rows, [(*cut, id(ids), present) for cut in cuts(len(ids), PIECE, 4)])


def mark_ends(keys: Array, present: Array) -> None:
    run_all(_mark_ends, [(*cut, keys, present) for cut in cuts(len(keys), PIECE, 4)])


@compiled
def _mark_rows(first: int, last: int, ids: int, present: Array) -> None:
    """ids: uint32, by id(). It looks before it writes: threads that write the same line, as that of
    a hub, take it from each other."""
    ids = data(ids)
    for i in range(first, last):
        row = load_u32(ids + i * 4)
        if not present[row]:
            present[row] = True


@compiled
def _mark_ends(first: int, last: int, keys: Array, present: Array) -> None:
    for i in range(first, last):
        source, target = keys[i] >> HALF, keys[i] & LOW
        if not present[source]:
            present[source] = True
        if target != LOW and not present[target]:
            present[target] = True
