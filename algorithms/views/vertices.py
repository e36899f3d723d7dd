"""Vertices that a caller names, as rows: ids, or in a Snapshot with names, names."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arguments import is_whole
from lpma.arrays import all_of, array_module, device_of, on_device, to_host
from lpma.errors import BatchError
from lpma.names import column_of
from lpma.snapshot import Snapshot

from .directed import present

Array = npt.NDArray[Any]


def row_of(s: Any, n: int, vertex: Any, what: str) -> int:
    """The row of one vertex of a graph of n rows. Raises BatchError, which says whose argument
    `what` it is, unless it is one of the vertices: in a Snapshot, a row that is `present`."""
    if isinstance(s, Snapshot) and s.names is not None:
        s.names.row(vertex, what)  # its error says more
    elif not is_whole(vertex):
        raise BatchError(f"{what}: {_known(s, n)}, not {vertex!r}")
    return int(rows_of(s, n, [vertex], what)[0])


def rows_of(s: Any, n: int, vertices: Any, what: str) -> Array:
    """int64[k], on the host: the rows of vertices in an array or a list. Raises as `row_of`."""
    return _checked(s, n, _rows(s, n, vertices, what), vertices, what)


def rows_beside(near: Array, s: Any, vertices: Any, what: str) -> Array:
    """As `rows_of`, but where `near` lies, int64[n+1], the row starts of the graph. Rows in an
    array on that device do not leave it."""
    n = len(near) - 1
    if not on_device(near):
        return rows_of(s, n, vertices, what)
    with device_of(near):
        xp = array_module(near)
        if on_device(vertices) and vertices.device == near.device and not _has_names(s):
            _check_integers(vertices, what)
            rows = vertices.astype(np.int64)  # an unsigned one beyond int64 comes out below 0
        else:
            rows = xp.asarray(_rows(s, n, vertices, what))
        return _checked(s, n, rows, vertices, what)


def _checked(s: Any, n: int, rows: Array, vertices: Any, what: str) -> Array:
    """The rows, wherever they lie, if all are vertices."""
    there = present(s)  # which rows are; None: all
    with device_of(rows if there is None else there):
        known = (rows >= 0) & (rows < n)
        if there is not None and all_of(known):
            known = there[array_module(there).asarray(rows)]
        if not all_of(known):
            wrong = to_host(vertices)[int(to_host(known).argmin())]
            raise BatchError(f"{what}: {_known(s, n)}, not {_plain(wrong)!r}")
    return rows


def _rows(s: Any, n: int, vertices: Any, what: str) -> Array:
    """int64[k]; one below 0 or from n on is none."""
    if _has_names(s):
        return s.names.look_up(column_of(vertices, what))
    ids = np.asarray(to_host(vertices))
    _check_integers(ids, what)
    return np.where(ids < n, ids, n).astype(np.int64)  # an unsigned one may be beyond int64


def _check_integers(ids: Array, what: str) -> None:
    if ids.ndim != 1 or (ids.dtype.kind not in "iu" and ids.size):
        raise BatchError(f"{what}: expected integers in one dimension: rows of the graph")


def _has_names(s: Any) -> bool:
    return isinstance(s, Snapshot) and s.names is not None


def _known(s: Any, n: int) -> str:
    if _has_names(s):
        return "the name of a vertex that is there"
    return f"a vertex that is there, from 0 to {n - 1}" if n else "no vertex is there"


def _plain(vertex: Any) -> Any:
    return vertex.item() if hasattr(vertex, "item") else vertex
