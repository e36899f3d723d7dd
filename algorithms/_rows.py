"""Rows in pieces: calling a kernel over ranges of rows in a few threads.

Pieces have about as many entries as one another, and there are many, since rows differ in work.
The threads are the store's, `lpma.backend.numba.threads`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.backend.numba.threads import THREADS, run_all

__all__ = ["SMALL", "THREADS", "by_rows", "row_pieces", "together"]

Array = npt.NDArray[Any]

PIECES_PER_THREAD = 16
SMALL = 1 << 15  # entries below which handing work over costs more than it saves

_first_use = threading.Lock()


def by_rows(kernel: Callable[..., Any], indptr: Array, *arguments: Any) -> list[Any]:
    """Call `kernel(first, last, *arguments)` over pieces of the rows. Requires a kernel of
    Numba's that lets go of the GIL."""
    bounds = row_pieces(indptr)
    return together(kernel, [(*piece, *arguments) for piece in bounds])


def row_pieces(indptr: Array, per_thread: int = PIECES_PER_THREAD) -> list[tuple[int, int]]:
    """All rows as ranges (first, last) of about as many entries as one another, SMALL/4 at least;
    one range where they have fewer than SMALL."""
    n = len(indptr) - 1
    if indptr[-1] < SMALL:
        return [(0, n)]
    pieces = min(per_thread * THREADS, 4 * int(indptr[-1]) // SMALL)
    cuts = np.searchsorted(indptr, np.linspace(0, int(indptr[-1]), pieces + 1)[1:-1])
    bounds = np.concatenate(([0], np.minimum(cuts, n), [n])).tolist()
    return [(a, b) for a, b in pairwise(bounds) if a < b]


def together(kernel: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> list[Any]:
    """[kernel(*arguments) for arguments in calls], spread over the threads. A kernel's first call
    is made alone: Numba may not compile, or read its cache, in two threads at once."""
    if kernel.signatures or not calls:  # type: ignore[attr-defined]
        return run_all(kernel, calls)
    with _first_use:
        first = kernel(*calls[0])
    return [first, *run_all(kernel, calls[1:])]
