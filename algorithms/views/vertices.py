"""Vertices that a caller names, as rows: ids, or in a Snapshot with names, names."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arrays import array_module, device_of, to_host
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
    elif not isinstance(vertex, int | np.integer) or isinstance(vertex, bool):
        raise BatchError(f"{what}: {_known(s, n)}, not {vertex!r}")
    return int(rows_of(s, n, [vertex], what)[0])


def rows_of(s: Any, n: int, vertices: Any, what: str) -> Array:
    """int64[k], on the host: the rows of vertices in an array or a list. Raises as `row_of`."""
    rows = _rows(s, n, vertices, what)
    known = (rows >= 0) & (rows < n)
    there = present(s)
    if there is not None and bool(known.all()):
        with device_of(there):
            known = to_host(there[array_module(there).asarray(rows)])
    if not bool(known.all()):
        first = int(known.argmin())
        wrong = to_host(vertices)[first]
        raise BatchError(f"{what}: {_known(s, n)}, not {_plain(wrong)!r}")
    return rows


def _rows(s: Any, n: int, vertices: Any, what: str) -> Array:
    """int64[k]; one below 0 or from n on is none."""
    if isinstance(s, Snapshot) and s.names is not None:
        return s.names.look_up(column_of(vertices, what))
    ids = np.asarray(to_host(vertices))
    if ids.ndim != 1 or (ids.dtype.kind not in "iu" and ids.size):
        raise BatchError(f"{what}: expected integers in one dimension: rows of the graph")
    return np.where(ids < n, ids, n).astype(np.int64)  # an unsigned one may be beyond int64


def _known(s: Any, n: int) -> str:
    if isinstance(s, Snapshot) and s.names is not None:
        return "the name of a vertex that is there"
    return f"a vertex that is there, from 0 to {n - 1}" if n else "no vertex is there"


def _plain(vertex: Any) -> Any:
    return vertex.item() if hasattr(vertex, "item") else vertex
