"""Loops over whole columns that the host's logic needs: NumPy's or, once `use_kernels` is called,
compiled kernels.

That is when the first store is made that kernels keep. Until then nothing here imports Numba, which
takes a third of a second, or compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..keys import HALF, LOW

Array = npt.NDArray[Any]


def use_kernels() -> None:
    """Use the compiled kernels from now on."""
    global largest, mark_rows, mark_ends
    from . import column_kernels

    largest = column_kernels.largest
    mark_rows, mark_ends = column_kernels.mark_rows, column_kernels.mark_ends


def _largest(src: Array, dst: Array) -> int:
    """The largest number in two contiguous columns of uint32 of one length; 0 if they are empty."""
    return max(int(src.max(initial=0)), int(dst.max(initial=0)))


def _mark_rows(ids: Array, present: Array) -> None:
    """Set present[ids[i]] for all i. ids: uint32."""
    present[ids] = True


def _mark_ends(keys: Array, present: Array) -> None:
    """Set `present` for both ends of each key, but for the target of a marker."""
    targets = keys & LOW
    present[(keys >> HALF).astype(np.int64)] = True
    present[targets[targets != LOW].astype(np.int64)] = True


largest: Callable[[Array, Array], int] = _largest
mark_rows: Callable[[Array, Array], None] = _mark_rows
mark_ends: Callable[[Array, Array], None] = _mark_ends
