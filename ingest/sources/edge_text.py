"""Lines of text as edge operations: which column is what, and what a bad line is.

Idea: lines go to NumPy's C parser many at a time; lines that it refuses go to it again by halves,
until the bad ones stand alone and the good ones are kept.

Columns of text are found by `columns`, else by a header line's names, else by their number: two are
src dst, four are src dst weight time. Three are refused without a word from the caller, because a
time read as a weight would look like a graph. A `kind` column holds the numbers of `lpma.Kind`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lpma.batch import MAX_VERTEX, MAX_WEIGHT, Columns, Kind

from ..errors import SourceError
from .base import Rejected

SAMPLE_LINES = 100  # looked at to tell a header and the type of a time column

FIELDS = ("src", "dst", "weight", "time", "kind")
SKIP = "-"
ColumnNames = str | Sequence[str] | Mapping[str, str] | None

_ALIASES = {
    "src": {"src", "source", "from", "fromnodeid", "u", "user", "user_id"},
    "dst": {"dst", "target", "to", "tonodeid", "v", "destination", "item", "item_id"},
    "weight": {"weight", "w", "rating", "sign", "value"},
    "time": {"time", "t", "timestamp", "ts", "unixts"},
    "kind": {"kind", "op"},
}

Array = npt.NDArray[Any]
Value = Columns | Rejected


@dataclass(frozen=True)
class Layout:
    """Where a text line keeps its fields."""

    places: Mapping[str, int]  # field → number of the column, from 0
    delimiter: str | None  # None: blanks
    whole_times: bool = True  # False: some times have a fraction, which is cut
    base: int = 0  # the smallest id: 1 in Matrix Market
    limit: int = MAX_VERTEX  # the largest id, after `base` was taken off
    mirror: bool = False  # an entry off the diagonal stands for its reverse too

    @property
    def dtype(self) -> np.dtype[Any]:
        types = {"weight": "f8", "time": "i8" if self.whole_times else "f8"}
        return np.dtype([(field, types.get(field, "i8")) for field in self.places])


def find_layout(
    sample: list[str], path: Path, columns: ColumnNames, delimiter: str | None
) -> tuple[Layout, int]:
    """The layout, and how many header lines there are (0 or 1)."""
    fields = [_split(line, delimiter) for line in sample]
    header = not all(_is_number(field) for field in fields[0] if field)
    names = [field.strip().lower() for field in fields[0]]
    if isinstance(columns, Mapping):
        if not header:
            raise SourceError(f"{path}: has no header line; name the columns in their order")
        places = {
            field: names.index(name.lower())
            for field, name in columns.items()
            if name.lower() in names
        }
    elif columns is not None:
        given = columns.replace(",", " ").split() if isinstance(columns, str) else list(columns)
        places = {name: place for place, name in enumerate(given) if name != SKIP}
    elif header:
        places = {
            field: place
            for place, name in reversed(list(enumerate(names)))
            for field, known in _ALIASES.items()
            if name in known
        }
    elif len(names) in (2, 4):
        places = {field: place for place, field in enumerate(FIELDS[: len(names)])}
    else:
        raise SourceError(
            f"{path}: {len(names)} columns and no header: say which they are, as in "
            "columns='src dst time' or 'src dst weight' ('-' skips one)"
        )
    if not {"src", "dst"} <= places.keys() <= set(FIELDS):
        raise SourceError(
            f"{path}: columns {', '.join(places) or 'of unknown names'}: src and dst are needed, "
            f"others are {', '.join(FIELDS[2:])}, and '{SKIP}' skips one"
        )
    place = places.get("time")
    times = [line[place] for line in fields[header:] if place is not None and place < len(line)]
    whole = all("." not in time and "e" not in time.lower() for time in times)
    return Layout(places, delimiter, whole_times=whole), int(header)


def _split(line: str, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return line.split()
    return next(csv.reader([line.rstrip("\r")], delimiter=delimiter), [])


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def parse(lines: list[str], layout: Layout) -> Iterator[Value]:
    """The whole of `lines` at once, else each half: few bad lines cost a few more tries."""
    if not lines:
        return
    try:
        table = np.loadtxt(
            lines,
            dtype=layout.dtype,
            delimiter=layout.delimiter,
            usecols=tuple(layout.places.values()),
            comments=None,
            quotechar='"' if layout.delimiter else None,
            ndmin=1,
        )
        if len(table) != len(lines):  # a quoted field that holds a line's end
            raise ValueError("not one operation on one line")
    except ValueError as error:
        if len(lines) > 1:
            half = len(lines) // 2
            yield from parse(lines[:half], layout)
            yield from parse(lines[half:], layout)
        elif layout.whole_times and "time" in layout.places:
            yield from parse(lines, replace(layout, whole_times=False))
        else:
            yield Rejected(lines[0].encode(), str(error))
        return
    named = {field: table[field] for field in layout.places}
    for end in ("src", "dst"):
        named[end] = named[end] - layout.base
    for value in validated(named, layout.limit, lambda row: lines[row]):
        yield _mirrored(value) if layout.mirror and isinstance(value, Columns) else value


def validated(
    table: Mapping[str, Array], limit: int, line_of: Callable[[int], str]
) -> Iterator[Value]:
    """Runs of rows within the limits of an update, and the rows that are not, in order."""
    faults = {
        f"src: ids go from 0 to {limit}": ~_within(table["src"], limit),
        f"dst: ids go from 0 to {limit}": ~_within(table["dst"], limit),
    }
    if "weight" in table:
        reason = f"weight: finite values of at most {MAX_WEIGHT:g} in size are taken"
        faults[reason] = ~(np.abs(table["weight"]) <= MAX_WEIGHT)
    if "time" in table and table["time"].dtype.kind != "i":
        # Written so that NaN fails too; 2^63 is the first float that int64 does not hold.
        inside = (table["time"] >= -(2.0**63)) & (table["time"] < 2.0**63)
        faults["time: outside 64 bits"] = ~inside
    if "kind" in table:
        faults["kind: 0 append, 1 delete, 2 add vertex, 3 remove vertex"] = ~_within(
            table["kind"], int(Kind.REMOVE_VERTEX)
        )
    bad = np.logical_or.reduce(list(faults.values()))
    start = 0
    for row in [*np.flatnonzero(bad).tolist(), len(bad)]:
        if row > start:
            yield _columns({field: column[start:row] for field, column in table.items()})
        if row < len(bad):
            reason = next(reason for reason, rows in faults.items() if rows[row])
            yield Rejected(line_of(row).encode(), reason)
        start = row + 1


def _within(column: Array, limit: int) -> Array:
    return np.asarray((column >= 0) & (column <= limit))


def _columns(table: Mapping[str, Array]) -> Columns:
    """REQUIRES: every value within the limits of an update."""
    time = table.get("time")
    return Columns.validated(
        table["kind"].astype(np.uint8) if "kind" in table else 0,
        table["src"].astype(np.uint32),
        table["dst"].astype(np.uint32),
        table.get("weight"),
        None if time is None else time.astype(np.int64),
    )


def _mirrored(columns: Columns) -> Columns:
    """Every edge followed by its reverse, a loop alone."""
    times = np.where(columns.src == columns.dst, 1, 2)
    row = np.repeat(np.arange(len(columns)), times)
    second = np.append(False, row[1:] == row[:-1])
    src = np.where(second, columns.dst[row], columns.src[row])
    dst = np.where(second, columns.src[row], columns.dst[row])
    weight = None if columns.weight is None else columns.weight[row]
    return Columns.validated(columns.kind[row], src, dst, weight, None)
