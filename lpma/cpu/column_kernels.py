"""The kernels of columns.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..keys import HALF, LOW
from .jit import compiled
from .threads import cuts, run_all

Array = npt.NDArray[Any]

PIECE = 1 << 18  # entries that a thread marks per turn


@compiled
def largest(src: Array, dst: Array) -> int:
    """See columns.py. One call of a kernel takes less than two of NumPy's."""
    most = np.uint32(0)
    for v in src:
        most = max(most, v)
    for v in dst:
        most = max(most, v)
    return int(most)


def mark_rows(ids: Array, present: Array) -> None:
    """Threads only write True, and so need no order."""
    run_all(_mark_rows, [(*cut, ids, present) for cut in cuts(len(ids), PIECE, 4)])


def mark_ends(keys: Array, present: Array) -> None:
    run_all(_mark_ends, [(*cut, keys, present) for cut in cuts(len(keys), PIECE, 4)])


@compiled
def _mark_rows(first: int, last: int, ids: Array, present: Array) -> None:
    for i in range(first, last):
        present[ids[i]] = True


@compiled
def _mark_ends(first: int, last: int, keys: Array, present: Array) -> None:
    for i in range(first, last):
        present[keys[i] >> HALF] = True
        target = keys[i] & LOW
        if target != LOW:
            present[target] = True
