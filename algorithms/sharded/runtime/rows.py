"""Rows cut out of a CSR, packed to be sent, and put together again.

On the CPU compiled loops copy them, from arrays of any type, which may be read-only, as what came
from other hosts is; on a device CuPy gathers by places. Packed rows are three
arrays: which rows (uint32), how long each is (uint32), and all their entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lpma.arrays import array_module, on_device
from lpma.cpu.addresses import data
from lpma.cpu.instructions import load_u32, move_bytes
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows

from ...arrays import Array, starts_of


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
        return lengths.astype(np.uint32), *by_places(indptr, rows, columns)
    starts, rows = starts_of(lengths), np.ascontiguousarray(rows, np.uint32)
    taken = [np.empty(int(starts[-1]), column.dtype) for column in columns]
    for column, into in zip(map(np.ascontiguousarray, columns), taken, strict=True):
        arrays = id(rows), id(column), id(into)
        by_rows(_take_rows, starts, starts, indptr, *arrays, column.itemsize)
    return lengths.astype(np.uint32), *taken


def by_places(indptr: Array, rows: Array, columns: Sequence[Array]) -> list[Array]:
    """What these rows have of each column, gathered by places."""
    places = places_of(indptr, rows)[1]
    return [column[places] for column in columns]


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
    if on_device(place):
        put_by_places(place, rows, lengths, values, into)
        return
    starts, rows = starts_of(lengths), np.ascontiguousarray(rows, np.uint32)
    for column, made in zip(map(np.ascontiguousarray, values), into, strict=True):
        arrays = id(rows), id(column), id(made)
        by_rows(_put_rows, starts, starts, place, *arrays, column.itemsize)


def put_by_places(
    place: Array, rows: Array, lengths: Array, values: list[Array], into: list[Array]
) -> None:
    """The same, scattered by places."""
    xp = array_module(place)
    starts = starts_of(lengths)
    within = xp.arange(int(starts[-1]))
    of = xp.searchsorted(starts[1:], within, side="right")
    places = within + (place[rows] - starts[:-1])[of]
    for column, made in zip(values, into, strict=True):
        made[places] = column


@compiled
def _take_rows(
    first: int, last: int, starts: Array, indptr: Array, rows: int, column: int, into: int,
    size: int,
) -> None:  # fmt: skip
    """Copy rows of entries of `size` bytes. rows, column, into: the id() of each array."""
    rows, column, into = data(rows), data(column), data(into)
    for i in range(first, last):
        at = indptr[np.int64(load_u32(rows + 4 * i))]
        length = size * (starts[i + 1] - starts[i])
        move_bytes(into + size * starts[i], column + size * at, length)


@compiled
def _put_rows(
    first: int, last: int, starts: Array, place: Array, rows: int, column: int, into: int,
    size: int,
) -> None:  # fmt: skip
    for i in range(first, last):
        at = place[np.int64(load_u32(data(rows) + 4 * i))]
        length = size * (starts[i + 1] - starts[i])
        move_bytes(data(into) + size * at, data(column) + size * starts[i], length)
