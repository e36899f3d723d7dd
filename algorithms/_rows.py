"""Rows in pieces: calling a kernel over ranges of rows in a few threads.

A ThreadPoolExecutor's threads run compiled kernels that let go of the GIL. Pieces have about as
many entries as one another, and there are many, since rows differ in work.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

THREADS = numba.config.NUMBA_NUM_THREADS  # the cores this process may use, unless set by the user
PIECES_PER_THREAD = 16
SMALL = 1 << 15  # entries below which starting a thread costs more than it saves


def by_rows(kernel: Callable[..., Any], indptr: Array, *arguments: Any) -> list[Any]:
    """Call `kernel(first, last, *arguments)` over pieces of the rows, each with about as many
    entries as any other, in a few threads. Requires a kernel that lets go of the GIL."""
    n = len(indptr) - 1
    if indptr[-1] < SMALL:
        return [kernel(0, n, *arguments)]
    pieces = PIECES_PER_THREAD * THREADS
    cuts = np.searchsorted(indptr, np.linspace(0, int(indptr[-1]), pieces + 1)[1:-1])
    bounds = np.concatenate(([0], np.minimum(cuts, n), [n]))
    with ThreadPoolExecutor(THREADS) as pool:
        calls = [
            pool.submit(kernel, first, last, *arguments)
            for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
            if first < last
        ]
        return [call.result() for call in calls]
