"""Rows of a file as edge operations, and what a bad row is.

A `kind` column holds the numbers of `lpma.Kind`. Ends that are names are Arrow's arrays of text or
integers of 64 bits, or, where one block has both, objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.arguments.arrow import as_numpy
from lpma.arguments.convert import MAX_NAME_BYTES
from lpma.arrays import rows_of
from lpma.batch.columns import Columns, Kind

from ...types import Rejected
from .reading import Reading

Array = npt.NDArray[Any]
Value = Columns | Rejected
Vertices = Callable[[], Array]  # those that a file has, with or without an edge, once it is read


@dataclass
class Piece:
    """Rows that follow each other. columns: the good ones; bad: the others, each by its place among
    all, rising. mirror, stored: see Reading."""

    columns: Columns
    bad: list[tuple[int, Rejected]] = field(default_factory=list)
    mirror: bool = False
    stored: bool = False

    @property
    def all(self) -> Columns:
        """The operations of the good rows."""
        return self._operations(self.columns)

    def _operations(self, rows: Columns) -> Columns:
        rows = kept_at_zero(rows) if self.stored else rows
        return mirrored(rows) if self.mirror else rows

    def values(self) -> Iterator[Value]:
        """Runs of good rows, and the bad ones, in order."""
        start = passed = 0
        for place, rejected in [*self.bad, (len(self.columns) + len(self.bad), None)]:
            stop = place - passed
            if stop > start:
                yield self._operations(self.columns.rows(start, stop))
            if rejected is not None:
                yield rejected
            start, passed = stop, passed + 1


NO_COLUMNS = Columns.validated([], [], [], None, None)


def piece_of(
    table: Mapping[str, Any],
    reading: Reading,
    faults: dict[int, str],
    row_of: Callable[[int], Rejected],
) -> Piece:
    """The operations of a table of columns by field, each as its type needs it.

    faults: rows that are known to be bad, and why; their values mean nothing. row_of: what a row of
    the table was in the file."""
    _find_faults(table, reading, faults)
    if faults:
        keep = np.ones(len(table["src"]), bool)
        keep[list(faults)] = False
        table = {name: rows_of(column, keep) for name, column in table.items()}
    bad = [(row, replace(row_of(row), reason=reason)) for row, reason in sorted(faults.items())]
    return Piece(_columns(table, reading), bad, reading.mirror, reading.stored)


def _find_faults(table: Mapping[str, Any], reading: Reading, faults: dict[int, str]) -> None:
    for end in ("src", "dst"):
        column = table[end]
        if reading.named:
            if not isinstance(column, np.ndarray) or column.dtype == object:
                reason = f"{end}: text of 1 to {MAX_NAME_BYTES} bytes names a vertex"
                _note(faults, _unfit_names(column), reason)
            continue
        unfit = (column < reading.base) | (column > reading.limit + reading.base)
        ids = f"{reading.ids} go from {reading.base} to {reading.limit + reading.base}"
        _note(faults, unfit, f"{end}: {ids}")
    if "weight" in table:
        most = reading.max_weight
        reason = f"weight: must be finite and at most {most:g} in size"
        _note(faults, ~(np.abs(table["weight"]) <= most), reason)
    if "time" in table and table["time"].dtype.kind == "f":
        # Written so that NaN fails too; 2^63 is the first float that int64 does not hold.
        inside = (table["time"] >= -(2.0**63)) & (table["time"] < 2.0**63)
        _note(faults, ~inside, "time: outside 64 bits")
    if "kind" in table:
        inside = (table["kind"] >= 0) & (table["kind"] <= int(Kind.REMOVE_VERTEX))
        _note(faults, ~inside, "kind: 0 append, 1 delete, 2 add vertex, 3 remove vertex")


def _note(faults: dict[int, str], unfit: Array, reason: str) -> None:
    if unfit.any():
        for row in np.flatnonzero(unfit).tolist():
            faults.setdefault(row, reason)


def _unfit_names(column: Any) -> Array:
    """Which of an Arrow column of text are too short or too long."""
    import pyarrow.compute as pc

    if isinstance(column, np.ndarray):  # objects
        sizes = np.array([len(x.encode()) if isinstance(x, str) else 1 for x in column])
        return np.asarray((sizes < 1) | (sizes > MAX_NAME_BYTES))
    if not hasattr(column, "dictionary"):
        sizes = as_numpy(pc.binary_length(column))
        return np.asarray((sizes < 1) | (sizes > MAX_NAME_BYTES))
    unfit = _unfit_names(column.dictionary)
    return np.asarray(unfit[as_numpy(column.indices)])


def _columns(table: Mapping[str, Any], reading: Reading) -> Columns:
    """REQUIRES: every value within the limits of an update."""
    kind = np.zeros(len(table["src"]), np.uint8)
    if "kind" in table:
        kind = table["kind"].astype(np.uint8)
    src, dst = table["src"], table["dst"]
    if not reading.named:
        src, dst = ((end - reading.base).astype(np.uint32, copy=False) for end in (src, dst))
    # Copies: Arrow's memory is not to be written to, and kernels are compiled for arrays that are.
    weight = np.array(table["weight"], np.float64) if "weight" in table else None
    time = np.array(table["time"], np.int64) if "time" in table else None
    return Columns(kind, src, dst, weight, time, checked=True)  # row by row, as the file is read


def kept_at_zero(columns: Columns) -> Columns:
    """Edges that are stored, as operations: 0 makes no edge, so that one of weight 0 is made by 1
    and then -1."""
    if columns.weight is None or not (is_zero := columns.weight == 0).any():
        return columns
    row = np.repeat(np.arange(len(columns)), np.where(is_zero, 2, 1))
    second = np.append(False, row[1:] == row[:-1])
    weight = np.where(is_zero[row], np.where(second, -1.0, 1.0), columns.weight[row])
    return columns.take(row).replace(weight=weight)


def mirrored(columns: Columns) -> Columns:
    """Every edge followed by its reverse, a loop alone."""
    ends = (columns.src, columns.dst)  # Arrow's arrays of names can be compared as wholes only
    one, other = (end if isinstance(end, np.ndarray) else as_numpy(end) for end in ends)
    row = np.repeat(np.arange(len(columns)), np.where(one == other, 1, 2))
    second = np.append(False, row[1:] == row[:-1])
    src = np.where(second, other[row], one[row])
    dst = np.where(second, one[row], other[row])
    return columns.take(row).replace(src=src, dst=dst)
