"""Rows cut out of a CSR, packed to be sent, and joined again.

Packed rows are arrays: which rows (uint32), how long each is (uint32), and columns of all their
entries. On the CPU compiled loops copy them, from arrays of any type, which may be read-only like
those from other hosts; on a device CuPy gathers by places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lpma.arrays import array_module, on_device, row_numbers
from lpma.cpu.instructions import data, load_u32, move_bytes
from lpma.cpu.jit import compiled
from lpma.cpu.pieces import by_rows

from ...arrays import Array, starts_of


def places_of(indptr: Array, rows: Array) -> tuple[Array, Array]:
    """int64[k+1]: where each of these rows starts when packed; and int64: the place of each packed
    entry in the CSR."""
    first = indptr[rows]
    starts = starts_of(indptr[rows + np.uint32(1)] - first)
    return starts, _places(starts, first)


def _places(starts: Array, first: Array) -> Array:
    """int64: of the entries of packed rows, which start at `starts`, the places in rows that start
    at `first`."""
    places: Array = array_module(starts).arange(int(starts[-1]))
    places += (first - starts[:-1])[row_numbers(starts, len(places))]
    return places


def packed(indptr: Array, rows: Array, columns: Sequence[Array | None]) -> tuple[Any, ...]:
    """(lengths uint32[k], then what these rows have of each column). rows: uint32[k]. A column that
    is None remains None."""
    lengths = indptr[rows + np.uint32(1)] - indptr[rows]
    if on_device(indptr):
        return lengths.astype(np.uint32), *by_places(indptr, rows, columns)
    starts, rows = starts_of(lengths), np.ascontiguousarray(rows, np.uint32)
    taken: list[Array | None] = []
    for column in columns:
        into = None
        if column is not None:
            column = np.ascontiguousarray(column)
            into = np.empty(int(starts[-1]), column.dtype)
            arrays = id(rows), id(column), id(into)
            by_rows(_take_rows, starts, starts, indptr, *arrays, column.itemsize)
        taken.append(into)
    return lengths.astype(np.uint32), *taken


def by_places(indptr: Array, rows: Array, columns: Sequence[Array | None]) -> list[Any]:
    """What these rows have of each column, gathered by places."""
    places = places_of(indptr, rows)[1]
    return [None if column is None else column[places] for column in columns]


def joined(n: int, beside: Array, parts: Sequence[Any], columns: int) -> tuple[Any, ...]:
    """(indptr int64[n+1], then the columns) of packed rows (rows, lengths, columns …) from several
    senders. A row that several send has their entries in the senders' order. beside: an array on
    the same device. Without parts, columns are uint32."""
    xp = array_module(beside)
    lengths = xp.zeros(n + 1, np.int64)
    for rows, lengths_here, *_ in parts:
        lengths[rows.astype(np.int64) + 1] += lengths_here
    indptr = xp.cumsum(lengths)
    place = indptr[:-1].copy()
    like = parts[0][2:] if parts else [np.empty(0, np.uint32)] * columns
    made = [None if one is None else xp.empty(int(indptr[-1]), one.dtype) for one in like]
    for rows, lengths_here, *values in parts:
        pairs = [pair for pair in zip(values, made, strict=True) if pair[0] is not None]
        _put(place, rows, lengths_here, pairs)
        place[rows] += lengths_here
    return indptr, *made


def _put(place: Array, rows: Array, lengths: Array, columns: list[tuple[Any, Any]]) -> None:
    """Write packed rows from place[row] on. columns: each with the array to write it to."""
    if on_device(place):
        put_by_places(place, rows, lengths, columns)
        return
    starts, rows = starts_of(lengths), np.ascontiguousarray(rows, np.uint32)
    for values, made in columns:
        column = np.ascontiguousarray(values)
        arrays = id(rows), id(column), id(made)
        by_rows(_put_rows, starts, starts, place, *arrays, column.itemsize)


def put_by_places(
    place: Array, rows: Array, lengths: Array, columns: list[tuple[Any, Any]]
) -> None:
    """The same, scattered by places."""
    places = _places(starts_of(lengths), place[rows])
    for column, made in columns:
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
