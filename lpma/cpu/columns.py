"""Loops over whole columns that the host's logic needs: by NumPy, or by kernels once they may be
used.

`use_kernels` is called with the first store that compiled kernels keep. Until then nothing here
imports Numba, which takes a third of a second, or compiles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..keys import HALF, LOW

if TYPE_CHECKING:
    from types import ModuleType

Array = npt.NDArray[Any]

_kernels: ModuleType | None = None


def use_kernels() -> None:
    """Use the compiled kernels from now on."""
    global _kernels
    from . import column_kernels

    _kernels = column_kernels


def largest(src: Array, dst: Array) -> int:
    """The largest number in two contiguous columns of uint32 of one length; 0 if they are empty."""
    if _kernels is not None:
        return int(_kernels.largest(id(src), id(dst), len(src)))
    return max(int(src.max(initial=0)), int(dst.max(initial=0)))


def mark_rows(ids: Array, present: Array) -> None:
    """Set present[ids[i]] for all i. ids: uint32."""
    if _kernels is not None:
        _kernels.mark_rows(ids, present)
    else:
        present[ids] = True


def mark_ends(keys: Array, present: Array) -> None:
    """Set `present` for both ends of each key, but for the target of a marker."""
    if _kernels is not None:
        _kernels.mark_ends(keys, present)
        return
    targets = keys & LOW
    present[(keys >> HALF).astype(np.int64)] = True
    present[targets[targets != LOW].astype(np.int64)] = True
