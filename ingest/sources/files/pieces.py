"""Rows of a file as edge operations, and what a bad row is.

A `kind` column holds the numbers of `lpma.Kind`. Ends that are names are Arrow's arrays of text or
integers of 64 bits, or, where one block has both, objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpma.arguments.arrow import as_numpy
from lpma.arrays import rows_of
from lpma.batch.columns import EXPIRE, UPDATES, Columns

from ...errors import SourceError
from ...formats.kinds import UPDATE_KINDS
from ...types import Rejected
from .reading import Reading

Array = npt.NDArray[Any]
Value = Columns | Rejected
Vertices = Callable[[], Array]  # those that a file has, with or without an edge, once it is read

_KINDS = ", ".join(
    f"{kind:d} {word.replace('_', ' ')}" for word, kind in UPDATE_KINDS.items() if kind != EXPIRE
)


class Fault(NamedTuple):
    """What is wrong with a row. is_name: see `Rejected`."""

    reason: str
    is_name: bool = False


Faults = dict[int, Fault]  # by row


@dataclass
class Piece:
    """Rows that follow each other. columns: the good ones; bad: the others, each by its place among
    all, rising. mirror, stored: see Reading. line_of: a row as it stands in the file, by its place
    among all; None: not known."""

    columns: Columns
    bad: list[tuple[int, Rejected]] = field(default_factory=list)
    mirror: bool = False
    stored: bool = False
    line_of: Callable[[int], Rejected] | None = field(default=None, repr=False)

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
    faults: Faults,
    row_of: Callable[[int], Rejected],
) -> Piece:
    """The operations of a table of columns by field, each as its type needs it.

    faults: rows that are known to be bad; their values mean nothing. row_of: what a row of
    the table was in the file. Raises SourceError where a vertex was wrongly guessed to be a
    number."""
    _find_faults(table, reading, faults)
    if faults:
        keep = np.ones(len(table["src"]), bool)
        keep[list(faults)] = False
        table = {name: rows_of(column, keep) for name, column in table.items()}
    bad = [(row, replace(row_of(row), **fault._asdict())) for row, fault in sorted(faults.items())]
    for _, rejected in bad:
        check_guess(rejected, reading)
    return Piece(_columns(table, reading), bad, reading.mirror, reading.stored, row_of)


def as_promised(
    path: object, pieces: Iterator[Piece], promised: int, what: str, or_more: bool = False
) -> Iterator[Piece]:
    """The pieces. Raises SourceError if their rows are not as many as the file's head says."""
    found = 0
    for piece in pieces:
        found += len(piece.columns) + len(piece.bad)
        yield piece
    if found < promised or (found > promised and not or_more):
        raise SourceError(f"{path}: {found} {what}, but {promised} promised: cut short or damaged")


def check_guess(found: Rejected, reading: Reading) -> None:
    """Raise SourceError if a vertex is not the number that it was guessed to be."""
    if found.is_name and reading.guessed and not reading.named:
        text = found.value[:60].decode(errors="replace")
        raise SourceError(
            f"{reading.path}: line {found.line}, {text!r}, names a vertex by text or by a "
            "large number, while the first ones are small numbers: with --names (names=True) every "
            "vertex goes by its name; with --no-names (names=False) such lines are left out"
        )


def _find_faults(table: Mapping[str, Any], reading: Reading, faults: Faults) -> None:
    for end in ("src", "dst"):
        if reading.named:
            continue
        column, limit = table[end], reading.limit
        if end == "dst" and reading.right_limit is not None:
            limit = reading.right_limit
        unfit = (column < reading.base) | (column > limit + reading.base)
        what = "ids" if reading.has_ids else "indices"
        ids = f"{what} go from {reading.base} to {limit + reading.base}"
        note(faults, unfit, f"{end}: {ids}", reading.has_ids)
    if "weight" in table:
        most = reading.max_weight
        reason = f"weight: must be finite and at most {most:g} in size"
        note(faults, ~(np.abs(table["weight"]) <= most), reason)
    if "time" in table and table["time"].dtype.kind == "f":
        # Written so that NaN fails too; 2^63 is the first float that int64 does not hold.
        inside = (table["time"] >= -(2.0**63)) & (table["time"] < 2.0**63)
        note(faults, ~inside, "time: outside 64 bits")
    if "time" in table and reading.unit == "s":
        inside = np.abs(table["time"]) < 2.0**53
        note(faults, ~inside, "time: outside 64 bits in milliseconds")
    if "kind" in table:
        inside = np.isin(table["kind"], UPDATES)
        if "time" not in table or reading.named:  # an expiry names no vertex
            inside &= table["kind"] != EXPIRE
        note(faults, ~inside, f"kind: {_KINDS}")


def note(faults: Faults, unfit: Array, reason: str, is_name: bool = False) -> None:
    """Add a fault of these rows, bool[n], where none is known."""
    for row in np.flatnonzero(unfit).tolist():
        faults.setdefault(row, Fault(reason, is_name))


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
    time = in_milliseconds(table["time"], reading.unit) if "time" in table else None
    return Columns(kind, src, dst, weight, time, checked=True)  # row by row, as the file is read


def in_milliseconds(times: Array, unit: str | None) -> Array:
    """Times in this unit, or in none, as milliseconds since 1970, or as they are. A copy."""
    if unit == "s":
        return np.array(times * 1000, np.int64)
    whole = np.array(times, np.int64)
    return whole if unit in (None, "ms") else whole // {"us": 1000, "ns": 1_000_000}[unit]


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
