"""Rows cut out of a CSR, packed to be sent, and put together again.

On the CPU compiled loops copy them; on a device CuPy gathers by places. Packed rows are three
arrays: which rows (uint32), how long each is (uint32), and all their entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lpma.arrays import array_module, on_device
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows

from .types import Array


def starts_of(lengths: Array) -> Array:
    """int64[k+1]: where rows of these lengths start, one after the other, and where they end."""
    xp = array_module(lengths)
    starts: Array = xp.zeros(len(lengths) + 1, np.int64)
    xp.cumsum(lengths, dtype=np.int64, out=starts[1:])
    return starts


def places_of(indptr: Array, rows: Array) -> tuple[Array, Array]:
    """int64[k+1], where each of these rows starts when they are packed, and int64: the place of
    each packed entry in the CSR."""
    xp = array_module(indptr)
    first = indptr[rows]
    starts = starts_of(indptr[rows + np.uint32(1)] - first)
    total = int(starts[-1])
    within = xp.arange(total)
    of = xp.searchsorted(starts[1:], within, side="right")
    return starts, within + (first - starts[:-1])[of]


def packed(indptr: Array, rows: Array, columns: Sequence[Array]) -> tuple[Array, ...]:
    """(lengths uint32[k], then of each column what these rows have of it). rows: uint32[k]."""
    lengths = indptr[rows + np.uint32(1)] - indptr[rows]
    if on_device(indptr):
        places = places_of(indptr, rows)[1]
        return lengths.astype(np.uint32), *(column[places] for column in columns)
    starts = starts_of(lengths)
    taken = [np.empty(int(starts[-1]), column.dtype) for column in columns]
    for column, into in zip(columns, taken, strict=True):
        by_rows(_take_rows, starts, starts, rows, indptr, column, into)
    return lengths.astype(np.uint32), *taken


def joined(n: int, beside: Array, parts: Sequence[Any], columns: int) -> tuple[Array, ...]:
    """(indptr int64[n+1], then the columns) of packed rows (rows, lengths, columns …) from several
    senders. A row that several send has their entries in the senders' order. beside: where the
    arrays lie. Without parts, columns are uint32."""
    xp = array_module(beside)
    lengths = xp.zeros(n + 1, np.int64)
    for rows, lengths_here, *_ in parts:
        lengths[rows.astype(np.int64) + 1] += lengths_here
    indptr = xp.cumsum(lengths)
    place = indptr[:-1].copy()
    types = [one.dtype for one in parts[0][2:]] if parts else [np.dtype(np.uint32)] * columns
    made = [xp.empty(int(indptr[-1]), dtype) for dtype in types]
    for rows, lengths_here, *values in parts:
        _put(place, rows, lengths_here, values, made)
        place[rows] += lengths_here
    return indptr, *made


def _put(place: Array, rows: Array, lengths: Array, values: list[Array], into: list[Array]) -> None:
    """Write packed rows where place[row] says that each begins."""
    starts = starts_of(lengths)
    if not on_device(place):
        for column, made in zip(values, into, strict=True):
            by_rows(_put_rows, starts, starts, rows, place, column, made)
        return
    xp = array_module(place)
    within = xp.arange(int(starts[-1]))
    of = xp.searchsorted(starts[1:], within, side="right")
    places = within + (place[rows] - starts[:-1])[of]
    for column, made in zip(values, into, strict=True):
        made[places] = column


@compiled
def _take_rows(
    first: int, last: int, starts: Array, rows: Array, indptr: Array, column: Array, into: Array
) -> None:
    for i in range(first, last):
        at = indptr[rows[i]]
        for e in range(starts[i], starts[i + 1]):
            into[e] = column[at]
            at += 1


@compiled
def _put_rows(
    first: int, last: int, starts: Array, rows: Array, place: Array, column: Array, into: Array
) -> None:
    for i in range(first, last):
        at = place[rows[i]]
        for e in range(starts[i], starts[i + 1]):
            into[at] = column[e]
            at += 1
