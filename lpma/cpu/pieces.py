"""Rows in pieces: calling a kernel over ranges of a CSR's rows in a few threads.

Pieces have about the same number of entries, and there are many, since rows differ in work.

A pass that does little with each entry takes a nanosecond or two for it: below FEW entries, one
thread makes it, since handing over a dozen of them costs more. `is_small` is the rule.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ..arrays import Array
from .threads import THREADS, cuts, run_all

PIECES_PER_THREAD = 16
SMALL = 1 << 15  # entries below which handing work over costs more than it saves
FEW = 1 << 19  # entries of a graph that one thread passes over alone


def by_rows(kernel: Callable[..., Any], indptr: Array, *arguments: Any) -> list[Any]:
    """[kernel(first, last, *arguments) for each piece of the rows]. REQUIRES: a Numba kernel that
    releases the GIL."""
    return run_all(kernel, [(*piece, *arguments) for piece in row_pieces(indptr)])


def pass_over(kernel: Callable[..., Any], indptr: Array, *arguments: Any) -> list[Any]:
    """As `by_rows`, for a kernel that does little with each entry: one call for a small graph."""
    if is_small(indptr):
        return [kernel(0, len(indptr) - 1, *arguments)]
    return by_rows(kernel, indptr, *arguments)


def is_small(indptr: Array, ways: int = 1) -> bool:
    """Whether one thread is to make a pass over these rows that does little with each entry. ways:
    how often it comes by an entry; 2 for both directions."""
    return ways * int(indptr[-1]) < FEW


def row_pieces(indptr: Array, per_thread: int = PIECES_PER_THREAD) -> list[tuple[int, int]]:
    """All rows as ranges (first, last) of about the same number of entries, at least SMALL/4; one
    range if they have fewer than SMALL in all."""
    n = len(indptr) - 1
    if indptr[-1] < SMALL:
        return [(0, n)]
    pieces = min(per_thread * THREADS, 4 * int(indptr[-1]) // SMALL)
    places = np.searchsorted(indptr, np.linspace(0, int(indptr[-1]), pieces + 1)[1:-1])
    bounds = np.concatenate(([0], np.minimum(places, n), [n])).tolist()
    return [(a, b) for a, b in pairwise(bounds) if a < b]


def even_rows(n: int) -> list[tuple[int, int]]:
    """n rows as ranges (first, last) of about the same number of rows: for loose rows, whose
    entries before a row nobody has counted."""
    return cuts(n, SMALL >> 4, PIECES_PER_THREAD)
