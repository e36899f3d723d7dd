"""NumPy's archives: arrays `src`, `dst` and so on by name, or the CSR that an export wrote.

A CSR becomes the same arrays, with the names of its vertices if it has them, so that both are read
alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lpma import Snapshot
from lpma.arrays import to_host
from lpma.errors import FormatError
from lpma.snapshot.export import edge_chunks
from lpma.snapshot.export.archives import arrays_of

from ...errors import SourceError
from .kinds import HEAD_BYTES, no_edge_list
from .pieces import Array, Piece, Vertices
from .reading import SHOWN, Asked, Reading
from .tables import (
    BATCH_ROWS,
    SAMPLE_ROWS,
    guessed_of_columns,
    named_by_range,
    piece_of_arrow,
    reading_of_export,
)

# The kinds of dtype that a field may have. Objects are names, which only an export gives.
_ALLOWED = {"weight": "iuf", "time": "iuM", "kind": "iu", "src": "iuUO", "dst": "iuUO"}


def open_npz(
    path: Path, asked: Asked, mirror: bool
) -> tuple[Reading, Iterator[Piece], Vertices | None]:
    """How the file is read, its pieces, and its vertices, if it says which. mirror:
    whether the edge of an undirected export gives both. Raises SourceError, OSError."""
    found = _arrays(path)
    s = _exported(path, found) if {"indptr", "indices"} <= found.keys() else None
    if s is not None:
        found = _edges(s)
    table = {name: array if array.ndim == 1 else np.empty(0) for name, array in found.items()}
    if not table:
        raise SourceError(f"{path}: needs arrays src and dst, holds {', '.join(found) or 'none'}")
    sample = {name: [str(x) for x in array[:SAMPLE_ROWS].tolist()] for name, array in table.items()}
    reading = guessed_of_columns(path, "npz", sample, list(table), asked)
    if s is not None:
        reading = reading_of_export(reading, s.directed, mirror)
    used = {field: list(table)[place] for field, place in reading.places.items()}
    _check(path, {field: found[name] for field, name in used.items()}, used)
    ends = {end: used[end] for end in ("src", "dst")}
    if reading.guessed:
        arrays = [table[name] for name in ends.values()]
        ranges = [(int(a.min()), int(a.max())) for a in arrays if len(a) and a.dtype.kind in "iu"]
        reading = named_by_range(reading, ranges, any(a.dtype.kind in "UO" for a in arrays))
        if s is not None and s.names is not None:
            reading = replace(reading, named=True, why="")
    if reading.named:
        beside = {end: f"{name}_number" for end, name in ends.items()}
        numbers = {end: name for end, name in beside.items() if _is_bool(table.get(name))}
        reading = replace(reading, numbers=numbers)

    def pieces() -> Iterator[Piece]:
        for first in range(0, len(table[used["src"]]), BATCH_ROWS):
            rows = slice(first, first + BATCH_ROWS)
            columns = {field: _arrow(table[name][rows]) for field, name in used.items()}
            numbers = {end: table[name][rows] for end, name in reading.numbers.items()}
            yield piece_of_arrow(columns, reading, first, numbers)

    return reading, pieces(), None if s is None else partial(_vertices, s)


def _arrays(path: Path) -> dict[str, Array]:
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    what = no_edge_list(head) or "it is text"
    if not head.startswith(b"PK"):
        raise SourceError(f"{path}: not an .npz: {what}")
    try:
        return arrays_of(path)
    except FormatError as error:
        raise SourceError(f"{path}: not an .npz of plain arrays: {error}") from error


def _check(path: Path, arrays: dict[str, Array], used: dict[str, str]) -> None:
    """Raise SourceError if the arrays, by field, are not of one length, or not of such a type."""
    for field, array in arrays.items():
        if array.ndim != 1 or array.dtype.kind not in _ALLOWED[field]:
            raise SourceError(
                f"{path}: {used[field]} is {array.dtype}{list(array.shape)}, and cannot be the "
                f"{SHOWN[field]}"
            )
    lengths = {used[field]: len(array) for field, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} has {length:,}" for name, length in lengths.items())
        raise SourceError(f"{path}: its arrays are not equally long: {shown}")


def _is_bool(array: Array | None) -> bool:
    return array is not None and array.dtype == np.bool_


def _arrow(column: Array) -> Any:
    import pyarrow

    if column.dtype.kind == "M":
        column = column.astype("datetime64[us]")
    return pyarrow.array(column, pyarrow.string() if column.dtype.kind == "O" else None)


# -- exports ---------------------------------------------------------------------------------------


def _exported(path: Path, found: dict[str, Array]) -> Snapshot:
    if "format" in found and "shape" in found:
        raise SourceError(
            f"{path}: a matrix of scipy's: lpma.from_scipy(scipy.sparse.load_npz(path)) reads it"
        )
    try:
        return Snapshot.read_npz(path)
    except FormatError as error:
        raise SourceError(str(error)) from error


def _edges(s: Snapshot) -> dict[str, Array]:
    """The edges as arrays by name, the ends as the vertices' names or ids."""
    chunks = list(edge_chunks(s, by_row=True))
    empty = {"src": np.empty(0, np.uint32), "dst": np.empty(0, np.uint32)}
    names = list(chunks[0]) if chunks else list(empty)
    rows = {n: np.concatenate([c[n] for c in chunks]) if chunks else empty[n] for n in names}
    ends: dict[str, Array] = {}
    for end in ("src", "dst"):
        held = rows.pop(end)
        if s.names is not None:
            ends |= s.names.columns(end, held)
        else:
            ends[end] = held if s._ids is None else np.asarray(to_host(s._ids))[held]
    return ends | rows


def _vertices(s: Snapshot) -> Array:
    """The names or ids of the vertices."""
    rows = np.flatnonzero(np.asarray(to_host(s._present)))
    if s.names is not None:
        return s.names.of(rows)
    return rows if s._ids is None else np.asarray(to_host(s._ids))[rows]
