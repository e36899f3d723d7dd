"""NumPy's archives: arrays `src`, `dst` and so on by name, or the CSR that an export wrote.

A CSR becomes the same arrays, with the names of its vertices if it has them, so that both are read
alike.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from .pieces import Array, Piece, Vertices
from .reading import SHOWN, Asked, Reading
from .tables import read_columns

# The kinds of dtype that a field may have. Objects are names, which only an export gives.
_ALLOWED = {"weight": "iuf", "time": "iuM", "kind": "iu", "src": "iuUO", "dst": "iuUO"}


def open_npz(
    path: Path, asked: Asked, mirror: bool
) -> tuple[Reading, Iterator[Piece], Vertices | None]:
    """How the file is read, its pieces, and its vertices, if it says which. mirror:
    whether the edge of an undirected export gives both. Raises SourceError, OSError."""
    found = _arrays(path)
    s = _exported(path, found) if {"indptr", "indices"} <= found.keys() else None
    left = None
    if s is not None:
        left = None if asked.bipartite is False else s.left
        found = _edges(s)
    if not found:
        raise SourceError(f"{path}: needs arrays src and dst, holds none")
    columns = {name: _arrow(array) for name, array in found.items()}
    if s is None:
        reading, pieces = read_columns(path, "npz", columns, asked, mirror)
    else:
        reading, pieces = read_columns(
            path, "npz", columns, asked, mirror,
            directed=s.directed, stored=True, named=s.names is not None,
        )  # fmt: skip
        reading = reading.of_sides(left)
    _check(path, {field: reading.columns[p] for field, p in reading.places.items()}, found)
    return reading, pieces, None if s is None else partial(_vertices, s)


def _arrays(path: Path) -> dict[str, Array]:
    try:
        return arrays_of(path)
    except FormatError as error:
        raise SourceError(f"{path}: not an .npz of plain arrays: {error}") from error


def _check(path: Path, used: dict[str, str], found: dict[str, Array]) -> None:
    """Raise SourceError if the arrays used, by field, are not of one length, or not of such a
    type."""
    for field, name in used.items():
        array = found[name]
        if array.ndim != 1 or array.dtype.kind not in _ALLOWED[field]:
            raise SourceError(
                f"{path}: {name} is {array.dtype}{list(array.shape)}, and cannot be the "
                f"{SHOWN[field]}"
            )
    lengths = {name: len(found[name]) for name in used.values()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} has {length:,}" for name, length in lengths.items())
        raise SourceError(f"{path}: its arrays are not equally long: {shown}")


def _arrow(column: Array) -> Any:
    """The array as one of Arrow's; an empty one for what cannot be read."""
    import pyarrow

    if column.ndim != 1 or column.dtype.kind not in "biufMUO":
        return pyarrow.array([], pyarrow.null())
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
